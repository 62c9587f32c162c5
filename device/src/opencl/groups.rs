//! Sizes of work-groups for launches that leave them open.
//!
//! Drivers choose badly where dimension 0 has few work-items. Intel's runtime for processors makes groups of that dimension alone, and each
//! group takes about 25 ns: a copy from NCHW to NCHW4c with 4 x 64 x 16384 work-items takes 17.8 ms so, and 1.4 ms in groups of 256.
//! PoCL does better, and gains as much in simple kernels. With 64 and more work-items along dimension 0 both choose well.

/// Number of work-items along dimension 0 from which on the driver chooses.
const NARROW: u64 = 64;

/// Least number of work-items of a group that is chosen: smaller ones are slower than what drivers choose.
const LEAST: u64 = 64;

/// Greatest number of work-items of a group that is chosen.
const MOST: u64 = 256;

/// A size of work-groups for work-items that do not depend on it: all of dimension 0, and as much of the others as divides them. `None` where
/// the driver is to choose. `limit` is the greatest size of a group, `limits` those along each dimension.
pub(crate) fn fitting(global: [u64; 3], limit: u64, limits: [u64; 3]) -> Option<[u64; 3]> {
    let mut room = limit.min(MOST);
    let local = [0, 1, 2].map(|axis| {
        let size = largest_divisor(global[axis], room.min(limits[axis]));
        room /= size.max(1);
        size
    });
    let is_narrow = global[0] < NARROW && local[0] == global[0];
    (is_narrow && local.iter().product::<u64>() >= LEAST).then_some(local)
}

/// The largest divisor of a number that is at most `most`; 1 if there is none.
fn largest_divisor(number: u64, most: u64) -> u64 {
    (1..=most.min(number)).rev().find(|size| number.is_multiple_of(*size)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::fitting;

    #[test]
    fn narrow_launches_get_groups_that_divide_them() {
        let any = [4096; 3];
        assert_eq!(fitting([4, 64, 16384], 4096, any), Some([4, 64, 1]));
        assert_eq!(fitting([2, 1024, 1024], 4096, any), Some([2, 128, 1]));
        assert_eq!(fitting([4, 25, 2500], 4096, any), Some([4, 25, 2]));
        // A device that has smaller groups, along one dimension or at all.
        assert_eq!(fitting([4, 64, 16384], 128, any), Some([4, 32, 1]));
        assert_eq!(fitting([4, 64, 16384], 4096, [4096, 8, 4096]), Some([4, 8, 8]));
    }

    #[test]
    fn the_driver_chooses_for_wide_small_and_prime_launches() {
        let any = [4096; 3];
        for global in [[64, 4, 4], [1024, 1, 1], [3, 5, 2], [1, 1, 1], [2, 257, 1], [0, 64, 64]] {
            assert_eq!(fitting(global, 4096, any), None, "{global:?}");
        }
        assert_eq!(fitting([4, 64, 64], 32, any), None);
        assert_eq!(fitting([4, 64, 64], 4096, [2, 64, 64]), None);
    }
}

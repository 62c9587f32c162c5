//! Generators of ragged shapes: extents next to block sizes, primes, powers of two and their
//! neighbours.
//!
//! Mistakes in layouts show at extents that a block does not divide: one more or one less than a block, primes, single
//! elements. The extents of a shape mostly differ, so that exchanged axes are noticed. All functions are total: missing
//! bytes count as zeros, and every result is within the limits of [`Config`].

use arbitrary::{Result, Unstructured};

use super::config::Config;

/// True with the given probability in percent; 0 is never.
///
/// # Errors
/// Never because there are too few bytes.
pub fn percent(u: &mut Unstructured<'_>, percent: u8) -> Result<bool> {
    Ok(u.int_in_range(0..=99)? < percent)
}

/// Draws a shape within the ranges of `config`.
///
/// # Errors
/// Never because there are too few bytes: missing ones count as zeros.
pub fn shape(u: &mut Unstructured<'_>, config: &Config) -> Result<Vec<i64>> {
    shape_within(u, config, config.extents.elements)
}

/// Draws a shape of at most `most` elements.
///
/// The rank is from [`ExtentRanges::rank`](super::config::ExtentRanges::rank). With probability
/// `distinct_percent` the extents are pairwise distinct, so that exchanged axes change the result.
///
/// # Errors
/// Never because there are too few bytes.
pub fn shape_within(u: &mut Unstructured<'_>, config: &Config, most: i64) -> Result<Vec<i64>> {
    let rank = u.int_in_range(config.extents.rank.clone())?;
    let distinct = percent(u, config.extents.distinct_percent)?;
    let mut shape: Vec<i64> = Vec::with_capacity(rank);
    let mut elements = 1i64;
    for _ in 0..rank {
        // The factor that is left for this axis without exceeding the limit.
        let room = (most / elements).min(config.extents.largest).max(1);
        let mut extent = extent(u, config, room)?;
        while distinct && shape.contains(&extent) && shape.len() < usize::try_from(room).unwrap_or(0) {
            extent = if extent >= room { 1 } else { extent + 1 };
        }
        elements *= extent;
        shape.push(extent);
    }
    // The limit on the factors decreases from left to right; the rotation puts large axes anywhere.
    let turn = u.int_in_range(0..=rank - 1)?;
    shape.rotate_left(turn);
    Ok(shape)
}

/// Draws an extent from 1 to `room`: 1, 2 or 3, a block size or its neighbours, twice a block size
/// less one, a prime, a power of two up to 128, or a neighbour of one.
///
/// # Errors
/// Never because there are too few bytes.
pub fn extent(u: &mut Unstructured<'_>, config: &Config, room: i64) -> Result<i64> {
    const PRIMES: [i64; 14] = [5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 61, 97, 127];
    let block = block(u, config)?;
    let found = match u.int_in_range(0..=9)? {
        0 => 1,
        1 => 2,
        2 => 3,
        3 => block - 1,
        4 => block,
        5 => block + 1,
        6 => 2 * block - 1,
        7 => *u.choose(&PRIMES)?,
        8 => 1 << u.int_in_range(0..=7)?,
        _ => (1 << u.int_in_range(1..=7)?) + if u.arbitrary()? { 1 } else { -1 },
    };
    Ok(if found > room { 1 + found % room } else { found.max(1) })
}

/// Draws a block size of `config`.
///
/// # Errors
/// Never because there are too few bytes.
pub fn block(u: &mut Unstructured<'_>, config: &Config) -> Result<i64> {
    u.choose(&config.layout.blocks).copied().or(Ok(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes;

    #[test]
    fn shapes_keep_to_their_ranges_and_most_are_distinct() {
        let config = Config::default();
        let mut distinct = 0;
        for number in 0..2000 {
            let bytes = bytes::of_case(1, "shape", number);
            let shape = shape(&mut Unstructured::new(&bytes), &config).unwrap();
            assert!(config.extents.rank.contains(&shape.len()), "{shape:?}");
            assert!(shape.iter().all(|extent| (1..=config.extents.largest).contains(extent)), "{shape:?}");
            assert!(shape.iter().product::<i64>() <= config.extents.elements, "{shape:?}");
            let mut sorted = shape.clone();
            sorted.sort_unstable();
            sorted.dedup();
            distinct += usize::from(sorted.len() == shape.len());
        }
        assert!(distinct > 1200, "{distinct} of 2000 are distinct");
    }

    #[test]
    fn no_bytes_make_a_shape_too() {
        let shape = shape(&mut Unstructured::new(&[]), &Config::default()).unwrap();
        assert!(!shape.is_empty());
    }
}

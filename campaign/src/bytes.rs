//! Bytes from a seed: what a campaign draws its cases from.

/// Bytes that a case is drawn from: enough for every case of the default ranges.
pub const LENGTH: usize = 1024;

/// The bytes of one case of a campaign: they depend on the seed, the oracle's name and the number of the case alone, so that
/// any case can be had again without those before it.
pub fn of_case(seed: u64, oracle: &str, number: u64) -> Vec<u8> {
    let name = oracle
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
    let mut state = mix(seed ^ mix(name ^ mix(number)));
    let mut bytes = Vec::with_capacity(LENGTH);
    while bytes.len() < LENGTH {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        bytes.extend(mix(state).to_le_bytes());
    }
    bytes
}

/// Mixes 64 bits one to one (the finaliser of SplitMix64; Steele, Lea, Flood 2014).
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_has_its_own_bytes_and_always_the_same() {
        assert_eq!(of_case(1, "passes", 7), of_case(1, "passes", 7));
        assert_ne!(of_case(1, "passes", 7), of_case(1, "passes", 8));
        assert_ne!(of_case(1, "passes", 7), of_case(1, "order", 7));
        assert_ne!(of_case(1, "passes", 7), of_case(2, "passes", 7));
    }
}

//! The byte strings that a campaign draws its cases from, derived from its seed.

/// Length of the byte string of a case. It suffices for every case of the default ranges; drawing
/// beyond its end yields zeros.
pub const LENGTH: usize = 1024;

/// The byte string of one case of a campaign. It depends only on the seed, the oracle's name and
/// the number of the case, so any case can be reproduced without those before it.
///
/// The name is hashed by FNV-1a; the three values seed a `SplitMix64` generator.
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

/// Mixes 64 bits bijectively (the finaliser of SplitMix64; Steele, Lea, Flood 2014).
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

//! Guard bands: bytes after the end of a buffer that no kernel may change.

use crate::error::TouchedGuard;

/// The bytes of a guard, repeated. Neighbours differ, so that a shifted copy is detected, and none is 0 or a byte that fills
/// memory.
const PATTERN: [u8; 8] = [0xA5, 0x3C, 0xD2, 0x69, 0x1E, 0xB4, 0x87, 0x5A];

/// A fresh guard of `len` bytes.
pub(crate) fn fresh(len: usize) -> Vec<u8> {
    PATTERN.iter().copied().cycle().take(len).collect()
}

/// Compares the guard of the buffer `name`, which has `bytes` bytes without it, with a fresh one. `None` if it is unchanged.
pub(crate) fn inspect(name: &str, bytes: u64, guard: &[u8]) -> Option<TouchedGuard> {
    let differs = |(_, (byte, fresh)): &(u64, (&u8, &u8))| byte != fresh;
    let mut changed = (0_u64..).zip(guard.iter().zip(PATTERN.iter().cycle())).filter(differs);
    let (first, _) = changed.next()?;
    Some(TouchedGuard {
        buffer: name.to_owned(),
        first_byte: bytes + first,
        changed: 1 + changed.map(|_| 1).sum::<u64>(),
    })
}

#[cfg(test)]
mod tests {
    use super::{fresh, inspect};

    #[test]
    fn a_guard_tells_the_first_byte_and_the_number_of_changed_ones() {
        let mut guard = fresh(64);
        assert_eq!(inspect("A", 100, &guard), None);
        guard[10] = 0;
        guard[63] = 0;
        let touched = inspect("A", 100, &guard).map(|t| (t.first_byte, t.changed));
        assert_eq!(touched, Some((110, 2)));
    }
}

//! The switch for planted faults: places where the code can be made wrong on purpose, to measure whether the oracles notice.
//!
//! A planted fault is a branch `if sabotage::on("name") { wrong } else { right }` in the code that it breaks. Without the
//! feature `sabotage`, [`on`] is the constant `false` and the branch is compiled away; with it, at most one fault is on at a
//! time, for the whole process. This module knows no names: the list of faults, with their descriptions, belongs to the crate
//! `tilewright-campaign`, and a test there compares it with the sources.

#[cfg(feature = "sabotage")]
mod switch {
    use std::sync::atomic::{AtomicU64, Ordering};

    /// The key of the fault that is on; [`NONE`] if none is.
    static ACTIVE: AtomicU64 = AtomicU64::new(NONE);

    /// How often the branch of the fault that is on was reached.
    static REACHED: AtomicU64 = AtomicU64::new(0);

    const NONE: u64 = 0;

    /// Whether faults can be switched on in this build.
    pub const AVAILABLE: bool = true;

    /// The 64-bit FNV-1a hash of a name: comparing numbers keeps the branch cheap in inner loops.
    const fn key(name: &str) -> u64 {
        let (bytes, mut hash, mut at) = (name.as_bytes(), 0xcbf2_9ce4_8422_2325_u64, 0);
        while at < bytes.len() {
            hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
            at += 1;
        }
        hash
    }

    /// Whether the fault of that name is on.
    #[inline]
    pub fn on(name: &'static str) -> bool {
        let is_on = ACTIVE.load(Ordering::Relaxed) == key(name);
        if is_on {
            REACHED.fetch_add(1, Ordering::Relaxed);
        }
        is_on
    }

    /// How often the branch of the fault that is on was reached since the last call of this function. An oracle that never
    /// reaches the branch cannot notice the fault.
    pub fn reached() -> u64 {
        REACHED.swap(0, Ordering::Relaxed)
    }

    /// Switches one fault on and every other off, or all off, for the whole process from now on.
    pub fn switch(name: Option<&str>) {
        ACTIVE.store(name.map_or(NONE, key), Ordering::SeqCst);
    }
}

#[cfg(not(feature = "sabotage"))]
mod switch {
    /// Whether faults can be switched on in this build: no.
    pub const AVAILABLE: bool = false;

    /// Whether the fault of that name is on: never in this build.
    #[inline]
    pub const fn on(_: &'static str) -> bool {
        false
    }

    /// How often the branch of the fault that is on was reached: never in this build.
    pub const fn reached() -> u64 {
        0
    }

    /// Does nothing in this build.
    pub const fn switch(_: Option<&str>) {}
}

pub use switch::{AVAILABLE, on, reached, switch};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_on_only_with_the_feature_and_only_by_its_own_name() {
        switch(Some("division-truncates"));
        reached();
        assert!(!on("flatten-swaps-strides"));
        assert_eq!(on("division-truncates"), AVAILABLE);
        assert_eq!((reached(), reached()), (u64::from(AVAILABLE), 0));
        switch(None);
        assert!(!on("division-truncates"));
    }
}

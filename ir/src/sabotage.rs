//! Faults by name: places where this project can be broken on purpose, to measure whether its oracles see it.
//!
//! A fault is a branch `if on(Fault::X) { wrong } else { right }` in the code that it breaks. Without the feature `sabotage`,
//! [`on`] is the constant `false` and the branch is gone; with it, at most one fault is on at a time, for the process.
//! [`FAULTS`] is the whole list; those marked as decoys change the code and not what it does: whoever flags one is wrong.

/// What a fault breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Room {
    /// A pass, or the algebra that passes stand on.
    Passes,
    /// The judge: its encoding and its tiers.
    Judge,
    /// The memory planner.
    Planner,
    /// The reader or the printer.
    Script,
    /// The interpreter.
    Interpreter,
    /// The code generator.
    Codegen,
}

impl Room {
    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Judge => "judge",
            Self::Planner => "planner",
            Self::Script => "script",
            Self::Interpreter => "interpreter",
            Self::Codegen => "codegen",
        }
    }
}

/// A row of the list.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The fault.
    pub fault: Fault,
    /// Its name on the command line.
    pub name: &'static str,
    /// Where it is.
    pub room: Room,
    /// What is wrong then, in a line; for a decoy, what is different and yet the same.
    pub summary: &'static str,
    /// Whether it changes nothing that anybody could see.
    pub is_decoy: bool,
}

macro_rules! faults {
    ($($kind:ident $fault:ident $name:literal $room:ident $summary:literal;)*) => {
        /// A place that can be broken.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Fault { $(#[doc = $summary] $fault,)* }

        /// Every fault, in the order of the rooms.
        pub static FAULTS: &[Row] = &[$(Row {
            fault: Fault::$fault,
            name: $name,
            room: Room::$room,
            summary: $summary,
            is_decoy: faults!(@ $kind),
        },)*];
    };
    (@ fault) => { false };
    (@ decoy) => { true };
}

faults! {
    fault FlattenSwapsStrides "flatten-swaps-strides" Passes "flatten_buffer takes the extent of the axis before for a stride";
    fault DivisionTruncates "division-truncates" Interpreter "floor division of a negative number rounds towards zero";
    decoy FlattenCommutes "flatten-commutes" Passes "flatten_buffer writes a + b as b + a";
}

/// The fault of that name.
pub fn by_name(name: &str) -> Option<&'static Row> {
    FAULTS.iter().find(|row| row.name == name)
}

#[cfg(feature = "sabotage")]
mod switch {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::Fault;

    /// Number of the fault that is on, plus one; 0 if none is.
    static ACTIVE: AtomicUsize = AtomicUsize::new(0);

    /// Whether faults can be switched on.
    pub const AVAILABLE: bool = true;

    /// Whether this fault is on.
    #[inline]
    pub fn on(fault: Fault) -> bool {
        ACTIVE.load(Ordering::Relaxed) == fault as usize + 1
    }

    /// Switches one fault on, and every other off; none switches all off. For the whole process, from now on.
    pub fn switch(fault: Option<Fault>) {
        ACTIVE.store(fault.map_or(0, |fault| fault as usize + 1), Ordering::SeqCst);
    }
}

#[cfg(not(feature = "sabotage"))]
mod switch {
    use super::Fault;

    /// Whether faults can be switched on: no, this is the real thing.
    pub const AVAILABLE: bool = false;

    /// Whether this fault is on: never.
    #[inline]
    pub const fn on(_: Fault) -> bool {
        false
    }

    /// Does nothing: there is nothing to switch.
    pub const fn switch(_: Option<Fault>) {}
}

pub use switch::{AVAILABLE, on, switch};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        let names: BTreeSet<_> = FAULTS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), FAULTS.len());
        for row in FAULTS {
            assert_eq!(by_name(row.name).map(|found| found.fault), Some(row.fault));
            assert!(row.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", row.name);
        }
    }

    #[test]
    fn without_the_feature_nothing_is_ever_on() {
        switch(Some(Fault::DivisionTruncates));
        assert_eq!(on(Fault::DivisionTruncates), AVAILABLE);
        switch(None);
        assert!(!on(Fault::DivisionTruncates));
    }
}

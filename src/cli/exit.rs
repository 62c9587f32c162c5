//! Exit codes: the part of the result that a script needs.

use std::process::ExitCode;

use crate::pipeline::outcome::Summary;

/// How a run ended. The order is that of severity, so the worst of several files is their maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExitStatus {
    /// All fine: 0.
    Success,
    /// Unknown, vacuous or skipped where it was not allowed: 3.
    Undecided,
    /// Refuted, or two engines disagree: 1.
    Refuted,
    /// Bad usage, bad input, or an output that cannot be written: 2.
    Usage,
    /// A fault of Tilewright or of the machine: 70.
    Internal,
}

impl ExitStatus {
    /// The exit code of the process.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Refuted => 1,
            Self::Usage => 2,
            Self::Undecided => 3,
            Self::Internal => 70,
        }
    }

    /// The status of a verdict on the whole. `allow_unknown` turns an undecided verdict into success, never a refuted
    /// one.
    pub fn of_summary(summary: Summary, allow_unknown: bool) -> Self {
        match summary {
            Summary::Proved => Self::Success,
            Summary::Skipped | Summary::Vacuous | Summary::Unknown if allow_unknown => Self::Success,
            Summary::Skipped | Summary::Vacuous | Summary::Unknown => Self::Undecided,
            Summary::Mismatch | Summary::Refuted => Self::Refuted,
        }
    }
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_not_decided_can_be_allowed() {
        for (summary, strict, allowed) in [
            (Summary::Proved, 0, 0),
            (Summary::Skipped, 3, 0),
            (Summary::Vacuous, 3, 0),
            (Summary::Unknown, 3, 0),
            (Summary::Mismatch, 1, 1),
            (Summary::Refuted, 1, 1),
        ] {
            assert_eq!(ExitStatus::of_summary(summary, false).code(), strict);
            assert_eq!(ExitStatus::of_summary(summary, true).code(), allowed);
        }
    }

    #[test]
    fn the_worst_of_several_files_counts() {
        let statuses = [ExitStatus::Success, ExitStatus::Refuted, ExitStatus::Undecided];
        assert_eq!(statuses.into_iter().max().map(ExitStatus::code), Some(1));
    }
}

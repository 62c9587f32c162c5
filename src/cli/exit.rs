//! Exit codes: the whole of what a script needs to know.

use std::process::ExitCode;

use crate::report::Verdict;

/// How a run ended. The order is that of severity, so the worst of several files is their maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExitStatus {
    /// All fine: 0.
    Success,
    /// Unknown, vacuous or skipped where it was not allowed: 3.
    Undecided,
    /// Refuted, or two engines disagree: 1.
    Refuted,
    /// Bad usage or bad input: 2.
    Usage,
    /// A fault of Tilewright or of the machine: 70.
    Internal,
}

impl ExitStatus {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Refuted => 1,
            Self::Usage => 2,
            Self::Undecided => 3,
            Self::Internal => 70,
        }
    }

    /// What a verdict means for the caller; `allow_unknown` lets pass what was not decided, never what is wrong.
    pub fn of_verdict(verdict: Verdict, allow_unknown: bool) -> Self {
        match verdict {
            Verdict::Proved => Self::Success,
            Verdict::Skipped | Verdict::Vacuous | Verdict::Unknown if allow_unknown => Self::Success,
            Verdict::Skipped | Verdict::Vacuous | Verdict::Unknown => Self::Undecided,
            Verdict::Mismatch | Verdict::Refuted => Self::Refuted,
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
        for (verdict, strict, allowed) in [
            (Verdict::Proved, 0, 0),
            (Verdict::Skipped, 3, 0),
            (Verdict::Vacuous, 3, 0),
            (Verdict::Unknown, 3, 0),
            (Verdict::Mismatch, 1, 1),
            (Verdict::Refuted, 1, 1),
        ] {
            assert_eq!(ExitStatus::of_verdict(verdict, false).code(), strict);
            assert_eq!(ExitStatus::of_verdict(verdict, true).code(), allowed);
        }
    }

    #[test]
    fn the_worst_of_several_files_counts() {
        let statuses = [ExitStatus::Success, ExitStatus::Refuted, ExitStatus::Undecided];
        assert_eq!(statuses.into_iter().max().map(ExitStatus::code), Some(1));
    }
}

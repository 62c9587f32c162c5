//! Verdicts and counterexamples.
//!
//! ```text
//! proved
//! unknown: timeout of 10000 ms
//! refuted: 3 lands on 4, outside the physical shape 4 at n = 4
//! ```

use crate::door::Grounds;
use crate::reason::Reason;
use crate::term::Assignment;
use std::fmt;

/// The answer to an obligation. The variants are ordered by severity: the larger, the worse.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It holds, on these grounds, which only the [door](crate::door) can make.
    Proved(Grounds),
    /// The obligation was not asked, for this reason.
    Skipped(Reason),
    /// It holds only because its premises contradict each other, for this reason.
    Vacuous(Reason),
    /// It was neither proved nor refuted, for this reason.
    Unknown(Reason),
    /// It does not hold for these values, which were evaluated.
    Refuted(Counterexample),
}

impl Verdict {
    /// Whether it holds: the only verdict that lets a pass through.
    pub fn is_proved(&self) -> bool {
        matches!(self, Self::Proved(_))
    }

    /// The word in reports: `proved`, `skipped`, `vacuous`, `unknown` or `refuted`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Proved(_) => "proved",
            Self::Skipped(_) => "skipped",
            Self::Vacuous(_) => "vacuous",
            Self::Unknown(_) => "unknown",
            Self::Refuted(_) => "refuted",
        }
    }

    /// The reason, if the verdict is skipped, vacuous or unknown.
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Skipped(reason) | Self::Vacuous(reason) | Self::Unknown(reason) => Some(reason),
            Self::Proved(_) | Self::Refuted(_) => None,
        }
    }

    /// The values for which it fails, if it is refuted.
    pub fn counterexample(&self) -> Option<&Counterexample> {
        match self {
            Self::Refuted(found) => Some(found),
            Self::Proved(_) | Self::Skipped(_) | Self::Vacuous(_) | Self::Unknown(_) => None,
        }
    }

    /// The worst of several verdicts. `None` if there is none: an empty list proves nothing.
    pub fn worst(verdicts: impl IntoIterator<Item = Self>) -> Option<Self> {
        verdicts.into_iter().max()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word();
        match self {
            Self::Proved(_) => f.write_str(word),
            Self::Skipped(reason) | Self::Vacuous(reason) | Self::Unknown(reason) => {
                write!(f, "{word}: {reason}")
            }
            Self::Refuted(counterexample) => write!(f, "{word}: {counterexample}"),
        }
    }
}

/// Concrete values under which an obligation fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counterexample {
    /// The shape variables and their values.
    pub shape: Vec<(String, i128)>,
    /// The indices of the map that show the failure: two for a collision, else one; empty if it is not about indices.
    pub indices: Vec<Vec<i128>>,
    /// The remaining variables (indices, loop variables, conditions as 0 or 1) and their values.
    pub assignments: Vec<(String, i128)>,
    /// A description of the failure.
    pub text: String,
}

impl Counterexample {
    /// The counterexample with the values of some more variables.
    #[must_use]
    pub(crate) fn about(mut self, vars: &[tilewright_ir::Var], values: &[i128]) -> Self {
        self.assignments.extend(vars.iter().map(|var| var.name().to_owned()).zip(values.iter().copied()));
        self
    }

    /// The values of the remaining variables under names that differ: a variable that has two values, one for each of two
    /// points of a map, gets a prime for the second.
    pub fn named_values(&self) -> Vec<(String, i128)> {
        let mut values: Vec<(String, i128)> = Vec::with_capacity(self.assignments.len());
        for (name, value) in &self.assignments {
            let mut name = name.clone();
            while values.iter().any(|(other, _)| *other == name) {
                name.push('\'');
            }
            values.push((name, *value));
        }
        values
    }

    /// Splits a model into shape variables (those for which `is_shape` holds) and the rest.
    pub fn from_model(model: &Assignment, is_shape: impl Fn(&str) -> bool, text: impl Into<String>) -> Self {
        let mut split = Self { text: text.into(), ..Self::default() };
        for (symbol, value) in model.iter() {
            let value = match value {
                crate::term::Value::Int(value) => value,
                crate::term::Value::Bool(value) => i128::from(value),
            };
            let part = if is_shape(symbol.name()) { &mut split.shape } else { &mut split.assignments };
            part.push((symbol.name().to_owned(), value));
        }
        split
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        let mut separator = if self.text.is_empty() { "" } else { " at " };
        // The text names the indices of a map already.
        let assignments = if self.indices.is_empty() { self.assignments.as_slice() } else { &[] };
        for (name, value) in self.shape.iter().chain(assignments) {
            write!(f, "{separator}{name} = {value}")?;
            separator = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reason::ReasonKind;

    #[test]
    fn only_proved_is_proved_and_refuted_is_worst() {
        let refuted = Verdict::Refuted(Counterexample::default());
        let all = [
            Verdict::Unknown(Reason::new(ReasonKind::Timeout, "timeout")),
            refuted.clone(),
            crate::door::inspected(),
            Verdict::Vacuous(Reason::new(ReasonKind::Empty, "empty domain")),
            Verdict::Skipped(Reason::new(ReasonKind::NotAsked, "no device")),
        ];
        assert_eq!(all.iter().filter(|verdict| verdict.is_proved()).count(), 1);
        assert_eq!(Verdict::worst(all), Some(refuted));
        assert_eq!(Verdict::worst([]), None);
    }

    #[test]
    fn values_of_one_name_are_told_apart_by_primes() {
        let assignments = vec![("i".to_owned(), 1), ("j".to_owned(), 2), ("i".to_owned(), 3), ("i".to_owned(), 4)];
        let values = Counterexample { assignments, ..Counterexample::default() }.named_values();
        let names: Vec<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["i", "j", "i'", "i''"]);
        assert_eq!(values.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [1, 2, 3, 4]);
    }

    #[test]
    fn a_counterexample_names_the_shape_first() {
        let model = Assignment::new().with("a", 3).with("N", 7);
        let shown = Counterexample::from_model(&model, |name| name == "N", "index 9 is reached twice");
        assert_eq!(shown.to_string(), "index 9 is reached twice at N = 7, a = 3");
    }
}

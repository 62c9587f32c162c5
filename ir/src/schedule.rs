//! Steps of a schedule: requests to restructure a function (the attribute `schedule`).

use std::fmt;

use crate::diag::Span;

/// A request for a primitive, such as `split=i:4`. What it means is up to the pass of that name; it does not change what the
/// function computes.
///
/// ```
/// use tilewright_ir::ScheduleStep;
/// let step = ScheduleStep::parse("compute_at=A:C.i", None).expect("it has a name and an argument");
/// assert_eq!((step.primitive.as_str(), step.argument.as_str()), ("compute_at", "A:C.i"));
/// assert_eq!(step.to_string(), "compute_at=A:C.i");
/// assert!(ScheduleStep::parse("unroll", None).is_none());
/// ```
#[derive(Clone, Debug)]
pub struct ScheduleStep {
    /// The name of the pass.
    pub primitive: String,
    /// What the pass works on, and how: the text behind the name.
    pub argument: String,
    /// Where the source text asks for it. Diagnostics point there; nothing else reads it.
    pub span: Option<Span>,
}

impl ScheduleStep {
    /// Reads `NAME=ARGUMENT`; `None` if one of the two is missing.
    pub fn parse(text: &str, span: Option<Span>) -> Option<Self> {
        let (primitive, argument) = text.split_once('=')?;
        let (primitive, argument) = (primitive.trim().to_owned(), argument.trim().to_owned());
        (!primitive.is_empty() && !argument.is_empty()).then_some(Self { primitive, argument, span })
    }
}

impl fmt::Display for ScheduleStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.primitive, self.argument)
    }
}

impl PartialEq for ScheduleStep {
    /// Two steps are equal wherever they stand.
    fn eq(&self, other: &Self) -> bool {
        self.primitive == other.primitive && self.argument == other.argument
    }
}

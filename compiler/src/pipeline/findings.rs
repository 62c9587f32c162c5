//! What is known of a pair of functions beside the verdicts: how it was decided, what was found to correspond, and for which
//! extents it holds.

use std::fmt;

use tilewright_ir::{Comparison, Expr, PrimFunc, Reordering, Span, StoreOrigin, Var};
use tilewright_verify::reorder::{Statement, program};

use crate::harness::inputs::premises;

/// The way in which a pair of functions was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Statement by statement.
    Lockstep,
    /// Iteration by iteration: the loops were restructured.
    Loops,
    /// Value by value, wherever both functions keep them.
    Values,
    /// By what both functions compute, as definitions: reductions were restructured.
    Definitions,
    /// By the results alone, of both functions run on terms.
    Results,
    /// Refuted by running both functions.
    Run,
}

impl Way {
    /// The way that a comparison takes.
    pub fn of(comparison: &Comparison) -> Self {
        match comparison {
            Comparison::Statements | Comparison::Barriers | Comparison::Packed => Self::Lockstep,
            Comparison::Iterations(_) => Self::Loops,
            Comparison::Values(_) => Self::Values,
            Comparison::Definitions(_) => Self::Definitions,
            Comparison::Results => Self::Results,
            Comparison::Scalarized(claim) => Self::of(&claim.evidence.comparison),
            Comparison::Phases(claim) => Self::of(&claim.evidence.comparison),
        }
    }

    /// The word for it in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::Lockstep => "lockstep",
            Self::Loops => "loops",
            Self::Values => "values",
            Self::Definitions => "definitions",
            Self::Results => "results",
            Self::Run => "run",
        }
    }
}

/// A way that was tried and did not decide a pair of functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// The way.
    pub way: Way,
    /// Why it did not, in one line.
    pub why: String,
}

/// What became of the iterations of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopMap {
    /// The store before, and its place in the text of the function before.
    pub before: (String, Option<Span>),
    /// The store after, and its place in the text of the function after.
    pub after: (String, Option<Span>),
    /// Which iterations after; `None` for all that the maps in front of this one leave.
    pub when: Option<String>,
    /// The iteration before of an iteration after, as a lambda.
    pub forward: String,
    /// The iteration after of an iteration before, as a lambda.
    pub back: String,
}

/// Returns what a comparison claims of the iterations of each store; empty if it claims nothing of iterations.
pub fn loop_maps(before: &PrimFunc, after: &PrimFunc, comparison: &Comparison) -> Vec<LoopMap> {
    if let Comparison::Scalarized(claim) = comparison {
        return loop_maps(&claim.before, &claim.after, &claim.evidence.comparison);
    }
    if let Comparison::Phases(claim) = comparison {
        return loop_maps(&claim.before, &claim.after, &claim.evidence.comparison);
    }
    let (Comparison::Iterations(Reordering { stores }), Ok(before), Ok(after)) =
        (comparison, program(before), program(after))
    else {
        return Vec::new();
    };
    let origins =
        after.statements.iter().zip(stores).flat_map(|(after, origins)| origins.iter().map(move |one| (after, one)));
    origins.filter_map(|(after, origin)| Some(loop_map(before.statements.get(origin.before)?, after, origin))).collect()
}

fn loop_map(before: &Statement, after: &Statement, origin: &StoreOrigin) -> LoopMap {
    LoopMap {
        before: (before.subject.clone(), before.span),
        after: (after.subject.clone(), after.span),
        when: origin.when.as_ref().map(ToString::to_string),
        forward: lambda(&after.loops(), &origin.forward),
        back: lambda(&before.loops(), &origin.back),
    }
}

fn lambda(vars: &[Var], values: &[Expr]) -> String {
    let listed = |parts: Vec<String>| parts.join(", ");
    let head = listed(vars.iter().map(ToString::to_string).collect());
    let head = if head.is_empty() { "lambda".to_owned() } else { format!("lambda {head}") };
    format!("{head}: [{}]", listed(values.iter().map(ToString::to_string).collect()))
}

/// The calls of a function that a proof is about.
///
/// ```text
/// all extents                                  every shape is symbolic or has symbolic parts, and nothing is asserted
/// all extents and all values of x              there is a scalar parameter x besides
/// extents with n >= 0 and m % 4 == 0           asserted by the function before, or assumed
/// these extents only                           all shapes are constant
/// these extents only, with x >= 0              and so much is asserted or assumed
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Whether a shape of a parameter is symbolic.
    pub is_symbolic: bool,
    /// The other integers of the call.
    pub scalars: Vec<String>,
    /// What the function asserts or the user assumes of these integers.
    pub conditions: Vec<String>,
}

impl Validity {
    /// The calls that a function accepts.
    pub fn of(func: &PrimFunc) -> Self {
        let is_integer = |var: &&Var| var.dtype().scalar.integer_range().is_some();
        Self {
            is_symbolic: func.buffer_map.iter().any(|(_, buffer)| buffer.const_shape().is_none()),
            scalars: func.scalars().iter().filter(is_integer).map(|var| var.name().to_owned()).collect(),
            conditions: premises(func).iter().map(ToString::to_string).collect(),
        }
    }
}

impl fmt::Display for Validity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.is_symbolic, self.conditions.is_empty()) {
            (true, true) => f.write_str("all extents")?,
            (true, false) => f.write_str("extents")?,
            (false, _) => f.write_str("these extents only")?,
        }
        let comma = if self.is_symbolic { "" } else { "," };
        if !self.conditions.is_empty() {
            write!(f, "{comma} with {}", self.conditions.join(" and "))
        } else if self.scalars.is_empty() {
            Ok(())
        } else {
            write!(f, "{comma} and all values of {}", self.scalars.join(", "))
        }
    }
}

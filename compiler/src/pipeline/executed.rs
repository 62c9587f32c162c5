//! Refutes a pair of programs by running both of them.
//!
//! The judge proves that two programs mean the same, or says *unknown* with the place and the reason: a structure that differs
//! shows nothing, since equal programs may look different. What refutes a pair is an execution. Both programs are run by the
//! reference interpreter on the same inputs, for some extents, and either an output differs, or only one of them traps:
//!
//! ```text
//! before: B[i] = A[i] + 1        at n = 1 (seed 0): `B[0]` is 2.5 before and 0.5 after
//! after:  B[i] = A[i] - 1
//! ```
//!
//! `tilewright run` with these extents, this seed and the options printed beside it shows the values again.

mod proposals;
mod search;

use std::fmt;

use crate::harness::engine::StageProgram;
use tilewright_ir::{BinaryOp, Definition, Evidence, Expr, PrimFunc, ScalarType, StmtKind};
use tilewright_verify::{Method, Obligation, Premise, Reason, ReasonKind, Report, Verdict};

pub use proposals::{Model, models};

/// The program before, in one of its forms.
#[derive(Clone, Copy, Debug)]
pub enum Before<'a> {
    /// What a lowered function has to compute.
    Definition(&'a Definition),
    /// A function.
    Func(&'a PrimFunc),
}

impl<'a> Before<'a> {
    fn program(self) -> StageProgram<'a> {
        match self {
            Self::Definition(definition) => StageProgram::Definition(definition),
            Self::Func(func) => StageProgram::Func(func),
        }
    }
}

/// The order in which floats are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Both programs have the same.
    Same,
    /// Each may have its own: inputs are small whole numbers, of which sums and products are exact. Programs that divide floats or call
    /// functions of them, or have floats of less than 32 bits, are not run.
    Any,
}

/// What the runs of two programs showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runs {
    /// They were not run, for this reason.
    Not(String),
    /// They differ.
    Differ,
    /// No difference was found.
    Alike {
        /// Runs of both programs.
        runs: usize,
        /// Those in which both trapped.
        trapped: usize,
        /// Why there were no more runs, or what is doubtful about them.
        remark: Option<String>,
    },
}

impl fmt::Display for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Not(why) => write!(f, "not run: {why}"),
            Self::Differ => f.write_str("the runs differ"),
            Self::Alike { runs, trapped, remark } => {
                write!(f, "no difference in {runs} runs")?;
                if *trapped > 0 {
                    write!(f, "; in {trapped} of them both programs trapped")?;
                }
                remark.as_ref().map_or(Ok(()), |remark| write!(f, "; {remark}"))
            }
        }
    }
}

/// Runs both programs if the judge left open whether they mean the same. If the runs differ, the report that named the
/// difference, or else the first open one, becomes *refuted*.
pub fn refute(before: Before<'_>, after: &PrimFunc, evidence: Option<&Evidence>, reports: &mut [Report]) -> Runs {
    let models = models(reports);
    refute_in(Order::Same, before, after, evidence, (reports, &models))
}

/// [`refute`] for programs that may combine floats in other orders. Values at which something seems to fail are tried, too.
pub fn refute_in(
    order: Order,
    before: Before<'_>,
    after: &PrimFunc,
    evidence: Option<&Evidence>,
    (reports, models): (&mut [Report], &[Model]),
) -> Runs {
    let Some(open) = first_open(reports) else {
        return Runs::Not("nothing is open that a run could show".into());
    };
    let is_sure = match before {
        Before::Func(before) => is_exact(before) && is_exact(after),
        Before::Definition(_) => is_exact(after),
    };
    if order == Order::Any && !is_sure {
        let what = "floats are divided, given to functions, or narrower than 32 bits";
        return Runs::Not(format!("{what}, so that results depend on the order in which others are combined"));
    }
    // Calls with which the program before leaves its buffers are no calls if that is a premise.
    let is_defined = !Premise::of_reports(reports).is_empty();
    let report = &mut reports[open];
    let found = if assumes_inside(before) {
        Err(Runs::Not(
            "the program before assumes a condition in its body, which a call that a run chooses may break".into(),
        ))
    } else {
        search::difference((order, is_defined), (before, after), evidence, models)
    };
    match found {
        Ok(mut found) => {
            if let Some(reason) = report.verdict.reason() {
                found.text = format!("{}; the judge: {reason}", found.text);
            }
            (report.verdict, report.method) = (Verdict::Refuted(found), Method::Interpreter);
            Runs::Differ
        }
        Err(Runs::Not(why)) => {
            if let Some(reason) = report.verdict.reason() {
                let text = format!("{reason}; not run: {why}");
                report.verdict = Verdict::Unknown(Reason::new(reason.kind(), text));
            }
            Runs::Not(why)
        }
        Err(runs) => runs,
    }
}

/// Whether a program has conditions that are evaluated for nothing: `T.assume` in another place than the start of a function. Nothing is
/// proved by them, and where they do not hold the program may mean anything.
fn assumes_inside(before: Before<'_>) -> bool {
    let Before::Func(func) = before else { return false };
    let mut found = false;
    func.body.walk(&mut |stmt| {
        found |= matches!(&stmt.kind, StmtKind::Evaluate(value) if value.dtype().scalar == ScalarType::Bool);
    });
    found
}

/// The position of the report that a difference belongs to; `None` if the judge decided everything about the pair.
fn first_open(reports: &[Report]) -> Option<usize> {
    let is_open = |report: &Report| match (report.obligation, &report.verdict) {
        (
            Obligation::Simulation
            | Obligation::Iteration
            | Obligation::Order
            | Obligation::Alive
            | Obligation::Padding,
            Verdict::Unknown(reason),
        ) => !reason.is_internal(),
        _ => false,
    };
    let named = |report: &Report| report.verdict.reason().is_some_and(|reason| reason.kind() == ReasonKind::Differs);
    let position = |wanted: &dyn Fn(&Report) -> bool| reports.iter().position(wanted);
    // Where an index may wrap, the comparison says nothing of its value.
    let may_wrap = |report: &Report| {
        let reason = report.verdict.reason().filter(|_| matches!(report.verdict, Verdict::Unknown(_)));
        report.obligation == Obligation::Overflow && reason.is_some_and(|reason| !reason.is_internal())
    };
    position(&|report| is_open(report) && named(report)).or_else(|| position(&is_open)).or_else(|| position(&may_wrap))
}

/// Whether small whole numbers stay exact: floats have at least 32 bits, and nothing divides them or calls a function of them.
fn is_exact(func: &PrimFunc) -> bool {
    let mut is_exact = true;
    func.body.walk(&mut |stmt| {
        for expr in stmt.exprs() {
            expr.walk(&mut |part| {
                let is_rounded = matches!(part, Expr::Binary(BinaryOp::Div, ..) | Expr::Call(..));
                let ty = part.dtype().scalar;
                is_exact &= !(ty.is_float() && (is_rounded || ty.bits() < 32));
            });
        }
    });
    is_exact
}

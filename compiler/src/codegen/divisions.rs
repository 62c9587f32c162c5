//! Which integer divisions a kernel may write with C's `/` and `%`: those for which the judge proved `dividend`.
//!
//! ```text
//! i // 4           0 <= i < 8       proved: i / 4
//! (i - 3) // 4     0 <= i < 8       not proved: tw_floordiv_int(i - 3, 4), which rounds down and does not trap
//! ```
//!
//! A [`Divisions`] is the only way to the operators: it belongs to one function, and expressions get into it only as a
//! proved report of the judge. Without proofs every division calls a helper, which is right for all operands.

use std::sync::Arc;

use tilewright_ir::{Diagnostic, Expr, Validated};
use tilewright_verify::{Judge, Report};

/// A function together with the divisions that its kernels may write with the operators of C.
#[derive(Clone, Debug)]
pub struct Divisions<'f> {
    func: Validated<'f>,
    proved: Proved,
    reports: Vec<Report>,
}

/// The divisions of one function for which `dividend` is proved.
#[derive(Clone, Debug, Default)]
pub(super) struct Proved(Arc<[Expr]>);

impl Proved {
    /// Whether a division is among them.
    pub(super) fn contains(&self, division: &Expr) -> bool {
        self.0.contains(division)
    }
}

impl<'f> Divisions<'f> {
    /// The function without any proof.
    pub fn unproved(func: Validated<'f>) -> Self {
        Self { func, proved: Proved::default(), reports: Vec::new() }
    }

    /// Asks the judge about divisions of the function, and keeps those that are proved.
    pub fn proved_by(judge: &Judge, func: Validated<'f>, asked: &[Expr]) -> Self {
        let decided = asked.iter().zip(judge.check_dividends(func.func(), asked));
        let (proved, reports): (Vec<_>, Vec<_>) = decided
            .filter(|(_, report)| report.verdict.is_proved())
            .map(|(expr, report)| (expr.clone(), report))
            .unzip();
        Self { func, proved: Proved(proved.into()), reports }
    }

    /// The reports on the divisions that are proved.
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// The function.
    pub(super) fn func(&self) -> Validated<'f> {
        self.func
    }

    /// The divisions that are proved.
    pub(super) fn proved(&self) -> &Proved {
        &self.proved
    }
}

/// Generates something with the divisions of a function that the judge proves. `calls` lists the divisions that call a
/// helper; without proofs those are all that there are, so they are what the judge is asked about.
///
/// # Errors
/// Those of `generate`.
pub(super) fn judged<'f, T>(
    judge: &Judge,
    func: Validated<'f>,
    generate: impl Fn(&Divisions<'f>) -> Result<T, Vec<Diagnostic>>,
    calls: impl Fn(&T) -> Vec<Expr>,
) -> Result<T, Vec<Diagnostic>> {
    let unproved = generate(&Divisions::unproved(func))?;
    let asked = calls(&unproved);
    if asked.is_empty() { Ok(unproved) } else { generate(&Divisions::proved_by(judge, func, &asked)) }
}

/// The integer divisions of one lane that kernels have, each once.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// Those that are written with the operators of C.
    pub truncating: Vec<Expr>,
    /// Those that are written as calls of a helper.
    pub calls: Vec<Expr>,
}

impl Written {
    /// Records a division.
    pub(super) fn note(&mut self, division: &Expr, is_truncating: bool) {
        let list = if is_truncating { &mut self.truncating } else { &mut self.calls };
        if !list.contains(division) {
            list.push(division.clone());
        }
    }

    /// Adds the divisions of another kernel.
    pub(super) fn extend(&mut self, other: &Self) {
        other.truncating.iter().for_each(|division| self.note(division, true));
        other.calls.iter().for_each(|division| self.note(division, false));
    }
}

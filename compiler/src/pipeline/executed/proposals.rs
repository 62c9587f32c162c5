//! Extents and integers that are worth a run: those of the solver's models, those for which a condition of a program comes out
//! otherwise, and numbers near the constants of both programs.
//!
//! ```text
//! for i in range(T.min(n, 40)): ...          `i < 40` does not hold at n = 41, i = 40: n = 41 is tried
//! if s == 12345: ...                         s = 12344, 12345, 12346 and 12347 are tried
//! if n == m * 3 and m > 8: ...               n = 27, m = 9 are tried, for which that holds
//! ```
//!
//! Nothing here is believed: a proposal only says what is run. Small ones come first.

use std::collections::BTreeSet;

use tilewright_ir::{BinaryOp, Bindings, Expr, PrimFunc, StmtKind, UnaryOp, Var};
use tilewright_verify::{Report, Verdict};

use crate::harness::inputs::{Sampled, satisfy_with_scalars, satisfying};

/// Values of variables by name.
pub type Model = Vec<(String, i128)>;

/// Proposals of each kind.
const MOST: usize = 24;

/// The largest extent that is proposed.
const LARGEST_EXTENT: i128 = 1 << 22;

/// What is fixed of a call: symbolic extents and integers among the scalar parameters. The rest comes from the seed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) extents: Vec<(String, i128)>,
    pub(super) scalars: Vec<(String, i128)>,
}

/// The values at which the reports of a judge say that something fails. They may be values of other variables, too.
pub fn models(reports: &[Report]) -> Vec<Model> {
    let model = |report: &Report| match &report.verdict {
        Verdict::Refuted(found) => [found.shape.as_slice(), &found.assignments].concat(),
        Verdict::Unknown(reason) => reason.values().to_vec(),
        Verdict::Proved(_) | Verdict::Skipped(_) | Verdict::Vacuous(_) => Vec::new(),
    };
    reports.iter().map(model).filter(|model| !model.is_empty()).collect()
}

/// What to try beside the fixed extents, for a call with these symbolic extents and integer parameters.
pub(super) fn proposals(models: &[Model], [symbols, scalars]: [&[Var]; 2], programs: &[&PrimFunc]) -> Vec<Choice> {
    let mut found: Vec<Choice> = models.iter().map(|model| of_model(model, symbols, scalars)).collect();
    let size = |choice: &Choice| {
        let all = choice.extents.iter().chain(&choice.scalars);
        all.fold(0i128, |sum, (_, value)| sum.saturating_add(value.saturating_abs()))
    };
    found.sort_by_key(size);
    found.dedup();
    found.retain(|choice| *choice != Choice::default());
    found.truncate(MOST);
    found.extend(of_conditions([symbols, scalars], programs));
    let mut near: Vec<Choice> = Vec::new();
    let values = near_constants(programs);
    for &value in &values {
        let is_extent = (1..=LARGEST_EXTENT).contains(&value);
        let one = |var: &Var| vec![(var.name().to_owned(), value)];
        near.extend(symbols.iter().filter(|_| is_extent).map(|var| Choice { extents: one(var), scalars: Vec::new() }));
        let fits = scalars.iter().filter(|var| is_in_type(var, value));
        near.extend(fits.map(|var| Choice { extents: Vec::new(), scalars: one(var) }));
    }
    let most = values.iter().copied().filter(|value| (1..=64).contains(value)).max();
    if let Some(most) = most.filter(|_| symbols.len() > 1) {
        let extents = symbols.iter().map(|var| (var.name().to_owned(), most)).collect();
        near.insert(0, Choice { extents, scalars: Vec::new() });
    }
    near.truncate(MOST);
    found.extend(near.into_iter().filter(|choice| !found.contains(choice)).collect::<Vec<_>>());
    found
}

/// The part of a model that is about the call.
fn of_model(model: &[(String, i128)], symbols: &[Var], scalars: &[Var]) -> Choice {
    let of = |vars: &[Var], is_valid: &dyn Fn(&Var, i128) -> bool| -> Vec<(String, i128)> {
        let value = |var: &Var| model.iter().find(|(name, value)| name == var.name() && is_valid(var, *value)).cloned();
        vars.iter().filter_map(value).collect()
    };
    Choice {
        extents: of(symbols, &|_, value| (1..=LARGEST_EXTENT).contains(&value)),
        scalars: of(scalars, &is_in_type),
    }
}

/// Values for which conditions of the programs hold, and values for which they do not, as far as they are about the call alone.
fn of_conditions([symbols, scalars]: [&[Var]; 2], programs: &[&PrimFunc]) -> Vec<Choice> {
    let mut conditions: Vec<Expr> = Vec::new();
    let mut look = |expr: &Expr| {
        let is_known = |var: &Var| symbols.iter().chain(scalars).any(|known| known.name() == var.name());
        let is_condition = matches!(expr, Expr::Binary(op, ..) if is_logical(*op)) && expr.dtype().is_scalar();
        let is_new = !expr.reads_memory() && !conditions.iter().any(|other| other == expr);
        if is_condition && is_new && !expr.vars().is_empty() && expr.vars().iter().all(is_known) {
            conditions.push(expr.clone());
        }
    };
    for func in programs {
        func.body.walk(&mut |stmt| stmt.exprs().for_each(|expr| expr.walk(&mut look)));
    }
    conditions.truncate(MOST / 2);
    let both = |cond: &Expr| [cond.clone(), Expr::unary(UnaryOp::Not, cond.clone())];
    conditions.iter().flat_map(both).filter_map(|cond| for_which([symbols, scalars], &cond)).collect()
}

fn is_logical(op: BinaryOp) -> bool {
    use BinaryOp as Op;
    match op {
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::And | Op::Or => true,
        Op::Add | Op::Sub | Op::Mul | Op::Div | Op::FloorDiv | Op::FloorMod | Op::TruncDiv | Op::TruncMod => false,
        Op::Min | Op::Max | Op::BitAnd | Op::BitOr | Op::BitXor | Op::Shl | Op::Shr => false,
    }
}

/// Small values for which a condition holds, if some are found.
fn for_which([symbols, scalars]: [&[Var]; 2], cond: &Expr) -> Option<Choice> {
    // The variables of the other program have the same names.
    let own = |vars: &[Var]| -> Vec<Var> {
        let used = cond.vars().into_iter();
        used.filter(|var| vars.iter().any(|known| known.name() == var.name())).collect()
    };
    let (symbols, scalars, cond) = (own(symbols), own(scalars), std::slice::from_ref(cond));
    let named = |vars: &[Var], found: &Bindings| -> Vec<(String, i128)> {
        vars.iter().filter_map(|var| Some((var.name().to_owned(), *found.get(var)?))).collect()
    };
    let Sampled { mut bindings, unmet } = satisfying(&symbols, &[], cond, 1).ok()?;
    bindings.extend(scalars.iter().map(|var| (var.clone(), 0)));
    if (unmet.is_some() || !scalars.is_empty()) && satisfy_with_scalars(&mut bindings, &scalars, cond, 1).is_some() {
        return None;
    }
    let (extents, scalars) = (named(&symbols, &bindings), named(&scalars, &bindings));
    Some(Choice { extents, scalars })
}

fn is_in_type(var: &Var, value: i128) -> bool {
    var.dtype().scalar.integer_range().is_some_and(|(low, high)| (low..=high).contains(&value))
}

/// Where a conversion to a narrower integer wraps: behind the greatest and before the least value of the type.
fn narrowed(part: &Expr) -> Vec<i128> {
    let Expr::Cast(ty, value) = part else { return Vec::new() };
    match (ty.scalar.integer_range(), value.dtype().scalar.integer_range()) {
        (Some((low, high)), Some((least, most))) => {
            [(low - 1, least < low), (high + 1, high < most)].into_iter().filter(|end| end.1).map(|end| end.0).collect()
        }
        _ => Vec::new(),
    }
}

/// Numbers near those that the programs compare, add or count with, by their size; the least ones are tried anyway.
fn near_constants(programs: &[&PrimFunc]) -> Vec<i128> {
    let mut constants: BTreeSet<i128> = BTreeSet::new();
    for func in programs {
        func.body.walk(&mut |stmt| {
            let stored = if let StmtKind::Store { value, .. } = &stmt.kind { Some(value) } else { None };
            for expr in stmt.exprs() {
                // What is stored, and not compared with anything, decides nothing.
                let is_plain = stored == Some(expr) && matches!(expr, Expr::Int { .. });
                expr.walk(&mut |part| {
                    constants.extend(part.as_const_int().filter(|_| !is_plain));
                    constants.extend(narrowed(part));
                });
            }
        });
    }
    let mut near: Vec<i128> = constants
        .into_iter()
        .filter(|value| value.unsigned_abs() > 4)
        .flat_map(|value| [2, 1, 0, -1].map(|by| value.saturating_add(by)))
        .collect();
    near.sort_by_key(|value| value.unsigned_abs());
    near.dedup();
    near
}

//! Races of a function that was read as it is: nobody lowered it, so nobody claims that its parallel iterations keep
//! to themselves.
//!
//! ```text
//! for i in T.parallel(n):        each iteration has elements of its own if i -> [i // 2] is injective: the judge is
//!     B[i // 2] = A[i]           asked; failing that, the iterations are run and every access is compared
//! ```
//!
//! Running decides where all iterations are known, so for constant extents and indices that no data decides. Elsewhere
//! it can show a race, and finding none proves nothing.

use std::time::Instant;

use tilewright_interp::{Argument, Arguments, Config, Observers, RunError, TrapKind, run};
use tilewright_ir::{
    BinaryOp, Bindings, Buffer, Expr, For, ForKind, IndexMap, PrimFunc, Scalar, Span, Stmt, StmtKind, Var, validate,
};
use tilewright_verify::{Counterexample, Judge, MapClaim, Place, Proof, Report, Side, Verdict};

use crate::harness::engine::{Param, Program};
use crate::harness::inputs::{Numbers, premises, satisfying};
use crate::harness::layout::shape;
use tilewright_algebra::reads_memory;

/// Most iterations that are run, over all loops.
pub const MAX_ITERATIONS: u64 = 1 << 20;

/// Most bytes of memory for the run.
const MAX_BYTES: u64 = 1 << 28;

/// The report of the obligation; none if no iterations of the function run at once.
pub(super) fn check(func: &PrimFunc, judge: &Judge) -> Option<Report> {
    let nests = concurrent(&func.body);
    if nests.is_empty() {
        return None;
    }
    let start = Instant::now();
    let (verdict, method) = if nests.iter().all(|(nest, _)| keeps_apart(nest, judge)) {
        (Verdict::Proved, "z3, index maps".into())
    } else {
        observed(func)
    };
    Some(Report {
        obligation: "race",
        subject: format!("loops of `{}` whose iterations run at once", func.name),
        verdict,
        method,
        ms: start.elapsed().as_secs_f64() * 1e3,
        place: nests.first().and_then(|(_, span)| *span).map(|span| Place { side: Side::Before, span }),
        proof: Proof::default(),
    })
}

/// A verdict and how it was found.
type Answer = (Verdict, String);

fn unknown(reason: String) -> Answer {
    (Verdict::Unknown(reason), "interpreter".into())
}

/// Whether the function has loops whose iterations may run at once.
pub fn runs_at_once(func: &PrimFunc) -> bool {
    !concurrent(&func.body).is_empty()
}

fn at_once(kind: ForKind) -> bool {
    match kind {
        ForKind::Serial | ForKind::Unrolled => false,
        ForKind::Parallel | ForKind::Vectorized | ForKind::ThreadBinding(_) => true,
    }
}

/// The outermost loops whose iterations run at once.
fn concurrent(body: &Stmt) -> Vec<(&For, Option<Span>)> {
    match &body.kind {
        StmtKind::For(inner) if at_once(inner.kind) => vec![(inner, body.span)],
        _ => body.children().into_iter().flat_map(concurrent).collect(),
    }
}

/// An access inside a nest: the indices, and the loops of the nest around it.
struct Access<'a> {
    buffer: &'a Buffer,
    indices: &'a [Expr],
    loops: Vec<&'a For>,
    writes: bool,
}

/// Whether the judge proves that iterations with different values of the concurrent loops touch different elements of
/// everything that the nest writes: all accesses of such memory have the same indices, and those are injective.
fn keeps_apart(nest: &For, judge: &Judge) -> bool {
    let mut found = Some(Vec::new());
    accesses(nest, &mut Vec::new(), &mut found);
    let Some(found) = found else { return false };
    found.iter().filter(|access| access.writes).all(|write| {
        let mut same = found.iter().filter(|access| access.buffer.aliases(write.buffer));
        same.all(|access| access.buffer == write.buffer && access.indices == write.indices) && apart(write, judge)
    })
}

/// Every access in a loop; none if there is something that this argument does not cover.
fn accesses<'a>(inner: &'a For, loops: &mut Vec<&'a For>, found: &mut Option<Vec<Access<'a>>>) {
    if loops.iter().any(|outer| outer.var == inner.var) {
        *found = None;
    }
    loops.push(inner);
    statements(&inner.body, loops, found);
    loops.pop();
}

fn statements<'a>(stmt: &'a Stmt, loops: &mut Vec<&'a For>, found: &mut Option<Vec<Access<'a>>>) {
    let note = |found: &mut Option<Vec<Access<'a>>>, buffer: &'a Buffer, indices: &'a [Expr], writes: bool| {
        if let Some(found) = found {
            found.push(Access { buffer, indices, loops: loops.clone(), writes });
        }
    };
    for expr in stmt.exprs() {
        expr.walk(&mut |part| {
            if let Expr::Load { buffer, indices } = part {
                note(found, buffer, indices, false);
            }
        });
    }
    match &stmt.kind {
        StmtKind::For(inner) => return accesses(inner, loops, found),
        StmtKind::Store { buffer, indices, .. } => note(found, buffer, indices, true),
        // A bound name may stand for anything.
        StmtKind::Let { .. } => *found = None,
        _ => {}
    }
    for child in stmt.children() {
        statements(child, loops, found);
    }
}

/// Whether the judge proves the map from the loops that an access depends on, all concurrent ones among them, and from its
/// lanes to its indices injective. Guards around it only take iterations away.
fn apart(access: &Access<'_>, judge: &Judge) -> bool {
    let used: Vec<Var> = access.indices.iter().flat_map(Expr::vars).collect();
    let loops: Vec<_> =
        access.loops.iter().filter(|outer| at_once(outer.kind) || used.contains(&outer.var)).copied().collect();
    let all: Vec<&Var> = access.loops.iter().map(|outer| &outer.var).collect();
    let is_fixed = |expr: &Expr| !reads_memory(expr) && expr.vars().iter().all(|var| !all.contains(&var));
    let from_zero = |outer: &&For| outer.min.as_const_int() == Some(0) && is_fixed(&outer.extent);
    if !loops.iter().all(from_zero) || access.indices.iter().any(reads_memory) {
        return false;
    }
    let mut vars: Vec<Var> = loops.iter().map(|outer| outer.var.clone()).collect();
    let mut domain: Vec<Expr> = loops.iter().map(|outer| outer.extent.clone()).collect();
    let mut indices = access.indices.to_vec();
    // Each lane of a ramp has its own element.
    if let Some(Expr::Ramp { base, stride, lanes }) = access.indices.last() {
        let lane = Var::new("lane", base.dtype());
        indices.pop();
        indices.push((**base).clone() + Expr::from(&lane) * (**stride).clone());
        vars.push(lane);
        domain.push(Expr::int((*lanes).into()));
    }
    let Ok(map) = IndexMap::new(vars, domain, indices, Vec::new()) else { return false };
    let reports = judge.check_map(MapClaim::new(&map, &access.buffer.shape));
    reports.iter().any(|report| report.obligation == "injective" && report.verdict.is_proved())
}

/// Runs the function and compares every access of every iteration.
fn observed(func: &PrimFunc) -> Answer {
    let symbols = func.symbols();
    let bindings = match satisfying(&symbols, &[], &premises(func)) {
        Ok(found) => found.bindings,
        Err(fault) => return unknown(fault.message),
    };
    let ran = arguments(func, &bindings).and_then(|mut arguments| {
        let valid = validate(func).map_err(|_| "the function is malformed".to_owned())?;
        let observers = Observers { defined: false, race: true };
        let fuel = Some(MAX_ITERATIONS);
        let config = Config { threads: 1, fuel, max_bytes: MAX_BYTES, observers, ..Config::default() };
        Ok(run(valid, &mut arguments, &config))
    });
    let at = symbols.iter().map(|symbol| format!("{symbol} = {}", bindings[symbol])).collect::<Vec<_>>().join(", ");
    match ran {
        Err(why) => unknown(format!("the iterations were not run: {why}")),
        Ok(Err(RunError::Input(fault))) => unknown(format!("the iterations were not run: {}", fault.message)),
        Ok(Err(RunError::Trap(trap))) => match trap.kind {
            TrapKind::Race => {
                let shape = symbols.iter().map(|symbol| (symbol.name().to_owned(), bindings[symbol])).collect();
                let found = Counterexample { shape, text: trap.to_string(), ..Counterexample::default() };
                (Verdict::Refuted(found), "interpreter".into())
            }
            TrapKind::FuelExhausted => unknown(format!(
                "not looked for by running: the loops have more than {MAX_ITERATIONS} iterations, and the index maps \
                 do not show that they keep apart"
            )),
            _ => unknown(format!("the program traps before its end: {trap}")),
        },
        Ok(Ok(report)) if report.iterations == 0 => {
            (Verdict::Vacuous("no iteration is ever run".into()), "interpreter".into())
        }
        Ok(Ok(_)) if !symbols.is_empty() => {
            unknown(format!("there is no race at {at}, and nothing says so for other extents"))
        }
        Ok(Ok(_)) if data_decides(func) => {
            unknown("there is no race with the values tried, but data decides what is touched".into())
        }
        Ok(Ok(report)) => (Verdict::Proved, format!("all {} iterations compared", report.iterations)),
    }
}

fn arguments(func: &PrimFunc, bindings: &Bindings) -> Result<Arguments, String> {
    let mut arguments = Arguments::default();
    for (param, part) in Program::Func(func).params().iter().zip(0u64..) {
        let mut numbers = Numbers::new(0, part);
        arguments.params.push(match param {
            Param::Buffer(buffer) => {
                let extents = shape(&buffer.shape, bindings)?;
                let lanes = extents.iter().try_fold(u64::from(buffer.dtype.lanes), |size, &n| size.checked_mul(n));
                if lanes.is_none_or(|lanes| lanes > MAX_BYTES / 8) {
                    return Err(format!("`{buffer}` is too large to watch every element"));
                }
                Argument::Tensor(numbers.tensor(buffer.dtype, &extents)?)
            }
            Param::Scalar(var) => {
                let known = bindings.get(var).map(|&value| Scalar::Int(value));
                Argument::Scalar(known.unwrap_or_else(|| numbers.value(var.dtype().scalar)))
            }
        });
    }
    arguments.symbols = func.symbols().iter().map(|symbol| (symbol.clone(), bindings[symbol])).collect();
    Ok(arguments)
}

/// Whether what is touched depends on more than the loops: on values in memory, or on a scalar parameter.
fn data_decides(func: &PrimFunc) -> bool {
    let mut found = func.params.iter().any(|param| func.param_buffer(param).is_none());
    func.body.walk(&mut |stmt| {
        found |= match &stmt.kind {
            StmtKind::Store { indices, .. } => indices.iter().any(reads_memory),
            StmtKind::For(_) | StmtKind::If { .. } | StmtKind::Let { .. } => stmt.exprs().into_iter().any(reads_memory),
            _ => false,
        };
        for expr in stmt.exprs() {
            expr.walk(&mut |part| {
                found |= match part {
                    Expr::Load { indices, .. } => indices.iter().any(reads_memory),
                    Expr::IfThenElse(cond, _, _) | Expr::Binary(BinaryOp::And | BinaryOp::Or, cond, _) => {
                        reads_memory(cond)
                    }
                    _ => false,
                };
            });
        }
    });
    found
}

//! Races of a function that was read and not lowered here, so that no claim says which iterations are independent.
//!
//! ```text
//! for i in T.parallel(n):        each iteration has elements of its own if i -> [i // 2] is injective: the judge is
//!     B[i // 2] = A[i]           asked; failing that, the iterations are run and every access is compared
//! ```
//!
//! Running all iterations decides the question if all extents are constant and the accessed elements do not depend on data.
//! Otherwise a run can show a race, but not its absence.

use std::time::Instant;

use tilewright_interp::{Argument, Arguments, Config, Observers, RunError, TrapKind, run};
use tilewright_ir::{
    BinaryOp, Bindings, Buffer, Expr, For, IndexMap, PrimFunc, Scalar, Span, Stmt, StmtKind, Var, validate,
};
use tilewright_verify::{
    Counterexample, Judge, MapClaim, Method, Obligation, Place, Proof, Reason, ReasonKind, Report, Side, Verdict,
};

use crate::harness::engine::{Param, StageProgram};
use crate::harness::inputs::{Numbers, premises, satisfying};
use crate::harness::layout::shape;

/// The largest number of iterations that are run, over all loops.
pub const MAX_ITERATIONS: u64 = 1 << 20;

/// The largest memory for the run, in bytes.
const MAX_BYTES: u64 = 1 << 28;

/// Returns the report of the obligation; `None` if the function has no concurrent iterations.
pub(super) fn check(func: &PrimFunc, judge: &Judge) -> Option<Report> {
    let nests = concurrent_loops(&func.body);
    if nests.is_empty() {
        return None;
    }
    let start = Instant::now();
    let by_maps: Option<Vec<Vec<Method>>> = nests.iter().map(|(nest, _)| methods_if_disjoint(nest, judge)).collect();
    let (verdict, method) = match by_maps {
        Some(methods) => (Verdict::Proved, index_maps(methods.into_iter().flatten().collect())),
        None => check_by_running(func),
    };
    Some(Report {
        obligation: Obligation::Race,
        subject: format!("loops of `{}` whose iterations run at once", func.name),
        verdict,
        method,
        ms: start.elapsed().as_secs_f64() * 1e3,
        place: nests.first().and_then(|(_, span)| *span).map(|span| Place { side: Side::Before, span }),
        proof: Proof::default(),
    })
}

/// Returns the method of a proof by index maps, or *inspection* if nothing is written.
fn index_maps(methods: Vec<Method>) -> Method {
    if methods.is_empty() { Method::Inspection("nothing is written at once") } else { Method::IndexMaps(methods) }
}

/// A verdict and how it was found.
type Answer = (Verdict, Method);

/// An undecided answer, with its reason.
fn unknown(reason: String) -> Answer {
    (Verdict::Unknown(Reason::undecided(reason)), Method::Interpreter)
}

/// Returns whether the function has loops whose iterations may run concurrently.
pub fn runs_at_once(func: &PrimFunc) -> bool {
    !concurrent_loops(&func.body).is_empty()
}

/// Returns the outermost loops whose iterations may run concurrently.
fn concurrent_loops(body: &Stmt) -> Vec<(&For, Option<Span>)> {
    match &body.kind {
        StmtKind::For(inner) if inner.kind.is_concurrent() => vec![(inner, body.span)],
        _ => body.children().flat_map(concurrent_loops).collect(),
    }
}

/// An access inside a nest: the indices, and the loops of the nest around it.
struct Access<'a> {
    buffer: &'a Buffer,
    indices: &'a [Expr],
    loops: Vec<&'a For>,
    writes: bool,
}

/// Asks the judge to prove that iterations with different values of the concurrent loops touch different elements of all
/// memory that the nest writes: all accesses to such memory have the same indices, and these are injective.
///
/// Returns the method of each write, and `None` if the proof fails.
fn methods_if_disjoint(nest: &For, judge: &Judge) -> Option<Vec<Method>> {
    let mut found = Some(Vec::new());
    accesses(nest, &mut Vec::new(), &mut found);
    let found = found?;
    let of_write = |write: &Access<'_>| {
        let mut same = found.iter().filter(|access| access.buffer.aliases(write.buffer));
        let is_same = same.all(|access| access.buffer == write.buffer && access.indices == write.indices);
        if is_same { method_if_injective(write, judge) } else { None }
    };
    found.iter().filter(|access| access.writes).map(of_write).collect()
}

/// Collects every access in a loop. `found` becomes `None` if the loop contains something that the argument does not cover.
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
        // The value of a bound name is not known here, so indices that use it cannot be compared.
        StmtKind::Let { .. } => *found = None,
        StmtKind::Allocate { .. } | StmtKind::DeclBuffer { .. } | StmtKind::If { .. } | StmtKind::Seq(_) => {}
        StmtKind::Evaluate(_) | StmtKind::Assert { .. } | StmtKind::Attr { .. } => {}
    }
    for child in stmt.children() {
        statements(child, loops, found);
    }
}

/// Asks the judge to prove that the map from loops and lanes to the indices of an access is injective. The loops are those
/// that the access depends on, and must include all concurrent ones.
///
/// Returns the method of the proof, and `None` if it fails. Guards are left out, because they only remove iterations.
fn method_if_injective(access: &Access<'_>, judge: &Judge) -> Option<Method> {
    let used: Vec<Var> = access.indices.iter().flat_map(Expr::vars).collect();
    let loops: Vec<_> =
        access.loops.iter().filter(|outer| outer.kind.is_concurrent() || used.contains(&outer.var)).copied().collect();
    let all: Vec<&Var> = access.loops.iter().map(|outer| &outer.var).collect();
    let is_fixed = |expr: &Expr| !expr.reads_memory() && expr.vars().iter().all(|var| !all.contains(&var));
    let from_zero = |outer: &&For| outer.min.as_const_int() == Some(0) && is_fixed(&outer.extent);
    if !loops.iter().all(from_zero) || access.indices.iter().any(Expr::reads_memory) {
        return None;
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
    let Ok(map) = IndexMap::new(vars, domain, indices, Vec::new()) else { return None };
    let reports = judge.check_map(MapClaim::new(&map, &access.buffer.shape));
    let shown = |report: &Report| report.obligation == Obligation::Injective && report.verdict.is_proved();
    reports.into_iter().find(shown).map(|report| report.method)
}

/// Runs the function and compares every access of every iteration.
fn check_by_running(func: &PrimFunc) -> Answer {
    let symbols = func.symbols();
    let bindings = match satisfying(&symbols, &[], &premises(func)) {
        Ok(found) => found.bindings,
        Err(fault) => return unknown(fault.message),
    };
    // One thread and no other observers: the race detector compares accesses by iteration, so the order of execution
    // does not matter.
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
                (Verdict::Refuted(found), Method::Interpreter)
            }
            TrapKind::FuelExhausted => unknown(format!(
                "not looked for by running: the loops have more than {MAX_ITERATIONS} iterations, and the index maps \
                 do not show that they keep apart"
            )),
            _ => unknown(format!("the program traps before its end: {trap}")),
        },
        Ok(Ok(report)) if report.iterations == 0 => {
            (Verdict::Vacuous(Reason::new(ReasonKind::Empty, "no iteration is ever run")), Method::Interpreter)
        }
        Ok(Ok(_)) if !symbols.is_empty() => {
            unknown(format!("there is no race at {at}, and nothing says so for other extents"))
        }
        Ok(Ok(_)) if data_decides(func) => {
            unknown("there is no race with the values tried, but data decides what is touched".into())
        }
        Ok(Ok(report)) => (Verdict::Proved, Method::Iterations(report.iterations)),
    }
}

/// Draws arguments for a run.
fn arguments(func: &PrimFunc, bindings: &Bindings) -> Result<Arguments, String> {
    let mut arguments = Arguments::default();
    for (param, part) in StageProgram::Func(func).params().iter().zip(0u64..) {
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

/// Returns whether the accessed elements depend on more than the loops: on values in memory, or on a scalar parameter.
fn data_decides(func: &PrimFunc) -> bool {
    let mut found = func.params.iter().any(|param| func.param_buffer(param).is_none());
    func.body.walk(&mut |stmt| {
        found |= match &stmt.kind {
            StmtKind::Store { indices, .. } => indices.iter().any(Expr::reads_memory),
            StmtKind::For(_) | StmtKind::If { .. } | StmtKind::Let { .. } => {
                stmt.exprs().into_iter().any(Expr::reads_memory)
            }
            _ => false,
        };
        for expr in stmt.exprs() {
            expr.walk(&mut |part| {
                found |= match part {
                    Expr::Load { indices, .. } => indices.iter().any(Expr::reads_memory),
                    Expr::IfThenElse(cond, _, _) | Expr::Binary(BinaryOp::And | BinaryOp::Or, cond, _) => {
                        cond.reads_memory()
                    }
                    _ => false,
                };
            });
        }
    });
    found
}

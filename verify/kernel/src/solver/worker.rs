//! One private Z3 context for each thread.
//!
//! A context is created when a thread asks its first goal. It is replaced after [`GOALS_PER_CONTEXT`] goals, after an error,
//! and before a goal is asked again for a model. Nodes of a query are built in order, operands first, so there is no
//! recursion and no limit on the depth of a goal.

use super::memo::Remembered;
use super::{Budget, SolverError};
use crate::encode::{Function, Node, NodeId, Op, Query, Sort};
use crate::reason::{Reason, ReasonKind};
use crate::smtlib::bits_of;
use crate::term::Value;
use std::cell::{Cell, RefCell};
use std::sync::Once;
use std::time::{Duration, Instant};
use z3::ast::{Ast, BV, Bool, Dynamic, Int};

/// A context is replaced after this many goals, so that it cannot grow without bound.
const GOALS_PER_CONTEXT: u32 = 2000;

/// A solver with a private context, and the number of goals that it has been given.
struct Worker {
    /// The solver, which owns its context.
    solver: z3::Solver,
    /// Goals that it has been given.
    goals: u32,
}

thread_local! {
    /// The context of this thread, while it is not in use.
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

/// Decides `query` in this thread's context; models and unknowns always come from a new context.
pub(super) fn solve(query: &Query, budget: Budget, model: bool) -> Result<Remembered, SolverError> {
    cap_memory(budget);
    let (answer, goals) = solve_here(query, budget, model)?;
    let settled = match answer {
        Remembered::Unsat => true,
        Remembered::Sat(_) => !model,
        Remembered::Unknown(_) => false,
    };
    if settled || goals == 0 {
        return Ok(answer);
    }
    drop(WORKER.take());
    Ok(solve_here(query, budget, model)?.0)
}

/// Z3 counts memory for the whole process; above the mark it cancels the goal with an unknown.
fn cap_memory(budget: Budget) {
    static CAP: Once = Once::new();
    CAP.call_once(|| z3::set_global_param("memory_high_watermark_mb", &budget.memory_mb.to_string()));
}

/// Z3's answer and how many goals the context had seen before; a context that failed is not used again.
fn solve_here(query: &Query, budget: Budget, model: bool) -> Result<(Remembered, u32), SolverError> {
    let known = WORKER.take().filter(|worker| worker.goals < GOALS_PER_CONTEXT);
    let Worker { solver, goals } = match known {
        Some(worker) => worker,
        None => Worker { solver: new_solver()?, goals: 0 },
    };
    let context = solver.get_context().clone();
    WORKER.set(Some(Worker { solver, goals: goals + 1 }));
    let answer = z3::with_z3_context(&context, || {
        WORKER.with_borrow(|worker| match worker {
            Some(worker) => ask(&worker.solver, query, budget, model),
            None => Err(internal("the thread has no context")),
        })
    });
    if answer.is_err() {
        drop(WORKER.take());
    }
    Ok((answer?, goals))
}

/// A solver in a context that no goal was asked in.
///
/// The binding keeps one context for each thread and makes it as soon as any other one is made. A context takes longer to
/// make than most goals take to prove, so the first solver of a thread uses that one. For all others the binding makes a
/// context only for the time of a closure, which may not return it; a thread-local takes it out.
fn new_solver() -> Result<z3::Solver, SolverError> {
    thread_local! {
        static IS_FIRST: Cell<bool> = const { Cell::new(true) };
        static MADE: RefCell<Option<z3::Solver>> = const { RefCell::new(None) };
    }
    if IS_FIRST.replace(false) {
        return Ok(z3::Solver::new());
    }
    z3::with_z3_config(&z3::Config::new(), || MADE.set(Some(z3::Solver::new())));
    MADE.take().ok_or_else(|| internal("no context was made"))
}

/// Asks between a `push` and a `pop`. That selects Z3's incremental core, whose set-up takes a tenth of the time of the
/// tactics'; and reusing a solver takes a tenth of the time of creating one.
fn ask(solver: &z3::Solver, query: &Query, budget: Budget, model: bool) -> Result<Remembered, SolverError> {
    let mut params = z3::Params::new();
    params.set_u32("random_seed", budget.seed);
    params.set_u32("rlimit", budget.rlimit);
    params.set_u32("timeout", budget.timeout_ms);
    solver.set_params(&params);
    solver.push();
    let nodes = build(query)?;
    for assertion in &query.assertions {
        solver.assert(bool_of(&nodes, *assertion)?);
    }
    let start = Instant::now();
    let answer = match solver.check() {
        z3::SatResult::Unsat => Remembered::Unsat,
        z3::SatResult::Sat if model => values(query, solver)?,
        z3::SatResult::Sat => Remembered::Sat(Vec::new()),
        z3::SatResult::Unknown => Remembered::Unknown(reason(solver, budget, start.elapsed())),
    };
    solver.pop(1);
    Ok(answer)
}

/// The reason why Z3 gave no answer. Z3 itself reports `canceled` for every limit, so the time tells which one it was.
pub(super) fn reason(solver: &z3::Solver, budget: Budget, elapsed: Duration) -> Reason {
    let reason = solver.get_reason_unknown().unwrap_or_else(|| "no reason given".to_owned());
    if !["canceled", "cancelled", "timeout"].contains(&reason.as_str()) {
        Reason::undecided(format!("Z3: {reason}"))
    } else if elapsed.as_millis() >= u128::from(budget.timeout_ms) {
        Reason::new(ReasonKind::Timeout, format!("timeout of {} ms", budget.timeout_ms))
    } else {
        Reason::new(ReasonKind::Budget, format!("the budget of {} is spent, or memory is", budget.rlimit))
    }
}

/// The values of the query's variables in the model; `None` for one that does not fit 128 bits.
fn values(query: &Query, solver: &z3::Solver) -> Result<Remembered, SolverError> {
    let model = solver.get_model().ok_or_else(|| internal("a satisfiable goal without a model"))?;
    let values = query.variables.iter().map(|variable| match (variable.sort, query.width) {
        (Sort::Int, Some(width)) => {
            let value = model.eval(&BV::new_const(variable.name.as_str(), width), true)?;
            signed(value.as_u64()?, width).map(Value::Int)
        }
        (Sort::Int, None) => {
            let value = model.eval(&Int::new_const(variable.name.as_str()), true)?;
            value.as_i128().map(Value::Int)
        }
        (Sort::Bool, _) => {
            let value = model.eval(&Bool::new_const(variable.name.as_str()), true)?;
            value.as_bool().map(Value::Bool)
        }
    });
    Ok(Remembered::Sat(values.collect()))
}

/// The value of the low `width` bits in two's complement.
fn signed(bits: u64, width: u32) -> Option<i128> {
    let power = 1i128.checked_shl(width)?;
    let value = i128::from(bits);
    Some(if value >= power / 2 { value - power } else { value })
}

/// An internal error.
pub(super) fn internal(text: &str) -> SolverError {
    SolverError::Internal(text.to_owned())
}

/// A node built in the current context.
enum Built {
    /// An integer.
    Int(Int),
    /// A bit-vector.
    Bits(BV),
    /// A truth value.
    Bool(Bool),
}

/// The integer that a node was built to.
fn int_of(nodes: &[Built], id: NodeId) -> Result<&Int, SolverError> {
    match nodes.get(id) {
        Some(Built::Int(node)) => Ok(node),
        Some(Built::Bits(_) | Built::Bool(_)) | None => Err(internal("an integer operand is missing")),
    }
}

/// The truth value that a node was built to.
fn bool_of(nodes: &[Built], id: NodeId) -> Result<&Bool, SolverError> {
    match nodes.get(id) {
        Some(Built::Bool(node)) => Ok(node),
        Some(Built::Int(_) | Built::Bits(_)) | None => Err(internal("a truth value is missing")),
    }
}

/// The bit-vector that a node was built to.
fn bits(nodes: &[Built], id: NodeId) -> Result<&BV, SolverError> {
    match nodes.get(id) {
        Some(Built::Bits(node)) => Ok(node),
        Some(Built::Int(_) | Built::Bool(_)) | None => Err(internal("a bit-vector operand is missing")),
    }
}

/// Builds all nodes of a query in the current context, operands first.
fn build(query: &Query) -> Result<Vec<Built>, SolverError> {
    // Nodes are in order, operands first, so every operand is built already and there is no recursion.
    let int = z3::Sort::int();
    let declare = |function: &Function| {
        let domain = vec![&int; function.arity];
        z3::FuncDecl::new(function.name.as_str(), &domain, &int)
    };
    let functions: Vec<z3::FuncDecl> = query.functions.iter().map(declare).collect();
    let mut nodes = Vec::with_capacity(query.nodes.len());
    for node in &query.nodes {
        let built = match node {
            Node::Int(value) => match query.width {
                Some(width) => Built::Bits(bit_vector(*value, width)?),
                None => Built::Int(constant(*value)),
            },
            Node::Bool(value) => Built::Bool(Bool::from_bool(*value)),
            Node::Var(position) => variable(query, *position)?,
            Node::Apply(function, args) => {
                let function = functions.get(*function).ok_or_else(|| internal("a function is missing"))?;
                Built::Int(apply(function, &nodes, args)?)
            }
            Node::Op(op, operands) if query.width.is_some() && over_bits(*op, &nodes, operands) => {
                bit_operator(*op, &nodes, operands)?
            }
            Node::Op(op, operands) => operator(*op, &nodes, operands)?,
        };
        nodes.push(built);
    }
    Ok(nodes)
}

/// An integer constant.
fn constant(value: i128) -> Int {
    i64::try_from(value).map_or_else(|_| Int::from_i128(value), Int::from_i64)
}

/// A bit-vector constant in two's complement.
fn bit_vector(value: i128, width: u32) -> Result<BV, SolverError> {
    let bits = u64::try_from(bits_of(value, width)).map_err(|_| internal("a bit-vector is too wide"))?;
    Ok(BV::from_u64(bits, width))
}

/// Whether an operator is one of bit-vectors here: not a connective, and not `=` or `ite` of truth values.
fn over_bits(op: Op, nodes: &[Built], operands: &[NodeId]) -> bool {
    let operand = operands.get(usize::from(op == Op::Ite)).and_then(|id| nodes.get(*id));
    matches!(operand, Some(Built::Bits(_)))
}

/// An operator of a query over bit-vectors (a table).
fn bit_operator(op: Op, nodes: &[Built], operands: &[NodeId]) -> Result<Built, SolverError> {
    let at = |position: usize| bits(nodes, *operands.get(position).ok_or_else(|| internal("an operand is missing"))?);
    let chain = |of: fn(&BV, &BV) -> BV| -> Result<Built, SolverError> {
        let mut value = at(0)?.clone();
        for position in 1..operands.len() {
            value = of(&value, at(position)?);
        }
        Ok(Built::Bits(value))
    };
    match op {
        Op::Add => chain(|a, b| a.bvadd(b)),
        Op::Sub => chain(|a, b| a.bvsub(b)),
        Op::Mul => chain(|a, b| a.bvmul(b)),
        Op::Div => chain(|a, b| a.bvudiv(b)),
        Op::Mod => chain(|a, b| a.bvurem(b)),
        Op::BitAnd => chain(|a, b| a.bvand(b)),
        Op::BitOr => chain(|a, b| a.bvor(b)),
        Op::BitXor => chain(|a, b| a.bvxor(b)),
        Op::Shl => chain(|a, b| a.bvshl(b)),
        Op::Shr => chain(|a, b| a.bvashr(b)),
        Op::Neg => Ok(Built::Bits(at(0)?.bvneg())),
        Op::Lt => Ok(Built::Bool(at(0)?.bvslt(at(1)?))),
        Op::Le => Ok(Built::Bool(at(0)?.bvsle(at(1)?))),
        Op::Eq => Ok(Built::Bool(at(0)?.eq(at(1)?))),
        Op::Ite => {
            let condition = operands.first().ok_or_else(|| internal("a condition is missing"))?;
            Ok(Built::Bits(bool_of(nodes, *condition)?.ite(at(1)?, at(2)?)))
        }
        Op::Not | Op::And | Op::Or | Op::Implies => Err(internal("no operator of bit-vectors")),
    }
}

/// A variable of the query.
fn variable(query: &Query, position: usize) -> Result<Built, SolverError> {
    let variable = query.variables.get(position).ok_or_else(|| internal("a variable is missing"))?;
    Ok(match (variable.sort, query.width) {
        (Sort::Int, Some(width)) => Built::Bits(BV::new_const(variable.name.as_str(), width)),
        (Sort::Int, None) => Built::Int(Int::new_const(variable.name.as_str())),
        (Sort::Bool, _) => Built::Bool(Bool::new_const(variable.name.as_str())),
    })
}

/// An application of an uninterpreted function.
fn apply(function: &z3::FuncDecl, nodes: &[Built], args: &[NodeId]) -> Result<Int, SolverError> {
    let args = ints(nodes, args)?;
    let args: Vec<&dyn Ast> = args.iter().map(|arg| *arg as &dyn Ast).collect();
    let value: Dynamic = function.apply(&args);
    value.as_int().ok_or_else(|| internal("a function without an integer value"))
}

/// The integers that nodes were built to.
fn ints<'n>(nodes: &'n [Built], ids: &[NodeId]) -> Result<Vec<&'n Int>, SolverError> {
    ids.iter().map(|id| int_of(nodes, *id)).collect()
}

/// The truth values that nodes were built to.
fn bools<'n>(nodes: &'n [Built], ids: &[NodeId]) -> Result<Vec<&'n Bool>, SolverError> {
    ids.iter().map(|id| bool_of(nodes, *id)).collect()
}

/// An operator of a query over integers.
fn operator(op: Op, nodes: &[Built], operands: &[NodeId]) -> Result<Built, SolverError> {
    Ok(match op {
        Op::Add => Built::Int(Int::add(&ints(nodes, operands)?)),
        Op::Sub => Built::Int(Int::sub(&ints(nodes, operands)?)),
        Op::Mul => Built::Int(Int::mul(&ints(nodes, operands)?)),
        Op::And => Built::Bool(Bool::and(&bools(nodes, operands)?)),
        Op::Or => Built::Bool(Bool::or(&bools(nodes, operands)?)),
        Op::Neg | Op::Not => unary(op, nodes, operands)?,
        Op::Div | Op::Mod | Op::Lt | Op::Le | Op::Eq | Op::Implies => binary(op, nodes, operands)?,
        Op::Ite => choice(nodes, operands)?,
        Op::BitAnd | Op::BitOr | Op::BitXor | Op::Shl | Op::Shr => {
            return Err(internal("an operator of bit-vectors among integers"));
        }
    })
}

/// An operator with one operand.
fn unary(op: Op, nodes: &[Built], operands: &[NodeId]) -> Result<Built, SolverError> {
    let [operand] = operands else { return Err(internal("one operand expected")) };
    Ok(match op {
        Op::Not => Built::Bool(bool_of(nodes, *operand)?.not()),
        Op::Neg => Built::Int(int_of(nodes, *operand)?.unary_minus()),
        Op::Add
        | Op::Sub
        | Op::Mul
        | Op::Div
        | Op::Mod
        | Op::Ite
        | Op::Eq
        | Op::Lt
        | Op::Le
        | Op::And
        | Op::Or
        | Op::Implies
        | Op::BitAnd
        | Op::BitOr
        | Op::BitXor
        | Op::Shl
        | Op::Shr => return Err(internal("not an operator of one operand")),
    })
}

/// An operator with two operands, of integers or of truth values.
fn binary(op: Op, nodes: &[Built], operands: &[NodeId]) -> Result<Built, SolverError> {
    let [lhs, rhs] = operands else { return Err(internal("two operands expected")) };
    // `=` is of integers or of truth values; the sort of its first operand decides.
    if let (Op::Eq | Op::Implies, Some(Built::Bool(lhs))) = (op, nodes.get(*lhs)) {
        let rhs = bool_of(nodes, *rhs)?;
        return Ok(Built::Bool(if op == Op::Eq { lhs.iff(rhs) } else { lhs.implies(rhs) }));
    }
    let (lhs, rhs) = (int_of(nodes, *lhs)?, int_of(nodes, *rhs)?);
    Ok(match op {
        Op::Div => Built::Int(lhs.div(rhs)),
        Op::Mod => Built::Int(lhs.modulo(rhs)),
        Op::Lt => Built::Bool(lhs.lt(rhs)),
        Op::Le => Built::Bool(lhs.le(rhs)),
        Op::Eq => Built::Bool(lhs.eq(rhs)),
        Op::Add
        | Op::Sub
        | Op::Mul
        | Op::Neg
        | Op::Ite
        | Op::Not
        | Op::And
        | Op::Or
        | Op::Implies
        | Op::BitAnd
        | Op::BitOr
        | Op::BitXor
        | Op::Shl
        | Op::Shr => return Err(internal("not an operator of two operands")),
    })
}

/// `ite`, of integers or of truth values.
fn choice(nodes: &[Built], operands: &[NodeId]) -> Result<Built, SolverError> {
    let [condition, then, otherwise] = operands else { return Err(internal("three operands expected")) };
    let condition = bool_of(nodes, *condition)?;
    Ok(match nodes.get(*then) {
        Some(Built::Bool(then)) => Built::Bool(condition.ite(then, bool_of(nodes, *otherwise)?)),
        _ => Built::Int(condition.ite(int_of(nodes, *then)?, int_of(nodes, *otherwise)?)),
    })
}

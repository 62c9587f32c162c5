//! One private Z3 context for each thread.

use super::memo::Remembered;
use super::{Budget, SolverError};
use crate::encode::{Function, Node, NodeId, Op, Query, Sort};
use crate::term::Value;
use std::cell::RefCell;
use std::sync::Once;
use z3::ast::{Ast, Bool, Dynamic, Int};

/// A context is replaced after this many goals, so that it cannot grow without bound.
const GOALS_PER_CONTEXT: u32 = 5000;

struct Worker {
    context: z3::Context,
    goals: u32,
}

thread_local! {
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

/// Decides `query` in this thread's context; an answer other than *unsat* always comes from a new context.
pub(super) fn solve(query: &Query, budget: Budget) -> Result<Remembered, SolverError> {
    cap_memory(budget);
    let (context, goals) = context();
    let answer = z3::with_z3_context(&context, || solve_here(query, budget))?;
    if matches!(answer, Remembered::Unsat) || goals == 0 {
        return Ok(answer);
    }
    discard();
    let (context, _) = self::context();
    z3::with_z3_context(&context, || solve_here(query, budget))
}

/// Z3 counts memory for the whole process; above the mark it cancels the goal with an unknown.
fn cap_memory(budget: Budget) {
    static CAP: Once = Once::new();
    CAP.call_once(|| z3::set_global_param("memory_high_watermark_mb", &budget.memory_mb.to_string()));
}

/// This thread's context and how many goals it has seen.
fn context() -> (z3::Context, u32) {
    let known = WORKER.with_borrow_mut(|slot| match slot {
        Some(worker) if worker.goals < GOALS_PER_CONTEXT => {
            worker.goals += 1;
            Some((worker.context.clone(), worker.goals - 1))
        }
        _ => None,
    });
    known.unwrap_or_else(|| {
        discard();
        let context = new_context();
        WORKER.set(Some(Worker { context: context.clone(), goals: 1 }));
        (context, 0)
    })
}

fn discard() {
    drop(WORKER.take());
}

/// The binding makes contexts only for the time of a closure, which may not return them; a thread-local takes it out.
fn new_context() -> z3::Context {
    thread_local! {
        static MADE: RefCell<Option<z3::Context>> = const { RefCell::new(None) };
    }
    z3::with_z3_config(&z3::Config::new(), || MADE.set(Some(z3::Context::thread_local())));
    MADE.take().unwrap_or_else(z3::Context::thread_local)
}

fn solve_here(query: &Query, budget: Budget) -> Result<Remembered, SolverError> {
    let solver = z3::Solver::new();
    let mut params = z3::Params::new();
    params.set_u32("random_seed", 0);
    params.set_u32("rlimit", budget.rlimit);
    params.set_u32("timeout", budget.timeout_ms);
    solver.set_params(&params);
    // A backtracking point selects Z3's incremental core, which needs a tenth of the set-up time of its tactics.
    solver.push();
    let nodes = build(query)?;
    for assertion in &query.assertions {
        solver.assert(bool_of(&nodes, *assertion)?);
    }
    match solver.check() {
        z3::SatResult::Unsat => Ok(Remembered::Unsat),
        z3::SatResult::Sat => values(query, &solver),
        z3::SatResult::Unknown => {
            let reason = solver.get_reason_unknown().unwrap_or_else(|| "no reason given".to_owned());
            Ok(Remembered::Unknown(reason))
        }
    }
}

fn values(query: &Query, solver: &z3::Solver) -> Result<Remembered, SolverError> {
    let model = solver.get_model().ok_or_else(|| internal("a satisfiable goal without a model"))?;
    let values = query.variables.iter().map(|variable| match variable.sort {
        Sort::Int => {
            let value = model.eval(&Int::new_const(variable.name.as_str()), true)?;
            value.as_i128().map(Value::Int)
        }
        Sort::Bool => {
            let value = model.eval(&Bool::new_const(variable.name.as_str()), true)?;
            value.as_bool().map(Value::Bool)
        }
    });
    Ok(Remembered::Sat(values.collect()))
}

fn internal(text: &str) -> SolverError {
    SolverError::Internal(text.to_owned())
}

/// A node built in the current context.
enum Built {
    Int(Int),
    Bool(Bool),
}

fn int_of(nodes: &[Built], id: NodeId) -> Result<&Int, SolverError> {
    match nodes.get(id) {
        Some(Built::Int(node)) => Ok(node),
        Some(Built::Bool(_)) | None => Err(internal("an integer operand is missing")),
    }
}

fn bool_of(nodes: &[Built], id: NodeId) -> Result<&Bool, SolverError> {
    match nodes.get(id) {
        Some(Built::Bool(node)) => Ok(node),
        Some(Built::Int(_)) | None => Err(internal("a truth value is missing")),
    }
}

fn build(query: &Query) -> Result<Vec<Built>, SolverError> {
    let int = z3::Sort::int();
    let declare = |function: &Function| {
        let domain = vec![&int; function.arity];
        z3::FuncDecl::new(function.name.as_str(), &domain, &int)
    };
    let functions: Vec<z3::FuncDecl> = query.functions.iter().map(declare).collect();
    let mut nodes = Vec::with_capacity(query.nodes.len());
    for node in &query.nodes {
        let built = match node {
            Node::Int(value) => Built::Int(constant(*value)),
            Node::Bool(value) => Built::Bool(Bool::from_bool(*value)),
            Node::Var(position) => variable(query, *position)?,
            Node::Apply(function, args) => {
                let function = functions.get(*function).ok_or_else(|| internal("a function is missing"))?;
                Built::Int(apply(function, &nodes, args)?)
            }
            Node::Op(op, operands) => operator(*op, &nodes, operands)?,
        };
        nodes.push(built);
    }
    Ok(nodes)
}

fn constant(value: i128) -> Int {
    i64::try_from(value).map_or_else(|_| Int::from_i128(value), Int::from_i64)
}

fn variable(query: &Query, position: usize) -> Result<Built, SolverError> {
    let variable = query.variables.get(position).ok_or_else(|| internal("a variable is missing"))?;
    Ok(match variable.sort {
        Sort::Int => Built::Int(Int::new_const(variable.name.as_str())),
        Sort::Bool => Built::Bool(Bool::new_const(variable.name.as_str())),
    })
}

fn apply(function: &z3::FuncDecl, nodes: &[Built], args: &[NodeId]) -> Result<Int, SolverError> {
    let args = ints(nodes, args)?;
    let args: Vec<&dyn Ast> = args.iter().map(|arg| *arg as &dyn Ast).collect();
    let value: Dynamic = function.apply(&args);
    value.as_int().ok_or_else(|| internal("a function without an integer value"))
}

fn ints<'n>(nodes: &'n [Built], ids: &[NodeId]) -> Result<Vec<&'n Int>, SolverError> {
    ids.iter().map(|id| int_of(nodes, *id)).collect()
}

fn bools<'n>(nodes: &'n [Built], ids: &[NodeId]) -> Result<Vec<&'n Bool>, SolverError> {
    ids.iter().map(|id| bool_of(nodes, *id)).collect()
}

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
    })
}

fn unary(op: Op, nodes: &[Built], operands: &[NodeId]) -> Result<Built, SolverError> {
    let [operand] = operands else { return Err(internal("one operand expected")) };
    Ok(match op {
        Op::Not => Built::Bool(bool_of(nodes, *operand)?.not()),
        _ => Built::Int(int_of(nodes, *operand)?.unary_minus()),
    })
}

fn binary(op: Op, nodes: &[Built], operands: &[NodeId]) -> Result<Built, SolverError> {
    let [lhs, rhs] = operands else { return Err(internal("two operands expected")) };
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
        _ => return Err(internal("not an operator of two operands")),
    })
}

fn choice(nodes: &[Built], operands: &[NodeId]) -> Result<Built, SolverError> {
    let [condition, then, otherwise] = operands else { return Err(internal("three operands expected")) };
    let condition = bool_of(nodes, *condition)?;
    Ok(match nodes.get(*then) {
        Some(Built::Bool(then)) => Built::Bool(condition.ite(then, bool_of(nodes, *otherwise)?)),
        _ => Built::Int(condition.ite(int_of(nodes, *then)?, int_of(nodes, *otherwise)?)),
    })
}

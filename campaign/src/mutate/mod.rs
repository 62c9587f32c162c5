//! Mutants: programs with one mistake, false evidence, and [`certificate`]s with one change. The
//! judge must not prove them.
//!
//! The mistakes are those that people make: an index that is off by one, exchanged operands, a
//! guard that is missing, too weak or too strong, a divisor of the other sign, a loop with one iteration too many, statements in another
//! order, a loop that becomes parallel, lanes that are not neighbours.
//!
//! | function | changes | what should happen |
//! |---|---|---|
//! | [`mutated_program`] | one statement or expression | the judge does not prove the pass, unless runs agree |
//! | [`reordered_program`] | the order of statements | the judge does not prove the pass, unless runs agree |
//! | [`subtly_mutated_program`] | operands exchanged, a conversion, a lane, a name | the judge does not prove the pass, unless runs agree |
//! | [`with_racing_loop`] | a serial loop becomes parallel, with all stores at one position | a race is reported |
//! | [`naively_vectorized`] | loops become vectors without a check | the judge does not prove `vectorize`, unless runs agree |
//! | [`false_evidence`] | one claim of the evidence | the judge does not prove the claim, unless it is true |
//! | [`certificate::all`] | one number or list of a certificate | the checker rejects it, unless it is true |
//! | [`with_equal_names`] | names and constants, not the meaning | the printed text reads back as the same program |

use std::sync::Arc;

pub mod certificate;
mod claims;
mod lanes;
mod names;
mod order;
mod subtle;

use std::convert::Infallible;

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{
    BinaryOp, Expr, For, ForKind, PrimFunc, ScalarType, SharedExpr, Stmt, StmtKind, TypeClass, UnaryOp, Var,
};

use tilewright_compiler::harness::inputs::Numbers;

pub use claims::false_evidence;
pub use lanes::naively_vectorized;
pub use names::with_equal_names;
pub use order::reordered_program;
pub use subtle::subtly_mutated_program;

/// Pseudo-random choices from a seed.
#[derive(Debug)]
pub(super) struct Choices(Numbers);

impl Choices {
    pub(super) fn new(seed: u64) -> Self {
        Self(Numbers::new(seed, 0))
    }

    /// A number below the bound; 0 if the bound is 0.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.0.next() % bound).unwrap_or(0)
    }

    /// True once in `n` cases.
    pub(super) fn chance(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// The program with one change at a random statement or expression. Most changes have an effect,
/// some do not.
pub fn mutated_program(func: &PrimFunc, seed: u64) -> PrimFunc {
    let mut choices = Choices::new(seed);
    // There are many more expressions than statements, so a quarter of the changes is reserved for
    // statements.
    let statements_only = choices.chance(4);
    let mut count = 0;
    func.body.walk(&mut |stmt| {
        count += 1;
        if !statements_only {
            stmt.exprs().for_each(|expr| expr.walk(&mut |_| count += 1));
        }
    });
    let left = choices.below(count);
    let Ok(body) = Change { left, statements_only, choices: &mut choices }.stmt(&func.body);
    PrimFunc { body, ..func.clone() }
}

/// The program with one parallel loop all of whose iterations store to the same position along an
/// axis: a race.
pub fn with_racing_loop(func: &PrimFunc, seed: u64) -> PrimFunc {
    let mut choices = Choices::new(seed);
    let mut loops = Vec::new();
    func.body.walk(&mut |stmt| {
        if let StmtKind::For(inner) = &stmt.kind {
            loops.push(inner.var.clone());
        }
    });
    if loops.is_empty() {
        return func.clone();
    }
    let var = loops.swap_remove(choices.below(loops.len()));
    let Ok(body) = RaceMaker { var: &var, is_found: false }.stmt(&func.body);
    PrimFunc { body, ..func.clone() }
}

/// Makes a loop parallel, and replaces its variable by 0 in the first index of a store that depends
/// on it.
struct RaceMaker<'a> {
    var: &'a Var,
    is_found: bool,
}

impl Rewrite for RaceMaker<'_> {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        match &stmt.kind {
            StmtKind::For(inner) if inner.var == *self.var => {
                let body = self.stmt(&inner.body)?;
                let kind = if inner.kind == ForKind::Serial { ForKind::Parallel } else { inner.kind };
                Ok(Stmt::new(StmtKind::For(Arc::new(For { body, kind, ..(**inner).clone() }))))
            }
            StmtKind::Store { buffer, indices, value } if !self.is_found => {
                let mut indices = indices.clone();
                if let Some(index) = indices.iter_mut().find(|index| index.vars().contains(self.var)) {
                    let zero = Expr::Int { value: 0, ty: self.var.dtype().scalar };
                    *index = Substitution::new([self.var], [zero]).apply(index);
                    self.is_found = true;
                }
                Ok(Stmt::store(buffer, indices, value.clone()))
            }
            _ => self.stmt_children(stmt),
        }
    }
}

/// The expression with one change at a random subexpression.
fn mutated_expr(expr: &Expr, choices: &mut Choices) -> Expr {
    let mut count = 0;
    expr.walk(&mut |_| count += 1);
    let left = choices.below(count);
    let Ok(changed) = Change { left, statements_only: false, choices }.expr(expr);
    changed
}

/// Walks to the statement or expression with a given number and changes it.
struct Change<'r> {
    left: usize,
    statements_only: bool,
    choices: &'r mut Choices,
}

impl Change<'_> {
    /// Whether the walk has arrived; counts down otherwise.
    fn here(&mut self) -> bool {
        let here = self.left == 0;
        self.left = self.left.wrapping_sub(1);
        here
    }
}

impl Rewrite for Change<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        if self.statements_only {
            return Ok(expr.clone());
        }
        if self.here() { Ok(other_expr(expr, self.choices)) } else { self.expr_children(expr) }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        if self.here() { Ok(other_stmt(stmt, self.choices)) } else { self.stmt_children(stmt) }
    }
}

/// The expression plus a constant of its type.
fn one_more(expr: &Expr, by: i128) -> Expr {
    let ty = expr.dtype();
    let one = Expr::Int { value: by.abs(), ty: ty.scalar };
    let one = if ty.is_scalar() { one } else { Expr::Broadcast { value: SharedExpr::new(one), lanes: ty.lanes } };
    Expr::binary(if by < 0 { BinaryOp::Sub } else { BinaryOp::Add }, expr.clone(), one)
}

/// Whether an expression has an integer type.
fn is_integer(expr: &Expr) -> bool {
    matches!(expr.dtype().scalar.class(), TypeClass::Int | TypeClass::UInt)
}

/// The expression with one change of its root. Expressions without a change of their own are
/// returned as they are.
fn other_expr(expr: &Expr, choices: &mut Choices) -> Expr {
    match expr {
        Expr::Int { value, ty: ScalarType::Bool } => Expr::Int { value: 1 - value, ty: ScalarType::Bool },
        Expr::Int { value, ty } => {
            let value = if choices.chance(2) { value + 1 } else { (value - 1).max(0) };
            Expr::int_of(value, *ty).unwrap_or_else(|| expr.clone())
        }
        Expr::Float { value, ty } => Expr::float_of(value + 1.0, *ty),
        Expr::Binary(op, a, b) if is_division(*op) && choices.chance(3) => Expr::Binary(*op, a.clone(), negated(b)),
        Expr::Binary(op, a, b) => match choices.below(5) {
            0 => Expr::Binary(other_operator(*op), b.clone(), a.clone()),
            4 => Expr::Binary(*op, b.clone(), a.clone()),
            // A comparison has another type than its operands, so an operand cannot stand for it.
            1 if a.dtype() == expr.dtype() => (**a).clone(),
            2 if is_integer(expr) => one_more(expr, if choices.chance(2) { 1 } else { -1 }),
            _ => Expr::Binary(other_operator(*op), a.clone(), b.clone()),
        },
        Expr::Unary(UnaryOp::Not | UnaryOp::Neg, a) if a.dtype() == expr.dtype() => (**a).clone(),
        Expr::Var(_) if is_integer(expr) => one_more(expr, if choices.chance(2) { 1 } else { -1 }),
        Expr::Ramp { base, stride, lanes } => match choices.below(3) {
            0 => Expr::Broadcast { value: base.clone(), lanes: *lanes },
            1 => Expr::Ramp { base: SharedExpr::new(one_more(base, 1)), stride: stride.clone(), lanes: *lanes },
            _ => Expr::Ramp { base: base.clone(), stride: SharedExpr::new(one_more(stride, 1)), lanes: *lanes },
        },
        Expr::Broadcast { value, lanes } if is_integer(value) => {
            let stride = SharedExpr::new(Expr::Int { value: 1, ty: value.dtype().scalar });
            Expr::Ramp { base: value.clone(), stride, lanes: *lanes }
        }
        Expr::Select(c, a, b) => Expr::Select(c.clone(), b.clone(), a.clone()),
        Expr::IfThenElse(c, a, b) => match choices.below(4) {
            0 => Expr::IfThenElse(c.clone(), b.clone(), a.clone()),
            1 => (**a).clone(),
            2 => Expr::IfThenElse(c.clone(), a.clone(), a.clone()),
            // `Select` evaluates both values, so loads that the condition kept inside their buffer are executed outside.
            _ => Expr::Select(c.clone(), a.clone(), b.clone()),
        },
        Expr::Load { buffer, indices } => Expr::load(buffer, other_indices(indices, choices)),
        // A conversion on the way that loses what does not fit.
        Expr::Cast(ty, value) if value.dtype().scalar.is_integer() || value.dtype().scalar.is_float() => {
            Expr::Cast(*ty, SharedExpr::new(subtle::narrowed(value)))
        }
        Expr::Unary(..) | Expr::Var(_) | Expr::Broadcast { .. } | Expr::Call(..) | Expr::Cast(..) => expr.clone(),
    }
}

/// Whether an operator divides integers.
fn is_division(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::TruncDiv | BinaryOp::TruncMod)
}

/// A signed constant with the other sign; any other expression as it is.
fn negated(divisor: &SharedExpr) -> SharedExpr {
    match &**divisor {
        Expr::Int { value, ty } if ty.class() == TypeClass::Int => {
            SharedExpr::new(Expr::int_of(-value, *ty).unwrap_or_else(|| (**divisor).clone()))
        }
        _ => divisor.clone(),
    }
}

/// The operator that is most easily confused with another one.
fn other_operator(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Add => BinaryOp::Sub,
        BinaryOp::Sub => BinaryOp::Add,
        BinaryOp::Lt => BinaryOp::Le,
        BinaryOp::Le => BinaryOp::Lt,
        BinaryOp::Gt => BinaryOp::Ge,
        BinaryOp::Ge => BinaryOp::Gt,
        BinaryOp::Eq => BinaryOp::Ne,
        BinaryOp::Ne => BinaryOp::Eq,
        BinaryOp::And => BinaryOp::Or,
        BinaryOp::Or => BinaryOp::And,
        BinaryOp::Min => BinaryOp::Max,
        BinaryOp::Max => BinaryOp::Min,
        BinaryOp::FloorDiv => BinaryOp::TruncDiv,
        BinaryOp::TruncDiv => BinaryOp::FloorDiv,
        BinaryOp::FloorMod => BinaryOp::TruncMod,
        BinaryOp::TruncMod => BinaryOp::FloorMod,
        // No operator is commonly confused with these.
        BinaryOp::Mul
        | BinaryOp::Div
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Shl
        | BinaryOp::Shr => op,
    }
}

/// The indices with one change: one is increased, decreased, replaced by 0, or exchanged with its
/// neighbour.
fn other_indices(indices: &[Expr], choices: &mut Choices) -> Vec<Expr> {
    let mut indices = indices.to_vec();
    if indices.is_empty() {
        return indices;
    }
    let at = choices.below(indices.len());
    let is_scalar = |index: &Expr| index.dtype().is_scalar();
    match choices.below(4) {
        0 if is_scalar(&indices[at]) => indices[at] = Expr::Int { value: 0, ty: indices[at].dtype().scalar },
        1 if at + 1 < indices.len() && is_scalar(&indices[at + 1]) => indices.swap(at, at + 1),
        2 => indices[at] = one_more(&indices[at], -1),
        _ => indices[at] = one_more(&indices[at], 1),
    }
    indices
}

/// The statement with one change of its root: statements exchanged, removed or repeated; branches
/// exchanged or the condition removed; a guard added; a loop or an index changed.
fn other_stmt(stmt: &Stmt, choices: &mut Choices) -> Stmt {
    match &stmt.kind {
        StmtKind::Seq(stmts) if stmts.len() > 1 => {
            let mut stmts = stmts.to_vec();
            let at = choices.below(stmts.len() - 1);
            match choices.below(3) {
                0 => stmts.swap(at, at + 1),
                1 => drop(stmts.remove(at)),
                _ => stmts.insert(at, stmts[at].clone()),
            }
            Stmt::seq(stmts)
        }
        StmtKind::If { cond, then_body, else_body: Some(otherwise) } if choices.chance(2) => {
            let (then_body, else_body) = (otherwise.clone(), Some(then_body.clone()));
            Stmt::new(StmtKind::If { cond: cond.clone(), then_body, else_body })
        }
        // A forgotten guard: accesses of the last iterations may leave their buffers.
        StmtKind::If { then_body, .. } => (**then_body).clone(),
        StmtKind::For(inner) => Stmt::new(StmtKind::For(Arc::new(other_loop(inner, choices)))),
        StmtKind::Store { indices, .. } if choices.chance(3) => guarded(stmt, indices, choices),
        StmtKind::Store { buffer, indices, value } => {
            Stmt::store(buffer, other_indices(indices, choices), value.clone())
        }
        StmtKind::Seq(_)
        | StmtKind::Allocate { .. }
        | StmtKind::DeclBuffer { .. }
        | StmtKind::Let { .. }
        | StmtKind::Evaluate(_)
        | StmtKind::Barrier
        | StmtKind::Attr { .. }
        | StmtKind::Assert { .. } => stmt.clone(),
    }
}

/// A store under a guard on a variable of its indices; as it is if they have none.
fn guarded(store: &Stmt, indices: &[Expr], choices: &mut Choices) -> Stmt {
    let vars: Vec<Var> = indices.iter().flat_map(Expr::vars).filter(|var| var.dtype().is_scalar()).collect();
    let integers: Vec<&Var> = vars.iter().filter(|var| is_integer(&Expr::from(*var))).collect();
    if integers.is_empty() {
        return store.clone();
    }
    let var = integers[choices.below(integers.len())];
    let number = i128::try_from(choices.below(4)).unwrap_or(0);
    let number = Expr::Int { value: number, ty: var.dtype().scalar };
    let op = [BinaryOp::Lt, BinaryOp::Ge, BinaryOp::Gt, BinaryOp::Ne][choices.below(4)];
    let cond = Expr::binary(op, Expr::from(var), number);
    Stmt::guarded(cond, store.clone())
}

/// The loop with one change: its bounds (in half of the cases) or its kind.
fn other_loop(inner: &For, choices: &mut Choices) -> For {
    let mut inner = inner.clone();
    match choices.below(6) {
        0 => inner.extent = one_more(&inner.extent, -1),
        1 => inner.extent = one_more(&inner.extent, 1),
        2 => inner.min = one_more(&inner.min, 1),
        _ if inner.kind == ForKind::Serial => inner.kind = ForKind::Parallel,
        _ => inner.kind = ForKind::Serial,
    }
    inner
}

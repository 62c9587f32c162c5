//! Programs with one of the mistakes that leave the shape of a program as it is: operands that may not be exchanged are, a value is
//! converted on the way, a lane is another one, a name is replaced by what it was bound to.

use std::convert::Infallible;

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{BinaryOp, DataType, Expr, PrimFunc, ScalarType, SharedExpr, Stmt, StmtKind};

use super::{Choices, one_more};

/// The program with one such mistake; as it is if it has no place for one.
pub fn subtly_mutated_program(func: &PrimFunc, seed: u64) -> PrimFunc {
    let mut choices = Choices::new(seed);
    let mut count = 0;
    func.body.walk(&mut |stmt| {
        count += usize::from(matches!(stmt.kind, StmtKind::Let { .. } | StmtKind::Store { .. }));
        stmt.exprs().for_each(|expr| expr.walk(&mut |part| count += usize::from(is_place(part))));
    });
    let left = choices.below(count);
    let Ok(body) = Change { left, choices: &mut choices }.stmt(&func.body);
    PrimFunc { body, ..func.clone() }
}

/// Whether an expression has such a mistake.
fn is_place(expr: &Expr) -> bool {
    match expr {
        Expr::Binary(op, ..) => !is_commutative(*op),
        Expr::Cast(..) | Expr::Select(..) | Expr::Ramp { .. } | Expr::Broadcast { .. } => true,
        Expr::Int { .. }
        | Expr::Float { .. }
        | Expr::Var(_)
        | Expr::Unary(..)
        | Expr::Call(..)
        | Expr::IfThenElse(..)
        | Expr::Load { .. } => false,
    }
}

fn is_commutative(op: BinaryOp) -> bool {
    match op {
        BinaryOp::Add
        | BinaryOp::Mul
        | BinaryOp::Min
        | BinaryOp::Max
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor => true,
        BinaryOp::Sub
        | BinaryOp::Div
        | BinaryOp::FloorDiv
        | BinaryOp::FloorMod
        | BinaryOp::TruncDiv
        | BinaryOp::TruncMod
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge
        | BinaryOp::Shl
        | BinaryOp::Shr => false,
    }
}

/// A value converted to a type that loses a part of it, and back.
pub(super) fn narrowed(value: &Expr) -> Expr {
    let ty = value.dtype();
    // Small integers fit in `int8`, so only whether they are 0 is kept.
    let scalar = if ty.scalar.is_float() { ScalarType::Int8 } else { ScalarType::Bool };
    let narrow = Expr::Cast(DataType { scalar, ..ty }, SharedExpr::new(value.clone()));
    Expr::Cast(ty, SharedExpr::new(narrow))
}

struct Change<'r> {
    left: usize,
    choices: &'r mut Choices,
}

impl Change<'_> {
    /// Whether the walk has arrived; counts down otherwise.
    fn is_here(&mut self) -> bool {
        let is_here = self.left == 0;
        self.left = self.left.wrapping_sub(1);
        is_here
    }
}

impl Rewrite for Change<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        if is_place(expr) && self.is_here() { Ok(other(expr, self.choices)) } else { self.expr_children(expr) }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        match &stmt.kind {
            // Reading again where the name is used may give another value than the name has.
            StmtKind::Let { var, value, body } if self.is_here() => {
                let Ok(body) = Inline(Substitution::new([var], [value.clone()])).stmt(body);
                Ok(body)
            }
            StmtKind::Store { buffer, indices, value } if self.is_here() => {
                let ty = value.dtype().scalar;
                let is_number = ty.is_float() || ty.is_integer();
                let value = if is_number { narrowed(value) } else { value.clone() };
                Ok(Stmt::store(buffer, indices.clone(), value))
            }
            StmtKind::Let { .. }
            | StmtKind::Store { .. }
            | StmtKind::Seq(_)
            | StmtKind::For(_)
            | StmtKind::If { .. }
            | StmtKind::Allocate { .. }
            | StmtKind::DeclBuffer { .. }
            | StmtKind::Evaluate(_)
            | StmtKind::Barrier
            | StmtKind::Attr { .. }
            | StmtKind::Assert { .. } => self.stmt_children(stmt),
        }
    }
}

/// Replaces variables in all expressions of a statement.
struct Inline(Substitution);

impl Rewrite for Inline {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        Ok(self.0.apply(expr))
    }
}

/// The expression with a mistake at its root.
fn other(expr: &Expr, choices: &mut Choices) -> Expr {
    match expr {
        Expr::Binary(op, a, b) => Expr::Binary(*op, b.clone(), a.clone()),
        Expr::Cast(ty, value) if value.dtype().scalar.is_float() || value.dtype().scalar.is_integer() => {
            Expr::Cast(*ty, SharedExpr::new(narrowed(value)))
        }
        Expr::Select(cond, a, b) => Expr::Select(cond.clone(), b.clone(), a.clone()),
        Expr::Ramp { base, stride, lanes } => {
            let by = if choices.chance(2) { 1 } else { -1 };
            // A constant stays one, because some readers of ramps take constants alone.
            let constant =
                stride.as_const_int().map(|value| Expr::Int { value: value + by, ty: stride.dtype().scalar });
            let stride = constant.unwrap_or_else(|| one_more(stride, by));
            Expr::Ramp { base: base.clone(), stride: SharedExpr::new(stride), lanes: *lanes }
        }
        Expr::Broadcast { value, lanes } if value.dtype().scalar.is_integer() && value.dtype().is_scalar() => {
            let stride = SharedExpr::new(Expr::Int { value: 1, ty: value.dtype().scalar });
            Expr::Ramp { base: value.clone(), stride, lanes: *lanes }
        }
        Expr::Broadcast { .. }
        | Expr::Cast(..)
        | Expr::Int { .. }
        | Expr::Float { .. }
        | Expr::Var(_)
        | Expr::Unary(..)
        | Expr::Call(..)
        | Expr::IfThenElse(..)
        | Expr::Load { .. } => expr.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_mistake_is_made() {
        let text = "@T.prim_func\ndef main(A: T.Buffer((8,), \"int32\"), B: T.Buffer((8,), \"int32\")):\n    for i in range(7):\n        \
                    v: T.int32 = A[i] - 3\n        B[i + 1] = v\n    B[T.Ramp(0, 1, 4)] = A[T.Ramp(4, 1, 4)]\n";
        let func = tilewright_script::read_module(text).unwrap().funcs.remove(0);
        let of_seed = |seed| tilewright_script::print_func(&subtly_mutated_program(&func, seed));
        let printed: Vec<String> = (0..60).map(of_seed).collect();
        for part in ["3 - A[i]", "B[i + 1] = A[i] - 3", "T.Ramp(0, 2, 4)", "T.Cast(\"int32\", T.Cast(\"bool\", v))"] {
            assert!(printed.iter().any(|text| text.contains(part)), "no {part} in {}", printed.join("\n"));
        }
    }
}

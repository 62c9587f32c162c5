//! Turns loops into vectors without checking whether that is allowed.

use std::convert::Infallible;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{BinaryOp, Expr, PrimFunc, SharedExpr, Stmt, StmtKind, Var};

/// Replaces every loop of 2, 3, 4 or 8 iterations around a single store by a vector store.
/// Conditions become conditional values that store 0, lanes need not be neighbours, and dependences
/// are ignored.
pub fn naively_vectorized(func: &PrimFunc) -> PrimFunc {
    let Ok(body) = NaiveVectorizer.stmt(&func.body);
    PrimFunc { body, ..func.clone() }
}

struct NaiveVectorizer;

impl Rewrite for NaiveVectorizer {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let StmtKind::For(inner) = &stmt.kind else { return self.stmt_children(stmt) };
        let lanes = inner.extent.as_const_int().and_then(|extent| u16::try_from(extent).ok());
        let lanes = lanes.filter(|lanes| [2, 3, 4, 8].contains(lanes) && inner.min.as_const_int() == Some(0));
        let vector =
            lanes.and_then(|lanes| LoopVectorizer { var: &inner.var, lanes }.body(&inner.body, &mut Vec::new()));
        vector.map_or_else(|| self.stmt_children(stmt), Ok)
    }
}

/// The conversion of one loop.
struct LoopVectorizer<'a> {
    var: &'a Var,
    lanes: u16,
}

impl LoopVectorizer<'_> {
    /// The body as vector statements; `conditions` collects the conditions that depend on the loop
    /// variable. `None` if it cannot be converted.
    fn body(&self, stmt: &Stmt, conditions: &mut Vec<Expr>) -> Option<Stmt> {
        match &stmt.kind {
            StmtKind::If { cond, then_body, else_body: None } if cond.vars().contains(self.var) => {
                conditions.push(cond.clone());
                self.body(then_body, conditions)
            }
            StmtKind::If { cond, then_body, else_body: None } => {
                Some(Stmt::guarded(cond.clone(), self.body(then_body, conditions)?))
            }
            StmtKind::Store { buffer, indices, value } => {
                let indices = self.indices(indices)?;
                let mut value = self.wide(value)?;
                // From the inside out, so that an inner condition is evaluated only where the outer ones hold, as before.
                for cond in conditions.iter().rev() {
                    let ty = value.dtype().scalar;
                    let zero = Expr::int_of(0, ty).unwrap_or_else(|| Expr::float_of(0.0, ty));
                    value = Expr::IfThenElse(
                        SharedExpr::new(self.wide(cond)?),
                        SharedExpr::new(value),
                        SharedExpr::new(self.spread(zero)),
                    );
                }
                Some(Stmt::store(buffer, indices, value))
            }
            StmtKind::If { .. }
            | StmtKind::For(_)
            | StmtKind::Allocate { .. }
            | StmtKind::DeclBuffer { .. }
            | StmtKind::Let { .. }
            | StmtKind::Seq(_)
            | StmtKind::Evaluate(_)
            | StmtKind::Barrier
            | StmtKind::Attr { .. }
            | StmtKind::Assert { .. } => None,
        }
    }

    /// The indices in lanes; only the last one may depend on the loop variable.
    fn indices(&self, indices: &[Expr]) -> Option<Vec<Expr>> {
        let (last, before) = indices.split_last()?;
        let is_uniform = |index: &&Expr| !index.vars().contains(self.var);
        if !before.iter().all(|index| is_uniform(&index)) {
            return None;
        }
        let last = if is_uniform(&last) { last.clone() } else { self.wide(last)? };
        Some(before.iter().cloned().chain([last]).collect())
    }

    /// A scalar in all lanes.
    fn spread(&self, value: Expr) -> Expr {
        Expr::Broadcast { value: SharedExpr::new(value), lanes: self.lanes }
    }

    /// An expression in lanes: loop-invariant parts are broadcast, and the loop variable becomes a ramp. `None`
    /// for expressions that have no vector form.
    fn wide(&self, expr: &Expr) -> Option<Expr> {
        if !expr.vars().contains(self.var) {
            return Some(self.spread(expr.clone()));
        }
        let wide = |expr: &Expr| self.wide(expr).map(SharedExpr::new);
        Some(match expr {
            Expr::Var(var) => {
                let number = |value| SharedExpr::new(Expr::Int { value, ty: var.dtype().scalar });
                Expr::Ramp { base: number(0), stride: number(1), lanes: self.lanes }
            }
            Expr::Binary(op, a, b) => match (op, self.wide(a)?, self.wide(b)?) {
                // Folded, so that an index such as `4 * o + i` with the lanes `i` stays a single ramp.
                (BinaryOp::Add, Expr::Broadcast { value, .. }, Expr::Ramp { base, stride, lanes })
                    if base.as_const_int() == Some(0) =>
                {
                    Expr::Ramp { base: value, stride, lanes }
                }
                (op, a, b) => Expr::binary(*op, a, b),
            },
            Expr::Unary(op, a) => Expr::Unary(*op, wide(a)?),
            Expr::Call(function, args) => {
                Expr::Call(*function, args.iter().map(|arg| self.wide(arg)).collect::<Option<_>>()?)
            }
            Expr::Select(c, a, b) => Expr::Select(wide(c)?, wide(a)?, wide(b)?),
            Expr::IfThenElse(c, a, b) => Expr::IfThenElse(wide(c)?, wide(a)?, wide(b)?),
            Expr::Cast(ty, value) => Expr::Cast(ty.with_lanes(self.lanes), wide(value)?),
            Expr::Load { buffer, indices } => {
                let indices = self.indices(indices)?;
                Expr::load(buffer, indices)
            }
            Expr::Int { .. } | Expr::Float { .. } | Expr::Ramp { .. } | Expr::Broadcast { .. } => return None,
        })
    }
}

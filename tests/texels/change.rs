//! Loops turned into lanes without a thought, and programs with one change.

use std::convert::Infallible;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{BinaryOp, Expr, ForKind, PrimFunc, ScalarType, Stmt, StmtKind, UnaryOp, Var};

use super::Random;

/// Every loop of few iterations over one store becomes lanes, whether it may or not.
pub(crate) fn thoughtless(func: &PrimFunc) -> PrimFunc {
    let Ok(body) = Thoughtless.stmt(&func.body);
    PrimFunc { body, ..func.clone() }
}

struct Thoughtless;

impl Rewrite for Thoughtless {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let StmtKind::For(inner) = &stmt.kind else { return self.stmt_children(stmt) };
        let lanes = inner.extent.as_const_int().and_then(|extent| u16::try_from(extent).ok());
        let lanes = lanes.filter(|lanes| [2, 3, 4, 8].contains(lanes) && inner.min.as_const_int() == Some(0));
        let vector = lanes.and_then(|lanes| Vector { var: &inner.var, lanes }.body(&inner.body, &mut Vec::new()));
        vector.map_or_else(|| self.stmt_children(stmt), Ok)
    }
}

struct Vector<'a> {
    var: &'a Var,
    lanes: u16,
}

impl Vector<'_> {
    fn body(&self, stmt: &Stmt, own: &mut Vec<Expr>) -> Option<Stmt> {
        match &stmt.kind {
            StmtKind::If { cond, then_body, else_body: None } if cond.vars().contains(self.var) => {
                own.push(cond.clone());
                self.body(then_body, own)
            }
            StmtKind::If { cond, then_body, else_body: None } => {
                Some(Stmt::guarded(cond.clone(), self.body(then_body, own)?))
            }
            StmtKind::Store { buffer, indices, value } => {
                let indices = self.indices(indices)?;
                let mut value = self.wide(value)?;
                for cond in own.iter().rev() {
                    let ty = value.dtype().scalar;
                    let zero = Expr::int_of(0, ty).unwrap_or_else(|| Expr::float_of(0.0, ty));
                    value = Expr::IfThenElse(Box::new(self.wide(cond)?), Box::new(value), Box::new(self.spread(zero)));
                }
                Some(Stmt::store(buffer, indices, value))
            }
            _ => None,
        }
    }

    fn indices(&self, indices: &[Expr]) -> Option<Vec<Expr>> {
        let (last, before) = indices.split_last()?;
        let plain = |index: &&Expr| !index.vars().contains(self.var);
        if !before.iter().all(|index| plain(&index)) {
            return None;
        }
        let last = if plain(&last) { last.clone() } else { self.wide(last)? };
        Some(before.iter().cloned().chain([last]).collect())
    }

    fn spread(&self, value: Expr) -> Expr {
        Expr::Broadcast { value: Box::new(value), lanes: self.lanes }
    }

    fn wide(&self, expr: &Expr) -> Option<Expr> {
        if !expr.vars().contains(self.var) {
            return Some(self.spread(expr.clone()));
        }
        let wide = |expr: &Expr| self.wide(expr).map(Box::new);
        Some(match expr {
            Expr::Var(var) => {
                let number = |value| Box::new(Expr::Int { value, ty: var.dtype().scalar });
                Expr::Ramp { base: number(0), stride: number(1), lanes: self.lanes }
            }
            Expr::Binary(op, a, b) => match (op, self.wide(a)?, self.wide(b)?) {
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
                Expr::Load { buffer: buffer.clone(), indices }
            }
            _ => return None,
        })
    }
}

/// The program with one change somewhere.
pub(crate) fn changed(random: &mut Random, func: &PrimFunc) -> PrimFunc {
    let mut count = 0;
    func.body.walk(&mut |stmt| {
        count += 1;
        stmt.exprs().iter().for_each(|expr| expr.walk(&mut |_| count += 1));
    });
    let left = random.below(count);
    let Ok(body) = Change { left, random }.stmt(&func.body);
    PrimFunc { body, ..func.clone() }
}

struct Change<'r> {
    left: usize,
    random: &'r mut Random,
}

impl Change<'_> {
    fn here(&mut self) -> bool {
        let here = self.left == 0;
        self.left = self.left.wrapping_sub(1);
        here
    }
}

impl Rewrite for Change<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        if !self.here() {
            return self.expr_children(expr);
        }
        let random = &mut *self.random;
        let integer = |expr: &Expr| expr.dtype() == ScalarType::Int32.into();
        Ok(match expr {
            Expr::Int { value, ty } if *ty == ScalarType::Bool => Expr::Int { value: 1 - value, ty: *ty },
            Expr::Int { value, ty } => {
                Expr::Int { value: if random.chance(2) { value + 1 } else { (value - 1).max(0) }, ty: *ty }
            }
            Expr::Binary(op, a, b) => {
                let op = match op {
                    BinaryOp::Add => BinaryOp::Sub,
                    BinaryOp::Sub => BinaryOp::Add,
                    BinaryOp::Lt => BinaryOp::Le,
                    BinaryOp::Le => BinaryOp::Lt,
                    BinaryOp::Gt => BinaryOp::Ge,
                    BinaryOp::And => BinaryOp::Or,
                    BinaryOp::Or => BinaryOp::And,
                    BinaryOp::FloorDiv => BinaryOp::FloorMod,
                    BinaryOp::FloorMod => BinaryOp::FloorDiv,
                    other => *other,
                };
                match random.below(3) {
                    0 => Expr::Binary(op, b.clone(), a.clone()),
                    1 if a.dtype() == expr.dtype() => (**a).clone(),
                    _ => Expr::Binary(op, a.clone(), b.clone()),
                }
            }
            Expr::Unary(UnaryOp::Not, a) => (**a).clone(),
            Expr::Var(_) if integer(expr) => expr.clone() + Expr::int(1),
            Expr::Ramp { base, stride, lanes } => match random.below(3) {
                0 => Expr::Broadcast { value: base.clone(), lanes: *lanes },
                1 if integer(base) => Expr::Ramp {
                    base: Box::new((**base).clone() + Expr::int(1)),
                    stride: stride.clone(),
                    lanes: *lanes,
                },
                _ => {
                    let two = Expr::Int { value: 2, ty: stride.dtype().scalar };
                    Expr::Ramp { base: base.clone(), stride: Box::new(two), lanes: *lanes }
                }
            },
            Expr::Broadcast { value, lanes } if integer(value) => {
                Expr::Ramp { base: value.clone(), stride: Box::new(Expr::int(1)), lanes: *lanes }
            }
            Expr::IfThenElse(c, a, b) => match random.below(4) {
                0 => Expr::IfThenElse(c.clone(), b.clone(), a.clone()),
                1 => (**a).clone(),
                2 => Expr::IfThenElse(c.clone(), a.clone(), a.clone()),
                _ => Expr::Select(c.clone(), a.clone(), b.clone()),
            },
            Expr::Load { buffer, indices } if indices.len() > 1 => {
                let mut indices = indices.clone();
                let at = random.below(indices.len() - 1);
                indices[at] =
                    if random.chance(2) { Expr::int(0) } else { indices[(at + 1) % (buffer.rank() - 1)].clone() };
                Expr::Load { buffer: buffer.clone(), indices }
            }
            _ => expr.clone(),
        })
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        if !self.here() {
            return self.stmt_children(stmt);
        }
        let random = &mut *self.random;
        Ok(match &stmt.kind {
            StmtKind::Seq(stmts) if stmts.len() > 1 => {
                let mut stmts = stmts.clone();
                let at = random.below(stmts.len() - 1);
                if random.chance(2) {
                    stmts.swap(at, at + 1);
                } else {
                    drop(stmts.remove(at));
                }
                Stmt::seq(stmts)
            }
            StmtKind::If { then_body, .. } => (**then_body).clone(),
            StmtKind::For(inner) => {
                let mut inner = inner.clone();
                match random.below(4) {
                    0 => inner.extent = inner.extent - Expr::int(1),
                    1 => inner.extent = inner.extent + Expr::int(1),
                    2 => inner.min = inner.min + Expr::int(1),
                    _ if inner.kind == ForKind::Serial => inner.kind = ForKind::Parallel,
                    _ => inner.kind = ForKind::Serial,
                }
                Stmt::new(StmtKind::For(inner))
            }
            StmtKind::Store { buffer, indices, value } if indices.len() > 1 => {
                let mut indices = indices.clone();
                indices[0] = if random.chance(2) { indices[0].clone() + Expr::int(1) } else { Expr::int(0) };
                Stmt::store(buffer, indices, value.clone())
            }
            _ => stmt.clone(),
        })
    }
}

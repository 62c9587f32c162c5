//! Replaces constants by symbols: wherever a given extent is a shape, a loop bound, part of an
//! index or of a condition, it becomes a symbol, and products of extents become products of
//! symbols. With the original values of the symbols the program has the same meaning.

use std::convert::Infallible;
use std::sync::Arc;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{BinaryOp, Bindings, Buffer, Expr, ForKind, PrimFunc, ScalarType, SharedExpr, Stmt, StmtKind, Var};

use crate::program::recipe::Premise;

/// Makes those of the `extents` symbolic that follow from a parameter's shape; returns the values
/// of the symbols. Extents that have to be constant, such as that of a vectorized loop, stay as
/// they are. The program asserts `premise` of each symbol.
pub(super) fn with_symbols(func: &PrimFunc, extents: &[i64], premise: Premise) -> (PrimFunc, Bindings) {
    let mut replacement = Symbols { known: Vec::new(), buffers: Vec::new(), is_place: false };
    let mut values = Vec::new();
    for (number, &extent) in extents.iter().enumerate() {
        let is_determined = func.buffer_map.iter().any(|(_, buffer)| unknown_axes(buffer).any(|axis| is(axis, extent)));
        if extent > 1 && is_determined && replacement.symbol_for(extent.into()).is_none() {
            let var = Var::new(format!("n{number}"), ScalarType::Int32);
            replacement.known.push((extent.into(), Expr::from(&var)));
            values.push((var, extent.into()));
        }
    }
    replacement.products(func);
    let Ok(mut renamed) = replacement.func(func);
    let asserted: Vec<Stmt> = values.iter().flat_map(|(var, value)| asserted(var, *value, premise)).collect();
    renamed.body = Stmt::seq(asserted.into_iter().chain([renamed.body]).collect());
    (renamed, values.into_iter().collect())
}

/// The assertions about a symbol with this value.
fn asserted(var: &Var, value: i128, premise: Premise) -> Vec<Stmt> {
    let [name, value] = [Expr::from(var), Expr::Int { value, ty: ScalarType::Int32 }];
    let not_above = |a: &Expr, b: &Expr| Expr::binary(BinaryOp::Le, a.clone(), b.clone());
    let (most, least) = (not_above(&name, &value), not_above(&value, &name));
    let conds = match premise {
        Premise::Nothing => vec![],
        Premise::AtMost => vec![most],
        Premise::AtLeast => vec![least],
        Premise::Exactly => vec![least, most],
    };
    let assert = |cond: Expr| {
        let message = "an extent that is not meant".into();
        Stmt::new(StmtKind::Assert { message, cond, is_assumed: false })
    };
    conds.into_iter().map(assert).collect()
}

/// Whether an expression is this constant.
fn is(expr: &Expr, extent: i64) -> bool {
    expr.as_const_int() == Some(extent.into())
}

/// The axes of a buffer that may be symbolic: all but the channels of a texture.
fn unknown_axes(buffer: &Buffer) -> impl Iterator<Item = &Expr> {
    let channels = usize::from(buffer.scope.is_texture());
    buffer.shape.iter().take(buffer.rank().saturating_sub(channels))
}

/// The replacement of constants in a function.
struct Symbols {
    /// Constants and the expressions that replace them.
    known: Vec<(i128, Expr)>,
    /// Buffers before and after the replacement.
    buffers: Vec<(Buffer, Buffer)>,
    /// Whether the current expression is an index, a bound or a condition. Constants in values are
    /// kept.
    is_place: bool,
}

impl Symbols {
    /// The replacement of a constant.
    fn symbol_for(&self, value: i128) -> Option<Expr> {
        self.known.iter().find(|(known, _)| *known == value).map(|(_, name)| name.clone())
    }

    /// Adds the products of neighbouring extents, which occur as strides and as extents of views.
    fn products(&mut self, func: &PrimFunc) {
        let n_names = self.known.len();
        for (_, buffer) in &func.buffer_map {
            let n_axes = unknown_axes(buffer).count();
            for first in 0..n_axes {
                let (mut value, mut product) = (1, None::<Expr>);
                for axis in &buffer.shape[first..n_axes] {
                    let Some(extent) = axis.as_const_int() else { break };
                    let name = self.known[..n_names].iter().find(|(known, _)| *known == extent);
                    let factor = name.map_or_else(|| axis.clone(), |(_, name)| name.clone());
                    value *= extent;
                    let all = match product.take() {
                        Some(before) => before * factor,
                        None => factor,
                    };
                    product = Some(all.clone());
                    if !all.vars().is_empty() && self.symbol_for(value).is_none() {
                        self.known.push((value, all));
                    }
                }
            }
        }
    }

    /// Replaces constants in a function.
    fn func(&mut self, func: &PrimFunc) -> Result<PrimFunc, Infallible> {
        let mut renamed = func.clone();
        for (_, buffer) in &mut renamed.buffer_map {
            *buffer = self.buffer(buffer)?;
        }
        renamed.body = self.stmt(&func.body)?;
        Ok(renamed)
    }

    /// Replaces constants in an index, a bound or a condition.
    fn in_place(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        let outer = std::mem::replace(&mut self.is_place, true);
        let place = self.expr(expr);
        self.is_place = outer;
        place
    }
}

impl Rewrite for Symbols {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Int { value, ty } if self.is_place => Ok(match (self.symbol_for(*value), *ty) {
                (Some(name), ScalarType::Int32) => name,
                (Some(name), ScalarType::Int64) => Expr::Cast((*ty).into(), SharedExpr::new(name)),
                _ => expr.clone(),
            }),
            Expr::Load { buffer, indices } => {
                let indices = indices.iter().map(|index| self.in_place(index)).collect::<Result<_, _>>()?;
                Ok(Expr::Load { buffer: self.buffer(buffer)?, indices })
            }
            Expr::Select(cond, ..) | Expr::IfThenElse(cond, ..) => {
                let cond = self.in_place(cond)?;
                let mut changed = self.expr_children(expr)?;
                if let Expr::Select(found, ..) | Expr::IfThenElse(found, ..) = &mut changed {
                    *found = cond.into();
                }
                Ok(changed)
            }
            _ => self.expr_children(expr),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let mut changed = self.stmt_children(stmt)?;
        match (&stmt.kind, &mut changed.kind) {
            (StmtKind::For(before), StmtKind::For(after)) if before.kind != ForKind::Vectorized => {
                Arc::make_mut(after).extent = self.in_place(&before.extent)?;
            }
            (StmtKind::Store { indices: before, .. }, StmtKind::Store { indices: after, .. }) => {
                *after = before.iter().map(|index| self.in_place(index)).collect::<Result<_, _>>()?;
            }
            (StmtKind::If { cond: before, .. }, StmtKind::If { cond: after, .. })
            | (StmtKind::Let { value: before, .. }, StmtKind::Let { value: after, .. }) => {
                *after = self.in_place(before)?;
            }
            _ => {}
        }
        Ok(changed)
    }

    /// The buffer with symbolic extents and strides.
    fn buffer(&mut self, buffer: &Buffer) -> Result<Buffer, Infallible> {
        if let Some((_, after)) = self.buffers.iter().find(|(before, _)| before == buffer) {
            return Ok(after.clone());
        }
        let n_unknown = unknown_axes(buffer).count();
        let name =
            |expr: &Expr| expr.as_const_int().and_then(|value| self.symbol_for(value)).unwrap_or_else(|| expr.clone());
        let after = buffer.with(|info| {
            info.shape.iter_mut().take(n_unknown).for_each(|extent| *extent = name(extent));
            info.strides.iter_mut().flatten().for_each(|stride| *stride = name(stride));
        });
        self.buffers.push((buffer.clone(), after.clone()));
        Ok(after)
    }
}

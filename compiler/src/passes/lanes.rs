//! A loop as one statement of several lanes: what `vectorize` and `lower_texture` share.
//!
//! ```text
//! for c in range(4):                            with all lanes            gathered, for textures only
//!     if h < H:                                 if h < H:                 if h < H:
//!         if k * 4 + c < 18:              ->        (not possible)            T[h, 0:4] = if_then_else(ramp(k * 4, 1, 4) <
//! 18,
//!             T[h, c] = X[k * 4 + c]                                                        X[ramp(k * 4, 1, 4)], 0)
//! ```
//!
//! The loop variable becomes a ramp. Expressions that do not depend on it stay scalar, and are broadcast if an operation
//! needs a vector. Only the last index of an access may be a vector, and its lanes must be evenly spaced.

use tilewright_ir::sabotage;
use tilewright_ir::texture::is_whole_texel;
use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, Buffer, Expr, For, ScalarType, SharedExpr, Span, Stmt, StmtKind, Var};

use tilewright_algebra::{Ranges, conjuncts, linear_in, simplify};

/// The reason why a loop cannot be written as one vector statement.
#[derive(Clone, Debug)]
pub(super) struct Obstacle {
    /// The kind, on which the advice to the user depends.
    pub(super) kind: ObstacleKind,
    /// The reason, as a part of a sentence.
    pub(super) reason: String,
}

/// Kinds of obstacles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObstacleKind {
    /// The value reads the texture that it is stored to.
    ReadsOwnTexture,
    /// The lanes run along another axis than the last one of a buffer.
    LanesElsewhere,
    /// Some channels of a texel are read, or all of them in another order.
    PartOfTexel,
    /// Anything else.
    Other,
}

impl From<String> for Obstacle {
    fn from(reason: String) -> Self {
        Self { kind: ObstacleKind::Other, reason }
    }
}

impl Obstacle {
    /// The value of a store reads the texture that it is stored to.
    pub(super) fn reads_own_texture(buffer: &Buffer) -> Self {
        let reason = format!("its value reads the texture `{buffer}` that it writes");
        Self { kind: ObstacleKind::ReadsOwnTexture, reason }
    }
}

/// The body of a loop: one store, and the conditions under which it runs.
pub(super) struct Body<'a> {
    /// The conditions, outermost first, with their source positions.
    guards: Vec<(&'a Expr, Option<Span>)>,
    /// The store.
    pub(super) buffer: &'a Buffer,
    indices: &'a [Expr],
    value: &'a Expr,
    span: Option<Span>,
}

impl<'a> Body<'a> {
    /// Returns the body if `stmt` is one store, possibly inside `if`s without `else`; `None` otherwise.
    pub(super) fn from_stmt(stmt: &'a Stmt) -> Option<Self> {
        match &stmt.kind {
            StmtKind::Store { buffer, indices, value } => {
                Some(Self { guards: Vec::new(), buffer, indices, value, span: stmt.span })
            }
            StmtKind::If { cond, then_body, else_body: None } => {
                let mut body = Self::from_stmt(then_body)?;
                body.guards.insert(0, (cond, stmt.span));
                Some(body)
            }
            StmtKind::Seq(stmts) => match &**stmts {
                [only] => Self::from_stmt(only),
                _ => None,
            },
            _ => None,
        }
    }

    /// The index of the store.
    pub(super) fn indices(&self) -> &'a [Expr] {
        self.indices
    }
}

/// The lanes of a loop.
pub(super) struct Lanes<'a> {
    var: &'a Var,
    min: &'a Expr,
    count: u16,
    /// The ranges of variables inside the loop.
    ranges: Ranges,
}

/// The treatment of a condition that may hold for some lanes only.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LaneGuards {
    /// Refuse the loop, because no statement stores only some lanes.
    Refuse,
    /// Store 0 in the other lanes.
    Gather,
}

impl<'a> Lanes<'a> {
    /// Creates the lanes of a loop of `lanes` iterations from a constant start; `ranges` are the ranges of variables
    /// outside it.
    pub(super) fn from_loop(inner: &'a For, lanes: u16, ranges: &Ranges) -> Self {
        Self { var: &inner.var, min: &inner.min, count: lanes, ranges: super::remap::inside(ranges, inner) }
    }

    /// Returns the vector statement that stores all lanes.
    ///
    /// # Errors
    /// The obstacle, if the loop has no such statement.
    pub(super) fn statement(&self, body: &Body<'_>, guards: LaneGuards) -> Result<Stmt, Obstacle> {
        let buffer = body.buffer;
        let indices = self.indices(buffer, body.indices)?;
        if indices.last().is_none_or(|index| index.dtype().is_scalar()) {
            return Err(format!("all iterations over `{}` store the same element of `{buffer}`", self.var).into());
        }
        if buffer.scope.is_texture() && !indices.last().is_some_and(|index| is_all_of(buffer, index)) {
            return Err(
                format!("the iterations over `{}` do not store the channels of a texel in order", self.var).into()
            );
        }
        self.independent(body, &indices)?;
        let mut value = self.vector(body.value)?;
        let mut shared: Vec<(Expr, Option<Span>)> = Vec::new();
        let mut own: Vec<Expr> = Vec::new();
        for (cond, span) in &body.guards {
            let (mut free, mut lane) = (Vec::new(), Vec::new());
            for part in conjuncts(cond) {
                // A load after a condition on the lane may be in bounds only where that condition holds, so it stays behind
                // it.
                let behind = !own.is_empty() || !lane.is_empty();
                if self.depends(&part) || (behind && part.reads_memory()) { lane.push(part) } else { free.push(part) }
            }
            shared.extend(free.into_iter().reduce(Expr::and).map(|cond| (cond, *span)));
            own.extend(lane.into_iter().reduce(Expr::and));
        }
        if !own.is_empty() && guards == LaneGuards::Refuse {
            let which = own.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ");
            return Err(format!("`{which}` may hold for some of the lanes only").into());
        }
        value = self.widened(value);
        if !own.is_empty() && sabotage::on("texture-guard-dropped") {
            own.clear();
        }
        shared.extend(self.some_lane(body, &own).map(|cond| (cond, body.span)));
        for cond in own.iter().rev() {
            let cond = self.widened(self.vector(cond)?);
            let zero = self.widened(zero(value.dtype().scalar));
            value = Expr::IfThenElse(SharedExpr::new(cond), SharedExpr::new(value), SharedExpr::new(zero));
        }
        let store = Stmt::store(buffer, indices, value).at(body.span);
        let wrap = |inner: Stmt, (cond, span): (Expr, Option<Span>)| Stmt::guarded(cond, inner).at(span);
        Ok(shared.into_iter().rev().fold(store, wrap))
    }

    /// The condition that at least one lane is stored. `None` if the texel is inside of the texture without it, as far as the conditions of
    /// the lanes are about its place. Conditions that read memory take no part.
    fn some_lane(&self, body: &Body<'_>, own: &[Expr]) -> Option<Expr> {
        let is_inside = |(index, extent): (&Expr, &Expr)| {
            let ty = index.dtype().scalar;
            let lowest = Expr::Int { value: 0, ty };
            let cond = Expr::binary(BinaryOp::Ge, index.clone(), lowest).and(index.clone().lt(extent.clone()));
            simplify(&cond, &self.ranges).as_const_int() == Some(1)
        };
        let (_, texel) = body.indices.split_last()?;
        let asked: Vec<Var> = own.iter().flat_map(Expr::vars).collect();
        let is_asked = |(index, _): &(&Expr, &Expr)| index.vars().iter().any(|var| asked.contains(var));
        if texel.iter().zip(&body.buffer.shape).filter(is_asked).all(is_inside) {
            return None;
        }
        let plain = own.iter().flat_map(conjuncts).filter(|part| !part.reads_memory()).reduce(Expr::and)?;
        let (first, ty) = (self.min.as_const_int()?, self.var.dtype().scalar);
        let of_lane = |lane: u16| {
            let here = Expr::Int { value: first + i128::from(lane), ty };
            simplify(&Substitution::new([self.var], [here]).apply(&plain), &self.ranges)
        };
        let lanes: Vec<Expr> = (0..self.count).map(of_lane).collect();
        let always = lanes.iter().any(|lane| lane.as_const_int() == Some(1));
        lanes.into_iter().filter(|_| !always).reduce(|a, b| Expr::binary(BinaryOp::Or, a, b))
    }

    /// Returns whether a condition of the body may hold for some lanes only.
    pub(super) fn has_lane_guards(&self, body: &Body<'_>) -> bool {
        body.guards.iter().any(|(cond, _)| self.depends(cond))
    }

    /// Checks that no iteration reads an element that another iteration writes.
    fn independent(&self, body: &Body<'_>, indices: &[Expr]) -> Result<(), Obstacle> {
        let target = body.buffer;
        let mut found = Ok(());
        let mut look = |part: &Expr, in_value: bool| {
            let Expr::Load { buffer, indices: read, .. } = part else { return };
            if !buffer.aliases(target) {
                return;
            }
            let same = || self.indices(buffer, read).is_ok_and(|read| read == *indices);
            if target.scope.is_texture() {
                found = Err(Obstacle::reads_own_texture(buffer));
            } else if !(in_value && buffer == target && same()) {
                found = Err(format!("it reads `{part}`, which another iteration may write").into());
            }
        };
        body.value.walk(&mut |part| look(part, true));
        for expr in body.indices.iter().chain(body.guards.iter().map(|(cond, _)| *cond)) {
            expr.walk(&mut |part| look(part, false));
        }
        found
    }

    /// Whether an expression depends on the loop variable, so that it differs from lane to lane.
    fn depends(&self, expr: &Expr) -> bool {
        expr.vars().contains(self.var)
    }

    /// Returns the indices of an access, of which only the last may be a vector.
    fn indices(&self, buffer: &Buffer, indices: &[Expr]) -> Result<Vec<Expr>, Obstacle> {
        let mut all: Vec<_> = indices.iter().map(|index| self.index(buffer, index)).collect::<Result<_, _>>()?;
        let Some(last) = all.pop() else { return Ok(all) };
        let vectors = |index: &&Expr| !index.dtype().is_scalar();
        if let Some(index) = all.iter().find(vectors) {
            let reason = format!("the lanes are not in the last index of `{buffer}`, but in `{index}`");
            return Err(Obstacle { kind: ObstacleKind::LanesElsewhere, reason });
        }
        if !last.dtype().is_scalar() && !buffer.dtype.is_scalar() {
            return Err(format!("`{buffer}` holds vectors already").into());
        }
        all.push(last);
        Ok(all)
    }

    /// An index: scalar, or a ramp.
    fn index(&self, buffer: &Buffer, index: &Expr) -> Result<Expr, Obstacle> {
        if !index.dtype().is_scalar() {
            return if self.depends(index) {
                Err(format!("`{buffer}` has a vector index already").into())
            } else {
                Ok(index.clone())
            };
        }
        if !self.depends(index) {
            return Ok(index.clone());
        }
        let uneven = || Obstacle::from(format!("the lanes of the index `{index}` of `{buffer}` are not evenly spaced"));
        let (base, stride) = linear_in(index, self.var, &self.ranges).ok_or_else(uneven)?;
        let ty = index.dtype().scalar;
        match stride.as_const_int() {
            Some(0) => return Ok(base),
            Some(_) => {}
            None => return Err(uneven()),
        }
        let first = if sabotage::on("vectorize-forgets-start") { None } else { self.min.as_const_int() };
        let start = Expr::int_of(first.unwrap_or(0), ty).ok_or_else(uneven)?;
        let base = simplify(&(base + stride.clone() * start), &self.ranges);
        let stride = if sabotage::on("vectorize-unit-stride") { Expr::Int { value: 1, ty } } else { stride };
        Ok(Expr::Ramp { base: SharedExpr::new(base), stride: SharedExpr::new(stride), lanes: self.count })
    }

    /// Returns the value for all lanes: a vector, or a scalar if the value is the same in all lanes.
    fn vector(&self, expr: &Expr) -> Result<Expr, Obstacle> {
        if !self.depends(expr) {
            return if expr.dtype().is_scalar() {
                Ok(expr.clone())
            } else {
                Err(format!("`{expr}` is a vector already").into())
            };
        }
        // Operands are widened one by one, so that what is equal in all lanes is computed once and broadcast.
        let wide = |expr: &Expr| self.vector(expr).map(|value| SharedExpr::new(self.widened(value)));
        Ok(match expr {
            Expr::Var(var) => {
                let ty = var.dtype().scalar;
                let one = Expr::Int { value: 1, ty };
                Expr::Ramp { base: SharedExpr::new(self.min.clone()), stride: SharedExpr::new(one), lanes: self.count }
            }
            Expr::Binary(op, a, b) => self.binary(*op, self.vector(a)?, self.vector(b)?),
            Expr::Unary(op, a) => Expr::Unary(*op, wide(a)?),
            Expr::Call(function, args) => {
                let args = args.iter().map(|arg| Ok(wide(arg)?.into_expr())).collect::<Result<_, Obstacle>>()?;
                Expr::Call(*function, args)
            }
            Expr::Select(c, a, b) => Expr::Select(SharedExpr::new(self.vector(c)?), wide(a)?, wide(b)?),
            Expr::IfThenElse(c, a, b) => Expr::IfThenElse(SharedExpr::new(self.vector(c)?), wide(a)?, wide(b)?),
            Expr::Cast(ty, value) => Expr::Cast(ty.with_lanes(self.count), wide(value)?),
            Expr::Load { buffer, indices } => {
                let indices = self.indices(buffer, indices)?;
                if let Some(last) = indices.last()
                    && buffer.scope.is_texture()
                    && !(last.dtype().is_scalar() || is_all_of(buffer, last))
                {
                    let reason = format!("`{expr}` reads neither one channel nor the whole texel in order");
                    return Err(Obstacle { kind: ObstacleKind::PartOfTexel, reason });
                }
                Expr::load(buffer, indices)
            }
            Expr::Int { .. } | Expr::Float { .. } => expr.clone(),
            Expr::Ramp { .. } | Expr::Broadcast { .. } => return Err(format!("`{expr}` is a vector already").into()),
        })
    }

    /// An operator on two values; sums of a ramp and a scalar, and products, stay ramps.
    fn binary(&self, op: BinaryOp, a: Expr, b: Expr) -> Expr {
        let scalar = |expr: &Expr| expr.dtype().is_scalar();
        let ramp =
            |base: Expr, stride: SharedExpr| Expr::Ramp { base: SharedExpr::new(base), stride, lanes: self.count };
        match (op, a, b) {
            (BinaryOp::Add, Expr::Ramp { base, stride, .. }, b) if scalar(&b) => ramp(sum(base.into_expr(), b), stride),
            (BinaryOp::Add, a, Expr::Ramp { base, stride, .. }) if scalar(&a) => ramp(sum(a, base.into_expr()), stride),
            (BinaryOp::Sub, Expr::Ramp { base, stride, .. }, b) if scalar(&b) => ramp(base.into_expr() - b, stride),
            (BinaryOp::Sub, a, Expr::Ramp { base, stride, .. })
                if scalar(&a) && sabotage::on("vectorize-reversed-lanes") =>
            {
                ramp(a - base.into_expr(), stride)
            }
            (op, a, b) => Expr::binary(op, self.widened(a), self.widened(b)),
        }
    }

    /// A value in all lanes.
    fn widened(&self, value: Expr) -> Expr {
        if value.dtype().is_scalar() {
            Expr::Broadcast { value: SharedExpr::new(value), lanes: self.count }
        } else {
            value
        }
    }
}

/// Returns whether a last index selects all channels of a texture.
pub(super) fn is_all_of(texture: &Buffer, index: &Expr) -> bool {
    texture.channels().is_some_and(|channels| is_whole_texel(index, channels))
}

/// `a + b`, without an addend of 0.
fn sum(a: Expr, b: Expr) -> Expr {
    match (a.as_const_int(), b.as_const_int()) {
        (Some(0), _) => b,
        (_, Some(0)) => a,
        _ => a + b,
    }
}

/// The constant 0 of a type.
fn zero(ty: ScalarType) -> Expr {
    Expr::int_of(0, ty).unwrap_or_else(|| Expr::float_of(0.0, ty))
}

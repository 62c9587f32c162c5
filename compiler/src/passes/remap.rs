//! Moves the accesses of buffers through index maps: shared by `apply_buffer_transforms`, `tile_layout`,
//! `flatten_buffer` and `lower_texture`.
//!
//! ```text
//! A[i, j]   with the map lambda i, j: [j // 4, i, j % 4]   becomes   A'[j // 4, i, j % 4]
//! ```

use std::sync::Arc;

use tilewright_ir::sabotage;
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{
    Buffer, BufferChange, BufferClaim, DataType, Diagnostic, Evidence, Expr, For, IndexMap, PrimFunc, ScalarType,
    SharedExpr, Span, Stmt, StmtKind, Var, validate,
};

use super::Rewritten;
use tilewright_algebra::{Ranges, linear_in, simplify};

/// A buffer that is replaced, and the map from its indices to those of the new buffer.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    /// The buffer that is replaced.
    pub(crate) before: Buffer,
    /// The buffer that replaces it.
    pub(crate) after: Buffer,
    /// From the old indices to the new ones.
    pub(crate) map: IndexMap,
}

/// Returns the body of `func` with every use of a buffer in `moves` replaced.
///
/// # Errors
/// A vector access whose lanes are not evenly spaced in the new layout, or an access with the wrong number of indices.
pub(crate) fn remap(func: &PrimFunc, moves: &[Move]) -> Result<Stmt, Diagnostic> {
    Remap { moves, ranges: symbol_ranges(func), span: None }.stmt(&func.body)
}

/// Returns the function with its buffers in the claimed layouts, parameters included.
pub(crate) fn relaid(func: &PrimFunc, claims: &[BufferClaim]) -> Result<PrimFunc, Diagnostic> {
    let as_move =
        |claim: &BufferClaim| Move { before: claim.before.clone(), after: claim.after.clone(), map: claim.map.clone() };
    let moves: Vec<_> = claims.iter().map(as_move).collect();
    let mut after = func.clone();
    after.body = remap(func, &moves)?;
    for (_, buffer) in &mut after.buffer_map {
        if let Some(change) = moves.iter().find(|change| change.before == *buffer) {
            *buffer = change.after.clone();
        }
    }
    // An extent that no shape tells any more stays one, if the call still has it.
    let (kept, call) = (after.extents(), [after.scalars(), after.params.clone()].concat());
    after.attrs.extents.extend(func.extents().into_iter().filter(|var| !kept.contains(var) && call.contains(var)));
    check_symbols_bound(func, &after)?;
    Ok(after)
}

/// Checks that the shapes of the arguments in their new layouts still determine every symbol that the function uses.
fn check_symbols_bound(before: &PrimFunc, after: &PrimFunc) -> Result<(), Diagnostic> {
    let bound = after.symbols();
    if before.symbols().iter().all(|var| bound.contains(var)) || sabotage::on("layout-loses-extent") {
        return Ok(());
    }
    let unbound = validate(after).err().into_iter().flatten().find(|found| found.code == "unbound");
    unbound.map_or(Ok(()), |found| {
        let message = format!("{}: in the new layout, no argument's shape tells it", found.message);
        let help = "leave out the `shape` of the layout's map, or pass the extent as a parameter of its own";
        Err(Diagnostic { code: "extent-lost", message, ..found }.with_help(help))
    })
}

/// Returns the function with a body in which buffers have other axes, and the claim about it. Parameters keep the
/// layout that the caller passes (RFC 63, "Removing pre-flattened buffer"): their new axes are declared as aliases in
/// front of the body.
pub(crate) fn regrouped(
    func: &PrimFunc,
    mut body: Stmt,
    moves: Vec<Move>,
    pass: &str,
    change: BufferChange,
) -> Rewritten {
    let is_param = |buffer: &Buffer| func.buffer_map.iter().any(|(_, param)| param == buffer);
    for moved in moves.iter().rev().filter(|moved| is_param(&moved.before)) {
        body = Stmt::new(StmtKind::DeclBuffer { buffer: moved.after.clone(), body: Arc::new(body) });
    }
    let claim = |Move { before, after, map }| BufferClaim { before, after, map, change, padded_axes: Vec::new() };
    let buffers = moves.into_iter().map(claim).collect();
    let evidence = Evidence { pass: pass.to_owned(), buffers, ..Evidence::default() };
    Rewritten { func: PrimFunc { body, ..func.clone() }, evidence, notes: Vec::new() }
}

/// The ranges of the symbolic extents of a function: at least 1.
pub(crate) fn symbol_ranges(func: &PrimFunc) -> Ranges {
    func.extents().iter().fold(Ranges::new(), Ranges::with_symbol)
}

/// The ranges inside a loop.
pub(crate) fn inside(ranges: &Ranges, inner: &For) -> Ranges {
    ranges.clone().with_loop(&inner.var, &inner.min, &inner.extent)
}

/// The rewrite of [`remap`], with the ranges and the source position at the current statement.
struct Remap<'a> {
    moves: &'a [Move],
    ranges: Ranges,
    span: Option<Span>,
}

impl Rewrite for Remap<'_> {
    type Error = Diagnostic;

    fn buffer(&mut self, buffer: &Buffer) -> Result<Buffer, Diagnostic> {
        Ok(self.find(buffer).map_or_else(|| buffer.clone(), |found| found.after.clone()))
    }

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Diagnostic> {
        let rewritten = self.expr_children(expr)?;
        match (expr, rewritten) {
            (Expr::Load { buffer, .. }, Expr::Load { buffer: after, indices }) => {
                Ok(Expr::load(&after, self.indices(buffer, indices.to_vec())?))
            }
            (_, rewritten) => Ok(rewritten),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Diagnostic> {
        let span = self.span;
        self.span = stmt.span.or(span);
        let outer = match &stmt.kind {
            StmtKind::For(inner) => {
                let inside = inside(&self.ranges, inner);
                Some(std::mem::replace(&mut self.ranges, inside))
            }
            StmtKind::Store { .. } | StmtKind::Allocate { .. } | StmtKind::DeclBuffer { .. } | StmtKind::If { .. } => {
                None
            }
            StmtKind::Let { .. } | StmtKind::Seq(_) | StmtKind::Evaluate(_) | StmtKind::Barrier => None,
            StmtKind::Assert { .. } | StmtKind::Attr { .. } => None,
        };
        let mut rewritten = self.stmt_children(stmt)?;
        if let (StmtKind::Store { buffer, .. }, StmtKind::Store { indices, .. }) = (&stmt.kind, &mut rewritten.kind) {
            *indices = self.indices(buffer, std::mem::take(indices))?;
        }
        self.span = span;
        if let Some(outer) = outer {
            self.ranges = outer;
        }
        Ok(rewritten)
    }
}

impl Remap<'_> {
    /// The move of a buffer, if it is replaced.
    fn find(&self, buffer: &Buffer) -> Option<&Move> {
        self.moves.iter().find(|candidate| candidate.before == *buffer)
    }

    /// The indices of the new buffer.
    fn indices(&self, buffer: &Buffer, indices: Vec<Expr>) -> Result<Vec<Expr>, Diagnostic> {
        let Some(found) = self.find(buffer) else { return Ok(indices) };
        if indices.len() != found.map.vars().len() {
            let message = format!("`{buffer}` has {} axes, but {} indices are given", buffer.rank(), indices.len());
            return Err(Diagnostic::error("rank", self.span, message));
        }
        let lanes = indices.last().map_or(1, |index| index.dtype().lanes);
        if lanes == 1 {
            let moved = instantiate(&found.map, &indices);
            return Ok(moved.iter().map(|index| simplify(index, &self.ranges)).collect());
        }
        self.vector_indices(found, &indices, lanes).ok_or_else(|| {
            let last = indices.last().map(ToString::to_string).unwrap_or_default();
            let message =
                format!("the lanes of the index `{last}` of `{buffer}` are not evenly spaced in the new layout");
            let help = "a vector access needs a layout whose last axis follows the vectorised axis";
            Diagnostic::error("vector-index", self.span, message).with_help(help)
        })
    }

    /// Maps the indices of a vector access, with the lane as a variable: the last new index must be linear in the
    /// lane, and the others must not depend on it.
    fn vector_indices(&self, found: &Move, indices: &[Expr], lanes: u16) -> Option<Vec<Expr>> {
        let (vector, scalars) = indices.split_last()?;
        let ty = common_type(&found.map, indices);
        let lane = Var::new("lane", ty);
        let ranges = self.ranges.clone().with(&lane, &Expr::int(lanes.into()));
        let mut indices = scalars.to_vec();
        indices.push(lane_of(vector, &Expr::from(&lane), ty)?);
        let mut moved = instantiate(&found.map, &indices);
        let last = moved.pop()?;
        let moved: Vec<_> = moved.iter().map(|index| simplify(index, &ranges)).collect();
        if moved.iter().any(|index| index.vars().contains(&lane)) {
            return None;
        }
        let (base, stride) = linear_in(&last, &lane, &ranges)?;
        let stride = if sabotage::on("remap-unit-lanes") { Expr::int_of(1, ty)? } else { stride };
        let last = if stride.as_const_int() == Some(0) {
            Expr::Broadcast { value: SharedExpr::new(base), lanes }
        } else {
            Expr::Ramp { base: SharedExpr::new(base), stride: SharedExpr::new(stride), lanes }
        };
        Some(moved.into_iter().chain([last]).collect())
    }
}

/// One lane of a vector of indices, as an expression in the number of the lane.
fn lane_of(vector: &Expr, lane: &Expr, ty: ScalarType) -> Option<Expr> {
    match vector {
        Expr::Ramp { base, stride, .. } => Some(widened(base, ty) + lane.clone() * widened(stride, ty)),
        Expr::Broadcast { value, .. } => Some(widened(value, ty)),
        Expr::Binary(op, a, b) => Some(Expr::binary(*op, lane_of(a, lane, ty)?, lane_of(b, lane, ty)?)),
        Expr::Int { .. } | Expr::Float { .. } | Expr::Var(_) | Expr::Unary(..) | Expr::Call(..) => None,
        Expr::Select(..) | Expr::IfThenElse(..) | Expr::Cast(..) | Expr::Load { .. } => None,
    }
}

/// The index type that fits a map and the indices given to it: `int32`, or `int64` if one of them needs it.
fn common_type(map: &IndexMap, indices: &[Expr]) -> ScalarType {
    let wide = |ty: ScalarType| matches!(ty, ScalarType::Int64 | ScalarType::UInt64 | ScalarType::UInt32);
    let mut types = map.outputs().iter().chain(indices).map(|expr| expr.dtype().scalar);
    if types.any(wide) { ScalarType::Int64 } else { ScalarType::Int32 }
}

/// The outputs of a map for given indices, in one type.
fn instantiate(map: &IndexMap, indices: &[Expr]) -> Vec<Expr> {
    let ty = common_type(map, indices);
    let image = |var: &Var| {
        let position = map.vars().iter().position(|candidate| candidate == var);
        position.and_then(|position| indices.get(position)).cloned()
    };
    map.outputs().iter().map(|output| retyped(output, ty, &image)).collect()
}

/// An integer expression in another integer type, with variables replaced.
pub(crate) fn retyped(expr: &Expr, ty: ScalarType, image: &impl Fn(&Var) -> Option<Expr>) -> Expr {
    let part = |expr: &Expr| retyped(expr, ty, image);
    let boxed = |expr: &Expr| SharedExpr::new(part(expr));
    match expr {
        Expr::Var(var) => image(var).map_or_else(|| cast(expr.clone(), ty), |index| widened(&index, ty)),
        Expr::Int { ty: ScalarType::Bool, .. } => expr.clone(),
        Expr::Int { value, .. } => Expr::int_of(*value, ty).unwrap_or_else(|| expr.clone()),
        Expr::Binary(op, a, b) => Expr::Binary(*op, boxed(a), boxed(b)),
        Expr::Unary(op, a) => Expr::Unary(*op, boxed(a)),
        Expr::Call(function, args) => Expr::Call(*function, args.iter().map(part).collect()),
        Expr::Select(c, a, b) => Expr::Select(boxed(c), boxed(a), boxed(b)),
        Expr::IfThenElse(c, a, b) => Expr::IfThenElse(boxed(c), boxed(a), boxed(b)),
        Expr::Cast(_, value) => part(value),
        // These are values of their own type, so they are converted as a whole.
        Expr::Float { .. } | Expr::Load { .. } | Expr::Ramp { .. } | Expr::Broadcast { .. } => cast(expr.clone(), ty),
    }
}

/// An index in another type, with the conversion moved to its leaves, so that no sum is computed in the narrow type.
fn widened(index: &Expr, ty: ScalarType) -> Expr {
    if index.dtype().scalar == ty { index.clone() } else { retyped(index, ty, &|_| None) }
}

fn cast(expr: Expr, ty: ScalarType) -> Expr {
    if expr.dtype().scalar == ty { expr } else { Expr::Cast(DataType::scalar(ty), SharedExpr::new(expr)) }
}

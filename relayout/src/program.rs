//! Writes a move as a function in TIR: as its index maps say it, and as a strategy does it.
//!
//! ```text
//! plain    for p0, p1, p2, p3 in T.grid(5, 2, 8, 128): B[p0, p1, p2, p3] = fill                 if there is padding
//!          for i0, i1 in T.grid(37, 155): B[i0 // 8, i1 // 128, i0 % 8, i1 % 128] = A[i0, i1]
//!
//! moved    for q0, q1, r0, r1 in T.grid(5, 2, 8, 128):
//!              if q0 * 8 + r0 < 37 and q1 * 128 + r1 < 155: B[q0, q1, r0, r1] = A[q0 * 8 + r0, q1 * 128 + r1]
//!              else: B[q0, q1, r0, r1] = fill
//! ```
//!
//! The buffers have the physical shapes; passes flatten them. [`moved`] reads the strides, extents and bounds of the strategy and nothing
//! else, so that what is proved of the function holds of the data that the executor runs.

use std::sync::Arc;

use tilewright_ir::{BinaryOp, Buffer, DataType, Expr, ForKind, IndexMap, PrimFunc, ScalarType, Stmt, StmtKind, Var};

use crate::digits::Relayout;
use crate::strategy::{Bound, Edge, Fill, Loop, Strategy};

/// The type of the elements in a program, and the value of the slots that hold none.
#[derive(Clone, Debug)]
pub struct Elements {
    /// The type; its size is that of the elements that are moved.
    pub dtype: DataType,
    /// The value of padding.
    pub fill: Expr,
}

impl Elements {
    /// Returns elements of the given type, with padding of value 0.
    pub fn zero(dtype: DataType) -> Self {
        let scalar = dtype.scalar;
        let zero = Expr::int_of(0, scalar).unwrap_or_else(|| Expr::float_of(0.0, scalar));
        let fill = if dtype.is_scalar() { zero } else { Expr::Broadcast { value: zero.into(), lanes: dtype.lanes } };
        Self { dtype, fill }
    }
}

/// Returns the function that applies both maps to every logical index, after it has filled all slots if there are more of them.
pub fn plain(relayout: &Relayout, elements: &Elements) -> PrimFunc {
    let ty = index_type(relayout);
    let numbers = |extents: &[u64]| -> Vec<Expr> { extents.iter().map(|&extent| number(extent, ty)).collect() };
    let [from, to] = [&relayout.from, &relayout.to].map(|side| numbers(&side.shape));
    let maps = [&relayout.from.map, &relayout.to.map];
    // If there are as many elements as slots, each slot gets one: that no two get the same is an obligation of its own.
    let is_full = relayout.to.slots() == Ok(relayout.extents.iter().product());
    plain_of(&numbers(&relayout.extents), (maps[0], &from), (maps[1], &to), elements, is_full)
}

/// Returns the function that applies two maps to every logical index of a shape that may be symbolic, after it has filled all slots unless
/// `is_full` says that each gets an element. A map comes with its physical shape.
pub fn plain_of(
    extents: &[Expr],
    (from, from_shape): (&IndexMap, &[Expr]),
    (to, to_shape): (&IndexMap, &[Expr]),
    elements: &Elements,
    is_full: bool,
) -> PrimFunc {
    let ty = from.vars().first().map_or(ScalarType::Int32, |var| var.dtype().scalar);
    let buffer = |name: &str, shape: &[Expr]| Buffer::compact(name, elements.dtype, shape.to_vec());
    let (a, b) = (buffer("A", from_shape), buffer("B", to_shape));
    let vars: Vec<Var> = (0..extents.len()).map(|axis| Var::new(format!("i{axis}"), ty)).collect();
    let index: Vec<Expr> = vars.iter().map(Expr::from).collect();
    let store = Stmt::store(&b, to.apply(&index), Expr::load(&a, from.apply(&index)));
    let copy = around(vars.into_iter().zip(extents.iter().cloned()).collect(), store);
    let fill = (!is_full).then(|| filled(&b, to_shape, elements, ty));
    function(&a, &b, Stmt::seq(fill.into_iter().chain([copy]).collect()))
}

/// Returns the function that does what the strategy says.
pub fn moved(strategy: &Strategy, relayout: &Relayout, elements: &Elements) -> PrimFunc {
    let ty = index_type(relayout);
    let (a, b) = buffers(strategy, elements, ty);
    let vars = names(&strategy.loops, ty);
    let values: Vec<Expr> = vars.iter().map(Expr::from).collect();
    let value = Expr::load(&a, place(&strategy.from, &strategy.loops, &values, |one| &one.from, ty));
    let store_index = place(&strategy.to, &strategy.loops, &values, |one| &one.to, ty);
    let store = Stmt::store(&b, store_index.clone(), value);
    let fill = fills_in_place(strategy, elements).map(|fill| Stmt::store(&b, store_index, fill));
    let guarded = guarded(strategy, |_| true, &values, (store, fill), ty);
    let extents = strategy.loops.iter().map(|one| one.extent);
    let copy = nested(vars.into_iter().zip(extents).collect(), guarded, ty);
    with_fill(strategy, copy, (&a, &b), elements, ty)
}

/// The value for the slots at which a bound does not hold, if they are filled by the nest that moves the elements.
pub(crate) fn fills_in_place(strategy: &Strategy, elements: &Elements) -> Option<Expr> {
    strategy.fills_what_bounds_leave().then(|| elements.fill.clone())
}

/// A statement under the bounds that a test picks by their numbers, the other one where there is a slot and they do not hold.
pub(crate) fn guarded(
    strategy: &Strategy,
    is_picked: impl Fn(&Bound) -> bool,
    values: &[Expr],
    (then, otherwise): (Stmt, Option<Stmt>),
    ty: ScalarType,
) -> Stmt {
    let picked = |bounds: &[Bound]| {
        let picked = bounds.iter().filter(|bound| is_picked(bound)).map(|bound| holds(bound, values, ty));
        picked.reduce(Expr::and)
    };
    let Some(otherwise) = otherwise else {
        return match picked(&strategy.bounds) {
            Some(condition) => Stmt::guarded(condition, then),
            None => then,
        };
    };
    let own: Vec<Bound> = strategy.bounds.iter().filter(|bound| !strategy.cuts.contains(bound)).cloned().collect();
    let body = match picked(&own) {
        Some(cond) => {
            let (then_body, else_body) = (Arc::new(then), Some(Arc::new(otherwise)));
            Stmt::new(StmtKind::If { cond, then_body, else_body })
        }
        None => then,
    };
    match picked(&strategy.cuts) {
        Some(condition) => Stmt::guarded(condition, body),
        None => body,
    }
}

/// The function of a nest that moves the elements, with those that fill the other slots.
pub(crate) fn with_fill(
    strategy: &Strategy,
    copy: Stmt,
    (a, b): (&Buffer, &Buffer),
    elements: &Elements,
    ty: ScalarType,
) -> PrimFunc {
    let parts = match &strategy.fill {
        Fill::None => vec![copy],
        Fill::Edges(_) if strategy.fills_what_bounds_leave() => vec![copy],
        Fill::Whole => vec![filled(b, &b.shape, elements, ty), copy],
        Fill::Edges(edges) => {
            let fill = |at: usize| filled_edge(&edges[..=at], b, &strategy.to, elements, ty);
            std::iter::once(copy).chain((0..edges.len()).filter_map(fill)).collect()
        }
    };
    function(a, b, Stmt::seq(parts))
}

/// That a bound holds for values of the loops.
pub(crate) fn holds(bound: &Bound, values: &[Expr], ty: ScalarType) -> Expr {
    left_side(bound, values, ty).lt(number(bound.limit, ty))
}

/// A nest that fills the slots beyond the end of the last one of some ragged axes, but not those beyond the ends of the others, which are
/// filled already. Its loops begin at the first value from which on there are such slots. It is needed where the nest that moves the
/// elements does not fill what its bounds leave ([`Strategy::fills_what_bounds_leave`]).
fn filled_edge(edges: &[Edge], b: &Buffer, first: &[u64], elements: &Elements, ty: ScalarType) -> Option<Stmt> {
    let (edge, others) = edges.split_last()?;
    let vars = names(&edge.loops, ty);
    let starts: Vec<u64> = (0..edge.loops.len()).map(|at| edge.start(at)).collect();
    let shifted = |(var, start): (&Var, &u64)| match start {
        0 => Expr::from(var),
        start => Expr::from(var) + number(*start, ty),
    };
    let values: Vec<Expr> = vars.iter().zip(&starts).map(shifted).collect();
    let place = place(first, &edge.loops, &values, |one| &one.to, ty);
    let beyond = Expr::binary(BinaryOp::Ge, left_side(&edge.bound, &values, ty), number(edge.bound.limit, ty));
    let inside = others.iter().map(|other| holds(&other.bound, &values, ty));
    let condition = std::iter::once(beyond).chain(inside).reduce(Expr::and)?;
    let store = Stmt::guarded(condition, Stmt::store(b, place, elements.fill.clone()));
    let extents = edge.loops.iter().zip(&starts).map(|(one, start)| one.extent.saturating_sub(*start));
    Some(nested(vars.into_iter().zip(extents).collect(), store, ty))
}

/// The type of the indices of the maps.
pub(crate) fn index_type(relayout: &Relayout) -> ScalarType {
    relayout.from.map.vars().first().map_or(ScalarType::Int32, |var| var.dtype().scalar)
}

pub(crate) fn number(value: u64, ty: ScalarType) -> Expr {
    Expr::Int { value: value.into(), ty }
}

/// The buffers of both memories.
pub(crate) fn buffers(strategy: &Strategy, elements: &Elements, ty: ScalarType) -> (Buffer, Buffer) {
    let buffer = |name: &str, shape: &[u64]| {
        let shape = shape.iter().map(|&extent| number(extent, ty)).collect();
        Buffer::compact(name, elements.dtype, shape)
    };
    (buffer("A", &strategy.from_shape), buffer("B", &strategy.to_shape))
}

fn function(a: &Buffer, b: &Buffer, body: Stmt) -> PrimFunc {
    let handle = |buffer: &Buffer| Var::new(buffer.name.clone(), DataType::HANDLE);
    let params = vec![handle(a), handle(b)];
    let buffer_map = params.iter().cloned().zip([a.clone(), b.clone()]).collect();
    PrimFunc { name: "relayout".to_owned(), params, buffer_map, attrs: tilewright_ir::FuncAttrs::default(), body }
}

/// Returns the name of each loop of a strategy in its program, of its axis and its weight: `i1_128` counts blocks of 128 on axis 1.
pub fn loop_names(strategy: &Strategy) -> Vec<String> {
    strategy.loops.iter().map(name).collect()
}

fn name(one: &Loop) -> String {
    match one.weight {
        1 => format!("i{}", one.axis),
        weight => format!("i{}_{weight}", one.axis),
    }
}

fn names(loops: &[Loop], ty: ScalarType) -> Vec<Var> {
    loops.iter().map(|one| Var::new(name(one), ty)).collect()
}

/// Loops around a statement, the first outside.
fn nested(loops: Vec<(Var, u64)>, body: Stmt, ty: ScalarType) -> Stmt {
    around(loops.into_iter().map(|(var, extent)| (var, number(extent, ty))).collect(), body)
}

fn around(loops: Vec<(Var, Expr)>, body: Stmt) -> Stmt {
    loops.into_iter().rev().fold(body, |body, (var, extent)| Stmt::for_loop(&var, extent, ForKind::Serial, body))
}

/// A nest that fills all slots of the destination.
fn filled(b: &Buffer, shape: &[Expr], elements: &Elements, ty: ScalarType) -> Stmt {
    let vars: Vec<Var> = (0..shape.len()).map(|axis| Var::new(format!("p{axis}"), ty)).collect();
    let index: Vec<Expr> = vars.iter().map(Expr::from).collect();
    let store = Stmt::store(b, index, elements.fill.clone());
    around(vars.into_iter().zip(shape.iter().cloned()).collect(), store)
}

/// The physical index of an iteration, whose loops have these values.
pub(crate) fn place(
    first: &[u64],
    loops: &[Loop],
    values: &[Expr],
    steps: fn(&Loop) -> &[u64],
    ty: ScalarType,
) -> Vec<Expr> {
    let of_axis = |(axis, first): (usize, &u64)| {
        let terms = loops.iter().zip(values).filter_map(|(one, value)| term(value, *steps(one).get(axis)?, ty));
        let base = (*first != 0).then(|| number(*first, ty));
        terms.chain(base).reduce(|a, b| a + b).unwrap_or_else(|| number(0, ty))
    };
    first.iter().enumerate().map(of_axis).collect()
}

fn left_side(bound: &Bound, values: &[Expr], ty: ScalarType) -> Expr {
    let mut terms = bound.terms.clone();
    terms.sort_unstable();
    let sum = terms.iter().filter_map(|&(at, factor)| term(values.get(at)?, factor, ty)).reduce(|a, b| a + b);
    sum.unwrap_or_else(|| number(0, ty))
}

/// A value times a factor. `None` if the factor is 0.
fn term(value: &Expr, factor: u64, ty: ScalarType) -> Option<Expr> {
    match factor {
        0 => None,
        1 => Some(value.clone()),
        _ => Some(value.clone() * number(factor, ty)),
    }
}

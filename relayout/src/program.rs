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

use tilewright_ir::{BinaryOp, Buffer, DataType, Expr, ForKind, PrimFunc, ScalarType, Stmt, StmtKind, Var};

use crate::digits::Relayout;
use crate::sizes::{Maps, Sizes};
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
    let sizes = Sizes::known(relayout);
    let extents: Vec<Expr> = relayout.extents.iter().map(|&extent| sizes.constant(extent)).collect();
    let (from, to) = ((&relayout.from.map, &*sizes.from), (&relayout.to.map, &*sizes.to));
    // If there are as many elements as slots, each slot gets one: that no two get the same is an obligation of its own.
    let is_full = relayout.to.slots() == Ok(relayout.extents.iter().product());
    plain_of(Maps { extents: &extents, from, to }, elements, is_full)
}

/// Returns the function that applies two maps to every logical index of a shape that may be symbolic, after it has filled all slots unless
/// `is_full` says that each gets an element. A map comes with its physical shape.
pub fn plain_of(maps: Maps<'_>, elements: &Elements, is_full: bool) -> PrimFunc {
    let Maps { extents, from: (from, from_shape), to: (to, to_shape) } = maps;
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
pub fn moved(strategy: &Strategy, sizes: &Sizes, elements: &Elements) -> PrimFunc {
    let (a, b) = buffers(sizes, elements);
    let vars = names(&strategy.loops, sizes.ty);
    let values: Vec<Expr> = vars.iter().map(Expr::from).collect();
    let value = Expr::load(&a, place(&strategy.from, &strategy.loops, &values, |one| &one.from, sizes));
    let store_index = place(&strategy.to, &strategy.loops, &values, |one| &one.to, sizes);
    let store = Stmt::store(&b, store_index.clone(), value);
    let fill = fills_in_place(strategy, elements).map(|fill| Stmt::store(&b, store_index, fill));
    let guarded = guarded((strategy, sizes), |_| true, &values, (store, fill));
    let extents = strategy.loops.iter().map(|one| sizes.extent(one));
    let copy = around(vars.into_iter().zip(extents).collect(), guarded);
    with_fill((strategy, sizes), copy, (&a, &b), elements)
}

/// The value for the slots at which a bound does not hold, if they are filled by the nest that moves the elements.
pub(crate) fn fills_in_place(strategy: &Strategy, elements: &Elements) -> Option<Expr> {
    strategy.fills_what_bounds_leave().then(|| elements.fill.clone())
}

/// A statement under the bounds that a test picks by their numbers, the other one where there is a slot and they do not hold.
pub(crate) fn guarded(
    (strategy, sizes): (&Strategy, &Sizes),
    is_picked: impl Fn(&Bound) -> bool,
    values: &[Expr],
    (then, otherwise): (Stmt, Option<Stmt>),
) -> Stmt {
    let holds = |bound: &Bound| holds(bound, &strategy.loops, values, sizes);
    let picked = |bounds: &[Bound]| bounds.iter().filter(|bound| is_picked(bound)).map(holds).reduce(Expr::and);
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
    (strategy, sizes): (&Strategy, &Sizes),
    copy: Stmt,
    (a, b): (&Buffer, &Buffer),
    elements: &Elements,
) -> PrimFunc {
    let parts = match &strategy.fill {
        Fill::None => vec![copy],
        Fill::Edges(_) if strategy.fills_what_bounds_leave() => vec![copy],
        Fill::Whole => vec![filled(b, &b.shape, elements, sizes.ty), copy],
        Fill::Edges(edges) => {
            let fill = |at: usize| filled_edge(&edges[..=at], b, &strategy.to, elements, sizes);
            std::iter::once(copy).chain((0..edges.len()).filter_map(fill)).collect()
        }
    };
    function(a, b, Stmt::seq(parts))
}

/// That a bound holds for values of the loops.
pub(crate) fn holds(bound: &Bound, loops: &[Loop], values: &[Expr], sizes: &Sizes) -> Expr {
    left_side(bound, values, sizes).lt(sizes.limit(bound, loops))
}

/// A nest that fills the slots beyond the end of the last one of some ragged axes, but not those beyond the ends of the others, which are
/// filled already. Its loops begin at the first value from which on there are such slots. It is needed where the nest that moves the
/// elements does not fill what its bounds leave ([`Strategy::fills_what_bounds_leave`]).
fn filled_edge(edges: &[Edge], b: &Buffer, first: &[u64], elements: &Elements, sizes: &Sizes) -> Option<Stmt> {
    let (edge, others) = edges.split_last()?;
    let vars = names(&edge.loops, sizes.ty);
    let starts: Vec<u64> = (0..edge.loops.len()).map(|at| edge.start(at)).collect();
    let shifted = |(var, start): (&Var, &u64)| match start {
        0 => Expr::from(var),
        start => Expr::from(var) + sizes.constant(*start),
    };
    let values: Vec<Expr> = vars.iter().zip(&starts).map(shifted).collect();
    let place = place(first, &edge.loops, &values, |one| &one.to, sizes);
    let limit = sizes.constant(edge.bound.limit);
    let beyond = Expr::binary(BinaryOp::Ge, left_side(&edge.bound, &values, sizes), limit);
    let inside = others.iter().map(|other| holds(&other.bound, &other.loops, &values, sizes));
    let condition = std::iter::once(beyond).chain(inside).reduce(Expr::and)?;
    let store = Stmt::guarded(condition, Stmt::store(b, place, elements.fill.clone()));
    let count = |(one, start): (&Loop, &u64)| sizes.constant(one.extent.saturating_sub(*start));
    let extents = edge.loops.iter().zip(&starts).map(count);
    Some(around(vars.into_iter().zip(extents).collect(), store))
}

/// The buffers of both memories.
pub(crate) fn buffers(sizes: &Sizes, elements: &Elements) -> (Buffer, Buffer) {
    let buffer = |name: &str, shape: &[Expr]| Buffer::compact(name, elements.dtype, shape.to_vec());
    (buffer("A", &sizes.from), buffer("B", &sizes.to))
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
    sizes: &Sizes,
) -> Vec<Expr> {
    let of_axis = |(axis, first): (usize, &u64)| {
        let terms = loops.iter().zip(values).filter_map(|(one, value)| term(value, *steps(one).get(axis)?, sizes));
        let base = (*first != 0).then(|| sizes.step(*first));
        terms.chain(base).reduce(|a, b| a + b).unwrap_or_else(|| sizes.constant(0))
    };
    first.iter().enumerate().map(of_axis).collect()
}

fn left_side(bound: &Bound, values: &[Expr], sizes: &Sizes) -> Expr {
    let mut terms = bound.terms.clone();
    terms.sort_unstable();
    let sum = terms.iter().filter_map(|&(at, factor)| term(values.get(at)?, factor, sizes)).reduce(|a, b| a + b);
    sum.unwrap_or_else(|| sizes.constant(0))
}

/// A value times a factor. `None` if the factor is 0.
fn term(value: &Expr, factor: u64, sizes: &Sizes) -> Option<Expr> {
    match factor {
        0 => None,
        1 => Some(value.clone()),
        _ => Some(value.clone() * sizes.step(factor)),
    }
}

//! Whether work-items are independent: every element that a nest writes is touched by one work-item only.
//!
//! The answer is conservative. It is yes if in every access the index is a number in mixed radix, whose digits are variables
//! with constant weights, and the work-item's variables are the same digits of it everywhere:
//!
//! ```text
//! B[i * 9 + j] = A[i * 9 + j]     i in 0..7, j in 0..9     i and j are digits: iterations are independent
//! B[i * 8 + j] = A[i * 8 + j]                              (0, 8) and (1, 0) write the same element: they are not
//! ```

use std::collections::BTreeMap;

use tilewright_algebra::simplify;
use tilewright_ir::{
    BinaryOp, Buffer, DataType, Expr, For, ForKind, Interval, Scope, SharedExpr, Stmt, StmtKind, Var, gcd,
};

use super::launch::bound_loops;
use super::range::{Mode, Ranges, constant};

/// A load or a store of a nest.
#[derive(Clone, Debug)]
struct ElementAccess<'a> {
    buffer: &'a Buffer,
    indices: &'a [Expr],
    written: bool,
}

/// A digit of an index in mixed radix; its least value is 0.
#[derive(Clone, Debug)]
struct Digit {
    /// The expression whose value, less its least value, is the digit.
    term: Expr,
    /// The factor that it is multiplied by.
    weight: i128,
    /// Its greatest value.
    max: i128,
}

/// Whether different values of `vars` never touch one element of memory that is written in `nest`.
///
/// `ranges` knows the variables from outside of the nest. Memory allocated in it is left out: it is private.
pub(crate) fn separates(vars: &[Var], nest: &Stmt, ranges: &Ranges) -> bool {
    separates_in(vars, nest, ranges, |_| true)
}

/// [`separates`] for the buffers that `counts` accepts; accesses of others are ignored.
pub(crate) fn separates_in(vars: &[Var], nest: &Stmt, ranges: &Ranges, counts: impl Fn(&Buffer) -> bool) -> bool {
    let mut ranges = ranges.clone();
    let mut private = Vec::new();
    // The walk meets a loop before the loops inside it, so an extent is ranged after the variables that it uses.
    nest.walk(&mut |stmt| match &stmt.kind {
        StmtKind::For(inner) => ranges.insert_loop(&inner.var, &inner.min, &inner.extent),
        // The work-items of a group share it.
        StmtKind::Allocate { buffer, .. } if buffer.scope == Scope::Shared => {}
        StmtKind::Allocate { buffer, body } if buffer.scope == Scope::Local && !bound_loops(body).is_empty() => {}
        StmtKind::Allocate { buffer, .. } => private.push(buffer.data.clone()),
        StmtKind::Store { .. }
        | StmtKind::DeclBuffer { .. }
        | StmtKind::Attr { .. }
        | StmtKind::If { .. }
        | StmtKind::Let { .. }
        | StmtKind::Seq(_)
        | StmtKind::Evaluate(_)
        | StmtKind::Barrier
        | StmtKind::Assert { .. } => {}
    });
    let mut allocations: BTreeMap<&Var, Vec<ElementAccess<'_>>> = BTreeMap::new();
    for access in accesses(nest) {
        if !private.contains(&access.buffer.data) && counts(access.buffer) {
            allocations.entry(&access.buffer.data).or_default().push(access);
        }
    }
    // Loads do not conflict with loads. In every other allocation each variable must be decodable by itself: one that is not
    // leaves two work-items, which differ in it alone, the same element.
    allocations.values().filter(|group| group.iter().any(|access| access.written)).all(|group| {
        let first = group[0].buffer;
        group.iter().all(|access| same_geometry(first, access.buffer))
            && vars.iter().all(|var| decodes(var, group, &ranges))
    })
}

/// Whether each access to a buffer of one axis, in the body of its allocation, is in the part of the work-item: the buffer has equal parts, one for
/// each value of `threads`, which have these extents, in row-major order.
pub(crate) fn has_parts(buffer: &Buffer, body: &Stmt, threads: &[(Var, i128)], ranges: &Ranges) -> bool {
    let count = threads.iter().try_fold(1i128, |count, (_, extent)| count.checked_mul(*extent));
    let Some((size, count)) = buffer.shape.iter().map(constant).reduce(|a, b| a?.checked_mul(b?)).flatten().zip(count)
    else {
        return false;
    };
    if buffer.rank() != 1 || count < 1 || size % count != 0 {
        return false;
    }
    let mut ranges = ranges.clone();
    body.walk(&mut |stmt| {
        if let StmtKind::For(inner) = &stmt.kind {
            ranges.insert_loop(&inner.var, &inner.min, &inner.extent);
        }
    });
    let part = size / count;
    let is_own = |index: &Expr| {
        let (first, length) = match index {
            Expr::Ramp { base, stride, lanes } => {
                (&**base, constant(stride).map(|stride| stride * i128::from(*lanes - 1)))
            }
            other => (other, Some(0)),
        };
        let scalar = first.dtype().scalar;
        let number = threads.iter().fold(Expr::Int { value: 0, ty: scalar }, |number, (var, extent)| {
            number * Expr::Int { value: *extent, ty: scalar } + converted(var, first.dtype())
        });
        let rest = Expr::binary(BinaryOp::Sub, first.clone(), number * Expr::Int { value: part, ty: scalar });
        let range = ranges.range_of(&simplify(&rest, &tilewright_algebra::Ranges::new()), Mode::Index);
        first.dtype().is_scalar()
            && length.is_some_and(|length| length >= 0 && range.low >= 0 && range.high + length < part)
    };
    let all = accesses(body);
    let mut own = all.iter().filter(|access| access.buffer.aliases(buffer));
    own.all(|access| access.buffer == buffer && access.indices.first().is_some_and(is_own))
}

/// A variable as a value of a type: work-items count in 32 bits, whatever the type of an index.
pub(crate) fn converted(var: &Var, ty: DataType) -> Expr {
    if var.dtype() == ty { Expr::from(var) } else { Expr::Cast(ty, SharedExpr::new(Expr::from(var))) }
}

/// The loops that lead a nest, one directly in the other.
pub(crate) fn leading_loops(nest: &Stmt) -> Vec<&For> {
    let mut loops = Vec::new();
    let mut stmt = nest;
    loop {
        match &stmt.kind {
            StmtKind::For(inner) if matches!(inner.kind, ForKind::Serial | ForKind::Parallel | ForKind::Unrolled) => {
                loops.push(&**inner);
                stmt = &inner.body;
            }
            StmtKind::Attr { body, .. } | StmtKind::DeclBuffer { body, .. } => stmt = body,
            // A vectorized loop runs as lanes, and a loop bound to a thread is run by the launch.
            StmtKind::For(_)
            | StmtKind::Store { .. }
            | StmtKind::Allocate { .. }
            | StmtKind::If { .. }
            | StmtKind::Let { .. }
            | StmtKind::Seq(_)
            | StmtKind::Evaluate(_)
            | StmtKind::Barrier
            | StmtKind::Assert { .. } => return loops,
        }
    }
}

/// The loads and stores of a nest, those in conditions and extents too.
fn accesses(nest: &Stmt) -> Vec<ElementAccess<'_>> {
    let mut found = Vec::new();
    nest.walk(&mut |stmt| {
        if let StmtKind::Store { buffer, indices, .. } = &stmt.kind {
            found.push(ElementAccess { buffer, indices, written: true });
        }
        for expr in stmt.exprs() {
            expr.walk(&mut |expr| {
                if let Expr::Load { buffer, indices } = expr {
                    found.push(ElementAccess { buffer, indices, written: false });
                }
            });
        }
    });
    found
}

/// Returns whether equal indices address the same element in two buffers that share their memory.
fn same_geometry(a: &Buffer, b: &Buffer) -> bool {
    a == b || (a.dtype == b.dtype && a.shape == b.shape && a.strides == b.strides && a.elem_offset == b.elem_offset)
}

/// Returns whether the value of `var` is a function of the accessed element, and the same function for every access.
fn decodes(var: &Var, group: &[ElementAccess<'_>], ranges: &Ranges) -> bool {
    let is_fixed = ranges.range_of(&Expr::from(var), Mode::Index).constant().is_some();
    let rank = group[0].indices.len();
    is_fixed || (0..rank).any(|axis| decodes_on(var, group, axis, ranges).is_some())
}

/// [`decodes`] on one axis of the indices.
fn decodes_on(var: &Var, group: &[ElementAccess<'_>], axis: usize, ranges: &Ranges) -> Option<()> {
    let (mut weight, mut first, mut period) = (None, None, 0);
    let mut max = 0;
    for access in group {
        let (digits, start) = digits(&access.indices[axis], ranges)?;
        let own = digits.iter().find(|digit| digit.term == Expr::from(var))?;
        if *weight.get_or_insert(own.weight) != own.weight || *first.get_or_insert(start) != start {
            return None;
        }
        max = own.max;
        let others = || digits.iter().filter(|digit| digit.term != own.term);
        let mut low = others().filter(|digit| digit.weight < own.weight);
        let low = low.try_fold(0i128, |sum, digit| sum.checked_add(digit.weight.checked_mul(digit.max)?))?;
        // The lower digits may not carry into this one.
        if low >= own.weight {
            return None;
        }
        // This digit may not carry into the higher ones: their weights are multiples of the period.
        for digit in others().filter(|digit| digit.weight >= own.weight) {
            period = gcd(period, digit.weight.unsigned_abs());
        }
    }
    let span = weight?.checked_mul(max.checked_add(1)?)?;
    (period == 0 || span.unsigned_abs() <= period).then_some(())
}

/// Splits an index into digits, whose least value is 0, and the least value of the index.
///
/// Returns `None` if the index is not a sum of terms with constant weights of at least 0.
fn digits(index: &Expr, ranges: &Ranges) -> Option<(Vec<Digit>, i128)> {
    let mut terms = Vec::new();
    let mut start = 0;
    collect(index, 1, &mut terms, &mut start)?;
    while let Some((whole, weight)) = take_pair(&mut terms) {
        collect(&whole, weight, &mut terms, &mut start)?;
    }
    let mut digits = Vec::new();
    for (term, weight) in terms {
        let Interval { low, high } = match &term {
            // The lanes of a vector index.
            Expr::Ramp { lanes, .. } => Interval { low: 0, high: i128::from(*lanes) - 1 },
            _ => ranges.range_of(&term, Mode::Index),
        };
        if weight < 0 {
            return None;
        }
        start += weight.checked_mul(low)?;
        if weight > 0 && high > low {
            digits.push(Digit { term, weight, max: high - low });
        }
    }
    Some((digits, start))
}

/// Removes the terms `x // c * (c * weight)` and `x % c * weight` from a sum and returns `x` and `weight`: their sum is
/// `x * weight`. Fused loops produce such pairs.
fn take_pair(terms: &mut Vec<(Expr, i128)>) -> Option<(Expr, i128)> {
    for low in 0..terms.len() {
        let (Expr::Binary(BinaryOp::FloorMod, x, c), weight) = &terms[low] else { continue };
        let Some(divisor) = constant(c).filter(|&divisor| divisor > 0) else { continue };
        let (x, weight) = ((**x).clone(), *weight);
        // Of `(y // b) % c` the upper half may be written `y // (b * c)`.
        let quotients = |expr: &Expr| match (expr, &x) {
            (Expr::Binary(BinaryOp::FloorDiv, y, d), _) if **y == x && constant(d) == Some(divisor) => true,
            (Expr::Binary(BinaryOp::FloorDiv, y, d), Expr::Binary(BinaryOp::FloorDiv, z, b)) => {
                let both = constant(b).filter(|&b| b > 0).and_then(|b| b.checked_mul(divisor));
                y == z && both.is_some() && constant(d) == both
            }
            _ => false,
        };
        let upper = weight.checked_mul(divisor)?;
        if let Some(high) = terms.iter().position(|(expr, other)| *other == upper && quotients(expr)) {
            terms.remove(low.max(high));
            terms.remove(low.min(high));
            return Some((x, weight));
        }
    }
    None
}

/// Adds `expr * factor` to a sum of weighted terms and the constant `start`. Returns `None` if a weight is not constant or
/// overflows.
fn collect(expr: &Expr, factor: i128, terms: &mut Vec<(Expr, i128)>, start: &mut i128) -> Option<()> {
    if let Some(value) = constant(expr) {
        *start = start.checked_add(value.checked_mul(factor)?)?;
        return Some(());
    }
    match expr {
        Expr::Binary(BinaryOp::Add, a, b) => {
            collect(a, factor, terms, start)?;
            collect(b, factor, terms, start)
        }
        Expr::Binary(BinaryOp::Sub, a, b) => {
            collect(a, factor, terms, start)?;
            collect(b, factor.checked_neg()?, terms, start)
        }
        Expr::Binary(BinaryOp::Mul, a, b) => match (constant(a), constant(b)) {
            (Some(value), _) => collect(b, factor.checked_mul(value)?, terms, start),
            (_, Some(value)) => collect(a, factor.checked_mul(value)?, terms, start),
            _ => None,
        },
        Expr::Ramp { base, stride, .. } => {
            let stride = constant(stride)?;
            // The ramp stands for its lane number alone, which `digits` ranges from 0; its base is a sum of its own.
            terms.push((expr.clone(), factor.checked_mul(stride)?));
            collect(base, factor, terms, start)
        }
        _ if !expr.dtype().is_scalar() => None,
        _ => {
            // Equal terms are one digit: `i * 8 + i` is a digit of weight 9, not two digits that overlap.
            match terms.iter_mut().find(|(term, _)| term == expr) {
                Some((_, weight)) => *weight = weight.checked_add(factor)?,
                None => terms.push((expr.clone(), factor)),
            }
            Some(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::ScalarType;

    fn nest(extents: [i64; 2], index: impl Fn(Expr, Expr) -> Expr) -> (Vec<Var>, Stmt) {
        let vars = ["i", "j"].map(Var::index);
        let buffer = Buffer::compact("B", ScalarType::Float32, vec![Expr::int(1000)]);
        let index = index(Expr::from(&vars[0]), Expr::from(&vars[1]));
        let value = Expr::float_of(1.0, ScalarType::Float32);
        let store = Stmt::store(&buffer, vec![index], value);
        let inner = Stmt::for_loop(&vars[1], Expr::int(extents[1]), ForKind::Serial, store);
        (vars.to_vec(), Stmt::for_loop(&vars[0], Expr::int(extents[0]), ForKind::Serial, inner))
    }

    #[test]
    fn digits_that_do_not_overlap_separate() {
        let row_major = nest([7, 9], |i, j| i * Expr::int(9) + j);
        assert!(separates(&row_major.0, &row_major.1, &Ranges::default()));
        let overlapping = nest([7, 9], |i, j| i * Expr::int(8) + j);
        assert!(!separates(&overlapping.0, &overlapping.1, &Ranges::default()));
        let sum = nest([7, 9], |i, j| i + j);
        assert!(!separates(&sum.0[..1], &sum.1, &Ranges::default()));
        let lost = nest([7, 9], |_, j| j);
        assert!(!separates(&lost.0, &lost.1, &Ranges::default()));
        assert!(separates(&lost.0[1..], &lost.1, &Ranges::default()));
        let fused = nest([63, 4], |f, j| {
            let n = Expr::int;
            let rows = f.clone().floor_div(n(63)) * n(252) + f.clone().floor_div(n(9)).floor_mod(n(7)) * n(36);
            rows + f.floor_mod(n(9)) * n(4) + j
        });
        assert!(separates(&fused.0, &fused.1, &Ranges::default()));
        let hidden = nest([7, 9], |i, j| i.clone() * Expr::int(9) + (i + j).floor_mod(Expr::int(9)));
        assert!(!separates(&hidden.0[1..], &hidden.1, &Ranges::default()));
    }

    /// Whether a buffer of `size` elements has parts for 5 x 7 threads, in a loop of three iterations around the store to an index.
    fn parts(size: i64, index: impl Fn(Expr, Expr, Expr) -> Expr) -> bool {
        let [tx, ty, j] = ["tx", "ty", "j"].map(Var::index);
        let buffer = Buffer::compact("acc", ScalarType::Float32, vec![Expr::int(size)]);
        let index = index(Expr::from(&tx), Expr::from(&ty), Expr::from(&j));
        let store = Stmt::store(&buffer, vec![index], Expr::float_of(1.0, ScalarType::Float32));
        let body = Stmt::for_loop(&j, Expr::int(3), ForKind::Serial, store);
        let mut ranges = Ranges::default();
        let threads = [(tx, 5), (ty, 7)];
        for (var, extent) in &threads {
            ranges.insert_loop(var, &Expr::int(0), &Expr::int(i64::try_from(*extent).unwrap()));
        }
        has_parts(&buffer, &body, &threads, &ranges)
    }

    #[test]
    fn memory_has_parts_where_each_thread_stays_in_its_own() {
        let n = Expr::int;
        let number = |x: Expr, y: Expr| x * n(7) + y;
        assert!(parts(105, |x, y, j| number(x, y) * n(3) + j));
        assert!(parts(35, |x, y, _| number(x, y)));
        assert!(!parts(35, |x, y, _| y * n(5) + x), "the axes are in the other order");
        assert!(!parts(105, |x, y, j| number(x, y) * n(3) + j + n(1)), "the last element is that of the next thread");
        assert!(!parts(105, |x, y, j| number(x, y) + j * n(35)), "the parts are not contiguous");
        assert!(!parts(105, |_, y, j| y * n(3) + j), "threads of one row share a part");
        assert!(!parts(106, |x, y, j| number(x, y) * n(3) + j), "the parts are not equal");
    }
}

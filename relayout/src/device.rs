//! The program of a move that kernels are made of: the loops of the strategy, the innermost of them in vectors and in registers.
//!
//! ```text
//! T(8,128)      for i0_8, i1_128, i0 in T.grid(256, 16, 8):            runs are copied in vectors of 16 elements
//!                   for u in T.unroll(8): for v in T.vectorized(16): B[i0_8, i1_128, i0, u * 16 + v] = A[...]
//!
//! a transpose   for io, jo in T.grid(128, 256):                        tiles of 16 by 8 go through registers
//!                   for j in T.unroll(8): for i in T.vectorized(16): R[j * 16 + i] = A[jo * 8 + j, io * 16 + i]
//!                   for i in T.unroll(16): for j in T.vectorized(8): B[io * 16 + i, jo * 8 + j] = R[j * 16 + i]
//! ```
//!
//! The loops in front are the work-items. A run that a bound cuts stays a loop of one work-item, with the other bounds around it.

use std::sync::Arc;

use tilewright_ir::{Buffer, Expr, ForKind, PrimFunc, ScalarType, Scope, Stmt, StmtKind, Var};

use crate::digits::Relayout;
use crate::program::{self, Elements, loop_names, number};
use crate::strategy::{Strategy, Tile};

/// Bytes of a vector, and most of its elements.
const VECTOR: u64 = 64;
const LANES: u64 = 16;
/// Least side of a tile that goes through registers, and its most rows: more do not fit into the registers of a processor. Shorter rows
/// are written well by neighbouring work-items.
const LEAST_SIDE: u64 = 8;
/// Most copies of an unrolled body.
const UNROLLED: u64 = 8;
/// Most elements of a run with a bound that one work-item copies.
const LONGEST_RUN: u64 = 1024;

/// Returns the function that the kernels of a move are made of. `None` if it would be [`program::moved`], without vectors or registers.
pub fn kernel(strategy: &Strategy, relayout: &Relayout, elements: &Elements) -> Option<PrimFunc> {
    if !elements.dtype.is_scalar() {
        return None;
    }
    let ty = program::index_type(relayout);
    let (a, b) = program::buffers(strategy, elements, ty);
    let body = Body { strategy, ty, a: &a, b: &b, names: loop_names(strategy) };
    let copy = match (strategy.tile, strategy.is_wide) {
        (Tile::Run, false) | (Tile::Run | Tile::Transpose | Tile::Strided, true) => body.run(),
        (Tile::Transpose, false) => body.tile(),
        (Tile::Strided, false) => None,
    };
    Some(program::with_fill(strategy, copy?, (&a, &b), elements, ty))
}

/// The nest that moves the elements.
struct Body<'a> {
    strategy: &'a Strategy,
    ty: ScalarType,
    a: &'a Buffer,
    b: &'a Buffer,
    names: Vec<String>,
}

/// A loop of the nest: its variable, its extent and its kind.
type Level = (Var, u64, ForKind);

impl Body<'_> {
    /// A nest whose last loop, contiguous in both memories, is in vectors.
    fn run(&self) -> Option<Stmt> {
        let last = self.strategy.loops.len().checked_sub(1)?;
        let extent = self.strategy.loops[last].extent;
        if self.is_bounded(last) {
            return (extent <= LONGEST_RUN).then(|| self.bounded_run(last));
        }
        let lanes = self.side(extent);
        if lanes < 2 {
            return None;
        }
        let count = extent / lanes;
        let copies = (1..=UNROLLED).rev().find(|copies| count.is_multiple_of(*copies)).unwrap_or(1);
        let part = |suffix: &str| self.var(last, suffix);
        let (blocks, copy, lane) = (part("_b"), part("_u"), part("_v"));
        let (mut levels, mut values) = self.outer(last);
        let mut sum: Vec<Expr> = Vec::new();
        for (var, extent, weight, kind) in [
            (&blocks, count / copies, copies * lanes, ForKind::Serial),
            (&copy, copies, lanes, ForKind::Unrolled),
            (&lane, lanes, 1, ForKind::Vectorized),
        ] {
            if extent > 1 {
                levels.push((var.clone(), extent, kind));
                sum.push(self.times(var, weight));
            }
        }
        values.push(sum.into_iter().reduce(|a, b| a + b)?);
        Some(self.guarded(levels, last, &values, self.moved(&values)))
    }

    /// A nest whose last loop is copied by one work-item, with a bound of its own.
    fn bounded_run(&self, last: usize) -> Stmt {
        let (levels, mut values) = self.outer(last);
        let var = self.var(last, "");
        values.push(Expr::from(&var));
        let store = self.moved(&values);
        let store = match self.condition(&values, |bound| self.is_in(bound, last)) {
            Some(condition) => Stmt::guarded(condition, store),
            None => store,
        };
        let extent = self.strategy.loops[last].extent;
        let row = Stmt::for_loop(&var, number(extent, self.ty), ForKind::Serial, store);
        self.guarded(levels, last, &values, row)
    }

    /// A nest that moves tiles of a transpose through registers.
    fn tile(&self) -> Option<Stmt> {
        let first = self.strategy.loops.len().checked_sub(2)?;
        let (columns, rows) = (self.strategy.loops[first].extent, self.strategy.loops[first + 1].extent);
        let (width, height) = (self.side(columns), self.side(rows).min(LEAST_SIDE));
        if width.min(height) < LEAST_SIDE || self.is_bounded(first) || self.is_bounded(first + 1) {
            return None;
        }
        let (mut levels, outer) = self.outer(first);
        let tiles = [self.var(first, "_t"), self.var(first + 1, "_t")];
        let within = [self.var(first, ""), self.var(first + 1, "")];
        let (across, along) = (columns / width, rows / height);
        // Neighbouring work-items take neighbouring tiles, in the direction that has more of them.
        let mut order = [(0, across), (1, along)];
        order.sort_by_key(|(number, count)| (*count, *number));
        levels.extend(order.map(|(number, count)| (tiles[number].clone(), count, ForKind::Serial)));
        if let Some(next) = first.checked_sub(1).filter(|next| self.strategy.loops[*next].source == columns) {
            // What goes on along the rows of the source comes last, so that they are read once.
            let next = levels.remove(next);
            levels.push(next);
        }
        let at = |number: usize, size: u64| self.times(&tiles[number], size) + Expr::from(&within[number]);
        let values: Vec<Expr> = outer.into_iter().chain([at(0, width), at(1, height)]).collect();
        let registers = Buffer::compact("R", self.b.dtype, vec![number(width * height, self.ty)]);
        let registers = registers.with(|info| info.scope = Scope::Local);
        let slot = vec![self.times(&within[1], width) + Expr::from(&within[0])];
        let both = |order: [usize; 2], store: Stmt| {
            let size = [width, height];
            let lanes = self.around(&within[order[1]], size[order[1]], ForKind::Vectorized, store);
            self.around(&within[order[0]], size[order[0]], ForKind::Unrolled, lanes)
        };
        let load = Stmt::store(&registers, slot.clone(), Expr::load(self.a, self.from(&values)));
        let store = Stmt::store(self.b, self.to(&values), Expr::load(&registers, slot));
        let body = Stmt::seq(vec![both([1, 0], load), both([0, 1], store)]);
        let body = Stmt::new(StmtKind::Allocate { buffer: registers, body: Arc::new(body) });
        Some(self.guarded(levels, first, &values, body))
    }

    /// The largest power of two of elements, in a vector, that divides an extent.
    fn side(&self, extent: u64) -> u64 {
        let most = LANES.min(VECTOR / self.strategy.element_bytes);
        (1..=most).rev().find(|side| side.is_power_of_two() && extent.is_multiple_of(*side)).unwrap_or(1)
    }

    /// The first `count` loops of the strategy, and their values.
    fn outer(&self, count: usize) -> (Vec<Level>, Vec<Expr>) {
        let level = |at: usize| (self.var(at, ""), self.strategy.loops[at].extent, ForKind::Serial);
        let levels: Vec<Level> = (0..count).map(level).collect();
        let values = levels.iter().map(|(var, ..)| Expr::from(var)).collect();
        (levels, values)
    }

    /// Loops around a statement, with the bounds in which no loop from `first` on is.
    fn guarded(&self, levels: Vec<Level>, first: usize, values: &[Expr], body: Stmt) -> Stmt {
        let is_outside = |bound: usize| (first..self.strategy.loops.len()).all(|at| !self.is_in(bound, at));
        // The condition is around the loops that only one work-item has.
        let inner = levels.iter().position(|(.., kind)| *kind != ForKind::Serial).unwrap_or(levels.len());
        let (outer, inner) = levels.split_at(inner);
        let nest = |levels: &[Level], body: Stmt| {
            levels.iter().rev().fold(body, |body, (var, extent, kind)| self.around(var, *extent, *kind, body))
        };
        let body = nest(inner, body);
        let body = match self.condition(values, is_outside) {
            Some(condition) => Stmt::guarded(condition, body),
            None => body,
        };
        nest(outer, body)
    }

    fn around(&self, var: &Var, extent: u64, kind: ForKind, body: Stmt) -> Stmt {
        Stmt::for_loop(var, number(extent, self.ty), kind, body)
    }

    /// The bounds that a test picks, as one condition.
    fn condition(&self, values: &[Expr], is_picked: impl Fn(usize) -> bool) -> Option<Expr> {
        let picked = self.strategy.bounds.iter().enumerate().filter(|(at, _)| is_picked(*at));
        picked.map(|(_, bound)| program::holds(bound, values, self.ty)).reduce(Expr::and)
    }

    /// Whether a loop is in a bound.
    fn is_in(&self, bound: usize, at: usize) -> bool {
        self.strategy.bounds[bound].terms.iter().any(|(term, _)| *term == at)
    }

    fn is_bounded(&self, at: usize) -> bool {
        (0..self.strategy.bounds.len()).any(|bound| self.is_in(bound, at))
    }

    fn moved(&self, values: &[Expr]) -> Stmt {
        Stmt::store(self.b, self.to(values), Expr::load(self.a, self.from(values)))
    }

    fn from(&self, values: &[Expr]) -> Vec<Expr> {
        program::place(&self.strategy.from, &self.strategy.loops, values, |one| &one.from, self.ty)
    }

    fn to(&self, values: &[Expr]) -> Vec<Expr> {
        program::place(&self.strategy.to, &self.strategy.loops, values, |one| &one.to, self.ty)
    }

    fn var(&self, at: usize, suffix: &str) -> Var {
        Var::new(format!("{}{suffix}", self.names[at]), self.ty)
    }

    fn times(&self, var: &Var, factor: u64) -> Expr {
        if factor == 1 { Expr::from(var) } else { Expr::from(var) * number(factor, self.ty) }
    }
}

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
use crate::strategy::{Bound, LINE, Strategy, Tile};

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
    let fill = program::fills_in_place(strategy, elements);
    let body = Body { strategy, ty, a: &a, b: &b, fill, names: loop_names(strategy) };
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
    /// The value of slots at which a bound does not hold, if this nest fills them.
    fill: Option<Expr>,
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
        let blocks = self.var(last, "_b");
        let (mut levels, values) = self.outer(last);
        if count > copies {
            levels.push((blocks.clone(), count / copies, ForKind::Serial));
        }
        // The loops of one work-item, with variables of their own.
        let inner = |store: &dyn Fn(&[Expr]) -> Option<Stmt>| {
            let (copy, lane) = (self.var(last, "_u"), self.var(last, "_v"));
            let parts = [(&blocks, count / copies, copies * lanes), (&copy, copies, lanes), (&lane, lanes, 1)];
            let parts = parts.into_iter().filter(|(_, extent, _)| *extent > 1);
            let sum = parts.map(|(var, _, weight)| self.times(var, weight)).reduce(|a, b| a + b)?;
            let values: Vec<Expr> = values.iter().cloned().chain([sum]).collect();
            let vector = self.around(&lane, lanes, ForKind::Vectorized, store(&values)?);
            Some(if copies > 1 { self.around(&copy, copies, ForKind::Unrolled, vector) } else { vector })
        };
        let (then, fill) = (inner(&|values| Some(self.moved(values)))?, inner(&|values| self.filled(values)));
        Some(self.guarded(&levels, last, &values, (then, fill)))
    }

    /// A nest whose last loop is copied by one work-item, with a bound of its own.
    fn bounded_run(&self, last: usize) -> Stmt {
        let (levels, mut values) = self.outer(last);
        let var = self.var(last, "");
        values.push(Expr::from(&var));
        let is_own = |bound: &Bound| bound.terms.iter().any(|(term, _)| *term == last);
        let both = (self.moved(&values), self.filled(&values));
        let store = program::guarded(self.strategy, is_own, &values, both, self.ty);
        let extent = self.strategy.loops[last].extent;
        let row = |var: &Var, store: Stmt| self.around(var, extent, ForKind::Serial, store);
        let spare = self.var(last, "");
        let spared: Vec<Expr> = values[..last].iter().cloned().chain([Expr::from(&spare)]).collect();
        let fill = self.filled(&spared).map(|store| row(&spare, store));
        self.guarded(&levels, last, &values, (row(&var, store), fill))
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
        // Each of the two nests has variables of its own.
        let within = || [self.var(first, ""), self.var(first + 1, "")];
        let (read, written) = (within(), within());
        let (across, along) = (columns / width, rows / height);
        // Neighbouring work-items take neighbouring tiles, in the direction that has more of them.
        let mut order = [(0, across), (1, along)];
        order.sort_by_key(|(number, count)| (*count, *number));
        levels.extend(order.map(|(number, count)| (tiles[number].clone(), count, ForKind::Serial)));
        if let Some(next) = first.checked_sub(1).filter(|next| self.strategy.loops[*next].source == columns)
            && columns * self.strategy.element_bytes < LINE
        {
            // What goes on along a line of the source comes last, so that it is read once.
            let next = levels.remove(next);
            levels.push(next);
        }
        let at = |number: usize, size: u64, within: &[Var; 2]| {
            self.times(&tiles[number], size) + Expr::from(&within[number])
        };
        let values = |within: &[Var; 2]| -> Vec<Expr> {
            outer.iter().cloned().chain([at(0, width, within), at(1, height, within)]).collect()
        };
        let registers = Buffer::compact("R", self.b.dtype, vec![number(width * height, self.ty)]);
        let registers = registers.with(|info| info.scope = Scope::Local);
        let slot = |within: &[Var; 2]| vec![self.times(&within[1], width) + Expr::from(&within[0])];
        let both = |within: &[Var; 2], order: [usize; 2], store: Stmt| {
            let size = [width, height];
            let lanes = self.around(&within[order[1]], size[order[1]], ForKind::Vectorized, store);
            self.around(&within[order[0]], size[order[0]], ForKind::Unrolled, lanes)
        };
        let load = Stmt::store(&registers, slot(&read), Expr::load(self.a, self.from(&values(&read))));
        let store = Stmt::store(self.b, self.to(&values(&written)), Expr::load(&registers, slot(&written)));
        let body = Stmt::seq(vec![both(&read, [1, 0], load), both(&written, [0, 1], store)]);
        let body = Stmt::new(StmtKind::Allocate { buffer: registers, body: Arc::new(body) });
        let rest = within();
        let fill = self.filled(&values(&rest)).map(|store| {
            let row = self.around(&rest[1], height, ForKind::Serial, store);
            self.around(&rest[0], width, ForKind::Serial, row)
        });
        Some(self.guarded(&levels, first, &outer, (body, fill)))
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

    /// Loops around a statement, and around the one that fills, with the bounds in which no loop from `first` on is.
    fn guarded(&self, levels: &[Level], first: usize, values: &[Expr], (then, fill): (Stmt, Option<Stmt>)) -> Stmt {
        let is_outside = |bound: &Bound| bound.terms.iter().all(|(term, _)| *term < first);
        let body = program::guarded(self.strategy, is_outside, values, (then, fill), self.ty);
        levels.iter().rev().fold(body, |body, (var, extent, kind)| self.around(var, *extent, *kind, body))
    }

    fn around(&self, var: &Var, extent: u64, kind: ForKind, body: Stmt) -> Stmt {
        Stmt::for_loop(var, number(extent, self.ty), kind, body)
    }

    fn is_bounded(&self, at: usize) -> bool {
        let bounds = self.strategy.bounds.iter().chain(&self.strategy.cuts);
        bounds.flat_map(|bound| &bound.terms).any(|(term, _)| *term == at)
    }

    /// The store of the fill value to the slot of an iteration.
    fn filled(&self, values: &[Expr]) -> Option<Stmt> {
        Some(Stmt::store(self.b, self.to(values), self.fill.clone()?))
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

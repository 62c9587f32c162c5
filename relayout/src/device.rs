//! The program of a move that kernels are made of: the loops of the strategy, the innermost of them in vectors and in registers.
//!
//! ```text
//! T(8,128)      for i0_8, i1_128, i0 in T.grid(256, 16, 8):            runs are copied in vectors of 16 elements
//!                   for u in T.unroll(8): for v in T.vectorized(16): B[i0_8, i1_128, i0, u * 16 + v] = A[...]
//!
//! a transpose   for io, jo in T.grid(128, 256):                        tiles of 16 by 8 go through registers
//!                   for j in T.unroll(8): for i in T.vectorized(16): R[j * 16 + i] = A[jo * 8 + j, io * 16 + i]
//!                   for i in T.unroll(16): for j in T.vectorized(8): B[io * 16 + i, jo * 8 + j] = R[j * 16 + i]
//!
//! ragged        for io, jo in T.grid(251, 501):                      4001x4003, or symbolic extents
//!                   if io * 16 + 15 < 4003 and jo * 8 + 7 < 4001: (as above)
//!                   else: for i, j in T.grid(16, 8): if io * 16 + i < 4003 and jo * 8 + j < 4001: B[...] = A[...]
//! ```
//!
//! The loops in front are the work-items, each of which moves a piece: part of a run, or a tile. A piece that a bound cuts, or the end of a loop,
//! is moved element by element.

use std::sync::Arc;

use tilewright_ir::{Buffer, Expr, For, ForKind, PrimFunc, Scope, Stmt, StmtKind, Var};

use crate::pieces::{Pieces, Side};
use crate::program::{self, Elements, loop_names};
use crate::sizes::Sizes;
use crate::strategy::{LINE, Strategy, Tile};

/// Bytes of a vector, and most of its elements.
const VECTOR: u64 = 64;
const LANES: u64 = 16;
/// Least side of a tile that goes through registers, and its most rows: more do not fit into the registers of a processor. Shorter rows
/// are written well by neighbouring work-items.
const LEAST_SIDE: u64 = 8;
/// Least rows of a tile where extents are symbolic: a work-item has to move more than one element to be worth its index.
const LEAST_ROWS: u64 = 2;
/// Most columns of a tile of few rows.
const LONG_ROW: u64 = 128;
/// Elements that a work-item moves where vectors are short.
const PIECE: u64 = 128;
/// Most copies of an unrolled body.
const UNROLLED: u64 = 8;
/// Vectors of a loop that is worth a ragged piece at its end.
const LEAST_VECTORS: u64 = 4;

/// Returns the function that the kernels of a move are made of. `None` if it would be [`program::moved`], without vectors or registers.
pub fn kernel(strategy: &Strategy, sizes: &Sizes, elements: &Elements) -> Option<PrimFunc> {
    if !elements.dtype.is_scalar() {
        return None;
    }
    let (a, b) = program::buffers(sizes, elements);
    let fill = program::fills_in_place(strategy, elements);
    let body = Body { strategy, sizes, a: &a, b: &b, fill, names: loop_names(strategy) };
    let copy = match (strategy.tile, strategy.is_wide) {
        (Tile::Run, false) | (Tile::Run | Tile::Transpose | Tile::Strided, true) => body.run(),
        (Tile::Transpose, false) => body.tile(),
        (Tile::Strided, false) => None,
    };
    Some(program::with_fill((strategy, sizes), copy?, (&a, &b), elements))
}

/// The nest that moves the elements.
pub(crate) struct Body<'a> {
    pub(crate) strategy: &'a Strategy,
    pub(crate) sizes: &'a Sizes,
    a: &'a Buffer,
    b: &'a Buffer,
    /// The value of slots at which a bound does not hold, if this nest fills them.
    fill: Option<Expr>,
    names: Vec<String>,
}

/// A loop of the nest: its variable and its extent.
pub(crate) type Level = (Var, Expr);

impl Body<'_> {
    /// A nest whose last loop, contiguous in both memories, is in vectors.
    fn run(&self) -> Option<Stmt> {
        let last = self.strategy.loops.len().checked_sub(1)?;
        let (lanes, is_exact) = self.lanes(last, 2)?;
        if self.sizes.is_symbolic() && is_exact && lanes < LANES {
            return self.short_runs(last, lanes);
        }
        let count = self.strategy.loops[last].extent / lanes;
        // The rows of a symbolic extent may be short.
        let most = if self.is_symbolic(last) { 1 } else { UNROLLED };
        let copies = (1..=most).rev().find(|copies| !is_exact || count.is_multiple_of(*copies)).unwrap_or(1);
        let side = Side::new(self, last, (copies * lanes, is_exact), "_b");
        // The loops of one work-item, with variables of their own.
        let (copy, lane) = (self.var(last, "_u"), self.var(last, "_v"));
        let within = match copies {
            1 => Expr::from(&lane),
            _ => self.times(&copy, lanes) + Expr::from(&lane),
        };
        let mut levels = self.outer(last);
        let pieces = Pieces { body: self, outer: values(&levels), sides: vec![side] };
        let vector = self.around(&lane, lanes, ForKind::Vectorized, self.moved(&pieces.at(vec![within])));
        let whole = if copies > 1 { self.around(&copy, copies, ForKind::Unrolled, vector) } else { vector };
        levels.extend(pieces.sides.iter().filter_map(Side::level));
        Some(nested(levels, pieces.moved(whole)))
    }

    /// A nest whose last loop is a short vector: a work-item moves several of them, along the loops around it.
    fn short_runs(&self, last: usize, lanes: u64) -> Option<Stmt> {
        let mut sides = vec![Side::new(self, last, (lanes, true), "_b")];
        let mut missing = PIECE / lanes;
        for at in (0..last).rev() {
            let extent = self.strategy.loops[at].extent;
            let is_whole = !self.is_symbolic(at) && extent <= missing;
            let size = if is_whole { extent } else { missing };
            sides.insert(0, Side::new(self, at, (size, is_whole), "_t"));
            missing /= size;
            if missing < 2 || !sides[0].is_one() {
                break;
            }
        }
        let first = last + 1 - sides.len();
        let mut levels = self.outer(first);
        let pieces = Pieces { body: self, outer: values(&levels), sides };
        levels.extend(pieces.sides.iter().filter_map(Side::level));
        let whole = pieces.each(&[], |values| Some(self.moved(values)))?;
        Some(nested(levels, pieces.moved(inner_loops(whole, ForKind::Vectorized))))
    }

    /// A nest that moves tiles of a transpose through registers.
    fn tile(&self) -> Option<Stmt> {
        let first = self.strategy.loops.len().checked_sub(2)?;
        let (width, exact_width) = self.lanes(first, LEAST_SIDE)?;
        // Rows of a symbolic extent may be short: then neighbouring work-items take them.
        let least_rows = if self.sizes.is_symbolic() && exact_width { LEAST_ROWS } else { LEAST_SIDE };
        let (height, exact_height) = self.lanes(first + 1, least_rows)?;
        let height = height.min(LEAST_SIDE);
        let is_low = height < LEAST_SIDE && exact_width;
        let width = if is_low { self.exact(first, LONG_ROW) } else { width };
        let sides = vec![
            Side::new(self, first, (width, exact_width), "_t"),
            Side::new(self, first + 1, (height, exact_height), "_t"),
        ];
        let mut levels = self.outer(first);
        let pieces = Pieces { body: self, outer: values(&levels), sides };
        // Neighbouring work-items take neighbouring tiles, in the direction that has more of them.
        let mut order: Vec<&Side> = pieces.sides.iter().collect();
        order.sort_by_key(|side| (side.pieces(self), side.at));
        levels.extend(order.into_iter().filter_map(Side::level));
        let columns = self.strategy.loops[first].extent;
        if let Some(next) = first.checked_sub(1).filter(|next| self.strategy.loops[*next].source == columns)
            && columns * self.strategy.element_bytes < LINE
        {
            // What goes on along a line of the source comes last, so that it is read once.
            let next = levels.remove(next);
            levels.push(next);
        }
        if is_low {
            // The compiler of the device makes vectors of a loop that reads few rows and writes them side by side.
            let whole = pieces.each(&[], |values| Some(self.moved(values)))?;
            return Some(nested(levels, pieces.moved(inner_loops(whole, ForKind::Unrolled))));
        }
        Some(nested(levels, pieces.moved(self.through_registers(&pieces, first, [width, height]))))
    }

    /// The statement that moves a whole tile of columns and rows, those of the loop `first` and of the next one.
    fn through_registers(&self, pieces: &Pieces<'_>, first: usize, size: [u64; 2]) -> Stmt {
        let [width, height] = size;
        // Each of the two nests has variables of its own.
        let within = || [self.var(first, ""), self.var(first + 1, "")];
        let (read, written) = (within(), within());
        let at = |within: &[Var; 2]| pieces.at(within.iter().map(Expr::from).collect());
        let registers = Buffer::compact("R", self.b.dtype, vec![self.sizes.constant(width * height)]);
        let registers = registers.with(|info| info.scope = Scope::Local);
        let slot = |within: &[Var; 2]| vec![self.times(&within[1], width) + Expr::from(&within[0])];
        let both = |within: &[Var; 2], order: [usize; 2], store: Stmt| {
            let lanes = self.around(&within[order[1]], size[order[1]], ForKind::Vectorized, store);
            self.around(&within[order[0]], size[order[0]], ForKind::Unrolled, lanes)
        };
        let load = Stmt::store(&registers, slot(&read), Expr::load(self.a, self.from(&at(&read))));
        let store = Stmt::store(self.b, self.to(&at(&written)), Expr::load(&registers, slot(&written)));
        let body = Stmt::seq(vec![both(&read, [1, 0], load), both(&written, [0, 1], store)]);
        Stmt::new(StmtKind::Allocate { buffer: registers, body: Arc::new(body) })
    }

    /// Elements of a vector along a loop, and whether vectors end where the loop does: at least `least`, or the most where a ragged one is
    /// worth it.
    fn lanes(&self, at: usize, least: u64) -> Option<(u64, bool)> {
        let most = LANES.min(VECTOR / self.strategy.element_bytes);
        let extent = self.strategy.loops[at].extent;
        let exact = self.exact(at, most);
        let is_exact = exact >= least && !self.is_symbolic(at);
        let lanes = if is_exact { exact } else { most };
        (is_exact || extent >= LEAST_VECTORS * most && most >= least).then_some((lanes, is_exact))
    }

    /// The largest power of two, up to `most`, that divides the extent of a loop.
    fn exact(&self, at: usize, most: u64) -> u64 {
        let extent = self.strategy.loops[at].extent;
        (1..=most).rev().find(|side| side.is_power_of_two() && extent.is_multiple_of(*side)).unwrap_or(1)
    }

    /// The first `count` loops of the strategy.
    fn outer(&self, count: usize) -> Vec<Level> {
        (0..count).map(|at| (self.var(at, ""), self.extent(at))).collect()
    }

    pub(crate) fn extent(&self, at: usize) -> Expr {
        self.sizes.extent(&self.strategy.loops[at])
    }

    fn is_symbolic(&self, at: usize) -> bool {
        self.extent(at).as_const_int().is_none()
    }

    pub(crate) fn around(&self, var: &Var, extent: u64, kind: ForKind, body: Stmt) -> Stmt {
        Stmt::for_loop(var, self.sizes.constant(extent), kind, body)
    }

    /// The store of the fill value to the slot of an iteration.
    pub(crate) fn filled(&self, values: &[Expr]) -> Option<Stmt> {
        Some(Stmt::store(self.b, self.to(values), self.fill.clone()?))
    }

    pub(crate) fn moved(&self, values: &[Expr]) -> Stmt {
        Stmt::store(self.b, self.to(values), Expr::load(self.a, self.from(values)))
    }

    fn from(&self, values: &[Expr]) -> Vec<Expr> {
        program::place(&self.strategy.from, &self.strategy.loops, values, |one| &one.from, self.sizes)
    }

    fn to(&self, values: &[Expr]) -> Vec<Expr> {
        program::place(&self.strategy.to, &self.strategy.loops, values, |one| &one.to, self.sizes)
    }

    pub(crate) fn var(&self, at: usize, suffix: &str) -> Var {
        Var::new(format!("{}{suffix}", self.names[at]), self.sizes.ty)
    }

    pub(crate) fn times(&self, var: &Var, factor: u64) -> Expr {
        if factor == 1 { Expr::from(var) } else { Expr::from(var) * self.sizes.constant(factor) }
    }
}

/// Loops of a piece, the innermost of the given kind, and those around it unrolled but for the outermost.
fn inner_loops(piece: Stmt, innermost: ForKind) -> Stmt {
    let kinds = |inner: &For| {
        let (kind, body) = match &inner.body.kind {
            StmtKind::For(next) => {
                let next = StmtKind::For(Arc::new(For { kind: ForKind::Unrolled, ..For::clone(next) }));
                (inner.kind, inner_loops(Stmt::new(next), innermost))
            }
            _ => (innermost, inner.body.clone()),
        };
        Stmt::new(StmtKind::For(Arc::new(For { kind, body, ..inner.clone() })))
    };
    if let StmtKind::For(inner) = &piece.kind { kinds(inner) } else { piece }
}

fn values(levels: &[Level]) -> Vec<Expr> {
    levels.iter().map(|(var, _)| Expr::from(var)).collect()
}

/// Loops around a statement, the first outside.
fn nested(levels: Vec<Level>, body: Stmt) -> Stmt {
    levels.into_iter().rev().fold(body, |body, (var, extent)| Stmt::for_loop(&var, extent, ForKind::Serial, body))
}

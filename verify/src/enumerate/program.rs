//! A part of the graph, scheduled to be computed for a block of neighbouring points at a time.
//!
//! The trailing axes with at most [`BLOCK`] points together form a block; a longer last axis is cut into pieces. A value
//! that depends on no axis of the block is computed once per block, one that depends only on axes of the block once for
//! all blocks, and the others at every point.
//!
//! ```text
//! (16, 100, 20)     blocks of 100 * 20 = 2000 points; there are 16
//! (16, 5000)        5000 points are too many: the last axis is cut into 3 pieces of 2048, 2048 and 904 points
//! ```
//!
//! Values of level *table* make an inner loop cheap: for `i * 20 + j` on (16, 100, 20) the part with `j` is computed
//! once.

use super::builder::{Instr, Node, NodeId};
use super::lanes::{Lanes, Size, apply};

/// Greatest number of points in a block.
pub(super) const BLOCK: usize = 2048;

/// How often a value is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// Once per block: the value is the same at all points of a block.
    Block,
    /// Once: the values at the points of a block are the same in every block.
    Table,
    /// At every point.
    Lane,
}

/// An operation of a program; its operands are positions of earlier ones.
#[derive(Clone, Debug)]
struct ScheduledOp {
    /// The operation, its operands as positions in the program.
    instr: Instr,
    /// How often it is computed.
    level: Level,
    /// The sizes of its operands, which decide how fast a division is.
    size: Size,
}

/// A program that computes some values ("roots") at the points of a box, in row-major order.
#[derive(Clone, Debug)]
pub(crate) struct PointProgram {
    /// The operations, operands first.
    ops: Vec<ScheduledOp>,
    /// The positions of the wanted values.
    roots: Vec<usize>,
    /// The axes of the graph that the program runs over.
    axes: Vec<usize>,
    /// Their extents.
    extents: Vec<i64>,
    /// The axes from this one on form a block.
    split: usize,
    /// Number of points in a block; the last piece of a cut axis may have fewer.
    width: usize,
    /// Number of pieces that the last axis is cut into; 1 if it is not cut.
    pieces: u64,
    /// The number of points: the product of the extents.
    points: u64,
}

impl PointProgram {
    /// Schedules the nodes that `roots` need, over `axes`; `all` are the extents of all axes of the graph. `None` if the
    /// number of points does not fit 63 bits.
    pub(super) fn new(nodes: &[Node], roots: &[NodeId], axes: &[usize], all: &[i64]) -> Option<Self> {
        let extents: Vec<i64> = axes.iter().map(|&axis| all[axis]).collect();
        let points = extents.iter().try_fold(1i64, |points, extent| points.checked_mul(*extent))?;
        // Axes join the block from the last one on, so that a block is a range of the row-major order.
        let (mut split, mut width) = (extents.len(), 1usize);
        while let Some(&extent) = split.checked_sub(1).and_then(|axis| extents.get(axis)) {
            let wider = usize::try_from(extent).ok().and_then(|extent| extent.checked_mul(width));
            let Some(wider) = wider.filter(|wider| *wider <= BLOCK) else { break };
            (split, width) = (split - 1, wider);
        }
        let (mut pieces, last) = (1, extents.last().copied().unwrap_or(1));
        let cut = split == extents.len() && !extents.is_empty();
        if cut {
            split -= 1;
            width = BLOCK;
            pieces = u64::try_from(last).ok()?.div_ceil(BLOCK as u64);
        }
        let mut program = Self {
            ops: Vec::new(),
            roots: Vec::new(),
            axes: axes.to_vec(),
            extents,
            split,
            width,
            pieces,
            points: u64::try_from(points).ok()?,
        };
        program.lay_out(nodes, roots, cut);
        Some(program)
    }

    /// Schedules the operations that the roots need, operands first.
    fn lay_out(&mut self, nodes: &[Node], roots: &[NodeId], cut: bool) {
        // Operands have smaller numbers than their users, so one pass from the last node to the first finds all of them.
        let mut needed = vec![false; nodes.len()];
        for &root in roots {
            needed[root] = true;
        }
        for node in (0..nodes.len()).rev() {
            if needed[node] {
                operands(nodes[node].instr, |operand| needed[operand] = true);
            }
        }
        let mut place = vec![0; nodes.len()];
        for (node, _) in needed.iter().enumerate().filter(|(_, needed)| **needed) {
            place[node] = self.ops.len();
            let instr = renamed(nodes[node].instr, &place, &self.axes);
            let inner = |axis: &usize| self.axes.iter().position(|own| own == axis) >= Some(self.split);
            let inside = nodes[node].axes.iter().filter(|axis| inner(axis)).count();
            let level = match inside {
                0 => Level::Block,
                _ if inside == nodes[node].axes.len() && !cut => Level::Table,
                _ => Level::Lane,
            };
            let size = match nodes[node].instr {
                Instr::Binary(_, a, b) => Size::of(nodes[a].range, nodes[b].range),
                _ => Size::Any,
            };
            self.ops.push(ScheduledOp { instr, level, size });
        }
        self.roots = roots.iter().map(|&root| place[root]).collect();
    }

    /// The number of points.
    pub(crate) fn points(&self) -> u64 {
        self.points
    }

    /// The number of blocks.
    pub(crate) fn blocks(&self) -> u64 {
        if self.pieces > 1 {
            let rows = self.extents[..self.split].iter().map(|extent| extent.unsigned_abs()).product::<u64>();
            return rows * self.pieces;
        }
        self.points.div_ceil(self.width as u64)
    }

    /// The block that contains a position of the row-major order.
    pub(super) fn block_of(&self, place: u64) -> u64 {
        if self.pieces > 1 {
            let last = self.extents.last().map_or(1, |extent| extent.unsigned_abs());
            return place / last * self.pieces + place % last / self.width as u64;
        }
        place / self.width as u64
    }

    /// The index at a position of the row-major order, with 0 on the axes that the program does not depend on.
    pub(crate) fn index(&self, place: u64, rank: usize) -> Vec<i128> {
        let mut index = vec![0; rank];
        let mut rest = place;
        for (&axis, extent) in self.axes.iter().zip(&self.extents).rev() {
            index[axis] = i128::from(rest % extent.unsigned_abs());
            rest /= extent.unsigned_abs();
        }
        index
    }

    /// A runner, with the values that are the same in every block computed.
    pub(crate) fn runner(&self) -> Runner<'_> {
        let lanes = |op: &ScheduledOp| if op.level == Level::Block { Vec::new() } else { vec![0; self.width] };
        let mut runner = Runner {
            program: self,
            single: vec![0; self.ops.len()],
            lanes: self.ops.iter().map(lanes).collect(),
            index: vec![0; self.extents.len()],
            length: self.width,
        };
        runner.compute(|level| level == Level::Table);
        runner
    }
}

/// Calls `visit` on each operand of an operation.
fn operands(instr: Instr, mut visit: impl FnMut(NodeId)) {
    match instr {
        Instr::Const(_) | Instr::Axis(_) => {}
        Instr::Neg(a) | Instr::Not(a) | Instr::BitNot(a) | Instr::Abs(a) => visit(a),
        Instr::Binary(_, a, b) => [a, b].into_iter().for_each(visit),
        Instr::Choose(c, a, b) => [c, a, b].into_iter().for_each(visit),
    }
}

/// The operation with nodes and axes of the graph replaced by positions in the program.
fn renamed(instr: Instr, place: &[usize], axes: &[usize]) -> Instr {
    match instr {
        Instr::Const(value) => Instr::Const(value),
        Instr::Axis(axis) => Instr::Axis(axes.iter().position(|own| *own == axis).unwrap_or(0)),
        Instr::Binary(op, a, b) => Instr::Binary(op, place[a], place[b]),
        Instr::Neg(a) => Instr::Neg(place[a]),
        Instr::Not(a) => Instr::Not(place[a]),
        Instr::BitNot(a) => Instr::BitNot(place[a]),
        Instr::Abs(a) => Instr::Abs(place[a]),
        Instr::Choose(c, a, b) => Instr::Choose(place[c], place[a], place[b]),
    }
}

/// Runs a program, one block at a time.
#[derive(Debug)]
pub(crate) struct Runner<'p> {
    program: &'p PointProgram,
    /// Values of the operations that have one value per block.
    single: Vec<i64>,
    /// Values of the other operations, at each point of the block.
    lanes: Vec<Vec<i64>>,
    /// The index of the block's first point.
    index: Vec<i64>,
    /// Number of points in the block.
    length: usize,
}

impl Runner<'_> {
    /// Computes a block. Returns the row-major position of its first point and the number of its points.
    pub(crate) fn run(&mut self, block: u64) -> (u64, usize) {
        let program = self.program;
        let last = program.extents.last().copied().unwrap_or(1);
        let (mut row, piece) = (block / program.pieces, block % program.pieces);
        self.index.fill(0);
        let mut start = piece * program.width as u64;
        if program.pieces > 1
            && let Some(index) = self.index.last_mut()
        {
            let left = last.unsigned_abs() - start;
            self.length = usize::try_from(left).unwrap_or(usize::MAX).min(program.width);
            *index = i64::try_from(start).unwrap_or(0);
            start += row * last.unsigned_abs();
        } else {
            start = row * program.width as u64;
        }
        for axis in (0..program.split).rev() {
            let extent = program.extents[axis].unsigned_abs();
            self.index[axis] = i64::try_from(row % extent).unwrap_or(0);
            row /= extent;
        }
        self.compute(|level| level != Level::Table);
        (start, self.length)
    }

    /// The values of a root in the block.
    pub(crate) fn root(&self, root: usize) -> Lanes<'_> {
        self.value(self.program.roots[root])
    }

    /// The values of an operation in the block.
    fn value(&self, op: usize) -> Lanes<'_> {
        match self.program.ops[op].level {
            Level::Block => Lanes::One(self.single[op]),
            Level::Table | Level::Lane => Lanes::Many(&self.lanes[op][..self.length]),
        }
    }

    /// Executes the operations of the wanted levels, and those with one value per block.
    fn compute(&mut self, wanted: impl Fn(Level) -> bool) {
        let program = self.program;
        for (position, op) in program.ops.iter().enumerate() {
            if op.level != Level::Block && wanted(op.level) {
                let mut out = std::mem::take(&mut self.lanes[position]);
                self.execute(op, &mut out[..self.length]);
                self.lanes[position] = out;
            } else if op.level == Level::Block {
                let mut out = [0];
                self.execute(op, &mut out);
                self.single[position] = out[0];
            }
        }
    }

    /// Executes an operation.
    fn execute(&self, scheduled: &ScheduledOp, out: &mut [i64]) {
        match scheduled.instr {
            Instr::Const(value) => out.fill(value),
            Instr::Axis(axis) if axis < self.program.split => out.fill(self.index[axis]),
            Instr::Axis(axis) => self.axis_lanes(axis, out),
            Instr::Binary(op, a, b) => apply(op, scheduled.size, self.value(a), self.value(b), out),
            Instr::Neg(a) => self.value(a).map(out, |x| -x),
            Instr::Not(a) => self.value(a).map(out, |x| i64::from(x == 0)),
            Instr::BitNot(a) => self.value(a).map(out, |x| !x),
            Instr::Abs(a) => self.value(a).map(out, i64::abs),
            Instr::Choose(c, a, b) => {
                let (c, a, b) = (self.value(c), self.value(a), self.value(b));
                for (lane, out) in out.iter_mut().enumerate() {
                    *out = if c.at(lane) != 0 { a.at(lane) } else { b.at(lane) };
                }
            }
        }
    }

    /// The index of an axis at each point of the block.
    fn axis_lanes(&self, axis: usize, out: &mut [i64]) {
        let inner: i64 = self.program.extents[axis + 1..].iter().product();
        let (extent, start) = (self.program.extents[axis], self.index[axis]);
        let (mut value, mut left) = (start, inner);
        for out in out {
            *out = value;
            left -= 1;
            if left == 0 {
                left = inner;
                value = if value + 1 == extent { 0 } else { value + 1 };
            }
        }
    }
}

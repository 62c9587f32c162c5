//! The loops of a stage: split, bound to variables, reordered, of different kinds, with a condition
//! where a split does not divide.

use std::sync::Arc;

use tilewright_ir::{Expr, For, ForKind, ScalarType, SharedExpr, Stmt, StmtKind, ThreadTag, Var};

use super::index::{Axis, Lanes, Nest};
use crate::program::recipe::{Kind, Loop, Stage};

/// Limit on the work-items of a group.
pub(super) const GROUP: i64 = 128;

/// A loop of the nest.
struct Layer {
    var: Var,
    min: i64,
    extent: i64,
    kind: ForKind,
    order: u16,
    is_reduced: bool,
}

/// A statement between the loops and the body: an index bound to a variable, or a condition that
/// skips iterations.
enum Prologue {
    Bind(Var, Expr),
    Skip(Expr),
}

/// The loop nest of a stage.
pub(super) struct Loops {
    pub(super) nest: Nest,
    layers: Vec<Layer>,
    prologues: Vec<(Prologue, bool)>,
    /// The loop inside all conditions, if there is one.
    innermost: Option<Layer>,
    /// The condition inside that loop.
    inside: Option<Expr>,
    n_targets: usize,
}

/// The part of the last axis that a nest covers.
#[derive(Clone, Copy)]
pub(super) enum Part {
    /// All elements.
    Whole,
    /// Vectors with this number of lanes.
    Vectors(u16),
    /// The elements from this one on.
    Rest(i64),
    /// The channels of a texture, four in total.
    Texels,
    /// The channels of a texture that are packed in several texels.
    Packed,
}

impl Loops {
    /// The loops over the axes of a target and over reduced axes.
    pub(super) fn new(stage: &Stage, shape: &[i64], reduced: &[i64], part: Part, prefix: &str) -> Self {
        let ty = if stage.wide { ScalarType::Int64 } else { ScalarType::Int32 };
        let last = shape.len() - 1;
        let lanes = match part {
            Part::Vectors(lanes) => Lanes::Vector(last, lanes),
            Part::Texels | Part::Packed => Lanes::Texel(last),
            Part::Whole | Part::Rest(_) => Lanes::None,
        };
        let nest = Nest { axes: Vec::new(), ty, lanes, is_packed: matches!(part, Part::Packed) };
        let (layers, prologues) = (Vec::new(), Vec::new());
        let mut loops = Self { nest, layers, prologues, innermost: None, inside: None, n_targets: shape.len() };
        for (number, &extent) in shape.iter().chain(reduced).enumerate() {
            let how = stage.loop_of(number);
            let name = format!("{prefix}{number}");
            let axis = match part {
                Part::Vectors(lanes) if number == last => loops.vectors(&name, &how, extent, lanes),
                Part::Rest(start) if number == last => loops.rest(&name, extent, start),
                Part::Texels if number == last => loops.channels(&name, &how, extent),
                Part::Packed if number == last => loops.texels(&name, &how, extent),
                Part::Whole | Part::Vectors(_) | Part::Rest(_) | Part::Texels | Part::Packed => {
                    loops.whole(&name, &how, extent, number)
                }
            };
            loops.nest.axes.push(axis);
        }
        // Bindings to threads are assigned before sorting, so they do not depend on the order of
        // the loops.
        loops.limit_groups();
        loops.layers.sort_by_key(|layer| layer.order);
        loops.pull_innermost();
        loops
    }

    /// Adds a loop, and returns its index, which starts at 0 whatever `min` is.
    fn layer(&mut self, name: &str, how: &Loop, min: i64, extent: i64, order: u16, is_reduced: bool) -> Expr {
        let kind = match how.kind {
            Kind::Unrolled => ForKind::Unrolled,
            _ if is_reduced => ForKind::Serial,
            Kind::Serial => ForKind::Serial,
            Kind::Parallel => ForKind::Parallel,
            Kind::Vectorized => ForKind::Vectorized,
            Kind::Block => ForKind::ThreadBinding(ThreadTag::Block(0)),
            Kind::Thread => ForKind::ThreadBinding(ThreadTag::Thread(0)),
        };
        // Launches start at 0, so a bound loop has no other first value.
        let min = if matches!(kind, ForKind::ThreadBinding(_)) { 0 } else { min };
        let var = Var::new(name, self.nest.ty);
        let index = if min == 0 { Expr::from(&var) } else { Expr::from(&var) - self.nest.int(min) };
        self.layers.push(Layer { var, min, extent, kind, order, is_reduced });
        index
    }

    /// Adds the loops over a whole axis, which may be split and bound to a variable.
    fn whole(&mut self, name: &str, how: &Loop, extent: i64, number: usize) -> Axis {
        let is_reduced = number >= self.n_targets;
        let order = u16::from(how.order);
        let min = how.min.clamp(-64, 64);
        let by = how.split.filter(|&by| by > 1 && by < extent);
        let mut index = match by {
            None => self.layer(name, how, min, extent, order, is_reduced),
            Some(by) => {
                // If the loop is vectorized, its inner part becomes the lanes.
                let is_lanes = how.kind == Kind::Vectorized;
                let kinds = if is_lanes { [Kind::Serial, how.kind] } else { [how.kind, Kind::Serial] };
                let [outside, inside] = kinds.map(|kind| Loop { kind, ..how.clone() });
                let outer = self.layer(&format!("{name}o"), &outside, min, (extent + by - 1) / by, order, is_reduced);
                let inner = self.layer(&format!("{name}i"), &inside, 0, by, order + 256, is_reduced);
                outer * self.nest.int(by) + inner
            }
        };
        if how.bind {
            let var = Var::new(format!("{name}b"), self.nest.ty);
            let bound = std::mem::replace(&mut index, Expr::from(&var));
            self.prologues.push((Prologue::Bind(var, bound), is_reduced));
        }
        if by.is_some_and(|by| extent % by != 0) {
            self.prologues.push((Prologue::Skip(index.clone().lt(self.nest.int(extent))), is_reduced));
        }
        Axis { base: index.clone(), full: index, extent }
    }

    /// Adds the loop over the vectors of the last axis.
    fn vectors(&mut self, name: &str, how: &Loop, extent: i64, lanes: u16) -> Axis {
        let count = extent / i64::from(lanes);
        let order = u16::from(how.order);
        let base = self.layer(name, how, how.min.clamp(-64, 64), count, order, false) * self.nest.int(lanes.into());
        let full = Expr::Ramp { base: SharedExpr::new(base.clone()), stride: SharedExpr::new(self.nest.int(1)), lanes };
        Axis { base, full, extent: count * i64::from(lanes) }
    }

    /// Adds the loop over the elements behind the last whole vector.
    fn rest(&mut self, name: &str, extent: i64, start: i64) -> Axis {
        let index = self.layer(name, &Loop::default(), 0, extent - start, 0, false) + self.nest.int(start);
        Axis { base: index.clone(), full: index, extent }
    }

    /// Makes the loop over channels the innermost one.
    fn channels(&mut self, name: &str, how: &Loop, extent: i64) -> Axis {
        let kind = match how.kind {
            Kind::Vectorized => ForKind::Vectorized,
            Kind::Unrolled => ForKind::Unrolled,
            Kind::Serial | Kind::Parallel | Kind::Block | Kind::Thread => ForKind::Serial,
        };
        let var = Var::new(name, self.nest.ty);
        let full = Expr::from(&var);
        self.innermost = Some(Layer { var, min: 0, extent, kind, order: 0, is_reduced: false });
        Axis { base: self.nest.int(0), full, extent }
    }

    /// Adds the loops over texels and their channels; the last texel may have fewer.
    fn texels(&mut self, name: &str, how: &Loop, extent: i64) -> Axis {
        let outer = Loop { kind: if how.kind == Kind::Vectorized { Kind::Serial } else { how.kind }, ..how.clone() };
        let texel = self.layer(&format!("{name}o"), &outer, 0, (extent + 3) / 4, u16::from(how.order), false);
        let channel = self.channels(&format!("{name}i"), how, 4).full;
        let base = texel * self.nest.int(4);
        let full = base.clone() + channel;
        if extent % 4 != 0 {
            self.inside = Some(full.clone().lt(self.nest.int(extent)));
        }
        Axis { base, full, extent }
    }

    /// Assigns the three dimensions of a launch to bound loops, within the limit of [`GROUP`]
    /// work-items. Loops for which no dimension is left become serial.
    fn limit_groups(&mut self) {
        let (mut blocks, mut threads, mut items) = (0, 0, 1);
        for layer in &mut self.layers {
            let ForKind::ThreadBinding(tag) = layer.kind else { continue };
            let fits = items * layer.extent <= GROUP && threads < 3;
            layer.kind = match tag {
                ThreadTag::Thread(_) if fits => {
                    items *= layer.extent;
                    threads += 1;
                    ForKind::ThreadBinding(ThreadTag::Thread(threads - 1))
                }
                ThreadTag::Thread(_) | ThreadTag::Block(_) if blocks < 3 => {
                    blocks += 1;
                    ForKind::ThreadBinding(ThreadTag::Block(blocks - 1))
                }
                ThreadTag::Thread(_) | ThreadTag::Block(_) => ForKind::Serial,
            };
        }
    }

    /// Moves an innermost vectorized loop inside the conditions, where it can become lanes.
    fn pull_innermost(&mut self) {
        let used = |layer: &Layer| {
            self.prologues.iter().any(|(prologue, _)| match prologue {
                Prologue::Bind(_, expr) | Prologue::Skip(expr) => expr.vars().contains(&layer.var),
            })
        };
        let can = |layer: &Layer| layer.kind == ForKind::Vectorized && !layer.is_reduced && !used(layer);
        if self.innermost.is_none()
            && self.layers.iter().all(|layer| !layer.is_reduced)
            && self.layers.last().is_some_and(can)
        {
            self.innermost = self.layers.pop();
        }
    }

    /// Wraps a body in all loops and conditions.
    pub(super) fn around(self, body: Stmt) -> Stmt {
        let mut body = match self.inside {
            Some(cond) => Stmt::guarded(cond, body),
            None => body,
        };
        if let Some(layer) = self.innermost {
            body = layer.around(body);
        }
        body = with_prologues(self.prologues.into_iter().map(|(prologue, _)| prologue), body);
        self.layers.into_iter().rev().fold(body, |body, layer| layer.around(body))
    }

    /// Wraps two bodies: `inner` in the loops over reduced axes, and what `around` makes of that in
    /// the loops over the target.
    pub(super) fn reduced(self, inner: Stmt, around: impl FnOnce(Stmt) -> Stmt) -> Stmt {
        let (reduced, targets): (Vec<Layer>, Vec<Layer>) = self.layers.into_iter().partition(|layer| layer.is_reduced);
        let (own, outer): (Vec<_>, Vec<_>) = self.prologues.into_iter().partition(|(_, is_reduced)| *is_reduced);
        let update = with_prologues(own.into_iter().map(|(prologue, _)| prologue), inner);
        let update = reduced.into_iter().rev().fold(update, |body, layer| layer.around(body));
        let body = around(update);
        let body = match self.innermost {
            Some(layer) => layer.around(body),
            None => body,
        };
        let body = with_prologues(outer.into_iter().map(|(prologue, _)| prologue), body);
        targets.into_iter().rev().fold(body, |body, layer| layer.around(body))
    }
}

/// Wraps a body in bindings and conditions.
fn with_prologues(prologues: impl DoubleEndedIterator<Item = Prologue>, body: Stmt) -> Stmt {
    prologues.rev().fold(body, |body, prologue| match prologue {
        Prologue::Bind(var, value) => Stmt::new(StmtKind::Let { var, value, body: Arc::new(body) }),
        Prologue::Skip(cond) => Stmt::guarded(cond, body),
    })
}

impl Layer {
    /// Wraps a body in the loop.
    fn around(self, body: Stmt) -> Stmt {
        let ty = self.var.dtype().scalar;
        let int = |value: i64| Expr::Int { value: value.into(), ty };
        let (min, extent) = (int(self.min), int(self.extent));
        let inner = For { var: self.var, min, extent, kind: self.kind, annotations: Vec::new(), body };
        Stmt::new(StmtKind::For(Arc::new(inner)))
    }
}

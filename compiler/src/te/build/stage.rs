//! The data of a stage, and the primitives that rewrite its loops.
//!
//! ```text
//! x, y, c = s[Y].op.axis                    leaves: x y c
//! xo, yo, xi, yi = s[Y].tile(x, y, 4, 4)    leaves: xo yo xi yi c     relations: x = (xo, xi), y = (yo, yi)
//! s[Y].bind(xo, blockIdx.x)                 kind of xo
//! ```
//!
//! A stage's loops are the leaves of its relations, outermost first. Every primitive checks its arguments here; what depends
//! on the final order of the loops (a vectorized loop is innermost) is checked by `lower`. [`super::Stage`] is the public
//! face: it translates handles to positions and back.

use tilewright_ir::{
    AttrValue, Axis, AxisSeparators, Diagnostic, Expr, ForKind, IndexMap, InverseClaim, ScalarType, Scope, Span,
    ThreadTag, TileRequest, Var,
};

use super::{Built, arith::cast, maps};

/// Most loops of a stage; hostile programs split without end.
const MAX_LOOPS: usize = 128;

/// A loop of another stage, and the call that named it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attached {
    pub(super) tensor: usize,
    pub(super) index: usize,
    pub(super) place: Option<Span>,
}

/// How a tensor is computed.
#[derive(Debug)]
pub(super) struct StageData {
    pub(super) tensor: usize,
    pub(super) work: Work,
    pub(super) loops: Vec<LoopData>,
    /// Loops over the axes of the tensor, before any primitive.
    pub(super) roots: Vec<usize>,
    /// Loops over the reduced axes, before any primitive.
    pub(super) reduced: Vec<usize>,
    /// The loops that remain to be run, outermost first.
    pub(super) leaves: Vec<usize>,
    pub(super) relations: Vec<Relation>,
    /// Loops over the current layout: `roots`, or those of the last layout.
    pub(super) layout_axes: Vec<usize>,
    /// The layouts, one after the other, without separators.
    pub(super) layouts: Vec<IndexMap>,
    /// The last call that asked for a layout.
    pub(super) layout_span: Option<Span>,
    pub(super) separators: Option<AxisSeparators>,
    /// The tiled layout that follows them.
    pub(super) tiled: Option<TileRequest>,
    pub(super) scope: Scope,
    /// The loop of another stage in which the tensor is computed.
    pub(super) attached: Option<Attached>,
    /// Whether the memory has two halves, one of which is filled while the other one is read.
    pub(super) is_doubled: bool,
    /// Whether the nest that stores the identity of a reduction has loops with names of its own (`i_init`), so that steps of the
    /// schedule can tell them from those of the other nest.
    pub(super) names_init: bool,
    /// Where a tensor (no cache) is read from, if not from itself: tensor and holder.
    pub(super) redirects: Vec<(usize, usize)>,
}

/// The work of a stage for each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing: an input.
    Input,
    /// The definition of this tensor.
    Compute(usize),
    /// Copies from this tensor.
    Copy(usize),
}

/// A loop.
#[derive(Debug)]
pub(super) struct LoopData {
    pub(super) name: String,
    pub(super) extent: Expr,
    pub(super) reduce: bool,
    pub(super) kind: ForKind,
    /// Source position of the call that set the kind, if it is known.
    pub(super) kind_place: Option<Span>,
    /// The axis of the definition that it runs over.
    pub(super) axis: Option<Var>,
    pub(super) annotations: Vec<(String, AttrValue)>,
}

/// A replacement of loops by other loops.
#[derive(Debug)]
pub(super) enum Relation {
    /// `parent = outer * factor + inner`; unless `exact`, values beyond the parent's extent occur.
    Split { parent: usize, outer: usize, inner: usize, factor: Expr, exact: bool, by: SplitBy },
    /// `fused = outer * extent(inner) + inner`.
    Fuse { outer: usize, inner: usize, fused: usize },
    /// `to = map(from)`, `from = inverse(to)` off its padding.
    Layout { from: Vec<usize>, to: Vec<usize>, map: IndexMap, inverse: InverseClaim },
}

/// An integer constant of the type of `like`.
fn constant(value: i128, like: &Expr) -> Built<Expr> {
    Expr::int_of(value, like.dtype().scalar).ok_or_else(|| {
        let message = format!("{value} leaves the index type {}", like.dtype());
        Diagnostic::error("overflow", None, message)
    })
}

/// A type in which both extents fit.
fn unify(a: Expr, b: Expr) -> (Expr, Expr) {
    if a.dtype() == b.dtype() {
        return (a, b);
    }
    let wide = ScalarType::Int64.into();
    (cast(a, wide), cast(b, wide))
}

/// The product of two extents, in a type that both fit.
fn product(a: &Expr, b: &Expr) -> Built<Expr> {
    let (a, b) = unify(a.clone(), b.clone());
    match (a.as_const_int(), b.as_const_int()) {
        (Some(x), Some(y)) => {
            let value = x.checked_mul(y).unwrap_or(i128::MAX);
            constant(value, &a)
        }
        _ => Ok(maps::simplify(&(a * b), &[])),
    }
}

impl StageData {
    /// A stage over the axes of a tensor, with a serial loop for each axis and each reduced axis.
    pub(super) fn new(tensor: usize, work: Work, axes: &[Axis], reduced: &[Axis]) -> Self {
        let run = |axis: &Axis, reduce| LoopData {
            name: axis.var.name().to_owned(),
            extent: axis.extent.clone(),
            reduce,
            kind: ForKind::Serial,
            kind_place: None,
            axis: Some(axis.var.clone()),
            annotations: Vec::new(),
        };
        let loops: Vec<_> =
            axes.iter().map(|axis| run(axis, false)).chain(reduced.iter().map(|axis| run(axis, true))).collect();
        // The loops over the axes come first in `loops`, so their numbers are those of the axes.
        let roots: Vec<_> = (0..axes.len()).collect();
        Self {
            tensor,
            work,
            reduced: (axes.len()..loops.len()).collect(),
            leaves: (0..loops.len()).collect(),
            loops,
            layout_axes: roots.clone(),
            roots,
            relations: Vec::new(),
            layouts: Vec::new(),
            layout_span: None,
            separators: None,
            tiled: None,
            scope: Scope::Global,
            attached: None,
            is_doubled: false,
            names_init: false,
            redirects: Vec::new(),
        }
    }

    /// Whether no primitive changed its loops.
    pub(super) fn is_fresh(&self) -> bool {
        self.relations.is_empty()
            && self.layouts.is_empty()
            && self.leaves.iter().copied().eq(0..self.loops.len())
            && self.loops.iter().all(|run| run.kind == ForKind::Serial)
    }

    /// The tensor that this stage loads from in place of `tensor`: a cache of it, or itself.
    pub(super) fn holder(&self, tensor: usize) -> usize {
        self.redirects.iter().find(|(base, _)| *base == tensor).map_or(tensor, |(_, holder)| *holder)
    }

    /// Position of a loop among the leaves, if it can still be scheduled.
    pub(super) fn leaf(&self, iter: usize) -> Built<usize> {
        let name = &self.loops[iter].name;
        if self.work == Work::Input {
            let message = format!("`{name}` belongs to an input, which has no loops");
            return Err(Diagnostic::error("no-loops", None, message));
        }
        self.leaves.iter().position(|&leaf| leaf == iter).ok_or_else(|| {
            let how = self.relations.iter().find_map(|relation| match relation {
                Relation::Split { parent, .. } if *parent == iter => {
                    Some("was split; use the loops that split returned")
                }
                Relation::Fuse { outer, inner, .. } if *outer == iter || *inner == iter => {
                    Some("was fused; use the loop that fuse returned")
                }
                Relation::Layout { from, .. } if from.contains(&iter) => {
                    Some("was replaced by transform_layout; use the loops that it returned")
                }
                Relation::Split { .. } | Relation::Fuse { .. } | Relation::Layout { .. } => None,
            });
            Diagnostic::error("not-a-loop", None, format!("`{name}` is no loop of this stage any more"))
                .with_help(format!("it {}", how.unwrap_or("was replaced")))
        })
    }

    /// Position of a loop among the leaves, if it is one and has no kind yet.
    fn serial_leaf(&self, iter: usize) -> Built<usize> {
        let position = self.leaf(iter)?;
        let run = &self.loops[iter];
        if run.kind != ForKind::Serial {
            let message = format!("the loop `{}` is {} already", run.name, kind_name(run.kind));
            let error = Diagnostic::error("loop-kind", None, message).with_help(
                "a loop has one kind: parallel, vectorized, unrolled or bound; split it, or choose another one",
            );
            return Err(run.kind_place.map_or(error.clone(), |place| error.with_label(place, "here")));
        }
        Ok(position)
    }

    /// Refuses to add `n_loops` loops if the stage would have more than [`MAX_LOOPS`].
    fn check_room(&self, n_loops: usize) -> Built<()> {
        if self.loops.len() + n_loops > MAX_LOOPS {
            return Err(Diagnostic::error("fuel", None, format!("a stage has at most {MAX_LOOPS} loops")));
        }
        Ok(())
    }

    /// Adds a loop to `loops`. The caller adds it to the leaves.
    fn add(&mut self, name: String, extent: Expr, reduce: bool) -> Built<usize> {
        self.check_room(1)?;
        let (kind, kind_place, axis, annotations) = (ForKind::Serial, None, None, Vec::new());
        self.loops.push(LoopData { name, extent, reduce, kind, kind_place, axis, annotations });
        Ok(self.loops.len() - 1)
    }

    /// Splits a loop into an outer and an inner one, whose extents multiply to at least its own.
    ///
    /// The parent stays in `loops`, as the value that the relation defines: an axis of the definition must be computable
    /// from the loops that are left.
    pub(super) fn split(&mut self, iter: usize, by: SplitBy) -> Built<(usize, usize)> {
        let position = self.serial_leaf(iter)?;
        self.check_room(2)?;
        let (SplitBy::Factor(given) | SplitBy::Parts(given)) = by;
        if given < 1 {
            let message = format!("a loop cannot be split by {given}");
            return Err(Diagnostic::error("split", None, message).with_help("give a factor of at least 1"));
        }
        let (extent, reduce) = (self.loops[iter].extent.clone(), self.loops[iter].reduce);
        let name = self.loops[iter].name.clone();
        let given = constant(given.into(), &extent)?;
        let other = ceil_div(&extent, &given)?;
        let exact = maps::divides(&given, &extent);
        let (outer, inner) = match by {
            SplitBy::Factor(_) => (other, given),
            SplitBy::Parts(_) => (given, other),
        };
        let factor = inner.clone();
        let outer = self.add(format!("{name}_outer"), outer, reduce)?;
        let inner = self.add(format!("{name}_inner"), inner, reduce)?;
        self.leaves.splice(position..=position, [outer, inner]);
        self.relations.push(Relation::Split { parent: iter, outer, inner, factor, exact, by });
        Ok((outer, inner))
    }

    /// Replaces two neighbours by one loop that runs over the pairs of their values, in the same order.
    pub(super) fn fuse(&mut self, outer: usize, inner: usize) -> Built<usize> {
        let (at, next) = (self.serial_leaf(outer)?, self.serial_leaf(inner)?);
        let (a, b) = (&self.loops[outer], &self.loops[inner]);
        if next != at + 1 {
            let message = format!("`{}` and `{}` are not neighbours, outer loop first", a.name, b.name);
            return Err(Diagnostic::error("fuse", None, message).with_help("reorder them next to each other first"));
        }
        if a.reduce != b.reduce {
            let message = format!("`{}` and `{}` cannot be fused: one of them is a reduction", a.name, b.name);
            return Err(Diagnostic::error("fuse", None, message));
        }
        let (name, reduce) = (format!("{}_{}_fused", a.name, b.name), a.reduce);
        let extent = product(&a.extent, &b.extent)?;
        let fused = self.add(name, extent, reduce)?;
        self.leaves.splice(at..=next, [fused]);
        self.relations.push(Relation::Fuse { outer, inner, fused });
        Ok(fused)
    }

    /// Puts loops into the given order. They keep their positions as a set; other loops are not moved.
    pub(super) fn reorder(&mut self, order: &[usize]) -> Built<()> {
        let mut positions = Vec::with_capacity(order.len());
        for &iter in order {
            let position = self.leaf(iter)?;
            if positions.contains(&position) {
                let message = format!("`{}` is named twice", self.loops[iter].name);
                return Err(Diagnostic::error("reorder", None, message));
            }
            positions.push(position);
        }
        positions.sort_unstable();
        for (position, &iter) in positions.into_iter().zip(order) {
            self.leaves[position] = iter;
        }
        Ok(())
    }

    /// Sets the kind of a loop. `place` is the source position of the request.
    ///
    /// # Errors
    /// Refuses what no later primitive can repair: a concurrent reduction, because its iterations write one element; lanes
    /// or unrolled copies without a constant number; a second loop on one axis of the launch.
    pub(super) fn set_kind(&mut self, iter: usize, kind: ForKind, place: Option<Span>) -> Built<()> {
        // From here on the loop is serial, so the search below for a loop of the same thread axis cannot find it.
        self.serial_leaf(iter)?;
        let run = &self.loops[iter];
        // A reduction by the threads of a group is a step of the schedule, `allreduce`.
        let in_order =
            matches!(kind, ForKind::Serial | ForKind::Unrolled | ForKind::ThreadBinding(ThreadTag::Thread(_)));
        if run.reduce && !in_order {
            let message =
                format!("the reduction `{}` cannot be {}: its iterations write one element", run.name, kind_name(kind));
            return Err(Diagnostic::error("reduction-kind", None, message)
                .with_help("bind a loop over an axis of the tensor instead, or bind the reduction to threadIdx.x"));
        }
        let is_reduced_at_once = run.reduce && matches!(kind, ForKind::ThreadBinding(_));
        let wants_constant = is_reduced_at_once || matches!(kind, ForKind::Unrolled | ForKind::Vectorized);
        if wants_constant && run.extent.as_const_int().is_none() {
            let message = format!(
                "`{}` has the extent {}, which is no constant: it cannot be {}",
                run.name,
                run.extent,
                kind_name(kind)
            );
            return Err(Diagnostic::error("symbolic-extent", None, message)
                .with_help("split it by a constant factor, and take the inner loop"));
        }
        if let (ForKind::Vectorized, Some(extent)) = (kind, run.extent.as_const_int())
            && extent > 1024
        {
            let message = format!("{extent} lanes are more than the 1024 that a vector may have");
            return Err(Diagnostic::error("vectorize", None, message).with_help("split the loop first"));
        }
        let same = self.leaves.iter().find(|&&leaf| self.loops[leaf].kind == kind);
        if let (ForKind::ThreadBinding(tag), Some(&other)) = (kind, same) {
            let message = format!("{tag} is bound to `{}` already", self.loops[other].name);
            let error = Diagnostic::error("thread-twice", None, message)
                .with_help("fuse the two loops, or bind the second one to another axis");
            return Err(self.loops[other].kind_place.map_or(error.clone(), |place| error.with_label(place, "here")));
        }
        let run = &mut self.loops[iter];
        (run.kind, run.kind_place) = (kind, place);
        Ok(())
    }

    /// Binds a loop to a thread axis, whose extent may be given.
    pub(super) fn bind(
        &mut self,
        iter: usize,
        tag: ThreadTag,
        extent: Option<&Expr>,
        place: Option<Span>,
    ) -> Built<()> {
        if let Some(extent) = extent {
            let run = &self.loops[iter];
            // One extent may be written in two ways, such as `n` and `n // 1`.
            if maps::simplify(extent, &[]) != maps::simplify(&run.extent, &[]) {
                let message = format!("{tag} has the extent {extent}, the loop `{}` has {}", run.name, run.extent);
                return Err(Diagnostic::error("thread-extent", None, message)
                    .with_help("leave the extent of the thread axis out"));
            }
        }
        self.set_kind(iter, ForKind::ThreadBinding(tag), place)
    }

    /// Adds a layout (RFC 39, "transform_layout"), and returns the loops that now run over its axes: none for an input.
    ///
    /// The loops are rewritten if those of the current layout are still there as they were made, and an inverse of the map
    /// is known. Otherwise they stay as they are, and the inner error says why: the layout is recorded all the same, because
    /// the order of loops is no part of its meaning.
    pub(super) fn transform_layout(&mut self, map: &IndexMap, names: &[String]) -> Built<Result<Vec<usize>, String>> {
        let separators = map.axis_separators().clone();
        let map = map.without_separators();
        let physical = maps::physical_shape(&map)?;
        self.check_room(names.len())?;
        let axes = self.layout_axes.clone();
        self.separators = Some(separators);
        self.layouts.push(map.clone());
        if self.work == Work::Input {
            return Ok(Ok(Vec::new()));
        }
        let intact = axes.iter().all(|axis| self.leaves.contains(axis) && self.loops[*axis].kind == ForKind::Serial);
        // Once loops were left alone, the axes of later layouts have no loops of their own.
        if !intact || axes.len() != map.vars().len() {
            self.layout_axes = Vec::new();
            return Ok(Err("they were scheduled before this layout".to_owned()));
        }
        let inverse = match maps::inverse(&map, &physical) {
            Ok(inverse) => inverse,
            Err(error) => {
                self.layout_axes = Vec::new();
                return Ok(Err(error.message));
            }
        };
        // No removed loop stands before `first`, so the position is the same after `retain`.
        let first = axes.iter().filter_map(|axis| self.leaves.iter().position(|leaf| leaf == axis)).min().unwrap_or(0);
        let mut to = Vec::with_capacity(names.len());
        for (name, extent) in names.iter().zip(&physical) {
            to.push(self.add(name.clone(), extent.clone(), false)?);
        }
        self.leaves.retain(|leaf| !axes.contains(leaf));
        self.leaves.splice(first..first, to.iter().copied());
        self.relations.push(Relation::Layout { from: axes, to: to.clone(), map, inverse });
        self.layout_axes.clone_from(&to);
        Ok(Ok(to))
    }

    /// Shape that the next layout starts from.
    pub(super) fn layout_shape(&self, logical: &[Expr]) -> Built<Vec<Expr>> {
        self.layouts.last().map_or_else(|| Ok(logical.to_vec()), maps::physical_shape)
    }
}

/// Into which extents a loop is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitBy {
    /// The extent of the inner loop. The outer one gets the quotient, rounded up.
    Factor(i64),
    /// The extent of the outer loop. The inner one gets the quotient, rounded up.
    Parts(i64),
}

/// `extent / by`, rounded up.
fn ceil_div(extent: &Expr, by: &Expr) -> Built<Expr> {
    match (extent.as_const_int(), by.as_const_int()) {
        (Some(x), Some(y)) => constant((x + y - 1).div_euclid(y), extent),
        (_, y) => {
            let round_up = constant(y.unwrap_or(1) - 1, extent)?;
            Ok(maps::simplify(&(extent.clone() + round_up).floor_div(by.clone()), &[]))
        }
    }
}

/// How a loop is run, as a predicate of messages: `bound to blockIdx.x`.
fn kind_name(kind: ForKind) -> String {
    match kind {
        ForKind::Serial => "serial".to_owned(),
        ForKind::Parallel => "parallel".to_owned(),
        ForKind::Vectorized => "vectorized".to_owned(),
        ForKind::Unrolled => "unrolled".to_owned(),
        ForKind::ThreadBinding(tag) => format!("bound to {tag}"),
    }
}

//! The schedule: a stage for each tensor, and the primitives that rewrite its loops.
//!
//! ```text
//! x, y, c = s[Y].op.axis                    leaves: x y c
//! xo, yo, xi, yi = s[Y].tile(x, y, 4, 4)    leaves: xo yo xi yi c     relations: x = (xo, xi), y = (yo, yi)
//! s[Y].bind(xo, blockIdx.x)                 kind of xo
//! ```
//!
//! A stage's loops are the leaves of its relations, outermost first. Every primitive is checked here, where its place is
//! known; what depends on the final order (a vectorized loop is innermost) is checked by `lower`.

use tilewright_ir::{
    AttrValue, Axis, AxisSeparators, Diagnostic, Expr, ForKind, IndexMap, InverseClaim, ScalarType, Scope, Span,
    ThreadTag, TileRequest, Var,
};

use super::maps;
use super::value::Eval;

/// Most loops of a stage; hostile programs split without end.
const MAX_LOOPS: usize = 128;

/// The stages of the tensors that some outputs need.
pub(super) struct Schedule {
    pub(super) outputs: Vec<usize>,
    /// In the order of the program.
    pub(super) stages: Vec<Stage>,
    /// Tensors whose definitions stand where they are read.
    pub(super) inlined: Vec<usize>,
    pub(super) span: Span,
    /// Frame of the call that made it.
    pub(super) frame: usize,
    /// Function that made it.
    pub(super) function: Option<String>,
    /// Whether a lower call used it.
    pub(super) lowered: bool,
}

/// How a tensor is computed.
pub(super) struct Stage {
    pub(super) tensor: usize,
    pub(super) work: Work,
    pub(super) loops: Vec<Loop>,
    /// Loops over the axes of the tensor, before any primitive.
    pub(super) roots: Vec<usize>,
    /// Loops over the reduced axes, before any primitive.
    pub(super) reduced: Vec<usize>,
    /// What is left to loop over, outermost first.
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
    /// Where a tensor (no cache) is read from, if not from itself: tensor and holder.
    pub(super) redirects: Vec<(usize, usize)>,
}

/// What a stage does for each element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing: an input.
    Input,
    /// The definition of this tensor.
    Compute(usize),
    /// Copies from this tensor.
    Copy(usize),
}

/// A loop.
pub(super) struct Loop {
    pub(super) name: String,
    pub(super) extent: Expr,
    pub(super) reduce: bool,
    pub(super) kind: ForKind,
    /// Where the kind was asked for.
    pub(super) kind_span: Option<Span>,
    /// The axis of the definition that it runs over.
    pub(super) axis: Option<Var>,
    pub(super) annotations: Vec<(String, AttrValue)>,
}

/// How loops became others.
pub(super) enum Relation {
    /// `parent = outer * factor + inner`; unless `exact`, values beyond the parent's extent occur.
    Split { parent: usize, outer: usize, inner: usize, factor: Expr, exact: bool },
    /// `fused = outer * extent(inner) + inner`.
    Fuse { outer: usize, inner: usize, fused: usize },
    /// `to = map(from)`, `from = inverse(to)` off its padding.
    Layout { from: Vec<usize>, to: Vec<usize>, map: IndexMap, inverse: InverseClaim },
}

/// An integer constant of the type of `like`.
fn constant(value: i128, like: &Expr, span: Span) -> Eval<Expr> {
    Expr::int_of(value, like.dtype().scalar).ok_or_else(|| {
        let message = format!("{value} leaves the index type {}", like.dtype());
        Diagnostic::error("overflow", Some(span), message)
    })
}

/// A type in which both extents fit.
fn unify(a: Expr, b: Expr) -> (Expr, Expr) {
    if a.dtype() == b.dtype() {
        return (a, b);
    }
    let wide = ScalarType::Int64.into();
    (super::arith::cast(a, wide), super::arith::cast(b, wide))
}

fn product(a: &Expr, b: &Expr, span: Span) -> Eval<Expr> {
    let (a, b) = unify(a.clone(), b.clone());
    match (a.as_const_int(), b.as_const_int()) {
        (Some(x), Some(y)) => {
            let value = x.checked_mul(y).unwrap_or(i128::MAX);
            constant(value, &a, span)
        }
        _ => Ok(maps::simplify(&(a * b), &[])),
    }
}

impl Stage {
    /// A stage over the axes of a tensor.
    pub(super) fn new(tensor: usize, work: Work, axes: &[Axis], reduced: &[Axis]) -> Self {
        let run = |axis: &Axis, reduce| Loop {
            name: axis.var.name().to_owned(),
            extent: axis.extent.clone(),
            reduce,
            kind: ForKind::Serial,
            kind_span: None,
            axis: Some(axis.var.clone()),
            annotations: Vec::new(),
        };
        let loops: Vec<_> =
            axes.iter().map(|axis| run(axis, false)).chain(reduced.iter().map(|axis| run(axis, true))).collect();
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

    /// The holder that a tensor is read from.
    pub(super) fn holder(&self, tensor: usize) -> usize {
        self.redirects.iter().find(|(base, _)| *base == tensor).map_or(tensor, |(_, holder)| *holder)
    }

    /// Position of a loop among the leaves, if it can still be scheduled.
    fn leaf(&self, iter: usize, span: Span) -> Eval<usize> {
        let name = &self.loops[iter].name;
        if self.work == Work::Input {
            let message = format!("`{name}` belongs to an input, which has no loops");
            return Err(Diagnostic::error("no-loops", Some(span), message));
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
                _ => None,
            });
            Diagnostic::error("not-a-loop", Some(span), format!("`{name}` is no loop of this stage any more"))
                .with_help(format!("it {}", how.unwrap_or("was replaced")))
        })
    }

    /// A leaf without a kind yet.
    fn plain_leaf(&self, iter: usize, span: Span) -> Eval<usize> {
        let position = self.leaf(iter, span)?;
        let run = &self.loops[iter];
        if run.kind != ForKind::Serial {
            let message = format!("the loop `{}` is {} already", run.name, kind_name(run.kind));
            let error = Diagnostic::error("loop-kind", Some(span), message).with_help(
                "a loop has one kind: parallel, vectorized, unrolled or bound; split it, or choose another one",
            );
            return Err(run.kind_span.map_or(error.clone(), |span| error.with_label(span, "here")));
        }
        Ok(position)
    }

    fn add(&mut self, name: String, extent: Expr, reduce: bool, span: Span) -> Eval<usize> {
        if self.loops.len() >= MAX_LOOPS {
            return Err(Diagnostic::error("fuel", Some(span), format!("a stage has at most {MAX_LOOPS} loops")));
        }
        let (kind, kind_span, axis, annotations) = (ForKind::Serial, None, None, Vec::new());
        self.loops.push(Loop { name, extent, reduce, kind, kind_span, axis, annotations });
        Ok(self.loops.len() - 1)
    }

    /// `outer, inner = split(iter, factor)`, or with the number of parts.
    pub(super) fn split(&mut self, iter: usize, by: SplitBy, span: Span) -> Eval<(usize, usize)> {
        let position = self.plain_leaf(iter, span)?;
        let (SplitBy::Factor(given) | SplitBy::Parts(given)) = by;
        if given < 1 {
            let message = format!("a loop cannot be split by {given}");
            return Err(Diagnostic::error("split", Some(span), message).with_help("give a factor of at least 1"));
        }
        let (extent, reduce) = (self.loops[iter].extent.clone(), self.loops[iter].reduce);
        let name = self.loops[iter].name.clone();
        let given = constant(given.into(), &extent, span)?;
        let other = ceil_div(&extent, &given, span)?;
        let exact = maps::divides(&given, &extent);
        let (outer, inner) = match by {
            SplitBy::Factor(_) => (other, given),
            SplitBy::Parts(_) => (given, other),
        };
        let factor = inner.clone();
        let outer = self.add(format!("{name}_outer"), outer, reduce, span)?;
        let inner = self.add(format!("{name}_inner"), inner, reduce, span)?;
        self.leaves.splice(position..=position, [outer, inner]);
        self.relations.push(Relation::Split { parent: iter, outer, inner, factor, exact });
        Ok((outer, inner))
    }

    /// One loop for two neighbours.
    pub(super) fn fuse(&mut self, outer: usize, inner: usize, span: Span) -> Eval<usize> {
        let (at, next) = (self.plain_leaf(outer, span)?, self.plain_leaf(inner, span)?);
        let (a, b) = (&self.loops[outer], &self.loops[inner]);
        if next != at + 1 {
            let message = format!("`{}` and `{}` are not neighbours, outer loop first", a.name, b.name);
            return Err(
                Diagnostic::error("fuse", Some(span), message).with_help("reorder them next to each other first")
            );
        }
        if a.reduce != b.reduce {
            let message = format!("`{}` and `{}` cannot be fused: one of them is a reduction", a.name, b.name);
            return Err(Diagnostic::error("fuse", Some(span), message));
        }
        let (name, reduce) = (format!("{}_{}_fused", a.name, b.name), a.reduce);
        let extent = product(&a.extent, &b.extent, span)?;
        let fused = self.add(name, extent, reduce, span)?;
        self.leaves.splice(at..=next, [fused]);
        self.relations.push(Relation::Fuse { outer, inner, fused });
        Ok(fused)
    }

    /// The given loops in the given order, in the places that they have together.
    pub(super) fn reorder(&mut self, order: &[(usize, Span)]) -> Eval<()> {
        let mut places = Vec::with_capacity(order.len());
        for (iter, span) in order {
            let place = self.leaf(*iter, *span)?;
            if places.contains(&place) {
                let message = format!("`{}` is named twice", self.loops[*iter].name);
                return Err(Diagnostic::error("reorder", Some(*span), message));
            }
            places.push(place);
        }
        places.sort_unstable();
        for (place, (iter, _)) in places.into_iter().zip(order) {
            self.leaves[place] = *iter;
        }
        Ok(())
    }

    /// Says how a loop is run.
    pub(super) fn set_kind(&mut self, iter: usize, kind: ForKind, span: Span) -> Eval<()> {
        self.plain_leaf(iter, span)?;
        let run = &self.loops[iter];
        let in_order = matches!(kind, ForKind::Serial | ForKind::Unrolled);
        if run.reduce && !in_order {
            let message =
                format!("the reduction `{}` cannot be {}: its iterations write one element", run.name, kind_name(kind));
            return Err(Diagnostic::error("reduction-kind", Some(span), message)
                .with_help("bind a loop over an axis of the tensor instead"));
        }
        let wants_constant = matches!(kind, ForKind::Unrolled | ForKind::Vectorized);
        if wants_constant && run.extent.as_const_int().is_none() {
            let message = format!(
                "`{}` has the extent {}, which is no constant: it cannot be {}",
                run.name,
                run.extent,
                kind_name(kind)
            );
            return Err(Diagnostic::error("symbolic-extent", Some(span), message)
                .with_help("split it by a constant factor, and take the inner loop"));
        }
        if let (ForKind::Vectorized, Some(extent)) = (kind, run.extent.as_const_int())
            && extent > 1024
        {
            let message = format!("{extent} lanes are more than the 1024 that a vector may have");
            return Err(Diagnostic::error("vectorize", Some(span), message).with_help("split the loop first"));
        }
        let same = self.leaves.iter().find(|&&leaf| self.loops[leaf].kind == kind);
        if let (ForKind::ThreadBinding(tag), Some(&other)) = (kind, same) {
            let message = format!("{tag} is bound to `{}` already", self.loops[other].name);
            let error = Diagnostic::error("thread-twice", Some(span), message)
                .with_help("fuse the two loops, or bind the second one to another axis");
            return Err(self.loops[other].kind_span.map_or(error.clone(), |span| error.with_label(span, "here")));
        }
        let run = &mut self.loops[iter];
        (run.kind, run.kind_span) = (kind, Some(span));
        Ok(())
    }

    /// Binds a loop to a thread axis, whose extent may be given.
    pub(super) fn bind(&mut self, iter: usize, tag: ThreadTag, extent: Option<&Expr>, span: Span) -> Eval<()> {
        if let Some(extent) = extent {
            let run = &self.loops[iter];
            if maps::simplify(extent, &[]) != maps::simplify(&run.extent, &[]) {
                let message = format!("{tag} has the extent {extent}, the loop `{}` has {}", run.name, run.extent);
                return Err(Diagnostic::error("thread-extent", Some(span), message)
                    .with_help("leave the extent of the thread axis out"));
            }
        }
        self.set_kind(iter, ForKind::ThreadBinding(tag), span)
    }

    /// Adds a layout (RFC 39, "transform_layout"); the loops that now run over it, if loops there are.
    ///
    /// The loops are rewritten only where all of the current layout's are still there as they were, and the map has an
    /// inverse that is known; else they stay as they are.
    pub(super) fn transform_layout(&mut self, map: &IndexMap, names: &[String], span: Span) -> Eval<LayoutLoops> {
        let plain = map.without_separators();
        let physical = maps::physical_shape(&plain)?;
        let axes = self.layout_axes.clone();
        self.separators = Some(map.axis_separators().clone());
        self.layouts.push(plain.clone());
        self.layout_span = Some(span);
        if self.work == Work::Input {
            return Ok(LayoutLoops::Rewritten(Vec::new()));
        }
        let intact = axes.iter().all(|axis| self.leaves.contains(axis) && self.loops[*axis].kind == ForKind::Serial);
        // Once loops were left alone, the axes of later layouts have no loops of their own.
        if !intact || axes.len() != plain.vars().len() {
            self.layout_axes = Vec::new();
            return Ok(LayoutLoops::Kept("they were scheduled before this layout".to_owned()));
        }
        let inverse = match maps::inverse(&plain, &physical) {
            Ok(inverse) => inverse,
            Err(error) => {
                self.layout_axes = Vec::new();
                return Ok(LayoutLoops::Kept(error.message));
            }
        };
        let first = axes.iter().filter_map(|axis| self.leaves.iter().position(|leaf| leaf == axis)).min().unwrap_or(0);
        let mut to = Vec::with_capacity(names.len());
        for (name, extent) in names.iter().zip(&physical) {
            to.push(self.add(name.clone(), extent.clone(), false, span)?);
        }
        self.leaves.retain(|leaf| !axes.contains(leaf));
        self.leaves.splice(first..first, to.iter().copied());
        self.relations.push(Relation::Layout { from: axes, to: to.clone(), map: plain, inverse });
        self.layout_axes.clone_from(&to);
        Ok(LayoutLoops::Rewritten(to))
    }

    /// Shape that the next layout starts from.
    pub(super) fn layout_shape(&self, logical: &[Expr]) -> Eval<Vec<Expr>> {
        self.layouts.last().map_or_else(|| Ok(logical.to_vec()), maps::physical_shape)
    }
}

/// What a layout did to the loops.
pub(super) enum LayoutLoops {
    /// These run over it; none for an input.
    Rewritten(Vec<usize>),
    /// They stay as they were, because of this.
    Kept(String),
}

/// How a loop is split.
#[derive(Clone, Copy)]
pub(super) enum SplitBy {
    /// Extent of the inner loop.
    Factor(i64),
    /// Extent of the outer loop.
    Parts(i64),
}

fn ceil_div(extent: &Expr, by: &Expr, span: Span) -> Eval<Expr> {
    match (extent.as_const_int(), by.as_const_int()) {
        (Some(x), Some(y)) => constant((x + y - 1).div_euclid(y), extent, span),
        (_, y) => {
            let round_up = constant(y.unwrap_or(1) - 1, extent, span)?;
            Ok(maps::simplify(&(extent.clone() + round_up).floor_div(by.clone()), &[]))
        }
    }
}

fn kind_name(kind: ForKind) -> String {
    match kind {
        ForKind::Serial => "serial".to_owned(),
        ForKind::Parallel => "parallel".to_owned(),
        ForKind::Vectorized => "vectorized".to_owned(),
        ForKind::Unrolled => "unrolled".to_owned(),
        ForKind::ThreadBinding(tag) => format!("bound to {tag}"),
    }
}

impl Schedule {
    /// The stages that have loops and memory of their own, and the inputs.
    pub(super) fn live_stages(&self) -> impl DoubleEndedIterator<Item = &Stage> {
        self.stages.iter().filter(|stage| !self.inlined.contains(&stage.tensor))
    }

    /// Position of the stage of a tensor.
    pub(super) fn position(&self, tensor: usize) -> Option<usize> {
        self.stages.iter().position(|stage| stage.tensor == tensor)
    }
}

//! The primitives of a stage, on handles. What they do to the loops is in [`super::stage`].

use tilewright_ir::{
    self as ir, AttrValue, AxisSeparators, Diagnostic, Expr, ForKind, IndexMap, ThreadTag, TileRequest,
};

use super::schedule::Schedule;
use super::stage::{Attached, SplitBy, StageData, Work};
use super::{Built, Loop};

/// A view of one stage of a [`Schedule`]: the loops that compute a tensor.
///
/// ```
/// use tilewright_compiler::te::build::{Builder, SplitBy};
/// use tilewright_ir::{Expr, ScalarType};
///
/// let mut te = Builder::new();
/// let shape = [30, 40].map(Expr::int);
/// let a = te.placeholder("A", &shape, ScalarType::Float32)?;
/// let b = te.compute("B", &shape, |te, i| Ok(te.load(a, i)?.into()))?;
/// let mut schedule = te.create_schedule(&[b])?;
/// let mut stage = schedule.stage(b)?;
/// let [y, x] = stage.axes()[..] else { unreachable!("B has two axes") };
/// let (yo, yi) = stage.split(y, SplitBy::Parts(4))?;
/// stage.reorder(&[yo, x, yi])?;
/// let fused = stage.fuse(&[yo, x])?;
/// stage.parallel(fused)?;
/// let error = stage.split(y, SplitBy::Factor(2)).unwrap_err();
/// assert_eq!((error.code, error.help.as_deref()), ("not-a-loop", Some("it was split; use the loops that split returned")));
/// # Ok::<(), tilewright_ir::Diagnostic>(())
/// ```
///
/// Every method that changes the stage fails with `inlined` if the tensor is inlined. A method that takes a [`Loop`] fails
/// with `not-a-loop` if the loop belongs to another stage, or was replaced by other loops, and with `no-loops` for an input.
#[derive(Debug)]
pub struct Stage<'s> {
    schedule: Schedule<'s>,
    position: usize,
}

/// The effect of [`Stage::transform_layout`] on the loops.
#[derive(Clone, Debug)]
pub enum LayoutLoops {
    /// One loop for each axis of the new layout, outermost first, in place of those over the current one. None for an input.
    Rewritten(Vec<Loop>),
    /// The layout is recorded, and the loops stay as they were. The warning (`loops-kept`) says why.
    Kept(Diagnostic),
}

impl<'s> Stage<'s> {
    /// The stage at a position of a schedule.
    pub(super) fn open(schedule: Schedule<'s>, position: usize) -> Self {
        Self { schedule, position }
    }

    /// The loops and the layout.
    fn data(&self) -> &StageData {
        &self.schedule.data().stages[self.position]
    }

    /// The stage, to be changed.
    fn edit(&mut self) -> Built<&mut StageData> {
        self.check_live()?;
        Ok(&mut self.schedule.data_mut().stages[self.position])
    }

    /// The tensor that the stage computes, in its logical shape.
    fn buffer(&self) -> &ir::Buffer {
        &self.schedule.te.tensors[self.data().tensor].buffer
    }

    /// The handle of a loop.
    fn handle(&self, index: usize) -> Loop {
        Loop { schedule: self.schedule.id(), tensor: self.data().tensor, index }
    }

    /// The position of a loop of this stage.
    fn own(&self, run: Loop) -> Built<usize> {
        let (id, data) = (self.schedule.id(), self.data());
        // `cache_write` gives a tensor a stage with fewer loops: handles from before it may be out of range.
        if (run.schedule, run.tensor) == (id, data.tensor) && run.index < data.loops.len() {
            return Ok(run.index);
        }
        let here = &self.buffer().name;
        let name = |schedule: usize| {
            let other = &self.schedule.te.schedules[schedule];
            let stage = other.position(run.tensor).map(|position| &other.stages[position]);
            stage.and_then(|stage| stage.loops.get(run.index)).map_or("the loop", |run| run.name.as_str())
        };
        let message = if run.schedule.builder != id.builder {
            "the loop belongs to another builder".to_owned()
        } else if (run.schedule, run.tensor) == (id, data.tensor) {
            format!("the loop was one of `{here}` before cache_write")
        } else if run.schedule.index == id.index {
            let other = &self.schedule.te.tensors[run.tensor].buffer;
            format!("`{}` is a loop of `{other}`, not of `{here}`", name(id.index))
        } else {
            format!("`{}` is a loop of another schedule, not of this stage of `{here}`", name(run.schedule.index))
        };
        Err(Diagnostic::error("not-a-loop", None, message))
    }

    /// Checks that the stage has loops of its own.
    ///
    /// # Errors
    /// `inlined`: [`Stage::compute_inline`] was called.
    pub fn check_live(&self) -> Result<(), Diagnostic> {
        if self.schedule.data().inlined.contains(&self.data().tensor) {
            let message = format!("`{}` is inlined: it has no loops", self.buffer());
            return Err(Diagnostic::error("inlined", None, message));
        }
        Ok(())
    }

    /// Whether the stage runs the definition of its tensor: it is neither an input nor a copy.
    pub fn computes(&self) -> bool {
        matches!(self.data().work, Work::Compute(_))
    }

    /// The loops over the axes of the tensor, before any primitive.
    pub fn axes(&self) -> Vec<Loop> {
        self.data().roots.iter().map(|&index| self.handle(index)).collect()
    }

    /// The loops over the reduced axes, before any primitive.
    pub fn reduce_axes(&self) -> Vec<Loop> {
        self.data().reduced.iter().map(|&index| self.handle(index)).collect()
    }

    /// The loops that are left to run, outermost first.
    pub fn loops(&self) -> Vec<Loop> {
        self.data().leaves.iter().map(|&index| self.handle(index)).collect()
    }

    /// Name and extent of a loop of this stage.
    ///
    /// # Errors
    /// `not-a-loop`.
    pub fn describe(&self, run: Loop) -> Result<(&str, &Expr), Diagnostic> {
        let data = &self.data().loops[self.own(run)?];
        Ok((&data.name, &data.extent))
    }

    /// The loop over an axis of the definition.
    ///
    /// # Errors
    /// `not-a-loop`: the axis is that of another tensor.
    pub fn loop_over(&self, axis: &ir::Var) -> Result<Loop, Diagnostic> {
        let found = self.data().loops.iter().position(|run| run.axis.as_ref() == Some(axis));
        found.map(|index| self.handle(index)).ok_or_else(|| {
            let message = format!("`{axis}` is no loop of `{}`", self.buffer());
            Diagnostic::error("not-a-loop", None, message)
                .with_help("the loops of a stage are s[B].op.axis, s[B].op.reduce_axis and what its methods return")
        })
    }

    /// The position of a loop among [`Stage::loops`].
    ///
    /// # Errors
    /// `not-a-loop`, `no-loops`.
    pub fn position(&self, run: Loop) -> Result<usize, Diagnostic> {
        self.data().leaf(self.own(run)?)
    }

    /// Splits a loop in two, and returns the two, outer first. If the extent is not a multiple of the factor, the body is
    /// guarded.
    ///
    /// # Errors
    /// `split` if the factor is below 1, `overflow` if it leaves the type of the extent, `loop-kind` if the loop is bound,
    /// parallel, vectorized or unrolled, `fuel` if the stage has too many loops.
    pub fn split(&mut self, run: Loop, by: SplitBy) -> Result<(Loop, Loop), Diagnostic> {
        let run = self.own(run)?;
        let (outer, inner) = self.edit()?.split(run, by)?;
        Ok((self.handle(outer), self.handle(inner)))
    }

    /// Splits two loops and runs the inner halves innermost: returns the outer loops of `x` and `y`, then the inner ones.
    ///
    /// # Errors
    /// Those of [`Stage::split`] and [`Stage::reorder`]; what was done before the error stays.
    pub fn tile(&mut self, x: Loop, y: Loop, x_factor: i64, y_factor: i64) -> Result<[Loop; 4], Diagnostic> {
        let (xo, xi) = self.split(x, SplitBy::Factor(x_factor))?;
        let (yo, yi) = self.split(y, SplitBy::Factor(y_factor))?;
        let order = [xo, yo, xi, yi];
        self.reorder(&order)?;
        Ok(order)
    }

    /// Fuses neighbouring loops, outermost first, into one. One loop alone is returned as it is.
    ///
    /// # Errors
    /// `fuse` if there is no loop, the loops are not neighbours in this order, or some but not all are reductions;
    /// `loop-kind`; `overflow` if the extent leaves the index type; what was done before the error stays.
    pub fn fuse(&mut self, loops: &[Loop]) -> Result<Loop, Diagnostic> {
        let Some((&first, rest)) = loops.split_first() else {
            return Err(Diagnostic::error("fuse", None, "fuse needs at least one loop"));
        };
        let first = self.own(first)?;
        let rest = rest.iter().map(|&run| self.own(run)).collect::<Built<Vec<_>>>()?;
        let data = self.edit()?;
        let fused = rest.into_iter().try_fold(first, |outer, inner| data.fuse(outer, inner))?;
        Ok(self.handle(fused))
    }

    /// Puts loops into the given order. Together they keep the positions that they have; loops not named stay where they
    /// are.
    ///
    /// # Errors
    /// `reorder` if a loop is named twice.
    pub fn reorder(&mut self, order: &[Loop]) -> Result<(), Diagnostic> {
        let order = order.iter().map(|&run| self.own(run)).collect::<Built<Vec<_>>>()?;
        self.edit()?.reorder(&order)
    }

    /// Runs the iterations of a loop concurrently, in any order.
    ///
    /// # Errors
    /// `reduction-kind` if the loop is a reduction, which only `bind` to a `threadIdx` takes, `loop-kind` if it has a kind already.
    pub fn parallel(&mut self, run: Loop) -> Result<(), Diagnostic> {
        self.set_kind(run, ForKind::Parallel)
    }

    /// Runs a loop as lanes of vectors. It must be innermost when the schedule is lowered.
    ///
    /// # Errors
    /// `symbolic-extent` if the extent is no constant, `vectorize` if it is above 1024, and those of [`Stage::parallel`].
    pub fn vectorize(&mut self, run: Loop) -> Result<(), Diagnostic> {
        self.set_kind(run, ForKind::Vectorized)
    }

    /// Requests that a loop is unrolled: [`Schedule::lower`] records it as a step of the schedule, which the pass `unroll` applies, if
    /// there are at most 64 copies of the body. Otherwise it stays a loop of this kind, and a warning says why.
    ///
    /// # Errors
    /// `symbolic-extent` if the extent is no constant, `loop-kind` if the loop has a kind already.
    pub fn unroll(&mut self, run: Loop) -> Result<(), Diagnostic> {
        self.set_kind(run, ForKind::Unrolled)
    }

    /// Sets the kind of a loop.
    fn set_kind(&mut self, run: Loop, kind: ForKind) -> Built<()> {
        let (run, place) = (self.own(run)?, self.schedule.te.place);
        self.edit()?.set_kind(run, kind, place)
    }

    /// Binds a loop to an axis of the launch. A stated extent of that axis must be the loop's.
    ///
    /// # Errors
    /// `thread-extent` if the extents differ, `thread-twice` if another loop of the stage is bound to the axis, and those of
    /// [`Stage::parallel`].
    pub fn bind(&mut self, run: Loop, tag: ThreadTag, extent: Option<&Expr>) -> Result<(), Diagnostic> {
        let (run, place) = (self.own(run)?, self.schedule.te.place);
        self.edit()?.bind(run, tag, extent, place)
    }

    /// Attaches a hint to a loop: `pragma_KEY = value`.
    ///
    /// # Errors
    /// `pragma`: a key other than `auto_unroll_max_step`, `unroll_explicit` and `unroll`.
    pub fn pragma(&mut self, run: Loop, key: &str, value: AttrValue) -> Result<(), Diagnostic> {
        let run = self.own(run)?;
        check_pragma(key)?;
        self.edit()?.loops[run].annotations.push((format!("pragma_{key}"), value));
        Ok(())
    }

    /// Sets the memory scope of the tensor.
    ///
    /// # Errors
    /// `inlined`. Whether a parameter may live there is checked by [`Schedule::lower`].
    pub fn set_scope(&mut self, scope: ir::Scope) -> Result<(), Diagnostic> {
        self.edit()?.scope = scope;
        Ok(())
    }

    /// Computes the part of the tensor that one iteration of a loop of another stage reads in that iteration, in front of its
    /// body. [`Schedule::lower`] records it as a step of the schedule, which the pass `compute_at` applies.
    ///
    /// # Errors
    /// `compute-at`: the tensor is an input or an output, or the loop is one of its own; `not-a-loop` if the loop is none of the
    /// schedule. [`Schedule::lower`] refuses a tensor whose own loops follow a layout, or are bound to threads.
    pub fn compute_at(&mut self, run: Loop) -> Result<(), Diagnostic> {
        self.check_live()?;
        let place = self.schedule.te.place;
        let (tensor, buffer) = (self.data().tensor, self.buffer().clone());
        let wrong = |why: &str, help: &str| {
            Err(Diagnostic::error("compute-at", None, format!("`{buffer}` {why}")).with_help(help))
        };
        if run.schedule != self.schedule.id() {
            return self.own(run).map(|_| ());
        }
        if self.data().work == Work::Input {
            return wrong(
                "is an input, which is not computed",
                "cache_read makes a copy that can be computed anywhere",
            );
        }
        if self.schedule.data().outputs.contains(&tensor) {
            return wrong(
                "is an output, of which the caller sees all",
                "cache_write makes a copy that can be computed anywhere",
            );
        }
        if run.tensor == tensor {
            return wrong("cannot be computed in a loop of its own", "name a loop of a stage that reads it");
        }
        let Some(parent) = self.schedule.data().position(run.tensor) else {
            return self.own(run).map(|_| ());
        };
        self.schedule.data().stages[parent].leaf(run.index)?;
        self.edit()?.attached = Some(Attached { tensor: run.tensor, index: run.index, place });
        Ok(())
    }

    /// Computes the tensor in a nest of its own, in front of those that read it: undoes [`Stage::compute_at`].
    ///
    /// # Errors
    /// `inlined`.
    pub fn compute_root(&mut self) -> Result<(), Diagnostic> {
        self.edit()?.attached = None;
        Ok(())
    }

    /// Gives the memory of the tensor two halves: one is filled for the next iteration of the loop in which the tensor is computed
    /// while the other one is read. The pass `double_buffer` applies it.
    ///
    /// # Errors
    /// `double-buffer`: the tensor is an input or an output.
    pub fn double_buffer(&mut self) -> Result<(), Diagnostic> {
        self.check_live()?;
        if self.data().work == Work::Input || self.schedule.data().outputs.contains(&self.data().tensor) {
            let message = format!("`{}` is a parameter, whose memory is the caller's", self.buffer());
            return Err(Diagnostic::error("double-buffer", None, message)
                .with_help("make a copy by cache_read or cache_write, and give that two halves"));
        }
        self.edit()?.is_doubled = true;
        Ok(())
    }

    /// Replaces every load of the tensor by its definition. The tensor then has neither memory nor loops.
    ///
    /// # Errors
    /// `inline`: the tensor is an output, is not elementwise, or was scheduled before.
    pub fn compute_inline(&mut self) -> Result<(), Diagnostic> {
        let tensor = self.data().tensor;
        let te = &mut *self.schedule.te;
        te.schedules[self.schedule.index].inline(&te.tensors, tensor)
    }

    /// The shape that the next layout starts from: the logical shape, or the physical one of the last layout.
    ///
    /// # Errors
    /// `tile-layout`: [`Stage::tile_layout`] was called, and no layout follows it.
    pub fn layout_shape(&self) -> Result<Vec<Expr>, Diagnostic> {
        let data = self.data();
        if data.tiled.is_some() {
            let message = "transform_layout comes before tile_layout, whose tiles are the last word";
            return Err(Diagnostic::error("tile-layout", None, message));
        }
        data.layout_shape(&self.buffer().shape)
    }

    /// Lays the tensor out in memory by an index map from the current layout, and makes the loops run over the axes of the
    /// new layout if possible. Separators of the map determine which axes are flattened together. RFC 39 of TVM,
    /// "Guide-level explanation".
    ///
    /// ```
    /// use tilewright_compiler::te::build::{Builder, LayoutLoops};
    /// use tilewright_ir::{Expr, IndexMap, ScalarType, Var};
    ///
    /// let mut te = Builder::new();
    /// let shape = [8, 16].map(Expr::int);
    /// let a = te.placeholder("A", &shape, ScalarType::Float32)?;
    /// let b = te.compute("B", &shape, |te, i| Ok(te.load(a, i)?.into()))?;
    /// let mut schedule = te.create_schedule(&[b])?;
    /// let mut stage = schedule.stage(b)?;
    /// let (h, c) = (Var::index("h"), Var::index("c"));
    /// let four = Expr::int(4);
    /// let outputs = vec![
    ///     Expr::from(&c).floor_div(four.clone()),
    ///     Expr::from(&h),
    ///     Expr::from(&c).floor_mod(four),
    /// ];
    /// let map = IndexMap::new(vec![h, c], stage.layout_shape()?, outputs, vec![2]).expect("two axes, three outputs");
    /// let LayoutLoops::Rewritten(loops) = stage.transform_layout(&map)? else { unreachable!("the map has an inverse") };
    /// assert_eq!(stage.describe(loops[0])?.0, "c_outer");
    /// # Ok::<(), tilewright_ir::Diagnostic>(())
    /// ```
    ///
    /// # Errors
    /// `layout-domain` if the map's domain is not [`Stage::layout_shape`], `stray-axis` if it uses a variable that is
    /// neither an index nor a symbolic extent, `tile-layout`, and the errors of the algebra if the physical shape of the
    /// map is not known.
    pub fn transform_layout(&mut self, map: &IndexMap) -> Result<LayoutLoops, Diagnostic> {
        self.check_live()?;
        let shape = self.layout_shape()?;
        if map.domain() != shape.as_slice() {
            let list = |extents: &[Expr]| extents.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let message = format!("the map is defined on ({}), the layout is ({})", list(map.domain()), list(&shape));
            return Err(Diagnostic::error("layout-domain", None, message)
                .with_help("take the extents of the map from layout_shape"));
        }
        let known = |var: &ir::Var| map.vars().contains(var) || self.schedule.te.is_symbol(var);
        if let Some(stray) = map.outputs().iter().flat_map(Expr::vars).find(|var| !known(var)) {
            return Err(Diagnostic::error("stray-axis", None, format!("`{stray}` is no index of the layout")));
        }
        let place = self.schedule.te.place;
        let data = self.edit()?;
        // The layout is recorded even if the loops cannot follow it: their order does not change its meaning.
        data.layout_span = place;
        match data.transform_layout(map, &layout_names(map))? {
            Ok(loops) => Ok(LayoutLoops::Rewritten(loops.into_iter().map(|index| self.handle(index)).collect())),
            Err(why) => {
                let message = format!("the loops over `{}` do not follow this layout: {why}", self.buffer().name);
                let warning = Diagnostic::warning("loops-kept", None, message).with_help(
                    "the layout itself is recorded; call transform_layout before split, fuse and bind, with a map that has an inverse",
                );
                self.schedule.data_mut().warnings.push(warning.clone());
                Ok(LayoutLoops::Kept(warning))
            }
        }
    }

    /// Returns the rank that a layout given to [`Stage::tile_layout`] must have: the number of axes of the current layout.
    ///
    /// # Errors
    /// `tile-layout` if there is a tiled layout already, `axis-separators` if an index map set separators: the tiled layout
    /// is the last one, and separators stand between its axes.
    pub fn tile_rank(&self) -> Result<usize, Diagnostic> {
        let data = self.data();
        if data.tiled.is_some() {
            let message = format!("`{}` has a tiled layout already", self.buffer());
            return Err(Diagnostic::error("tile-layout", None, message)
                .with_help("write all tiles into one layout: {1,0:T(8,128)(2,1)}"));
        }
        if data.separators.as_ref().is_some_and(|separators| !separators.is_empty()) {
            let message = "separators stand between the axes of the last layout, which is the tiled one";
            return Err(Diagnostic::error("axis-separators", None, message)
                .with_help("give them to tile_layout: axis_separators=[2]"));
        }
        Ok(data.layouts.last().map_or(self.buffer().rank(), |map| map.outputs().len()))
    }

    /// Lays the tensor out in XLA's tiles (openxla.org/xla/tiled_layout), after any index map. Each separator is the number
    /// of physical axes of the tiled layout before it. The loops stay as they are.
    ///
    /// # Errors
    /// Those of [`Stage::tile_rank`]; `tile-layout` if the layout has another rank; `axis-separators` if the positions are
    /// not increasing or not inside of the physical axes.
    pub fn tile_layout(&mut self, request: TileRequest, separators: &[usize]) -> Result<(), Diagnostic> {
        let (rank, given) = (self.tile_rank()?, request.layout.minor_to_major.len());
        if rank != given {
            let message = format!("the layout has {given} dimensions, `{}` has {rank} axes", self.buffer());
            return Err(Diagnostic::error("tile-layout", None, message));
        }
        let separators = AxisSeparators::new(separators.to_vec(), request.physical_rank())
            .map_err(|error| Diagnostic::error("axis-separators", None, error.to_string()))?;
        let place = self.schedule.te.place;
        let data = self.edit()?;
        (data.tiled, data.separators, data.layout_span) = (Some(request), Some(separators), place);
        Ok(())
    }
}

/// Checks that a pragma is known.
pub(crate) fn check_pragma(key: &str) -> Built<()> {
    if matches!(key, "auto_unroll_max_step" | "unroll_explicit" | "unroll") {
        return Ok(());
    }
    Err(Diagnostic::error("pragma", None, format!("the pragma `{key}` is not supported"))
        .with_help("auto_unroll_max_step and unroll_explicit are known; they are hints"))
}

/// Returns the loop names of a layout: `c_outer` for `c // 4`, `c_inner` for `c % 4`, and the name of a plain index.
fn layout_names(map: &IndexMap) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (position, output) in map.outputs().iter().enumerate() {
        let name = match output {
            Expr::Var(var) => Some(var.name().to_owned()),
            Expr::Binary(op, lhs, rhs) => match (op, &**lhs, rhs.as_const_int()) {
                (ir::BinaryOp::FloorDiv, Expr::Var(var), Some(_)) => Some(format!("{var}_outer")),
                (ir::BinaryOp::FloorMod, Expr::Var(var), Some(_)) => Some(format!("{var}_inner")),
                _ => None,
            },
            _ => None,
        };
        let name = name.filter(|name| !names.contains(name)).unwrap_or_else(|| format!("axis{position}"));
        names.push(name);
    }
    names
}

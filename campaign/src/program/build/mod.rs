//! Builds the function of a recipe. It never fails, and the function is valid: every index is
//! within its tensor, every type has the operators applied to it, and nothing is read before it is
//! written.

use std::sync::Arc;

mod index;
mod nest;
mod requested;
mod schedule;
mod shared;
mod symbols;
mod tensors;
mod value;

use tilewright_ir::visit::Substitution;
use tilewright_ir::{
    AxisSeparators, Bindings, Buffer, Expr, For, FuncAttrs, PrimFunc, ScalarType, Scope, Stmt, StmtKind, Var,
};

use self::nest::{GROUP, Loops, Part};
use self::tensors::{Made, made};
use self::value::{Values, constant, operator};
use super::recipe::{Binary, Keep, Kind, Loop, Recipe, Reduce, ReduceOp, Stage, View};

/// Limit on the iterations of a loop nest. Reduced axes are dropped from recipes that exceed it.
const ITERATIONS: i64 = 1 << 14;

/// The function, and the values of its symbolic extents.
///
/// Parameters are `a0, a1, ..` for inputs, `s0, ..` for scalars and `b0, ..` for outputs; other
/// stages write allocated buffers `T0, ..`.
pub(super) fn func(recipe: &Recipe) -> (PrimFunc, Bindings) {
    let mut attrs = FuncAttrs::default();
    let mut params = Vec::new();
    let mut buffer_map = Vec::new();
    let mut tensors = Vec::new();
    let mut allocated = Vec::new();
    for (number, input) in recipe.inputs.iter().enumerate() {
        tensors.push(made(input, format!("A{number}"), &mut attrs));
        params.push(Var::new(format!("a{number}"), ScalarType::Handle));
    }
    let scalars = recipe.scalars.iter().enumerate().map(|(number, ty)| Var::new(format!("s{number}"), ty.scalar));
    let scalars: Vec<Var> = scalars.collect();
    params.extend(scalars.iter().cloned());
    for (number, stage) in recipe.stages.iter().enumerate() {
        let is_output = stage.is_output || number + 1 == recipe.stages.len();
        let target = made(&stage.target, format!("{}{number}", if is_output { "B" } else { "T" }), &mut attrs);
        if is_output {
            params.push(Var::new(format!("b{number}"), ScalarType::Handle));
        } else {
            allocated.push(target.buffer.clone());
        }
        tensors.push(target);
    }
    let handles = params.iter().filter(|param| param.dtype().scalar == ScalarType::Handle).cloned();
    let passed = tensors.iter().filter(|made| !allocated.contains(&made.buffer)).map(|made| made.buffer.clone());
    buffer_map.extend(handles.zip(passed));
    let mut builder = Builder { tensors: &tensors, scalars: &scalars, views: Vec::new() };
    let stages = recipe.stages.iter().enumerate().map(|(number, stage)| {
        let is_last = number + 1 == recipe.stages.len();
        builder.stage(stage, number, recipe.inputs.len() + number, is_last)
    });
    // Declarations of views are inside the allocations, because they refer to allocated memory.
    let mut body = Stmt::seq(stages.collect());
    for buffer in builder.views.into_iter().rev() {
        body = Stmt::new(StmtKind::DeclBuffer { buffer, body: Arc::new(body) });
    }
    for buffer in allocated.into_iter().rev() {
        body = Stmt::new(StmtKind::Allocate { buffer, body: Arc::new(body) });
    }
    let func = PrimFunc { name: "main".into(), params, buffer_map, attrs, body };
    let (func, symbols) = symbols::with_symbols(&func, &recipe.unknown, recipe.premise);
    let scheduled = schedule::with_steps(func, &recipe.steps);
    (requested::with_passes(scheduled, &recipe.passes), symbols)
}

/// The state while stages are built.
struct Builder<'a> {
    tensors: &'a [Made],
    scalars: &'a [Var],
    /// The views to declare.
    views: Vec<Buffer>,
}

/// The tensor that a stage computes.
struct Target<'a> {
    stage: &'a Stage,
    /// The tensor as it is stored, possibly through a view.
    seen: Made,
    /// The shape of the loops.
    shape: Vec<i64>,
    reduced: Vec<i64>,
    /// Number of tensors before it, which may be read.
    number: usize,
    is_last: bool,
}

impl Builder<'_> {
    /// The statement of a stage: one loop nest, or two if the last axis is cut into vectors and a
    /// rest.
    fn stage(&mut self, stage: &Stage, number: usize, place: usize, is_last: bool) -> Stmt {
        let target = &self.tensors[place];
        // A store through a view with an offset or a stride would leave elements unwritten that later stages read.
        let whole = |view: &View| matches!(view, View::Same | View::Flat | View::Fold(_) | View::Transposed);
        let seen = stage.through.filter(whole).and_then(|view| target.seen(view)).unwrap_or_else(|| target.clone());
        if seen.buffer != target.buffer {
            self.views.push(seen.buffer.clone());
        }
        let mut reduced = stage.reduced();
        let size: i64 = target.shape.iter().product();
        while reduced.iter().product::<i64>() * size > ITERATIONS && !reduced.is_empty() {
            reduced.pop();
        }
        let shape = target.shape.clone();
        let is_texture = target.buffer.scope.is_texture();
        let last = shape.last().copied().unwrap_or(1);
        // A vector store needs neighbouring scalars in memory, at least as many as it has lanes.
        let lanes = stage.lanes.filter(|lanes| {
            let fits = [2, 3, 4, 8, 16].contains(lanes) && i64::from(*lanes) <= last;
            fits && !is_texture
                && target.is_row_major
                && target.buffer.dtype.is_scalar()
                && seen.buffer == target.buffer
        });
        let target = Target { stage, seen, shape, reduced, number: place, is_last };
        if let Some(shared) = stage.shared.as_ref().filter(|_| !is_texture) {
            return self.shared(&target, shared, &format!("g{number}_"));
        }
        let Some(lanes) = lanes else {
            let part = match (is_texture, target.seen.is_packed) {
                (false, _) => Part::Whole,
                (true, false) => Part::Texels,
                (true, true) => Part::Packed,
            };
            return self.part(&target, part, &format!("i{number}_"));
        };
        let vectors = self.part(&target, Part::Vectors(lanes), &format!("v{number}_"));
        let start = last - last % i64::from(lanes);
        let rest = (start < last).then(|| self.part(&target, Part::Rest(start), &format!("r{number}_")));
        Stmt::seq([vectors].into_iter().chain(rest).collect())
    }

    /// The loop nest of one part of a stage. Texels are never reduced.
    fn part(&mut self, target: &Target<'_>, part: Part, prefix: &str) -> Stmt {
        let reduce = target.stage.reduce.as_ref().filter(|_| !matches!(part, Part::Texels | Part::Packed));
        match reduce {
            None => self.elementwise(target, part, prefix),
            Some(reduce) => self.reduction(target, reduce, part, prefix),
        }
    }

    /// A loop nest that computes each element independently.
    fn elementwise(&mut self, target: &Target<'_>, part: Part, prefix: &str) -> Stmt {
        let loops = Loops::new(target.stage, &target.shape, &[], part, prefix);
        let ty = target.seen.buffer.dtype.scalar;
        let mut values = self.values(target, &loops);
        let value = values.value(&target.stage.value, ty);
        let Some(guard) = &target.stage.guard else {
            let store = target.store(&values, value);
            return loops.around(store);
        };
        let cond = values.test(&guard.test);
        // Elements for which the guard is false have to be written if a later stage may read them.
        let otherwise = guard.otherwise.or(if target.is_last { None } else { Some(0) });
        let is_lanes = !matches!(part, Part::Whole | Part::Rest(_));
        let body = match otherwise {
            Some(other) if is_lanes => {
                let value = values.select(cond, value, constant(other, ty), true);
                target.store(&values, value)
            }
            Some(other) => {
                let else_body = Some(Arc::new(target.store(&values, constant(other, ty))));
                let then_body = Arc::new(target.store(&values, value));
                Stmt::new(StmtKind::If { cond, then_body, else_body })
            }
            // A vector store writes all of its lanes, so a guard without another value is dropped.
            None if !cond.dtype().is_scalar() || is_lanes => target.store(&values, value),
            None => Stmt::guarded(cond, target.store(&values, value)),
        };
        loops.around(body)
    }

    /// A loop nest that reduces, with the accumulator in the target or in local memory.
    fn reduction(&mut self, target: &Target<'_>, reduce: &Reduce, part: Part, prefix: &str) -> Stmt {
        let is_group = reduce.keep == Keep::Group && matches!(part, Part::Whole);
        if is_group && target.shape.get(1).is_some_and(|&extent| extent <= GROUP) {
            return self.group(target, reduce, prefix);
        }
        let ty = target.seen.buffer.dtype.scalar;
        let loops = Loops::new(target.stage, &target.shape, &target.reduced, part, prefix);
        let mut values = self.values(target, &loops);
        let value = values.value(&target.stage.value, ty);
        let value = values.wide(value);
        let init = values.wide(constant(reduce.init, ty));
        let op = operator(combine(reduce.op), ty.class());
        if reduce.keep == Keep::Local {
            let local = Buffer::compact(format!("{prefix}sum"), target.seen.buffer.dtype, vec![Expr::int(1)]);
            let lanes = init.dtype();
            let local = local.with(|info| {
                info.scope = Scope::Local;
                info.dtype = lanes;
                info.axis_separators = AxisSeparators::none(1);
            });
            let at = || vec![Expr::int(0)];
            let update = Stmt::store(&local, at(), Expr::binary(op, Expr::load(&local, at()), value));
            let done = target.store(&values, Expr::load(&local, at()));
            return loops.reduced(update, |update| {
                let body = Stmt::seq(vec![Stmt::store(&local, at(), init), update, done]);
                Stmt::new(StmtKind::Allocate { buffer: local.clone(), body: Arc::new(body) })
            });
        }
        let update = target.store(&values, Expr::binary(op, target.load(&values), value));
        // The initialisation is a nest of its own, as TVM's schedules write it.
        if matches!(reduce.keep, Keep::Apart | Keep::Group) {
            let first = Loops::new(target.stage, &target.shape, &[], part, &format!("{prefix}z"));
            let values = self.values(target, &first);
            let clear = target.store(&values, init);
            let clear = first.around(clear);
            return Stmt::seq(vec![clear, loops.around(update)]);
        }
        let clear = target.store(&values, init);
        loops.reduced(update, |update| Stmt::seq(vec![clear, update]))
    }

    /// A reduction by work-groups: one work-item initialises what another work-item of the group
    /// reduces, which needs a barrier in a launch. The initialising nest runs over the second axis
    /// in reverse order.
    fn group(&mut self, target: &Target<'_>, reduce: &Reduce, prefix: &str) -> Stmt {
        let kinds = [Kind::Block, Kind::Thread];
        let how = |axis: usize| Loop { kind: kinds.get(axis).copied().unwrap_or_default(), ..Loop::default() };
        let n_axes = target.shape.len() + target.reduced.len();
        let stage = Stage { loops: (0..n_axes).map(how).collect(), ..target.stage.clone() };
        let ty = target.seen.buffer.dtype.scalar;
        let mut first = Loops::new(&stage, &target.shape, &[], Part::Whole, &format!("{prefix}z"));
        if let Some(axis) = first.nest.axes.get_mut(1) {
            axis.full = Expr::int_of((axis.extent - 1).into(), first.nest.ty)
                .map_or_else(|| axis.full.clone(), |last| last - axis.full.clone());
        }
        let values = self.values(target, &first);
        let clear = target.store(&values, values.wide(constant(reduce.init, ty)));
        let clear = first.around(clear);
        let loops = Loops::new(&stage, &target.shape, &target.reduced, Part::Whole, prefix);
        let mut values = self.values(target, &loops);
        let value = values.value(&target.stage.value, ty);
        let value = values.wide(value);
        let op = operator(combine(reduce.op), ty.class());
        let update = target.store(&values, Expr::binary(op, target.load(&values), value));
        in_one_loop(clear, loops.around(update))
    }

    /// The builder of values inside a loop nest.
    fn values<'b>(&'b mut self, target: &Target<'_>, loops: &'b Loops) -> Values<'b> {
        self.values_in(target, &loops.nest)
    }

    /// The builder of values at the indices of a nest.
    fn values_in<'b>(&'b mut self, target: &Target<'_>, nest: &'b index::Nest) -> Values<'b> {
        Values {
            nest,
            element_lanes: target.seen.buffer.dtype.lanes,
            tensors: &self.tensors[..target.number],
            scalars: self.scalars,
            views: &mut self.views,
        }
    }
}

/// Merges two loops over the same groups into one; other statements follow one another.
fn in_one_loop(first: Stmt, second: Stmt) -> Stmt {
    let (StmtKind::For(one), StmtKind::For(other)) = (&first.kind, &second.kind) else {
        return Stmt::seq(vec![first, second]);
    };
    if (one.kind, &one.min, &one.extent) != (other.kind, &other.min, &other.extent) {
        return Stmt::seq(vec![first, second]);
    }
    let again = Substitution::new([&other.var], [Expr::from(&one.var)]).apply_stmt(&other.body);
    let body = Stmt::seq(vec![one.body.clone(), again]);
    Stmt::new(StmtKind::For(Arc::new(For { body, ..(**one).clone() })))
}

/// The operator that combines two values of a reduction.
fn combine(op: ReduceOp) -> Binary {
    match op {
        ReduceOp::Sum => Binary::Add,
        ReduceOp::Product => Binary::Mul,
        ReduceOp::Max => Binary::Max,
        ReduceOp::Min => Binary::Min,
    }
}

impl Target<'_> {
    /// The indices of the current element. For a folded or flat view they follow from the element's
    /// row-major number.
    fn indices(&self, values: &Values<'_>) -> Vec<Expr> {
        let nest = values.nest;
        let own: Vec<Expr> = nest.axes.iter().take(self.shape.len()).map(|axis| axis.full.clone()).collect();
        if self.seen.shape == self.shape && self.seen.buffer.strides.is_none() {
            return own;
        }
        if self.seen.buffer.strides.is_some() {
            return own.into_iter().rev().collect();
        }
        let numeral = own
            .into_iter()
            .zip(&self.shape)
            .reduce(|(high, _), (low, extent)| (high * nest.int(*extent) + low, extent));
        let numeral = numeral.map_or_else(|| nest.int(0), |(numeral, _)| numeral);
        match self.seen.shape.as_slice() {
            [_, by] => vec![numeral.clone().floor_div(nest.int(*by)), numeral.floor_mod(nest.int(*by))],
            _ => vec![numeral],
        }
    }

    /// Stores the current element.
    fn store(&self, values: &Values<'_>, value: Expr) -> Stmt {
        Stmt::store(&self.seen.buffer, self.indices(values), values.wide(value))
    }

    /// Loads the current element.
    fn load(&self, values: &Values<'_>) -> Expr {
        Expr::load(&self.seen.buffer, self.indices(values))
    }
}

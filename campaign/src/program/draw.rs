//! Draws recipes. The distributions favour what is likely to reveal mistakes over what is merely
//! possible.
//!
//! Bounds and percentages are those of [`ProgramRanges`](crate::config::ProgramRanges) unless a
//! function states its own.
//!
//! The order in which parts are drawn is part of the format of the corpus: a new choice has to be drawn after the others,
//! or the files in `fuzz/corpus` mean other programs.

use arbitrary::{Result, Unstructured};
use tilewright_ir::{DataType, ScalarType, Scope};

use super::recipe::{
    At, Binary, Compare, ELEMENTS, Edge, Exchange, Guard, Keep, Kind, Layout, Loop, Premise, Primitive, Read, Recipe,
    Reduce, ReduceOp, Requested, Shared, Stage, Step, Tensor, Test, Turn, Unary, Value, View,
};
use super::simpler::parts_mut;
use crate::config::Config;
use crate::extents;
use crate::map::Op;

/// The state while a recipe is drawn.
struct Draw<'a, 'b, 'c> {
    u: &'a mut Unstructured<'b>,
    config: &'c Config,
    /// The tensors so far: inputs, then targets of stages.
    tensors: Vec<Tensor>,
    /// The shape from which most shapes are derived, so that tensors fit together.
    shape: Vec<i64>,
    /// The scalar type that most tensors have.
    ty: ScalarType,
}

/// Draws a recipe. One program in `large_one_in` may be large, one in eight has many textures, one
/// in eight has one or two scalar parameters.
pub(super) fn recipe(u: &mut Unstructured<'_>, config: &Config) -> Result<Recipe> {
    let seed = u64::from(u.arbitrary::<u16>()?);
    let is_large = u.ratio(1, config.program.large_one_in.max(1))?;
    let most = if is_large { config.extents.elements } else { config.program.usual_elements };
    let shape = extents::shape_within(u, config, most.min(config.extents.elements))?;
    let ty = if u.ratio(1, 4)? { ScalarType::Float32 } else { *u.choose(&ELEMENTS)? };
    let mut config = config.clone();
    if u.ratio(1, 8)? {
        config.program.texture_percent = config.program.texture_percent.max(60);
    }
    let config = &config;
    let mut draw = Draw { u, config, tensors: Vec::new(), shape, ty };
    let n_inputs = draw.u.int_in_range(config.program.inputs.clone())?;
    for number in 0..n_inputs {
        let tensor = draw.input(number)?;
        draw.tensors.push(tensor);
    }
    let n_scalars = usize::from(draw.u.ratio(1u8, 8)?) * draw.u.int_in_range(1..=2usize)?;
    let scalars = (0..n_scalars).map(|_| draw.u.choose(&ELEMENTS).map(|ty| DataType::scalar(*ty)));
    let scalars = scalars.collect::<Result<_>>()?;
    // Three programs in five have the minimal number of stages, which makes failures easy to
    // reduce.
    let stages = config.program.stages.clone();
    let n_stages = if draw.u.ratio(3, 5)? { *stages.start() } else { draw.u.int_in_range(stages)? };
    let mut stages = Vec::new();
    for number in 0..n_stages {
        let stage = draw.stage(number + 1 == n_stages)?;
        draw.tensors.push(stage.target.clone());
        stages.push(stage);
    }
    let inputs = draw.tensors[..n_inputs].to_vec();
    let unknown = draw.unknown()?;
    let premises = [Premise::Nothing, Premise::AtMost, Premise::AtLeast, Premise::Exactly];
    let premise = if unknown.is_empty() { Premise::Nothing } else { *draw.u.choose(&premises)? };
    let mut steps = draw.steps()?;
    let passes = draw.passes()?;
    // Only what is computed in the loop that reads it can have two halves.
    if passes.contains(&Requested::InjectDoubleBuffer) && steps.is_empty() {
        let place = draw.u.int_in_range(0..=15)?;
        steps.push(Step { primitive: Primitive::ComputeAt, place, amount: 0 });
    }
    for stage in &mut stages {
        stage.shared = draw.shared()?;
    }
    if steps.is_empty() && stages.len() > 1 {
        steps = draw.moved()?;
    }
    Ok(Recipe { seed, inputs, scalars, stages, unknown, premise, steps, passes })
}

impl Draw<'_, '_, '_> {
    /// A schedule of one to four steps for one program in four. A buffer that is computed in a loop often gets two halves.
    fn steps(&mut self) -> Result<Vec<Step>> {
        let mut steps: Vec<Step> = Vec::new();
        // None if the bytes are used up.
        if self.u.ratio(3, 4)? {
            return Ok(steps);
        }
        for _ in 0..self.u.int_in_range(1..=4usize)? {
            let is_moved = steps.last().is_some_and(|step| step.primitive == Primitive::ComputeAt);
            let drawn = *self.u.choose(&Primitive::ALL)?;
            let primitive = if is_moved && self.u.ratio(1, 2)? { Primitive::DoubleBuffer } else { drawn };
            let (place, amount) = (self.u.int_in_range(0..=15)?, self.u.int_in_range(0..=5)?);
            steps.push(Step { primitive, place, amount });
        }
        Ok(steps)
    }

    /// The passes that one program in three asks for, each with a probability of its own.
    fn passes(&mut self) -> Result<Vec<Requested>> {
        // None if the bytes are used up.
        if self.u.ratio(2, 3)? {
            return Ok(Vec::new());
        }
        let asked = Requested::ALL.map(|pass| Ok(self.u.ratio(1, pass.rarity())?.then_some(pass)));
        Ok(asked.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// A schedule that computes a buffer elsewhere, for one program in three. None if the bytes are used up.
    fn moved(&mut self) -> Result<Vec<Step>> {
        if self.u.ratio(2, 3)? {
            return Ok(Vec::new());
        }
        let mut step = |primitive| Ok(Step { primitive, place: self.u.int_in_range(0..=15)?, amount: 0 });
        let mut steps = vec![step(Primitive::ComputeAt)?, step(Primitive::DoubleBuffer)?];
        if self.u.ratio(1, 3)? {
            steps = vec![Step { primitive: Primitive::ComputeInline, ..steps[0] }];
        }
        Ok(steps)
    }

    /// Draws the threads that compute a stage together. None if the bytes are used up.
    fn shared(&mut self) -> Result<Option<Shared>> {
        if self.percent(100 - self.config.program.shared_percent.min(100))? {
            return Ok(None);
        }
        let threads = self.u.int_in_range(1..=9)?;
        let turn = if self.u.arbitrary()? { Turn::Reversed } else { Turn::Rotated(self.u.int_in_range(0..=8)?) };
        let exchange = *self.u.choose(&Exchange::ALL)?;
        let (blocks, outside, branch) = (self.u.arbitrary()?, self.u.arbitrary()?, self.u.ratio(1, 3)?);
        Ok(Some(Shared { threads, turn, exchange, blocks, outside, branch }))
    }

    /// True with this probability in percent.
    fn percent(&mut self, percent: u8) -> Result<bool> {
        extents::percent(self.u, percent)
    }

    /// Draws up to three of the tensors' extents, which become symbolic.
    fn unknown(&mut self) -> Result<Vec<i64>> {
        if !self.percent(self.config.program.symbolic_percent)? {
            return Ok(Vec::new());
        }
        let mut extents: Vec<i64> = self.tensors.iter().flat_map(|tensor| tensor.shape.iter().copied()).collect();
        extents.retain(|extent| *extent > 1);
        extents.sort_unstable();
        extents.dedup();
        let n_unknown = self.u.int_in_range(1..=3usize)?.min(extents.len());
        (0..n_unknown).map(|_| Ok(extents.swap_remove(self.below(extents.len())?))).collect()
    }

    /// A number below the bound, which counts as at least 1.
    fn below(&mut self, bound: usize) -> Result<usize> {
        self.u.int_in_range(0..=bound.max(1) - 1)
    }

    /// The usual shape, or with equal probability (1/8 each) without an axis, rotated, reversed, or
    /// with a new extent.
    fn variant(&mut self) -> Result<Vec<i64>> {
        let mut shape = self.shape.clone();
        match self.u.int_in_range(0..=7u8)? {
            0 if shape.len() > 1 => drop(shape.remove(self.below(shape.len())?)),
            1 => {
                let turn = self.below(shape.len())?;
                shape.rotate_left(turn);
            }
            2 => shape.reverse(),
            3 => {
                let axis = self.below(shape.len())?;
                shape[axis] = extents::extent(self.u, self.config, shape[axis])?;
            }
            _ => {}
        }
        Ok(shape)
    }

    /// Draws an element type: the usual one in two cases out of three.
    fn dtype(&mut self) -> Result<DataType> {
        let scalar = if self.u.ratio(1, 3)? { *self.u.choose(&ELEMENTS)? } else { self.ty };
        let lanes = if scalar != ScalarType::Bool && self.percent(self.config.program.vector_percent)? {
            *self.u.choose(&[2, 3, 4, 8, 16])?
        } else {
            1
        };
        Ok(DataType { scalar, lanes })
    }

    /// Draws an input. All but the first may have another shape, and a third of them are `int32`,
    /// from which indices can be loaded.
    fn input(&mut self, number: usize) -> Result<Tensor> {
        let shape = if number == 0 { self.shape.clone() } else { self.variant()? };
        let dtype = if number > 0 && self.u.ratio(1, 3)? { DataType::INT32 } else { self.dtype()? };
        let scope =
            if self.percent(self.config.program.texture_percent / 2)? { self.texture()? } else { Scope::Global };
        let layout = self.layout_in(scope, shape.len())?;
        Ok(Tensor { dtype, shape, layout, scope })
    }

    /// Draws the scope of a texture.
    fn texture(&mut self) -> Result<Scope> {
        self.u.choose(&[Scope::Texture, Scope::TextureWeight, Scope::TextureNhwc]).copied()
    }

    /// Draws a layout; half of the textures are packed.
    fn layout_in(&mut self, scope: Scope, rank: usize) -> Result<Layout> {
        if scope.is_texture() && self.u.arbitrary()? {
            return Ok(Layout::Packed);
        }
        self.layout(rank)
    }

    /// Draws a layout: row-major, tiled (one in five) with up to two tiles and a padding value from
    /// -9 to 9, or a list of operations with up to two separators and one cut.
    fn layout(&mut self, rank: usize) -> Result<Layout> {
        if !self.percent(self.config.program.layout_percent)? {
            return Ok(Layout::Plain);
        }
        if self.u.ratio(1, 5)? {
            let turn = self.below(rank)?;
            let n_tiles = self.u.int_in_range(0..=2usize)?;
            let tiles = (0..n_tiles).map(|_| self.tile()).collect::<Result<_>>()?;
            let pad = self.u.ratio(1, 3)?.then(|| self.u.int_in_range(-9..=9i64)).transpose()?;
            return Ok(Layout::Tiles { turn, tiles, pad });
        }
        let n_ops = self.u.int_in_range(self.config.layout.operations.clone())?;
        let ops = (0..n_ops).map(|_| Op::draw(self.u, self.config)).collect::<Result<_>>()?;
        let n_separators = usize::from(self.u.ratio(1u8, 3)?) * self.u.int_in_range(1..=2usize)?;
        let separators = (0..n_separators).map(|_| self.below(6)).collect::<Result<_>>()?;
        let cuts = if n_ops > 1 && self.percent(self.config.layout.cut_percent)? {
            vec![self.below(n_ops)?]
        } else {
            Vec::new()
        };
        Ok(Layout::Ops { ops, separators, cuts })
    }

    /// Draws a tile of one to three dimensions.
    fn tile(&mut self) -> Result<Vec<u64>> {
        let rank = self.u.int_in_range(1..=3usize)?;
        (0..rank).map(|_| Ok(extents::block(self.u, self.config)?.unsigned_abs())).collect()
    }

    /// Draws a stage. One stage in four reduces: an axis of the target's shape, or one or two new
    /// axes. One in three is an output, one in twelve has `int64` indices.
    fn stage(&mut self, is_last: bool) -> Result<Stage> {
        let mut shape = self.variant()?;
        let reduce = match self.u.int_in_range(0..=3u8)? {
            0 => {
                let mut extents = Vec::new();
                if shape.len() > 1 && self.u.ratio(3, 4)? {
                    extents.push(shape.remove(self.below(shape.len())?).min(64));
                } else {
                    for _ in 0..self.u.int_in_range(1..=2u8)? {
                        extents.push(self.u.int_in_range(self.config.program.reduced.clone())?);
                    }
                }
                Some(self.reduce(extents)?)
            }
            _ => None,
        };
        let n_axes = shape.len() + reduce.as_ref().map_or(0, |reduce| reduce.extents.len());
        let dtype = self.dtype()?;
        let is_texture = !is_last && self.percent(self.config.program.texture_percent)?;
        let scope = if is_texture { self.texture()? } else { Scope::Global };
        let layout = self.layout_in(scope, shape.len())?;
        let depth = self.u.int_in_range(self.config.program.depth.clone())?;
        let value = self.value(depth, n_axes)?;
        let loops = (0..n_axes).map(|_| self.axis_loop()).collect::<Result<_>>()?;
        let guard = self.percent(self.config.program.guard_percent)?.then(|| self.guard(n_axes)).transpose()?;
        let lanes = self.percent(self.config.program.lanes_percent)?.then(|| self.u.choose(&[2, 3, 4, 8, 16]).copied());
        let through = self.percent(self.config.program.view_percent)?.then(|| self.view());
        let mut stage = Stage {
            target: Tensor { dtype, shape, layout, scope },
            is_output: self.u.ratio(1, 3)?,
            value,
            reduce,
            loops,
            guard,
            lanes: lanes.transpose()?,
            wide: self.u.ratio(1, 12)?,
            through: through.transpose()?,
            shared: None,
        };
        if self.percent(self.config.program.vectorized_percent)? {
            self.vectorized(&mut stage)?;
        }
        // A texture store is a texel store only if its value reads whole texels.
        if stage.target.is_texture() && self.u.ratio(1, 2)? {
            straighten(&mut stage.value);
        }
        Ok(stage)
    }

    /// Makes the last axis a vectorized loop, if a number of lanes divides its extent. Properties
    /// that would prevent vectorization are removed from the stage.
    fn vectorized(&mut self, stage: &mut Stage) -> Result<()> {
        const LANES: [i64; 5] = [16, 8, 4, 3, 2];
        let Some((last, &extent)) = stage.target.shape.iter().enumerate().next_back() else { return Ok(()) };
        let fitting: Vec<i64> = LANES.into_iter().filter(|lanes| extent % lanes == 0).collect();
        if fitting.is_empty() || stage.reduce.is_some() {
            return Ok(());
        }
        let lanes = *self.u.choose(&fitting)?;
        stage.target.dtype.lanes = 1;
        (stage.guard, stage.lanes, stage.through) = (None, None, None);
        for how in &mut stage.loops {
            if how.kind == Kind::Vectorized {
                how.kind = Kind::Parallel;
            }
            how.order = how.order.min(2);
        }
        if let Some(how) = stage.loops.get_mut(last) {
            let split = (lanes < extent).then_some(lanes);
            *how = Loop { kind: Kind::Vectorized, split, order: 3, ..Loop::default() };
        }
        // In most layouts that passes keep, lanes are neighbours.
        if self.u.ratio(3, 4)? {
            stage.target.layout = Layout::Plain;
        }
        if self.u.ratio(3, 4)? {
            straighten(&mut stage.value);
        }
        // A value that depends on the lane itself, increasing or decreasing.
        if self.u.ratio(1, 4)? {
            let (op, number) = (*self.u.choose(&[Binary::Sub, Binary::Add])?, self.u.int_in_range(-9..=99)?);
            let parts = [Value::Constant(number), Value::Index(last)];
            let [a, b] = if self.u.ratio(2, 3)? {
                parts
            } else {
                let [a, b] = parts;
                [b, a]
            };
            let lane = Value::Convert(DataType::INT32, Box::new(Value::Binary(op, Box::new(a), Box::new(b))));
            let rest = std::mem::replace(&mut stage.value, Value::Constant(0));
            stage.value = Value::Binary(Binary::Add, Box::new(rest), Box::new(lane));
        }
        Ok(())
    }

    /// Draws a reduction over the given extents, with an initial value from -9 to 9.
    fn reduce(&mut self, extents: Vec<i64>) -> Result<Reduce> {
        Ok(Reduce {
            extents,
            op: *self.u.choose(&[ReduceOp::Sum, ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min, ReduceOp::Product])?,
            init: self.u.int_in_range(-9..=9i8)?,
            keep: if self.percent(self.config.program.group_percent)? {
                Keep::Group
            } else {
                *self.u.choose(&[Keep::Target, Keep::Apart, Keep::Local])?
            },
        })
    }

    /// Draws how a loop runs: serial, or any kind, split in a third of the cases, with a first
    /// value from -3 to 5 in one out of eight.
    fn axis_loop(&mut self) -> Result<Loop> {
        if !self.percent(self.config.program.loop_percent)? {
            return Ok(Loop::default());
        }
        let kinds = [Kind::Serial, Kind::Parallel, Kind::Vectorized, Kind::Unrolled, Kind::Block, Kind::Thread];
        let kind = *self.u.choose(&kinds)?;
        // Vectorized loops are split more often, because only some extents are numbers of lanes.
        let splits = if kind == Kind::Vectorized { 2 } else { 1 };
        Ok(Loop {
            kind,
            split: self.u.ratio(splits, 3u8)?.then(|| extents::block(self.u, self.config)).transpose()?,
            min: if self.u.ratio(1, 8)? { self.u.int_in_range(-3..=5)? } else { 0 },
            bind: self.u.ratio(1, 8)?,
            order: self.u.int_in_range(0..=3)?,
        })
    }

    /// Draws a guard; half of them give the other elements a value from -9 to 9.
    fn guard(&mut self, n_axes: usize) -> Result<Guard> {
        let test = self.test(1, n_axes)?;
        Ok(Guard { test, otherwise: if self.u.arbitrary()? { Some(self.u.int_in_range(-9..=9)?) } else { None } })
    }

    /// Draws a condition of at most this depth.
    fn test(&mut self, depth: usize, n_axes: usize) -> Result<Test> {
        let axis = self.below(n_axes)?;
        Ok(match self.u.int_in_range(0..=if depth == 0 { 2 } else { 5u8 })? {
            0 => {
                let most = self.shape.get(axis).copied().unwrap_or(4);
                Test::Below(axis, self.u.int_in_range(0..=most)?)
            }
            1 => Test::Remainder(axis, self.u.int_in_range(1..=5)?, self.u.int_in_range(0..=4)?),
            2 => Test::Ordered(axis, self.below(n_axes)?),
            3 => Test::Both(Box::new(self.test(depth - 1, n_axes)?), Box::new(self.test(depth - 1, n_axes)?)),
            4 => Test::Either(Box::new(self.test(depth - 1, n_axes)?), Box::new(self.test(depth - 1, n_axes)?)),
            _ => Test::Not(Box::new(self.test(depth - 1, n_axes)?)),
        })
    }

    /// Draws a view; all kinds are equally likely.
    fn view(&mut self) -> Result<View> {
        Ok(match self.u.int_in_range(0..=5u8)? {
            0 => View::Same,
            1 => View::Flat,
            2 => View::Fold(extents::block(self.u, self.config)?),
            3 => View::Offset(self.u.int_in_range(0..=9)?),
            4 => View::Every(self.u.int_in_range(1..=4)?),
            _ => View::Transposed,
        })
    }

    /// Draws a value of at most this depth. Leaves are loads in 7 cases out of 11.
    fn value(&mut self, depth: usize, n_axes: usize) -> Result<Value> {
        if depth == 0 {
            return Ok(match self.u.int_in_range(0..=10u8)? {
                0..=6 => Value::Read(self.read(n_axes)?),
                7 => Value::Index(self.below(n_axes)?),
                8 => Value::Scalar(self.below(2)?),
                9 => {
                    let depth = self.u.int_in_range(1..=3)?;
                    Value::Convert(DataType::INT32, Box::new(self.arithmetic(depth, n_axes)?))
                }
                _ => Value::Constant(self.u.int_in_range(-20..=20)?),
            });
        }
        let less = depth - 1;
        Ok(match self.u.int_in_range(0..=9u8)? {
            0 => Value::Unary(self.unary()?, Box::new(self.value(less, n_axes)?)),
            1 => {
                // Here and below, one operand at most has the full depth: the size of a value is linear in its depth.
                let parts = [0; 4].map(|_| self.value(less.min(1), n_axes));
                let [a, b, yes, no] = parts;
                Value::Compare(self.comparison()?, Box::new([a?, b?, yes?, no?]))
            }
            2 => {
                let test = self.test(1, n_axes)?;
                let values = Box::new([self.value(less, n_axes)?, self.value(less.min(1), n_axes)?]);
                Value::Choose(test, self.u.arbitrary()?, values)
            }
            3 => {
                let from = DataType::scalar(*self.u.choose(&ELEMENTS)?);
                Value::Convert(from, Box::new(self.value(less, n_axes)?))
            }
            4 => self.value(0, n_axes)?,
            _ => {
                let (a, b) = (self.value(less, n_axes)?, self.value(less.min(1), n_axes)?);
                Value::Binary(self.binary()?, Box::new(a), Box::new(b))
            }
        })
    }

    /// Draws integer arithmetic on indices, which passes simplify; divisions and remainders are
    /// frequent.
    fn arithmetic(&mut self, depth: usize, n_axes: usize) -> Result<Value> {
        if depth == 0 || self.u.ratio(1, 6)? {
            let is_index = self.u.arbitrary()?;
            let constant = |u: &mut Unstructured<'_>| Ok(Value::Constant(u.int_in_range(-9..=9)?));
            return if is_index { Ok(Value::Index(self.below(n_axes)?)) } else { constant(self.u) };
        }
        // Operators occur as often as they should be drawn.
        let all = [
            Binary::Add,
            Binary::Sub,
            Binary::Sub,
            Binary::Mul,
            Binary::Div,
            Binary::Div,
            Binary::Mod,
            Binary::Mod,
            Binary::TruncDiv,
            Binary::TruncMod,
            Binary::Min,
            Binary::Max,
        ];
        let op = *self.u.choose(&all)?;
        Ok(Value::Binary(
            op,
            Box::new(self.arithmetic(depth - 1, n_axes)?),
            Box::new(self.arithmetic(depth - 1, n_axes)?),
        ))
    }

    /// Draws a unary operator.
    fn unary(&mut self) -> Result<Unary> {
        let all =
            [Unary::Neg, Unary::Not, Unary::Abs, Unary::Sqrt, Unary::Floor, Unary::Ceil, Unary::Round, Unary::Trunc];
        self.u.choose(&all).copied()
    }

    /// Draws a binary operator.
    fn binary(&mut self) -> Result<Binary> {
        let all = [
            Binary::Add,
            Binary::Sub,
            Binary::Mul,
            Binary::Add,
            Binary::Div,
            Binary::Mod,
            Binary::TruncDiv,
            Binary::TruncMod,
            Binary::Min,
            Binary::Max,
            Binary::And,
            Binary::Or,
            Binary::Xor,
            Binary::Shl,
            Binary::Shr,
        ];
        self.u.choose(&all).copied()
    }

    /// Draws a comparison.
    fn comparison(&mut self) -> Result<Compare> {
        let all = [Compare::Eq, Compare::Ne, Compare::Lt, Compare::Le, Compare::Gt, Compare::Ge];
        self.u.choose(&all).copied()
    }

    /// Draws a load. In two cases out of five its indices are drawn, otherwise it loads the element
    /// at the indices of the nest.
    fn read(&mut self, n_axes: usize) -> Result<Read> {
        let from = self.below(self.tensors.len())?;
        let mut at = Vec::new();
        if self.u.ratio(2, 5)? {
            for position in 0..self.tensors[from].shape.len() {
                at.push(self.at(position, n_axes)?);
            }
        }
        let through = self.percent(self.config.program.view_percent)?.then(|| self.view());
        let edge = *self.u.choose(&[Edge::Wrap, Edge::Guard, Edge::Clamp])?;
        Ok(Read { from, at, edge, through: through.transpose()? })
    }

    /// Draws an index: windows, strides, reversed axes, constants, and indices loaded from other
    /// tensors.
    fn at(&mut self, position: usize, n_axes: usize) -> Result<At> {
        Ok(match self.u.int_in_range(0..=11u8)? {
            0 => At::Axis(self.below(n_axes)?, 1, 0),
            1 => At::Axis(position, 1, self.u.int_in_range(-3..=3)?),
            2 => At::Axis(self.below(n_axes)?, self.u.int_in_range(-2..=3)?, self.u.int_in_range(-2..=2)?),
            3 => At::Sum(position, self.below(n_axes)?, self.u.int_in_range(-2..=1)?),
            4 => At::Sum(position, n_axes - 1, self.u.int_in_range(-2..=0)?),
            5 => At::Reverse(position),
            6 => At::Fixed(self.u.int_in_range(0..=7)?),
            7 | 8 => At::Gather(self.below(4)?),
            _ => At::Axis(position, 1, 0),
        })
    }
}

/// Makes every load in a value read the element at the indices of the nest, without a view.
fn straighten(value: &mut Value) {
    if let Value::Read(read) = value {
        read.at.clear();
        read.through = None;
    }
    parts_mut(value).into_iter().for_each(straighten);
}

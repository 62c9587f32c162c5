//! Recipes drawn from bytes: what is likely to be interesting, not all that is possible.

use arbitrary::{Result, Unstructured};
use tilewright_ir::{DataType, ScalarType, Scope};

use super::recipe::{
    At, Binary, Compare, ELEMENTS, Edge, Guard, Keep, Kind, Layout, Loop, Premise, Read, Recipe, Reduce, ReduceOp,
    Stage, Tensor, Test, Unary, Value, View,
};
use super::simpler::parts_mut;
use crate::config::Config;
use crate::extents;
use crate::map::Op;

/// Draws the parts of a recipe.
struct Draw<'a, 'b, 'c> {
    u: &'a mut Unstructured<'b>,
    config: &'c Config,
    /// The tensors so far: inputs, then what stages computed.
    tensors: Vec<Tensor>,
    /// The shape that most tensors have.
    shape: Vec<i64>,
    /// The type that most tensors have.
    ty: ScalarType,
}

/// Draws a recipe.
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
    // Most programs have as few as there may be.
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
    Ok(Recipe { seed, inputs, scalars, stages, unknown, premise })
}

impl Draw<'_, '_, '_> {
    fn percent(&mut self, percent: u8) -> Result<bool> {
        extents::percent(self.u, percent)
    }

    /// Extents of the tensors that the program does not know.
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

    fn below(&mut self, bound: usize) -> Result<usize> {
        self.u.int_in_range(0..=bound.max(1) - 1)
    }

    /// The usual shape, or one that is made of it.
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

    fn dtype(&mut self) -> Result<DataType> {
        let scalar = if self.u.ratio(1, 3)? { *self.u.choose(&ELEMENTS)? } else { self.ty };
        let lanes = if scalar != ScalarType::Bool && self.percent(self.config.program.vector_percent)? {
            *self.u.choose(&[2, 3, 4, 8, 16])?
        } else {
            1
        };
        Ok(DataType { scalar, lanes })
    }

    fn input(&mut self, number: usize) -> Result<Tensor> {
        let shape = if number == 0 { self.shape.clone() } else { self.variant()? };
        let dtype = if number > 0 && self.u.ratio(1, 3)? { DataType::INT32 } else { self.dtype()? };
        let scope =
            if self.percent(self.config.program.texture_percent / 2)? { self.texture()? } else { Scope::Global };
        let layout = self.layout_in(scope, shape.len())?;
        Ok(Tensor { dtype, shape, layout, scope })
    }

    fn texture(&mut self) -> Result<Scope> {
        self.u.choose(&[Scope::Texture, Scope::TextureWeight, Scope::TextureNhwc]).copied()
    }

    fn layout_in(&mut self, scope: Scope, rank: usize) -> Result<Layout> {
        if scope.is_texture() && self.u.arbitrary()? {
            return Ok(Layout::Packed);
        }
        self.layout(rank)
    }

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

    fn tile(&mut self) -> Result<Vec<u64>> {
        let rank = self.u.int_in_range(1..=3usize)?;
        (0..rank).map(|_| Ok(extents::block(self.u, self.config)?.unsigned_abs())).collect()
    }

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
        };
        if self.percent(self.config.program.vectorized_percent)? {
            self.vectorized(&mut stage)?;
        }
        if stage.target.is_texture() && self.u.ratio(1, 2)? {
            straighten(&mut stage.value);
        }
        Ok(stage)
    }

    /// Makes the last axis a loop over lanes of which a vector statement can be made, if its extent is one that vectors have
    /// or a multiple of one.
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
        // Lanes are next to each other in most layouts of the kind that passes leave alone.
        if self.u.ratio(3, 4)? {
            stage.target.layout = Layout::Plain;
        }
        if self.u.ratio(3, 4)? {
            straighten(&mut stage.value);
        }
        // The number of the lane itself, up or down.
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

    fn axis_loop(&mut self) -> Result<Loop> {
        if !self.percent(self.config.program.loop_percent)? {
            return Ok(Loop::default());
        }
        let kinds = [Kind::Serial, Kind::Parallel, Kind::Vectorized, Kind::Unrolled, Kind::Block, Kind::Thread];
        let kind = *self.u.choose(&kinds)?;
        // Loops over lanes are as long as vectors are more often than by chance.
        let splits = if kind == Kind::Vectorized { 2 } else { 1 };
        Ok(Loop {
            kind,
            split: self.u.ratio(splits, 3u8)?.then(|| extents::block(self.u, self.config)).transpose()?,
            min: if self.u.ratio(1, 8)? { self.u.int_in_range(-3..=5)? } else { 0 },
            bind: self.u.ratio(1, 8)?,
            order: self.u.int_in_range(0..=3)?,
        })
    }

    fn guard(&mut self, n_axes: usize) -> Result<Guard> {
        let test = self.test(1, n_axes)?;
        Ok(Guard { test, otherwise: if self.u.arbitrary()? { Some(self.u.int_in_range(-9..=9)?) } else { None } })
    }

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

    /// Integer arithmetic on indices, as the passes simplify it.
    fn arithmetic(&mut self, depth: usize, n_axes: usize) -> Result<Value> {
        if depth == 0 || self.u.ratio(1, 6)? {
            let is_index = self.u.arbitrary()?;
            let constant = |u: &mut Unstructured<'_>| Ok(Value::Constant(u.int_in_range(-9..=9)?));
            return if is_index { Ok(Value::Index(self.below(n_axes)?)) } else { constant(self.u) };
        }
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

    fn unary(&mut self) -> Result<Unary> {
        let all =
            [Unary::Neg, Unary::Not, Unary::Abs, Unary::Sqrt, Unary::Floor, Unary::Ceil, Unary::Round, Unary::Trunc];
        self.u.choose(&all).copied()
    }

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

    fn comparison(&mut self) -> Result<Compare> {
        let all = [Compare::Eq, Compare::Ne, Compare::Lt, Compare::Le, Compare::Gt, Compare::Ge];
        self.u.choose(&all).copied()
    }

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

/// Reads the element that is computed, everywhere.
fn straighten(value: &mut Value) {
    if let Value::Read(read) = value {
        read.at.clear();
        read.through = None;
    }
    parts_mut(value).into_iter().for_each(straighten);
}

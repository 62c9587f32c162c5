//! Methods of `tvm.tir.Schedule` about blocks and their buffers: caches, computing elsewhere, layouts.

use tilewright_ir::{self as ir, Diagnostic, IndexMap, Scalar, Span, Var};

use super::args::{Arg, Args};
use super::builtins::index_names;
use super::eval::Interp;
use super::schedules::to_scope;
use super::value::{Eval, Placed, Value, to_index, to_int, to_items, wrong_kind};
use crate::block_schedule::{BLOCK_PRIMITIVES, BlockRef, BufferOf};

impl<'a> Interp<'a> {
    /// `sch.name(args)` of a method in [`BLOCK_PRIMITIVES`]; `None` for another one, with its arguments.
    pub(super) fn block_step(
        &mut self,
        schedule: usize,
        name: &str,
        mut args: Args<'a>,
    ) -> Result<Eval<Value<'a>>, Args<'a>> {
        let span = args.span;
        if !BLOCK_PRIMITIVES.contains(&name) {
            return Err(args);
        }
        Ok(match name {
            "cache_read" | "cache_write" => self.block_cache(schedule, name, args),
            "compute_at" | "reverse_compute_at" => self.block_compute_at(schedule, name, args),
            "transform_layout" => self.block_layout(schedule, args),
            "transform_block_layout" => args.need("block").and_then(|block| {
                let function = args.need("index_map")?;
                args.finish()?;
                let block = self.block_of(schedule, &block)?;
                let extents = self.working_on(schedule, span).block_extents(block).at(span)?;
                let map = self.layout_map(&function, &extents)?;
                self.working_on(schedule, span).transform_block_layout(block, &map).at(span).map(|()| Value::None)
            }),
            "reindex" => args.need("block").and_then(|block| {
                let named = args.need("buffer")?;
                args.finish()?;
                let block = self.block_of(schedule, &block)?;
                let buffer = self.block_buffer_of(schedule, block, &named)?;
                let one = self.working_on(schedule, span);
                let is_write = one.writes(block, &buffer).at(span)?;
                let copy = one.reindex(block, &buffer, is_write).at(span)?;
                Ok(self.block_value(schedule, copy))
            }),
            "compute_inline" | "reverse_compute_inline" => args.need("block").and_then(|block| {
                args.finish()?;
                let block = self.block_of(schedule, &block)?;
                let one = self.working_on(schedule, span);
                let done = if name == "compute_inline" {
                    one.compute_inline(block)
                } else {
                    one.reverse_compute_inline(block)
                };
                done.at(span).map(|()| Value::None)
            }),
            "decompose_reduction" => args.need("block").and_then(|block| {
                let run = args.need("loop")?;
                args.finish()?;
                let (block, run) = (self.block_of(schedule, &block)?, self.block_loop_of(schedule, &run)?);
                let init = self.working_on(schedule, span).decompose_reduction(block, &run).at(span)?;
                Ok(self.block_value(schedule, init))
            }),
            "rfactor" => args.need("loop").and_then(|run| {
                let (axis, place) = args.need("factor_axis")?;
                args.finish()?;
                let run = self.block_loop_of(schedule, &run)?;
                let parts = self.working_on(schedule, span).rfactor(&run, to_int(&axis, place)?).at(span)?;
                Ok(self.block_value(schedule, parts))
            }),
            "pad_einsum" => args.need("block").and_then(|block| {
                let (padding, place) = args.need("padding")?;
                args.finish()?;
                let block = self.block_of(schedule, &block)?;
                let padding = to_items(&padding).iter().map(|item| to_int(item, place)).collect::<Eval<Vec<_>>>()?;
                self.working_on(schedule, span).pad_einsum(block, &padding).at(span).map(|()| Value::None)
            }),
            _ => self.block_buffer(schedule, name, args),
        })
    }

    /// `sch.cache_read(block, 0, "shared")`, `sch.cache_write(block, 0, "local")`.
    fn block_cache(&mut self, schedule: usize, name: &str, mut args: Args<'a>) -> Eval<Value<'a>> {
        let span = args.span;
        let is_read = name == "cache_read";
        let block = args.need("block")?;
        let index = args.need(if is_read { "read_buffer_index" } else { "write_buffer_index" })?;
        let scope = args.need("storage_scope")?;
        let consumers = args.take("consumer_blocks")?.filter(|(value, _)| !matches!(value, Value::None));
        args.finish()?;
        let block = self.block_of(schedule, &block)?;
        let index = self.block_buffer_index(schedule, block, &index, is_read)?;
        let scope = to_scope(&scope)?;
        let mut readers = Vec::new();
        if let Some((list, place)) = consumers {
            if !is_read {
                let message = "`consumer_blocks` of `cache_write` is not supported";
                return Err(Diagnostic::error("argument", Some(place), message)
                    .with_help("leave it out: the blocks behind read what is copied"));
            }
            for item in to_items(&list) {
                readers.push(self.block_of(schedule, &(item, place))?);
            }
        }
        let one = self.working_on(schedule, span);
        let copy =
            if is_read { one.cache_read(block, index, scope, &readers) } else { one.cache_write(block, index, scope) };
        let copy = copy.at(span)?;
        Ok(self.block_value(schedule, copy))
    }

    /// The number of a buffer among those that a block reads or writes: the number itself, or the name of the buffer.
    fn block_buffer_index(
        &mut self,
        schedule: usize,
        block: BlockRef,
        (value, span): &Arg<'a>,
        is_read: bool,
    ) -> Eval<usize> {
        let Value::Str(name) = value else {
            return usize::try_from(to_int(value, *span)?).map_err(|_| wrong_kind(*span, "a number from 0 on", value));
        };
        let one = self.working_on(schedule, *span);
        let of = |index| if is_read { BufferOf::Read(index) } else { BufferOf::Write(index) };
        let mut index = 0;
        loop {
            let buffer = one.buffer_of(block, &of(index)).at(*span)?;
            if buffer.name == **name {
                return Ok(index);
            }
            index += 1;
        }
    }

    /// `sch.compute_at(block, loop)`, `sch.reverse_compute_at(block, loop)`.
    fn block_compute_at(&mut self, schedule: usize, name: &str, mut args: Args<'a>) -> Eval<Value<'a>> {
        let span = args.span;
        let (block, run) = (args.need("block")?, args.need("loop")?);
        let unit_loops = match args.take("preserve_unit_loops")? {
            None => false,
            Some((Value::Bool(value), _)) => value,
            Some((value, place)) => return Err(wrong_kind(place, "a truth value", &value)),
        };
        if let Some((value, place)) = args.take("index")?
            && to_int(&value, place)? != -1
        {
            let message = "`index` is the last place, -1: the block stands beside those that use its buffer";
            return Err(Diagnostic::error("argument", Some(place), message).with_help("leave it out"));
        }
        args.finish()?;
        let (block, run) = (self.block_of(schedule, &block)?, self.block_loop_of(schedule, &run)?);
        let one = self.working_on(schedule, span);
        let done = if name == "compute_at" {
            one.compute_at(block, &run, unit_loops)
        } else {
            one.reverse_compute_at(block, &run, unit_loops)
        };
        done.at(span).map(|()| Value::None)
    }

    /// `sch.set_scope(block, 0, "shared")`, `sch.set_axis_separator(block, ("read", 0), [2])`.
    fn block_buffer(&mut self, schedule: usize, name: &str, mut args: Args<'a>) -> Eval<Value<'a>> {
        let span = args.span;
        let block = args.need("block")?;
        if name == "set_scope" {
            let (buffer, scope) = (args.need("buffer_index")?, args.need("storage_scope")?);
            args.finish()?;
            let block = self.block_of(schedule, &block)?;
            let buffer = self.block_buffer_of(schedule, block, &buffer)?;
            let scope = to_scope(&scope)?;
            return self.working_on(schedule, span).set_scope(&buffer, scope).at(span).map(|()| Value::None);
        }
        let (buffer, (list, place)) = (args.need("buffer")?, args.need("axis_separators")?);
        args.finish()?;
        let block = self.block_of(schedule, &block)?;
        let buffer = self.block_buffer_of(schedule, block, &buffer)?;
        let position = |item: &Value<'a>| {
            usize::try_from(to_int(item, place)?).map_err(|_| wrong_kind(place, "a number of axes", item))
        };
        let positions = to_items(&list).iter().map(position).collect::<Eval<Vec<_>>>()?;
        self.working_on(schedule, span).set_axis_separator(&buffer, positions).at(span).map(|()| Value::None)
    }

    /// The buffer of a block that an argument names: `("read", 0)`, `("write", 0)`, a number of a write, or a name.
    pub(super) fn block_buffer_of(
        &mut self,
        schedule: usize,
        block: BlockRef,
        (value, span): &Arg<'a>,
    ) -> Eval<ir::Buffer> {
        let wrong = || wrong_kind(*span, "a buffer of the block, such as (\"read\", 0) or \"A\"", value);
        let number = |value: &Value<'a>| usize::try_from(to_int(value, *span)?).map_err(|_| wrong());
        let of = match value {
            Value::Str(name) => BufferOf::Named(name.to_string()),
            Value::Int(_) => BufferOf::Write(number(value)?),
            Value::Tuple(_) | Value::List(_) => match &value.items().unwrap_or_default()[..] {
                [Value::Str(kind), index] if **kind == *"read" => BufferOf::Read(number(index)?),
                [Value::Str(kind), index] if **kind == *"write" => BufferOf::Write(number(index)?),
                _ => return Err(wrong()),
            },
            _ => return Err(wrong()),
        };
        self.working_on(schedule, *span).buffer_of(block, &of).at(*span)
    }

    /// `sch.transform_layout(block, ("read", 0), lambda n, c: [n, c // 4, c % 4], pad_value=0)`.
    fn block_layout(&mut self, schedule: usize, mut args: Args<'a>) -> Eval<Value<'a>> {
        let span = args.span;
        let (block, buffer, function) = (args.need("block")?, args.need("buffer")?, args.need("index_map")?);
        let pad_value = args.take("pad_value")?.filter(|(value, _)| !matches!(value, Value::None));
        // That the map is injective is proved in any case.
        for proved in ["assume_injective_transform", "assume_injective"] {
            if let Some((value, place)) = args.keyword(proved)
                && !matches!(value, Value::Bool(_))
            {
                return Err(wrong_kind(place, "a truth value", &value));
            }
        }
        args.finish()?;
        let block = self.block_of(schedule, &block)?;
        let buffer = self.block_buffer_of(schedule, block, &buffer)?;
        let map = self.layout_map(&function, &buffer.shape)?;
        let pad_value = match pad_value {
            // A function of the physical indices, which may leave them out.
            Some((Value::Closure(closure), place)) => {
                let index = |output: &ir::Expr| Value::Expr(ir::Expr::from(&Var::new("p", output.dtype())));
                let value = self.apply(&closure, map.outputs().iter().map(index).collect(), place)?;
                Some(pad_value_of(&value, place)?)
            }
            Some((value, place)) => Some(pad_value_of(&value, place)?),
            None => None,
        };
        self.working_on(schedule, span).transform_layout(&buffer, &map, pad_value).at(span)?;
        Ok(Value::None)
    }

    /// The index map that a function of the indices is.
    pub(super) fn layout_map(&mut self, (function, span): &Arg<'a>, domain: &[ir::Expr]) -> Eval<IndexMap> {
        let Value::Closure(closure) = function else {
            let help = "write the physical indices, such as `lambda n, h, w, c: [n, c // 4, h, w, c % 4]`";
            return Err(wrong_kind(*span, "a function of the indices", function).with_help(help));
        };
        let place = closure.function.span;
        let names = index_names(closure, domain.len(), *span)?;
        let vars: Vec<Var> =
            names.iter().zip(domain).map(|(name, extent)| Var::new(name.as_str(), extent.dtype())).collect();
        let values = vars.iter().map(|var| Value::Expr(ir::Expr::from(var))).collect();
        let result = self.apply(closure, values, *span)?;
        let (mut outputs, mut separators) = (Vec::new(), Vec::new());
        for item in to_items(&result) {
            match item {
                Value::AxisSeparator => separators.push(outputs.len()),
                item => outputs.push(to_index(&item, place)?),
            }
        }
        IndexMap::new(vars, domain.to_vec(), outputs, separators).map_err(|error| {
            Diagnostic::error("index-map", Some(place), error.to_string())
                .with_help("a separator stands between two axes, and every other item is an integer")
        })
    }
}

/// A pad value, a number.
fn pad_value_of(value: &Value<'_>, span: Span) -> Eval<Scalar> {
    match value {
        Value::Bool(value) => Ok(Scalar::Int((*value).into())),
        Value::Int(value) => Ok(Scalar::Int((*value).into())),
        Value::Float(value) => Ok(Scalar::Float(*value)),
        Value::Expr(ir::Expr::Int { value, .. }) => Ok(Scalar::Int(*value)),
        Value::Expr(ir::Expr::Float { value, .. }) => Ok(Scalar::Float(*value)),
        _ => Err(wrong_kind(span, "a number", value)
            .with_help("a padding that differs from element to element is not supported")),
    }
}

//! `tvm.tir.Schedule` and its methods: reads the arguments, and calls [`crate::block_schedule`].
//!
//! ```python
//! sch = tvm.tir.Schedule(Module)                    # also tvm.s_tir.Schedule; a function, or a module of functions
//! block = sch.get_block("C")
//! i, j, k = sch.get_loops(block)
//! i_0, i_1 = sch.split(i, factors=[None, 8])        # a step, which is judged by itself
//! ```

use std::rc::Rc;

use tilewright_ir::{self as ir, AttrValue, Diagnostic, Span};
use tilewright_script::Scripted;

use super::args::{Arg, Args};
use super::eval::Interp;
use super::value::{Eval, Placed, Value, to_int, to_items, to_str, wrong_kind};
use crate::block_schedule::{BLOCK_PRIMITIVES, BlockRef, BlockSchedule, LOOP_PRIMITIVES, LoopRef};

/// Most steps of a schedule.
const MOST_STEPS: usize = 1_000;

/// The methods of a schedule that say something about it.
const QUERIES: [&str; 9] =
    ["work_on", "get_block", "get_sblock", "get_loops", "get_child_blocks", "show", "mod", "trace", "enter_postproc"];

/// A schedule that the program made: one for each function of its module.
pub(super) struct BlockRecord {
    pub(super) funcs: Vec<BlockSchedule>,
    /// The function that the primitives work on.
    current: usize,
    /// The name of the definition.
    name: Rc<str>,
}

/// Something in the function of a schedule.
#[derive(Clone)]
pub(super) struct InSchedule<T> {
    schedule: usize,
    func: usize,
    what: T,
}

/// A block of a schedule.
pub(super) type BlockValue = InSchedule<BlockRef>;
/// A loop of a schedule.
pub(super) type LoopValue = InSchedule<LoopRef>;

/// Whether a path names the class of schedules.
pub(super) fn is_schedule_class(local: &str) -> bool {
    matches!(local, "tir.Schedule" | "s_tir.Schedule" | "tir.schedule.Schedule" | "s_tir.schedule.Schedule")
}

impl<'a> Interp<'a> {
    /// The definition in TVMScript of that name.
    pub(super) fn script(&self, name: &str) -> Option<Value<'a>> {
        let found = self.scripted.iter().find(|scripted| scripted.name == name)?;
        Some(Value::Script(found.clone()))
    }

    /// `tvm.tir.Schedule(mod)`.
    pub(super) fn block_schedule(&mut self, mut args: Args<'a>) -> Eval<Value<'a>> {
        let (module, span) = args.need("mod")?;
        for ignored in ["seed", "debug_mask", "error_render_level", "enable_check", "trace", "target"] {
            args.keyword(ignored);
        }
        args.finish()?;
        let Value::Script(scripted) = module else {
            let help = "give a function or a module in TVMScript: `@T.prim_func`, `@I.ir_module`";
            return Err(wrong_kind(span, "a function or a module in TVMScript", &module).with_help(help));
        };
        let current = scripted.funcs.iter().position(|func| func.name == "main").unwrap_or(0);
        let funcs = scripted.funcs.iter().map(BlockSchedule::new).collect();
        self.block_schedules.push(BlockRecord { funcs, current, name: scripted.name.as_str().into() });
        Ok(Value::BlockSchedule(self.block_schedules.len() - 1))
    }

    /// `sch.mod`, `sch.trace`.
    pub(super) fn block_schedule_attribute(&self, schedule: usize, name: &str) -> Option<Value<'a>> {
        match name {
            "mod" => {
                let record = &self.block_schedules[schedule];
                let funcs = record.funcs.iter().map(|one| one.func().clone()).collect();
                Some(Value::Script(Rc::new(Scripted { name: record.name.to_string(), is_module: true, funcs })))
            }
            "trace" => Some(Value::Opaque("a trace")),
            "func_working_on" | "state" => Some(Value::Opaque("the state of a schedule")),
            _ => None,
        }
    }

    /// `module["main"]`.
    pub(super) fn script_item(scripted: &Scripted, index: &Value<'a>, span: Span) -> Eval<Value<'a>> {
        let name = to_str(index, span)?;
        let Some(func) = scripted.funcs.iter().find(|func| func.name == *name) else {
            let known: Vec<&str> = scripted.funcs.iter().map(|func| func.name.as_str()).collect();
            return Err(Diagnostic::error("index", Some(span), format!("the module has no function `{name}`"))
                .with_help(format!("it has {}", known.join(", "))));
        };
        let one = Scripted { name: name.to_string(), is_module: false, funcs: vec![func.clone()] };
        Ok(Value::Script(Rc::new(one)))
    }

    /// `mod.script()`, `mod.show()`: what is printed says nothing of the result.
    pub(super) fn script_method(receiver: &Value<'a>, name: &str, span: Span) -> Eval<Value<'a>> {
        match name {
            "show" => Ok(Value::None),
            "script" | "astext" => Ok(Value::Str("".into())),
            "with_attr" | "without_attr" => {
                let message = format!("`{name}` of a function is not supported");
                Err(Diagnostic::error("method", Some(span), message).with_help("write `T.func_attr({...})` in it"))
            }
            _ => {
                let message = format!("{} has no method `{name}` that is supported", receiver.describe());
                Err(Diagnostic::error("method", Some(span), message).with_help("known here: script, show"))
            }
        }
    }

    /// The schedule of the function that a schedule works on; the steps that follow stand at the call.
    pub(super) fn working_on(&mut self, schedule: usize, span: Span) -> &mut BlockSchedule {
        let record = &mut self.block_schedules[schedule];
        let one = &mut record.funcs[record.current];
        one.set_place(Some(span));
        one
    }

    /// `sch.name(args)`. A table of the primitives: each arm reads the arguments in TVM's order and calls the builder.
    pub(super) fn block_method(&mut self, schedule: usize, name: &str, args: Args<'a>) -> Eval<Value<'a>> {
        let span = args.span;
        let n_steps: usize = self.block_schedules[schedule].funcs.iter().map(|one| one.steps().len()).sum();
        if n_steps >= MOST_STEPS {
            let message = format!("the schedule has {MOST_STEPS} steps already");
            let help = "each step is proved by itself; a schedule has as few as possible";
            return Err(Diagnostic::error("schedule", Some(span), message).with_help(help));
        }
        let mut args = match self.block_step(schedule, name, args) {
            Ok(done) => return done,
            Err(args) => args,
        };
        match name {
            "get_block" | "get_sblock" => {
                let (block, place) = args.need("name")?;
                if let Some((func, place)) = args.take("func_name")? {
                    self.work_on(schedule, &to_str(&func, place)?, place)?;
                }
                args.finish()?;
                let block = self.working_on(schedule, span).get_block(&to_str(&block, place)?).at(place)?;
                Ok(self.block_value(schedule, block))
            }
            "get_loops" => {
                let block = args.need("block")?;
                args.finish()?;
                let block = self.block_of(schedule, &block)?;
                let loops = self.working_on(schedule, span).get_loops(block).at(span)?;
                Ok(Value::list(loops.into_iter().map(|run| self.loop_value(schedule, run)).collect()))
            }
            "get_child_blocks" => {
                let (value, place) = args.need("block_or_loop")?;
                args.finish()?;
                let found = if matches!(value, Value::BlockLoop(_)) {
                    let run = self.block_loop_of(schedule, &(value, place))?;
                    self.working_on(schedule, span).get_child_blocks_of_loop(&run).at(span)?
                } else {
                    let block = self.block_of(schedule, &(value, place))?;
                    self.working_on(schedule, span).get_child_blocks(block).at(span)?
                };
                Ok(Value::list(found.into_iter().map(|block| self.block_value(schedule, block)).collect()))
            }
            "split" => self.block_split(schedule, args),
            "fuse" | "reorder" => {
                let runs = args.rest();
                unit_loops(&mut args)?;
                args.finish()?;
                let runs = self.block_loops_of(schedule, &runs)?;
                let one = self.working_on(schedule, span);
                if name == "reorder" {
                    return one.reorder(&runs).at(span).map(|()| Value::None);
                }
                let fused = one.fuse(&runs).at(span)?;
                Ok(self.loop_value(schedule, fused))
            }
            "bind" => {
                let (run, (axis, place)) = (args.need("loop")?, args.need("thread_axis")?);
                args.finish()?;
                let run = self.block_loop_of(schedule, &run)?;
                if let Value::Str(name) = &axis
                    && name.starts_with("vthread")
                {
                    let bound = self.working_on(schedule, span).bind_virtual(&run, name);
                    return bound.at(span).map(|()| Value::None);
                }
                let tag = thread_tag(&axis, place)?;
                self.working_on(schedule, span).bind(&run, tag).at(span).map(|()| Value::None)
            }
            "parallel" | "vectorize" | "unroll" => {
                let run = args.need("loop")?;
                args.finish()?;
                let run = self.block_loop_of(schedule, &run)?;
                let one = self.working_on(schedule, span);
                let done = match name {
                    "parallel" => one.parallel(&run),
                    "vectorize" => one.vectorize(&run),
                    _ => one.unroll(&run),
                };
                done.at(span).map(|()| Value::None)
            }
            "annotate" | "unannotate" => self.block_annotate(schedule, name, args),
            "work_on" => {
                let (func, place) = args.need("func_name")?;
                args.finish()?;
                self.work_on(schedule, &to_str(&func, place)?, place)?;
                Ok(Value::None)
            }
            "show" | "enter_postproc" => {
                args.rest();
                Ok(Value::None)
            }
            _ => {
                let message = format!("`{name}` is no method of a schedule on blocks that is supported");
                let all = || LOOP_PRIMITIVES.into_iter().chain(BLOCK_PRIMITIVES).chain(QUERIES);
                let help = match tilewright_script::nearest(name, all()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the methods are {}", all().collect::<Vec<_>>().join(", ")),
                };
                Err(Diagnostic::error("unsupported-primitive", Some(span), message).with_help(help))
            }
        }
    }

    fn work_on(&mut self, schedule: usize, name: &str, span: Span) -> Eval<()> {
        let record = &mut self.block_schedules[schedule];
        let position = record.funcs.iter().position(|one| one.func().name == name);
        record.current = position.ok_or_else(|| {
            let known: Vec<&str> = record.funcs.iter().map(|one| one.func().name.as_str()).collect();
            Diagnostic::error("unknown-name", Some(span), format!("the module has no function `{name}`"))
                .with_help(format!("it has {}", known.join(", ")))
        })?;
        Ok(())
    }

    /// `sch.split(loop, factors=[None, 8])`.
    fn block_split(&mut self, schedule: usize, mut args: Args<'a>) -> Eval<Value<'a>> {
        let span = args.span;
        let (run, (factors, place)) = (args.need("loop")?, args.need("factors")?);
        unit_loops(&mut args)?;
        args.keyword("disable_predication").map_or(Ok(()), |(value, place)| match value {
            Value::Bool(false) => Ok(()),
            _ => Err(Diagnostic::error("argument", Some(place), "`disable_predication` would change the program")
                .with_help("leave it out: there is no predicate where the factors divide the loop")),
        })?;
        args.finish()?;
        let run = self.block_loop_of(schedule, &run)?;
        let Some(items) = factors.items() else { return Err(wrong_kind(place, "a list of factors", &factors)) };
        let factor = |item: &Value<'a>| match item {
            Value::None => Ok(None),
            item => to_int(item, place).map(Some),
        };
        let factors = items.iter().map(factor).collect::<Eval<Vec<_>>>()?;
        let loops = self.working_on(schedule, span).split(&run, &factors).at(span)?;
        Ok(Value::list(loops.into_iter().map(|run| self.loop_value(schedule, run)).collect()))
    }

    /// `sch.annotate(block_or_loop, key, value)`, `sch.unannotate(block_or_loop, key)`.
    fn block_annotate(&mut self, schedule: usize, name: &str, mut args: Args<'a>) -> Eval<Value<'a>> {
        let span = args.span;
        let (target, (key, place)) = (args.need("block_or_loop")?, args.need("ann_key")?);
        let value = if name == "annotate" { Some(args.need("ann_val")?) } else { None };
        args.finish()?;
        let key = to_str(&key, place)?;
        let value = value.map(|(value, place)| to_attr(&value, place)).transpose()?;
        if let Value::BlockLoop(_) = target.0 {
            let run = self.block_loop_of(schedule, &target)?;
            let one = self.working_on(schedule, span);
            let done = match value {
                Some(value) => one.annotate_loop(&run, &key, value),
                None => one.unannotate_loop(&run, &key),
            };
            return done.at(span).map(|()| Value::None);
        }
        let block = self.block_of(schedule, &target)?;
        let one = self.working_on(schedule, span);
        let done = match value {
            Some(value) => one.annotate_block(block, &key, &value),
            None => one.unannotate_block(block, &key),
        };
        done.at(span).map(|()| Value::None)
    }

    pub(super) fn block_value(&self, schedule: usize, what: BlockRef) -> Value<'a> {
        Value::Block(InSchedule { schedule, func: self.block_schedules[schedule].current, what })
    }

    pub(super) fn loop_value(&self, schedule: usize, what: LoopRef) -> Value<'a> {
        Value::BlockLoop(InSchedule { schedule, func: self.block_schedules[schedule].current, what })
    }

    /// The block that an argument holds, or names.
    pub(super) fn block_of(&mut self, schedule: usize, (value, span): &Arg<'a>) -> Eval<BlockRef> {
        match value {
            Value::Block(block) => {
                self.check_same(schedule, block, *span)?;
                Ok(block.what)
            }
            Value::Str(name) => self.working_on(schedule, *span).get_block(name).at(*span),
            _ => Err(wrong_kind(*span, "a block, such as sch.get_block(\"C\")", value)),
        }
    }

    /// The loop that an argument holds.
    pub(super) fn block_loop_of(&mut self, schedule: usize, (value, span): &Arg<'a>) -> Eval<LoopRef> {
        let Value::BlockLoop(run) = value else {
            return Err(wrong_kind(*span, "a loop, such as one of sch.get_loops(block)", value));
        };
        self.check_same(schedule, run, *span)?;
        Ok(run.what.clone())
    }

    fn block_loops_of(&mut self, schedule: usize, runs: &[Arg<'a>]) -> Eval<Vec<LoopRef>> {
        runs.iter().map(|run| self.block_loop_of(schedule, run)).collect()
    }

    /// Checks that a block or a loop is one of the function that a schedule works on.
    fn check_same<T>(&self, schedule: usize, of: &InSchedule<T>, span: Span) -> Eval<()> {
        if of.schedule == schedule && of.func == self.block_schedules[schedule].current {
            return Ok(());
        }
        let message = "it belongs to another schedule or function";
        Err(Diagnostic::error("schedule", Some(span), message).with_help("ask this one: `sch.get_block(\"C\")`"))
    }
}

/// `preserve_unit_iters=`: loops of one iteration are kept in any case.
fn unit_loops(args: &mut Args<'_>) -> Eval<()> {
    args.keyword("preserve_unit_iters").map_or(Ok(()), |(value, span)| match value {
        Value::Bool(_) => Ok(()),
        _ => Err(wrong_kind(span, "a truth value", &value)),
    })
}

/// The axis of the launch that an argument names.
fn thread_tag(value: &Value<'_>, span: Span) -> Eval<ir::ThreadTag> {
    if let Value::Thread { tag, .. } = value {
        return Ok(*tag);
    }
    let name = to_str(value, span)?;
    name.parse().map_err(|error: ir::stmt::ThreadTagError| Diagnostic::error("schedule", Some(span), error.to_string()))
}

/// The value of a hint.
fn to_attr(value: &Value<'_>, span: Span) -> Eval<AttrValue> {
    match value {
        Value::Bool(value) => Ok(AttrValue::Bool(*value)),
        Value::Int(value) => Ok(AttrValue::Int(*value)),
        Value::Float(value) => Ok(AttrValue::Float(*value)),
        Value::Str(text) => Ok(AttrValue::Str(text.to_string())),
        Value::List(_) | Value::Tuple(_) => {
            let items = to_items(value).iter().map(|item| to_attr(item, span)).collect::<Eval<_>>()?;
            Ok(AttrValue::List(items))
        }
        Value::Dict(pairs) => {
            let pair =
                |(key, value): &(Value<'_>, Value<'_>)| Ok((to_str(key, span)?.to_string(), to_attr(value, span)?));
            Ok(AttrValue::Dict(pairs.iter().map(pair).collect::<Eval<_>>()?))
        }
        _ => Err(wrong_kind(span, "a number, a string, or a list or dictionary of these", value)),
    }
}

//! `te.create_schedule` and the methods of a schedule.

use tilewright_ir::{self as ir, Diagnostic, Span};

use super::args::{Arg, Args};
use super::build::{ScheduleId, Tensor};
use super::eval::{Interp, ScheduleRecord};
use super::value::{Eval, Placed, StageRef, Value, to_int, to_items, to_str, wrong_kind};

impl<'a> Interp<'a> {
    /// `te.create_schedule(B.op)`.
    pub(super) fn create_schedule(&mut self, mut args: Args<'a>) -> Eval<Value<'a>> {
        let (ops, ops_span) = args.need("ops")?;
        let span = args.span;
        args.finish()?;
        let mut outputs = Vec::new();
        for op in to_items(&ops) {
            let (Value::Op(tensor) | Value::Tensor(tensor)) = op else {
                return Err(wrong_kind(ops_span, "a tensor's op, such as B.op", &op));
            };
            outputs.push(tensor);
        }
        let id = self.te.create_schedule(&outputs).at(ops_span)?.id();
        let (frame, function) = (self.frame(), self.function_name());
        self.schedules.push(ScheduleRecord { id, span, frame, function, lowered: false });
        Ok(Value::Schedule(id))
    }

    /// `s.cache_read(...)` and the like.
    pub(super) fn schedule_method(&mut self, schedule: ScheduleId, name: &str, mut args: Args<'a>) -> Eval<Value<'a>> {
        // Stages that the call adds, and errors about them, point to the call.
        self.te.set_place(Some(args.span));
        match name {
            "cache_read" => {
                let (tensor, scope, readers) = (args.need("tensor")?, args.need("scope")?, args.need("readers")?);
                let span = args.span;
                args.finish()?;
                self.cache_read(schedule, &tensor, &scope, &readers, span)
            }
            "cache_write" => {
                let (tensor, scope) = (args.need("tensor")?, args.need("scope")?);
                let span = args.span;
                args.finish()?;
                self.cache_write(schedule, &tensor, &scope, span)
            }
            "rfactor" => {
                let (tensor, axis, place) = (args.need("tensor")?, args.need("axis")?, args.take("factor_axis")?);
                let span = args.span;
                args.finish()?;
                let factor_axis = place.map_or(Ok(0), |(place, at)| to_int(&place, at))?;
                let source = tensor_of(&tensor)?;
                let run = self.loop_of(StageRef { schedule, tensor: source }, &axis)?;
                let parts = self.te.schedule(schedule).at(span)?.rfactor_at(source, run, factor_axis).at(span)?;
                self.named.insert(parts.index);
                Ok(Value::Tensor(parts))
            }
            "normalize" => {
                args.finish()?;
                Ok(Value::Schedule(schedule))
            }
            _ => {
                let message = format!("a schedule's `{name}` is not supported");
                let near = tilewright_script::nearest(name, ["cache_read", "cache_write", "rfactor", "normalize"]);
                let help = near.map_or_else(
                    || "cache_read, cache_write and rfactor are; create_group is not".to_owned(),
                    |near| format!("did you mean `{near}`?"),
                );
                Err(Diagnostic::error("unsupported-primitive", Some(args.span), message).with_help(help))
            }
        }
    }

    /// `s.cache_read(tensor, scope, readers)`.
    fn cache_read(
        &mut self,
        schedule: ScheduleId,
        tensor: &Arg<'a>,
        scope: &Arg<'a>,
        (readers, readers_span): &Arg<'a>,
        span: Span,
    ) -> Eval<Value<'a>> {
        let source = tensor_of(tensor)?;
        self.te.schedule(schedule).at(span)?.stage(source).at(tensor.1)?;
        let scope = to_scope(scope)?;
        let readers = to_items(readers)
            .into_iter()
            .map(|reader| tensor_of(&(reader, *readers_span)))
            .collect::<Eval<Vec<_>>>()?;
        let cache = self.te.schedule(schedule).at(span)?.cache_read(source, scope, &readers).at(*readers_span)?;
        self.named.insert(cache.index);
        Ok(Value::Tensor(cache))
    }

    /// `s.cache_write(tensor, scope)`.
    fn cache_write(&mut self, schedule: ScheduleId, tensor: &Arg<'a>, scope: &Arg<'a>, span: Span) -> Eval<Value<'a>> {
        let base = tensor_of(tensor)?;
        let computes = self.te.schedule(schedule).at(span)?.stage(base).at(tensor.1)?.computes();
        let scope = to_scope(scope)?;
        // A tensor of the wrong kind is the fault of the argument, a stage that was scheduled before that of the call.
        let place = if computes { span } else { tensor.1 };
        let cache = self.te.schedule(schedule).at(span)?.cache_write(base, scope).at(place)?;
        self.named.insert(cache.index);
        Ok(Value::Tensor(cache))
    }
}

/// Returns the tensor that an argument holds.
fn tensor_of((value, span): &Arg<'_>) -> Eval<Tensor> {
    match value {
        Value::Tensor(tensor) | Value::Op(tensor) => Ok(*tensor),
        _ => Err(wrong_kind(*span, "a tensor", value)),
    }
}

/// The scope that an argument names.
pub(super) fn to_scope((value, span): &Arg<'_>) -> Eval<ir::Scope> {
    let text = to_str(value, *span)?;
    text.parse().map_err(|error: ir::buffer::ScopeError| {
        let names = ir::Scope::ALL.map(|scope| format!("'{scope}'")).join(", ");
        Diagnostic::error("scope", Some(*span), error.to_string()).with_help(format!("scopes are {names}"))
    })
}

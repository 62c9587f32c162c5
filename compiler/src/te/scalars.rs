//! Functions on scalars: `te.exp`, `tvm.tir.if_then_else`, `tvm.tir.const` and so on.
//!
//! The names of math functions and operators are those of the tables in `tilewright-ir`, with a few aliases that TVM has; what is
//! in no table is in [`Interp::scalar_function`].

use tilewright_ir::{self as ir, Diagnostic, Expr, SharedExpr, Span};

use super::args::{Arg, Args};
use super::arith;
use super::build;
use super::builtins::unsupported_path;
use super::eval::Interp;
use super::value::{Eval, Placed, Value, to_dtype, to_expr};

impl<'a> Interp<'a> {
    /// Functions on scalars: `te.exp`, `tvm.tir.if_then_else`, `tvm.tir.const` and so on.
    pub(super) fn scalar_function(&mut self, name: &str, path: &str, mut args: Args<'a>) -> Eval<Value<'a>> {
        let span = args.span;
        let alias = match name {
            "power" => "pow",
            "fabs" => "abs",
            "nearbyint" => "round",
            "indexdiv" => "floordiv",
            "indexmod" => "floormod",
            _ => name,
        };
        if let Some(function) = ir::MathFn::by_name(alias) {
            let mut values = Vec::new();
            for position in 0..function.info().1 {
                values.push(args.need(if position == 0 { "x" } else { "y" })?.0);
            }
            args.finish()?;
            let operands = match values.as_slice() {
                [x, y] => {
                    let (x, y) = arith::pair(x, y, span)?;
                    vec![x, y]
                }
                _ => values.iter().map(|value| to_expr(value, span)).collect::<Eval<_>>()?,
            };
            return self.symbolic(build::call(function, operands).at(span)?, span);
        }
        if let Some(op) = ir::BinaryOp::ALL.into_iter().find(|op| op.info().call == alias) {
            let ((a, _), (b, _)) = (args.need("a")?, args.need("b")?);
            args.finish()?;
            return self.symbolic(arith::apply_values(op, &a, &b, span)?, span);
        }
        match name {
            "if_then_else" | "Select" => {
                let (cond, (then, _), (other, _)) = (args.need("cond")?, args.need("t")?, args.need("f")?);
                args.finish()?;
                let chosen = self.if_then_else(cond, &then, &other, span)?;
                Ok(match chosen {
                    Value::Expr(Expr::IfThenElse(c, a, b)) if name == "Select" => Value::Expr(Expr::Select(c, a, b)),
                    chosen => chosen,
                })
            }
            "all" | "any" => {
                let op = if name == "all" { ir::BinaryOp::And } else { ir::BinaryOp::Or };
                let operands = args.rest();
                args.finish()?;
                let mut result = Value::Bool(name == "all");
                for (operand, _) in operands {
                    result = self.both(op, result, operand, span)?;
                }
                Ok(result)
            }
            "const" => {
                let ((value, value_span), dtype) = (args.need("value")?, args.take("dtype")?);
                args.finish()?;
                constant(&value, value_span, dtype)
            }
            "IntImm" | "FloatImm" => {
                let (dtype, (value, value_span)) = (args.need("dtype")?, args.need("value")?);
                args.finish()?;
                constant(&value, value_span, Some(dtype))
            }
            "Cast" | "cast" => {
                let ((dtype, dtype_span), (value, value_span)) = (args.need("dtype")?, args.need("value")?);
                args.finish()?;
                let ty = to_dtype(&dtype, dtype_span)?;
                self.symbolic(build::cast(to_expr(&value, value_span)?, ty), span)
            }
            "min_value" | "max_value" => {
                let (dtype, dtype_span) = args.need("dtype")?;
                args.finish()?;
                let ty = to_dtype(&dtype, dtype_span)?.scalar;
                let op = if name == "min_value" { ir::ReduceOp::Max } else { ir::ReduceOp::Min };
                // TVM's least float is the least finite one.
                if ty.is_float() {
                    let message = "the least and greatest value are known for integer types only";
                    return Err(Diagnostic::error("type", Some(span), message).with_help("write the number"));
                }
                Ok(Value::Expr(op.identity_expr(ty)))
            }
            "Not" => {
                let (value, value_span) = args.need("a")?;
                args.finish()?;
                arith::unary(tilewright_script::te::UnaryOp::Not, &value, value_span)
            }
            _ => Err(unsupported_path(path, span)),
        }
    }
}

/// `tvm.tir.const(value, dtype)`: exactly the value, in every lane.
fn constant<'a>(value: &Value<'a>, span: Span, dtype: Option<Arg<'a>>) -> Eval<Value<'a>> {
    let expr = to_expr(value, span)?;
    let Some((dtype, dtype_span)) = dtype else { return Ok(Value::Expr(expr)) };
    let ty = to_dtype(&dtype, dtype_span)?;
    let converted = match value {
        Value::Float(float) if ty.scalar.is_float() => Expr::float_of(*float, ty.scalar),
        _ => build::cast(expr, ty.with_lanes(1)),
    };
    if matches!(converted, Expr::Cast(..)) {
        let message = format!("{} is no value of the type {}", value.describe(), ty.scalar);
        return Err(Diagnostic::error("constant", Some(span), message));
    }
    let lanes = ty.lanes;
    Ok(Value::Expr(if ty.is_scalar() {
        converted
    } else {
        Expr::Broadcast { value: SharedExpr::new(converted), lanes }
    }))
}

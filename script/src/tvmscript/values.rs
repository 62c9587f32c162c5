//! Values that TVM writes as calls of their own, and that other expressions stand for.
//!
//! | written | read as |
//! |---|---|
//! | `T.Let(x * x, where={x: n + 1})`, `T.let(x, n + 1, x * x)` | `(n + 1) * (n + 1)` |
//! | `T.ceildiv(a, b)` | `(a + b - 1) // b` |
//! | `T.infinity("float32")`, `T.min_value("int8")`, `T.max_value("float16")` | a constant |
//! | `T.reinterpret("int32", x)`, `T.reinterpret(x, dtype="int32")` | the value of that type with the same bits; all NaNs have the bits of one |
//!
//! The least and the greatest float are finite, as in TVM.

use ruff_python_ast as ast;
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, DataType, Expr, MathFn, ScalarType, SharedExpr, TypeClass, Var};

use super::calls::round_literal;
use super::promote::Value;
use super::reader::{Binding, Reader, string};
use super::shuffle::may_trap;

/// The greatest number of nodes of a `T.Let` in which the value replaces the name. Each of them may name the one in it twice, so without a
/// limit values would double with each.
const MAX_NODES: usize = 4096;

impl<'a> Reader<'a> {
    /// Returns whether a call is a value with a name for a part of it, and not a binding for the statements that follow.
    pub(super) fn is_let_value(call: &ast::ExprCall) -> bool {
        call.arguments.find_keyword("where").is_some() || call.arguments.args.len() == 3
    }

    /// Reads `T.Let(body, where={x: value})` or, as releases before 0.12 print it, `T.let(x, value, body)`.
    pub(super) fn let_value(&mut self, call: &'a ast::ExprCall) -> Option<Expr> {
        let (name, value, body) = match (&call.arguments.args[..], call.arguments.find_keyword("where")) {
            ([ast::Expr::Name(name), value, body], None) => (name, value, body),
            ([body], Some(given)) => match &given.value {
                ast::Expr::Dict(dict) if dict.items.len() == 1 => match &dict.items[0] {
                    ast::DictItem { key: Some(ast::Expr::Name(name)), value } => (name, value, body),
                    _ => return self.no_let_value(call),
                },
                _ => return self.no_let_value(call),
            },
            _ => return self.no_let_value(call),
        };
        let read = self.value(value)?;
        // TVM declares the name, with its type, at the start of the function.
        let value = match self.lookup(&name.id) {
            Some(Binding::Value(Expr::Var(declared))) => self.coerce(read, declared.dtype(), value.range())?,
            Some(&Binding::Declared(ty)) => self.coerce(read, ty, value.range())?,
            _ => round_literal(read),
        };
        let var = Var::new(name.id.as_str(), value.dtype());
        self.bind(name.id.as_str(), Binding::Value(Expr::from(&var)));
        let body = self.expr(body);
        self.names.pop();
        self.with_value(&var, value, &body?, call.range())
    }

    fn no_let_value(&mut self, call: &'a ast::ExprCall) -> Option<Expr> {
        let help = "write `T.Let(x * x, where={x: value})`, or bind it by a statement, `x = value`";
        self.error("let", call.range(), "a value with a name for a part of it has one name and its value", help)
    }

    /// Puts a value in place of a name. TVM evaluates the value once, whatever the body is: here it is evaluated as often as the body
    /// evaluates the name, which makes no difference if that is at least once, or if the value cannot trap.
    fn with_value(&mut self, var: &Var, value: Expr, body: &Expr, range: TextRange) -> Option<Expr> {
        let help = format!("bind it by a statement before: `{var} = {value}`");
        if may_trap(&value) && !is_evaluated(var, body) {
            let message = format!("`{var}` is not used in every case, and its value reads memory or divides");
            return self.error("let", range, message, help);
        }
        let count = |expr: &Expr| {
            let (mut nodes, mut uses) = (0_usize, 0_usize);
            expr.walk(&mut |part| {
                nodes += 1;
                uses += usize::from(matches!(part, Expr::Var(used) if used == var));
            });
            (nodes, uses)
        };
        let ((own, uses), (size, _)) = (count(body), count(&value));
        if size.saturating_mul(uses).saturating_add(own) > MAX_NODES {
            let message = format!("the value of `{var}` in all places that name it is too long");
            return self.error("let", range, message, help);
        }
        Some(Substitution::new([var], [value]).apply(body))
    }

    /// Reads `T.ceildiv(a, b)`, the quotient rounded up.
    pub(super) fn ceildiv(&mut self, call: &'a ast::ExprCall) -> Option<Expr> {
        let args = self.bind_args(call, "ceildiv", &["lhs", "rhs"], 2)?;
        let (lhs, rhs, range) = (self.value(args.get(0)?), self.value(args.get(1)?), call.range());
        let is_literal = lhs.as_ref().zip(rhs.as_ref()).is_some_and(|(lhs, rhs)| lhs.is_literal && rhs.is_literal);
        let (lhs, rhs) = self.unify(lhs?, rhs?, range)?;
        if !lhs.dtype().scalar.is_integer() {
            let message = format!("`ceildiv` is not defined for operands of the type {}", lhs.dtype());
            return self.error("type", range, message, "integers are divided: `T.ceil(x / y)` rounds floats up");
        }
        let constants = lhs.as_const_int().zip(rhs.as_const_int()).filter(|(_, by)| is_literal && *by > 0);
        if let Some((value, by)) = constants {
            let quotient = value.div_euclid(by) + i128::from(value.rem_euclid(by) != 0);
            return Expr::int_of(quotient, lhs.dtype().scalar);
        }
        let one = Value { expr: Expr::int(1), is_literal: true };
        let sum = self.binary(BinaryOp::Add, lhs.into(), rhs.clone().into(), range)?;
        let sum = self.binary(BinaryOp::Sub, sum.into(), one, range)?;
        self.binary(BinaryOp::FloorDiv, sum.into(), rhs.into(), range)
    }

    /// Reads `T.infinity("float32")`, `T.min_value("int8")` or `T.max_value("int8")`.
    pub(super) fn limit(&mut self, call: &'a ast::ExprCall, name: &str) -> Option<Expr> {
        let args = self.bind_args(call, name, &["dtype"], 1)?;
        let ty = self.dtype(args.get(0)?)?;
        let found = if ty.is_scalar() { limit_of(name, ty.scalar) } else { None };
        found.or_else(|| {
            let help = if name == "infinity" { "such as \"float32\"" } else { "such as \"float32\" or \"int8\"" };
            self.error("type", call.range(), format!("`T.{name}` has no value of the type {ty}"), help)
        })
    }

    /// Reads `T.reinterpret("int32", x)` or `T.reinterpret(x, dtype="int32")`.
    pub(super) fn reinterpret(&mut self, call: &'a ast::ExprCall) -> Option<Expr> {
        let states_type_first = call.arguments.args.first().is_some_and(|first| string(first).is_some());
        let (params, at) = if states_type_first { (["dtype", "value"], 1) } else { (["value", "dtype"], 0) };
        let args = self.bind_args(call, "reinterpret", &params, 2)?;
        let (ty, value) = (self.dtype(args.get(1 - at)?), self.expr(args.get(at)?));
        let (ty, value) = (ty?, value?);
        let from = value.dtype();
        let message = if ty.lanes != from.lanes || ty.scalar.bits() != from.scalar.bits() {
            format!("a value of the type {from} has not as many bits as one of {ty}")
        } else {
            match same_bits(value, ty) {
                Some(found) => return Some(found),
                None => format!("a value of the type {from} is not taken for one of {ty} here"),
            }
        };
        let help = "integers, `float32` and `float64` are taken for others of the same size; a conversion is `T.cast(x, \"...\")`";
        self.error("type", call.range(), message, help)
    }
}

/// Returns whether evaluating an expression evaluates a variable in it, whatever its value. The second operand of `and` and `or`, and the
/// arms of a choice, may be left out.
fn is_evaluated(var: &Var, expr: &Expr) -> bool {
    match expr {
        Expr::Var(used) => used == var,
        Expr::IfThenElse(cond, a, b) | Expr::Select(cond, a, b) => {
            is_evaluated(var, cond) || is_evaluated(var, a) && is_evaluated(var, b)
        }
        Expr::Binary(BinaryOp::And | BinaryOp::Or, first, _) => is_evaluated(var, first),
        _ => expr.children().any(|child| is_evaluated(var, child)),
    }
}

/// Returns the greatest finite value of a type of floats.
pub(super) fn greatest_float(ty: ScalarType) -> Option<f64> {
    match ty {
        ScalarType::Float16 => Some(65504.0),
        ScalarType::BFloat16 => Some(f64::from(f32::from_bits(0x7f7f_0000))),
        ScalarType::Float32 => Some(f64::from(f32::MAX)),
        ScalarType::Float64 => Some(f64::MAX),
        ScalarType::Bool
        | ScalarType::Int8
        | ScalarType::Int16
        | ScalarType::Int32
        | ScalarType::Int64
        | ScalarType::UInt8
        | ScalarType::UInt16
        | ScalarType::UInt32
        | ScalarType::UInt64
        | ScalarType::Handle => None,
    }
}

/// Returns the infinity, the least or the greatest value of a type.
fn limit_of(name: &str, ty: ScalarType) -> Option<Expr> {
    let Some(greatest) = greatest_float(ty) else {
        let (low, high) = ty.integer_range()?;
        let limit = if name == "min_value" { low } else { high };
        return if name == "infinity" { None } else { Expr::int_of(limit, ty) };
    };
    let value = match name {
        "infinity" => f64::INFINITY,
        "min_value" => -greatest,
        _ => greatest,
    };
    Some(Expr::Float { value, ty })
}

/// Returns a value with the same bits in a type of the same size. `None` for floats of 16 bits and for what is no number.
fn same_bits(value: Expr, to: DataType) -> Option<Expr> {
    let from = value.dtype();
    if from == to {
        return Some(value);
    }
    let signed = if to.scalar.bits() == 64 { ScalarType::Int64 } else { ScalarType::Int32 };
    let signed = DataType { scalar: signed, lanes: to.lanes };
    let is_whole = |class: TypeClass| matches!(class, TypeClass::Int | TypeClass::UInt);
    // Between integers a conversion keeps the bits.
    let cast = |value: Expr, to: DataType| {
        if value.dtype() == to { value } else { Expr::Cast(to, SharedExpr::new(value)) }
    };
    let call = |function: MathFn, value: Expr| {
        function.result_type(&[value.dtype()]).map(|_| Expr::Call(function, vec![value].into()))
    };
    match (from.scalar.class(), to.scalar.class()) {
        (a, b) if is_whole(a) && is_whole(b) => Some(cast(value, to)),
        (TypeClass::Float, b) if is_whole(b) => call(MathFn::BitsOfFloat, value).map(|bits| cast(bits, to)),
        (a, TypeClass::Float) if is_whole(a) => {
            call(MathFn::FloatOfBits, cast(value, signed)).filter(|float| float.dtype() == to)
        }
        _ => None,
    }
}

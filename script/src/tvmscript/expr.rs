//! Expressions: operators, comparisons, conditionals and buffer accesses.
//!
//! | notation | expression |
//! |---|---|
//! | `+ - * / // % << >> & \| ^` | the operator of the same meaning; `//` and `%` round down, `/` takes floats only |
//! | `-x`, `+x`, `~x`, `not x` | a unary operator |
//! | `a < b <= c` | `a < b and b <= c` |
//! | `x if c else y` | evaluates only the chosen value |
//! | `A[i, j]` | a load |
//! | `A[i, 4 * j:4 * j + 4]` | a vector load; the slice is a ramp |
//! | `A.shape[0]`, `A.strides[0]`, `A.elem_offset` | what the declaration of the buffer states, see `views` |
//! | `indices[-1]` | an index of `lambda *indices`, in index maps |
//!
//! Operands of different types are converted as the module `promote` describes.

use ruff_python_ast as ast;
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::{BinaryOp, Buffer, Expr, ScalarType, SharedExpr, UnaryOp};

use super::promote::Value;
use super::reader::{Binding, Reader, sequence};
use super::views::AxisProperty;

/// Returns the operator for one of Python's. `None` for `@` and `**`, which the language does not have.
pub(super) fn operator(op: ast::Operator) -> Option<BinaryOp> {
    Some(match op {
        ast::Operator::Add => BinaryOp::Add,
        ast::Operator::Sub => BinaryOp::Sub,
        ast::Operator::Mult => BinaryOp::Mul,
        ast::Operator::Div => BinaryOp::Div,
        ast::Operator::Mod => BinaryOp::FloorMod,
        ast::Operator::LShift => BinaryOp::Shl,
        ast::Operator::RShift => BinaryOp::Shr,
        ast::Operator::BitOr => BinaryOp::BitOr,
        ast::Operator::BitXor => BinaryOp::BitXor,
        ast::Operator::BitAnd => BinaryOp::BitAnd,
        ast::Operator::FloorDiv => BinaryOp::FloorDiv,
        ast::Operator::MatMult | ast::Operator::Pow => return None,
    })
}

/// Returns the operator for one of Python's comparisons. `None` for `is` and `in`.
fn comparison(op: ast::CmpOp) -> Option<BinaryOp> {
    Some(match op {
        ast::CmpOp::Eq => BinaryOp::Eq,
        ast::CmpOp::NotEq => BinaryOp::Ne,
        ast::CmpOp::Lt => BinaryOp::Lt,
        ast::CmpOp::LtE => BinaryOp::Le,
        ast::CmpOp::Gt => BinaryOp::Gt,
        ast::CmpOp::GtE => BinaryOp::Ge,
        ast::CmpOp::Is | ast::CmpOp::IsNot | ast::CmpOp::In | ast::CmpOp::NotIn => return None,
    })
}

impl<'a> Reader<'a> {
    /// Reads an expression in its own type. The type of a literal is `int32` or `float32`, or `int64` if it does not
    /// fit into `int32`.
    pub(crate) fn expr(&mut self, expr: &'a ast::Expr) -> Option<Expr> {
        self.value(expr).map(super::calls::round_literal)
    }

    /// Reads expressions in order. All of them are read even if one has an error.
    pub(crate) fn exprs(&mut self, exprs: &'a [ast::Expr]) -> Option<Vec<Expr>> {
        let read: Vec<_> = exprs.iter().map(|expr| self.expr(expr)).collect();
        read.into_iter().collect()
    }

    /// Reads an expression, and keeps track of whether it is a literal, whose type follows from its context.
    pub(super) fn value(&mut self, expr: &'a ast::Expr) -> Option<Value> {
        let range = expr.range();
        match expr {
            ast::Expr::NumberLiteral(number) => self.number(&number.value, range),
            ast::Expr::BooleanLiteral(literal) => Some(Expr::bool(literal.value).into()),
            ast::Expr::Name(name) => match self.name(name)? {
                Binding::Value(value) => Some(value.into()),
                Binding::Buffer(_)
                | Binding::Pointer(_)
                | Binding::Unallocated(_)
                | Binding::Handle(_)
                | Binding::Thread(_)
                | Binding::Indices(_)
                | Binding::Window(_)
                | Binding::Declared(_)
                | Binding::Failed => self.error(
                    "not-a-value",
                    range,
                    format!("`{}` is not a number", name.id),
                    "an element is read by indices: `A[i, j]`",
                ),
            },
            // Operators give their literal operands a type, so the result is no literal; a literal with a sign is one.
            ast::Expr::BinOp(op) => self.bin_op(op).map(Value::from),
            ast::Expr::UnaryOp(op) => self.unary_op(op),
            ast::Expr::BoolOp(op) => self.bool_op(op).map(Value::from),
            ast::Expr::Compare(compare) => self.compare(compare).map(Value::from),
            ast::Expr::If(choice) => {
                self.conditional(&choice.test, &choice.body, &choice.orelse, range, Expr::IfThenElse).map(Value::from)
            }
            ast::Expr::Call(call) => self.call(call),
            ast::Expr::Subscript(subscript) => self.subscript(subscript).map(Value::from),
            ast::Expr::Attribute(attribute) => self.buffer_property(attribute).map(Value::from),
            _ => self.error(
                "unsupported",
                range,
                "this kind of Python expression is not part of TVMScript",
                "expressions are arithmetic, comparisons, `and or not`, `A[i]` and calls such as `T.max(x, y)`",
            ),
        }
    }

    /// Reads a number literal.
    pub(super) fn number(&mut self, number: &ast::Number, range: TextRange) -> Option<Value> {
        let expr = match number {
            ast::Number::Int(int) => {
                if let Some(value) = int.as_i64() {
                    Expr::int(value)
                } else {
                    let help = if self.free_names {
                        "extents and indices are at most 9223372036854775807"
                    } else {
                        "write its type around it: `T.uint64(18446744073709551615)`"
                    };
                    return self.error("constant", range, format!("{int} does not fit int64"), help);
                }
            }
            ast::Number::Float(value) => Expr::Float { value: *value, ty: ScalarType::Float64 },
            ast::Number::Complex { .. } => {
                return self.error("constant", range, "complex numbers have no type here", "write a real number");
            }
        };
        let expr = if let Expr::Float { value, .. } = expr { literal_float(value) } else { expr };
        Some(Value { expr, is_literal: true })
    }

    /// Reads an arithmetic or bitwise operator.
    fn bin_op(&mut self, op: &'a ast::ExprBinOp) -> Option<Expr> {
        let (lhs, rhs) = (self.value(&op.left), self.value(&op.right));
        let Some(operator) = operator(op.op) else {
            let message = format!("the operator `{}` is not part of TVMScript", op.op);
            let is_integer =
                |side: &Option<Value>| side.as_ref().is_some_and(|side| side.expr.dtype().scalar.is_integer());
            let help = match op.op {
                ast::Operator::Pow if is_integer(&lhs) => "a power of an integer is a product: `x * x`",
                ast::Operator::Pow => "a power is `T.pow(x, y)`",
                _ => "operators are `+ - * / // % << >> & | ^`",
            };
            return self.error("unsupported", op.range(), message, help);
        };
        self.binary(operator, lhs?, rhs?, op.range())
    }

    /// Reads a unary operator. The minus of a literal is a negative literal, whose type follows from its context too.
    fn unary_op(&mut self, op: &'a ast::ExprUnaryOp) -> Option<Value> {
        let value = self.value(&op.operand)?;
        let operator = match op.op {
            ast::UnaryOp::UAdd => return Some(value),
            ast::UnaryOp::USub => UnaryOp::Neg,
            ast::UnaryOp::Not => UnaryOp::Not,
            ast::UnaryOp::Invert => UnaryOp::BitNot,
        };
        if operator == UnaryOp::Neg && matches!(&*op.operand, ast::Expr::NumberLiteral(_)) {
            return Some(match value.expr {
                Expr::Int { value, .. } => Value {
                    expr: i64::try_from(-value).map_or(Expr::Int { value: -value, ty: ScalarType::Int64 }, Expr::int),
                    is_literal: true,
                },
                Expr::Float { value, ty } => Value { expr: Expr::Float { value: -value, ty }, is_literal: true },
                other => Expr::unary(operator, other).into(),
            });
        }
        let ty = value.expr.dtype();
        if operator.result_type(ty).is_none() {
            let message = format!("`{}` is not defined for the type {ty}", operator.symbol().0.trim());
            return self.error("type", op.range(), message, "`not` takes a bool, `~` an integer, `-` a number");
        }
        Some(Expr::unary(operator, value.expr).into())
    }

    /// Reads `a and b and c`, combined from the left.
    fn bool_op(&mut self, op: &'a ast::ExprBoolOp) -> Option<Expr> {
        let operator = if op.op == ast::BoolOp::And { BinaryOp::And } else { BinaryOp::Or };
        let values: Vec<_> = op.values.iter().map(|value| self.value(value)).collect();
        let mut values = values.into_iter().collect::<Option<Vec<_>>>()?.into_iter();
        let first = values.next()?;
        let joined = values.try_fold(first, |lhs, rhs| self.binary(operator, lhs, rhs, op.range()).map(Value::from));
        joined.map(|value| value.expr)
    }

    /// Reads a comparison. `0 <= i < n` is read as `0 <= i and i < n`.
    fn compare(&mut self, compare: &'a ast::ExprCompare) -> Option<Expr> {
        let mut lhs = self.value(&compare.left);
        let mut joined: Option<Expr> = None;
        for (op, right) in compare.ops.iter().zip(&compare.comparators) {
            let rhs = self.value(right);
            let Some(op) = comparison(*op) else {
                let help = "comparisons are == != < <= > >=";
                return self.error("unsupported", compare.range(), format!("`{op}` is not supported here"), help);
            };
            let next = self.binary(op, lhs?, rhs.clone()?, compare.range())?;
            joined = Some(joined.map_or(next.clone(), |before| before.and(next)));
            lhs = rhs;
        }
        joined
    }

    /// Reads the condition and the two values of a choice, converts the values to a common type, and combines them by
    /// `make`.
    pub(super) fn conditional(
        &mut self,
        test: &'a ast::Expr,
        body: &'a ast::Expr,
        orelse: &'a ast::Expr,
        range: TextRange,
        make: impl FnOnce(SharedExpr, SharedExpr, SharedExpr) -> Expr,
    ) -> Option<Expr> {
        let (test, body, orelse) = (self.condition(test), self.value(body), self.value(orelse));
        let (body, orelse) = self.unify(body?, orelse?, range)?;
        Some(make(SharedExpr::new(test?), SharedExpr::new(body), SharedExpr::new(orelse)))
    }

    /// Reads an expression of type `bool`.
    pub(super) fn condition(&mut self, test: &'a ast::Expr) -> Option<Expr> {
        let cond = self.expr(test)?;
        if cond.dtype().scalar == ScalarType::Bool {
            return Some(cond);
        }
        let message = format!("the condition `{cond}` has the type {}, not bool", cond.dtype());
        self.error("type", test.range(), message, "compare it: `x != 0`")
    }

    /// Reads the name of a buffer.
    pub(super) fn buffer(&mut self, expr: &'a ast::Expr) -> Option<Buffer> {
        let ast::Expr::Name(name) = expr else {
            return self.error("not-a-buffer", expr.range(), "expected the name of a buffer", "such as `A` in `A[i]`");
        };
        if self.lookup(&name.id).is_none() && self.free_names {
            let message = format!("`{}` is not a buffer here", name.id);
            return self.error(
                "not-a-buffer",
                expr.range(),
                message,
                "index maps and conditions compute with integers, and read no memory",
            );
        }
        match self.name(name)? {
            Binding::Buffer(buffer) | Binding::Unallocated(buffer) | Binding::Pointer(buffer) => Some(buffer),
            Binding::Window(_) => self.error(
                "not-a-buffer",
                expr.range(),
                format!("`{}` is a part of a buffer", name.id),
                "it has elements, and no memory, strides or offset of its own",
            ),
            Binding::Value(_)
            | Binding::Handle(_)
            | Binding::Thread(_)
            | Binding::Indices(_)
            | Binding::Declared(_)
            | Binding::Failed => {
                let message = format!("`{}` is not a buffer", name.id);
                self.error("not-a-buffer", expr.range(), message, "only buffers have elements")
            }
        }
    }

    /// Reads `A[i, j]`, or `indices[-1]` in `lambda *indices`.
    fn subscript(&mut self, subscript: &'a ast::ExprSubscript) -> Option<Expr> {
        if let ast::Expr::Name(name) = &*subscript.value
            && let Some(Binding::Indices(indices)) = self.lookup(&name.id).cloned()
        {
            return self.index_at(&indices, &subscript.slice);
        }
        if let ast::Expr::Attribute(attribute) = &*subscript.value
            && let Some(property) = AxisProperty::named(attribute.attr.as_str())
        {
            return self.axis_property(attribute, property, &subscript.slice);
        }
        let (buffer, indices) = self.access(subscript)?;
        Some(Expr::load(&buffer, indices))
    }

    /// Returns the index at a constant position of `*indices`. As in Python, a negative position counts from the end.
    pub(super) fn index_at(&mut self, indices: &[Expr], position: &'a ast::Expr) -> Option<Expr> {
        let at = self.expr(position)?.as_const_int();
        let rank = i128::try_from(indices.len()).ok()?;
        let found = at.map(|at| if at < 0 { at + rank } else { at }).and_then(|at| usize::try_from(at).ok());
        match found.and_then(|at| indices.get(at)) {
            Some(index) => Some(index.clone()),
            None => self.error(
                "index",
                position.range(),
                format!("the position is outside the {rank} indices"),
                "positions are constants, counted from 0, or from the end below 0",
            ),
        }
    }

    /// Reads the indices of an access. A slice is a ramp.
    pub(super) fn indices(&mut self, slice: &'a ast::Expr) -> Option<Vec<Expr>> {
        let parts = if let ast::Expr::Tuple(_) = slice { sequence(slice)? } else { std::slice::from_ref(slice) };
        let read: Vec<_> = parts
            .iter()
            .map(|part| if let ast::Expr::Slice(slice) = part { self.slice(slice) } else { self.expr(part) })
            .collect();
        read.into_iter().collect()
    }

    /// Reads `A[x:x + 4]` or `A[0:8:2]` as a ramp. The number of lanes must follow from the text of the two ends: both are
    /// constants, or the end is the start plus a constant.
    fn slice(&mut self, slice: &'a ast::ExprSlice) -> Option<Expr> {
        let unbounded = "write both ends, a constant distance apart: `A[4 * i:4 * i + 4]`, or `T.ramp(4 * i, 1, 4)`";
        let (Some(lower), Some(upper)) = (&slice.lower, &slice.upper) else {
            return self.error("slice", slice.range(), "a slice needs both ends", unbounded);
        };
        let step = slice.step.as_ref().map_or(Some(Expr::int(1)), |step| self.expr(step));
        let (lower, upper) = (self.value(lower), self.value(upper));
        let (base, end) = self.unify(lower?, upper?, slice.range())?;
        let step = self.coerce(Value { expr: step?, is_literal: true }, base.dtype(), slice.range())?;
        let length = match (&base, &end) {
            (Expr::Int { value: a, .. }, Expr::Int { value: b, .. }) => b.checked_sub(*a),
            (_, Expr::Binary(BinaryOp::Add, start, length)) if **start == base => length.as_const_int(),
            _ => None,
        };
        let stride = step.as_const_int().filter(|stride| *stride > 0);
        let lanes = length.zip(stride).map(|(length, stride)| (length + stride - 1) / stride);
        match lanes.and_then(|lanes| u16::try_from(lanes).ok()).filter(|lanes| *lanes > 0) {
            Some(1) => Some(base),
            Some(lanes) => Some(Expr::Ramp { base: SharedExpr::new(base), stride: SharedExpr::new(step), lanes }),
            None => self.error("slice", slice.range(), "the slice has no constant number of elements", unbounded),
        }
    }
}

/// Creates a float literal. Its type is `float32` until the context states another one, so all digits are kept.
fn literal_float(value: f64) -> Expr {
    Expr::Float { value, ty: ScalarType::Float32 }
}

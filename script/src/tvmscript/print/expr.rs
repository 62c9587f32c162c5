//! Printing of expressions, index maps and attribute values.

use tilewright_ir::op::{ATOM, TypeRule};
use tilewright_ir::sabotage;
use tilewright_ir::{AttrValue, BinaryOp, Expr, IndexMap, ScalarType, UnaryOp};

use super::Printer;
use crate::tvmscript::values::greatest_float;

/// Returns a Python string literal.
pub(super) fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => quoted.extend(format!("\\U{:08x}", u32::from(c)).chars()),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns a float constant with its type. The digits are the shortest that round to the value, and for the greatest and the least
/// value of a type those that are not beyond it.
fn float(value: f64, ty: ScalarType) -> String {
    if value.is_nan() {
        return format!("T.{ty}(\"nan\")");
    }
    if value.is_infinite() {
        return format!("T.{ty}(\"{}\")", if value > 0.0 { "inf" } else { "-inf" });
    }
    // TVM reads a literal as a float64 and compares it with the greatest value of the type. The shortest digits of that
    // value as a float32 may be beyond it, its digits as a float64 never are.
    let is_wide = ty == ScalarType::Float64 || greatest_float(ty) == Some(value.abs());
    #[expect(clippy::cast_possible_truncation, reason = "all types but float64 are exact in float32")]
    let digits = if is_wide { format!("{value:?}") } else { format!("{:?}", value as f32) };
    if sabotage::on("printer-rounds-floats") {
        return format!("T.{ty}({value:.6e})");
    }
    format!("T.{ty}({digits})")
}

/// Returns an integer constant. `int32`, the type of the reader's literals, is left out.
fn int(value: i128, ty: ScalarType) -> String {
    match ty {
        ScalarType::Bool => format!("T.bool({})", if value == 0 { "False" } else { "True" }),
        ScalarType::Int32 => value.to_string(),
        _ => format!("T.{ty}({value})"),
    }
}

impl Printer {
    /// Returns the text of an expression.
    pub(super) fn expr(&mut self, expr: &Expr) -> String {
        self.inner(expr, 0)
    }

    /// Returns the texts of expressions, separated by commas.
    pub(super) fn exprs(&mut self, exprs: &[Expr]) -> String {
        let printed: Vec<_> = exprs.iter().map(|expr| self.expr(expr)).collect();
        printed.join(", ")
    }

    /// Returns the text of an expression, in parentheses if it binds less tightly than an operator of precedence `outer`.
    fn inner(&mut self, expr: &Expr, outer: u8) -> String {
        let (text, precedence) = match expr {
            Expr::Int { value, ty } => (int(*value, *ty), ATOM),
            Expr::Float { value, ty } => (float(*value, *ty), ATOM),
            Expr::Var(var) => (self.names.var(var), ATOM),
            Expr::Binary(op, lhs, rhs) => self.binary(*op, lhs, rhs),
            Expr::Unary(op, operand) => self.unary(*op, operand),
            Expr::Call(function, args) if function.is_reinterpretation() => {
                (format!("T.reinterpret(\"{}\", {})", expr.dtype(), self.exprs(args)), ATOM)
            }
            Expr::Call(function, args) => (format!("T.{}({})", function.info().0, self.exprs(args)), ATOM),
            Expr::Select(c, a, b) => (self.call("Select", &[c, a, b]), ATOM),
            Expr::IfThenElse(c, a, b) => (self.call("if_then_else", &[c, a, b]), ATOM),
            Expr::Cast(ty, value) => (format!("T.Cast(\"{ty}\", {})", self.expr(value)), ATOM),
            Expr::Ramp { base, stride, lanes } => {
                (format!("T.Ramp({}, {}, {lanes})", self.expr(base), self.expr(stride)), ATOM)
            }
            Expr::Broadcast { value, lanes } => (format!("T.Broadcast({}, {lanes})", self.expr(value)), ATOM),
            Expr::Load { buffer, indices } => {
                let texel = self.texture_load_call(buffer, indices);
                (texel.unwrap_or_else(|| self.access(buffer, indices)), ATOM)
            }
        };
        let more = precedence < ATOM && sabotage::on("printer-more-parentheses");
        if precedence < outer || more { format!("({text})") } else { text }
    }

    /// Returns `T.name(args)`.
    fn call(&mut self, name: &str, args: &[&Expr]) -> String {
        let args: Vec<_> = args.iter().map(|arg| self.expr(arg)).collect();
        format!("T.{name}({})", args.join(", "))
    }

    /// Returns `A[i, j]`; `A[()]` for a buffer without axes.
    pub(super) fn access(&mut self, buffer: &tilewright_ir::Buffer, indices: &[Expr]) -> String {
        let indices = if indices.is_empty() { "()".to_owned() } else { self.exprs(indices) };
        format!("{}[{indices}]", self.names.buffer(buffer))
    }

    /// Returns the text of a binary operator, and its precedence.
    fn binary(&mut self, op: BinaryOp, lhs: &Expr, rhs: &Expr) -> (String, u8) {
        let info = op.info();
        let Some(symbol) = info.symbol else { return (self.call(info.call, &[lhs, rhs]), ATOM) };
        // Python chains comparisons, so a comparison as an operand needs parentheses on either side.
        let left = self.inner(lhs, info.precedence + u8::from(info.rule == TypeRule::Comparison));
        let right = self.inner(rhs, info.precedence + u8::from(!sabotage::on("printer-right-operand")));
        (format!("{left} {symbol} {right}"), info.precedence)
    }

    /// Returns the text of a unary operator, and its precedence.
    ///
    /// The minus of a constant is printed as `-T.int32(3)`, because `-3` is read as a negative constant.
    fn unary(&mut self, op: UnaryOp, operand: &Expr) -> (String, u8) {
        let (symbol, precedence) = op.symbol();
        let operand = match operand {
            Expr::Int { value, ty: ScalarType::Int32 }
                if op == UnaryOp::Neg && !sabotage::on("printer-negated-constant") =>
            {
                format!("T.int32({value})")
            }
            operand => self.inner(operand, precedence),
        };
        (format!("{symbol}{operand}"), precedence)
    }

    /// Returns the lambda of an index map.
    pub(super) fn index_map(&mut self, map: &IndexMap) -> String {
        let vars: Vec<_> = map.vars().iter().map(|var| self.names.bind(var)).collect();
        let mut outputs = Vec::new();
        for (position, output) in map.outputs().iter().enumerate() {
            let late = usize::from(sabotage::on("printer-moves-separator"));
            if position >= late && map.axis_separators().positions().contains(&(position - late)) {
                outputs.push("T.AXIS_SEPARATOR".to_owned());
            }
            outputs.push(self.expr(output));
        }
        for _ in map.vars() {
            self.names.unbind();
        }
        let space = if vars.is_empty() { "" } else { " " };
        format!("lambda{space}{}: [{}]", vars.join(", "), outputs.join(", "))
    }

    /// Returns the text of an attribute value.
    pub(super) fn attr(&mut self, value: &AttrValue) -> String {
        match value {
            AttrValue::Bool(value) => format!("T.bool({})", if *value { "True" } else { "False" }),
            AttrValue::Int(value) => value.to_string(),
            AttrValue::Float(value) if value.is_finite() => format!("{value:?}"),
            AttrValue::Float(value) => format!("float(\"{value}\")"),
            AttrValue::Str(text) => quote(text),
            AttrValue::Var(var) => match self.names.data_owner(var) {
                Some(buffer) => format!("{buffer}.data"),
                None => self.names.var(var),
            },
            AttrValue::Expr(Expr::Int { value, ty: ScalarType::Int32 }) => format!("T.int32({value})"),
            AttrValue::Expr(expr) => self.expr(expr),
            AttrValue::List(values) => {
                let values: Vec<_> = values.iter().map(|value| self.attr(value)).collect();
                format!("[{}]", values.join(", "))
            }
            AttrValue::Dict(entries) => self.dict(entries),
            AttrValue::Block(block) => quote(&block.name),
        }
    }

    /// Returns the text of a dictionary.
    pub(super) fn dict(&mut self, entries: &[(String, AttrValue)]) -> String {
        let entries: Vec<_> =
            entries.iter().map(|(key, value)| format!("{}: {}", quote(key), self.attr(value))).collect();
        format!("{{{}}}", entries.join(", "))
    }
}

//! Builds the values of a recipe as expressions of the type that the context needs.

use tilewright_ir::{BinaryOp, Buffer, DataType, Expr, MathFn, ScalarType, SharedExpr, TypeClass, UnaryOp, Var};

use super::index::{Lanes, Nest};
use super::tensors::Made;
use crate::program::recipe::{Binary, Compare, Read, Test, Unary, Value};

/// The builder of values in one loop nest.
pub(super) struct Values<'a> {
    /// The loop nest.
    pub(super) nest: &'a Nest,
    /// Number of lanes of the target's elements.
    pub(super) element_lanes: u16,
    /// The tensors that may be read.
    pub(super) tensors: &'a [Made],
    /// The scalar parameters.
    pub(super) scalars: &'a [Var],
    /// The views to declare.
    pub(super) views: &'a mut Vec<Buffer>,
}

/// A constant of a type: a quarter of the value for floats, its last bit for booleans, its absolute
/// value for unsigned integers.
pub(super) fn constant(value: i8, ty: ScalarType) -> Expr {
    if ty.is_float() {
        return Expr::float_of(f64::from(value) / 4.0, ty);
    }
    let value = match ty.class() {
        TypeClass::Bool => i128::from(value) & 1,
        TypeClass::UInt => i128::from(value.unsigned_abs()),
        TypeClass::Int | TypeClass::Float | TypeClass::Handle => value.into(),
    };
    Expr::int_of(value, ty).unwrap_or(Expr::Int { value: 0, ty })
}

/// A shared operand.
fn boxed(expr: Expr) -> SharedExpr {
    SharedExpr::new(expr)
}

impl Values<'_> {
    /// Number of lanes that are stored.
    fn lanes(&self) -> u16 {
        match self.nest.lanes {
            Lanes::Vector(_, lanes) => lanes,
            Lanes::None | Lanes::Texel(_) => self.element_lanes,
        }
    }

    /// Broadcasts a scalar to the number of lanes that are stored.
    pub(super) fn wide(&self, value: Expr) -> Expr {
        if self.lanes() > 1 && value.dtype().is_scalar() {
            return Expr::Broadcast { value: boxed(value), lanes: self.lanes() };
        }
        value
    }

    /// Broadcasts one of two values if only the other one has lanes.
    fn alike(&self, a: Expr, b: Expr) -> (Expr, Expr) {
        if a.dtype().lanes == b.dtype().lanes { (a, b) } else { (self.wide(a), self.wide(b)) }
    }

    /// A binary operation on values with the same number of lanes.
    fn op(&self, op: BinaryOp, a: Expr, b: Expr) -> Expr {
        let (a, b) = self.alike(a, b);
        Expr::binary(op, a, b)
    }

    /// Converts a value to a scalar type, lane by lane.
    fn cast(value: Expr, ty: ScalarType) -> Expr {
        let from = value.dtype();
        if from.scalar == ty { value } else { Expr::Cast(DataType { scalar: ty, lanes: from.lanes }, boxed(value)) }
    }

    /// The expression of a value, as a scalar or with the number of lanes that are stored.
    pub(super) fn value(&mut self, value: &Value, ty: ScalarType) -> Expr {
        match value {
            Value::Constant(value) => constant(*value, ty),
            Value::Index(axis) => self.index(*axis, ty),
            Value::Scalar(which) => match self.scalars.get(which % self.scalars.len().max(1)) {
                Some(var) => Self::cast(Expr::from(var), ty),
                None => constant(3, ty),
            },
            Value::Read(read) => self.read(read, ty),
            Value::Unary(op, a) => {
                let a = self.value(a, ty);
                unary(*op, a, ty)
            }
            Value::Binary(op, a, b) => self.binary(*op, a, b, ty),
            Value::Compare(op, parts) => {
                let [a, b, yes, no] = &**parts;
                // Booleans have no order, so the operands of a boolean comparison are integers.
                let of = if ty == ScalarType::Bool { ScalarType::Int32 } else { ty };
                let (a, b) = (self.value(a, of), self.value(b, of));
                let cond = self.op(comparison(*op), a, b);
                let (yes, no) = (self.value(yes, ty), self.value(no, ty));
                self.select(cond, yes, no, false)
            }
            Value::Choose(test, lazily, values) => {
                let cond = self.test(test);
                let [yes, no] = &**values;
                let (yes, no) = (self.value(yes, ty), self.value(no, ty));
                self.select(cond, yes, no, *lazily)
            }
            Value::Convert(from, value) => {
                let from = from.scalar;
                Self::cast(self.value(value, from), ty)
            }
        }
    }

    /// A choice between two values. The condition is a scalar or has as many lanes as they.
    /// `lazily` evaluates only the chosen value.
    pub(super) fn select(&self, cond: Expr, yes: Expr, no: Expr, lazily: bool) -> Expr {
        let (mut yes, mut no) = self.alike(yes, no);
        if !cond.dtype().is_scalar() {
            (yes, no) = (self.wide(yes), self.wide(no));
        }
        let parts = (boxed(cond), boxed(yes), boxed(no));
        if lazily { Expr::IfThenElse(parts.0, parts.1, parts.2) } else { Expr::Select(parts.0, parts.1, parts.2) }
    }

    /// An index as a value.
    fn index(&self, axis: usize, ty: ScalarType) -> Expr {
        let Some(axis) = self.nest.axis(axis) else { return constant(1, ty) };
        if ty == ScalarType::Bool {
            let (odd, zero) = (axis.base.clone().floor_mod(self.nest.int(2)), self.nest.int(0));
            return Expr::binary(BinaryOp::Ne, odd, zero);
        }
        Self::cast(axis.full.clone(), ty)
    }

    /// A load, through a view if the recipe says so.
    fn read(&mut self, read: &Read, ty: ScalarType) -> Expr {
        let Some(from) = self.tensors.get(read.from % self.tensors.len().max(1)) else { return constant(1, ty) };
        let lanes = from.buffer.dtype.lanes;
        let seen = match read.through.and_then(|view| from.seen(view)) {
            Some(seen) => Some(seen),
            None => Some(from.clone()),
        };
        // Vector elements are loaded as such if the target has vector elements of the same size,
        // otherwise lane by lane.
        let as_vectors = lanes == self.element_lanes && !matches!(self.nest.lanes, Lanes::Vector(..));
        let seen = seen.and_then(|seen| if as_vectors || lanes == 1 { Some(seen) } else { from.scalars() });
        let Some(seen) = seen else { return constant(5, ty) };
        if seen.buffer != from.buffer {
            self.views.push(seen.buffer.clone());
        }
        let gathers: Vec<Made> = self.tensors.iter().filter(|made| can_gather(made)).cloned().collect();
        let found = self.nest.load_indices(&seen, &read.at, read.edge, &gathers);
        let load = Self::cast(Expr::load(&seen.buffer, found.indices), ty);
        match found.inside {
            Some(inside) => {
                let other = constant(0, ty);
                self.select(inside, load, other, true)
            }
            None => load,
        }
    }

    /// A binary operation. Divisors and shift counts are limited to valid values.
    fn binary(&mut self, op: Binary, a: &Value, b: &Value, ty: ScalarType) -> Expr {
        let left = self.value(a, ty);
        let right = match (op, b) {
            // Constant divisors are kept, including negative ones; only 0 and -1 are excluded.
            (Binary::Div | Binary::Mod | Binary::TruncDiv | Binary::TruncMod, Value::Constant(value))
                if ty.is_integer() && !matches!(value, 0 | -1) =>
            {
                constant(*value, ty)
            }
            (Binary::Div | Binary::Mod | Binary::TruncDiv | Binary::TruncMod, b) if ty.is_integer() => {
                let low = self.low_bits(b, ty);
                self.op(BinaryOp::Add, low, constant(1, ty))
            }
            (Binary::Shl | Binary::Shr, b) if ty.is_integer() => self.low_bits(b, ty),
            (_, b) => self.value(b, ty),
        };
        self.op(operator(op, ty.class()), left, right)
    }

    /// The low three bits of a value, 0 to 7.
    fn low_bits(&mut self, value: &Value, ty: ScalarType) -> Expr {
        let value = self.value(value, ty);
        self.op(BinaryOp::BitAnd, value, constant(7, ty))
    }

    /// A condition on the indices.
    pub(super) fn test(&self, test: &Test) -> Expr {
        let full = |axis: usize| self.nest.axis(axis).map_or_else(|| self.nest.int(0), |axis| axis.full.clone());
        match test {
            Test::Below(axis, end) => self.op(BinaryOp::Lt, full(*axis), self.nest.int(*end)),
            Test::Remainder(axis, by, rest) => {
                let by = (*by).clamp(1, 64);
                let left = self.op(BinaryOp::FloorMod, full(*axis), self.nest.int(by));
                self.op(BinaryOp::Eq, left, self.nest.int(rest.rem_euclid(by)))
            }
            Test::Ordered(a, b) => self.op(BinaryOp::Le, full(*a), full(*b)),
            Test::Both(a, b) => self.op(BinaryOp::And, self.test(a), self.test(b)),
            Test::Either(a, b) => self.op(BinaryOp::Or, self.test(a), self.test(b)),
            Test::Not(a) => Expr::unary(UnaryOp::Not, self.test(a)),
        }
    }
}

/// Whether indices can be loaded from a tensor.
fn can_gather(made: &Made) -> bool {
    made.buffer.dtype.is_scalar() && made.buffer.dtype.scalar.is_integer()
}

/// A unary operator, or the value itself if the type has no such operator.
fn unary(op: Unary, a: Expr, ty: ScalarType) -> Expr {
    let call = |function, a| Expr::Call(function, [a].into());
    let (is_float, is_bool) = (ty.is_float(), ty == ScalarType::Bool);
    match op {
        Unary::Neg | Unary::Not if is_bool => Expr::unary(UnaryOp::Not, a),
        Unary::Not if !is_float => Expr::unary(UnaryOp::BitNot, a),
        Unary::Neg | Unary::Not => Expr::unary(UnaryOp::Neg, a),
        Unary::Abs if !is_bool => call(MathFn::Abs, a),
        Unary::Sqrt if is_float => call(MathFn::Sqrt, call(MathFn::Abs, a)),
        Unary::Floor if is_float => call(MathFn::Floor, a),
        Unary::Ceil if is_float => call(MathFn::Ceil, a),
        Unary::Round if is_float => call(MathFn::Round, a),
        Unary::Trunc if is_float => call(MathFn::Trunc, a),
        Unary::Abs | Unary::Sqrt | Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => a,
    }
}

/// A table of the operators of each class of types. An operator that a class lacks is replaced by one that it has.
pub(super) fn operator(op: Binary, class: TypeClass) -> BinaryOp {
    match (class, op) {
        (TypeClass::Bool, Binary::And | Binary::Min | Binary::Mul) => BinaryOp::And,
        (TypeClass::Bool, Binary::Or | Binary::Max | Binary::Add) => BinaryOp::Or,
        (TypeClass::Bool, Binary::Sub | Binary::Xor | Binary::Mod) => BinaryOp::BitXor,
        (TypeClass::Bool, Binary::Div | Binary::TruncDiv) => BinaryOp::BitAnd,
        (TypeClass::Bool, Binary::TruncMod | Binary::Shl | Binary::Shr) => BinaryOp::BitOr,
        (_, Binary::Add) | (TypeClass::Float, Binary::Xor) => BinaryOp::Add,
        (_, Binary::Sub) | (TypeClass::Float, Binary::Mod | Binary::Shr) => BinaryOp::Sub,
        (_, Binary::Mul) | (TypeClass::Float, Binary::TruncMod | Binary::Shl) => BinaryOp::Mul,
        (TypeClass::Float, Binary::Div | Binary::TruncDiv) => BinaryOp::Div,
        (_, Binary::Min) | (TypeClass::Float, Binary::And) => BinaryOp::Min,
        (_, Binary::Max) | (TypeClass::Float, Binary::Or) => BinaryOp::Max,
        (_, Binary::Div) => BinaryOp::FloorDiv,
        (_, Binary::Mod) => BinaryOp::FloorMod,
        (_, Binary::TruncDiv) => BinaryOp::TruncDiv,
        (_, Binary::TruncMod) => BinaryOp::TruncMod,
        (_, Binary::And) => BinaryOp::BitAnd,
        (_, Binary::Or) => BinaryOp::BitOr,
        (_, Binary::Xor) => BinaryOp::BitXor,
        (_, Binary::Shl) => BinaryOp::Shl,
        (_, Binary::Shr) => BinaryOp::Shr,
    }
}

/// The comparison operator.
fn comparison(op: Compare) -> BinaryOp {
    match op {
        Compare::Eq => BinaryOp::Eq,
        Compare::Ne => BinaryOp::Ne,
        Compare::Lt => BinaryOp::Lt,
        Compare::Le => BinaryOp::Le,
        Compare::Gt => BinaryOp::Gt,
        Compare::Ge => BinaryOp::Ge,
    }
}

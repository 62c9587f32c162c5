//! Expressions with TE's promotion of types: operands of two types are converted to a common one.
//!
//! The common type of two types is the wider one; a float type wins over an integer type of any width, and an unsigned type
//! over a signed one of the same width. A `bool` is converted to the other type, and arithmetic on two `bool`s is done in
//! `int32`. A scalar operand of a vector operation is repeated in every lane.

use tilewright_ir::{
    BinaryOp, DataType, Diagnostic, Expr, MathFn, ScalarType, SharedExpr, TypeClass, UnaryOp, op::TypeRule,
};

/// Most nodes of an expression.
const MAX_NODES: u64 = 20_000;
/// Greatest depth of an expression: rewriters recurse.
const MAX_DEPTH: usize = 250;

/// The number of nodes of an expression.
///
/// # Errors
/// `expression-size`: the expression has more than 20 000 nodes, or is nested more than 250 deep.
pub fn check_size(expr: &Expr) -> Result<u64, Diagnostic> {
    let mut nodes = 0;
    if depth(expr, &mut nodes) > MAX_DEPTH || nodes > MAX_NODES {
        return Err(Diagnostic::error("expression-size", None, "the expression grows too large")
            .with_help("give parts of it a te.compute of their own"));
    }
    Ok(nodes)
}

/// The depth of an expression; adds its nodes to a count.
fn depth(expr: &Expr, nodes: &mut u64) -> usize {
    *nodes += 1;
    1 + expr.children().map(|child| depth(child, nodes)).max().unwrap_or(0)
}

/// `lhs op rhs`, operands promoted to a common type.
///
/// # Errors
/// `type` if there is no common type or the operator is not defined for it, `division-by-zero` for an integer division by
/// the constant 0.
pub fn binary(op: BinaryOp, lhs: Expr, rhs: Expr) -> Result<Expr, Diagnostic> {
    let (a, b) = match_types(lhs, rhs)?;
    let arithmetic = matches!(op.info().rule, TypeRule::Arithmetic | TypeRule::Integer);
    let (a, b) = if arithmetic && a.dtype().scalar == ScalarType::Bool {
        let ty = DataType::INT32.with_lanes(a.dtype().lanes);
        (cast(a, ty), cast(b, ty))
    } else {
        (a, b)
    };
    let divides = matches!(op, BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::TruncDiv | BinaryOp::TruncMod);
    if divides && b.as_const_int() == Some(0) {
        return Err(Diagnostic::error("division-by-zero", None, "division by zero"));
    }
    if op.result_type(a.dtype(), b.dtype()).is_none() {
        let info = op.info();
        let name = info.symbol.unwrap_or(info.call);
        let message = format!("`{name}` is not defined for {} and {}", a.dtype(), b.dtype());
        return Err(Diagnostic::error("type", None, message).with_help("convert one of them with .astype(...)"));
    }
    Ok(Expr::binary(op, a, b))
}

/// `op operand`.
///
/// # Errors
/// `type`: the operator is not defined for the operand.
pub fn unary(op: UnaryOp, operand: Expr) -> Result<Expr, Diagnostic> {
    if op.result_type(operand.dtype()).is_none() {
        let message = format!("`{}` is not defined for {}", op.symbol().0.trim(), operand.dtype());
        return Err(Diagnostic::error("type", None, message));
    }
    Ok(Expr::unary(op, operand))
}

/// A math function. Operands are not promoted.
///
/// # Errors
/// `type`: wrong number of operands, or a type that the function is not defined for.
pub fn call(function: MathFn, args: Vec<Expr>) -> Result<Expr, Diagnostic> {
    let types: Vec<_> = args.iter().map(Expr::dtype).collect();
    if function.result_type(&types).is_none() {
        let (name, arity) = function.info();
        let given: Vec<_> = types.iter().map(ToString::to_string).collect();
        let message = format!("`{name}` takes {arity} float operand(s), not ({})", given.join(", "));
        return Err(Diagnostic::error("type", None, message).with_help("convert with .astype(\"float32\")"));
    }
    Ok(Expr::Call(function, args.into()))
}

/// `then if cond else other`; only the chosen arm is evaluated. The arms are promoted to a common type.
///
/// # Errors
/// `type`: the condition is no `bool` of one lane, or the arms have no common type.
pub fn if_then_else(cond: Expr, then: Expr, other: Expr) -> Result<Expr, Diagnostic> {
    check_condition(&cond)?;
    let (then, other) = match_types(then, other)?;
    Ok(Expr::IfThenElse(SharedExpr::new(cond), SharedExpr::new(then), SharedExpr::new(other)))
}

/// A condition is a `bool` of one lane.
pub(crate) fn check_condition(cond: &Expr) -> Result<(), Diagnostic> {
    if cond.dtype() == DataType::BOOL {
        return Ok(());
    }
    Err(Diagnostic::error("type", None, format!("a condition is a bool, not {}", cond.dtype())))
}

/// Converts both operands to their common type. Two vectors with different numbers of lanes keep them.
///
/// # Errors
/// `type`: two different floats of the same width, which have no common type.
pub fn match_types(a: Expr, b: Expr) -> Result<(Expr, Expr), Diagnostic> {
    let (a, b) = match (a.dtype().lanes, b.dtype().lanes) {
        (1, 1) => (a, b),
        (1, lanes) => (Expr::Broadcast { value: SharedExpr::new(a), lanes }, b),
        (lanes, 1) => (a, Expr::Broadcast { value: SharedExpr::new(b), lanes }),
        _ => (a, b),
    };
    let (ta, tb) = (a.dtype(), b.dtype());
    if ta == tb {
        return Ok((a, b));
    }
    let (sa, sb) = (ta.scalar, tb.scalar);
    // `float16` and `bfloat16` are the floats of one width: neither holds all values of the other.
    let common = match (sa.class(), sb.class()) {
        (TypeClass::Bool, _) => sb,
        (_, TypeClass::Bool) => sa,
        (TypeClass::Float, TypeClass::Float) if sa.bits() == sb.bits() => {
            let message = format!("{sa} and {sb} have no common type");
            return Err(Diagnostic::error("type", None, message).with_help("convert one with .astype(...)"));
        }
        (TypeClass::Float, TypeClass::Int | TypeClass::UInt) => sa,
        (TypeClass::Int | TypeClass::UInt, TypeClass::Float) => sb,
        _ if sa.bits() > sb.bits() => sa,
        _ if sa.bits() < sb.bits() => sb,
        (TypeClass::UInt, _) => sa,
        _ => sb,
    };
    let (ta, tb) = (DataType { scalar: common, ..ta }, DataType { scalar: common, ..tb });
    Ok((cast(a, ta), cast(b, tb)))
}

/// Converts an expression to a type. An expression of that type is returned as it is, and constants are folded.
pub fn cast(expr: Expr, ty: DataType) -> Expr {
    if expr.dtype() == ty {
        return expr;
    }
    match (&expr, ty.is_scalar()) {
        (Expr::Int { value, .. }, true) => {
            if let Some(constant) = Expr::int_of(*value, ty.scalar).filter(|_| ty.scalar.is_integer()) {
                return constant;
            }
            if let Some(value) = i32::try_from(*value).ok().filter(|_| ty.scalar.is_float()) {
                return Expr::float_of(f64::from(value), ty.scalar);
            }
        }
        (Expr::Float { value, .. }, true) if ty.scalar.is_float() => return Expr::float_of(*value, ty.scalar),
        _ => {}
    }
    Expr::Cast(ty, SharedExpr::new(expr))
}

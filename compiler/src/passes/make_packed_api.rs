//! Checks the arguments of a call before anything runs (TVM's `MakePackedAPI`).
//!
//! ```text
//! def main(a: T.handle, n: T.int32):              def main(a: T.handle, n: T.int32, num_args: T.int32,
//!     A = T.match_buffer(a, (8,), "float32")               A_type_code: T.int32, A_ndim: T.int32, ...):
//!     ...                                             A = T.match_buffer(a, (8,), "float32")
//!                                           ->        assert num_args == 2, "main: the number of arguments ..."
//!                                                     assert A_type_code == 7, "main: argument A (0): type code ..."
//!                                                     ...
//!                                                     assert A_shape_0 == T.int64(8), "main: argument A (0): shape[0] ..."
//!                                                     ...
//! ```
//!
//! What a caller says of its arguments is a scalar parameter for each part ([`tilewright_ir::convention`]): the number of arguments, type
//! codes, and of each tensor the rank, the element type, the shape, the strides, the offset in bytes and the device. Each of them has an
//! assertion, whose text names the argument and what is wrong with it. `compile` writes the assertions for the host, which checks them before the
//! first launch.
//!
//! The judge shows that a call is accepted if and only if everything that is said of it is right: a right call meets all
//! assertions, and the assertions together give each part its right value. In TVM this pass comes last, and the buffers of
//! parameters keep their shape until then; here `flatten_buffer` flattens them, so this pass comes before it. Cost: linear.

use tilewright_ir::convention::{PackedField, packed_fields};
use tilewright_ir::{BinaryOp, Comparison, Diagnostic, Evidence, Expr, PrimFunc, Stmt, StmtKind, sabotage};

use super::Rewritten;

const NAME: &str = "make_packed_api";

/// The attribute of a function that checks its arguments.
const CALLING_CONVENTION: &str = "calling_conv";

/// Adds the description of the call to the parameters, and an assertion for each part of it.
///
/// # Errors
/// `packed-api`: the function checks its arguments already.
///
/// ```
/// use tilewright_compiler::passes::make_packed_api;
/// let text = r#"
/// @T.prim_func
/// def main(a: T.handle):
///     n = T.int32()
///     A = T.match_buffer(a, (n, 8), "float32")
///     for i, j in T.grid(n, 8):
///         A[i, j] = T.float32(0)
/// "#;
/// let func = tilewright_script::read_module(text)?.funcs.remove(0);
/// let printed = tilewright_script::print_func(&make_packed_api(&func)?.func);
/// let asserted: Vec<&str> = printed.lines().map(str::trim).filter(|line| line.starts_with("assert")).collect();
/// assert_eq!(asserted[6], r#"assert A_shape_0 == T.Cast("int64", n), "main: argument A (0): shape[0] is not n""#);
/// assert_eq!(asserted[7], r#"assert A_shape_1 == T.int64(8), "main: argument A (0): shape[1] is not 8""#);
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn make_packed_api(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    if func.attrs.other.iter().any(|(key, _)| key == CALLING_CONVENTION) {
        let message = format!("`{}` checks its arguments already", func.name);
        let help = "run the pass once";
        return Err(vec![Diagnostic::error("packed-api", None, message).with_help(help)]);
    }
    let fields = packed_fields(func);
    let mut after = func.clone();
    after.params.extend(fields.iter().map(|field| field.var.clone()));
    super::answered(&mut after, NAME);
    after.attrs.other.push((CALLING_CONVENTION.to_owned(), tilewright_ir::AttrValue::Int(1)));
    let n_checked = if sabotage::on("packed-forgets-last") { fields.len() - 1 } else { fields.len() };
    let checks = fields.iter().take(n_checked).filter_map(|field| check(func, field));
    after.body = Stmt::seq(checks.chain([func.body.clone()]).collect());
    let evidence = Evidence { pass: NAME.to_owned(), comparison: Comparison::Packed, ..Evidence::default() };
    Ok(Rewritten { func: after, evidence, notes: Vec::new() })
}

/// Returns whether a function asks for the pass.
pub(super) fn is_wanted(func: &PrimFunc) -> bool {
    super::is_asked(func, NAME)
}

/// The assertion about a field; `None` if it may have any value.
fn check(func: &PrimFunc, field: &PackedField) -> Option<Stmt> {
    let value = field.value.clone()?;
    let op = if sabotage::on("packed-accepts-less") { BinaryOp::Le } else { BinaryOp::Eq };
    let cond = if sabotage::on("packed-compares-swapped") {
        Expr::binary(op, value.clone(), Expr::from(&field.var))
    } else {
        Expr::binary(op, Expr::from(&field.var), value.clone())
    };
    let message = format!("{}: {} is not {}", func.name, field.text, shown(&value));
    Some(Stmt::new(StmtKind::Assert { cond, message, is_assumed: false }))
}

/// A value for a reader, who need not know its type.
fn shown(value: &Expr) -> String {
    match value {
        Expr::Int { value, .. } => value.to_string(),
        Expr::Cast(_, inner) => inner.to_string(),
        other => other.to_string(),
    }
}

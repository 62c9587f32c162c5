//! Names of tensors and functions.

use tilewright_ir::Diagnostic;

use super::Built;

/// The name of a tensor, axis or symbol as it is printed: TVM's dots become underscores (`A.local` is `A_local`).
///
/// # Errors
/// `name`: anything but ASCII letters, digits, underscores and dots, or a name that starts with a digit or a dot.
pub fn tensor_name(name: &str) -> Result<String, Diagnostic> {
    check(name)?;
    Ok(name.replace('.', "_"))
}

/// The name of a function as it is printed: a [`tensor_name`] that is no keyword of Python, because functions are printed
/// as TVMScript.
///
/// # Errors
/// `name`.
pub fn function_name(name: &str) -> Result<String, Diagnostic> {
    let name = tensor_name(name)?;
    is_printable(&name)?;
    Ok(name)
}

/// Checks that a function with this name can be printed and read back.
pub(super) fn is_printable(name: &str) -> Built<()> {
    if tilewright_script::is_name(name) {
        return Ok(());
    }
    Err(Diagnostic::error("name", None, format!("`{name}` is a word of Python's, and names no function"))
        .with_help("call it something else: what is lowered is printed as TVMScript"))
}

/// Checks that a name is an identifier, apart from dots, which TVM allows.
fn check(name: &str) -> Built<()> {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    if !name.is_empty() && name.chars().all(letter) && !name.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Ok(());
    }
    Err(Diagnostic::error("name", None, format!("`{name}` is no name"))
        .with_help("names are letters, digits and underscores, not starting with a digit"))
}

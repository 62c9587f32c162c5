//! The text forms of Tilewright's language.
//!
//! - [`tvmscript`] reads and prints programs.
//! - [`te`] reads the TE dialect into a syntax tree; the compiler crate evaluates it.
//! - [`index_map`] reads index maps, shapes and conditions, such as those on the command line.
//! - [`xla`] and [`tile_layout`] read and print XLA's shapes and layouts.
//! - [`encoding`] and [`foreign`] recognise files in other encodings and languages.
//! - [`diagnostic`] renders a problem together with the source text that it points at.
//!
//! Every reader returns all problems it finds as [`tilewright_ir::Diagnostic`]s with locations in the source text,
//! and no reader panics or overflows the stack on any input. Printing a program and reading it again gives an equal
//! program.
//!
//! ```
//! let module = tilewright_script::read_module(r#"
//! from tvm.script import tir as T
//!
//! @T.prim_func
//! def scale(A: T.Buffer((64, 128), "float32"), B: T.Buffer((64, 128), "float32")):
//!     for i, j in T.grid(64, 128):
//!         B[i, j] = A[i, j] * 2
//! "#)?;
//! let text = tilewright_script::print_module(&module);
//! assert!(text.contains("B[i, j] = A[i, j] * T.float32(2.0)"));
//! # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
//! ```

pub mod diagnostic;
pub mod encoding;
pub mod foreign;
pub mod index_map;
pub(crate) mod source;
pub mod te;
pub mod tile_layout;
pub mod tvmscript;
pub mod xla;

pub use diagnostic::{DiagnosticRenderer, Source};
pub use index_map::{Symbols, output_spans, read_condition, read_index_map, read_predicate, read_shape, span_of_name};
pub use source::{MAX_SCOPES, is_name, nearest, nearest_function};
pub use tile_layout::{print_xla_layout, read_xla_layout};
pub use tvmscript::{
    Dialect, Scripted, UnknownDialect, is_scheduled, is_tvmscript, print_expr, print_func, print_module,
    print_module_in, read_module, read_scripted,
};
pub use xla::{print_xla_shape, read_xla_shape, read_xla_tiles};

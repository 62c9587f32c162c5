//! XLA's notation for shapes and layouts: `f32[3,5]{1,0:T(2,2)}`.
//!
//! ```
//! use tilewright_script::{print_xla_shape, read_xla_shape};
//! let shape = read_xla_shape("F32[3, 5]{1,0 : T(2,2) /* tiles */}")?;
//! assert_eq!(print_xla_shape(&shape), "f32[3,5]{1,0:T(2,2)}");
//! # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
//! ```
//!
//! The grammar is that of XLA's `hlo_parser.cc`, and shapes are printed exactly as XLA prints them. XLA's parser accepts
//! many malformed strings and aborts on others; this one reports an error with a location for each of them.
//!
//! ```text
//! shape   ::= type '[' (extent (',' extent)*)? ']' layout? | '(' (shape (',' shape)*)? ')'
//! extent  ::= int | '<=' int | '?'
//! layout  ::= '{' (int (',' int)*)? (':' property+)? '}'
//! property, each at most once and in this order:
//!   'D' '(' attribute (',' attribute)* ')'     attribute ::= ('D' | 'C' | 'S' | 'H') '+'? '~'?
//!   'T' ('(' size (',' size)* ')')+            size ::= int | '*'
//!   'L' '(' int ')'   '#' '(' type ')'   '*' '(' type ')'   'E' '(' int ')'   'S' '(' int ')'
//!   'SC' ('(' int ':' int (',' int)* ')')+   'P' '(' shape ')'   'M' '(' int ')'
//! ```
//!
//! Types are in lower case, or all in upper case as on XLA's page. Whitespace and comments, `/* */` and `//`, are allowed
//! between any two tokens.

mod layout;
mod lexer;
mod print;
mod read;

pub use print::print_xla_shape;
pub use read::{read_xla_shape, read_xla_tiles};

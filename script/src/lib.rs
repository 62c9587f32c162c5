//! The text form of Tilewright: reads and prints TVMScript, reads the TE dialect into a syntax tree.

pub(crate) mod source;
pub mod te;

//! tilewright-script

pub(crate) mod source;
pub mod te;

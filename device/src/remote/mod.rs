//! Devices in another process: the same sessions and programs, in a worker that a crashing driver takes with it.
//!
//! [`protocol`] is what is said, [`serve`] the worker's side and [`session`] this side.

mod protocol;
pub(crate) mod serve;
pub(crate) mod session;

pub(crate) use session::{Connection, Program, Session};

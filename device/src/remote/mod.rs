//! Devices in another process: sessions and programs in a worker, so that a crash of a driver ends only the worker.
//!
//! [`protocol`] defines the messages, [`serve`] is the worker's side, and [`session`] the caller's.

mod protocol;
pub(crate) mod serve;
pub(crate) mod session;

pub(crate) use session::{Connection, Program, Session};

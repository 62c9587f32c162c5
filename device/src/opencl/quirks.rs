//! What single drivers need that the standard does not say.

use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::info::DeviceInfo;

/// Held while something of a driver's is used; nothing for the drivers that keep OpenCL's word on threads.
///
/// Oclgrind 21.10 does not: where two threads launch kernels at once, each in a context of its own, now and then one of
/// the kernels does not run at all and nobody says so. So only one thread of the process uses it at a time.
pub(crate) fn turn(info: &DeviceInfo) -> Option<MutexGuard<'static, ()>> {
    take_turn(is_serial(info))
}

/// Compiler flags that a driver needs to be right.
///
/// Oclgrind 21.10 takes a bit that is widened with its sign for 1 and not for -1, where its compiler's optimiser made one of a
/// comparison: `-(a != b)` of two bytes, `(float)(-1 / (i + 1))`. Without the optimiser there are none.
pub(crate) fn flags(info: &DeviceInfo) -> &'static [&'static str] {
    if info.platform == OCLGRIND { &["-cl-opt-disable"] } else { &[] }
}

/// What Oclgrind calls its platform.
const OCLGRIND: &str = "Oclgrind";

fn is_serial(info: &DeviceInfo) -> bool {
    info.platform == OCLGRIND
}

fn take_turn(serial: bool) -> Option<MutexGuard<'static, ()>> {
    static OCLGRIND: Mutex<()> = Mutex::new(());
    serial.then(|| OCLGRIND.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Something of a driver's that outlives the turn in which it was made, and is released in another one.
///
/// Never dropped by a thread that holds the turn: it would wait for itself.
#[derive(Debug)]
pub(crate) struct InTurn<T> {
    inner: Option<T>,
    serial: bool,
}

impl<T> InTurn<T> {
    pub(crate) fn new(inner: T, info: &DeviceInfo) -> Self {
        Self { inner: Some(inner), serial: is_serial(info) }
    }
}

impl<T> Deref for InTurn<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.inner {
            Some(inner) => inner,
            None => unreachable!("it is taken out only when it is dropped"),
        }
    }
}

impl<T> Drop for InTurn<T> {
    fn drop(&mut self) {
        let _turn = take_turn(self.serial);
        self.inner = None;
    }
}

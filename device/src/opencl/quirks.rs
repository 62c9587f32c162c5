//! Workarounds for drivers that deviate from the standard.

use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::info::DeviceInfo;
use crate::plan::{ChannelType, Channels, TexelFormat};

/// The lock to hold while calling a driver that is not thread-safe; `None` for other drivers.
///
/// OpenCL requires that calls are thread-safe. In Oclgrind 21.10, if two threads launch kernels at the same time, even in
/// different contexts, one of the kernels sometimes does not run, without an error. So only one thread of the process calls
/// it at a time.
pub(crate) fn turn(info: &DeviceInfo) -> Option<MutexGuard<'static, ()>> {
    take_turn(is_serial(info))
}

/// Whether a driver lists images of a format and stores other values in them.
///
/// PoCL 3.1 lists images of one channel of 16-bit floats; each texel that a kernel writes to one is wrong when it is read again.
pub(crate) fn has_wrong_images(info: &DeviceInfo, format: TexelFormat) -> bool {
    let is_pocl = info.platform == "Portable Computing Language";
    is_pocl && format == TexelFormat { channels: Channels::R, ty: ChannelType::F16 }
}

/// Compiler flags without which a driver gives wrong results.
///
/// Oclgrind 21.10 extends a bit by its sign to 1 instead of -1. The optimiser of its compiler makes such extensions from
/// comparisons, as in `-(a != b)` of two bytes or `(float)(-1 / (i + 1))`; without the optimiser there are none.
pub(crate) fn flags(info: &DeviceInfo) -> &'static [&'static str] {
    if info.platform == OCLGRIND { &["-cl-opt-disable"] } else { &[] }
}

/// The name of Oclgrind's platform.
const OCLGRIND: &str = "Oclgrind";

/// Whether the driver has to be called by one thread at a time.
fn is_serial(info: &DeviceInfo) -> bool {
    info.platform == OCLGRIND
}

/// Waits for the lock if `serial`. One lock serves all devices, because the process has one Oclgrind.
fn take_turn(serial: bool) -> Option<MutexGuard<'static, ()>> {
    static OCLGRIND: Mutex<()> = Mutex::new(());
    serial.then(|| OCLGRIND.lock().unwrap_or_else(PoisonError::into_inner))
}

/// An object of a driver that outlives the lock under which it was made, and takes the lock again to be released.
///
/// It must not be dropped by a thread that holds the lock, which would deadlock.
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

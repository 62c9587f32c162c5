//! Whether the memory of the machine is enough for a run, estimated before anything is allocated.
//!
//! Linux promises memory that it does not have, and later kills the process that uses it, without a message. So the size of
//! everything that a run needs is estimated first and compared with what is available:
//!
//! ```text
//! A: 600000000 float32     3.0 GB as a tensor with its marks of defined lanes
//! on the interpreter       inputs, arguments, memory and outputs: 4 times that
//! on a device              copies in this process, and in the worker with the driver, which gets them as text
//! ```

use tilewright_ir::{Bindings, Buffer, StmtKind};

use super::engine::{Param, StageProgram};
use super::layout::shape;

/// Copies of each tensor that are alive at once while an interpreter runs: the input, the argument of the stage, the memory
/// of the engine, and the output of the first stage.
const INTERPRETED: u64 = 4;

/// Bytes that a run on a device needs for each byte of a buffer: the contents in both processes and on the device, and their
/// text in hexadecimal digits on both sides of the connection, in both directions.
const ON_DEVICE: u64 = 12;

/// The memory that a run needs, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// On the interpreter.
    pub interpreter: u64,
    /// On a device, after the interpreter has run.
    pub device: u64,
}

/// Estimates the memory for running a program with these extents. Sizes that are not known count as 0, and sizes beyond 64
/// bits as the largest number.
pub fn need(program: &StageProgram<'_>, symbols: &Bindings) -> Need {
    let mut buffers: Vec<Buffer> = Vec::new();
    for param in program.params() {
        if let Param::Buffer(buffer) = param {
            buffers.push(buffer);
        }
    }
    if let StageProgram::Func(func) = program {
        func.body.walk(&mut |stmt| {
            if let StmtKind::Allocate { buffer, .. } = &stmt.kind {
                buffers.push(buffer.clone());
            }
        });
    }
    let (mut bytes, mut lanes) = (0u64, 0u64);
    for buffer in &buffers {
        let Some(elements) = elements(buffer, symbols) else { continue };
        bytes = bytes.saturating_add(elements.saturating_mul(buffer.dtype.bytes()));
        lanes = lanes.saturating_add(elements.saturating_mul(buffer.dtype.lanes.into()));
    }
    // A tensor has one mark for each lane: whether it is defined.
    let tensors = bytes.saturating_add(lanes).saturating_mul(INTERPRETED);
    Need { interpreter: tensors, device: tensors.saturating_add(bytes.saturating_mul(ON_DEVICE)) }
}

/// The number of elements of a buffer; `None` if it is not known, for example because the shape depends on a loop.
fn elements(buffer: &Buffer, symbols: &Bindings) -> Option<u64> {
    let extents = shape(&buffer.shape, symbols).ok()?;
    Some(extents.iter().fold(1u64, |size, &extent| size.saturating_mul(extent)))
}

/// The bytes that this process may still use: what the system has available, and what its control group leaves; `None` if
/// the system does not say.
pub fn available() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").as_deref().and_then(available_of);
    let group = read("/proc/self/cgroup").map_or_else(String::new, |text| group_of(&text));
    // The limit of the group and those of the root, which is all that a container sees of its own group.
    let left = |folder: &str, limit: &str, used: &str| {
        let limit = read(&format!("{folder}/{limit}")).as_deref().and_then(number)?;
        Some(limit.saturating_sub(read(&format!("{folder}/{used}")).as_deref().and_then(number)?))
    };
    let groups = [format!("/sys/fs/cgroup{group}"), "/sys/fs/cgroup".to_owned()];
    let unified = groups.iter().filter_map(|folder| left(folder, "memory.max", "memory.current"));
    let first = left("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes");
    machine.into_iter().chain(unified).chain(first).min()
}

/// The line `MemAvailable` of `/proc/meminfo`, in bytes.
fn available_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    number(line.trim().strip_suffix("kB")?)?.checked_mul(1024)
}

/// The path of the control group of version 2 in `/proc/self/cgroup`; empty if there is none.
fn group_of(cgroup: &str) -> String {
    let path = cgroup.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default();
    path.trim_end_matches('/').to_owned()
}

/// A number of bytes; `None` for another text, such as `max`.
fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// Why a run that needs so many bytes cannot be made; `None` if they are available.
pub fn refusal(needed: u64, available: Option<u64>) -> Option<String> {
    let available = available.filter(|available| needed > *available)?;
    Some(format!("it needs about {} of memory, and {} are available", gib(needed), gib(available)))
}

/// Bytes in GiB, rounded to tenths.
fn gib(bytes: u64) -> String {
    let tenths = (u128::from(bytes) * 10 + (1 << 29)) >> 30;
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_what_the_system_says_counts() {
        assert_eq!(available_of("MemTotal: 7 kB\nMemAvailable:    1234 kB\n"), Some(1234 * 1024));
        assert_eq!(available_of("MemTotal: 7 kB\n"), None);
        assert_eq!(group_of("1:name=x:/a\n0::/user/b\n"), "/user/b");
        assert_eq!(group_of("0::/\n"), "");
        assert_eq!((number("4096\n"), number("max\n")), (Some(4096), None));
    }

    #[test]
    fn a_run_is_refused_only_if_it_needs_more_than_there_is() {
        assert_eq!(refusal(5, None), None);
        assert_eq!(refusal(5, Some(5)), None);
        let said = refusal(13 << 30, Some(3 << 29)).unwrap_or_default();
        assert_eq!(said, "it needs about 13.0 GiB of memory, and 1.5 GiB are available");
    }

    #[test]
    fn buffers_and_allocations_count() {
        let text = "@T.prim_func\ndef f(A: T.Buffer((5, 7), \"float32\"), B: T.Buffer((4,), \"int8\")):\n    \
                    C = T.alloc_buffer((3,), \"int16\")\n    for i in range(3):\n        C[i] = T.int16(1)\n";
        let func = tilewright_script::read_module(text).unwrap().funcs.remove(0);
        let (bytes, lanes) = (35 * 4 + 4 + 3 * 2, 35 + 4 + 3);
        let need = need(&StageProgram::Func(&func), &Bindings::new());
        assert_eq!(need, Need { interpreter: (bytes + lanes) * 4, device: (bytes + lanes) * 4 + bytes * 12 });
    }
}

//! Times of kernels on a device, by its own clock, beside those of a copy of as many bytes.
//!
//! ```text
//! one plan:   fill | k0 k1 | k0 k1 | k0 k1 | ...      the launches of a program, again and again on the same memory
//!                    warm-up          round 1
//! copies:     a buffer to another one, once for each round
//! ```
//!
//! A time is that from the start of a kernel on the device to its end, from the profiling events of the queue. Memory is filled once, and
//! nothing is read back, so that a kernel that adds to its output works on other values in each round. Nothing is compared: that is what
//! `check` does.

use tilewright_device::{DeviceError, Initial, LaunchPlan, RunOptions};
use tilewright_interp::Arguments;
use tilewright_ir::{Bindings, Expr, PrimFunc, Stmt, StmtKind};

use super::engine::EngineFault;
use super::opencl::{OpenCl, fault, kernel_arguments};
use crate::codegen::{ArgInfo, Generated};

/// How often kernels run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Runs that are not counted.
    pub warm_up: usize,
    /// Runs that are.
    pub rounds: usize,
}

/// Most copies that are timed, because each of them fills its memory before.
const MAX_COPIES: usize = 9;

/// What was measured of a program on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The kernels, in the order of their launches.
    pub kernels: Vec<KernelTimes>,
    /// The time of all kernels of each round.
    pub total: Times,
    /// The time of a copy within the device's memory that reads and writes as many bytes as all kernels together; `None` if the
    /// device has no room for it.
    pub copy: Option<Times>,
    /// The floating-point operations of a round; `None` if extents of loops are not known.
    pub operations: Option<u128>,
}

/// What was measured of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelTimes {
    /// Its name.
    pub name: String,
    /// Bytes of all buffers and textures that it takes, each counted once.
    pub bytes: u64,
    /// Whether one of them is a texture.
    pub has_textures: bool,
    /// Its times.
    pub times: Times,
}

/// Times of several runs in nanoseconds, in ascending order; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times(Vec<u64>);

impl Times {
    /// Sorts the times; `None` if there are none.
    pub fn new(mut times: Vec<u64>) -> Option<Self> {
        times.sort_unstable();
        (!times.is_empty()).then_some(Self(times))
    }

    /// The time in the middle.
    pub fn median(&self) -> u64 {
        self.0[self.0.len() / 2]
    }

    /// The shortest time.
    pub fn least(&self) -> u64 {
        self.0[0]
    }

    /// The longest time.
    pub fn greatest(&self) -> u64 {
        self.0[self.0.len() - 1]
    }

    /// The distance of the first and the third quartile as a fraction of the median.
    pub fn spread(&self) -> f64 {
        let at = |quarter: usize| self.0[(self.0.len() - 1) * quarter / 4];
        ratio(at(3) - at(1), self.median())
    }
}

/// `a / b`; 0 if both are.
#[expect(clippy::cast_precision_loss, reason = "a number to look at")]
pub fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}

/// Builds the kernels of a function and times them, and copies of as many bytes.
///
/// # Errors
/// The device lacks something, the arguments do not fit, or the driver fails.
pub fn measure(
    device: &OpenCl,
    func: &PrimFunc,
    generated: &Generated,
    symbols: &Bindings,
    arguments: &Arguments,
    rounds: Rounds,
) -> Result<Measured, EngineFault> {
    if let Some(what) = device.lacks(generated) {
        return Err(EngineFault::Skipped(what));
    }
    let error = |message: String| EngineFault::Error(message);
    let program = device.build(&generated.source, generated.metadata.build_options.clone());
    let program = program.map_err(|failed| fault(&failed))?;
    let given = kernel_arguments(func, symbols, arguments).map_err(error)?;
    let plan = generated.plan(&given).map_err(|found| error(found.to_string()))?;
    let n_kernels = plan.launches.len();
    let launched: Vec<String> = plan.launches.iter().map(|launch| launch.kernel.clone()).collect();
    let plan = repeated(plan, rounds.warm_up + rounds.rounds);
    let options = RunOptions { guard_bytes: 0, ..RunOptions::default() };
    let output = device.session().run(&program, &plan, &options).map_err(|failed| fault(&failed))?;
    let counted = output.launch_nanoseconds.get(n_kernels * rounds.warm_up..).unwrap_or_default();
    // A launch without work-items takes no time.
    let per_round: Vec<Vec<u64>> =
        counted.chunks(n_kernels.max(1)).map(|round| round.iter().map(|time| time.unwrap_or(0)).collect()).collect();
    let nothing = || error("the program has no kernels".to_owned());
    let total = Times::new(per_round.iter().map(|round| round.iter().sum()).collect()).ok_or_else(nothing)?;
    let mut kernels = Vec::new();
    for info in &generated.metadata.kernels {
        // A loop of the host launches a kernel several times, or never.
        let own = |round: &Vec<u64>| {
            round.iter().zip(&launched).filter(|(_, name)| **name == info.name).map(|(time, _)| time).sum()
        };
        let times = Times::new(per_round.iter().map(own).collect()).ok_or_else(nothing)?;
        let n_launches = launched.iter().filter(|name| **name == info.name).count() as u64;
        let mut bytes = 0_u64;
        let mut has_textures = false;
        for arg in &info.args {
            let ArgInfo::Buffer(buffer) = arg else { continue };
            let buffer = &generated.metadata.buffers[*buffer];
            bytes += n_launches * buffer.bytes.eval(symbols).map_err(|found| error(found.to_string()))?;
            has_textures |= buffer.image.is_some();
        }
        kernels.push(KernelTimes { name: info.name.clone(), bytes, has_textures, times });
    }
    let bytes = kernels.iter().map(|kernel| kernel.bytes).sum();
    let copy = copies(device, bytes, rounds)?;
    Ok(Measured { kernels, total, copy, operations: operations(&func.body, symbols) })
}

/// A plan whose launches are repeated, and of which nothing is read back.
fn repeated(mut plan: LaunchPlan, times: usize) -> LaunchPlan {
    plan.launches = std::iter::repeat_n(plan.launches, times).flatten().collect();
    for buffer in &mut plan.buffers {
        buffer.read_back = false;
        // Poison is a NaN, with which processors may compute slower than with numbers. A texture that is lent for the run has no contents.
        if let (false, Initial::Fill(byte)) = (buffer.scratch, &mut buffer.initial) {
            *byte = 0;
        }
    }
    plan
}

/// The times of copies that read and write `bytes` bytes together; `None` if the device has no room for them.
fn copies(device: &OpenCl, bytes: u64, rounds: Rounds) -> Result<Option<Times>, EngineFault> {
    let mut times = Vec::new();
    let warm_up = rounds.warm_up.min(1);
    for round in 0..warm_up + rounds.rounds.min(MAX_COPIES) {
        match device.session().copy_nanoseconds((bytes / 2).max(1)) {
            Ok(time) if round >= warm_up => times.push(time),
            Ok(_) => {}
            Err(DeviceError::Limit { .. }) => return Ok(None),
            Err(failed) => return Err(fault(&failed)),
        }
    }
    Ok(Times::new(times))
}

/// The number of floating-point operations of a statement: operators with two operands and math functions with a float result, once for
/// each lane. Conditions count as true. `None` if the extent of a loop is not known.
pub fn operations(stmt: &Stmt, symbols: &Bindings) -> Option<u128> {
    let own: u128 = stmt.exprs().map(operations_of).sum();
    let inside = stmt
        .children()
        .map(|child| operations(child, symbols))
        .try_fold(0_u128, |sum, inner| sum.checked_add(inner?))?;
    let StmtKind::For(inner) = &stmt.kind else { return own.checked_add(inside) };
    if inside == 0 {
        return Some(own);
    }
    let extent = u128::try_from(inner.extent.eval_index(symbols).ok()?.max(0)).ok()?;
    own.checked_add(inside.checked_mul(extent)?)
}

fn operations_of(expr: &Expr) -> u128 {
    let mut count = 0;
    expr.walk(&mut |part| {
        let counts = match part {
            Expr::Binary(..) | Expr::Call(..) => true,
            Expr::Int { .. } | Expr::Float { .. } | Expr::Var(_) | Expr::Unary(..) | Expr::Select(..) => false,
            Expr::IfThenElse(..) | Expr::Cast(..) | Expr::Ramp { .. } | Expr::Broadcast { .. } => false,
            Expr::Load { .. } => false,
        };
        let dtype = part.dtype();
        if counts && dtype.scalar.is_float() {
            count += u128::from(dtype.lanes);
        }
    });
    count
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]

    use super::*;

    fn count(body: &str, symbols: &[i128]) -> Option<u128> {
        let text = format!(
            "@T.prim_func\ndef f(a: T.handle):\n    n = T.int32()\n    A = T.match_buffer(a, (n, 7), \"float32\")\n{body}"
        );
        let func = tilewright_script::read_module(&text).unwrap().funcs.remove(0);
        operations(&func.body, &func.symbols().into_iter().zip(symbols.iter().copied()).collect())
    }

    #[test]
    fn float_operations_are_counted_once_for_each_iteration_and_lane() {
        let nest =
            "    for i, j in T.grid(n, 7):\n        A[i, j] = A[i, (j + 1) % 7] * T.float32(2) + T.float32(i * 3)\n";
        assert_eq!(count(nest, &[5]), Some(2 * 5 * 7));
        assert_eq!(count(nest, &[]), None);
        let wide = "    for i in range(n):\n        A[i, T.Ramp(0, 1, 4)] = A[i, T.Ramp(0, 1, 4)] * T.Broadcast(T.float32(2), 4)\n";
        assert_eq!(count(wide, &[3]), Some(3 * 4));
        let guarded = "    for i in range(n):\n        if i < 2:\n            A[i, 0] = T.exp(A[i, 1])\n";
        assert_eq!(count(guarded, &[9]), Some(9));
    }

    #[test]
    fn the_spread_is_that_of_the_middle_half() {
        let times = Times::new(vec![900, 10, 12, 8, 11]).unwrap();
        assert_eq!((times.least(), times.median(), times.greatest()), (8, 11, 900));
        assert!((times.spread() - 2.0 / 11.0).abs() < 1e-9);
        assert!(Times::new(Vec::new()).is_none());
    }
}

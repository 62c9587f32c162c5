//! Instances of a store that are tried: at sizes of several tiles, where different cases are seen.

use tilewright_ir::Bindings;
use tilewright_verify::path::{Path, Step};

/// Least and most instances that are looked for.
const LEAST: usize = 80;
const MOST: usize = 3_000;

/// Instances that are looked for, for each case that one of them should come to: where a store is unrolled, each copy is a case, and some
/// come up at the first or at the last iteration of another loop only.
const FOR_EACH: usize = 60;

/// Ways through the loops that are tried for one instance.
const TRIED: usize = 10;

/// Values of symbols.
const SIZES: [i128; 10] = [1, 2, 5, 9, 17, 33, 70, 130, 257, 300];

/// Values of scalars, on both sides of the conditions that are often asked of them.
const SCALARS: [i128; 10] = [0, 1, 2, -1, 9, 17, 33, 70, 130, 300];

/// Instances that reach the end of a path, enough to come to each of so many cases.
pub(super) fn samples(path: &Path, n_cases: usize) -> Vec<Bindings> {
    let wanted = n_cases.saturating_mul(FOR_EACH).clamp(LEAST, MOST);
    (0u64..).take(wanted * TRIED).filter_map(|attempt| instance(path, attempt)).take(wanted).collect()
}

/// An instance chosen by a number; none if it does not get to the end.
fn instance(path: &Path, attempt: u64) -> Option<Bindings> {
    let mut state = attempt.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut bindings = Bindings::new();
    let symbols = path.symbols.iter().map(|var| (var, SIZES));
    for (var, values) in symbols.chain(path.scalars.iter().map(|var| (var, SCALARS))) {
        let size = values[usize::try_from(random()).ok()? % values.len()];
        let (low, high) = var.dtype().scalar.integer_range().unwrap_or((0, 1));
        bindings.insert(var.clone(), size.clamp(low, high));
    }
    for step in &path.steps {
        match step {
            Step::Loop(var, min, extent) => {
                let (min, extent) = (min.eval_index(&bindings).ok()?, extent.eval_index(&bindings).ok()?);
                let last = extent.checked_sub(1).filter(|last| *last >= 0)?;
                let offset = match random() % 4 {
                    0 => 0,
                    1 => last,
                    _ => i128::from(random()) % extent,
                };
                bindings.insert(var.clone(), min + offset);
            }
            Step::Guard(cond, holds) if (cond.eval_index(&bindings).ok()? != 0) != *holds => return None,
            Step::Guard(..) | Step::Let(..) => {}
        }
    }
    Some(bindings)
}

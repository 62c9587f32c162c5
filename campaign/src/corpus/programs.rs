//! Programs written by hand that passes change, each with the passes: those of `tests/twins`, `tests/schedule` and `tests/storage`.
//!
//! ```text
//! == a transposition
//! a: (n, m), b: (m, n)
//! -- before
//! for i, j in T.grid(n, m): ...
//! -- schedule                  or `passes`, or `first` for passes before that of the file
//! reorder=j:i
//! ```

use std::sync::LazyLock;

use super::constant;
use super::written::program;

/// The files, with the pass that each is about.
const FILES: [(&str, &str); 29] = [
    ("apply_buffer_transforms", include_str!("passes/apply_buffer_transforms.txt")),
    ("convert_ssa", include_str!("passes/convert_ssa.txt")),
    ("flatten_buffer", include_str!("passes/flatten_buffer.txt")),
    ("loop_partition", include_str!("passes/loop_partition.txt")),
    ("lower_blocks", include_str!("passes/lower_blocks.txt")),
    ("lower_texture", include_str!("passes/lower_texture.txt")),
    ("lower_thread_allreduce", include_str!("passes/lower_thread_allreduce.txt")),
    ("make_packed_api", include_str!("passes/make_packed_api.txt")),
    ("narrow_index_types", include_str!("passes/narrow_index_types.txt")),
    ("remove_no_op", include_str!("passes/remove_no_op.txt")),
    ("compute_at", include_str!("passes/schedule_compute_at.txt")),
    ("compute_inline", include_str!("passes/schedule_compute_inline.txt")),
    ("double_buffer", include_str!("passes/schedule_double_buffer.txt")),
    ("fuse", include_str!("passes/schedule_fuse.txt")),
    ("loop_kind", include_str!("passes/schedule_loop_kind.txt")),
    ("reorder", include_str!("passes/schedule_reorder.txt")),
    ("split", include_str!("passes/schedule_split.txt")),
    ("unroll", include_str!("passes/schedule_unroll.txt")),
    ("simplify", include_str!("passes/simplify.txt")),
    ("split_host_device", include_str!("passes/split_host_device.txt")),
    ("compact_buffer_allocation", include_str!("passes/storage_compact_buffer_allocation.txt")),
    ("inject_double_buffer", include_str!("passes/storage_inject_double_buffer.txt")),
    ("inject_virtual_thread", include_str!("passes/storage_inject_virtual_thread.txt")),
    ("storage_rewrite", include_str!("passes/storage_storage_rewrite.txt")),
    ("vector_type_rewrite", include_str!("passes/storage_vector_type_rewrite.txt")),
    ("thread_sync", include_str!("passes/thread_sync.txt")),
    ("tile_layout", include_str!("passes/tile_layout.txt")),
    ("unroll_loop", include_str!("passes/unroll_loop.txt")),
    ("vectorize", include_str!("passes/vectorize.txt")),
];

/// A program and the passes that change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassText {
    params: String,
    body: String,
    /// The passes in order, each as `opt -p` takes it.
    pub passes: Vec<String>,
}

impl PassText {
    /// The program. With a number, the symbolic extents are constants: small sizes, rotated by the number.
    pub fn program(&self, rotation: Option<usize>) -> String {
        let extents = rotation.map(|rotation| (rotation, &self.params));
        let [params, body] = constant([&self.params, &self.body], extents);
        program(&params, &body)
    }
}

/// All programs of all files, in their order.
pub fn programs() -> &'static [PassText] {
    static PROGRAMS: LazyLock<Vec<PassText>> = LazyLock::new(|| {
        let of_file = |(pass, file): (&str, &'static str)| {
            let pass = pass.to_owned();
            file.split("\n== ").skip(1).filter_map(move |case| of_case(&pass, case))
        };
        FILES.into_iter().flat_map(of_file).collect()
    });
    &PROGRAMS
}

/// The program of a case; `None` if it is not written as expected, which a test excludes.
fn of_case(pass: &str, case: &str) -> Option<PassText> {
    let (head, rest) = case.split_once("\n-- before\n")?;
    let (_, params) = head.split_once('\n')?;
    let mut parts = rest.split("\n-- ");
    let body = parts.next()?.to_owned();
    let mut passes = Vec::new();
    let mut is_complete = false;
    for part in parts {
        let (word, lines) = part.split_once('\n').unwrap_or((part, ""));
        is_complete |= matches!(word, "passes" | "schedule");
        if matches!(word, "passes" | "schedule" | "first") {
            passes.extend(lines.lines().filter(|line| !line.is_empty()).map(str::to_owned));
        }
    }
    if !is_complete {
        passes.push(pass.to_owned());
    }
    Some(PassText { params: params.to_owned(), body, passes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_can_be_read_and_its_passes_are_known() {
        for program in programs() {
            for rotation in [None, Some(1)] {
                let text = program.program(rotation);
                let read = tilewright_script::read_module(&text);
                assert!(read.is_ok(), "{:?}\n{text}", read.err());
            }
            for pass in &program.passes {
                assert!(tilewright_compiler::passes::read_passes(pass).is_ok(), "{pass}");
            }
        }
        assert!(programs().len() >= 80, "{}", programs().len());
    }
}

//! The passes: one file each, a free function from a program to a program and the evidence of what changed.

pub(crate) mod apply_buffer_transforms;
mod compact_buffer_allocation;
mod convert_ssa;
mod flatten_buffer;
mod inject_double_buffer;
mod inject_virtual_thread;
mod lanes;
mod loop_partition;
mod lower_blocks;
mod lower_texture;
mod lower_thread_allreduce;
mod make_packed_api;
mod narrow_index_types;
mod provenance;
pub(crate) mod remap;
mod remove_no_op;
pub(crate) mod schedule;
mod sequence;
mod simplify;
mod split_host_device;
mod storage;
mod storage_rewrite;
#[cfg(test)]
mod tests;
mod texture_stores;
#[cfg(test)]
mod texture_tests;
mod thread_axes;
pub(crate) mod thread_sync;
pub(crate) mod tile_layout;
#[cfg(test)]
mod tile_tests;
mod unroll_loop;
mod vector_type_rewrite;
mod vectorize;
mod virtual_thread;

use tilewright_ir::{AttrValue, Diagnostic, Evidence, PrimFunc};

pub use apply_buffer_transforms::apply_buffer_transforms;
pub use compact_buffer_allocation::compact_buffer_allocation;
pub use convert_ssa::convert_ssa;
pub use flatten_buffer::flatten_buffer;
pub use inject_double_buffer::inject_double_buffer;
pub use inject_virtual_thread::inject_virtual_thread;
pub use loop_partition::loop_partition;
pub use lower_blocks::lower_blocks;
pub use lower_texture::lower_texture;
pub use lower_thread_allreduce::lower_thread_allreduce;
pub use make_packed_api::make_packed_api;
pub use narrow_index_types::narrow_index_types;
pub use remove_no_op::remove_no_op;
pub use schedule::{allreduce, compute_at, compute_inline, double_buffer, fuse, loop_kind, reorder, split, unroll};
pub use sequence::{PRESETS, PassCall, Pipeline, Preset, TVM_NAMES, preset_by_name, read_passes};
pub use simplify::simplify;
pub use split_host_device::split_host_device;
pub use storage_rewrite::storage_rewrite;
pub use thread_sync::thread_sync;
pub use tile_layout::tile_layout;
pub use unroll_loop::unroll_loop;
pub use vector_type_rewrite::vector_type_rewrite;
pub use vectorize::vectorize;

/// The result of a pass: the new program, and the claim that the judge checks.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The program after the pass.
    pub func: PrimFunc,
    /// The claim about the change.
    pub evidence: Evidence,
    /// Warnings about what was asked for and not done.
    pub notes: Vec<Diagnostic>,
}

/// Adds the request in a text, such as `A:{1,0:T(8,128)}`, to the attributes of a function.
pub type Request = fn(&mut PrimFunc, &str) -> Result<(), Diagnostic>;

/// A pass by name.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// The name on the command line and in reports.
    pub name: &'static str,
    /// A description of one line.
    pub summary: &'static str,
    /// The pass.
    pub run: fn(&PrimFunc) -> Result<Rewritten, Vec<Diagnostic>>,
    /// Whether the pipeline runs the pass on a function.
    pub wanted: fn(&PrimFunc) -> bool,
    /// Adds a request to a function, for `opt -p PASS=TEXT`; `None` for a pass that takes no requests.
    pub request: Option<Request>,
}

/// The `wanted` of passes that run on every function.
fn always(_: &PrimFunc) -> bool {
    true
}

/// Every pass, by name: those of the pipeline in its order, then those of [`ON_REQUEST`].
pub static PASSES: &[Pass] = &[
    Pass {
        name: "lower_blocks",
        summary: "replace blocks of S-TIR by the statements that they stand for",
        run: lower_blocks,
        wanted: lower_blocks::is_wanted,
        request: None,
    },
    Pass {
        name: "split",
        summary: "split a loop in two: split=i:4",
        run: split,
        wanted: |func| schedule::is_next(func, "split"),
        request: Some(|func, text| schedule::request(func, "split", text)),
    },
    Pass {
        name: "fuse",
        summary: "fuse neighbouring loops into one: fuse=i:j",
        run: fuse,
        wanted: |func| schedule::is_next(func, "fuse"),
        request: Some(|func, text| schedule::request(func, "fuse", text)),
    },
    Pass {
        name: "reorder",
        summary: "put nested loops into another order: reorder=j:i",
        run: reorder,
        wanted: |func| schedule::is_next(func, "reorder"),
        request: Some(|func, text| schedule::request(func, "reorder", text)),
    },
    Pass {
        name: "loop_kind",
        summary: "run the iterations of a loop at once, or one after the other: loop_kind=i:parallel",
        run: loop_kind,
        wanted: |func| schedule::is_next(func, "loop_kind"),
        request: Some(|func, text| schedule::request(func, "loop_kind", text)),
    },
    Pass {
        name: "allreduce",
        summary: "combine the values of a reduction by the threads of a group: allreduce=k:threadIdx.x",
        run: allreduce,
        wanted: |func| schedule::is_next(func, "allreduce"),
        request: Some(|func, text| schedule::request(func, "allreduce", text)),
    },
    Pass {
        name: "unroll",
        summary: "write out the iterations of a loop: unroll=i",
        run: unroll,
        wanted: |func| schedule::is_next(func, "unroll"),
        request: Some(|func, text| schedule::request(func, "unroll", text)),
    },
    Pass {
        name: "compute_at",
        summary: "compute a buffer in the loop that reads it: compute_at=A:i",
        run: compute_at,
        wanted: |func| schedule::is_next(func, "compute_at"),
        request: Some(|func, text| schedule::request(func, "compute_at", text)),
    },
    Pass {
        name: "compute_inline",
        summary: "put the value of a buffer where it is read: compute_inline=A",
        run: compute_inline,
        wanted: |func| schedule::is_next(func, "compute_inline"),
        request: Some(|func, text| schedule::request(func, "compute_inline", text)),
    },
    Pass {
        name: "double_buffer",
        summary: "fill one half of a buffer for the next iteration while the other one is read: double_buffer=A",
        run: double_buffer,
        wanted: |func| schedule::is_next(func, "double_buffer"),
        request: Some(|func, text| schedule::request(func, "double_buffer", text)),
    },
    Pass {
        name: "lower_thread_allreduce",
        summary: "combine the values of threads in a tree",
        run: lower_thread_allreduce,
        wanted: lower_thread_allreduce::is_wanted,
        request: None,
    },
    Pass {
        name: "apply_buffer_transforms",
        summary: "move buffers to the layouts that layout_transform_map asks for",
        run: apply_buffer_transforms,
        wanted: always,
        request: None,
    },
    Pass {
        name: "tile_layout",
        summary: "tile buffers as XLA does: tile_layout=A:{1,0:T(8,128)}, or as the program asks",
        run: tile_layout,
        wanted: |func| !func.attrs.tile_layout.is_empty(),
        request: Some(tile_layout::request),
    },
    Pass {
        name: "flatten_buffer",
        summary: "flatten buffers to one axis for each group between axis separators; textures are left to lower_texture",
        run: flatten_buffer,
        wanted: always,
        request: None,
    },
    Pass {
        name: "vectorize",
        summary: "turn loops marked vectorized into vector statements, or else into scalar loops",
        run: vectorize,
        wanted: vectorize::is_wanted,
        request: None,
    },
    Pass {
        name: "lower_texture",
        summary: "turn buffers in texture scopes into rows, columns and channels: texture2d_load and texture2d_store",
        run: lower_texture,
        wanted: lower_texture::is_wanted,
        request: None,
    },
    Pass {
        name: "simplify",
        summary: "simplify expressions and drop branches never taken",
        run: simplify,
        wanted: always,
        request: None,
    },
    Pass {
        name: "compact_buffer_allocation",
        summary: "shrink the memory that is allocated to the elements that are used",
        run: compact_buffer_allocation,
        wanted: |func| is_asked(func, "compact_buffer_allocation"),
        request: None,
    },
    Pass {
        name: "storage_rewrite",
        summary: "let buffers that are not in use at the same time share memory",
        run: storage_rewrite,
        wanted: |func| is_asked(func, "storage_rewrite"),
        request: None,
    },
    Pass {
        name: "inject_double_buffer",
        summary: "give two halves to the buffers that double_buffer_scope marks",
        run: inject_double_buffer,
        wanted: |func| is_asked(func, "inject_double_buffer"),
        request: None,
    },
    Pass {
        name: "inject_virtual_thread",
        summary: "interleave the iterations of virtual threads in one thread",
        run: inject_virtual_thread,
        wanted: |func| is_asked(func, "inject_virtual_thread"),
        request: None,
    },
    Pass {
        name: "vector_type_rewrite",
        summary: "turn buffers that are accessed in vectors only into buffers of vectors",
        run: vector_type_rewrite,
        wanted: |func| is_asked(func, "vector_type_rewrite"),
        request: None,
    },
    Pass {
        name: "thread_sync",
        summary: "insert the barriers that threads need around shared memory",
        run: thread_sync,
        wanted: thread_sync::is_wanted,
        request: None,
    },
    Pass {
        name: "make_packed_api",
        summary: "check the arguments of a call: number, types, shapes, strides, offsets and devices",
        run: make_packed_api,
        wanted: make_packed_api::is_wanted,
        request: None,
    },
    Pass {
        name: "split_host_device",
        summary: "make a device function of each launch, and call it from the host",
        run: split_host_device,
        wanted: split_host_device::is_wanted,
        request: None,
    },
    Pass {
        name: "convert_ssa",
        summary: "give every variable and every buffer a name of its own",
        run: convert_ssa,
        wanted: always,
        request: None,
    },
    Pass {
        name: "loop_partition",
        summary: "split loops at the ends of conditions, so that the main part runs without them",
        run: loop_partition,
        wanted: always,
        request: None,
    },
    Pass {
        name: "unroll_loop",
        summary: "write out loops marked unrolled; unroll_loop=16 also serial loops of at most 16 stores",
        run: unroll_loop,
        wanted: unroll_loop::is_wanted,
        request: Some(unroll_loop::request),
    },
    Pass {
        name: "narrow_index_types",
        summary: "compute indices of 64 bits in 32 where nothing overflows",
        run: narrow_index_types,
        wanted: narrow_index_types::is_wanted,
        request: None,
    },
    Pass {
        name: "remove_no_op",
        summary: "remove loops, branches, names and allocations without effect",
        run: remove_no_op,
        wanted: always,
        request: None,
    },
];

/// The passes that `check` and `compile` run after blocks were lowered and the steps of a schedule applied, in order. Buffers are flattened before loops are vectorized: the
/// channels of an NCHW buffer are evenly spaced in flat memory, but are no ramp in its last axis.
pub static DEFAULT_PIPELINE: &[&str] = &[
    "lower_thread_allreduce",
    "apply_buffer_transforms",
    "tile_layout",
    "flatten_buffer",
    "vectorize",
    "lower_texture",
    "simplify",
];

/// The passes that run only where they are named: by `opt -p`, or by the attribute `passes` of a function, such as
/// `T.func_attr({"passes": ["storage_rewrite"]})`.
pub static ON_REQUEST: &[&str] = &[
    "compact_buffer_allocation",
    "inject_double_buffer",
    "inject_virtual_thread",
    "make_packed_api",
    "split_host_device",
    "storage_rewrite",
    "thread_sync",
    "vector_type_rewrite",
];

/// The passes and steps that combine values in another order. Where the evidence of one of them is not found, runs that differ in how
/// floats are rounded refute nothing.
pub static REASSOCIATING: &[&str] = &["allreduce", "lower_thread_allreduce", "rfactor"];

/// A place among the passes of a preset.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Before(&'static str),
    Behind(&'static str),
    /// Behind all passes of the preset.
    Last,
}

/// The passes of [`ON_REQUEST`] that do not run in front of those of a preset.
static LATE: &[(&str, Place)] = &[
    ("make_packed_api", Place::Before("flatten_buffer")),
    ("split_host_device", Place::Last),
    ("vector_type_rewrite", Place::Behind("vectorize")),
];

/// The key of the attribute of a function that asks for passes.
pub const PASSES_ATTRIBUTE: &str = "passes";

/// Returns the names of the passes for a function, in order: that for its blocks, one for each step of its schedule, those that it asks
/// for, then [`DEFAULT_PIPELINE`]. `vector_type_rewrite` runs behind `vectorize`, which makes the vectors,
/// and `make_packed_api` before `flatten_buffer`, which changes the shapes of parameters. `split_host_device` comes last, because what a
/// device function uses is settled only then.
///
/// # Errors
/// `schedule`: a step is no primitive. `unknown-pass`: the attribute `passes` has what is no pass of [`ON_REQUEST`].
pub fn pipeline_of(func: &PrimFunc) -> Result<Vec<&'static str>, Vec<Diagnostic>> {
    with_asked(func, DEFAULT_PIPELINE)
}

/// The names of the passes for a function, with those of a preset at the end.
fn with_asked(func: &PrimFunc, preset: &'static [&'static str]) -> Result<Vec<&'static str>, Vec<Diagnostic>> {
    let blocks = lower_blocks::is_wanted(func).then_some("lower_blocks");
    let steps = schedule::names(func)?;
    let neighbour = |name: &str| LATE.iter().find(|(late, _)| *late == name).map(|(_, place)| *place);
    let asked = asked(func)?;
    let early = asked.iter().copied().filter(|name| neighbour(name).is_none());
    let mut names: Vec<&'static str> = blocks.into_iter().chain(steps).chain(early).collect();
    for name in preset {
        names.extend(asked.iter().filter(|late| neighbour(late) == Some(Place::Before(name))));
        names.push(name);
        names.extend(asked.iter().filter(|late| neighbour(late) == Some(Place::Behind(name))));
    }
    names.extend(asked.iter().filter(|late| neighbour(late) == Some(Place::Last)));
    Ok(names)
}

/// The passes that a function asks for, in order.
fn asked(func: &PrimFunc) -> Result<Vec<&'static str>, Vec<Diagnostic>> {
    let fault = |message: String, help: String| vec![Diagnostic::error("unknown-pass", None, message).with_help(help)];
    let mut found = Vec::new();
    for (_, value) in func.attrs.other.iter().filter(|(key, _)| key == PASSES_ATTRIBUTE) {
        let help = || format!("a list of these: {}", ON_REQUEST.join(", "));
        let AttrValue::List(names) = value else {
            return Err(fault(format!("the attribute `{PASSES_ATTRIBUTE}` is no list of names"), help()));
        };
        for name in names {
            let AttrValue::Str(name) = name else {
                return Err(fault(format!("the attribute `{PASSES_ATTRIBUTE}` has what is no name"), help()));
            };
            let known = ON_REQUEST.iter().find(|known| *known == name);
            found.push(*known.ok_or_else(|| fault(format!("there is no pass `{name}` to ask for"), help()))?);
        }
    }
    Ok(found)
}

/// Whether a function asks for a pass.
fn is_asked(func: &PrimFunc, name: &str) -> bool {
    asked(func).is_ok_and(|found| found.contains(&name))
}

/// Takes a pass from the list of those that a function asks for, because it ran and the request would mean something else behind it.
fn answered(func: &mut PrimFunc, name: &str) {
    for (key, value) in &mut func.attrs.other {
        if let (PASSES_ATTRIBUTE, AttrValue::List(names)) = (key.as_str(), value) {
            names.retain(|asked| !matches!(asked, AttrValue::Str(asked) if asked == name));
        }
    }
    let is_empty = |value: &AttrValue| matches!(value, AttrValue::List(names) if names.is_empty());
    func.attrs.other.retain(|(key, value)| key != PASSES_ATTRIBUTE || !is_empty(value));
}

/// Returns the pass of that name, which may be the one that TVM has for it ([`TVM_NAMES`]).
///
/// # Errors
/// `unknown-pass`; the help names the nearest pass.
pub fn pass_by_name(name: &str) -> Result<&'static Pass, Diagnostic> {
    let mut name = name;
    while let Some((package, rest)) = name.split_once('.')
        && sequence::TVM_PACKAGES.contains(&package)
    {
        name = rest;
    }
    if name.is_empty() {
        let help = "names of passes are separated by one comma each";
        return Err(Diagnostic::error("unknown-pass", None, "a name of a pass is empty").with_help(help));
    }
    let name = TVM_NAMES.iter().find(|(tvm, _)| *tvm == name).map_or(name, |(_, ours)| *ours);
    if let Some(pass) = PASSES.iter().find(|pass| pass.name == name) {
        return Ok(pass);
    }
    let all: Vec<_> = PASSES.iter().map(|pass| pass.name).collect();
    let nearest = all.iter().map(|known| (distance(name, known), *known)).min();
    let longer = || all.iter().find(|known| name.len() > 3 && known.starts_with(name));
    let help = match nearest {
        _ if PRESETS.iter().any(|preset| preset.name == name) => {
            format!("`{name}` is a preset: `--pipeline {name}` runs its passes")
        }
        _ if let Some(known) = longer() => format!("did you mean `{known}`?"),
        Some((distance, known)) if distance <= known.len() / 2 => format!("did you mean `{known}`?"),
        _ => format!("the passes are {}", all.join(", ")),
    };
    Err(Diagnostic::error("unknown-pass", None, format!("there is no pass `{name}`")).with_help(help))
}

/// Levenshtein distance in bytes. Names longer than any pass are cut: they are far from all of them.
fn distance(a: &str, b: &str) -> usize {
    let a = &a.as_bytes()[..a.len().min(64)];
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(*x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

//! Lists of passes as values: what `opt -p` and `check -p` read, and the presets of `--pipeline`.
//!
//! ```text
//! -p split=i:4,unroll=i_inner,FlattenBuffer     three passes, the first two with a request
//! --pipeline cpu                                the passes of a preset, in so far as a function wants them
//! ```

use tilewright_ir::{Diagnostic, PrimFunc};

use super::{DEFAULT_PIPELINE, Pass, pass_by_name, with_asked};

/// A pass of a list, and the text behind its `=`.
#[derive(Clone, Debug)]
pub struct PassCall {
    /// The pass.
    pub pass: &'static Pass,
    /// What is asked of it, such as `i:4` in `split=i:4`.
    pub request: Option<String>,
    /// Whether it runs only on a program that wants it, as the passes of a preset do.
    pub if_wanted: bool,
}

impl PassCall {
    /// Returns whether the pass runs on a program: the one that the passes in front of it made, which may have loops to vectorize or
    /// reductions across threads that the program at the start had not.
    pub fn runs_on(&self, func: &PrimFunc) -> bool {
        !self.if_wanted || (self.pass.wanted)(func)
    }

    /// Returns a function with the request among its attributes, where the pass looks for it.
    ///
    /// # Errors
    /// The pass takes no request, or not this one. Places are in the text of the request.
    pub fn ask(&self, func: &PrimFunc) -> Result<PrimFunc, Diagnostic> {
        let mut func = func.clone();
        let Some(text) = &self.request else { return Ok(func) };
        let Some(request) = self.pass.request else {
            let message = format!("`{}` takes no `=`", self.pass.name);
            return Err(Diagnostic::error("pass-argument", None, message).with_help("name the pass alone"));
        };
        request(&mut func, text)?;
        Ok(func)
    }
}

impl From<&'static Pass> for PassCall {
    fn from(pass: &'static Pass) -> Self {
        Self { pass, request: None, if_wanted: false }
    }
}

/// A named list of passes.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name on the command line.
    pub name: &'static str,
    /// A description of one line.
    pub summary: &'static str,
    /// The passes behind those for blocks and schedules, in order.
    pub passes: &'static [&'static str],
}

/// The presets; the first one is the default.
pub static PRESETS: &[Preset] = &[
    Preset {
        name: "opencl",
        summary: "layouts, flat buffers, vectors and textures for any OpenCL device",
        passes: DEFAULT_PIPELINE,
    },
    Preset {
        name: "adreno",
        summary: "as opencl, with unrolled loops and indices of 32 bits around texture accesses",
        passes: &[
            "lower_thread_allreduce",
            "apply_buffer_transforms",
            "tile_layout",
            "flatten_buffer",
            "vectorize",
            "lower_texture",
            "unroll_loop",
            "narrow_index_types",
            "simplify",
            "remove_no_op",
        ],
    },
    Preset {
        name: "cpu",
        summary: "loops without guards in their main part, then layouts, flat buffers, vectors and unrolled loops",
        passes: &[
            "loop_partition",
            "apply_buffer_transforms",
            "tile_layout",
            "flatten_buffer",
            "vectorize",
            "lower_texture",
            "unroll_loop",
            "simplify",
            "remove_no_op",
        ],
    },
];

/// Which passes run on a function.
#[derive(Clone, Debug)]
pub enum Pipeline {
    /// Blocks are lowered, the steps of the schedule and the passes that the function names are applied, and then those passes of a preset
    /// run that the function wants.
    Preset(&'static Preset),
    /// Exactly these passes.
    Passes(Vec<PassCall>),
}

impl Default for Pipeline {
    fn default() -> Self {
        Self::Preset(&PRESETS[0])
    }
}

impl Pipeline {
    /// Returns the passes for a function, in order; of those of a preset, each that is wanted when its turn comes
    /// ([`PassCall::runs_on`]).
    ///
    /// # Errors
    /// `schedule`: a step of the schedule is no primitive. `unknown-pass`: the function names what is no pass.
    pub fn calls(&self, func: &PrimFunc) -> Result<Vec<PassCall>, Vec<Diagnostic>> {
        let preset = match self {
            Self::Passes(calls) => return Ok(calls.clone()),
            Self::Preset(preset) => preset,
        };
        let names = with_asked(func, preset.passes)?;
        let passes = names.into_iter().map(|name| pass_by_name(name).map_err(|fault| vec![fault]));
        // A step of a schedule is wanted because it is there, and so is a pass that the function names.
        let call =
            |pass: &'static Pass| PassCall { if_wanted: preset.passes.contains(&pass.name), ..PassCall::from(pass) };
        Ok(passes.collect::<Result<Vec<_>, _>>()?.into_iter().map(call).collect())
    }
}

/// Reads a list of passes, separated by commas outside of brackets: `a,b=A:{1,0:T(8,128)}` has the entries `a` and
/// `b=A:{1,0:T(8,128)}`.
///
/// # Errors
/// `unknown-pass`.
pub fn read_passes(list: &str) -> Result<Vec<PassCall>, Diagnostic> {
    entries(list).into_iter().map(read_pass).collect()
}

/// Reads one entry of a list: a pass, and its request behind `=`.
fn read_pass(entry: &str) -> Result<PassCall, Diagnostic> {
    let (name, request) = entry.split_once('=').map_or((entry, None), |(name, text)| (name, Some(text.to_owned())));
    Ok(PassCall { pass: pass_by_name(name)?, request, if_wanted: false })
}

/// The entries of a list.
fn entries(list: &str) -> Vec<&str> {
    let mut depth = 0usize;
    let is_comma = |c: char| {
        match c {
            '{' | '(' => depth += 1,
            '}' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    list.split(is_comma).collect()
}

/// Returns the preset of that name.
///
/// # Errors
/// `unknown-pipeline`; the help lists the presets.
pub fn preset_by_name(name: &str) -> Result<&'static Preset, Diagnostic> {
    let known: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    PRESETS.iter().find(|preset| preset.name == name).ok_or_else(|| {
        Diagnostic::error("unknown-pipeline", None, format!("there is no pipeline `{name}`"))
            .with_help(format!("the pipelines are {}", known.join(", ")))
    })
}

/// The packages of TVM in front of the names of its passes, as in what it prints after each of them: `tir.StorageRewrite`.
pub(super) static TVM_PACKAGES: [&str; 5] = ["tvm", "tir", "tirx", "s_tir", "transform"];

/// The names that TVM has for passes of the table, in the forms of `tvm.tir.transform` and of its sources.
pub static TVM_NAMES: &[(&str, &str)] = &[
    ("ApplyLayoutTransforms", "apply_buffer_transforms"),
    ("CompactBufferAllocation", "compact_buffer_allocation"),
    ("ConvertBlocksToOpaque", "lower_blocks"),
    ("ConvertSSA", "convert_ssa"),
    ("FlattenBuffer", "flatten_buffer"),
    ("InjectDoubleBuffer", "inject_double_buffer"),
    ("InjectVirtualThread", "inject_virtual_thread"),
    ("LoopPartition", "loop_partition"),
    ("LowerInitBlock", "lower_blocks"),
    ("LowerMatchBuffer", "lower_blocks"),
    ("LowerOpaqueBlock", "lower_blocks"),
    ("LowerThreadAllreduce", "lower_thread_allreduce"),
    ("MakePackedAPI", "make_packed_api"),
    ("NarrowDataType", "narrow_index_types"),
    ("PointerValueTypeRewrite", "vector_type_rewrite"),
    ("RemoveNoOp", "remove_no_op"),
    ("Simplify", "simplify"),
    ("SplitHostDevice", "split_host_device"),
    ("StmtSimplify", "simplify"),
    ("StorageFlatten", "flatten_buffer"),
    ("StorageRewrite", "storage_rewrite"),
    ("TextureFlatten", "lower_texture"),
    ("ThreadSync", "thread_sync"),
    ("UnrollLoop", "unroll_loop"),
    ("VectorTypeRewrite", "vector_type_rewrite"),
    ("VectorizeLoop", "vectorize"),
    ("narrow_data_type", "narrow_index_types"),
    ("vectorize_loop", "vectorize"),
];

#[cfg(test)]
mod tests {
    use super::super::PASSES;
    use super::*;

    #[test]
    fn every_name_leads_to_a_pass() {
        for (name, pass) in TVM_NAMES {
            assert_eq!(pass_by_name(name).map(|found| found.name).ok(), Some(*pass), "{name}");
            assert!(PASSES.iter().all(|pass| pass.name != *name));
        }
        for name in PRESETS.iter().flat_map(|preset| preset.passes) {
            assert!(PASSES.iter().any(|pass| pass.name == *name), "{name}");
        }
    }

    #[test]
    fn commas_in_brackets_do_not_separate() {
        let calls = read_passes("tile_layout=A:{1,0:T(8,128)},FlattenBuffer").unwrap_or_default();
        let names: Vec<_> = calls.iter().map(|call| (call.pass.name, call.request.as_deref())).collect();
        assert_eq!(names, [("tile_layout", Some("A:{1,0:T(8,128)}")), ("flatten_buffer", None)]);
        assert!(preset_by_name("gpu").is_err());
    }
}

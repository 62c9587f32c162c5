//! A planned network as a folder that a host without Tilewright runs.
//!
//! | file | contents |
//! |---|---|
//! | `NAME.cl` | the kernels of one function |
//! | `weights.bin` | the packed constants, one behind the other |
//! | `plan.txt` | memory, launches in order, inputs and outputs: one line each, which the host executes |
//! | `manifest.json` | the same for other tools: `tilewright.network/1` |
//! | `graph.json` | the graph with its plan, as the JSON of TVM's graph executor |
//! | `host.c` | a host in C99 and OpenCL 1.2, with the headers `plan.h`, `exchange.h`, `npy.h`, `words.h` and `files.h` |
//! | `opencl.h`, `pack.h` | declarations of OpenCL; the functions that pack |
//!
//! Kernels, memory and launches are those of [`crate::runtime::ship`], which are those that `plan --run` runs.

mod manifest;
mod plan_text;

use tilewright_device::{BufferSpec, ChannelType, Channels, MemoryKind};
use tilewright_interp::Tensor;
use tilewright_ir::{Diagnostic, MemoryPlan, Region, TensorRole, TextureLimits};

use crate::graph::{self, NamedGraph};
use crate::network::place::Arrangement;
use crate::runtime::Shipment;

/// The files of the host: a program, and headers that it includes.
const HOST: [(&str, &[u8]); 8] = [
    ("host.c", include_bytes!("host/host.c")),
    ("plan.h", include_bytes!("host/plan.h")),
    ("exchange.h", include_bytes!("host/exchange.h")),
    ("npy.h", include_bytes!("host/npy.h")),
    ("words.h", include_bytes!("host/words.h")),
    ("files.h", include_bytes!("host/files.h")),
    ("opencl.h", include_bytes!("host/opencl.h")),
    ("pack.h", include_bytes!("host/pack.h")),
];

/// A planned network whose kernels are proved.
#[derive(Debug)]
pub struct Deployment<'a> {
    /// The model or graph.
    pub file: &'a str,
    /// The target.
    pub target: &'a str,
    /// The largest texture that the plan was made for.
    pub limits: TextureLimits,
    /// Tensors and steps.
    pub graph: &'a NamedGraph,
    /// Their places.
    pub plan: &'a MemoryPlan,
    /// Kernels, memory and launches.
    pub shipment: &'a Shipment,
    /// What each tensor of the graph holds.
    pub arguments: Vec<Argument>,
}

/// What a tensor of a graph holds.
#[derive(Clone, Debug)]
pub struct Argument {
    /// The name of the logical tensor.
    pub value: String,
    /// Its extents.
    pub shape: Vec<u64>,
    /// Its arrangement in memory.
    pub arrangement: Arrangement,
    /// The packed elements of a constant.
    pub constant: Option<Tensor>,
}

/// A file of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its contents.
    pub contents: Vec<u8>,
}

/// Where packed constants lie in `weights.bin`.
#[derive(Clone, Debug, Default)]
struct Weights {
    bytes: Vec<u8>,
    /// For each tensor the offset of its bytes and their number.
    places: Vec<Option<(usize, usize)>>,
}

/// A part of a memory object, in bytes (`y` is 0, `height` 1) or texels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
struct Part {
    memory: usize,
    x: u64,
    y: u64,
    width: u64,
    height: u64,
    bytes: u64,
}

impl Deployment<'_> {
    /// The files of the folder.
    ///
    /// # Errors
    /// The graph has a defect.
    pub fn files(&self) -> Result<Vec<File>, Diagnostic> {
        let weights = self.weights();
        let mut files: Vec<File> = Vec::new();
        let mut add = |name: &str, contents: Vec<u8>| files.push(File { name: name.to_owned(), contents });
        for (number, program) in self.shipment.programs.iter().enumerate() {
            add(&self.source_name(number), program.source.clone().into_bytes());
        }
        add("plan.txt", plan_text::write(self, &weights).into_bytes());
        add("manifest.json", manifest::write(self, &weights).into_bytes());
        add("graph.json", graph::write(self.graph, Some(self.plan))?.into_bytes());
        for (name, contents) in HOST {
            add(name, contents.to_vec());
        }
        add("weights.bin", weights.bytes);
        Ok(files)
    }

    /// The name of the file of a program.
    fn source_name(&self, program: usize) -> String {
        let program = &self.shipment.programs[program];
        let of_word = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
        let stem: String = program.metadata.function.chars().map(of_word).collect();
        format!("{stem}.{}", program.target.file_suffix)
    }

    fn weights(&self) -> Weights {
        let mut weights = Weights::default();
        for argument in &self.arguments {
            let place = argument.constant.as_ref().map(|constant| {
                let offset = weights.bytes.len();
                weights.bytes.extend(constant.bytes());
                // Constants begin at multiples of 64 bytes, so that a host may map the file and pass parts of it on.
                weights.bytes.resize(weights.bytes.len().next_multiple_of(64), 0);
                (offset, constant.bytes().len())
            });
            weights.places.push(place);
        }
        weights
    }

    /// Where a tensor lies.
    fn part(&self, tensor: usize) -> Part {
        let place = self.plan.places[tensor];
        let texel = match self.shipment.memory[place.pool].kind {
            MemoryKind::Buffer => 1,
            MemoryKind::Image2d { format, .. } => format.texel_bytes(),
        };
        match place.region {
            Region::Bytes { offset, size } => {
                Part { memory: place.pool, x: offset, y: 0, width: size, height: 1, bytes: size }
            }
            Region::Texels { x, y, width, height } => {
                Part { memory: place.pool, x, y, width, height, bytes: width * height * texel }
            }
        }
    }

    /// The tensors that the caller gives when it runs the network: inputs that are no constants.
    fn inputs(&self) -> impl Iterator<Item = usize> + '_ {
        self.graph.inputs.iter().copied().filter(|&tensor| self.arguments[tensor].constant.is_none())
    }

    /// Whether a memory object receives reports of checked kernels.
    fn is_report(&self, memory: usize) -> bool {
        self.shipment.steps.iter().any(|step| step.report == Some(memory))
    }

    fn role(&self, tensor: usize) -> &'static str {
        let (info, argument) = (&self.graph.graph.tensors[tensor], &self.arguments[tensor]);
        match (info.role, info.view_of) {
            (TensorRole::Input | TensorRole::Constant, _) if argument.constant.is_some() => "constant",
            // The caller gives what the files do not hold.
            (TensorRole::Input | TensorRole::Constant, _) => "input",
            (TensorRole::Output, _) => "output",
            (TensorRole::Intermediate, Some(_)) => "view",
            (TensorRole::Intermediate, None) => "intermediate",
        }
    }
}

/// The name of an arrangement in the files; `pack.h` has the function `tw_place_NAME`.
fn arrangement_name(arrangement: Arrangement) -> &'static str {
    match arrangement {
        Arrangement::Plain => "row_major",
        Arrangement::Channels4 => "nchw4c",
        Arrangement::Filter4 => "oihw4o",
        Arrangement::Vector4 => "c4",
    }
}

/// The number of OpenCL's constant for the channels of a texel, and its name.
fn order(channels: Channels) -> (u32, &'static str) {
    let number = match channels {
        Channels::R => 0x10B0,
        Channels::Rg => 0x10B2,
        Channels::Rgba => 0x10B5,
    };
    (number, channels.name())
}

/// The number of OpenCL's constant for a channel type, and its name.
fn channel(channel: ChannelType) -> (u32, &'static str) {
    match channel {
        ChannelType::I8 => (0x10D7, "CL_SIGNED_INT8"),
        ChannelType::I16 => (0x10D8, "CL_SIGNED_INT16"),
        ChannelType::I32 => (0x10D9, "CL_SIGNED_INT32"),
        ChannelType::U8 => (0x10DA, "CL_UNSIGNED_INT8"),
        ChannelType::U16 => (0x10DB, "CL_UNSIGNED_INT16"),
        ChannelType::U32 => (0x10DC, "CL_UNSIGNED_INT32"),
        ChannelType::F16 => (0x10DD, "CL_HALF_FLOAT"),
        ChannelType::F32 => (0x10DE, "CL_FLOAT"),
    }
}

/// FNV-1a with 64 bits: enough to notice a file that was damaged on its way.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Whether kernels may need memory as large as this specification says; images of no texels get one.
fn extents(spec: &BufferSpec) -> Option<[u64; 2]> {
    match spec.kind {
        MemoryKind::Buffer => None,
        MemoryKind::Image2d { width, height, .. } => Some([width.max(1), height.max(1)]),
    }
}

//! `plan.txt`: what a host does to run the network, one line for each action, in order.
//!
//! ```text
//! tilewright-network 2
//! extension NAME                                          the device must have it
//! buffer BYTES | image WIDTH HEIGHT ORDER CHANNEL | report    memory, numbered from 0
//! program HASH FILE OPTIONS                               numbered from 0
//! weights BYTES HASH                                      the file weights.bin
//! constant REGION OFFSET NAME                             copy from weights.bin
//! input REGION TYPE ARRANGEMENT RANK EXTENTS NAME         read, pack, copy
//! launch PROGRAM GX GY GZ LX LY LZ KERNEL                 then a line for each argument; LX = 0: the driver's choice
//! memory NUMBER | value HEX | local BYTES
//! output REGION TYPE ARRANGEMENT RANK EXTENTS NAME        copy, unpack, write
//! end HASH                                                of everything before this line
//! ```
//!
//! A hash is that of FNV-1a with 64 bits, in hexadecimal; a host compares it before it believes the contents. A `REGION` is
//! `MEMORY X Y WIDTH HEIGHT`. Names are the rest of their line.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use tilewright_device::{Arg, Launch, MemoryKind};
use tilewright_ir::{DataType, ScalarType};

use super::{Deployment, Part, Weights, arrangement_name, channel, extents, hash, order};

/// The first line.
const FIRST: &str = "tilewright-network 2";

/// Writes `plan.txt`.
pub(super) fn write(deployment: &Deployment<'_>, weights: &Weights) -> String {
    let mut out = Lines(format!("{FIRST}\n"));
    let shipment = deployment.shipment;
    let extensions: BTreeSet<&String> =
        shipment.programs.iter().flat_map(|program| &program.metadata.required_extensions).collect();
    for name in extensions {
        out.line(format_args!("extension {name}"));
    }
    for (number, spec) in shipment.memory.iter().enumerate() {
        match (spec.kind, extents(spec)) {
            (MemoryKind::Image2d { format, .. }, Some([width, height])) => {
                let (order, channel) = (order(format.channels).0, channel(format.ty).0);
                out.line(format_args!("image {width} {height} {order} {channel}"));
            }
            _ if deployment.is_report(number) => out.line(format_args!("report")),
            (MemoryKind::Buffer | MemoryKind::Image2d { .. }, _) => out.line(format_args!("buffer {}", spec.bytes)),
        }
    }
    for (number, program) in shipment.programs.iter().enumerate() {
        let hash = format!("{:016x}", hash(program.source.as_bytes()));
        let words = [hash, deployment.source_name(number)].into_iter().chain(program.metadata.build_options.clone());
        out.line(format_args!("program {}", words.collect::<Vec<_>>().join(" ")));
    }
    out.line(format_args!("weights {} {:016x}", weights.bytes.len(), hash(&weights.bytes)));
    for (tensor, place) in weights.places.iter().enumerate() {
        if let Some((offset, _)) = place {
            let name = &deployment.graph.graph.tensors[tensor].name;
            out.line(format_args!("constant {} {offset} {}", part(deployment.part(tensor)), name));
        }
    }
    for tensor in deployment.inputs() {
        out.line(format_args!("input {}", exchanged(deployment, tensor)));
    }
    for step in &shipment.steps {
        for launch in &step.launches {
            out.launch(step.program, launch);
        }
    }
    for &tensor in &deployment.graph.outputs {
        out.line(format_args!("output {}", exchanged(deployment, tensor)));
    }
    let hash = hash(out.0.as_bytes());
    out.line(format_args!("end {hash:016x}"));
    out.0
}

/// The text under construction.
struct Lines(String);

impl Lines {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.0, "{line}");
    }

    fn launch(&mut self, program: usize, launch: &Launch) {
        let ([gx, gy, gz], [lx, ly, lz]) = (launch.global, launch.local.unwrap_or([0; 3]));
        let kernel = &launch.kernel;
        self.line(format_args!("launch {program} {gx} {gy} {gz} {lx} {ly} {lz} {kernel}"));
        for arg in &launch.args {
            match arg {
                Arg::Memory(memory) => self.line(format_args!("memory {memory}")),
                Arg::Scalar(scalar) => self.line(format_args!("value {}", hexadecimal(&scalar.to_bytes()))),
                Arg::Local(bytes) => self.line(format_args!("local {bytes}")),
            }
        }
    }
}

/// Bytes as hexadecimal digits.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn part(part: Part) -> String {
    let Part { memory, x, y, width, height, bytes: _ } = part;
    format!("{memory} {x} {y} {width} {height}")
}

/// The fields of an input or output.
fn exchanged(deployment: &Deployment<'_>, tensor: usize) -> String {
    let (info, argument) = (&deployment.graph.graph.tensors[tensor], &deployment.arguments[tensor]);
    let mut extents = argument.shape.clone();
    // NumPy has no vectors: their lanes are one more axis.
    if !info.dtype.is_scalar() {
        extents.push(u64::from(info.dtype.lanes));
    }
    let mut fields = vec![
        part(deployment.part(tensor)),
        numpy_type(info.dtype).to_owned(),
        arrangement_name(argument.arrangement).to_owned(),
        extents.len().to_string(),
    ];
    fields.extend(extents.iter().map(u64::to_string));
    fields.push(argument.value.clone());
    fields.join(" ")
}

/// The element type as NumPy writes it. NumPy has no bfloat16: its bits are given as numbers.
pub(super) fn numpy_type(dtype: DataType) -> &'static str {
    match dtype.scalar {
        ScalarType::Bool => "|b1",
        ScalarType::Int8 => "|i1",
        ScalarType::UInt8 => "|u1",
        ScalarType::Int16 => "<i2",
        ScalarType::UInt16 | ScalarType::BFloat16 => "<u2",
        ScalarType::Float16 => "<f2",
        ScalarType::Int32 => "<i4",
        ScalarType::UInt32 => "<u4",
        ScalarType::Float32 => "<f4",
        ScalarType::Int64 => "<i8",
        ScalarType::UInt64 | ScalarType::Handle => "<u8",
        ScalarType::Float64 => "<f8",
    }
}

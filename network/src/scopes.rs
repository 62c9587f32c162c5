//! `collect_storage_info`: decides for each value of a model whether it is kept in a texture, and says why
//! (texture RFC, L1.1).
//!
//! ```text
//! data   [1, 3, 7, 9]   global    the caller writes it
//! c      [1, 5, 4, 5]   texture   `pool` reads 2x2 windows of it
//! prob   [1, 10]        global    it has 2 axes; textures hold N, C, H, W
//! ```
//!
//! Every operator can read an operand from a buffer, and all but `Reshape` from a texture. What remains is a choice between two
//! costs: the bytes that a conversion moves, and the reads that would not be cached as textures are. A reader *wants* a texture if
//! it reads an element more often than a conversion does, which is once for reading and once for writing. A value is in
//! a texture unless that needs a conversion for its readers and the buffer needs none.

use tilewright_ir::{Room, TextureLimits};

use crate::model::{Model, Op};
use crate::ops::unwritable;
use crate::place::{Arrangement, Operand};
use crate::profile::Profile;

/// The place of a value, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// The arrangement of the value where its node writes it.
    pub arrangement: Arrangement,
    /// The reason.
    pub reason: Reason,
}

/// The reason for a place. Nodes are given by their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// In a texture: a node reads windows that overlap, or the same element for many results.
    Wanted {
        /// The node.
        node: usize,
    },
    /// In a texture: nothing needs a buffer.
    NothingAgainst,
    /// In a buffer: the target keeps nothing in textures.
    NoTextures,
    /// In a buffer: the caller supplies the value row-major.
    CallerGives,
    /// In a buffer: the caller takes the value row-major.
    CallerTakes,
    /// In a buffer: the value is no image with channels.
    Rank(usize),
    /// In a buffer: the texture would be larger than the limits.
    Limits {
        /// Texels in a row.
        width: u64,
        /// Rows.
        height: u64,
        /// The largest texture of the target.
        largest: TextureLimits,
    },
    /// In a buffer: the node that computes the value cannot write whole texels.
    Unwritable {
        /// The node.
        node: usize,
        /// Why.
        why: String,
    },
    /// In a buffer: a reader needs the value row-major, and no reader wants a texture.
    ReadAsBuffer {
        /// The reader.
        node: usize,
    },
}

impl Reason {
    /// The reason as a sentence without a full stop.
    pub fn sentence(&self, model: &Model) -> String {
        let name = |node: &usize| model.nodes[*node].name.as_str();
        match self {
            Self::Wanted { node } => format!("`{}` reads each element several times", name(node)),
            Self::NothingAgainst => "no reader needs a buffer".to_owned(),
            Self::NoTextures => "the target keeps tensors in buffers".to_owned(),
            Self::CallerGives => "the caller writes it".to_owned(),
            Self::CallerTakes => "the caller reads it".to_owned(),
            Self::Rank(rank) => format!("it has {rank} axes, and textures hold N, C, H, W"),
            Self::Limits { width, height, largest } => {
                format!("its texture would have {width}x{height} texels, and the largest has {largest}")
            }
            Self::Unwritable { node, why } => format!("`{}` cannot write texels: {why}", name(node)),
            Self::ReadAsBuffer { node } => format!("`{}` reads it row-major", name(node)),
        }
    }
}

/// Returns the place of each value; `None` for a constant, whose arrangement depends on the node that reads it.
pub fn collect_storage_info(model: &Model, profile: &Profile) -> Vec<Option<Storage>> {
    let place = |(value, info): (usize, &crate::model::Value)| {
        if info.contents.is_some() {
            return None;
        }
        let reason = reason(model, profile, value);
        let arrangement = if reason.is_texture() { Arrangement::Channels4 } else { Arrangement::Plain };
        Some(Storage { arrangement, reason })
    };
    model.values.iter().enumerate().map(place).collect()
}

impl Reason {
    /// Whether the value is in a texture.
    pub fn is_texture(&self) -> bool {
        match self {
            Self::Wanted { .. } | Self::NothingAgainst => true,
            Self::NoTextures
            | Self::CallerGives
            | Self::CallerTakes
            | Self::Rank(_)
            | Self::Limits { .. }
            | Self::Unwritable { .. }
            | Self::ReadAsBuffer { .. } => false,
        }
    }
}

fn reason(model: &Model, profile: &Profile, value: usize) -> Reason {
    if !profile.textures {
        return Reason::NoTextures;
    }
    if model.inputs.contains(&value) {
        return Reason::CallerGives;
    }
    if model.outputs.contains(&value) {
        return Reason::CallerTakes;
    }
    if let Err(reason) = fits(&model.values[value].shape, profile) {
        return reason;
    }
    let operand = in_texture(&model.values[value].shape);
    let writer = model.nodes.iter().position(|node| node.output == value);
    if let Some(node) = writer {
        let Op::Reshape = model.nodes[node].op else {
            let read = model.nodes[node].inputs.iter().map(|&input| Operand::plain(&model.values[input].shape));
            let why = unwritable(&model.nodes[node].op, &read.collect::<Vec<_>>(), &operand);
            return why.map_or_else(|| chosen(model, value), |why| Reason::Unwritable { node, why });
        };
        let why = "it shows the memory of a row-major tensor".to_owned();
        return Reason::Unwritable { node, why };
    }
    chosen(model, value)
}

/// The choice for a value that could be in either place. The conversions that each place needs move the same bytes, so that
/// only their number counts.
fn chosen(model: &Model, value: usize) -> Reason {
    let wanting = model.readers(value).find(|&node| wants_texture(model, node, value));
    let row_major = model.readers(value).find(|&node| needs_buffer(&model.nodes[node].op));
    match (wanting, row_major) {
        (Some(node), _) => Reason::Wanted { node },
        (None, Some(node)) => Reason::ReadAsBuffer { node },
        (None, None) => Reason::NothingAgainst,
    }
}

/// Whether an operand has to be row-major: its memory is shown in another shape.
pub fn needs_buffer(op: &Op) -> bool {
    match op {
        Op::Reshape => true,
        Op::Conv { .. }
        | Op::MaxPool(_)
        | Op::AveragePool { .. }
        | Op::GlobalAveragePool
        | Op::Unary(_)
        | Op::Binary(_)
        | Op::Sum
        | Op::Concat { .. }
        | Op::BatchNormalization { .. }
        | Op::Lrn { .. }
        | Op::Gemm { .. }
        | Op::MatMul
        | Op::Softmax { .. }
        | Op::Transpose { .. }
        | Op::Pad { .. } => false,
    }
}

/// Whether a node reads each element of a value more than twice, so that a conversion into a texture is cheaper than reading a buffer.
pub fn wants_texture(model: &Model, node: usize, value: usize) -> bool {
    let node = &model.nodes[node];
    if node.inputs.first() != Some(&value) {
        return false;
    }
    let (window, results) = match &node.op {
        Op::Conv { window, groups } => {
            let filters = model.values[node.output].shape.get(1).copied().unwrap_or(1);
            (window, (filters / (*groups).max(1)).div_ceil(4))
        }
        Op::MaxPool(window) | Op::AveragePool { window, .. } => (window, 1),
        Op::GlobalAveragePool
        | Op::Unary(_)
        | Op::Binary(_)
        | Op::Sum
        | Op::Concat { .. }
        | Op::BatchNormalization { .. }
        | Op::Lrn { .. }
        | Op::Gemm { .. }
        | Op::MatMul
        | Op::Softmax { .. }
        | Op::Reshape
        | Op::Transpose { .. }
        | Op::Pad { .. } => return false,
    };
    let reads = window.kernel[0].saturating_mul(window.kernel[1]).saturating_mul(results);
    reads > window.strides[0].saturating_mul(window.strides[1]).saturating_mul(2)
}

/// A value of this shape in a texture.
fn in_texture(shape: &[u64]) -> Operand {
    Operand { arrangement: Arrangement::Channels4, ..Operand::plain(shape) }
}

/// Whether a value of this shape may be in a texture; otherwise why not.
///
/// # Errors
/// The reason, [`Reason::Rank`] or [`Reason::Limits`].
pub fn fits(shape: &[u64], profile: &Profile) -> Result<(), Reason> {
    if shape.len() != 4 {
        return Err(Reason::Rank(shape.len()));
    }
    within_limits(&in_texture(shape), profile)
}

/// Whether the texture of an operand is within the limits of the target.
///
/// # Errors
/// [`Reason::Limits`].
pub fn within_limits(operand: &Operand, profile: &Profile) -> Result<(), Reason> {
    let physical = operand.physical();
    let product = |extents: &[u64]| extents.iter().fold(1u64, |product, &extent| product.saturating_mul(extent));
    let (rows, columns) = match operand.arrangement {
        Arrangement::Plain | Arrangement::Vector4 => return Ok(()),
        Arrangement::Channels4 => physical[..4].split_at(3),
        Arrangement::Filter4 => physical[..4].split_at(1),
    };
    let room = Room::Texels { width: product(columns), height: product(rows) };
    match room {
        Room::Texels { width, height }
            if profile.pool_rules().pool_width(width) > profile.limits.width || height > profile.limits.height =>
        {
            Err(Reason::Limits { width, height, largest: profile.limits })
        }
        Room::Texels { .. } | Room::Bytes(_) => Ok(()),
    }
}

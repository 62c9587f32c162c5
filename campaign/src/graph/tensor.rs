//! Tensors of generated graphs: memory, element type and extents.

use arbitrary::Unstructured;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tilewright_ir::{DataType, ScalarType, Scope};

use super::shapes_simpler;
use crate::config::Config;
use crate::extents;

/// The memory of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// A buffer.
    Global,
    /// A texture whose last but one axis is its columns; those before are its rows.
    Texture,
    /// A texture whose first axis is its rows.
    Weight,
    /// A texture whose first two axes are its rows.
    Nhwc,
    /// A texture with an explicit axis separator, counted from 1 and modulo the possible positions.
    Cut(usize),
}

impl Memory {
    /// The scope.
    pub fn scope(self) -> Scope {
        match self {
            Self::Global => Scope::Global,
            Self::Texture | Self::Cut(_) => Scope::Texture,
            Self::Weight => Scope::TextureWeight,
            Self::Nhwc => Scope::TextureNhwc,
        }
    }
}

/// A tensor of a recipe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorCase {
    /// The memory.
    pub memory: Memory,
    /// The element type; for textures, the type of a channel.
    #[serde(serialize_with = "write_dtype", deserialize_with = "read_dtype")]
    pub dtype: DataType,
    /// Extents, for textures without the channels. Missing axes have extent 1.
    pub extents: Vec<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde wants")]
fn write_dtype<S: Serializer>(dtype: &DataType, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(dtype)
}

fn read_dtype<'de, D: Deserializer<'de>>(deserializer: D) -> Result<DataType, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

impl TensorCase {
    /// Draws a tensor: a buffer in four cases out of ten, otherwise a texture; one to four axes
    /// with at most [`GraphRanges::elements`](crate::config::GraphRanges::elements) elements in
    /// total. One buffer in forty is empty, one in two has vector elements.
    pub(super) fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        use ScalarType::{Bool, Float16, Float32, Float64, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
        let memory = match u.int_in_range(0..=9)? {
            0..=3 => Memory::Global,
            4 | 5 => Memory::Texture,
            6 => Memory::Weight,
            7 => Memory::Nhwc,
            _ => Memory::Cut(u.int_in_range(0..=4)?),
        };
        let n_axes = u.int_in_range(1..=4)?;
        let mut room = config.graph.elements;
        let mut extents = Vec::with_capacity(n_axes);
        for _ in 0..n_axes {
            let extent = extents::extent(u, config, room.max(1))?;
            room /= extent;
            extents.push(extent.unsigned_abs());
        }
        let turn = u.int_in_range(0..=n_axes - 1)?;
        extents.rotate_left(turn);
        let dtype = if memory == Memory::Global {
            // One buffer in forty has no elements.
            if u.ratio(1, 40)? {
                extents[0] = 0;
            }
            let scalar = *u
                .choose(&[Float32, Float16, Int8, Int64, Int32, UInt8, UInt16, UInt32, UInt64, Int16, Float64, Bool])?;
            DataType::scalar(scalar).with_lanes(*u.choose(&[1, 1, 1, 1, 1, 2, 4, 3, 8, 16])?)
        } else {
            let scalar = *u.choose(&[Float16, Float16, Float32, Float32, Int8, UInt8, Int16, UInt32])?;
            scalar.into()
        };
        Ok(Self { memory, dtype, extents })
    }

    /// The shape, including the channels.
    pub fn shape(&self) -> Vec<u64> {
        let least = match self.memory {
            Memory::Global => return self.extents.clone(),
            Memory::Texture | Memory::Weight | Memory::Cut(_) => 2,
            Memory::Nhwc => 3,
        };
        let mut shape: Vec<u64> = self.extents.iter().map(|&extent| extent.max(1)).collect();
        shape.resize(shape.len().max(least), 1);
        shape.push(4);
        shape
    }

    /// The axis separators.
    pub fn separators(&self) -> Vec<usize> {
        match self.memory {
            Memory::Cut(at) => vec![1 + at % (self.shape().len() - 2)],
            Memory::Global | Memory::Texture | Memory::Weight | Memory::Nhwc => Vec::new(),
        }
    }

    /// Columns and rows of a texture; `None` for a buffer.
    pub fn texels(&self) -> Option<[u64; 2]> {
        let shape = self.shape();
        let rows = match self.memory {
            Memory::Global => return None,
            Memory::Texture => shape.len() - 2,
            Memory::Weight => 1,
            Memory::Nhwc => 2,
            Memory::Cut(_) => self.separators()[0],
        };
        Some([shape[rows..shape.len() - 1].iter().product(), shape[..rows].iter().product()])
    }

    /// With fewer or smaller axes, in simpler memory, or of a simpler type.
    pub(super) fn simpler(&self) -> Vec<Self> {
        let mut found = Vec::new();
        let simplest = Self { memory: Memory::Global, dtype: ScalarType::Int8.into(), extents: self.extents.clone() };
        if self.memory != Memory::Global {
            found.push(simplest);
        } else if self.dtype.lanes > 1 {
            found.push(Self { dtype: self.dtype.scalar.into(), ..self.clone() });
        } else if self.dtype != simplest.dtype {
            found.push(simplest);
        }
        if let Memory::Cut(_) = self.memory {
            found.push(Self { memory: Memory::Texture, ..self.clone() });
        }
        let smaller = shapes_simpler(&self.extents).into_iter().filter(|extents| !extents.is_empty());
        found.extend(smaller.map(|extents| Self { extents, ..self.clone() }));
        found
    }
}

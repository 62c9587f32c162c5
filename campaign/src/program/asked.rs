//! The passes that a generated program asks for by its attribute.

use serde::{Deserialize, Serialize};

/// A pass that runs only where a program asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Requested {
    /// Allocations are shrunk to what is used.
    CompactBufferAllocation,
    /// Buffers that are marked get two halves: all that may have them.
    InjectDoubleBuffer,
    /// Parallel loops are over virtual threads, which are interleaved.
    InjectVirtualThread,
    /// Buffers share memory.
    StorageRewrite,
    /// Buffers become buffers of vectors.
    VectorTypeRewrite,
}

impl Requested {
    /// All of them, in the order in which they are asked for.
    pub const ALL: [Self; 5] = [
        Self::InjectDoubleBuffer,
        Self::InjectVirtualThread,
        Self::CompactBufferAllocation,
        Self::StorageRewrite,
        Self::VectorTypeRewrite,
    ];

    /// The name of the pass.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CompactBufferAllocation => "compact_buffer_allocation",
            Self::InjectDoubleBuffer => "inject_double_buffer",
            Self::InjectVirtualThread => "inject_virtual_thread",
            Self::StorageRewrite => "storage_rewrite",
            Self::VectorTypeRewrite => "vector_type_rewrite",
        }
    }
}

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
    /// The barriers of the program are those that the pass has to find.
    ThreadSync,
    /// The function checks the description of its call.
    MakePackedApi,
    /// Launches become device functions, if the host does nothing by itself.
    SplitHostDevice,
}

impl Requested {
    /// All of them, in the order in which they are asked for.
    pub const ALL: [Self; 8] = [
        Self::InjectDoubleBuffer,
        Self::InjectVirtualThread,
        Self::CompactBufferAllocation,
        Self::StorageRewrite,
        Self::VectorTypeRewrite,
        Self::ThreadSync,
        Self::MakePackedApi,
        Self::SplitHostDevice,
    ];

    /// Of how many programs that ask for passes one asks for this one.
    pub const fn rarity(self) -> u8 {
        match self {
            Self::CompactBufferAllocation
            | Self::InjectDoubleBuffer
            | Self::InjectVirtualThread
            | Self::StorageRewrite
            | Self::VectorTypeRewrite => 2,
            Self::ThreadSync | Self::MakePackedApi | Self::SplitHostDevice => 4,
        }
    }

    /// The name of the pass.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CompactBufferAllocation => "compact_buffer_allocation",
            Self::InjectDoubleBuffer => "inject_double_buffer",
            Self::InjectVirtualThread => "inject_virtual_thread",
            Self::StorageRewrite => "storage_rewrite",
            Self::VectorTypeRewrite => "vector_type_rewrite",
            Self::ThreadSync => "thread_sync",
            Self::MakePackedApi => "make_packed_api",
            Self::SplitHostDevice => "split_host_device",
        }
    }
}

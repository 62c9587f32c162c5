//! Memory that is allocated inside of a kernel: arrays of a work-item, and arrays that the work-items of a group share.
//!
//! ```text
//! for b in 5 (blockIdx.x):               kernel void f(..) {
//!     S: (64,) shared                        local float S[64];
//!     for t in 64 (threadIdx.x):             const int b = get_group_id(0);
//!         acc: (3,) local                    const int t = get_local_id(0);
//!                                            float acc[3];
//! ```

use std::fmt::Write as _;

use tilewright_ir::{Buffer, Diagnostic, ScalarType, Scope, ThreadTag, checked_size};

use super::range::constant;
use super::target::{Refusal, Space};
use super::writer::{Allocation, Writer};

impl Writer {
    /// Declares the memory of an allocation inside of a kernel.
    ///
    /// # Errors
    /// The size is no constant or too large, or the memory would belong to more or to fewer work-items than in the program.
    pub(crate) fn array(&mut self, buffer: &Buffer) -> Result<(), Diagnostic> {
        if buffer.scope.is_texture() {
            let message = format!("texture `{buffer}` is allocated inside a kernel, which has no images of its own");
            return Err(self.error(Refusal::Texture, message).with_help("allocate it around the loops"));
        }
        // The group holds memory that is allocated around the loops over work-items and has elements for each of them.
        let is_thread = |tag: &ThreadTag| matches!(tag, ThreadTag::Thread(_));
        let is_of_one = self.launch.all_bound(&self.bound) || self.bound.iter().any(is_thread);
        let is_of_all = !is_of_one && self.launch.kept.contains(&buffer.data);
        let is_shared = buffer.scope == Scope::Shared || is_of_all;
        (if is_shared { self.check_group(buffer) } else { self.check_own(buffer) })?;
        let extents: Option<Vec<i128>> = buffer.shape.iter().map(constant).collect();
        let Some(extents) = extents else {
            let message = format!("`{buffer}` is allocated inside a kernel with a size that is no constant");
            return Err(self.error(Refusal::PrivateSize, message).with_help("allocate it around the loops"));
        };
        let bytes = checked_size(&extents).ok().and_then(|size| size.checked_mul(buffer.dtype.bytes()));
        // What a group may have differs much between devices, and the host compares; this bounds what C can declare.
        let most = if is_shared { u64::from(u32::MAX) } else { self.target.limits.private_bytes };
        let Some(bytes) = bytes.filter(|&bytes| bytes <= most) else {
            let message = format!("`{buffer}` is larger than the {most} bytes that can be allocated in a kernel");
            return Err(self.error(Refusal::PrivateSize, message).with_help("allocate it around the loops"));
        };
        // Arrays of `half` need an extension; their bits do not.
        let scalar = if buffer.dtype.scalar == ScalarType::Float16 { ScalarType::UInt16 } else { buffer.dtype.scalar };
        let name = self.namer.fresh(&buffer.name);
        let declaration =
            format!("{} {name}[{}];", self.dialect().storage_name(scalar), (bytes / scalar.bytes()).max(1));
        if is_shared {
            let _ = writeln!(self.local_arrays, "    {}{declaration}", self.target.words.local_array);
            self.local_bytes = self.local_bytes.saturating_add(bytes);
        } else {
            self.line(&declaration);
        }
        let allocation = Allocation {
            name,
            space: if is_shared { Space::Local } else { Space::Private },
            scalar,
            small: true,
            texels: None,
            origin: String::new(),
            pool: String::new(),
        };
        self.allocations.insert(buffer.data.clone(), allocation);
        Ok(())
    }

    /// Checks that each group has memory of its own: all loops over groups are around it.
    fn check_group(&self, buffer: &Buffer) -> Result<(), Diagnostic> {
        if self.launch.extents.is_empty() {
            let message =
                format!("`{buffer}` is shared by the work-items of a group, and no loop here is bound to them");
            let help = "bind loops to blockIdx and threadIdx around its uses, or allocate it in scope `local`";
            return Err(self.error(Refusal::Shared, message).with_help(help));
        }
        let mut axes = self.launch.extents.keys();
        if axes.any(|tag| matches!(tag, ThreadTag::Block(_)) && !self.bound.contains(tag)) {
            let message =
                format!("`{buffer}` is shared by work-items, and the work-groups of this launch would share it");
            let help = "allocate it inside of all loops that are bound to blockIdx";
            return Err(self.error(Refusal::Shared, message).with_help(help));
        }
        Ok(())
    }

    /// Checks that each work-item has memory of its own: every launch axis is bound around it.
    fn check_own(&self, buffer: &Buffer) -> Result<(), Diagnostic> {
        if self.launch.all_bound(&self.bound) {
            return Ok(());
        }
        let message = format!("`{buffer}` is allocated between the loops of a launch: work-items would share it");
        let help = "allocate it around all bound loops, inside of them, or in scope `shared`";
        Err(self.error(Refusal::Shared, message).with_help(help))
    }
}

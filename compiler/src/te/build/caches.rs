//! The stages that `cache_read` and `cache_write` add.
//!
//! ```text
//! B[i] = A[i] + 1          s.cache_read(A, local, [B])      A_local[i] = A[i];  B[i] = A_local[i] + 1
//! B[i] = A[i] + 1          s.cache_write(B, local)          B_local[i] = A[i] + 1;  B[i] = B_local[i]
//! ```

use tilewright_ir::{self as ir, Diagnostic};

use super::inline::{effective_body, reads};
use super::schedule::{Schedule, fresh_axes};
use super::stage::{StageData, Work};
use super::{Built, Tensor, TensorKind};

impl Schedule<'_> {
    /// Adds a stage that copies a tensor to a scope, and makes `readers` load the copy. Returns the cache, whose stage can
    /// be scheduled like any other. A cache can be cached again.
    ///
    /// # Errors
    /// `no-stage`; `cache-reader` if no reader is given, or one does not read the tensor itself; `foreign-tensor`.
    pub fn cache_read(&mut self, tensor: Tensor, scope: ir::Scope, readers: &[Tensor]) -> Result<Tensor, Diagnostic> {
        let position = self.position(tensor)?;
        let (source, base) = (tensor.index, self.base(tensor.index));
        let mut reading = Vec::new();
        for &reader in readers {
            let at = self.position(reader)?;
            if !self.reads(at, source)? {
                let message =
                    format!("`{}` does not read `{}`", self.te.buffer(reader)?, self.te.tensors[source].buffer);
                return Err(Diagnostic::error("cache-reader", None, message).with_help("name the tensors that read it"));
            }
            reading.push(at);
        }
        if reading.is_empty() {
            return Err(Diagnostic::error("cache-reader", None, "a cache needs a reader"));
        }
        let cache = self.add_cache(base, source, scope);
        for at in reading {
            let stage = &mut self.data_mut().stages[at];
            if matches!(stage.work, Work::Copy(_)) {
                stage.work = Work::Copy(cache.index);
            }
            stage.redirects.retain(|(tensor, _)| *tensor != base);
            stage.redirects.push((base, cache.index));
        }
        let axes = match &self.te.tensors[base].kind {
            TensorKind::Computed { axes, .. } => axes.clone(),
            TensorKind::Input | TensorKind::Cache { .. } => fresh_axes(&self.te.tensors[base].buffer, "ax"),
        };
        let mut stage = StageData::new(cache.index, Work::Copy(source), &axes, &[]);
        stage.scope = scope;
        // The copy runs after what it copies, and before its readers.
        self.data_mut().stages.insert(position + 1, stage);
        Ok(cache)
    }

    /// Adds a stage that computes a tensor in another scope; the stage of the tensor itself copies from it. Returns the
    /// cache. The definition's axes and reductions belong to the cache's stage from then on.
    ///
    /// # Errors
    /// `cache-write` if the stage of the tensor does not compute it (an input, a cache, or a tensor that has such a cache
    /// already), or was scheduled before; `no-stage`; `foreign-tensor`.
    pub fn cache_write(&mut self, tensor: Tensor, scope: ir::Scope) -> Result<Tensor, Diagnostic> {
        let (position, base) = (self.position(tensor)?, tensor.index);
        let stage = &self.data().stages[position];
        let (true, TensorKind::Computed { axes, .. }) =
            (matches!(stage.work, Work::Compute(_)), &self.te.tensors[base].kind)
        else {
            let message = format!("`{}` is not computed by its stage", self.te.tensors[base].buffer);
            return Err(Diagnostic::error("cache-write", None, message)
                .with_help("cache_write takes a tensor made by te.compute, once"));
        };
        if !stage.is_fresh() {
            let message = "cache_write must come before the other primitives of the stage";
            return Err(Diagnostic::error("cache-write", None, message));
        }
        let axes = axes.clone();
        let cache = self.add_cache(base, base, scope);
        let mut stage = self.te.new_stage(base);
        stage.tensor = cache.index;
        stage.scope = scope;
        let mut copy = StageData::new(base, Work::Copy(cache.index), &axes, &[]);
        // The computation moves to the cache's stage, and with it the caches that it reads instead of its operands.
        let original = &mut self.data_mut().stages[position];
        stage.redirects = std::mem::take(&mut original.redirects);
        copy.scope = original.scope;
        *original = copy;
        // In front of the copy, which is at `position` and reads it.
        self.data_mut().stages.insert(position, stage);
        Ok(cache)
    }

    /// Returns whether a stage reads a tensor itself, not a cache of it.
    fn reads(&self, stage: usize, source: usize) -> Built<bool> {
        let stage = &self.data().stages[stage];
        Ok(match stage.work {
            Work::Input => false,
            Work::Compute(tensor) => {
                let base = self.base(source);
                let body = effective_body(&self.te.tensors, self.data(), tensor)?;
                !self.data().inlined.contains(&stage.tensor)
                    && reads(&body).contains(&self.te.tensors[base].buffer)
                    && stage.holder(base) == source
            }
            Work::Copy(from) => from == source,
        })
    }

    /// The tensor whose values a tensor holds.
    fn base(&self, tensor: usize) -> usize {
        match self.te.tensors[tensor].kind {
            TensorKind::Cache { base } => base,
            TensorKind::Input | TensorKind::Computed { .. } => tensor,
        }
    }

    /// A new tensor that holds the values of `base`, named after the tensor that it copies and its scope.
    fn add_cache(&mut self, base: usize, source: usize, scope: ir::Scope) -> Tensor {
        let (source, place) = (&self.te.tensors[source].buffer, self.te.place);
        let name = format!("{}_{}", source.name, scope.name().replace(':', "_"));
        let buffer = ir::Buffer::compact(name, source.dtype, source.shape.clone()).with(|info| {
            info.scope = scope;
            info.span = place;
        });
        self.te.add_tensor(buffer, TensorKind::Cache { base })
    }
}

//! Layouts of buffers: `transform_layout`, `set_axis_separator`, `set_scope`.
//!
//! ```text
//! transform_layout("C", "A", lambda n, h, w, c: [n, c // 4, h, w, c % 4], pad_value=0)
//!
//! A[n, h, w, c]   ->   A[n, c // 4, h, w, c % 4], and at the start: A[...] = 0 where nothing maps to
//! ```
//!
//! A transformation is applied at once to all buffers on the same memory, parameters included: the caller then passes tensors in the new
//! layout. That the map is injective is a claim, which the judge proves or refutes, whatever the program says it assumes.

use tilewright_algebra::inverse;
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{
    AxisSeparators, Block, Buffer, BufferChange, BufferClaim, Diagnostic, Evidence, IndexMap, PadFill, PrimFunc,
    Scalar, Scope, Stmt, StmtKind, TileRequest, sabotage,
};

use super::cache::searched;
use super::regions::stated;
use super::tree::{block_named, block_names, realized_again, replaced, with_block};
use super::{BlockRef, BlockSchedule, fault};
use crate::passes::apply_buffer_transforms::{agrees, layout_claim};
use crate::passes::remap::relaid;
use crate::passes::schedule::same_iterations;
use crate::passes::tile_layout::filled;

/// A buffer of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BufferOf {
    /// The read of that number.
    Read(usize),
    /// The write of that number.
    Write(usize),
    /// The buffer of that name.
    Named(String),
}

impl BlockSchedule {
    /// Returns the buffer of a block.
    ///
    /// # Errors
    /// `schedule`: the block is gone, or has no such buffer.
    pub fn buffer_of(&self, block: BlockRef, buffer: &BufferOf) -> Result<Buffer, Diagnostic> {
        let name = match buffer {
            BufferOf::Read(index) => return self.accessed(block, *index, false),
            BufferOf::Write(index) => return self.accessed(block, *index, true),
            BufferOf::Named(name) => name,
        };
        let found = self.block(block)?;
        let buffers = PrimFunc { body: found.stmt.clone(), buffer_map: Vec::new(), ..self.func().clone() }.buffers();
        let mut named = buffers.iter().filter(|buffer| buffer.name == *name);
        match (named.next(), named.next()) {
            (Some(only), None) => Ok(only.clone()),
            (Some(_), Some(_)) => Err(fault(
                format!("block `{}` uses several buffers `{name}`", found.block.name),
                "name it by its number, such as (\"read\", 0)",
            )),
            (None, _) => {
                let names: Vec<&str> = buffers.iter().map(|buffer| buffer.name.as_str()).collect();
                let message = format!("block `{}` uses no buffer `{name}`", found.block.name);
                Err(fault(message, format!("it uses {}", names.join(", "))))
            }
        }
    }

    /// Puts a buffer into another layout: element `i` lies at `map(i)`. Elements to which nothing maps hold `pad_value`, if there is
    /// one.
    ///
    /// # Errors
    /// The map does not fit the shape of the buffer, a physical index may be negative or has no bound, an alias has another shape, or
    /// the pad value is not of the element type.
    pub fn transform_layout(
        &mut self,
        buffer: &Buffer,
        map: &IndexMap,
        pad_value: Option<Scalar>,
    ) -> Result<(), Diagnostic> {
        let func = self.func();
        let aliases: Vec<Buffer> = func.buffers().into_iter().filter(|other| other.aliases(buffer)).collect();
        let Some(first) = aliases.first() else {
            return Err(fault(format!("`{buffer}` is gone: a step replaced it"), "name it by its name"));
        };
        if !buffer.axis_separators.is_empty() {
            let help =
                "transform the layout first, with te.AXIS_SEPARATOR in the map or `set_axis_separator` afterwards";
            return Err(fault(format!("`{buffer}` has axis separators, which belong to its present axes"), help));
        }
        let mut claims = Vec::new();
        for alias in &aliases {
            agrees(first, alias)?;
            claims.push(layout_claim(alias, std::slice::from_ref(map))?);
        }
        let fill = pad_value.map(|value| self.fill(&claims[0], value)).transpose()?;
        let mut after = relaid(func, &claims)?;
        after.body = restated(&after, &aliases);
        let evidence = Evidence { pass: "transform_layout".to_owned(), buffers: claims, ..Evidence::default() };
        let comparison = same_iterations(func, &after, &evidence);
        let fills: Vec<PadFill> = fill.into_iter().collect();
        if !sabotage::on("block-layout-fills-nothing") {
            after.body = filled(&after, &fills);
        }
        self.record("transform_layout", after, Evidence { comparison, fills, ..evidence })?;
        Ok(())
    }

    /// The claim about the value of the padding of a buffer.
    fn fill(&self, claim: &BufferClaim, value: Scalar) -> Result<PadFill, Diagnostic> {
        let buffer = &claim.before;
        let layout = tilewright_ir::layout::Layout::new(Vec::new());
        let wrong = |message: String, help: &str| Diagnostic::error("pad-value", buffer.span, message).with_help(help);
        if buffer.scope != Scope::Global {
            let message = format!("the padding of `{buffer}` in {} memory cannot be given a value", buffer.scope);
            return Err(wrong(message, "leave the pad value out, or keep the buffer in global memory"));
        }
        let value = TileRequest { layout, pad_value: Some(value) }.pad_expr(buffer.dtype).ok_or_else(|| {
            wrong(format!("the pad value of `{buffer}` is no {}", buffer.dtype), "give a number of the element type")
        })?;
        let inverse = inverse(&claim.map, &claim.after.shape, &[]).map_err(|found| {
            wrong(format!("the padding of `{buffer}` is not found: {}", found.message), "leave the pad value out")
        })?;
        let is_param = self.func().buffer_map.iter().any(|(_, param)| param == buffer);
        let mut is_written = false;
        self.func().body.walk(&mut |stmt| {
            is_written |= matches!(&stmt.kind, StmtKind::Store { buffer: stored, .. } if stored.aliases(buffer));
        });
        Ok(PadFill { buffer: claim.after.clone(), inverse, value, by_host: is_param && !is_written })
    }

    /// Groups the axes of a buffer for flattening: each position is the number of axes in front of a separator.
    ///
    /// # Errors
    /// The positions do not fit the buffer.
    pub fn set_axis_separator(&mut self, buffer: &Buffer, positions: Vec<usize>) -> Result<(), Diagnostic> {
        let separators = AxisSeparators::new(positions, buffer.rank())
            .map_err(|error| Diagnostic::error("axis-separators", buffer.span, error.to_string()))?;
        let func = self.func();
        let aliases: Vec<Buffer> = func.buffers().into_iter().filter(|other| other.aliases(buffer)).collect();
        if aliases.iter().any(|alias| alias.rank() != buffer.rank()) {
            let message = format!("`{buffer}` has aliases of another rank");
            return Err(fault(message, "set the separators where all aliases have the same axes"));
        }
        let pairs: Vec<(Buffer, Buffer)> = aliases
            .iter()
            .map(|alias| {
                let is_kept = sabotage::on("block-separators-kept");
                let new = if is_kept { alias.axis_separators.clone() } else { separators.clone() };
                (alias.clone(), alias.with(|info| info.axis_separators = new))
            })
            .collect();
        let after = with_buffers(func, &pairs);
        let claim = |(before, after): (Buffer, Buffer)| BufferClaim {
            map: IndexMap::identity(before.shape.clone()),
            before,
            after,
            change: BufferChange::Rename,
            padded_axes: Vec::new(),
        };
        let buffers = pairs.into_iter().map(claim).collect();
        let evidence = Evidence { pass: "set_axis_separator".to_owned(), buffers, ..Evidence::default() };
        let comparison = same_iterations(func, &after, &evidence);
        self.record("set_axis_separator", after, Evidence { comparison, ..evidence })?;
        Ok(())
    }

    /// Puts a buffer that the function allocates into another kind of memory.
    ///
    /// # Errors
    /// `schedule`: the buffer is a parameter.
    pub fn set_scope(&mut self, buffer: &Buffer, scope: Scope) -> Result<(), Diagnostic> {
        let func = self.func();
        if func.buffer_map.iter().any(|(_, param)| param.aliases(buffer)) {
            let help = "copy it first: `sch.cache_read(block, 0, \"shared\")`";
            return Err(fault(format!("`{buffer}` is a parameter, whose memory the caller chooses"), help));
        }
        let aliases: Vec<Buffer> = func.buffers().into_iter().filter(|other| other.aliases(buffer)).collect();
        let pairs: Vec<(Buffer, Buffer)> =
            aliases.iter().map(|alias| (alias.clone(), alias.with(|info| info.scope = scope))).collect();
        let pairs = if sabotage::on("block-scope-kept") { Vec::new() } else { pairs };
        let body = with_buffers(func, &pairs).body;
        self.step("set_scope", body, &searched())?;
        Ok(())
    }
}

/// The function with other buffers, parameters included.
pub(crate) fn with_buffers(func: &PrimFunc, pairs: &[(Buffer, Buffer)]) -> PrimFunc {
    let body = replaced(&func.body, &tilewright_ir::visit::Substitution::default(), pairs);
    let mut after = PrimFunc { body, ..func.clone() };
    for (_, buffer) in &mut after.buffer_map {
        if let Some((_, new)) = pairs.iter().find(|(old, _)| old == buffer) {
            *buffer = new.clone();
        }
    }
    after
}

/// The body of a function in which blocks that name one of these buffers say again what they read and write.
fn restated(func: &PrimFunc, gone: &[Buffer]) -> Stmt {
    let mentions = |block: &Block| {
        let regions = block.reads.iter().chain(&block.writes).flatten();
        regions.into_iter().any(|region| gone.contains(&region.buffer))
    };
    let mut body = func.body.clone();
    for name in block_names(&func.body) {
        let Ok(found) = block_named(func, &name) else { continue };
        let ranges = found.ranges(func);
        body = with_block(&body, &name, &mut |block, stmt, parts| {
            if !mentions(block) {
                return stmt.clone();
            }
            realized_again(&stated(block, parts.body, &ranges), &parts, parts.body.clone())
        });
    }
    let Ok(body) = Forget(gone).stmt(&body);
    body
}

/// Takes back what blocks say of buffers that are gone: nothing is known of those that have the name of another one.
struct Forget<'a>(&'a [Buffer]);

impl Rewrite for Forget<'_> {
    type Error = std::convert::Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Self::Error> {
        let rewritten = self.stmt_children(stmt)?;
        let Some((block, below)) = Block::of(&rewritten) else { return Ok(rewritten) };
        let is_known = |regions: &Option<Vec<tilewright_ir::BlockRegion>>| {
            regions.iter().flatten().all(|region| !self.0.contains(&region.buffer))
        };
        if is_known(&block.reads) && is_known(&block.writes) {
            return Ok(rewritten);
        }
        let reads = block.reads.clone().filter(|_| is_known(&block.reads));
        let writes = block.writes.clone().filter(|_| is_known(&block.writes));
        let forgotten = Block { reads, writes, ..block.clone() };
        Ok(Stmt::block(forgotten, below.clone()).at(stmt.span))
    }
}

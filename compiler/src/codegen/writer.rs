//! The state in which kernels are written: names, ranges, memory, and the text so far; and how elements are addressed.
//!
//! The position of `A[i, j]` in its allocation is `i * extent + j`, or `i * stride + j * stride` for a buffer with strides,
//! plus its offset. Products are computed in 64 bits unless every position is known to fit an `int`.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::{Buffer, DataType, Diagnostic, Expr, ScalarType, Span, ThreadTag, Var};

use super::code::{Code, SUM};
use super::divisions::{Proved, Written};
use super::expr::lane_of;
use super::helpers::Helpers;
use super::names::Namer;
use super::range::{Mode, Ranges, constant};
use super::target::{Dialect, Refusal, Space, Target};

/// An allocation, as a kernel sees it.
#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    /// The pointer or array.
    pub(crate) name: String,
    /// The memory that it is in.
    pub(crate) space: Space,
    /// Scalar type of the elements that the pointer points to.
    pub(crate) scalar: ScalarType,
    /// Whether every position in it is known to fit an `int`.
    pub(crate) small: bool,
    /// The texel buffer that an image holds; `None` for linear memory.
    pub(crate) texels: Option<Buffer>,
    /// Name of the parameter with the origin in a larger memory; empty for kernels that are not placed.
    pub(crate) origin: String,
    /// Name of the parameter that points to the memory: `name`, except for linear memory in kernels that are placed. Empty
    /// for memory of the work-item's own.
    pub(crate) pool: String,
}

/// How a kernel uses an allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    /// It is read.
    pub(crate) read: bool,
    /// It is written.
    pub(crate) written: bool,
}

/// Everything that is known while one kernel is written. `super::kernel` moves what outlives the kernel to the source.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    /// The target of the kernel.
    pub(crate) target: &'static Target,
    /// Names that are taken.
    pub(crate) namer: Namer,
    /// Helpers that are defined.
    pub(crate) helpers: Helpers,
    /// Ranges of the variables in scope.
    pub(crate) ranges: Ranges,
    pub(crate) options: super::Options,
    /// Names of variables.
    pub(crate) vars: BTreeMap<Var, String>,
    /// Allocations by their data variable.
    pub(crate) allocations: BTreeMap<Var, Allocation>,
    /// Global allocations that the kernel uses.
    pub(crate) uses: BTreeMap<Var, Use>,
    /// Symbols and scalar parameters that the kernel uses.
    pub(crate) scalars: BTreeSet<Var>,
    /// All symbols and scalar parameters of the function.
    pub(crate) known_scalars: BTreeSet<Var>,
    /// Texels that were read in front of the loops around the current statement.
    pub(super) texels: Vec<super::texels::Held>,
    /// The divisions that may be written with the operators of the target.
    pub(super) proved: Proved,
    /// The divisions that were written.
    pub(crate) divisions: Written,
    /// Remarks for the metadata, such as assertions that the kernel does not check.
    pub(crate) notes: BTreeSet<String>,
    /// Whether the kernel computes with `float64`.
    pub(crate) uses_fp64: bool,
    /// The statement that is written, and the accesses to textures that are checked.
    pub(crate) statement: String,
    pub(crate) sites: Vec<super::Site>,
    /// Sites of the kernels before.
    pub(crate) first_site: usize,
    /// How its loops are spread over work-items.
    pub(crate) launch: super::launch::Launching,
    /// Axes of the launch that are bound around the current statement.
    pub(crate) bound: BTreeSet<ThreadTag>,
    /// Whether work-items of one group may disagree on whether they reach the current statement.
    pub(crate) divergent: bool,
    /// The name of the flag that says whether the current place is reached, below a condition with barriers.
    pub(crate) guard: Option<String>,
    /// Whether it was refused because groups would have to wait for each other.
    pub(crate) groups_wait: bool,
    /// The lines that declare arrays in memory of the work-group, which C wants at the beginning of a kernel.
    pub(crate) local_arrays: String,
    /// Their bytes.
    pub(crate) local_bytes: u64,
    /// Place of the current statement.
    pub(crate) span: Option<Span>,
    /// The body of the kernel so far.
    pub(crate) text: String,
    /// Depth of indentation, in steps of four blanks.
    pub(crate) depth: usize,
}

impl Writer {
    /// A writer at the beginning of a kernel.
    pub(super) fn new(target: &'static Target, proved: Proved, options: super::Options) -> Self {
        Self {
            target,
            namer: Namer::new(target.reserved),
            helpers: Helpers::default(),
            ranges: Ranges::default(),
            options,
            vars: BTreeMap::new(),
            allocations: BTreeMap::new(),
            uses: BTreeMap::new(),
            scalars: BTreeSet::new(),
            known_scalars: BTreeSet::new(),
            texels: Vec::new(),
            proved,
            divisions: Written::default(),
            notes: BTreeSet::new(),
            uses_fp64: false,
            statement: String::new(),
            sites: Vec::new(),
            first_site: 0,
            launch: super::launch::Launching::default(),
            bound: BTreeSet::new(),
            divergent: false,
            guard: None,
            groups_wait: false,
            local_arrays: String::new(),
            local_bytes: 0,
            span: None,
            text: String::new(),
            // The text is the body of a kernel function, which is indented once.
            depth: 1,
        }
    }

    /// How the language of the target writes types, values and memory.
    pub(crate) fn dialect(&self) -> &'static dyn Dialect {
        self.target.dialect
    }

    /// An error at the current statement.
    pub(crate) fn error(&self, refusal: Refusal, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(self.dialect().code(refusal), self.span, message)
    }

    /// Adds a line at the current depth.
    pub(crate) fn line(&mut self, text: &str) {
        for _ in 0..self.depth {
            self.text.push_str("    ");
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Adds a comment; the names in it cannot end or continue it.
    pub(crate) fn comment(&mut self, text: &str) {
        let text = super::names::comment_text(text);
        self.line(&format!("// {text}"));
    }

    /// Opens a block.
    pub(crate) fn open(&mut self, head: &str) {
        self.line(&if head.is_empty() { "{".to_owned() } else { format!("{head} {{") });
        self.depth += 1;
    }

    /// Closes a block.
    pub(crate) fn close(&mut self) {
        self.depth -= 1;
        self.line("}");
    }

    /// A fresh name for a variable.
    pub(crate) fn declare(&mut self, var: &Var) -> String {
        let name = self.namer.fresh(var.name());
        self.vars.insert(var.clone(), name.clone());
        name
    }

    /// A variable's value.
    pub(crate) fn var(&mut self, var: &Var) -> Result<Code, Diagnostic> {
        if self.known_scalars.contains(var) {
            self.scalars.insert(var.clone());
        }
        match self.vars.get(var) {
            Some(name) => Ok(Code::atom(name.clone())),
            None => Err(self.error(Refusal::Unbound, format!("variable `{var}` has no value in the kernel"))),
        }
    }

    /// A pointer to the elements of a buffer, cast if the allocation was declared with another type; notes the access for
    /// the signature of the kernel.
    pub(crate) fn pointer(&mut self, buffer: &Buffer, write: bool) -> Result<String, Diagnostic> {
        let Some(allocation) = self.allocations.get(&buffer.data) else {
            return Err(self.error(Refusal::Memory, format!("buffer `{buffer}` has no memory in the kernel")));
        };
        if allocation.texels.is_some() {
            let message = format!("`{buffer}` reaches a texture but is not its texels, [height, width, channels]");
            return Err(self.error(Refusal::Texture, message).with_help("run the pass lower_texture first"));
        }
        if allocation.space == Space::Global {
            let used = self.uses.entry(buffer.data.clone()).or_default();
            used.read |= !write;
            used.written |= write;
        }
        let wanted = self.dialect().storage_name(buffer.dtype.scalar);
        if wanted == self.dialect().storage_name(allocation.scalar) {
            return Ok(allocation.name.clone());
        }
        let constness = if write { "" } else { "const " };
        Ok(format!("(({}{constness}{wanted} *){})", self.target.words.space(allocation.space), allocation.name))
    }

    /// The position of an element in its allocation, in elements of the buffer's type; of a vector index the first.
    pub(crate) fn position(&mut self, buffer: &Buffer, indices: &[Expr]) -> Result<Code, Diagnostic> {
        if buffer.rank() > 1 && !buffer.axis_separators.is_flat() {
            let message = format!("buffer `{buffer}` has {} axes that are not flattened", buffer.rank());
            let help = "run the pass flatten_buffer first; axes that are to stay apart need an axis separator";
            return Err(self.error(Refusal::Unflattened, message).with_help(help));
        }
        let wide = self.allocations.get(&buffer.data).is_none_or(|allocation| !allocation.small);
        let mut sum = Code::atom("0");
        for (axis, index) in indices.iter().enumerate() {
            let first = if let Expr::Ramp { base, .. } = index { base } else { index };
            let index = self.index(first)?;
            if let Some(strides) = &buffer.strides {
                let stride = self.index(&strides[axis])?;
                sum = Self::sum(&sum, &self.product(&index, &stride, wide));
            } else {
                let extent = self.index(&buffer.shape[axis])?;
                sum = Self::sum(&self.product(&sum, &extent, wide), &index);
            }
        }
        let offset = self.index(&buffer.elem_offset)?;
        Ok(Self::sum(&sum, &offset))
    }

    /// Whether the lanes of an index are neighbours in memory, so that one vector access reaches them all.
    pub(crate) fn is_contiguous(buffer: &Buffer, indices: &[Expr]) -> bool {
        let unit = buffer.strides.as_ref().is_none_or(|strides| strides.last().and_then(constant) == Some(1));
        unit && matches!(indices.last(), Some(Expr::Ramp { stride, .. }) if constant(stride) == Some(1))
    }

    /// A load. Lanes that are not neighbours are loaded one by one.
    pub(crate) fn load(&mut self, buffer: &Buffer, indices: &[Expr], mode: Mode) -> Result<Code, Diagnostic> {
        if self.image(buffer).is_some() {
            return self.image_load(buffer, indices, mode);
        }
        let lanes = indices.last().map_or(1, |index| index.dtype().lanes);
        if lanes > 1 && !Self::is_contiguous(buffer, indices) {
            let whole = Expr::load(buffer, indices.to_vec());
            let parts: Option<Vec<_>> = (0..lanes).map(|k| lane_of(&whole, k)).collect();
            let Some(parts) = parts else {
                return Err(
                    self.error(Refusal::VectorIndex, format!("the lanes of the index in `{whole}` are not known"))
                );
            };
            return self.vector_of(whole.dtype(), &parts, mode);
        }
        let position = self.position(buffer, indices)?;
        let pointer = self.pointer(buffer, false)?;
        let ty = buffer.dtype.with_lanes(buffer.dtype.lanes.max(lanes));
        let (position, pointer) =
            if lanes > 1 { ("0".to_owned(), offset(&pointer, &position)) } else { (position.text, pointer) };
        Ok(Code::atom(self.dialect().read(&mut self.helpers, ty, &position, &pointer)))
    }

    /// The statement that writes `value` at a position.
    pub(crate) fn write(&mut self, ty: DataType, position: &str, pointer: &str, value: &str) -> String {
        self.dialect().write(&mut self.helpers, ty, position, pointer, value)
    }
}

/// `pointer + position`.
pub(crate) fn offset(pointer: &str, position: &Code) -> String {
    if position.text == "0" { pointer.to_owned() } else { format!("{pointer} + {}", position.within(SUM)) }
}

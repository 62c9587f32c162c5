//! From a function to kernels: the nests at the root, the memory around them, and their signatures.
//!
//! ```python
//! T = T.alloc_buffer(..)                        memory of the host: Metadata::buffers
//! for i in T.thread_binding(16, "blockIdx.x"):  kernel f_0, launched first
//!     T[i] = A[i] + 1
//! for i in range(16):                           kernel f_1, launched when f_0 is done; i is bound to a work-item,
//!     B[i] = T[15 - i]                          because different iterations touch different elements of B
//! ```
//!
//! One nest becomes one kernel, because a device orders all work-items only between kernels. A loop around launches that wait for each
//! other has kernels for each iteration (`host_loops`).

use std::sync::Arc;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use tilewright_ir::sabotage;
use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, Diagnostic, Expr, PrimFunc, Scope, Stmt, StmtKind, ThreadTag, TypeClass, Var};

use super::checked::Site;
use super::code::PREFIX;
use super::divisions::{Proved, Written};
use super::helpers::Helpers;
use super::independent::{converted, has_parts, separates_in};
use super::join::Parts;
use super::launch::{Launching, bound_loops, extents};
use super::memory::long;
use super::metadata::{Binding, HostAssert, KernelInfo, Metadata, ScalarInfo, Size};
use super::range::constant;
use super::spread::{Scalars, work_items};
use super::target::{Refusal, Target};
use super::writer::Writer;
use super::{Generated, Options};

/// The source under construction: everything that outlives a kernel.
pub(crate) struct SourceBuilder<'a> {
    pub(crate) target: &'static Target,
    pub(crate) func: &'a PrimFunc,
    /// The writer that is copied for each kernel.
    pub(crate) base: Writer,
    pub(crate) metadata: Metadata,
    sources: Vec<String>,
    helpers: Helpers,
    uses_fp64: bool,
    divisions: Written,
    /// Root-level `let`s around the current nest.
    lets: Vec<(Var, Expr)>,
    pub(crate) errors: Vec<Diagnostic>,
}

/// A nest that is no kernel.
struct Refused {
    fault: Diagnostic,
    /// Whether the reason is that groups would have to wait for each other.
    groups_wait: bool,
}

impl<'a> SourceBuilder<'a> {
    /// Creates a source without kernels that declares the function's scalar and buffer parameters.
    ///
    /// Parameters take their names first, so that kernels call them what the program calls them.
    pub(super) fn new(target: &'static Target, func: &'a PrimFunc, proved: Proved, options: Options) -> Self {
        let metadata = Metadata {
            schema: "tilewright.kernels/1",
            function: func.name.clone(),
            scalars: Vec::new(),
            buffers: Vec::new(),
            // The fields that depend on what the nests contain are filled by `kernel`, `root_assert` and `finish`.
            kernels: Vec::new(),
            loops: Vec::new(),
            asserts: Vec::new(),
            sites: Vec::new(),
            texture_limits: func.attrs.texture_limits,
            build_options: target.build_options.iter().map(ToString::to_string).collect(),
            required_extensions: Vec::new(),
            nonnegative_dividends: Vec::new(),
            notes: Vec::new(),
        };
        let mut builder = Self {
            target,
            func,
            base: Writer::new(target, proved, options),
            metadata,
            sources: Vec::new(),
            helpers: Helpers::default(),
            uses_fp64: false,
            divisions: Written::default(),
            lets: Vec::new(),
            errors: Vec::new(),
        };
        builder.scalars();
        for (param, buffer) in &func.buffer_map {
            let position = func.buffer_map.iter().position(|(other, _)| other == param);
            builder.device_buffer(buffer, position);
        }
        builder
    }

    /// Declares symbolic extents and scalar parameters, which every kernel may take.
    fn scalars(&mut self) {
        let scalars = Scalars::of(self.func);
        self.base.ranges = scalars.ranges();
        self.base.known_scalars = scalars.names();
        for (var, is_symbol) in scalars.all {
            self.base.declare(&var);
            self.metadata.scalars.push(ScalarInfo { var, is_symbol });
        }
    }

    /// Generates the statements at the root, in order. Memory and values at the root outlive a kernel: allocations become
    /// buffers of the host, and each kernel repeats the `let`s around its nest, so a `let` that reads memory is refused.
    pub(crate) fn root(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Seq(stmts) => stmts.iter().for_each(|stmt| self.root(stmt)),
            StmtKind::Allocate { buffer, body } => {
                self.device_buffer(buffer, None);
                self.root(body);
            }
            StmtKind::DeclBuffer { body, .. } | StmtKind::Attr { body, .. } => self.root(body),
            StmtKind::Let { var, value, body } => {
                if value.reads_memory() {
                    // A kernel before may have written the memory, and the repeated `let` would read the new value.
                    let message = format!("`{var}` is read from memory outside of every loop");
                    let code = self.target.dialect.code(Refusal::RootLet);
                    self.errors.push(
                        Diagnostic::error(code, stmt.span, message)
                            .with_help("read it inside of the nests that use it"),
                    );
                }
                self.lets.push((var.clone(), value.clone()));
                self.root(body);
                self.lets.pop();
            }
            StmtKind::Assert { cond, message, .. } => self.root_assert(cond, message),
            StmtKind::Evaluate(_) | StmtKind::Barrier => {}
            StmtKind::For(_) | StmtKind::Store { .. } | StmtKind::If { .. } => {
                // Collected, not returned: the caller reports the errors of all nests at once.
                let namer = self.base.namer.clone();
                match self.nest(stmt) {
                    Ok(()) => {}
                    Err(Refused { fault, groups_wait: false }) => self.errors.push(fault),
                    Err(Refused { fault, groups_wait: true }) => {
                        self.base.namer = namer;
                        self.launched_one_by_one(stmt, fault);
                    }
                }
            }
        }
    }

    /// Records an `assert` outside all nests: the host checks it before the launch if it knows the values, else it is noted.
    fn root_assert(&mut self, cond: &Expr, message: &str) {
        let substitution =
            Substitution::new(self.lets.iter().map(|(var, _)| var), self.lets.iter().map(|(_, e)| e.clone()));
        let cond = substitution.apply(cond);
        // The host checks before the first launch, so a condition on the iteration of a loop of the host is none of these.
        let is_scalar = |var: &Var| self.metadata.scalars.iter().any(|scalar| scalar.var == *var);
        let is_known = cond.vars().iter().all(is_scalar);
        if cond.reads_memory() || !is_known {
            let text = format!("the kernels assume `{cond}`, which only the interpreter checks");
            self.metadata.notes.push(text);
            return;
        }
        self.metadata.asserts.push(HostAssert { cond, message: message.to_owned() });
    }

    /// Generates one kernel for a nest, and keeps what outlives it: the helpers that it uses and whether it needs `float64`.
    fn nest(&mut self, nest: &Stmt) -> Result<(), Refused> {
        let mut writer = self.base.clone();
        writer.helpers = std::mem::take(&mut self.helpers);
        writer.span = nest.span;
        writer.first_site = self.metadata.sites.len();
        let result = self.kernel(nest, &mut writer);
        self.helpers = writer.helpers;
        self.uses_fp64 |= writer.uses_fp64;
        result.map_err(|fault| Refused { fault, groups_wait: writer.groups_wait })
    }

    /// Writes the kernel of a nest: first the geometry, which determines the values of bound loop variables; then the
    /// root-level `let`s and the nest; last the signature, which contains only what these use.
    fn kernel(&mut self, nest: &Stmt, writer: &mut Writer) -> Result<(), Diagnostic> {
        let name = self.base.namer.fresh(&format!("{}_{}", self.func.name, self.metadata.kernels.len()));
        let bound = extents(self.target, nest, &self.base.known_scalars)?;
        let (binding, global, local) = if bound.is_empty() {
            automatic(nest, writer)
        } else {
            let (global, local) = geometry(&bound);
            writer.launch = sharing(nest, &bound, writer);
            writer.launch.extents = bound;
            (Binding::Explicit, global, Some(local))
        };
        for (var, value) in &self.lets {
            // With an empty body the statement only declares the name, which stays in scope for the nest that follows.
            let stmt = Stmt::new(StmtKind::Let {
                var: var.clone(),
                value: value.clone(),
                body: Arc::new(Stmt::new(StmtKind::Seq([].into()))),
            });
            writer.stmt(&stmt)?;
        }
        writer.stmt(nest)?;
        let (params, args, begins) = self.signature(writer);
        let mut source = String::new();
        let head = self.target.words.kernel;
        let (arrays, text) = (&writer.local_arrays, &writer.text);
        let _ = writeln!(source, "{head} {name}({}) {{\n{arrays}{begins}{text}}}", params.join(", "));
        let (bytes, least) = (writer.local_bytes, self.target.limits.local_bytes);
        if bytes > least {
            let api = self.target.api;
            let note = format!("a kernel takes {bytes} bytes of local memory; {api} promises {least} of every device");
            writer.notes.insert(note);
        }
        self.sources.push(source);
        let [global, local] = [Some(global), local].map(|sizes| sizes.map(|sizes| sizes.map(Size)));
        let global = global.unwrap_or_else(|| [1, 1, 1].map(|one| Size(Expr::int(one))));
        self.metadata.sites.extend(writer.sites.drain(..).map(|site| Site { kernel: name.clone(), ..site }));
        self.metadata.kernels.push(KernelInfo { name, binding, global, local, args });
        self.divisions.extend(&writer.divisions);
        self.metadata.notes.extend(writer.notes.iter().cloned());
        Ok(())
    }

    /// Returns the source and its metadata, or the errors of all nests.
    pub(crate) fn finish(mut self) -> Result<Generated, Vec<Diagnostic>> {
        if !self.errors.is_empty() {
            return Err(self.errors);
        }
        if let Some(extension) = self.target.fp64_extension.filter(|_| self.uses_fp64) {
            self.metadata.required_extensions.push(extension.into());
        }
        let kernels = self.sources.join("\n");
        let parts = Parts { target: self.target, helpers: self.helpers, kernels, uses_fp64: self.uses_fp64 };
        let source = parts.source(&super::names::comment_text(&self.func.name));
        let dividends: BTreeSet<_> = self.divisions.truncating.iter().filter_map(signed_dividend).collect();
        self.metadata.nonnegative_dividends = dividends.into_iter().collect();
        let notes: BTreeSet<_> = self.metadata.notes.drain(..).collect();
        self.metadata.notes = notes.into_iter().collect();
        Ok(Generated { target: self.target, source, metadata: self.metadata, divisions: self.divisions, parts })
    }
}

/// The dividend of a floor division of signed integers as text; `None` for other divisions, which need no sign, and for a
/// constant.
fn signed_dividend(division: &Expr) -> Option<String> {
    let Expr::Binary(BinaryOp::FloorDiv | BinaryOp::FloorMod, dividend, _) = division else { return None };
    let is_signed = dividend.dtype().scalar.class() == TypeClass::Int;
    (is_signed && constant(dividend).is_none()).then(|| dividend.to_string())
}

/// Global and local sizes of explicitly bound axes.
fn geometry(bound: &BTreeMap<ThreadTag, Expr>) -> ([Expr; 3], [Expr; 3]) {
    let one = || Expr::int(1);
    let extent = |tag| bound.get(&tag).cloned();
    let local = [0, 1, 2].map(|axis| extent(ThreadTag::Thread(axis)).unwrap_or_else(one));
    let global = [0u8, 1, 2].map(|axis| {
        let (block, thread) = (extent(ThreadTag::Block(axis)), extent(ThreadTag::Thread(axis)));
        match (block, thread) {
            (Some(block), Some(thread)) => long(block) * long(thread),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => one(),
        }
    });
    (global, local)
}

/// Finds out whether work-items of an explicit launch may touch each other's elements: in any memory, in textures, and in local memory that
/// is allocated around the loops over them.
///
/// Several loops may be bound to one launch axis. Their variables have the same value in a work-item, up to their minima,
/// so one variable for the axis replaces them all.
fn sharing(nest: &Stmt, bound: &BTreeMap<ThreadTag, Expr>, writer: &Writer) -> Launching {
    let mut ranges = writer.ranges.clone();
    let mut substitution = Substitution::default();
    let mut axes = Vec::new();
    for (tag, extent) in bound {
        let axis = Var::index(tag.to_string());
        ranges.insert_loop(&axis, &Expr::int(0), extent);
        for (inner, other) in bound_loops(nest) {
            if other == *tag {
                substitution.insert(&inner.var, converted(&axis, inner.var.dtype()) + inner.min.clone());
            }
        }
        axes.push((*tag, axis));
    }
    let nest = substitution.apply_stmt(nest);
    let threads = axes.iter().filter(|(tag, _)| matches!(tag, ThreadTag::Thread(_)));
    let threads: Option<Vec<(Var, i128)>> =
        threads.map(|(tag, axis)| Some((axis.clone(), constant(bound.get(tag)?)?))).collect();
    let mut kept = BTreeSet::new();
    nest.walk(&mut |stmt| {
        if let StmtKind::Allocate { buffer, body } = &stmt.kind
            && buffer.scope == Scope::Local
            && threads.as_ref().is_some_and(|threads| has_parts(buffer, body, threads, &ranges))
        {
            kept.insert(buffer.data.clone());
        }
    });
    let axes: Vec<Var> = axes.into_iter().map(|(_, axis)| axis).collect();
    let shares_texels = !separates_in(&axes, &nest, &ranges, |buffer| buffer.scope.is_texture());
    let is_apart = separates_in(&axes, &nest, &ranges, |buffer| !kept.contains(&buffer.data));
    let is_ordered = shares_texels || !is_apart;
    Launching { is_ordered, shares_texels, kept, ..Launching::default() }
}

/// Binds the leading loops of a nest whose iterations are independent.
///
/// Parallel loops are bound because the program says so; serial ones only as far as [`separates`] shows that no two
/// work-items touch the same element. As many loops as possible are bound: devices need many work-items.
fn automatic(nest: &Stmt, writer: &mut Writer) -> (Binding, [Expr; 3], Option<[Expr; 3]>) {
    let one = || [1, 1, 1].map(Expr::int);
    let (mut loops, count) = work_items(nest, &writer.known_scalars, &writer.ranges);
    loops.truncate(count);
    if loops.is_empty() {
        return (Binding::Single, one(), None);
    }
    let mut global = one();
    let mut axes = Vec::new();
    // The innermost loop becomes dimension 0: neighbouring work-items then access neighbouring elements.
    for (place, inner) in loops.iter().rev().enumerate() {
        let axis = place.min(2);
        if place < 2 || loops.len() == 3 {
            global[axis] = inner.extent.clone();
            axes.push((inner.var.clone(), writer.target.words.global_id[axis].to_owned()));
            continue;
        }
        // The remaining loops share the last dimension, in mixed radix with the outermost loop as the most significant
        // digit.
        let below: Vec<_> = loops.iter().rev().skip(2).take(place - 2).map(|inner| inner.extent.clone()).collect();
        let mut text = writer.target.words.global_id[2].to_owned();
        for extent in &below {
            let extent = writer.index(extent).map_or_else(|_| "1".to_owned(), |code| code.within(PREFIX));
            text = format!("{text} / {extent}");
        }
        if place + 1 < loops.len() && !sabotage::on("kernel-id-not-reduced") {
            let extent = writer.index(&inner.extent).map_or_else(|_| "1".to_owned(), |code| code.within(PREFIX));
            text = format!("{text} % {extent}");
        }
        global[2] =
            if place == 2 { inner.extent.clone() } else { long(global[2].clone()) * long(inner.extent.clone()) };
        axes.push((inner.var.clone(), format!("({text})")));
    }
    writer.launch.automatic = axes;
    (Binding::Automatic, global, None)
}

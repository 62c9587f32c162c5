//! From a function to kernels: the nests at the root, the memory around them, and their signatures.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use tilewright_ir::visit::Substitution;
use tilewright_ir::{
    Buffer, DataType, Diagnostic, Expr, MAX_SYMBOLIC_ELEMENTS, PrimFunc, ScalarType, Scope, Stmt, StmtKind, ThreadTag,
    Var, checked_size,
};

use super::Generated;
use super::helpers::Helpers;
use super::independent::{leading_loops, separates};
use super::launch::{Launching, bound_loops, extents};
use super::metadata::{ArgInfo, Binding, BufferInfo, HostAssert, KernelInfo, Metadata, ScalarInfo, Size};
use super::names::Namer;
use super::range::{constant, type_range};
use super::stmt::reads_memory;
use super::types::{storage_name, value_name};
use super::writer::{Place, Use, Writer};

/// Everything that outlives a kernel.
pub(crate) struct Program<'a> {
    func: &'a PrimFunc,
    /// What every kernel starts from.
    base: Writer,
    metadata: Metadata,
    sources: Vec<String>,
    helpers: Helpers,
    uses_fp64: bool,
    /// Root-level `let`s around the current nest.
    lets: Vec<(Var, Expr)>,
    errors: Vec<Diagnostic>,
}

impl<'a> Program<'a> {
    /// The parameters of a function.
    pub(crate) fn new(func: &'a PrimFunc) -> Self {
        let metadata = Metadata {
            schema: "tilewright.kernels/1",
            function: func.name.clone(),
            scalars: Vec::new(),
            buffers: Vec::new(),
            kernels: Vec::new(),
            asserts: Vec::new(),
            build_options: vec!["-cl-std=CL1.2".into()],
            required_extensions: Vec::new(),
            nonnegative_dividends: Vec::new(),
            notes: Vec::new(),
        };
        let mut program = Self {
            func,
            base: Writer { depth: 1, namer: Namer::default(), ..Writer::default() },
            metadata,
            sources: Vec::new(),
            helpers: Helpers::default(),
            uses_fp64: false,
            lets: Vec::new(),
            errors: Vec::new(),
        };
        program.scalars();
        for (param, buffer) in &func.buffer_map {
            let place = func.buffer_map.iter().position(|(other, _)| other == param);
            program.device_buffer(buffer, place);
        }
        program
    }

    fn scalars(&mut self) {
        let symbols = self.func.symbols();
        let params = self.func.params.iter().filter(|param| param.dtype().scalar != ScalarType::Handle);
        let others = params.filter(|param| !symbols.contains(param));
        let all: Vec<_> = symbols.iter().map(|var| (var, true)).chain(others.map(|var| (var, false))).collect();
        for (var, is_symbol) in all {
            self.base.declare(var);
            self.base.known_scalars.insert(var.clone());
            let (low, high) = type_range(var.dtype().scalar);
            self.base.ranges.insert(var, if is_symbol { (1, high) } else { (low, high) });
            self.metadata.scalars.push(ScalarInfo { var: var.clone(), is_symbol });
        }
    }

    /// Memory that the host provides: of a parameter, or of an allocation around all nests.
    fn device_buffer(&mut self, buffer: &Buffer, param: Option<usize>) {
        if self.base.places.contains_key(&buffer.data) {
            return;
        }
        let name = self.base.namer.fresh(&buffer.name);
        let is_flat = buffer.rank() < 2 || buffer.axis_separators.is_flat();
        // The alias that the body uses knows the physical axes.
        let flat = if is_flat { None } else { self.flat_alias(buffer) };
        let physical = flat.as_ref().unwrap_or(buffer);
        let elements = elements(buffer);
        let scalars = constant(&elements).and_then(|count| checked_size(&[count, buffer.dtype.lanes.into()]).ok());
        let bytes = times(elements, buffer.dtype.bytes());
        let row_pitch = (physical.rank() > 1)
            .then(|| physical.shape.last().map(|extent| Size(times(extent.clone(), physical.dtype.bytes()))))
            .flatten();
        if buffer.scope != Scope::Global {
            let scope = buffer.scope;
            let note = format!("`{name}` is in scope `{scope}` and is held in ordinary global memory");
            self.metadata.notes.push(note);
        }
        self.metadata.buffers.push(BufferInfo {
            name: name.clone(),
            data: buffer.data.clone(),
            param,
            dtype: buffer.dtype,
            physical_shape: physical.shape.iter().cloned().map(Size).collect(),
            max_elements: buffer.const_shape().is_none().then_some(MAX_SYMBOLIC_ELEMENTS),
            bytes: Size(bytes),
            row_pitch,
            scope: buffer.scope,
            read: false,
            written: false,
        });
        let small = scalars.is_some_and(|count| count <= u64::from(i32::MAX.unsigned_abs()));
        let place = Place { name, space: "global", scalar: buffer.dtype.scalar, small };
        self.base.places.insert(buffer.data.clone(), place);
    }

    /// The flattened view of a parameter.
    fn flat_alias(&self, buffer: &Buffer) -> Option<Buffer> {
        let mut found = None;
        self.func.body.walk(&mut |stmt| {
            if let StmtKind::DeclBuffer { buffer: alias, .. } = &stmt.kind
                && alias.aliases(buffer)
                && (alias.rank() < 2 || alias.axis_separators.is_flat())
            {
                found.get_or_insert_with(|| alias.clone());
            }
        });
        found
    }

    /// Everything at the root, in order.
    pub(crate) fn root(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Seq(stmts) => stmts.iter().for_each(|stmt| self.root(stmt)),
            StmtKind::Allocate { buffer, body } => {
                self.device_buffer(buffer, None);
                self.root(body);
            }
            StmtKind::DeclBuffer { body, .. } | StmtKind::Attr { body, .. } => self.root(body),
            StmtKind::Let { var, value, body } => {
                if reads_memory(value) {
                    let message = format!("`{var}` is read from memory outside of every loop");
                    self.errors.push(
                        Diagnostic::error("opencl-root-let", stmt.span, message)
                            .with_help("read it inside of the nests that use it"),
                    );
                }
                self.lets.push((var.clone(), value.clone()));
                self.root(body);
                self.lets.pop();
            }
            StmtKind::Assert { cond, message } => self.root_assert(cond, message),
            StmtKind::Evaluate(_) => {}
            StmtKind::For(_) | StmtKind::Store { .. } | StmtKind::If { .. } => {
                if let Err(error) = self.nest(stmt) {
                    self.errors.push(error);
                }
            }
        }
    }

    fn root_assert(&mut self, cond: &Expr, message: &str) {
        let substitution =
            Substitution::new(self.lets.iter().map(|(var, _)| var), self.lets.iter().map(|(_, e)| e.clone()));
        let cond = substitution.apply(cond);
        let is_known = cond.vars().iter().all(|var| self.base.known_scalars.contains(var));
        if reads_memory(&cond) || !is_known {
            let text = format!("the kernels assume `{cond}`, which only the interpreter checks");
            self.metadata.notes.push(text);
            return;
        }
        self.metadata.asserts.push(HostAssert { cond, message: message.to_owned() });
    }

    /// One nest becomes one kernel.
    fn nest(&mut self, nest: &Stmt) -> Result<(), Diagnostic> {
        let mut writer = self.base.clone();
        writer.helpers = std::mem::take(&mut self.helpers);
        writer.span = nest.span;
        let result = self.kernel(nest, &mut writer);
        self.helpers = writer.helpers;
        self.uses_fp64 |= writer.uses_fp64;
        result
    }

    fn kernel(&mut self, nest: &Stmt, writer: &mut Writer) -> Result<(), Diagnostic> {
        let name = self.base.namer.fresh(&format!("{}_{}", self.func.name, self.metadata.kernels.len()));
        let bound = extents(nest, &self.base.known_scalars)?;
        let (binding, global, local) = if bound.is_empty() {
            automatic(nest, writer)
        } else {
            let (global, local) = geometry(&bound);
            writer.launch =
                Launching { is_ordered: is_ordered(nest, &bound, writer), extents: bound, ..Launching::default() };
            (Binding::Explicit, global, Some(local))
        };
        for (var, value) in &self.lets {
            let stmt = Stmt::new(StmtKind::Let {
                var: var.clone(),
                value: value.clone(),
                body: Box::new(Stmt::new(StmtKind::Seq(Vec::new()))),
            });
            writer.stmt(&stmt)?;
        }
        writer.stmt(nest)?;
        let (params, args) = self.signature(writer);
        let mut source = String::new();
        let _ = writeln!(source, "kernel void {name}({}) {{\n{}}}", params.join(", "), writer.text);
        self.sources.push(source);
        let [global, local] = [Some(global), local].map(|sizes| sizes.map(|sizes| sizes.map(Size)));
        let global = global.unwrap_or_else(|| [1, 1, 1].map(|one| Size(Expr::int(one))));
        self.metadata.kernels.push(KernelInfo { name, binding, global, local, args });
        self.metadata.nonnegative_dividends.extend(writer.dividends.iter().cloned());
        self.metadata.notes.extend(writer.notes.iter().cloned());
        Ok(())
    }

    /// The parameters of a kernel, in C and in the metadata: memory first, then scalars.
    fn signature(&mut self, writer: &Writer) -> (Vec<String>, Vec<ArgInfo>) {
        let (mut params, mut args) = (Vec::new(), Vec::new());
        for (place, info) in self.metadata.buffers.iter_mut().enumerate() {
            let Some(&Use { read, written }) = writer.uses.get(&info.data) else {
                continue;
            };
            info.read |= read;
            info.written |= written;
            let constness = if written { "" } else { "const " };
            let element = storage_name(info.dtype.scalar);
            params.push(format!("global {constness}{element} *restrict {}", info.name));
            args.push(ArgInfo::Buffer(place));
        }
        for (place, info) in self.metadata.scalars.iter().enumerate() {
            if writer.scalars.contains(&info.var)
                && let Some(name) = self.base.vars.get(&info.var)
            {
                params.push(format!("const {} {name}", value_name(info.var.dtype())));
                args.push(ArgInfo::Scalar(place));
            }
        }
        (params, args)
    }

    /// The source and its metadata.
    pub(crate) fn finish(mut self) -> Result<Generated, Vec<Diagnostic>> {
        if !self.errors.is_empty() {
            return Err(self.errors);
        }
        let mut source =
            format!("// Kernels of `{}`, generated by Tilewright.\n", super::names::plain(&self.func.name));
        source.push_str("#pragma OPENCL FP_CONTRACT OFF\n");
        if self.uses_fp64 {
            source.push_str("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n");
            self.metadata.required_extensions.push("cl_khr_fp64".into());
        }
        source.push('\n');
        source.push_str(&self.helpers.source());
        source.push_str(&self.sources.join("\n"));
        let unique: BTreeSet<_> = self.metadata.nonnegative_dividends.drain(..).collect();
        self.metadata.nonnegative_dividends = unique.into_iter().collect();
        let notes: BTreeSet<_> = self.metadata.notes.drain(..).collect();
        self.metadata.notes = notes.into_iter().collect();
        Ok(Generated { source, metadata: self.metadata })
    }
}

/// Elements that an allocation holds.
fn elements(buffer: &Buffer) -> Expr {
    let one = |extent: &Expr| long(extent.clone());
    let Some(strides) = &buffer.strides else {
        let all = buffer.shape.iter().map(one).reduce(|a, b| a * b).unwrap_or_else(|| long(Expr::int(1)));
        return if constant(&buffer.elem_offset) == Some(0) { all } else { all + long(buffer.elem_offset.clone()) };
    };
    let last =
        buffer.shape.iter().zip(strides).map(|(extent, stride)| (one(extent) - long(Expr::int(1))) * one(stride));
    last.fold(long(buffer.elem_offset.clone()) + long(Expr::int(1)), |sum, term| sum + term)
}

/// An extent as `int64`, in which sizes are computed.
fn long(expr: Expr) -> Expr {
    match constant(&expr) {
        Some(value) => Expr::Int { value, ty: ScalarType::Int64 },
        None if expr.dtype() == DataType::scalar(ScalarType::Int64) => expr,
        None => Expr::Cast(DataType::scalar(ScalarType::Int64), Box::new(expr)),
    }
}

fn times(elements: Expr, bytes: u64) -> Expr {
    if bytes == 1 { elements } else { long(elements) * long(Expr::int(i64::try_from(bytes).unwrap_or(i64::MAX))) }
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

/// Whether work-items of an explicit launch may touch each other's elements.
fn is_ordered(nest: &Stmt, bound: &BTreeMap<ThreadTag, Expr>, writer: &Writer) -> bool {
    let mut ranges = writer.ranges.clone();
    let mut substitution = Substitution::default();
    let mut axes = Vec::new();
    for (tag, extent) in bound {
        let axis = Var::index(tag.to_string());
        ranges.insert_loop(&axis, &Expr::int(0), extent);
        for (inner, other) in bound_loops(nest) {
            if other == *tag {
                let value = Expr::Cast(inner.var.dtype(), Box::new(Expr::from(&axis)));
                let value = if inner.var.dtype() == axis.dtype() { Expr::from(&axis) } else { value };
                substitution.insert(&inner.var, value + inner.min.clone());
            }
        }
        axes.push(axis);
    }
    !separates(&axes, &substitution.apply_stmt(nest), &ranges)
}

/// Binds the leading loops of a nest whose iterations keep to themselves.
fn automatic(nest: &Stmt, writer: &mut Writer) -> (Binding, [Expr; 3], Option<[Expr; 3]>) {
    let one = || [1, 1, 1].map(Expr::int);
    let mut loops = leading_loops(nest);
    let fixed = |expr: &Expr| !reads_memory(expr) && expr.vars().iter().all(|var| writer.known_scalars.contains(var));
    let known = loops.iter().take_while(|inner| fixed(&inner.extent) && fixed(&inner.min)).count();
    loops.truncate(known);
    let parallel = loops.iter().take_while(|inner| inner.kind == tilewright_ir::ForKind::Parallel).count();
    let vars: Vec<_> = loops.iter().map(|inner| inner.var.clone()).collect();
    let independent = |count: &usize| separates(&vars[..*count], nest, &writer.ranges);
    let count = (parallel + 1..=loops.len()).rev().find(independent).unwrap_or(parallel);
    loops.truncate(count);
    if loops.is_empty() {
        return (Binding::Single, one(), None);
    }
    let mut global = one();
    let mut axes = Vec::new();
    for (place, inner) in loops.iter().rev().enumerate() {
        let axis = place.min(2);
        if place < 2 || loops.len() == 3 {
            global[axis] = inner.extent.clone();
            axes.push((inner.var.clone(), format!("get_global_id({axis})")));
            continue;
        }
        // The loops that are left share the last dimension, the outermost as the highest digit.
        let below: Vec<_> = loops.iter().rev().skip(2).take(place - 2).map(|inner| inner.extent.clone()).collect();
        let mut text = "get_global_id(2)".to_owned();
        for extent in &below {
            let extent = writer.index(extent).map_or_else(|_| "1".to_owned(), |code| code.within(14));
            text = format!("{text} / {extent}");
        }
        if place + 1 < loops.len() {
            let extent = writer.index(&inner.extent).map_or_else(|_| "1".to_owned(), |code| code.within(14));
            text = format!("{text} % {extent}");
        }
        global[2] =
            if place == 2 { inner.extent.clone() } else { long(global[2].clone()) * long(inner.extent.clone()) };
        axes.push((inner.var.clone(), format!("({text})")));
    }
    writer.launch.automatic = axes;
    (Binding::Automatic, global, None)
}

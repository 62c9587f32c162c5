//! The printer of TVMScript. Reading the text gives a program equal to the printed one.
//!
//! Nested sequences are printed flat, as [`tilewright_ir::Stmt::seq`] builds them. A name is kept if it is unique and a
//! Python identifier, and otherwise changed. Every constant but an `int32` has its type, and every conversion is written
//! out, so that the text does not depend on the reader's conversion rules.
//!
//! ```python
//! @T.prim_func
//! def scale(A: T.Buffer((64,), "float32"), b: T.handle, n: T.int32):
//!     m = T.int32()
//!     B = T.match_buffer(b, (m,), "float32")
//!     for i in range(n):
//!         B[i] = A[i] * T.float32(2.0)
//! ```

mod block;
mod device;
mod dialect;
mod expr;
mod names;
mod stmt;
mod texture;

use tilewright_ir::{AttrValue, Buffer, Diagnostic, Expr, IndexMap, Module, PrimFunc, Scalar, Scope, StmtKind, Var};

use device::DeviceFunction;
pub use dialect::{Dialect, UnknownDialect};
use names::Names;

use crate::index_map::physical_shape;
use crate::tile_layout::print_xla_layout;

/// Prints a file with all functions of a module.
pub fn print_module(module: &Module) -> String {
    let mut text = "from tvm.script import tir as T\n".to_owned();
    let mut taken = names_of(module);
    for func in &module.funcs {
        let mut printer = Printer { taken: std::mem::take(&mut taken), ..Printer::of(func) };
        printer.func(func);
        text.push('\n');
        text.push_str(&printer.text);
        taken = printer.taken;
    }
    text
}

/// The names of the functions of a module, which no device function gets.
fn names_of(module: &Module) -> Vec<String> {
    module.funcs.iter().map(|func| func.name.clone()).collect()
}

/// Prints a file with all functions of a module, in a notation.
///
/// # Errors
/// Each thing that the notation cannot express is an error; see the table of [`Dialect`]'s module for what differs.
pub fn print_module_in(module: &Module, dialect: Dialect) -> Result<String, Vec<Diagnostic>> {
    if !dialect.is_tvm() {
        return Ok(print_module(module));
    }
    let mut text = format!(
        "from tvm.script import ir as I\nfrom tvm.script import {} as T\n\n@I.ir_module\nclass Module:\n",
        dialect.module()
    );
    let mut faults = Vec::new();
    let mut taken = names_of(module);
    for (position, func) in module.funcs.iter().enumerate() {
        let start = Printer { indent: 1, indent_of_functions: 1, dialect, ..Printer::of(func) };
        let mut printer = Printer { taken: std::mem::take(&mut taken), ..start };
        printer.func(func);
        taken = std::mem::take(&mut printer.taken);
        if position > 0 {
            text.push('\n');
        }
        text.push_str(&printer.text);
        faults.extend(printer.faults);
    }
    if faults.is_empty() { Ok(text) } else { Err(faults) }
}

/// Prints a function and the device functions that it calls, without the import of `T`.
pub fn print_func(func: &PrimFunc) -> String {
    let mut printer = Printer::of(func);
    printer.func(func);
    printer.text
}

/// Prints an expression. Variables and buffers have their own names, which need not be unique.
pub fn print_expr(expr: &Expr) -> String {
    Printer::default().expr(expr)
}

/// The state of the printer.
#[derive(Default)]
struct Printer {
    /// The text so far.
    text: String,
    /// The number of indentation levels of the next line.
    indent: usize,
    /// The names of variables and buffers.
    names: Names,
    /// The data variables whose layout an attribute transforms. The separators of their buffers belong to the
    /// transformed layout, so they cannot be printed as those of a texture.
    transformed_data: Vec<Var>,
    /// The condition of the initialisation of each block around the current statement, until it is printed.
    inits: Vec<Option<Expr>>,
    /// The notation.
    dialect: Dialect,
    /// Whether an allocation here is memory of a block, or of a function that has blocks.
    is_block_memory: bool,
    /// What the notation cannot express.
    faults: Vec<Diagnostic>,
    /// The number of indentation levels of a function.
    indent_of_functions: usize,
    /// The device functions that were called so far.
    devices: Vec<DeviceFunction>,
    /// The names of functions and of device functions of functions in front.
    taken: Vec<String>,
}

impl Printer {
    /// A printer that knows the names of a function.
    fn of(func: &PrimFunc) -> Self {
        let maps = func.attrs.layout_transform_map.iter().map(|(data, _)| data.clone());
        let tiles = func.attrs.tile_layout.iter().map(|(data, _)| data.clone());
        Self { names: Names::new(func), transformed_data: maps.chain(tiles).collect(), ..Self::default() }
    }

    /// Says that the notation cannot express something.
    fn refuse(&mut self, span: Option<tilewright_ir::Span>, what: &str, help: &str) {
        let message = format!("{what} cannot be written for TVM {}", self.dialect);
        self.faults.push(Diagnostic::error("dialect", span, message).with_help(help));
    }

    /// Prints something in which allocations are not memory of a block.
    fn inside<T>(&mut self, print: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.is_block_memory, false);
        let printed = print(self);
        self.is_block_memory = outer;
        printed
    }

    /// Adds a line.
    fn line(&mut self, text: &str) {
        self.text.push_str(&"    ".repeat(self.indent));
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Prints a function.
    ///
    /// A buffer is declared in the parameter list if its declaration refers to scalar parameters only, and by
    /// `T.match_buffer` at the top of the body otherwise: symbolic extents can be declared only there.
    fn func(&mut self, func: &PrimFunc) {
        let scalars: Vec<&Var> = func.params.iter().filter(|param| func.param_buffer(param).is_none()).collect();
        let symbols: Vec<Var> = func.symbols().into_iter().filter(|symbol| !scalars.contains(&symbol)).collect();
        for var in scalars.iter().copied().chain(&symbols) {
            self.names.bind(var);
        }
        let (mut params, mut matched) = (Vec::new(), Vec::new());
        for param in &func.params {
            let Some(buffer) = func.param_buffer(param) else {
                params.push(format!("{}: T.{}", self.names.var(param), param.dtype()));
                continue;
            };
            let known = |expr: &Expr| expr.vars().iter().all(|var| scalars.contains(&var));
            let strides = buffer.strides.iter().flatten();
            let closed = buffer.shape.iter().chain(strides).chain([&buffer.elem_offset]).all(known);
            // The short form makes a handle with the name of the buffer, and memory of its own. It is used only if reading
            // it gives the same parameter back.
            if closed && param.name() == buffer.name && self.names.data_owner(&buffer.data).is_none() {
                let declaration = self.declaration(buffer, false);
                params.push(format!("{}: T.Buffer({declaration})", self.names.buffer(buffer)));
                self.names.claim_data(buffer);
            } else {
                let wanted =
                    if param.name() == buffer.name { format!("var_{}", buffer.name) } else { param.name().to_owned() };
                let handle = self.names.bind_as(param, &wanted);
                params.push(format!("{handle}: T.handle"));
                matched.push((handle, buffer.clone()));
            }
        }
        self.line(self.dialect.decorator());
        self.line(&format!("def {}({}):", func.name, params.join(", ")));
        self.indent += 1;
        for symbol in &symbols {
            let line = format!("{} = T.{}()", self.names.var(symbol), symbol.dtype());
            self.line(&line);
        }
        for (handle, buffer) in matched {
            let shared = self.names.data_owner(&buffer.data).is_some();
            let declaration = self.declaration(&buffer, shared);
            let line = format!("{} = T.match_buffer({handle}, {declaration})", self.names.buffer(&buffer));
            self.line(&line);
            self.names.claim_data(&buffer);
        }
        self.func_attrs(func);
        self.is_block_memory = has_blocks(func);
        self.body(&func.body);
        self.indent -= 1;
        self.device_functions();
    }

    /// Prints the attributes of a function, if it has any.
    fn func_attrs(&mut self, func: &PrimFunc) {
        self.refuse_requests(func);
        let mut entries: Vec<String> =
            func.attrs.other.iter().map(|(key, value)| format!("{}: {}", expr::quote(key), self.attr(value))).collect();
        let buffers = func.buffers();
        let mut maps = Vec::new();
        for (data, transforms) in &func.attrs.layout_transform_map {
            let Some(buffer) = buffers.iter().find(|buffer| buffer.data == *data) else { continue };
            let mut printed = Vec::new();
            for (position, map) in transforms.iter().enumerate() {
                // The domain is printed only if the reader would assume another one. Finding that one can enumerate the
                // domain of the map before, so it is done only for a map that follows another.
                let before = position.checked_sub(1).and_then(|before| transforms.get(before));
                let default = before.map_or_else(|| Some(buffer.shape.clone()), physical_shape);
                let lambda = self.index_map(map);
                let stated = match &default {
                    Some(domain) => domain != map.domain(),
                    None => !has_default_domain(map),
                };
                printed.push(if stated {
                    format!("T.index_map({lambda}, shape={})", self.list(map.domain()))
                } else {
                    lambda
                });
            }
            maps.push(format!("{}: [{}]", self.names.buffer(buffer), printed.join(", ")));
        }
        if !maps.is_empty() {
            entries.push(format!("\"layout_transform_map\": {{{}}}", maps.join(", ")));
        }
        let mut tiles = Vec::new();
        for (data, request) in &func.attrs.tile_layout {
            let Some(buffer) = buffers.iter().find(|buffer| buffer.data == *data) else { continue };
            let layout = expr::quote(&print_xla_layout(&request.layout));
            let entry = match request.pad_value {
                None => layout,
                Some(value) => {
                    let value = match value {
                        Scalar::Int(value) => AttrValue::Int(i64::try_from(value).unwrap_or(i64::MAX)),
                        Scalar::Float(value) => AttrValue::Float(value),
                    };
                    format!("{{\"layout\": {layout}, \"pad_value\": {}}}", self.attr(&value))
                }
            };
            tiles.push(format!("{}: {entry}", self.names.buffer(buffer)));
        }
        if !tiles.is_empty() {
            entries.push(format!("\"tile_layout\": {{{}}}", tiles.join(", ")));
        }
        if !func.attrs.schedule.is_empty() {
            let steps: Vec<_> = func.attrs.schedule.iter().map(|step| expr::quote(&step.to_string())).collect();
            entries.push(format!("\"schedule\": [{}]", steps.join(", ")));
        }
        if let Some(limits) = func.attrs.texture_limits {
            entries.push(format!("\"texture_limits\": \"{limits}\""));
        }
        if !func.attrs.extents.is_empty() {
            let names: Vec<_> = func.attrs.extents.iter().map(|var| self.names.var(var)).collect();
            entries.push(format!("\"extents\": [{}]", names.join(", ")));
        }
        if !entries.is_empty() {
            self.line(&format!("T.func_attr({{{}}})", entries.join(", ")));
        }
    }

    /// Refuses attributes that ask this compiler for something: TVM does not know them, and a program without them is another one.
    fn refuse_requests(&mut self, func: &PrimFunc) {
        if !self.dialect.is_tvm() {
            return;
        }
        let spans = &func.attrs.layout_spans;
        let requests = [
            ("layout_transform_map", !func.attrs.layout_transform_map.is_empty(), "run apply_buffer_transforms first"),
            ("tile_layout", !func.attrs.tile_layout.is_empty(), "run tile_layout first"),
            ("schedule", !func.attrs.schedule.is_empty(), "run the passes that it asks for first"),
        ];
        for (name, is_there, help) in requests {
            if is_there {
                let span = spans.first().map(|(_, span)| *span);
                self.refuse(span, &format!("the request `{name}` of `{}`", func.name), help);
            }
        }
    }

    /// Returns the arguments of a declaration. With `alias` it names existing memory. Properties with default values are
    /// left out.
    fn declaration(&mut self, buffer: &Buffer, alias: bool) -> String {
        let shape = match buffer.shape.as_slice() {
            [only] => format!("({},)", self.expr(only)),
            shape => format!("({})", self.exprs(shape)),
        };
        let mut parts = vec![shape, format!("\"{}\"", buffer.dtype)];
        if alias {
            parts.push(format!("data={}", self.names.data(&buffer.data)));
        }
        if let Some(strides) = buffer.strides.as_ref().filter(|strides| !strides.is_empty()) {
            parts.push(format!("strides={}", self.list(strides)));
        }
        if buffer.elem_offset != Expr::int(0) {
            parts.push(format!("elem_offset={}", self.expr(&buffer.elem_offset)));
        }
        if buffer.scope != Scope::Global {
            parts.push(format!("scope=\"{}\"", self.dialect.scope(buffer.scope)));
        }
        if !buffer.axis_separators.is_empty() && !self.dialect.has_separators() {
            let help = "flatten the buffer without separators, or print for release 0.16";
            self.refuse(buffer.span, &format!("the axis separators of `{buffer}`"), help);
        } else if !buffer.axis_separators.is_empty() {
            parts.push(format!("axis_separators={:?}", buffer.axis_separators.positions()));
        }
        parts.join(", ")
    }

    /// Returns `[a, b]`.
    fn list(&mut self, exprs: &[Expr]) -> String {
        format!("[{}]", self.exprs(exprs))
    }
}

/// Returns whether a map has the domain that the reader assumes for a lambda without a known shape: for each index a
/// symbol named after it.
fn has_default_domain(map: &IndexMap) -> bool {
    let is_named = |(var, extent): (&Var, &Expr)| matches!(extent, Expr::Var(extent) if *extent.name() == format!("{}_extent", var.name()));
    map.vars().iter().zip(map.domain()).all(is_named)
}

/// Returns whether a function has blocks of S-TIR.
fn has_blocks(func: &PrimFunc) -> bool {
    let mut found = false;
    func.body.walk(&mut |stmt| {
        found |= matches!(&stmt.kind, StmtKind::Attr { value: AttrValue::Block(_), .. });
    });
    found
}

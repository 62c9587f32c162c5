//! What the tests of textures on a device share: programs written short, the device, and the interpreter beside it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use tilewright::codegen::{Arguments, Generated, Options, OutsideTexture, generate_with};
use tilewright_device::{BuildOptions, RunOptions, Session, devices, select};
use tilewright_interp::{Argument, Config, Tensor};
use tilewright_ir::{
    AxisSeparators, Bindings, Buffer, DataType, Expr, ForKind, FuncAttrs, PrimFunc, ScalarType, Scope, Stmt, StmtKind,
    ThreadTag, Var, validate,
};

/// The device; `make test` installs PoCL.
pub(crate) fn session() -> &'static Session {
    static SESSION: OnceLock<Session> = OnceLock::new();
    SESSION.get_or_init(|| {
        let devices = devices().expect("OpenCL answers");
        Session::open(select(&devices, None).expect("an OpenCL device")).expect("the device opens")
    })
}

/// `[height, width, 4]` in a texture.
pub(crate) fn texture(name: &str, ty: ScalarType, height: impl Into<Expr>, width: impl Into<Expr>) -> Buffer {
    let shape = vec![height.into(), width.into(), Expr::int(4)];
    Buffer::compact(name, ty, shape).with(|info| {
        info.scope = Scope::Texture;
        info.axis_separators = AxisSeparators::new(vec![1, 2], 3).unwrap();
    })
}

/// Linear memory of so many elements.
pub(crate) fn linear(name: &str, ty: ScalarType, extent: impl Into<Expr>) -> Buffer {
    Buffer::compact(name, ty, vec![extent.into()])
}

/// A function of buffers.
pub(crate) fn function(name: &str, params: &[&Buffer], body: Stmt) -> PrimFunc {
    let handle = |buffer: &Buffer| Var::new(format!("{buffer}_handle"), DataType::HANDLE);
    let buffer_map: Vec<_> = params.iter().map(|&buffer| (handle(buffer), buffer.clone())).collect();
    let params = buffer_map.iter().map(|(var, _)| var.clone()).collect();
    PrimFunc { name: name.into(), params, buffer_map, attrs: FuncAttrs::default(), body }
}

pub(crate) fn allocate(buffer: &Buffer, body: Stmt) -> Stmt {
    Stmt::new(StmtKind::Allocate { buffer: buffer.clone(), body: Box::new(body) })
}

pub(crate) fn ramp(base: impl Into<Expr>, lanes: u16) -> Expr {
    Expr::Ramp { base: Box::new(base.into()), stride: Box::new(Expr::int(1)), lanes }
}

pub(crate) fn broadcast(value: Expr) -> Expr {
    Expr::Broadcast { value: Box::new(value), lanes: 4 }
}

/// `texture2d_load`.
pub(crate) fn texel(buffer: &Buffer, row: impl Into<Expr>, column: impl Into<Expr>) -> Expr {
    Expr::load(buffer, vec![row.into(), column.into(), ramp(0, 4)])
}

/// One channel of `texture2d_load`.
pub(crate) fn channel(buffer: &Buffer, row: impl Into<Expr>, column: impl Into<Expr>, lane: impl Into<Expr>) -> Expr {
    Expr::load(buffer, vec![row.into(), column.into(), lane.into()])
}

/// `texture2d_store`.
pub(crate) fn store(buffer: &Buffer, row: impl Into<Expr>, column: impl Into<Expr>, value: Expr) -> Stmt {
    Stmt::store(buffer, vec![row.into(), column.into(), ramp(0, 4)], value)
}

/// Four neighbours in linear memory: those of the texel at a row and column of rows of `width`.
pub(crate) fn four(row: &Var, column: &Var, width: impl Into<Expr>) -> Expr {
    ramp((Expr::from(row) * width.into() + Expr::from(column)) * Expr::int(4), 4)
}

/// A nest over rows and columns, on the axes of a launch.
pub(crate) fn nest(height: impl Into<Expr>, width: impl Into<Expr>, body: impl FnOnce(&Var, &Var) -> Stmt) -> Stmt {
    let (row, column) = (Var::index("i"), Var::index("j"));
    let body = body(&row, &column);
    let inner = Stmt::for_loop(&column, width.into(), ForKind::ThreadBinding(ThreadTag::Thread(0)), body);
    Stmt::for_loop(&row, height.into(), ForKind::ThreadBinding(ThreadTag::Block(0)), inner)
}

/// The kernels of a function.
pub(crate) fn kernels(func: &PrimFunc, options: &Options) -> Generated {
    generate_with(validate(func).expect("a well-formed function"), options).expect("kernels")
}

/// The codes of the errors of a function.
pub(crate) fn errors(func: &PrimFunc) -> Vec<&'static str> {
    let found = generate_with(validate(func).expect("a well-formed function"), &Options::default());
    found.expect_err("it is refused").iter().map(|error| error.code).collect()
}

/// A tensor out of bytes.
pub(crate) fn tensor(buffer: &Buffer, shape: &[u64], bytes: Vec<u8>) -> Tensor {
    Tensor::from_bytes(buffer.dtype, shape, bytes).unwrap()
}

/// What a run left behind.
#[derive(Debug, PartialEq)]
pub(crate) struct Left {
    /// Bytes of each parameter that was written, by name.
    pub(crate) outputs: BTreeMap<String, Vec<u8>>,
    /// What the checked mode says.
    pub(crate) outside: Option<OutsideTexture>,
}

/// What the interpreter makes of a function: the bytes of each parameter that has no input.
pub(crate) fn interpreted(func: &PrimFunc, inputs: &[Tensor], outputs: &[Tensor]) -> BTreeMap<String, Vec<u8>> {
    let all = inputs.iter().chain(outputs).cloned().map(Argument::Tensor).collect();
    let mut arguments = tilewright_interp::Arguments { params: all, symbols: Vec::new() };
    let valid = validate(func).expect("a well-formed function");
    tilewright_interp::run(valid, &mut arguments, &Config::default()).unwrap_or_else(|error| panic!("{error}"));
    let results = func.buffer_map.iter().zip(&arguments.params).skip(inputs.len());
    let bytes = results.map(|((_, buffer), argument)| match argument {
        Argument::Tensor(tensor) => (buffer.name.clone(), tensor.bytes().to_vec()),
        Argument::Scalar(_) => panic!("no scalars here"),
    });
    bytes.collect()
}

/// The first inputs of a function as bytes.
pub(crate) fn arguments(func: &PrimFunc, inputs: &[Tensor], symbols: &Bindings) -> Arguments {
    let contents = func.buffer_map.iter().zip(inputs);
    let contents = contents.map(|((_, buffer), tensor)| (buffer.data.clone(), tensor.bytes().to_vec()));
    Arguments { symbols: symbols.clone(), contents: contents.collect(), ..Arguments::default() }
}

/// Builds a source with the metadata of `generated` and runs it.
pub(crate) fn run_source(generated: &Generated, source: &str, arguments: &Arguments) -> Left {
    let options = BuildOptions { correctly_rounded: true, flags: generated.metadata.build_options.clone() };
    let program = session().build(source, &options).unwrap_or_else(|error| panic!("{error}"));
    let plan = generated.plan(arguments).expect("a plan");
    let ran = session().run(&program, &plan, &RunOptions::default());
    let ran = ran.unwrap_or_else(|error| panic!("{error}\n{source}"));
    let outside = generated.outside_texture(&ran.buffers, &arguments.symbols);
    let named = generated.metadata.buffers.iter().zip(&ran.buffers);
    let outputs = named.filter_map(|(info, bytes)| Some((info.name.clone(), bytes.clone()?))).collect();
    Left { outputs, outside }
}

/// Runs a function unchecked, checked and placed, each time on the device, and compares with the interpreter.
pub(crate) fn agrees(func: &PrimFunc, inputs: &[Tensor], outputs: &[Tensor]) -> Generated {
    let expected = interpreted(func, inputs, outputs);
    let given = arguments(func, inputs, &Bindings::new());
    for (checked, placed) in [(false, false), (true, false), (false, true), (true, true)] {
        let generated = kernels(func, &Options { checked, placed });
        let left = run_source(&generated, &generated.source, &given);
        assert_eq!(left.outside, None, "{}", generated.source);
        assert_eq!(left.outputs, expected, "{}", generated.source);
    }
    kernels(func, &Options::default())
}

//! What the tests of textures on a device share: programs written short, the device, and the interpreter beside it.

use std::sync::Arc;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use tilewright::codegen::{Arguments, Generated, Options, OutsideTexture, generate_judged};
use tilewright_device::{BuildOptions, LaunchPlan, RunOptions, Session, devices, select};
use tilewright_interp::{Argument, Config, Tensor};
use tilewright_ir::{
    AxisSeparators, Bindings, Buffer, DataType, Expr, ForKind, FuncAttrs, PrimFunc, Scalar, ScalarType, Scope,
    SharedExpr, Stmt, StmtKind, ThreadTag, Var, validate,
};
use tilewright_verify::Judge;

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
    texture_of(4, name, ty, height, width)
}

/// `[height, width, channels]` in a texture.
pub(crate) fn texture_of(
    channels: u16,
    name: &str,
    ty: ScalarType,
    height: impl Into<Expr>,
    width: impl Into<Expr>,
) -> Buffer {
    let shape = vec![height.into(), width.into(), Expr::int(channels.into())];
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
    Stmt::new(StmtKind::Allocate { buffer: buffer.clone(), body: Arc::new(body) })
}

pub(crate) fn ramp(base: impl Into<Expr>, lanes: u16) -> Expr {
    Expr::Ramp { base: SharedExpr::new(base.into()), stride: SharedExpr::new(Expr::int(1)), lanes }
}

pub(crate) fn broadcast(value: Expr) -> Expr {
    Expr::Broadcast { value: SharedExpr::new(value), lanes: 4 }
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
pub(crate) fn kernels(func: &PrimFunc, options: Options) -> Generated {
    let judge = Judge::new(tilewright_verify::Config::default(), tilewright_search::strategies()).expect("a solver");
    generate_judged(&judge, validate(func).expect("a well-formed function"), &options).expect("kernels")
}

/// Parameters by name.
pub(crate) type Tensors = BTreeMap<String, Tensor>;

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Left {
    /// Each parameter that was written.
    pub(crate) outputs: Tensors,
    /// What the checked mode says.
    pub(crate) outside: Option<OutsideTexture>,
}

/// A program, what it is run on, and what the interpreter makes of it.
pub(crate) struct Case {
    pub(crate) func: PrimFunc,
    pub(crate) given: Arguments,
    pub(crate) expected: Tensors,
}

impl Case {
    /// The inputs are those of the first parameters; the others are outputs and start undefined.
    pub(crate) fn new(func: PrimFunc, inputs: &[Tensor]) -> Self {
        Self::with_symbols(func, inputs, &[])
    }

    /// The same for a function of symbolic extents.
    pub(crate) fn with_symbols(func: PrimFunc, inputs: &[Tensor], symbols: &[(Var, i128)]) -> Self {
        let given = arguments(&func, inputs, symbols);
        let expected = interpreted(&func, inputs, &given.symbols);
        Self { func, given, expected }
    }

    pub(crate) fn kernels(&self, options: Options) -> Generated {
        kernels(&self.func, options)
    }

    /// Runs a source with the metadata of `generated`: what differs first from the interpreter, and what is reported.
    pub(crate) fn run(&self, generated: &Generated, source: &str) -> (Option<String>, Option<OutsideTexture>) {
        let left = run_source(generated, source, &self.given);
        (difference(&self.expected, &left.outputs), left.outside)
    }

    /// Runs unchecked, checked and placed, each time on the device: nothing differs from the interpreter.
    pub(crate) fn agrees(&self) -> Generated {
        for (checked, placed) in [(false, false), (true, false), (false, true), (true, true)] {
            let generated = self.kernels(Options { checked, placed, aliased: false });
            assert_eq!(self.run(&generated, &generated.source), (None, None), "{}", generated.source);
        }
        self.kernels(Options::default())
    }

    /// Whether a source in which `from` is `to` everywhere is told from the right one.
    pub(crate) fn tells(&self, options: Options, from: &str, to: &str) -> bool {
        let generated = self.kernels(options);
        assert_eq!(self.run(&generated, &generated.source), (None, None), "the right one first\n{}", generated.source);
        let broken = generated.source.replace(from, to);
        assert_ne!(broken, generated.source, "`{from}` is not in it");
        let (difference, outside) = self.run(&generated, &broken);
        difference.is_some() || outside.is_some()
    }
}

/// The first element in which what is defined differs.
pub(crate) fn difference(expected: &Tensors, got: &Tensors) -> Option<String> {
    assert!(!expected.is_empty(), "nothing to compare");
    assert_eq!(expected.keys().collect::<Vec<_>>(), got.keys().collect::<Vec<_>>());
    expected.iter().find_map(|(name, tensor)| {
        let differs = |&k: &usize| tensor.is_defined(k) && !tensor.get(k).unwrap().same(got[name].get(k).unwrap());
        let place = (0..tensor.lane_count()).find(differs)?;
        Some(format!("{name}[{place}] is {:?}, not {:?}", got[name].get(place), tensor.get(place)))
    })
}

/// What the interpreter makes of the parameters that have no input.
fn interpreted(func: &PrimFunc, inputs: &[Tensor], symbols: &Bindings) -> Tensors {
    let undefined = |(_, buffer): &(Var, Buffer)| Tensor::undefined(buffer.dtype, &shape(buffer, symbols)).unwrap();
    let outputs = func.buffer_map.iter().skip(inputs.len()).map(undefined);
    let params = inputs.iter().cloned().chain(outputs).map(Argument::Tensor).collect();
    let mut arguments = tilewright_interp::Arguments { params, symbols: Vec::new() };
    let valid = validate(func).expect("a well-formed function");
    tilewright_interp::run(valid, &mut arguments, &Config::default()).unwrap_or_else(|error| panic!("{error}"));
    let results = func.buffer_map.iter().zip(arguments.params).skip(inputs.len());
    let tensors = results.map(|((_, buffer), argument)| match argument {
        Argument::Tensor(tensor) => (buffer.name.clone(), tensor),
        Argument::Scalar(_) => panic!("no scalars here"),
    });
    tensors.collect()
}

/// The extents of a buffer.
pub(crate) fn shape(buffer: &Buffer, symbols: &Bindings) -> Vec<u64> {
    buffer.shape.iter().map(|extent| u64::try_from(extent.eval_index(symbols).unwrap()).unwrap()).collect()
}

/// The first inputs of a function as bytes.
pub(crate) fn arguments(func: &PrimFunc, inputs: &[Tensor], symbols: &[(Var, i128)]) -> Arguments {
    let contents = func.buffer_map.iter().zip(inputs);
    let contents = contents.map(|((_, buffer), tensor)| (buffer.data.clone(), tensor.shared_bytes()));
    let symbols = symbols.iter().cloned().collect();
    Arguments { symbols, contents: contents.collect(), ..Arguments::default() }
}

/// Builds a source with the metadata of `generated` and runs it.
pub(crate) fn run_source(generated: &Generated, source: &str, arguments: &Arguments) -> Left {
    let plan = generated.plan(arguments).expect("a plan");
    let buffers = run_plan(generated, source, &plan);
    let outside = generated.outside_texture(&buffers, &arguments.symbols);
    let named = generated.metadata.buffers.iter().zip(&buffers);
    let outputs = named.filter_map(|(info, bytes)| {
        let extents = info.physical_shape.iter().map(|extent| extent.eval(&arguments.symbols).unwrap());
        let tensor = Tensor::from_bytes(info.dtype, &extents.collect::<Vec<_>>(), bytes.clone()?).unwrap();
        Some((info.name.clone(), tensor))
    });
    Left { outputs: outputs.collect(), outside }
}

/// Builds a source and runs a plan.
pub(crate) fn run_plan(generated: &Generated, source: &str, plan: &LaunchPlan) -> Vec<Option<Vec<u8>>> {
    let options = BuildOptions { flags: generated.metadata.build_options.clone(), ..BuildOptions::default() };
    let program = session().build(source, &options).unwrap_or_else(|error| panic!("{error}"));
    let ran = session().run(&program, plan, &RunOptions::default());
    ran.unwrap_or_else(|error| panic!("{error}\n{source}")).buffers
}

/// Values of a type that are worth trying: the ends of its range, and for floats what is no ordinary number.
pub(crate) fn values(ty: ScalarType, shape: &[u64]) -> Tensor {
    let special = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -0.0,
        0.0,
        5.960_464_477_539_063e-8,
        -6.0e-5,
        1.0e-40,
        65504.0,
        3.402_823_466_385_288_6e38,
        1.0 / 3.0,
        -2.75,
    ];
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let value = |k: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if ty.is_float() {
            let ordinary = f64::from(i32::try_from(state >> 33).unwrap() % 4096) / 64.0 - 17.0;
            return Scalar::Float(if k.is_multiple_of(3) { special[k / 3 % special.len()] } else { ordinary });
        }
        let (low, high) = ty.integer_range().unwrap();
        let ends = [low, low + 1, high, high - 1, 0, 1, high / 2 + 1, low / 2];
        let ordinary = low + i128::from(state >> 16) % (high - low + 1);
        Scalar::Int(if k.is_multiple_of(2) { ends[k / 2 % ends.len()] } else { ordinary })
    };
    Tensor::from_fn(ty, shape, value).unwrap()
}

/// Numbers that differ from their neighbours in every direction.
pub(crate) fn numbers(ty: ScalarType, shape: &[u64]) -> Tensor {
    let value = |k: usize| u8::try_from(k * 37 % 127).unwrap();
    let scalar =
        |k| if ty.is_float() { Scalar::Float(f64::from(value(k)) * 0.25) } else { Scalar::Int(value(k).into()) };
    Tensor::from_fn(ty, shape, scalar).unwrap()
}

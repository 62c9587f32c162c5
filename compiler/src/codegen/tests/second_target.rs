//! A second target is a value and nothing else: kernels of one lane in the words of CUDA C, without vectors and images.
//!
//! The target is made for these tests. It has no host and its kernels are not built, so it is no back end; it shows that the
//! generator asks the target for everything that is special about a language.

use tilewright_ir::{
    BinaryOp, Buffer, DataType, Expr, ForKind, MathFn, ScalarType, Scope, Stmt, ThreadTag, Var, validate,
};

use super::support::function;
use crate::codegen::code::Code;
use crate::codegen::helpers::Helpers;
use crate::codegen::target::{Dialect, Limits, Refusal, Reserved, Words};
use crate::codegen::{Generated, Options, Target, generate_for, join};

static CUDA: Target = Target {
    name: "cuda",
    api: "CUDA",
    version: "CUDA 12",
    language: "CUDA C",
    file_suffix: "cu",
    build_options: &["--fmad=false"],
    fp64_extension: None,
    lanes: &[1],
    limits: Limits { private_bytes: 512, local_bytes: 4096, read_images: 0, written_images: 0 },
    words: Words {
        kernel: "extern \"C\" __global__ void",
        global: "",
        private: "",
        local: "",
        local_array: "__shared__ ",
        restrict: "__restrict__",
        group_id: ["blockIdx.x", "blockIdx.y", "blockIdx.z"],
        local_id: ["threadIdx.x", "threadIdx.y", "threadIdx.z"],
        global_id: [
            "(blockIdx.x * blockDim.x + threadIdx.x)",
            "(blockIdx.y * blockDim.y + threadIdx.y)",
            "(blockIdx.z * blockDim.z + threadIdx.z)",
        ],
        barrier: "__syncthreads();",
        full_barrier: "__syncthreads();",
        unroll: "#pragma unroll",
    },
    reserved: Reserved { words: &["float", "threadIdx", "blockIdx"], prefixes: &["__", "tw_"], macros: &["INFINITY"] },
    dialect: &CudaC,
    images: None,
};

#[derive(Debug)]
struct CudaC;

/// The name of a vector type. Code generation never asks for it, because this target has scalar values only.
const NO_VECTORS: &str = "the target has no vectors";

impl Dialect for CudaC {
    fn code(&self, refusal: Refusal) -> &'static str {
        match refusal {
            Refusal::Lanes => "cuda-lanes",
            Refusal::Texture => "cuda-texture",
            Refusal::PrivateSize => "cuda-private-size",
            other => panic!("no test refuses this: {other:?}"),
        }
    }

    fn prelude(&self, _fp64: bool) -> String {
        String::new()
    }

    fn scalar_name(&self, ty: ScalarType) -> &'static str {
        match ty {
            ScalarType::Bool | ScalarType::Int32 => "int",
            ScalarType::Int8 => "signed char",
            ScalarType::Int64 => "long long",
            ScalarType::Float32 => "float",
            ScalarType::Float64 => "double",
            other => panic!("no test has this type: {other}"),
        }
    }

    fn value_name(&self, ty: DataType) -> String {
        self.scalar_name(ty.scalar).to_owned()
    }

    fn storage_name(&self, ty: ScalarType) -> &'static str {
        if ty == ScalarType::Bool { "unsigned char" } else { self.scalar_name(ty) }
    }

    fn wrapping_name(&self, ty: ScalarType) -> &'static str {
        if ty.bits() == 64 { "unsigned long long" } else { "unsigned int" }
    }

    fn read(&self, _: &mut Helpers, _: DataType, position: &str, pointer: &str) -> String {
        format!("{pointer}[{position}]")
    }

    fn write(&self, _: &mut Helpers, _: DataType, position: &str, pointer: &str, value: &str) -> String {
        format!("{pointer}[{position}] = {value};")
    }

    fn division(&self, helpers: &mut Helpers, op: BinaryOp, ty: DataType) -> String {
        assert_eq!((op, ty), (BinaryOp::FloorDiv, DataType::INT32), "no test divides otherwise");
        helpers.define("tw_floordiv_int".to_owned(), |name| {
            format!(
                "static __device__ inline int {name}(int a, int b) {{\n    \
                 return b == 0 ? 0 : a / b - (a % b != 0 && (a % b < 0) != (b < 0));\n}}\n"
            )
        })
    }

    fn integer_min_max(&self, op: BinaryOp, _: DataType, a: &Code, b: &Code) -> Code {
        Code::call(op.info().call, &[a, b])
    }

    fn float_min_max(&self, _: &mut Helpers, _: BinaryOp, _: DataType) -> String {
        panic!("no test does this")
    }

    fn math(&self, _: &mut Helpers, function: MathFn, ty: DataType, args: &[&Code]) -> Code {
        let end = if ty.scalar == ScalarType::Float32 { "f" } else { "" };
        Code::call(&format!("{}{end}", function.info().0), args)
    }

    fn round(&self, _: &mut Helpers, _: DataType) -> String {
        panic!("no test does this")
    }

    fn saturate(&self, _: &mut Helpers, _: DataType, _: DataType) -> String {
        panic!("no test does this")
    }

    fn half_from_double(&self, _: &mut Helpers, _: u16) -> String {
        panic!("no test does this")
    }

    fn float_to_odd(&self, _: &mut Helpers, _: DataType) -> String {
        panic!("no test does this")
    }

    fn vector(&self, _: DataType, _: &[String]) -> Code {
        panic!("{NO_VECTORS}")
    }

    fn lane(&self, _: &str, _: u16) -> String {
        panic!("{NO_VECTORS}")
    }

    fn convert(&self, _: DataType, _: &Code) -> Code {
        panic!("{NO_VECTORS}")
    }

    fn wrapping_vector(&self, _: DataType, _: &str, _: u8, _: &Code, _: &Code) -> Code {
        panic!("{NO_VECTORS}")
    }

    fn truth(&self, _: u16, _: &Code) -> Code {
        panic!("{NO_VECTORS}")
    }

    fn select(&self, _: DataType, _: &Code, _: &Code, _: &Code) -> Code {
        panic!("{NO_VECTORS}")
    }
}

fn kernels(name: &str, buffers: &[&Buffer], body: Stmt) -> Result<Generated, Vec<tilewright_ir::Diagnostic>> {
    let func = function(name, buffers, body);
    generate_for(&CUDA, validate(&func).expect("a well-formed function"), &Options::default())
}

fn bound(var: &Var, extent: i64, tag: ThreadTag, body: Stmt) -> Stmt {
    Stmt::for_loop(var, Expr::int(extent), ForKind::ThreadBinding(tag), body)
}

#[test]
fn a_kernel_of_one_lane_is_written_in_the_words_of_the_target() {
    let a = Buffer::compact("A", ScalarType::Int32, vec![Expr::int(34)]);
    let b = Buffer::compact("blockIdx", ScalarType::Float32, vec![Expr::int(34)]);
    let (i, j) = (Var::index("i"), Var::index("threadIdx"));
    let index = Expr::from(&i) * Expr::int(2) + Expr::from(&j);
    let quotient = Expr::load(&a, vec![index.clone()]).floor_div(Expr::int(3));
    let sum = quotient + Expr::load(&a, vec![index.clone()]);
    let float = Expr::Cast(ScalarType::Float32.into(), sum.into());
    let value = Expr::Call(MathFn::Exp, vec![float].into());
    let store = Stmt::store(&b, vec![index], value);
    let nest = bound(&i, 17, ThreadTag::Block(0), bound(&j, 2, ThreadTag::Thread(0), store));
    let generated = kernels("scaled", &[&a, &b], nest).unwrap();
    let expected = "\
// Kernels of `scaled`, generated by Tilewright.

static __device__ inline int tw_floordiv_int(int a, int b) {
    return b == 0 ? 0 : a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

extern \"C\" __global__ void scaled_0(const int *__restrict__ A, float *__restrict__ blockIdx_) {
    const int i = (int)blockIdx.x;
    const int threadIdx_ = (int)threadIdx.x;
    // blockIdx[i * 2 + threadIdx] = exp(float32(A[i * 2 + threadIdx] // 3 + A[i * 2 + threadIdx]))
    blockIdx_[i * 2 + threadIdx_] = expf((float)(int)((unsigned int)tw_floordiv_int(A[i * 2 + threadIdx_], 3) + (unsigned int)A[i * 2 + threadIdx_]));
}
";
    assert_eq!(generated.source, expected);
    assert_eq!((generated.target.name, generated.target.file_suffix), ("cuda", "cu"));
    assert_eq!(generated.metadata.build_options, ["--fmad=false"]);
}

#[test]
fn loops_are_bound_automatically_in_the_words_of_the_target() {
    let a = Buffer::compact("A", ScalarType::Float64, vec![Expr::int(63)]);
    let i = Var::index("i");
    let store = Stmt::store(&a, vec![Expr::from(&i)], Expr::float_of(1.5, ScalarType::Float64));
    let generated = kernels("fill", &[&a], Stmt::for_loop(&i, Expr::int(63), ForKind::Serial, store)).unwrap();
    assert!(
        generated.source.contains("const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);"),
        "{}",
        generated.source
    );
    assert!(generated.metadata.required_extensions.is_empty(), "every device of the target has float64");
}

#[test]
fn what_the_target_lacks_is_refused_under_its_own_codes() {
    let fault = |buffers: &[&Buffer], body: Stmt| {
        let errors = kernels("refused", buffers, body).unwrap_err();
        (errors[0].code, errors[0].message.clone())
    };
    let b = Buffer::compact("B", ScalarType::Float32, vec![Expr::int(64)]);
    let i = Var::index("i");
    let ones = Expr::Broadcast { value: Expr::float_of(1.0, ScalarType::Float32).into(), lanes: 4 };
    let two = Expr::binary(BinaryOp::Add, ones.clone(), ones);
    let lanes = Expr::Ramp { base: Expr::int(0).into(), stride: Expr::int(1).into(), lanes: 4 };
    let vector = Buffer::compact("V", DataType::scalar(ScalarType::Float32).with_lanes(4), vec![Expr::int(16)]);
    let (code, message) = fault(&[&vector], Stmt::store(&vector, vec![Expr::int(0)], two.clone()));
    assert_eq!(
        (code, message.as_str()),
        ("cuda-lanes", "CUDA C has no vectors of 4 lanes, which `float32x4` asks for")
    );
    let scattered = kernels("scattered", &[&b], Stmt::store(&b, vec![lanes], two)).unwrap();
    assert!(scattered.source.contains("B[3] = lane3;"), "lanes are written one by one: {}", scattered.source);

    let texture = Buffer::compact("T", ScalarType::Float32, [4, 4, 4].map(Expr::int).to_vec());
    let texture = texture.with(|info| info.scope = Scope::Texture);
    let store = Stmt::store(&b, vec![Expr::from(&i)], Expr::float_of(0.0, ScalarType::Float32));
    let nest = Stmt::for_loop(&i, Expr::int(64), ForKind::Serial, store);
    let (code, message) = fault(&[&b, &texture], nest);
    assert_eq!((code, message.as_str()), ("cuda-texture", "`T` is a texture, but kernels in CUDA C have none"));
}

#[test]
fn programs_for_two_targets_are_not_joined() {
    let a = Buffer::compact("A", ScalarType::Float32, vec![Expr::int(8)]);
    let i = Var::index("i");
    let fill = || {
        let store = Stmt::store(&a, vec![Expr::from(&i)], Expr::float_of(1.0, ScalarType::Float32));
        Stmt::for_loop(&i, Expr::int(8), ForKind::Serial, store)
    };
    let (cuda, opencl) =
        (kernels("one", &[&a], fill()).unwrap(), super::support::kernels(&function("two", &[&a], fill())));
    assert_eq!(join(&[&cuda, &opencl]), Err("opencl".to_owned()));
}

//! Calls of functions of the same file: what is read, and what is printed for them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use tilewright_ir::device::has_device_functions;
use tilewright_ir::equal::funcs_equal;
use tilewright_ir::{Diagnostic, PrimFunc, Stmt};
use tilewright_script::{Dialect, print_module, print_module_in, read_module};

const KERNEL: &str = r#"
@T.prim_func
def main_kernel(A_ptr: T.handle("float32", "global"), B_ptr: T.handle("float32", "global"), n: T.int32, x: T.int32):
    T.func_attr({"calling_conv": 2, "tirx.is_global_func": True, "tirx.kernel_launch_params": ["blockIdx.x", "threadIdx.x"]})
    A = T.decl_buffer((n, 24), data=A_ptr)
    B = T.decl_buffer((n, 24), data=B_ptr)
    with T.launch_thread("blockIdx.x", n) as i:
        j = T.launch_thread("threadIdx.x", 24)
        B[i, j] = A[i, j] + T.Cast("float32", x)
"#;

/// A file with a function that makes a call, and the kernel.
fn file(call: &str) -> String {
    format!(
        "from tvm.script import tir as T\n\n@T.prim_func\ndef main(a: T.handle, b: T.handle, m: T.int32):\n    n = T.int32()\n    \
         A = T.match_buffer(a, (n, 24), \"float32\")\n    B = T.match_buffer(b, (n, 24), \"float32\")\n    for r in range(3):\n        \
         {call}\n{KERNEL}"
    )
}

fn read(text: &str) -> PrimFunc {
    let mut module = read_module(text).unwrap_or_else(|faults| panic!("{faults:?}\n{text}"));
    assert_eq!(module.funcs.len(), 1, "a function that is called is no program of its own");
    module.funcs.remove(0)
}

fn faults(text: &str) -> Vec<Diagnostic> {
    read_module(text).err().unwrap_or_default()
}

/// The program without its calls, which are attributes.
fn written_out(value: &str) -> PrimFunc {
    let text = format!(
        "from tvm.script import tir as T\n\n@T.prim_func\ndef main(a: T.handle, b: T.handle, m: T.int32):\n    n = T.int32()\n    \
         A = T.match_buffer(a, (n, 24), \"float32\")\n    B = T.match_buffer(b, (n, 24), \"float32\")\n    for r in range(3):\n        \
         for i in T.thread_binding(n, thread=\"blockIdx.x\"):\n            for j in T.thread_binding(24, thread=\"threadIdx.x\"):\n                \
         B[i, j] = A[i, j] + T.Cast(\"float32\", {value})\n"
    );
    read(&text)
}

/// The statement with calls replaced by what they do.
fn without_calls(stmt: &Stmt) -> Stmt {
    struct Plain;
    impl tilewright_ir::visit::Rewrite for Plain {
        type Error = std::convert::Infallible;
        fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Self::Error> {
            match tilewright_ir::DeviceCall::of(stmt) {
                Some(call) => self.stmt_children(call.body),
                None => self.stmt_children(stmt),
            }
        }
    }
    let Ok(plain) = tilewright_ir::visit::Rewrite::stmt(&mut Plain, stmt);
    plain
}

#[test]
fn every_spelling_of_a_call_means_what_the_function_does() {
    let calls = [
        "T.call_packed(\"main_kernel\", A.data, B.data, n, r)",
        "T.call_packed(\"main_kernel\", A.data, B.data, n, r, n, 24)",
        "T.evaluate(T.tvm_call_packed(\"main_kernel\", A.data, B.data, n, r, n, 24, dtype=\"int32\"))",
        "T.call_ffi_kernel(\"main_kernel\", A.data, B.data, n, r, n, 24, launch_params=[\"blockIdx.x\", \"threadIdx.x\"], ret_ty=\"int32\")",
        "main_kernel(A.data, B.data, n, r)",
        "main_kernel(A, B, n, r)",
    ];
    let expected = written_out("r");
    for call in calls {
        let func = read(&file(call));
        assert!(has_device_functions(&func), "{call}");
        let plain = PrimFunc { body: without_calls(&func.body), ..func.clone() };
        assert!(funcs_equal(&plain, &expected, false), "{call}\n{plain:#?}");
    }
}

#[test]
fn an_argument_is_evaluated_once_and_exchanged_memory_is_another_program() {
    let call = |args: &str| read(&file(&format!("main_kernel({args})")));
    let plain = |func: PrimFunc| PrimFunc { body: without_calls(&func.body), ..func };
    assert!(!funcs_equal(&plain(call("B.data, A.data, n, r")), &written_out("r"), false));
    assert!(!funcs_equal(&plain(call("A.data, B.data, n, m")), &written_out("r"), false));
    let printed = print_module(&tilewright_ir::Module { funcs: vec![call("A.data, B.data, n, r * 2 + m")] });
    assert!(printed.contains("x: T.int32 = r * 2 + m"), "{printed}");
}

#[test]
fn what_is_printed_is_read_back_in_every_dialect() {
    let func = read(&file("main_kernel(A.data, B.data, n, r * 2)"));
    let module = tilewright_ir::Module { funcs: vec![func.clone()] };
    for dialect in Dialect::ALL {
        let printed = print_module_in(&module, dialect).unwrap();
        let again = read(&printed);
        assert!(funcs_equal(&func, &again, false), "{dialect}:\n{printed}\n{func:#?}\n{again:#?}");
    }
}

#[test]
fn a_call_that_does_not_fit_is_an_error() {
    let code = |call: &str| faults(&file(call)).first().map(|fault| fault.code);
    assert_eq!(code("main_kernel(A.data, B.data, n)"), Some("arguments"));
    assert_eq!(code("T.call_packed(\"main_kernel\", A.data, B.data, n, r, n, 23)"), Some("launch"));
    assert_eq!(code("T.call_packed(\"main_kernel\", A.data, B.data, n, r, n)"), Some("arguments"));
    assert_eq!(code("T.call_packed(\"other\", A.data)"), Some("unknown-function"));
    assert_eq!(code("main_kernel(A.data, n, n, r)"), Some("data"));
}

#[test]
fn functions_that_call_each_other_are_an_error() {
    let text = "from tvm.script import tir as T\n\n@T.prim_func\ndef f(A: T.Buffer((7,), \"float32\")):\n    g(A.data)\n\n\
                @T.prim_func\ndef g(a: T.handle):\n    B = T.match_buffer(a, (7,), \"float32\")\n    f(B.data)\n";
    assert!(faults(text).iter().any(|fault| fault.code == "recursion"));
}

#[test]
fn a_function_that_runs_threads_beside_its_calls_is_no_host() {
    let call = "main_kernel(A.data, B.data, n, r)\n        for k in T.thread_binding(n, thread=\"blockIdx.x\"):\n            A[k, 0] = T.float32(0)";
    assert_eq!(faults(&file(call)).first().map(|fault| fault.code), Some("device-function"));
    let call = "for k in T.parallel(3):\n            main_kernel(A.data, B.data, n, k)";
    assert_eq!(faults(&file(call)).first().map(|fault| fault.code), Some("device-function"));
}

#[test]
fn a_name_that_two_functions_have_is_not_called() {
    let call = "T.call_packed(\"main_kernel\", A.data, B.data, n, r)";
    let twice = file(call) + &KERNEL.replace("A[i, j] + ", "A[i, j] - ");
    let found = faults(&twice);
    assert!(found.iter().any(|fault| fault.message == "several functions are called `main_kernel`"), "{found:?}");
    let named = |symbol: &str| file(call).replace("\"calling_conv\": 2", &format!("\"global_symbol\": \"{symbol}\""));
    read(&named("main_kernel"));
    let found = faults(&named("other"));
    assert!(found.iter().any(|fault| fault.message.contains("another name as its global_symbol")), "{found:?}");
}

#[test]
fn a_buffer_that_is_not_all_of_its_memory_is_not_passed_as_such() {
    let view = "V = T.Buffer((n, 12), \"float32\", data=B.data, elem_offset=12)\n        main_kernel(A, V, n, r)";
    let found = faults(&file(view));
    assert!(found.iter().any(|fault| fault.message.starts_with("`V` has strides or an offset")), "{found:?}");
}

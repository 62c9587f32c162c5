//! Printing and reading a program is the identity, and the programs of the RFCs are accepted.

use tilewright_ir::equal::modules_equal;
use tilewright_script::{print_module, read_module};

fn round_trip(source: &str) -> String {
    let module = read_module(source).unwrap_or_else(|found| panic!("{found:#?}\n{source}"));
    let text = print_module(&module);
    let again = read_module(&text).unwrap_or_else(|found| panic!("{found:#?}\n{text}"));
    assert!(modules_equal(&module, &again, true), "{text}\n{}", print_module(&again));
    text
}

#[test]
fn programs_of_rfc_63_and_39_are_read() {
    for source in [
        "@T.prim_func\ndef scalar_load_from_scalar_buffer(A: T.Buffer[(64,), \"float32\"]):\n    assert A[0].dtype == \"float32\"\n",
        "@T.prim_func\ndef vector_load_from_vector_buffer(A: T.Buffer[(16,), \"float32x4\"]):\n    assert A[0].dtype == \"float32x4\"\n",
        "@T.prim_func\ndef f(A: T.Buffer[(16,), \"float32x4\"]):\n    A_vector_2 = T.buffer_decl([32], \"float32x2\", data=A.data)\n    assert A[0].dtype == \"float32x4\"\n    assert A_vector_2[0].dtype == \"float32x2\"\n",
        "@T.prim_func\ndef f(A: T.Buffer[(64,), \"float32\"]):\n    assert A[T.ramp(0, 1, 4)].dtype == \"float32x4\"\n",
        "@T.prim_func\ndef f(A: T.Buffer[(64,), \"float32\"]):\n    A_vector = T.buffer_decl([16], \"float32x4\", data=A.data)\n    assert A_vector[0].dtype == \"float32x4\"\n",
        "@T.prim_func\ndef f(A: T.Buffer[(16,), \"float32x4\"]):\n    A_scalar = T.buffer_decl([64], \"float32\", data=A.data)\n    assert A_scalar[0].dtype == \"float32\"\n",
        "@T.prim_func\ndef f(A: T.Buffer[(64, 64,), \"float32\"]):\n    assert A[0, 0].dtype == \"float32\"\n",
        "@T.prim_func\ndef f(A: T.Buffer[(64,64), \"float32\"]):\n    assert A[0, T.ramp(0, 1, 4)].dtype == \"float32x4\"\n",
        "@T.prim_func\ndef buffer_alias(A: T.Buffer[(16,), \"float\"]):\n    A_vector = T.buffer_decl([4], \"float32x4\", data=A.data)\n",
        "@T.prim_func\ndef buffer_alloc():\n    A = T.buffer_decl([4, 4], \"float32\")\n    Allocate(A.data, [16], \"float32\")\n",
        "@T.prim_func\ndef fn(X: T.Buffer([2, 3], \"float32\")):\n    X_flattened = T.buffer_decl(X.data, [6], \"float32\")\n    for i in grid(6):\n        X_flattened[i] = 1\n",
    ] {
        round_trip(source);
    }
}

#[test]
fn a_false_dtype_assertion_names_both_types() {
    let source = "@T.prim_func\ndef f(A: T.Buffer[(64,), \"float32\"]):\n    assert A[0].dtype == \"float32x4\"\n";
    let found = read_module(source).unwrap_err();
    assert!(found[0].message.contains("\"float32\"") && found[0].message.contains("\"float32x4\""), "{found:?}");
}

#[test]
fn every_statement_survives_printing_and_reading() {
    let text = round_trip(
        r#"
from tvm.script import tir as T

@T.prim_func
def main(a: T.handle, B: T.Buffer((7, 17), "float32"), n: T.int32):
    m = T.int32()
    A = T.match_buffer(a, (m, n), "float32", axis_separators=[1])
    T.func_attr({"global_symbol": "main", "tir.noalias": T.bool(True),
                 "layout_transform_map": {A: lambda i, j: [j, i], C.data: [lambda i: [i // 4, i % 4], lambda i, j: [j, i]]}})
    assert n >= 4, "small"
    C = T.alloc_buffer((17,), "int64", scope="local")
    for i in T.serial(2, 9):
        for j in T.vectorized(n):
            if i < m and 0 <= j < n:
                A[i, j] = T.max(A[i, j] * 2, T.float32("inf")) + T.exp(-A[i, j])
            elif i == 3:
                A[i, j] += 1
            else:
                pass
    for i, j in T.grid(7, 17):
        B[i, j] = T.if_then_else(i % 2 == 0, T.cast(i, "float32"), T.float32(0.1))
        with T.LetStmt(i * 4) as k:
            T.evaluate(k)
        C[j] = -5
    with T.launch_thread("blockIdx.x", 4) as bx:
        for tx in T.thread_binding(8, thread="threadIdx.x"):
            T.attr(C.data, "pragma", 1)
            x: T.int64 = T.int64(3)
            C[bx * 2 + tx // 4] = x << 2
    D = T.decl_buffer((16,), "int64", data=C.data, elem_offset=1)
    D[0:4] = D[4:8]
"#,
    );
    assert!(text.contains("layout_transform_map"));
}

#[test]
fn invalid_programs_are_rejected_with_location_and_hint() {
    for body in [
        "    A[0] = B[0]",
        "    A[0, 1] = 1.0",
        "    for i in T.vectorised(4):\n        A[i] = 1.0",
        "    A[0] = 1 / n",
        "    while True:\n        pass",
        "    with T.block([4], \"B\") as i:\n        pass",
        "    A[T.foo(1)] = 1.0",
        "    ...",
        "    C = T.alloc_buffer((4,), \"float33\")",
        "    A[0] = A[0] + T.float64(1)",
        "    A[0] += T.int64(1)",
    ] {
        let source = format!("@T.prim_func\ndef f(A: T.Buffer((64,), \"float32\"), n: T.int32):\n{body}\n");
        let found = read_module(&source).err().unwrap_or_else(|| panic!("{body}"));
        assert!(found.iter().all(|error| !error.labels.is_empty() && error.help.is_some()), "{found:?}");
    }
}

#[test]
fn a_handle_is_matched_with_one_buffer_only() {
    let source = "@T.prim_func\ndef f(a: T.handle):\n    A = T.match_buffer(a, (4,))\n    B = T.match_buffer(a, (2, 2))\n    B[0, 0] = A[0]\n";
    let found = read_module(source).unwrap_err();
    assert_eq!(
        (found[0].code, found[0].message.as_str()),
        ("matched-twice", "parameter `a` is the buffer `A` already")
    );
    assert!(
        found[0].help.as_ref().is_some_and(|help| help.contains("B = T.decl_buffer(..., data=A.data)")),
        "{found:?}"
    );
    round_trip(&source.replace("T.match_buffer(a, (2, 2))", "T.decl_buffer((2, 2), data=A.data)"));
}

/// The Python blocks in the documentation of a source file that are whole functions.
fn documented_programs(source: &str) -> Vec<String> {
    let mut programs = Vec::new();
    let mut block: Option<String> = None;
    for line in source.lines().filter_map(|line| line.trim_start().strip_prefix("//!")) {
        let line = line.strip_prefix(' ').unwrap_or(line);
        match (&mut block, line) {
            (None, "```python") => block = Some(String::new()),
            (Some(_), "```") => programs.extend(block.take().filter(|text| text.starts_with("@T.prim_func"))),
            (Some(text), line) => text.extend([line, "\n"]),
            (None, _) => {}
        }
    }
    programs
}

#[test]
fn programs_in_the_documentation_are_read_and_print_as_valid_programs() {
    let sources = [
        include_str!("../src/tvmscript/attrs.rs"),
        include_str!("../src/tvmscript/func.rs"),
        include_str!("../src/tvmscript/print/mod.rs"),
        include_str!("../src/tvmscript/print/stmt.rs"),
    ];
    for source in sources {
        let programs = documented_programs(source);
        assert!(!programs.is_empty(), "{}", source.lines().next().unwrap_or_default());
        for program in &programs {
            round_trip(program);
        }
    }
}

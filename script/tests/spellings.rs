//! The spellings of TVM's releases are read as the programs they denote, and each error is reported once.

mod common;

use common::{PARAMS, assert_same, only_error, program, round_trip};
use tilewright_ir::equal::modules_equal;
use tilewright_script::{Dialect, print_func, print_module, print_module_in, read_module};

#[test]
fn an_extent_in_quotes_is_a_symbolic_extent() {
    let loops = "    for i in range(n):\n        B[i] = A[i, 2]";
    let quoted = "A: T.Buffer((\"n\", 5), \"float32\"), B: T.Buffer((\"n\",), \"float32\")";
    let plain = "A: T.Buffer((n, 5), \"float32\"), B: T.Buffer((n,), \"float32\")";
    let declared = |ty: &str| format!("    n = T.{ty}()\n{loops}");
    assert_same(&program(quoted, loops), &program(plain, &declared("int32")));
    assert_same(&program(quoted, &declared("int64")), &program(plain, &declared("int64")));
    assert!(round_trip(&program(quoted, &declared("int64"))).contains("n = T.int64()"));
    let parameter = format!("{quoted}, n: T.int32");
    assert_same(&program(&parameter, loops), &program(&format!("{plain}, n: T.int32"), loops));
}

#[test]
fn only_extents_stand_in_quotes_and_only_in_parameters() {
    only_error(&program("A: T.Buffer((\"n *\",), \"float32\")", "    A[0] = 1.0"), "extent", 2);
    only_error(&program("A: T.Buffer((\"n \\x2b 2\",), \"float32\")", "    A[0] = 1.0"), "extent", 2);
    only_error(&program("A: T.Buffer((\"n + k()\",), \"float32\")", "    A[0] = 1.0"), "unknown-function", 2);
    only_error(&program("A: T.Buffer((\"\",), \"float32\")", "    A[0] = 1.0"), "extent", 2);
    only_error(&program(PARAMS, "    X = T.alloc_buffer((\"n\",))\n    X[0] = A[0, 0]"), "unsupported", 3);
}

#[test]
fn several_names_are_assigned_after_all_values_were_read() {
    let params = "a: T.handle, y: T.handle";
    let rest = "    A = T.match_buffer(a, (n, m))\n    Y = T.match_buffer(y, (n,))\n    Y[0] = A[0, 1]";
    assert_same(
        &program(params, &format!("    n, m = T.int32(), T.int32()\n{rest}")),
        &program(params, &format!("    n = T.int32()\n    m = T.int32()\n{rest}")),
    );
    let swapped = program(PARAMS, "    x = 1\n    y = 2\n    x, y = y, x\n    B[x] = A[0, y]");
    let plain = program(PARAMS, "    x = 1\n    y = 2\n    x_1 = y\n    y_1 = x\n    B[x_1] = A[0, y_1]");
    let (swapped, plain) = (read_module(&swapped), read_module(&plain));
    assert!(
        matches!((&swapped, &plain), (Ok(swapped), Ok(plain)) if modules_equal(swapped, plain, false)),
        "{swapped:?}\n{plain:?}"
    );
}

#[test]
fn a_tuple_has_a_value_for_each_name() {
    only_error(&program(PARAMS, "    x, y = 1, 2, 3\n    B[x] = A[0, y]"), "unsupported", 3);
    only_error(&program(PARAMS, "    x, B[0] = 1, A[0, 0]\n    B[x] = A[0, 0]"), "unsupported", 3);
    only_error(&program(PARAMS, "    x, y = 1, T.foo(2)\n    B[x] = A[0, y]"), "unknown-function", 3);
}

#[test]
fn a_buffer_with_data_is_a_declaration() {
    for arguments in ["(24,), data=A.data", "(20,), \"float32\", data=A.data, elem_offset=4, strides=[1]"] {
        let body = |callee: &str| format!("    X = T.{callee}({arguments})\n    B[1] = X[2]");
        assert_same(&program(PARAMS, &body("Buffer")), &program(PARAMS, &body("decl_buffer")));
    }
    let text = round_trip(&program(PARAMS, "    X = T.Buffer((24,), data=A.data)\n    X[2] = B[1]"));
    assert!(text.contains("float32") && text.contains("data=A.data"), "{text}");
}

#[test]
fn a_buffer_without_memory_or_with_wrong_arguments_is_an_error() {
    only_error(
        &program(PARAMS, "    X = T.Buffer((24,), \"float33\", data=A.data)\n    B[0] = X[0]"),
        "unknown-type",
        3,
    );
    only_error(&program(PARAMS, "    X = T.Buffer((24,), data=B[0])\n    B[0] = X[0]"), "data", 3);
    only_error(&program(PARAMS, "    X = T.Buffer(data=A.data)\n    B[0] = X[0]"), "argument", 3);
    assert!(read_module(&program(PARAMS, "    X = T.Buffer((24,), \"float32\")\n    B[0] = X[0]")).is_err());
}

#[test]
fn a_view_is_the_same_memory_in_another_shape() {
    for (view, shape, indices) in [
        ("24", "(24,)", "5"),
        ("4, 6", "(4, 6)", "1, 5"),
        ("-1, 6", "(4, 6)", "1, 5"),
        ("2, -1, 3", "(2, 4, 3)", "1, 3, 2"),
        ("10", "(10,)", "9"),
    ] {
        let written = format!("    X = A.view({view})\n    B[0] = X[{indices}]");
        let plain = format!("    X = T.decl_buffer({shape}, \"float32\", data=A.data)\n    B[0] = X[{indices}]");
        assert_same(&program(PARAMS, &written), &program(PARAMS, &plain));
    }
}

#[test]
fn a_view_has_at_most_as_many_elements_as_its_buffer() {
    for (view, code) in [
        ("A.view(5, 5)", "rank"),
        ("A.view(-1, 5)", "rank"),
        ("A.view(-1, -1)", "rank"),
        ("A.view()", "argument"),
        ("A.view(24, layout=1)", "argument"),
        ("A.view(-5)", "rank"),
        ("A.view(24, \"int32\")", "argument"),
        ("A.view(\"bool\")", "unsupported"),
        ("A.view(\"int32x2\")", "unsupported"),
    ] {
        only_error(&program(PARAMS, &format!("    X = {view}\n    B[0] = X[0]")), code, 3);
    }
    let strided = "    S = T.decl_buffer((3, 4), data=A.data, strides=[8, 1])\n    X = S.view(12)\n    B[0] = X[0]";
    only_error(&program(PARAMS, strided), "unsupported", 4);
}

#[test]
fn allocations_in_a_scope_are_those_of_alloc_buffer() {
    for scope in ["local", "shared"] {
        let written = format!("    X = T.alloc_{scope}((16,), \"int8\")\n    X[3] = 1");
        let plain = format!("    X = T.alloc_buffer((16,), \"int8\", scope=\"{scope}\")\n    X[3] = 1");
        assert_same(&program(PARAMS, &written), &program(PARAMS, &plain));
        only_error(&program(PARAMS, &written.replace("int8\"", "int9\"")), "unknown-type", 3);
        only_error(&program(PARAMS, &written.replace("\"int8\"", "\"int8\", scope=\"local\"")), "argument", 3);
    }
    let hinted = "    X = T.alloc_buffer((16,), \"int8\", annotations={\"key\": 1})\n    X[3] = 1";
    assert_same(&program(PARAMS, hinted), &program(PARAMS, &hinted.replace(", annotations={\"key\": 1}", "")));
    only_error(&program(PARAMS, &hinted.replace("{\"key\": 1}", "[1]")), "attribute", 3);
}

#[test]
fn nodes_and_functions_are_operators() {
    let params = "A: T.Buffer((8,), \"int32\"), c: T.int32, d: T.int32";
    for (call, operator) in [
        ("T.Add(c, d)", "c + d"),
        ("T.Sub(c, d)", "c - d"),
        ("T.Mul(c, d)", "c * d"),
        ("T.FloorDiv(c, 3)", "c // 3"),
        ("T.FloorMod(c, 3)", "c % 3"),
        ("T.Min(c, d)", "T.min(c, d)"),
        ("T.Max(c, d)", "T.max(c, d)"),
        ("T.bitwise_and(c, d)", "c & d"),
        ("T.bitwise_or(c, d)", "c | d"),
        ("T.bitwise_xor(c, d)", "c ^ d"),
        ("T.Select(T.And(T.LT(c, d), T.NE(c, 2)), c, d)", "T.Select(c < d and c != 2, c, d)"),
        ("T.Select(T.Or(T.GE(c, d), T.Not(T.EQ(c, 2))), c, d)", "T.Select(c >= d or not c == 2, c, d)"),
        (
            "T.Select(T.LE(c, d), T.truncdiv(c, 3), T.truncmod(c, 3))",
            "T.Select(c <= d, T.truncdiv(c, 3), T.truncmod(c, 3))",
        ),
    ] {
        let body = |value: &str| format!("    A[0] = {value}");
        assert_same(&program(params, &body(call)), &program(params, &body(operator)));
    }
    only_error(&program(params, "    A[0] = T.Add(c)"), "argument", 3);
    only_error(&program(params, "    A[0] = T.Add(c, T.float32(1))"), "type", 3);
    only_error(&program(params, "    A[T.Ramp(0, 1, 4)] = T.Broadcast(c, c)"), "lanes", 3);
}

#[test]
fn properties_of_a_buffer_are_those_of_its_declaration() {
    let buffer = "    X = T.decl_buffer((3, 4), data=A.data, strides=[8, 1], elem_offset=2)\n";
    for (property, value) in [
        ("X.shape[0]", "3"),
        ("X.shape[-1]", "4"),
        ("X.strides[0]", "8"),
        ("X.strides[1]", "1"),
        ("X.elem_offset", "2"),
        ("A.elem_offset", "0"),
    ] {
        let body = |value: &str| format!("{buffer}    B[{value}] = X[0, 0]");
        assert_same(&program(PARAMS, &body(property)), &program(PARAMS, &body(value)));
    }
    for (property, code) in [
        ("A.strides[0]", "attribute"),
        ("A.shape[2]", "index"),
        ("A.shape", "attribute"),
        ("A.shap[0]", "not-a-buffer"),
    ] {
        only_error(&program(PARAMS, &format!("    B[{property}] = A[0, 0]")), code, 3);
    }
}

#[test]
fn accesses_of_bare_memory_are_one_error() {
    let store = "    T.store(A.data, 0, T.load(\"float32\", B.data, 1), T.bool(True))";
    let error = only_error(&program(PARAMS, store), "unsupported", 3);
    assert!(error.help.is_some_and(|help| help.contains("T.Buffer(..., data=p)")));
    only_error(&program(PARAMS, "    x = T.load(\"float32\", B.data, 1)\n    B[0] = x + x"), "unsupported", 3);
}

#[test]
fn assumptions_are_about_a_call_and_stand_first() {
    let params = format!("{PARAMS}, n: T.int32");
    let assumed = |text: &str| {
        let read = read_module(&program(&params, text));
        let func = read.unwrap_or_else(|found| panic!("{text}: {found:?}")).funcs.remove(0);
        let printed = print_func(&func);
        let again = read_module(&printed).unwrap_or_else(|found| panic!("{printed}: {found:?}")).funcs.remove(0);
        assert_eq!(print_func(&again), printed);
        printed.lines().filter(|line| line.contains("T.assume(")).count()
    };
    assert_eq!(assumed("    T.assume(n % 4 == 0)\n    B[0] = A[0, 0]"), 1);
    assert_eq!(assumed("    T.evaluate(T.assume(n > 2))\n    T.assume(n < 9)\n    B[0] = A[0, 0]"), 2);
    // Others are no premises: they are evaluated for nothing.
    for text in [
        "    T.assume(A[0, 0] > T.float32(0))\n    B[0] = A[0, 0]",
        "    B[0] = A[0, 0]\n    T.assume(n > 0)",
        "    for i in range(n):\n        T.assume(i < n)\n        B[i] = A[0, 0]",
        "    if n > 1:\n        T.assume(n > 2)\n    B[0] = A[0, 0]",
    ] {
        assert_eq!(assumed(text), 0, "{text}");
    }
    only_error(&program(&params, "    B[0] = T.assume(n > 0)"), "assumption", 3);
}

#[test]
fn a_block_may_have_the_domains_of_its_axes_in_its_head() {
    let block = |head: &str, parts: &str| {
        format!(
            "    for i, k in T.grid(3, 2):\n        with {head}:\n{parts}            B[vi * 8 + vk] = A[vi, vk]\n    B[3] = A[0, 0]"
        )
    };
    let binds = "            T.bind(vi, i)\n            T.bind(vk, k + 2)\n            T.where(k < 1)\n";
    let plain = block(
        "T.sblock(\"B\")",
        "            vi = T.axis.spatial(3, i)\n            vk = T.axis.reduce((2, 7), k + 2)\n            T.where(k < 1)\n",
    );
    for head in ["[3, T.reduce_axis(2, 7)]", "[(0, 3), T.reduce_axis(2, 7)]", "(3, T.reduce_axis(2, 7))"] {
        let written = block(&format!("T.block({head}, \"B\") as [vi, vk]"), binds);
        assert_same(&program(PARAMS, &written), &program(PARAMS, &plain));
    }
}

#[test]
fn a_block_with_a_wrong_head_is_one_error_and_its_body_is_skipped() {
    let bind = "            T.bind(vi, i)\n";
    for (head, binds) in [
        ("T.block([3], \"B\") as [vi]", ""),
        ("T.block([3], \"B\") as [vi]", "            T.bind(vi, i)\n            T.bind(vi, 1)\n"),
        ("T.block([3], \"B\")", bind),
        ("T.block([3], \"B\") as [vi, vj]", bind),
        ("T.block([T.data_axis(3)], \"B\") as vi", bind),
        ("T.block([T.reduce_axis(1, 2, 3)], \"B\") as vi", bind),
        ("T.block(\"B\") as vi", bind),
    ] {
        let inner = "            T.reads(A[vi, 0])\n            B[vi] = A[vi, 0]";
        let body = format!("    for i in range(3):\n        with {head}:\n{binds}{inner}\n    B[3] = A[0, 0]");
        let error = only_error(&program(PARAMS, &body), "block", 4);
        assert!(error.help.is_some_and(|help| help.contains("T.axis")), "{head}");
    }
}

#[test]
fn a_name_whose_declaration_fails_is_reported_once() {
    only_error(&program("A: T.Buffer((4,), \"float99\"), n: T.int32", "    A[n] = A[0]"), "unknown-type", 2);
    only_error(
        &program("a: T.handle", "    A = T.match_buffer(a, (4,), \"float99\")\n    A[0] = A[1]"),
        "unknown-type",
        3,
    );
    only_error(
        &program(
            PARAMS,
            "    with T.allocate((4,), \"float99\") as p:\n        X = T.Buffer((4,), data=p)\n        X[0] = A[0, 0]",
        ),
        "unknown-type",
        3,
    );
    only_error(&program(PARAMS, "    x: T.int99 = 3\n    B[x] = A[0, x]"), "unknown-type", 3);
    let found = read_module(&program(PARAMS, "    x = T.foo(1)\n    B[x] = C[0]")).unwrap_err();
    assert_eq!(found.iter().map(|error| error.code).collect::<Vec<_>>(), ["unknown-function", "unknown-name"]);
}

#[test]
fn modules_and_attributes_of_newer_releases_are_read() {
    let text = round_trip(
        r#"
from tvm.script import ir as I
from tvm.script import tirx as T

@I.ir_module
class Module:
    I.module_attrs({"key": 1})

    @T.prim_func(private=True)
    def f(A: T.Buffer((3, 5), "float32")):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "global_symbol": "f", "tir.noalias": True,
                     "target": T.target({"keys": ["cpu"], "kind": "llvm", "tag": ""})})
        A[0, 0] = T.float32(1)
"#,
    );
    for kept in ["from_legacy_te_schedule", "global_symbol", "tir.noalias", "\"kind\": \"llvm\""] {
        assert!(text.contains(kept), "{kept}\n{text}");
    }
    only_error(&program(PARAMS, "    T.func_attr({\"target\": T.target()})\n    B[0] = A[0, 0]"), "argument", 3);
}

#[test]
fn an_expression_in_quotes_is_the_extent() {
    let body = "    n = T.int32()\n    for i in range(n):\n        B[i] = A[i + 2, 3]";
    let params = |extent: &str| format!("A: T.Buffer(({extent}, 4), \"float32\"), B: T.Buffer((n,), \"float32\")");
    assert_same(&program(&params("\"n + 2\""), body), &program(&params("n + 2"), body));
    assert_same(&program(&params("\"(n + 7) // 4 * 4\""), body), &program(&params("(n + 7) // 4 * 4"), body));
    let source = program(&params("\"n + 2.5\""), body);
    let found = read_module(&source).unwrap_err();
    let label = &found[0].labels[0];
    assert_eq!(&source[label.span.start as usize..label.span.end as usize], "n + 2.5", "{found:?}");
}

#[test]
fn a_type_variable_beside_the_functions_is_an_extent_of_64_bits() {
    let function =
        |body: &str| program("A: T.Buffer((n, 4), \"float32\")", &format!("{body}    A[n - T.int64(1), 3] = 1.0"));
    let written = format!("n = TypeVar(\"n\")\n{}", function(""));
    assert_same(&written, &function("    n = T.int64()\n"));
    assert_same(&format!("n = TypeVar(\"n\")\n{}", function("    n = T.int64()\n")), &function("    n = T.int64()\n"));
    only_error(&format!("n = TypeName(\"n\")\n{}", function("    n = T.int64()\n")), "unsupported", 1);
}

#[test]
fn a_binding_may_be_marked_as_one() {
    for ty in ["int32", "int64"] {
        let body = |annotation: &str| format!("    x: {annotation} = 3\n    B[x] = A[0, x]");
        assert_same(&program(PARAMS, &body(&format!("T.let[T.{ty}]"))), &program(PARAMS, &body(&format!("T.{ty}"))));
    }
    only_error(&program(PARAMS, "    x: T.let[T.int99] = 3\n    B[x] = A[0, x]"), "unknown-type", 3);
    only_error(&program(PARAMS, "    x: T.list[T.int32] = 3\n    B[x] = A[0, x]"), "unknown-type", 3);
}

#[test]
fn allocations_in_a_scope_have_the_arguments_of_alloc_buffer() {
    let rest = "\"int8\", elem_offset=0, annotations={\"buffer_allocated_addr\": [], \"buffer_data_alignment\": 64})\n    X[3] = 1";
    let plain = "    X = T.alloc_buffer((16,), \"int8\", scope=\"local\")\n    X[3] = 1";
    assert_same(&program(PARAMS, &format!("    X = T.alloc_local((16,), {rest}")), &program(PARAMS, plain));
    only_error(&program(PARAMS, "    X = T.alloc_local((16,), data=A.data)\n    X[3] = 1.0"), "argument", 3);
}

#[test]
fn virtual_threads_are_parallel() {
    let inner = "        B[v] = A[0, v]";
    let plain = format!("    for v in T.parallel(8):\n{inner}");
    for axis in ["vthread", "vthread.x", "vthread.y", "vthread.z"] {
        let hint = format!("parallel(8, annotations={{\"virtual_thread\": \"{axis}\"}})");
        let plain = plain.replace("parallel(8)", &hint);
        let launched = format!("    with T.launch_thread(\"{axis}\", 8) as v:\n{inner}");
        assert_same(&program(PARAMS, &launched), &program(PARAMS, &plain));
        let bound = format!("    for v in T.thread_binding(8, thread=\"{axis}\"):\n{inner}");
        assert_same(&program(PARAMS, &bound), &program(PARAMS, &plain));
    }
    only_error(&program(PARAMS, &plain.replace("parallel(8)", "thread_binding(8, thread=\"vthread.w\")")), "thread", 3);
}

#[test]
fn a_quotient_node_of_integers_rounds_to_zero() {
    let params = "A: T.Buffer((8,), \"int32\"), F: T.Buffer((8,), \"float32\"), c: T.int32";
    let body = |value: &str| format!("    A[0] = {value}");
    for (node, plain) in [("T.Div(c, -3)", "T.truncdiv(c, -3)"), ("T.Div(7, c)", "T.truncdiv(7, c)")] {
        assert_same(&program(params, &body(node)), &program(params, &body(plain)));
    }
    let float = |value: &str| program(params, &format!("    F[0] = {value}"));
    assert_same(&float("T.Div(1, F[1])"), &float("1 / F[1]"));
    assert_same(&float("T.fabs(F[1])"), &float("T.abs(F[1])"));
    only_error(&program(params, &body("c / 3")), "type", 3);
}

#[test]
fn a_shape_that_names_a_binding_has_its_value() {
    let params = "A: T.Buffer((n, 8), \"float32\"), N: T.Buffer((4,), \"int32\")";
    let body = |shape: &str| {
        format!(
            "    x = n * 4\n    y = x * 2\n    z = N[0]\n    X = A.view({shape})\n    D = T.alloc_buffer(({shape},))\n    D[y - z] = X[x]"
        )
    };
    for (named, plain) in [("y", "n * 4 * 2"), ("x + y", "n * 4 + n * 4 * 2"), ("x + x", "n * 4 + n * 4")] {
        assert_same(&program(params, &body(named)), &program(params, &body(plain)));
    }
    let doubled = (1..40).map(|at| format!("    x{at} = x{0} + x{0}\n", at - 1)).collect::<Vec<_>>().concat();
    round_trip(&program(params, &format!("    x0 = n\n{doubled}    D = T.alloc_buffer((x39,))\n    D[0] = A[0, 0]")));
}

#[test]
fn a_scalar_that_changes_is_a_local_buffer_of_one_element() {
    let params = "B: T.Buffer((8,), \"int32\"), k: T.int32";
    let plain = "    x = T.alloc_buffer((1,), \"int32\", scope=\"local\")\n    x[0] = k + 1\n    for i in range(4):\n        \
        x[0] = x[0] + i\n    B[0] = x[0]";
    for update in ["x = x + i", "x += i"] {
        for declared in ["x: T.int32 = k + 1", "x = k + 1"] {
            let written = format!("    {declared}\n    for i in range(4):\n        {update}\n    B[0] = x");
            assert_same(&program(params, &written), &program(params, plain));
        }
    }
    // In the same block and in branches, and with another one of the same name in a block behind.
    let branch = "    x: T.int32 = k\n    if k < 3:\n        x = 2\n    else:\n        x = x * 3\n    B[x] = 1\n    for i in range(3):\n        \
        y = i\n        B[y] = x";
    let text = round_trip(&program(params, branch));
    assert_eq!(text.matches("alloc_buffer").count(), 1, "{text}");
    assert_eq!(text.matches("x[0] = ").count(), 3, "{text}");
}

#[test]
fn a_name_that_is_bound_again_in_its_block_or_with_let_needs_no_memory() {
    let params = "B: T.Buffer((8,), \"int32\"), k: T.int32";
    for body in [
        "    x = k + 1\n    x = x * 2\n    B[x] = x",
        "    x: T.let[T.int32] = k\n    for i in range(4):\n        x: T.let[T.int32] = i\n        B[i] = x\n    B[0] = x",
        "    x: T.let = k\n    B[0] = x",
        "    for i in range(4):\n        x = i\n        B[i] = x\n    for i in range(4):\n        x = k\n        B[i] = x",
    ] {
        let module = read_module(&program(params, body)).unwrap_or_else(|found| panic!("{found:#?}\n{body}"));
        assert!(!print_module(&module).contains("alloc_buffer"), "{body}");
    }
}

#[test]
fn what_is_no_scalar_does_not_change() {
    let params = "B: T.Buffer((8,), \"int32\"), k: T.int32";
    for (body, line) in [
        ("    for i in range(4):\n        k = i\n    B[0] = k", 4),
        ("    for i in range(4):\n        for j in range(3):\n            i = j\n        B[i] = 1", 5),
        ("    x: T.let[T.int32] = k\n    for i in range(4):\n        x = i\n    B[0] = x", 5),
        ("    k += 1\n    B[0] = k", 3),
        ("    B += 1", 3),
    ] {
        only_error(&program(params, body), "reassigned", line);
    }
    only_error(&program(params, "    y += 1\n    B[0] = k"), "reassigned", 3);
}

#[test]
fn the_message_of_an_assertion_may_have_a_kind_and_parts() {
    let params = "B: T.Buffer((8,), \"int32\"), k: T.int32";
    let body = |message: &str| format!("    assert k < 3, {message}\n    B[k] = 1");
    assert_same(
        &program(params, &body("(\"ValueError\", [\"too\", \" large\"])")),
        &program(params, &body("\"too large\"")),
    );
    for message in ["(\"ValueError\", \"too large\")", "(\"ValueError\", [k])", "(3, [\"x\"])", "[\"x\"]", "k"] {
        only_error(&program(params, &body(message)), "assert", 3);
    }
}

#[test]
fn blocks_have_axes_of_all_kinds_hints_and_parts_of_buffers() {
    let block = |word: &str, attr: &str, access: &str| {
        format!(
            "    for i, j in T.grid(3, 2):\n        with T.{word}(\"C\"):\n            vi = T.axis.spatial(3, i)\n            \
            vj = T.axis.scan(2, j)\n            vk = T.axis.opaque(2, j)\n            T.{attr}({{\"hint\": 1}})\n            \
            {access}"
        )
    };
    let window = "W = T.match_buffer(A[vi, vj * 4:vj * 4 + 4], (4,))\n            B[vi * 8 + vj * 4 + vk] = W[vk]";
    let plain = "B[vi * 8 + vj * 4 + vk] = A[vi, vj * 4 + vk]";
    let text = round_trip(&program(PARAMS, &block("sblock", "sblock_attr", plain)));
    assert!(
        text.contains("T.axis.scan(2, j)") && text.contains("T.axis.opaque(2, j)") && text.contains("hint"),
        "{text}"
    );
    assert_same(
        &program(PARAMS, &block("block", "block_attr", window)),
        &program(PARAMS, &block("sblock", "sblock_attr", plain)),
    );
    only_error(
        &program(PARAMS, &block("block", "block_attr", "T.axis.spiral(2, j)\n            B[0] = A[0, 0]")),
        "unknown-function",
        9,
    );
}

#[test]
fn memory_that_is_realized_is_allocated() {
    let declared = "    X = T.buffer_decl((16,), \"int8\")\n";
    let plain = "    X = T.alloc_buffer((16,), \"int8\", scope=\"local\")\n    X[3] = 1";
    let written = format!("{declared}    with T.realize(X[0:16], \"local\"):\n        X[3] = 1");
    assert_same(&program(PARAMS, &written), &program(PARAMS, plain));
    only_error(&program(PARAMS, &written.replace("0:16", "0:8")), "unsupported", 4);
    only_error(
        &program(PARAMS, "    with T.realize(A[0:3, 0:8], \"local\"):\n        A[0, 0] = 1.0"),
        "unsupported",
        3,
    );
}

#[test]
fn constructs_without_a_meaning_here_are_one_error_at_their_place() {
    // Lanes that are not chosen could lie outside of the buffer.
    for (call, code) in [("T.Shuffle([A[0, 0:4]], [2])", "shuffle"), ("T.vectorlow(A[0, 0:4])", "unsupported")] {
        let error = only_error(&program(PARAMS, &format!("    x = {call}\n    B[0] = x + x")), code, 3);
        assert!(error.help.is_some_and(|help| help.contains("lanes")), "{call}");
    }
    let texture = "    X: T.handle(\"float32\", \"global.texture\") = T.nd_mem_alloc_with_scope(\"global.texture\", 2, 4)\n    \
        T.texture2d_store(X, 0, 0, A[0, 0:4])\n    B[0] = T.texture2d_load(X, 0, 0)";
    let found = read_module(&program(PARAMS, texture)).unwrap_err();
    assert_eq!(found[0].code, "texture-memory", "{found:?}");
    only_error(&program(PARAMS, "    T.tvm_no_such_thing(A.data, 1)\n    B[0] = A[0, 0]"), "unknown-function", 3);
}

#[test]
fn operands_and_lanes_in_a_row_are_levels() {
    let many = vec!["A[0, 0]"; 257].join(", ");
    only_error(&program(PARAMS, &format!("    B[0] = T.max({many})")), "nesting", 3);
    let shuffle = format!("    B[T.Ramp(0, 1, 257)] = T.Shuffle([A[0, 0]], [{}])", vec!["0"; 257].join(", "));
    only_error(&program(PARAMS, &shuffle), "shuffle", 3);
}

/// Prints a program for a release.
fn printed(source: &str, dialect: Dialect) -> String {
    let module = read_module(source).unwrap_or_else(|found| panic!("{found:#?}\n{source}"));
    let text = print_module_in(&module, dialect).unwrap_or_else(|found| panic!("{found:#?}\n{source}"));
    let again = read_module(&text).unwrap_or_else(|found| panic!("{found:#?}\n{text}"));
    // Memory and bindings may last longer in the text of a release, so that only its own reading is the same again.
    assert_eq!(print_module_in(&again, dialect).as_ref(), Ok(&text));
    text
}

#[test]
fn each_release_has_its_own_words() {
    let body = "    with T.sblock(\"C\"):\n        X = T.alloc_buffer((4,), \"float32\", scope=\"local\")\n        \
        T.sblock_attr({\"hint\": 1})\n        y: T.int32 = 3\n        Y = T.alloc_buffer((4,), \"float32\")\n        \
        Y[y] = A[0, y]\n        X[y] = Y[y]\n        B[y] = X[y]";
    let source = program(PARAMS, body);
    let new = printed(&source, Dialect::Tvm0_27);
    for part in [
        "from tvm.script import tirx as T\n\n@I.ir_module\nclass Module:\n    @T.prim_func(s_tir=True)\n    def f(",
        "with T.sblock(\"C\"):",
        "T.sblock_attr({",
        "X = T.sblock_alloc_buffer((4,), \"float32\", scope=\"local\")",
        "y: T.let[T.int32] = 3",
        "Y = T.alloc_buffer((4,), \"float32\")",
    ] {
        assert!(new.contains(part), "{part}\n{new}");
    }
    let old = printed(&source, Dialect::Tvm0_16);
    for part in [
        "from tvm.script import tir as T\n\n@I.ir_module\nclass Module:\n    @T.prim_func\n    def f(",
        "with T.block(\"C\"):",
        "T.block_attr({",
        "X = T.alloc_buffer((4,), \"float32\", scope=\"local\")",
        "y: T.int32 = 3",
        "Y = T.decl_buffer((4,), \"float32\")",
    ] {
        assert!(old.contains(part), "{part}\n{old}");
    }
}

#[test]
fn scopes_that_end_early_are_printed_as_a_release_can_say_it() {
    let body = "    with T.LetStmt(T.int32(3)) as x:\n        with T.alloc_buffer((4,), \"float32\") as X:\n            \
        X[x] = A[0, x]\n            B[x] = X[x]\n        B[2] = A[0, 2]\n    with T.LetStmt(T.int32(4)) as x:\n        B[x] = A[0, x]\n    B[0] = A[0, 0]";
    let new = printed(&program(PARAMS, body), Dialect::Tvm0_27);
    assert!(!new.contains("with ") && new.contains("x: T.let[T.int32] = 3"), "{new}");
    assert!(new.contains("x_1: T.let[T.int32] = 4"), "one name has one value: {new}");
    let old = printed(&program(PARAMS, body), Dialect::Tvm0_16);
    assert!(
        old.contains("with T.LetStmt(3) as x:") && old.contains("with T.decl_buffer((4,), \"float32\") as X:"),
        "{old}"
    );
}

#[test]
fn what_a_release_cannot_say_is_an_error() {
    let refused = |source: &str, dialect: Dialect| {
        let module = read_module(source).unwrap_or_else(|found| panic!("{found:#?}\n{source}"));
        let found = print_module_in(&module, dialect).expect_err(source);
        assert_eq!(found.iter().map(|fault| fault.code).collect::<Vec<_>>(), ["dialect"], "{found:#?}");
        assert!(found[0].help.is_some(), "{found:?}");
    };
    let request = "    T.func_attr({\"layout_transform_map\": {A: [lambda i, j: [j, i]]}})\n    B[0] = A[0, 0]";
    refused(&program(PARAMS, request), Dialect::Tvm0_16);
    refused(&program(PARAMS, request), Dialect::Tvm0_27);
    let separators = "    X = T.alloc_buffer((4, 6), \"float32\", axis_separators=[1])\n    X[0, 0] = A[0, 0]";
    refused(&program(PARAMS, separators), Dialect::Tvm0_27);
    assert!(printed(&program(PARAMS, separators), Dialect::Tvm0_16).contains("axis_separators=[1]"));
    assert!("0.8".parse::<Dialect>().is_err());
    assert!(Dialect::ALL.iter().all(|dialect| dialect.name().parse() == Ok(*dialect)));
}

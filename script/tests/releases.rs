//! TVMScript as release 0.27 of TVM and earlier ones print it is read with the meaning that TVM gives it.

mod common;

use common::{PARAMS, assert_same, only_error, program, round_trip};
use tilewright_script::{Dialect, print_module_in, read_module};

/// Returns what is printed for release 0.27.
fn for_tvm(source: &str) -> String {
    let module = read_module(source).unwrap_or_else(|found| panic!("{found:#?}\n{source}"));
    print_module_in(&module, Dialect::Tvm0_27).unwrap_or_else(|found| panic!("{found:#?}\n{source}"))
}

#[test]
fn the_greatest_float_is_not_beyond_its_type() {
    let store = |value: &str| program(PARAMS, &format!("    B[0] = {value}"));
    for text in ["T.float32(3.4028234663852886e38)", "T.float32(-3.4028234663852886e38)", "T.float32(3.4028233e38)"] {
        let source = store(text);
        assert!(for_tvm(&source).contains(text), "{}", for_tvm(&source));
        round_trip(&source);
    }
    let half = "    X = T.alloc_buffer((4,), \"float16\")\n    Y = T.alloc_buffer((4,), \"bfloat16\")\n    \
        X[0] = T.min_value(\"float16\")\n    Y[0] = T.max_value(\"bfloat16\")";
    let text = round_trip(&program(PARAMS, half));
    assert!(text.contains("T.float16(-65504.0)") && text.contains("T.bfloat16(3.3895313892515355e38)"), "{text}");
}

#[test]
fn a_barrier_of_the_threads_of_a_group_has_default_arguments() {
    let sync = |call: &str| {
        let body = "    for t in T.thread_binding(8, thread=\"threadIdx.x\"):\n        B[t] = 1.0\n        ";
        program(PARAMS, &format!("{body}{call}"))
    };
    for call in [
        "T.tvm_storage_sync(\"shared\", T.bool(False), -1)",
        "T.evaluate(T.tvm_storage_sync(\"shared\", False, num_blocks=-1))",
    ] {
        assert_same(&sync(call), &sync("T.tvm_storage_sync(\"shared\")"));
    }
    only_error(&sync("T.tvm_storage_sync(\"shared\", True, -1)"), "argument", 5);
    only_error(&sync("T.tvm_storage_sync(\"shared\", False, 4)"), "argument", 5);
    only_error(&sync("T.tvm_storage_sync(\"shared\", False, -1, 4)"), "argument", 5);
    only_error(&sync("T.tvm_storage_sync(\"global\", False, -1)"), "barrier-scope", 5);
}

#[test]
fn attributes_in_a_dictionary_have_no_node() {
    for (written, plain) in [
        ("T.attr({\"pragma_scope\": \"seq\"})", "T.attr(0, \"pragma_scope\", \"seq\")"),
        ("T.attr({\"a\": 1, \"b\": True})", "T.attr(0, \"a\", 1)\n    T.attr(0, \"b\", True)"),
    ] {
        let statement = |attr: &str| program(PARAMS, &format!("    {attr}\n    B[0] = 1.0"));
        assert_same(&statement(written), &statement(plain));
    }
    let with = |attr: &str| program(PARAMS, &format!("    with {attr}:\n        B[0] = 1.0\n    B[1] = 2.0"));
    assert_same(&with("T.attr({\"a\": 1, \"b\": 2})"), &with("T.attr(0, \"a\", 1), T.attr(0, \"b\", 2)"));
    assert_same(&with("T.attr({})"), &program(PARAMS, "    B[0] = 1.0\n    B[1] = 2.0"));
    only_error(&with("T.attr({1: 1})"), "attribute", 3);
    only_error(&with("T.attr({\"a\": 1}, \"a\", 1, 2)"), "argument", 3);
}

#[test]
fn a_hint_about_the_variable_of_a_loop_below_is_its_annotation() {
    let body = "in T.serial(8, annotations={\"pragma_a\": 64, \"pragma_b\": 1}):\n        B[k] = A[0, k]";
    let plain = program(PARAMS, &format!("    for k {body}"));
    let attrs = "T.attr(k, \"pragma_a\", 64), T.attr(k, \"pragma_b\", 1)";
    let below = "for k in range(8):\n            B[k] = A[0, k]";
    assert_same(&program(PARAMS, &format!("    k = T.int32()\n    with {attrs}:\n        {below}")), &plain);
    let nested = format!(
        "    for i in range(2):\n        k = T.int32()\n        {}\n        {below}",
        attrs.replace(", T", "\n        T")
    );
    let plain = format!("    for i in range(2):\n        for k {}", body.replace("        ", "            "));
    assert_same(&program(PARAMS, &nested), &program(PARAMS, &plain));
}

#[test]
fn a_hint_about_a_variable_without_a_loop_is_about_nothing() {
    let attr = |rest: &str| program(PARAMS, &format!("    for i in range(2):\n        {rest}"));
    only_error(&attr("T.attr(k, \"pragma_a\", 1)\n        B[i] = 1.0"), "unknown-name", 4);
    let plain = attr("T.attr(0, \"pragma_a\", 1)\n        B[i] = 1.0");
    assert_same(&attr("k = T.int32()\n        T.attr(k, \"pragma_a\", 1)\n        B[i] = 1.0"), &plain);
    only_error(&attr("k = T.int32()\n        T.attr(k, \"thread_extent\", 1)\n        B[i] = 1.0"), "unknown-name", 5);
    only_error(&attr("k = T.int32()\n        B[i] = A[0, k]"), "unknown-name", 5);
    let outside = "    k = T.int32()\n    with T.attr(k, \"pragma_a\", 1):\n        B[0] = 1.0\n    for k in range(8):\n        B[k] = 1.0";
    let plain = "    with T.attr(0, \"pragma_a\", 1):\n        B[0] = 1.0\n    for k in range(8):\n        B[k] = 1.0";
    assert_same(&program(PARAMS, outside), &program(PARAMS, plain));
}

#[test]
fn a_launch_with_hints_is_over_the_axis_that_its_variable_is_named_after() {
    let plain =
        "    for {t} in T.thread_binding(8, thread=\"{axis}\", annotations={\"pragma_a\": 1}):\n        B[{t}] = 1.0";
    for (name, axis) in [("threadIdx_x", "threadIdx.x"), ("blockIdx_y_1", "blockIdx.y"), ("vthread_x", "vthread.x")] {
        let fill = |text: &str| program(PARAMS, &text.replace("{t}", name).replace("{axis}", axis));
        let written =
            "    {t} = T.int32()\n    T.attr({t}, \"pragma_a\", 1)\n    T.launch_thread({t}, 8)\n    B[{t}] = 1.0";
        assert_same(&fill(written), &fill(plain));
        let with = "    {t} = T.int32()\n    T.attr({t}, \"pragma_a\", 1)\n    with T.launch_thread({t}, 8):\n        B[{t}] = 1.0";
        assert_same(&fill(with), &fill(plain));
    }
    let unnamed = "    tx = T.int32()\n    T.attr(tx, \"pragma_a\", 1)\n    T.launch_thread(tx, 8)\n    B[tx] = 1.0";
    only_error(&program(PARAMS, unnamed), "thread", 5);
    only_error(&program(PARAMS, "    T.launch_thread(threadIdx_x, 8)\n    B[threadIdx_x] = 1.0"), "thread", 3);
}

#[test]
fn a_name_may_stand_for_virtual_threads() {
    for axis in ["vthread", "vthread.x", "threadIdx.z"] {
        let named = format!("    v = T.env_thread(\"{axis}\")\n    with T.launch_thread(v, 4):\n        B[v] = 1.0");
        let plain = format!("    with T.launch_thread(\"{axis}\", 4) as v:\n        B[v] = 1.0");
        assert_same(&program(PARAMS, &named), &program(PARAMS, &plain));
    }
    let wrong = "    v = T.env_thread(\"vthread.w\")\n    with T.launch_thread(v, 4):\n        B[v] = 1.0";
    let error = only_error(&program(PARAMS, wrong), "thread", 3);
    assert!(error.help.is_some_and(|help| help.contains("vthread")));
}

#[test]
fn a_loop_with_a_step_counts_its_iterations() {
    let body = |head: &str, index: &str| program(PARAMS, &format!("    for i in {head}:\n        B[{index}] = 1.0"));
    for (written, plain, index) in [
        ("range(0, 16, 2)", "range(8)", "i * 2"),
        ("range(1, 16, 7)", "range(3)", "1 + i * 7"),
        ("range(1, 15, 7)", "range(2)", "1 + i * 7"),
        ("T.serial(0, 16, step=2)", "range(8)", "i * 2"),
        ("T.unroll(0, 3, step=2)", "T.unroll(2)", "i * 2"),
        ("range(5, 5, 3)", "range(0)", "5 + i * 3"),
        ("range(5, 2, 3)", "range(0)", "5 + i * 3"),
    ] {
        assert_same(&body(written, "i"), &body(plain, index));
    }
    assert_same(&body("range(2, 16, 1)", "i"), &body("range(2, 16)", "i"));
    let symbolic = |head: &str, index: &str| body(head, index).replace("\")):", "\"), n: T.int32):");
    assert_same(&symbolic("range(1, 1 + n, 3)", "i"), &symbolic("range((n + 2) // 3)", "1 + i * 3"));
    for step in ["0", "-1", "n"] {
        only_error(&symbolic(&format!("range(0, 16, {step})"), "i"), "loop", 3);
    }
}

#[test]
fn a_grid_may_have_starts_and_a_loop_a_hint_to_unroll_it() {
    let grid = program(PARAMS, "    for i, j in T.grid((1, 3), 8):\n        B[i * 8 + j] = A[i, j]");
    let nest = "    for i in range(1, 3):\n        for j in range(8):\n            B[i * 8 + j] = A[i, j]";
    assert_same(&grid, &program(PARAMS, nest));
    only_error(&grid.replace("(1, 3)", "(1, 3, 1)"), "unsupported", 3);
    let hinted = |hint: &str| program(PARAMS, &format!("    for i in T.serial(8, {hint}):\n        B[i] = A[0, i]"));
    for (hint, annotation) in
        [("True", "\"pragma_unroll\": True"), ("False", "\"disable_unroll\": True"), ("4", "\"pragma_unroll\": 4")]
    {
        let written = hinted(&format!("unroll={hint}"));
        assert_same(&written, &hinted(&format!("annotations={{{annotation}}}")));
    }
    only_error(&hinted("unroll=0"), "loop", 3);
    only_error(&hinted("annotations={\"a\": None}"), "attribute", 3);
}

#[test]
fn a_loop_does_not_end_early() {
    for word in ["break", "continue", "T.break_loop()", "T.continue_loop()", "return 0", "T.ret(0)"] {
        let body = format!("    for i in range(8):\n        if i == 3:\n            {word}\n        B[i] = 1.0");
        only_error(&program(PARAMS, &body), "unsupported", 5);
    }
}

#[test]
fn zero_at_the_end_of_a_function_says_that_it_succeeded() {
    let end = |last: &str| program(PARAMS, &format!("    B[0] = 1.0\n    {last}"));
    for last in ["return 0", "T.ret(0)", "T.evaluate(T.ret(0))", "T.ret(T.int32(0))"] {
        assert_same(&end(last), &end("pass"));
    }
    for last in ["return", "return 1", "T.ret(-1)", "T.evaluate(T.ret(1))", "return 0\n    pass", "T.ret()"] {
        only_error(&end(last), "unsupported", 4);
    }
}

#[test]
fn a_view_may_have_another_type() {
    let words = "A: T.Buffer((3, 8), \"int32\"), B: T.Buffer((24,), \"int32\")";
    for (ty, shape) in [("float32", "(3, 8)"), ("int8", "(3, 32)"), ("float64", "(3, 4)")] {
        let written = format!("    X = A.view(\"{ty}\")\n    X[2, 1] = T.{ty}(1)");
        let plain = format!("    X = T.decl_buffer({shape}, \"{ty}\", data=A.data)\n    X[2, 1] = T.{ty}(1)");
        assert_same(&program(words, &written), &program(words, &plain));
    }
    let odd = words.replace("(3, 8)", "(8, 3)");
    only_error(&program(&odd, "    X = A.view(\"int64\")\n    X[0, 0] = T.int64(1)"), "unsupported", 3);
}

/// A block that reads a part of `A` through `W`.
fn part(declared: &str, value: &str) -> String {
    let params = "A: T.Buffer((8, 16), \"int32\", elem_offset=5), B: T.Buffer((8, 16), \"int32\")";
    let body = "    for i in range(2):\n        with T.sblock(\"s\"):\n            vi = T.axis.spatial(2, i)\n            \
        T.reads(A[vi * 4:vi * 4 + 4, 0:16])\n            T.writes(B[vi * 4:vi * 4 + 4, 0:16])\n";
    let names = "            s0, s1, at = T.int32(), T.int32(), T.int32()\n";
    let window = format!("            W = T.match_buffer(A[vi * 4:vi * 4 + 4, 0:16], (4, 16), \"int32\"{declared})\n");
    let store = format!("            B[vi * 4, 0] = W[1, 2] + {value}");
    program(params, &format!("{body}{names}{window}{store}"))
}

#[test]
fn the_strides_and_the_offset_of_a_part_have_names() {
    let named = ", strides=[s0, s1], elem_offset=at, offset_factor=1";
    let quoted = ", strides=(\"s0\", \"s1\"), offset_factor=1";
    for (declared, value, plain) in [
        (named, "s0", "16"),
        (named, "s1", "1"),
        (named, "at", "(vi * 4 * 16 + 5)"),
        (named, "W.strides[0]", "16"),
        (quoted, "W.strides[-1]", "1"),
        (quoted, "W.elem_offset", "(vi * 4 * 16 + 5)"),
        (", strides=(16, s1)", "s1", "1"),
        ("", "W.shape[0]", "4"),
    ] {
        assert_same(&part(declared, value), &part("", plain));
    }
}

#[test]
fn a_part_has_the_layout_and_the_scope_of_its_buffer() {
    only_error(&part(", strides=(s0, s0)", "s0"), "match-buffer", 9);
    only_error(&part(", strides=(1, s0, s1)", "s0"), "match-buffer", 9);
    only_error(&part(", elem_offset=3", "1"), "match-buffer", 9);
    only_error(&part(", scope=\"shared\"", "1"), "match-buffer", 9);
    only_error(&part("", "s0"), "unknown-name", 10);
    only_error(&part("", "W.strides[0]"), "attribute", 10);
    only_error(&part("", "W.elem_offset"), "attribute", 10);
}

#[test]
fn one_construct_that_is_not_understood_is_one_error() {
    let block = "    for i, j in T.grid(3, 8):\n        with T.sblok(\"B\"):\n            vi, vj = T.axis.remap(\"SS\", [i, j])\n            \
        T.reads(A[vi, vj])\n            T.where(vi < 2)\n            with T.init():\n                B[vj] = 0.0\n            B[vj] = A[vi, vj]";
    let error = only_error(&program(PARAMS, block), "unsupported", 4);
    assert_eq!(error.help.as_deref(), Some("did you mean `T.sblock`?"));
    for (declared, code) in [
        ("with T.let(x, T.foo(1)):\n        B[x] = 1.0", "unknown-function"),
        (
            "with T.attr(T.iter_var(x, None, \"ThreadIndex\", \"t\"), \"thread_extent\", 8):\n        B[x] = 1.0",
            "thread",
        ),
        ("with T.attr(T.iter_var(x, None), \"thread_extent\", 8):\n        B[x] = 1.0", "argument"),
        ("T.launch_thread(x, 4)\n    B[x] = 1.0", "thread"),
        ("x, *y = 1, 2\n    B[x] = A[0, y]", "unsupported"),
        ("x = lambda: 1\n    B[0] = x()", "unsupported"),
    ] {
        only_error(&program(PARAMS, &format!("    {declared}")), code, 3);
    }
    let unallocated = |region: &str| {
        program(PARAMS, &format!("    X = T.buffer_decl((16,))\n    T.realize(X[0:{region})\n    X[0] = 1.0"))
    };
    only_error(&unallocated("16], \"foo\""), "unknown-scope", 4);
    only_error(&unallocated("T.foo(1)], \"local\""), "unknown-function", 4);
    only_error(&unallocated("8], \"local\""), "unsupported", 4);
    let reduction = "    for t in T.thread_binding(8, \"threadIdx.x\"):\n        R = T.alloc_buffer((1,), scope=\"local\")\n        \
        with T.attr(T.comm_reducer(lambda x, y: x + y, [0.0, 0.0]), \"reduce_scope\", 0):\n            \
        T.tvm_thread_allreduce(T.uint32(1), B[t], True, R[0], t)\n        B[t] = R[0]";
    only_error(&program(PARAMS, reduction), "reducer", 5);
    // A function after it has no part in the error.
    let alone = "    for t in T.thread_binding(8, \"threadIdx.x\"):\n        T.tvm_thread_allreduce(T.uint32(1), B[t], True, B[0], t)";
    let both = format!("{}\n\n{}", program(PARAMS, reduction), program(PARAMS, alone).replace("def f", "def g"));
    assert_eq!(read_module(&both).err().map(|found| found.len()), Some(2), "{both}");
}

#[test]
fn a_device_function_alone_declares_the_buffers_of_its_parameters() {
    let kernel = |declared: &str| {
        let launch = "    t = T.launch_thread(\"threadIdx.x\", n)\n    B[t] = A[t, 1] + A_1[t]";
        let params = "A_ptr: T.handle(\"float32\", \"global\"), B_ptr: T.handle(\"float32\"), n: T.int32";
        program(params, &format!("{declared}    A_1 = T.decl_buffer((n * 4,), data=A_ptr)\n{launch}"))
    };
    let written = "    A = T.decl_buffer((n, 4), data=A_ptr)\n    B = T.Buffer((n,), data=B_ptr)\n";
    let plain = "    A = T.match_buffer(A_ptr, (n, 4))\n    B = T.match_buffer(B_ptr, (n,))\n";
    assert_same(&kernel(written), &kernel(plain).replace("data=A_ptr", "data=A.data"));
    only_error(&kernel(&written.replace("4), ", "4), scope=\"local\", ")), "data", 3);
    only_error(&kernel(&written.replace("(n, 4)", "(m, 4)")), "unknown-name", 3);
    only_error(&kernel(&written.replace("data=B_ptr", "data=C_ptr")), "data", 4);
    let late = "    for i in range(2):\n        A = T.decl_buffer((4,), data=p)\n        A[i] = 1.0";
    only_error(&program("p: T.handle(\"float32\")", late), "data", 4);
}

#[test]
fn nearbyint_rounds_ties_to_even_as_round_does() {
    let store = |name: &str| program(PARAMS, &format!("    B[0] = T.{name}(A[0, 0])"));
    assert_same(&store("nearbyint"), &store("round"));
}

#[test]
fn a_module_of_a_release_before_the_first_one_that_is_read_is_one_error() {
    let source =
        "@tvm.script.tir\nclass Module:\n    def main(a: T.handle) -> None:\n        A = T.match_buffer(a, [16])\n";
    assert!(tilewright_script::is_tvmscript(source));
    only_error(source, "release", 1);
}

#[test]
fn an_offset_that_the_caller_chooses_has_a_name() {
    let matched = |properties: &str, value: &str| {
        let body = format!("    X = T.match_buffer(x, (16,), \"int32\"{properties})\n    X[0] = {value}");
        program("x: T.handle", &body)
    };
    let named = |value: &str| {
        let body = format!(
            "    X_elem_offset = T.int32()\n    X = T.match_buffer(x, (16,), \"int32\", elem_offset=X_elem_offset)\n    X[0] = {value}"
        );
        program("x: T.handle", &body)
    };
    assert_same(&matched(", offset_factor=1", "1"), &named("1"));
    assert_same(&matched(", offset_factor=1", "X.elem_offset"), &named("X_elem_offset"));
    assert_same(&matched(", elem_offset=0, offset_factor=1", "X.elem_offset"), &matched("", "0"));
    only_error(
        &matched(")\n    Y = T.decl_buffer((16,), \"int32\", data=X.data, offset_factor=1", "Y[0]"),
        "unsupported",
        4,
    );
}

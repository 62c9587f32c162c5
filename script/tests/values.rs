//! Values that TVM writes as calls, and constant arrays.

mod common;

use common::{PARAMS, assert_same, only_error, program, round_trip};
use tilewright_script::read_module;

#[test]
fn a_value_with_a_name_for_a_part_of_it_has_the_part_in_its_place() {
    let stored = |value: &str| program(PARAMS, &format!("    for i in range(8):\n        B[i] = {value}"));
    let plain = stored("(A[0, i] + T.float32(1)) * (A[0, i] + T.float32(1))");
    assert_same(&stored("T.Let(x * x, where={x: A[0, i] + T.float32(1)})"), &plain);
    assert_same(&stored("T.let(x, A[0, i] + T.float32(1), x * x)"), &plain);
    // The name is declared at the start of the function, or is that of another value outside.
    let body = "    for i in range(8):\n        B[i] = T.Let(x * x, where={x: A[0, i] + T.float32(1)})";
    assert_same(&program(PARAMS, &format!("    x = T.float32()\n{body}")), &plain);
    let bound = "    for i in range(8):\n        x: T.int32 = i + 1\n        B[x] = T.Let(A[0, x], where={x: i // 2}) + A[1, x % 8]";
    let apart = "    for i in range(8):\n        x: T.int32 = i + 1\n        B[x] = A[0, i // 2] + A[1, x % 8]";
    assert_same(&program(PARAMS, bound), &program(PARAMS, apart));
    let inner = "T.Let(T.Let(x + y, where={x: y * y}), where={y: A[0, i]})";
    assert_same(&stored(inner), &stored("A[0, i] * A[0, i] + A[0, i]"));
    let named = "    for i in range(8):\n        y = T.Let(x * x, where={x: A[0, i]})\n        B[i] = y";
    let simple = "    for i in range(8):\n        y = A[0, i] * A[0, i]\n        B[i] = y";
    assert_same(&program(PARAMS, named), &program(PARAMS, simple));
    // A value that some case does not evaluate must not be able to trap.
    assert_same(
        &stored("T.Let(T.if_then_else(i < 4, T.Cast(\"float32\", x), T.float32(0)), where={x: i + 1})"),
        &stored("T.if_then_else(i < 4, T.Cast(\"float32\", i + 1), T.float32(0))"),
    );
    only_error(&stored("T.Let(T.if_then_else(i < 4, x, T.float32(0)), where={x: A[0, i + 4]})"), "let", 4);
    only_error(&stored("T.Let(T.float32(0), where={x: A[0, i + 8]})"), "let", 4);
    let deep = (0..12)
        .fold("x12".to_owned(), |body, n| format!("T.Let({body}, where={{x{}: x{} + x{}}})", 12 - n, 11 - n, 11 - n));
    let doubled = format!("T.Let({deep}, where={{x0: A[0, i]}})");
    let found = read_module(&stored(&doubled)).unwrap_err();
    assert!(found.iter().any(|error| error.code == "let"), "{found:?}");
    for wrong in ["T.Let(x * x, where={})", "T.Let(x, x, where={x: 1})", "T.Let(x, where=A[0, 0])"] {
        only_error(&stored(wrong), "let", 4);
    }
}

#[test]
fn limits_quotients_and_bits_are_values() {
    let stored = |value: &str| program(PARAMS, &format!("    for i in range(8):\n        B[i] = {value}"));
    assert_same(&stored("T.infinity(\"float32\")"), &stored("T.float32(\"inf\")"));
    assert_same(&stored("T.max_value(\"float32\")"), &stored("T.float32(3.4028234663852886e38)"));
    assert_same(&stored("T.min_value(\"float32\")"), &stored("T.float32(-3.4028234663852886e38)"));
    let cast = |value: &str| stored(&format!("T.Cast(\"float32\", {value})"));
    assert_same(&cast("T.max_value(\"float16\")"), &cast("T.float16(65504)"));
    assert_same(&cast("T.min_value(\"int8\")"), &cast("T.int8(-128)"));
    assert_same(&cast("T.max_value(\"uint64\")"), &cast("T.uint64(18446744073709551615)"));
    only_error(&stored("T.infinity(\"int32\")"), "type", 4);
    only_error(&stored("T.max_value(\"float32x4\")"), "type", 4);

    let read = |index: &str| stored(&format!("A[0, {index}]"));
    assert_same(&read("T.ceildiv(i, 3)"), &read("(i + 3 - 1) // 3"));
    assert_same(&read("i + T.ceildiv(7, 2) - 4"), &read("i + 4 - 4"));
    let wide = "(T.Cast(\"int64\", i) + T.int64(3) - T.int64(1)) // T.int64(3)";
    assert_same(&read("T.ceildiv(T.Cast(\"int64\", i), 3)"), &read(wide));
    only_error(&stored("T.ceildiv(A[0, i], A[0, 0])"), "type", 4);

    let bits = "T.reinterpret(\"int32\", A[0, i])";
    assert!(round_trip(&cast(bits)).contains(bits));
    assert_same(&cast("T.reinterpret(A[0, i], dtype=\"int32\")"), &cast(bits));
    assert_same(&cast("T.reinterpret(\"uint32\", A[0, i])"), &cast(&format!("T.Cast(\"uint32\", {bits})")));
    assert_same(&cast("T.reinterpret(\"uint32\", i)"), &cast("T.Cast(\"uint32\", i)"));
    assert!(round_trip(&stored("T.reinterpret(\"float32\", i)")).contains("T.reinterpret(\"float32\", i)"));
    assert_same(
        &stored("T.reinterpret(\"float32\", T.Cast(\"uint32\", i))"),
        &stored("T.reinterpret(\"float32\", T.Cast(\"int32\", T.Cast(\"uint32\", i)))"),
    );
    for wrong in ["T.reinterpret(\"int64\", A[0, i])", "T.reinterpret(\"bool\", T.int8(1))"] {
        only_error(&cast(wrong), "type", 4);
    }
    only_error(&cast("T.reinterpret(\"int16\", T.float16(1))"), "type", 4);
}

#[test]
fn a_constant_array_is_memory_that_is_written_first() {
    let plain = program(
        PARAMS,
        "    c = T.allocate([3], \"float32\")\n    X = T.Buffer((3,), \"float32\", data=c)\n    X[0] = T.float32(1)\n    \
         X[1] = T.float32(-2.5)\n    X[2] = T.float32(3)\n    for i in range(8):\n        B[i] = X[i % 3]",
    );
    let uses = "    X = T.Buffer((3,), \"float32\", data=c)\n    for i in range(8):\n        B[i] = X[i % 3]";
    let flat = program(PARAMS, &format!("    c = T.allocate_const([1.0, -2.5, 3], \"float32\", [3])\n{uses}"));
    let text = round_trip(&flat);
    for line in ["[0] = T.float32(1.0)", "[1] = T.float32(-2.5)", "[2] = T.float32(3.0)"] {
        assert!(text.contains(line), "{text}");
    }
    assert!(read_module(&plain).is_ok());
    let scope = "    with T.allocate_const([[1], [2]], \"int32\", [2, 1]) as c:\n        X = T.Buffer((2, 1), \"int32\", data=c)\n        \
                 B[X[1, 0]] = A[0, 0]";
    assert!(round_trip(&program(PARAMS, scope)).contains("[1] = 2"));
    for (array, line) in
        [("[1.0], \"float32\", [2]", 3), ("2.0, \"float32\", [1]", 3), ("[1.0, 2], \"float32x2\", [2]", 3)]
    {
        only_error(
            &program(PARAMS, &format!("    c = T.allocate_const({array})\n    B[0] = A[0, 0]")),
            "constant",
            line,
        );
    }
    let larger =
        format!("    c = T.allocate_const([{}], \"int8\", [1025])\n    B[0] = A[0, 0]", vec!["1"; 1025].join(", "));
    only_error(&program(PARAMS, &larger), "constant", 3);
    only_error(&program(PARAMS, "    c = T.allocate_const([1.5], \"int8\", [1])\n    B[0] = A[0, 0]"), "type", 3);
}

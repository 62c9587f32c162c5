//! Vector statements and texel buffers: what becomes one, what stays a loop, and what is refused.

use tilewright_ir::{Diagnostic, ForKind, Module, PrimFunc, Stmt, StmtKind, equal::funcs_equal, validate};

use super::{lower_texture, pass_by_name, vectorize};

/// A function `main` over some parameters.
fn program(params: &str, lines: &[&str]) -> PrimFunc {
    let head = format!("from tvm.script import tir as T\n\n@T.prim_func\ndef main({params}):\n");
    let text = lines.iter().fold(head, |text, line| text + "    " + line + "\n");
    let mut module = tilewright_script::read_module(&text).unwrap_or_else(|found| panic!("{found:#?}\n{text}"));
    module.funcs.remove(0)
}

/// The lines of the body after a pass, which is well formed, and on which the pass changes nothing.
fn after(pass: &str, func: &PrimFunc) -> Vec<String> {
    let run = pass_by_name(pass).unwrap().run;
    let result = run(func).unwrap_or_else(|found| panic!("{found:#?}")).func;
    validate(&result).unwrap();
    let again = run(&result).unwrap();
    assert!(again.evidence.buffers.is_empty());
    assert!(funcs_equal(&again.func, &result, true));
    let text = tilewright_script::print_module(&Module { funcs: vec![result] });
    text.lines().skip(4).map(|line| line.trim().to_owned()).collect()
}

fn last_line(pass: &str, func: &PrimFunc) -> String {
    after(pass, func).pop().unwrap()
}

fn n_vectorized_loops(func: &PrimFunc) -> usize {
    let mut count = 0;
    func.body.walk(&mut |stmt: &Stmt| {
        count += usize::from(matches!(&stmt.kind, StmtKind::For(inner) if inner.kind == ForKind::Vectorized));
    });
    count
}

const AB: &str = "A: T.Buffer((5, 16), \"float32\"), B: T.Buffer((5, 16), \"float32\")";

#[test]
fn a_marked_loop_becomes_the_statement_of_all_lanes() {
    let cases = [
        (
            "T.vectorized(4)",
            "B[i, c] = A[i, c] + T.float32(1.0)",
            "B[i, T.Ramp(0, 1, 4)] = A[i, T.Ramp(0, 1, 4)] + T.Broadcast(T.float32(1.0), 4)",
        ),
        ("T.vectorized(16)", "B[i, c] = A[i, 15 - c]", "B[i, T.Ramp(0, 1, 16)] = A[i, T.Ramp(15, -1, 16)]"),
        ("T.vectorized(3, 6)", "B[i, c * 2] = A[i, i]", "B[i, T.Ramp(6, 2, 3)] = T.Broadcast(A[i, i], 3)"),
        (
            "T.vectorized(2)",
            "B[i, c] = B[i, c] * A[c // 2, c]",
            "B[i, T.Ramp(0, 1, 2)] = B[i, T.Ramp(0, 1, 2)] * A[0, T.Ramp(0, 1, 2)]",
        ),
        (
            "T.vectorized(8)",
            "B[i, c] = T.if_then_else(i * 8 + c < 19, A[i, c], T.float32(0.0))",
            "B[i, T.Ramp(0, 1, 8)] = T.if_then_else(T.Ramp(i * 8, 1, 8) < T.Broadcast(19, 8), A[i, T.Ramp(0, 1, 8)], T.Broadcast(T.float32(0.0), 8))",
        ),
    ];
    for (kind, store, expected) in cases {
        let func = program(AB, &["for i in range(5):", &format!("    for c in {kind}:"), &format!("        {store}")]);
        assert_eq!(last_line("vectorize", &func), expected);
    }
}

#[test]
fn a_condition_of_all_lanes_stays_one() {
    let func = program(
        AB,
        &[
            "for i in range(5):",
            "    for c in T.vectorized(4):",
            "        if i * 3 < 11:",
            "            B[i, c] = A[i, c]",
        ],
    );
    assert_eq!(after("vectorize", &func)[1..], ["if i * 3 < 11:", "B[i, T.Ramp(0, 1, 4)] = A[i, T.Ramp(0, 1, 4)]"]);
}

#[test]
fn a_loop_without_a_vector_statement_becomes_a_scalar_loop() {
    let cases: [(&str, &[&str]); 10] = [
        ("T.vectorized(5)", &["B[i, c] = A[i, c]"]),
        ("T.vectorized(4)", &["B[i, c + 1] = B[i, c]"]),
        ("T.vectorized(4)", &["B[i, c] = B[i, 2]"]),
        ("T.vectorized(4)", &["B[i, 3] = A[i, c]"]),
        ("T.vectorized(4)", &["B[c, i] = A[i, c]"]),
        ("T.vectorized(4)", &["B[i, c] = A[c, i]"]),
        ("T.vectorized(4)", &["B[i, c] = A[i, c * c]"]),
        ("T.vectorized(4)", &["if c + i < 7:", "    B[i, c] = A[i, c]"]),
        ("T.vectorized(4)", &["if B[i, 2] < T.float32(0.0):", "    B[i, c] = A[i, c]"]),
        ("T.vectorized(4)", &["B[i, c] = A[i, c]", "A[i, c] = B[i, c]"]),
    ];
    for (kind, body) in cases {
        let text = |kind: &str| {
            let mut lines = vec!["for i in range(4):".to_owned(), format!("    for c in {kind}:")];
            lines.extend(body.iter().map(|line| format!("        {line}")));
            program(AB, &lines.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let result = vectorize(&text(kind)).unwrap();
        assert!(funcs_equal(&result.func, &text(&kind.replace("vectorized", "serial")), true), "{body:?}");
        assert_eq!(n_vectorized_loops(&result.func), 0);
        let notes: Vec<_> = result.notes.iter().map(|note| note.code).collect();
        assert_eq!(notes, ["not-vectorized"], "{body:?}");
    }
}

/// A copy into a texture and a read of one channel of it.
fn copy(scope: &str, separators: &str) -> PrimFunc {
    let declaration = format!("Xt = T.alloc_buffer((2, 3, 5, 7, 4), \"float32\", scope=\"{scope}\"{separators})");
    program(
        "X: T.Buffer((2, 3, 5, 7, 4), \"float32\"), Y: T.Buffer((2, 3, 5, 7), \"float32\")",
        &[
            &declaration,
            "for a, b, c, d, e in T.grid(2, 3, 5, 7, 4):",
            "    Xt[a, b, c, d, e] = X[a, b, c, d, e]",
            "for a, b, c, d in T.grid(2, 3, 5, 7):",
            "    Y[a, b, c, d] = Xt[a, b, c, d, (a + d) % 4]",
        ],
    )
}

#[test]
fn conventions_are_separators() {
    let cases = [
        ("texture", "", ("30", "7"), ("a * 15 + b * 5 + c", "d")),
        ("global.texture", ", axis_separators=[3]", ("30", "7"), ("a * 15 + b * 5 + c", "d")),
        ("texture:weight", "", ("2", "105"), ("a", "b * 35 + c * 7 + d")),
        ("global.texture-weight", "", ("2", "105"), ("a", "b * 35 + c * 7 + d")),
        ("texture:nhwc", "", ("6", "35"), ("a * 3 + b", "c * 7 + d")),
        ("global.texture-nhwc", ", axis_separators=[2, 4]", ("6", "35"), ("a * 3 + b", "c * 7 + d")),
        ("texture", ", axis_separators=[1]", ("2", "105"), ("a", "b * 35 + c * 7 + d")),
    ];
    for (scope, separators, (height, width), (row, column)) in cases {
        let func = copy(scope, separators);
        let lines = after("lower_texture", &func);
        let scope = scope.trim_start_matches("global.").replace('-', ":");
        let expected = [
            format!("Xt = T.texture2d_alloca(height={height}, width={width}, dtype=\"float32\", scope=\"{scope}\")"),
            "for a, b, c, d in T.grid(2, 3, 5, 7):".to_owned(),
            format!("T.texture2d_store(Xt, row={row}, column={column}, value=X[a, b, c, d, T.Ramp(0, 1, 4)])"),
            "for a, b, c, d in T.grid(2, 3, 5, 7):".to_owned(),
            format!("Y[a, b, c, d] = T.texture2d_load(Xt, row={row}, column={column}, lane=(a + d) % 4)"),
        ];
        assert_eq!(lines, expected, "{scope}{separators}");
    }
}

#[test]
fn a_parameter_keeps_its_declaration() {
    let func = program(
        "X: T.Buffer((3, 5, 7, 4), \"float16\", scope=\"texture\"), Y: T.Buffer((3, 5, 7), \"float16\")",
        &["for a, b, c in T.grid(3, 5, 7):", "    Y[a, b, c] = X[a, b, c, 2]"],
    );
    let result = lower_texture(&func).unwrap();
    assert_eq!(result.func.buffer_map[0].1, func.buffer_map[0].1);
    assert_eq!(result.evidence.buffers[0].after.name, "X_texels");
    let lines = after("lower_texture", &func);
    assert!(
        lines[0].contains("X_texels = T.decl_buffer((15, 7, 4), \"float16\", data=X.data, scope=\"texture\""),
        "{lines:?}"
    );
    assert_eq!(lines[2], "Y[a, b, c] = T.texture2d_load(X_texels, row=a * 5 + b, column=c, lane=2)");
}

#[test]
fn an_unused_parameter_is_lowered_too() {
    let func = program(
        "X: T.Buffer((3, 5, 4), \"float32\", scope=\"texture\"), Y: T.Buffer((7,), \"float32\")",
        &["for a in range(7):", "    Y[a] = T.float32(2)"],
    );
    let result = lower_texture(&func).unwrap();
    assert_eq!(result.evidence.buffers.len(), 1);
    assert_eq!(after("lower_texture", &func).last().map(String::as_str), Some("Y[a] = T.float32(2.0)"));
    let kernels = crate::codegen::generate(validate(&result.func).unwrap()).unwrap();
    assert_eq!(kernels.metadata.kernels.len(), 1);
}

const RAGGED: &str = "X: T.Buffer((3, 7, 18), \"int8\"), Y: T.Buffer((3, 7, 18), \"int8\")";
const TEXTURE: &str = "Xt = T.alloc_buffer((3, 7, 5, 4), \"int8\", scope=\"texture:nhwc\")";

#[test]
fn a_condition_on_the_lane_is_gathered_into_the_texel() {
    let func = program(
        RAGGED,
        &[
            TEXTURE,
            "for n, a, b in T.grid(1, 4, 7):",
            "    for k, e in T.grid(5, 4):",
            "        if a < 3 and k * 4 + e < 18:",
            "            Xt[a, b, k, e] = X[a, b, k * 4 + e]",
        ],
    );
    let lines = after("lower_texture", &func);
    let value = "T.if_then_else(T.Ramp(k * 4, 1, 4) < T.Broadcast(18, 4), X[a, b, T.Ramp(k * 4, 1, 4)], T.Broadcast(T.int8(0), 4))";
    let store = format!("T.texture2d_store(Xt, row=a * 7 + b, column=k, value={value})");
    assert_eq!(lines[1..], ["for n, a, b, k in T.grid(1, 4, 7, 5):", "if a < 3:", store.as_str()]);
}

#[test]
fn a_texel_that_no_lane_stores_is_not_stored_where_a_loop_goes_on_behind_the_texture() {
    let func = program(
        RAGGED,
        &[
            TEXTURE,
            "for a, b, k, e in T.grid(3, 7, 8, 4):",
            "    if k * 4 + e < 18:",
            "        Xt[a, b, k, e] = X[a, b, k * 4 + e]",
        ],
    );
    let some = "if k * 4 < 18 or k * 4 + 1 < 18 or k * 4 + 2 < 18 or k * 4 + 3 < 18:";
    assert_eq!(after("lower_texture", &func)[2], some);
}

fn refused(params: &str, lines: &[&str]) -> Diagnostic {
    let func = program(params, lines);
    let mut found = lower_texture(&func).map(|_| ()).expect_err("it is refused");
    assert_eq!(found.len(), 1, "{found:?}");
    let fault = found.remove(0);
    assert!(!fault.labels.is_empty() && fault.help.is_some(), "{fault:?}");
    fault
}

#[test]
fn a_store_that_would_need_the_other_channels_is_refused() {
    let loops = "for a, b, k in T.grid(3, 7, 5):";
    let cases: [(&[&str], &str); 10] = [
        (&[loops, "    Xt[a, b, k, 2] = X[a, b, k]"], "the channel `2` is stored by itself"),
        (
            &["for e, a, b, k in T.grid(4, 3, 7, 5):", "    Xt[a, b, k, e] = X[a, b, k]"],
            "the channel `e` is stored by itself",
        ),
        (
            &["for a, b, f in T.grid(3, 7, 18):", "    Xt[a, b, f // 4, f % 4] = X[a, b, f]"],
            "the channel `f % 4` is stored by itself",
        ),
        (
            &[loops, "    for e in range(4):", "        Xt[a, b, k, 3 - e] = X[a, b, e]"],
            "do not store the channels of a texel in order",
        ),
        (
            &[loops, "    for e in range(3):", "        Xt[a, b, k, e] = X[a, b, e]"],
            "the channel `e` is stored by itself",
        ),
        (
            &[
                loops,
                "    for e in T.thread_binding(4, thread=\"threadIdx.x\"):",
                "        Xt[a, b, k, e] = X[a, b, e]",
            ],
            "by different work-items",
        ),
        (
            &[loops, "    for e in range(4):", "        Xt[a, b, k, e] = Xt[a, b, k, e] + X[a, b, e]"],
            "reads the texture `Xt`",
        ),
        (
            &[loops, "    for e in range(4):", "        Xt[a, b, k, e] = X[a, e, b]"],
            "the lanes are not in the last index of `X`",
        ),
        (&[loops, "    Xt[a, b, k, T.Ramp(0, 2, 4)] = X[a, b, 0:4]"], "is not all its channels in order"),
        (
            &[
                "for a, b, k, r, e in T.grid(3, 7, 5, 2, 4):",
                "    if r + e < 3:",
                "        Xt[a, b, k, e] = X[a, b, e]",
            ],
            "each iteration of the loop over `r`",
        ),
    ];
    for (body, said) in cases {
        let mut lines = vec![TEXTURE];
        lines.extend(body);
        let fault = refused(RAGGED, &lines);
        assert_eq!(fault.code, "texture-store", "{body:?}");
        assert!(fault.message.contains(said), "{}", fault.message);
    }
    let twice = program(
        RAGGED,
        &[
            TEXTURE,
            "for a, b, k, e in T.grid(3, 7, 5, 4):",
            "    if e < 2:",
            "        Xt[a, b, k, e] = X[a, b, e]",
            "for a, b, k, e in T.grid(3, 7, 5, 4):",
            "    if e >= 2:",
            "        Xt[a, b, k, e] = X[a, b, e]",
        ],
    );
    let found = lower_texture(&twice).map(|_| ()).unwrap_err();
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|fault| fault.message.contains("is stored elsewhere too")), "{found:?}");
    let passed = [
        "for a, b, k, e in T.grid(3, 7, 5, 4):",
        "    if k * 4 + e < 18:",
        "        Y[a, b, k, e] = X[a, b, k * 4 + e]",
    ];
    let params = "X: T.Buffer((3, 7, 18), \"int8\"), Y: T.Buffer((3, 7, 5, 4), \"int8\", scope=\"texture\")";
    assert!(refused(params, &passed).message.contains("the caller passed"));
}

#[test]
fn what_cannot_be_a_texture_is_refused() {
    let xy = "X: T.Buffer((3, 5, 4), \"float32\"), Y: T.Buffer((3, 5, 4), \"float32\")";
    let cases = [
        ("Xt = T.alloc_buffer((3, 4), \"float32\", scope=\"texture\")", "texture-rank"),
        ("Xt = T.alloc_buffer((2, 3, 4), \"float32\", scope=\"texture:nhwc\")", "texture-rank"),
        ("Xt = T.alloc_buffer((3, 5, 7), \"float32\", scope=\"texture\")", "texture-channels"),
        ("Xt = T.alloc_buffer((3, 5, 4), \"float64\", scope=\"texture\")", "texture-type"),
        ("Xt = T.alloc_buffer((3, 5, 4), \"float32x4\", scope=\"texture\")", "texture-type"),
        ("Xt = T.alloc_buffer((3, 5, 4), \"float32\", scope=\"texture\", elem_offset=4)", "texture-strides"),
        ("Xt = T.alloc_buffer((3, 5, 4), \"float32\", strides=[20, 4, 1], scope=\"texture\")", "texture-strides"),
        (
            "Xt = T.alloc_buffer((3, 5, 7, 4), \"float32\", scope=\"texture:weight\", axis_separators=[2])",
            "texture-separators",
        ),
        ("Xt = T.alloc_buffer((3, 8193, 4), \"float32\", scope=\"texture\")", "texture-limits"),
        ("Xt = T.alloc_buffer((91, 91, 5, 4), \"float32\", scope=\"texture\")", "texture-limits"),
        ("Xt = T.decl_buffer((3, 5, 4), \"float32\", data=X.data, scope=\"texture\")", "texture-alias"),
    ];
    for (declaration, code) in cases {
        assert_eq!(refused(xy, &[declaration, "Y[0, 0, 0] = X[0, 0, 0]"]).code, code, "{declaration}");
    }
    let inside = [
        "for i in T.thread_binding(3, thread=\"blockIdx.x\"):",
        "    Xt = T.alloc_buffer((3, 5, 4), \"float32\", scope=\"texture\")",
        "    Y[i, 0, 0] = X[i, 0, 0]",
    ];
    assert_eq!(refused(xy, &inside).code, "texture-alloc");
    let other_view = [
        "Xt = T.alloc_buffer((3, 5, 4), \"float32\", scope=\"texture\")",
        "V = T.decl_buffer((5, 3, 4), \"float32\", data=Xt.data, scope=\"texture\")",
        "Y[0, 0, 0] = V[0, 0, 0]",
    ];
    assert_eq!(refused(xy, &other_view).code, "texture-alias");
    let half = ["Xt = T.alloc_buffer((3, 5, 4), \"float32\", scope=\"texture\")", "Y[0, 0, 0:2] = Xt[0, 0, 0:2]"];
    assert_eq!(refused(xy, &half).code, "texture-load");
}

#[test]
fn the_last_extent_within_the_limits_is_taken() {
    for (height, width, ok) in [(7, 9, true), (8, 9, false), (7, 10, false)] {
        let declaration = format!("Xt = T.alloc_buffer(({height}, {width}, 4), \"float32\", scope=\"texture\")");
        let attrs = "T.func_attr({\"texture_limits\": \"9x7\"})";
        let func = program("Y: T.Buffer((3,), \"float32\")", &[attrs, &declaration, "Y[0] = Xt[0, 0, 0]"]);
        assert_eq!(lower_texture(&func).is_ok(), ok, "{height}x{width}");
    }
}

#[test]
fn the_same_view_of_a_texture_is_the_texture() {
    let func = program(
        "Y: T.Buffer((3, 5), \"float32\")",
        &[
            "Xt = T.alloc_buffer((3, 5, 4), \"float32\", scope=\"texture\")",
            "V = T.decl_buffer((3, 5, 4), \"float32\", data=Xt.data, scope=\"texture\")",
            "for i, j in T.grid(3, 5):",
            "    Y[i, j] = V[i, j, 1]",
        ],
    );
    assert_eq!(last_line("lower_texture", &func), "Y[i, j] = T.texture2d_load(V, row=i, column=j, lane=1)");
}

//! The texture builtins of TVMScript are accesses to texel buffers, with coordinates by name or by position.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use tilewright_ir::texture::is_whole_texel;
use tilewright_ir::{Diagnostic, Expr, Stmt, StmtKind, TextureLimits};
use tilewright_script::{print_module, read_module};

fn program(lines: &[&str]) -> String {
    let head = "from tvm.script import tir as T\n\n@T.prim_func\ndef main(A: T.Buffer((3, 5, 4), \"float32\"), \
        B: T.Buffer((3, 5), \"float32\")):\n    T.func_attr({\"texture_limits\": \"16384x8192\"})\n    \
        Xt = T.texture2d_alloca(height=3, width=5, dtype=\"float32\", scope=\"texture:weight\")\n";
    lines.iter().fold(head.to_owned(), |text, line| text + "    " + line + "\n")
}

const LOOPS: &str = "for i, j in T.grid(3, 5):";

fn single_error(line: &str) -> Diagnostic {
    let found = read_module(&program(&[LOOPS, &format!("    {line}")])).unwrap_err();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

#[test]
fn builtins_are_printed_as_they_were_read() {
    let text = program(&[
        LOOPS,
        "    T.texture2d_store(Xt, row=i, column=j, value=A[i, j, T.Ramp(0, 1, 4)])",
        LOOPS,
        "    A[i, j, T.Ramp(0, 1, 4)] = T.texture2d_load(Xt, row=i, column=j)",
        "    B[i, j] = T.texture2d_load(Xt, row=i, column=j, lane=(i + j) % 4)",
    ]);
    let module = read_module(&text).unwrap();
    assert_eq!(print_module(&module), text);
    assert_eq!(module.funcs[0].attrs.texture_limits, Some(TextureLimits { width: 16384, height: 8192 }));
    let buffers = module.funcs[0].buffers();
    let texture = buffers.iter().find(|buffer| buffer.name == "Xt").unwrap();
    assert!(texture.is_texel_buffer());
    assert_eq!(texture.scope.name(), "texture:weight");
}

#[test]
fn the_row_is_the_first_index_in_any_order_of_arguments() {
    let text = program(&[LOOPS, "    T.texture2d_store(Xt, value=A[i, j, 0:4], column=j, row=i)"]);
    let module = read_module(&text).unwrap();
    let mut found = Vec::new();
    module.funcs[0].body.walk(&mut |stmt: &Stmt| {
        if let StmtKind::Store { indices, .. } = &stmt.kind {
            found = indices.iter().map(ToString::to_string).collect();
            assert!(indices.last().is_some_and(|lane: &Expr| is_whole_texel(lane, 4)));
        }
    });
    assert_eq!(found[..2], ["i", "j"]);
}

#[test]
fn coordinates_by_position_are_those_of_tvm_the_column_first() {
    let named = [
        LOOPS,
        "    T.texture2d_store(Xt, row=i, column=j, value=A[i, j, T.Ramp(0, 1, 4)])",
        LOOPS,
        "    A[i, j, T.Ramp(0, 1, 4)] = T.texture2d_load(Xt, row=i, column=j)",
        "    B[i, j] = T.texture2d_load(Xt, row=i, column=j, lane=(i + j) % 4)",
    ];
    let stores = [
        "T.texture2d_store(Xt, j, i, A[i, j, 0:4])",
        "T.evaluate(T.texture2d_store(Xt, j, i, A[i, j, 0:4]))",
        "T.texture2d_store(Xt.data, j, i, 0, 128, A[i, j, 0:4])",
        "T.call_intrin(\"float32x4\", \"tir.texture2d_store\", Xt, j, i, A[i, j, 0:4])",
        "T.evaluate(T.call_intrin(\"void\", \"tir.texture2d_store\", Xt.data, j, i, 0, 128, A[i, j, 0:4]))",
        "T.texture2d_store(Xt, j, i, A[i, j, 0:4], dtype=\"float32x4\")",
    ];
    let loads = [
        ["T.texture2d_load(Xt, j, i, T.Ramp(0, 1, 4))", "T.texture2d_load(Xt, j, i, (i + j) % 4)"],
        ["T.texture2d_load(Xt.data, j, i, 0, 128, T.Ramp(0, 1, 4))", "T.texture2d_load(Xt, j, i, 0, 128, (i + j) % 4)"],
        [
            "T.call_intrin(\"float32x4\", \"tir.texture2d_load\", Xt.data, j, i, T.Ramp(0, 1, 4))",
            "T.call_intrin(\"float32\", tvm.ir.Op.get(\"tir.texture2d_load\"), Xt, j, i, (i + j) % 4)",
        ],
        [
            "T.texture2d_load(Xt, j, i, T.Ramp(0, 1, 4), dtype=\"float32x4\")",
            "T.call_pure_intrin(\"float32\", \"tir.texture2d_load\", Xt, j, i, 0, 128, (i + j) % 4)",
        ],
    ];
    for (at, store) in stores.iter().enumerate() {
        let [whole, channel] = loads[at % loads.len()];
        let lines = [
            LOOPS,
            &format!("    {store}"),
            LOOPS,
            &format!("    A[i, j, 0:4] = {whole}"),
            &format!("    B[i, j] = {channel}"),
        ];
        let module = read_module(&program(&lines)).unwrap_or_else(|found| panic!("{lines:?}: {found:#?}"));
        assert_eq!(print_module(&module), program(&named), "{lines:?}");
    }
}

#[test]
fn the_memory_of_a_texture_that_tvm_lowered_has_its_width_first() {
    let head = program(&[]);
    for call in [
        "T.nd_mem_alloc_with_scope(\"texture:weight\", T.int64(2), T.tvm_stack_make_shape(5, 3))",
        "T.nd_mem_alloc_with_scope(\"texture:weight\", 3, T.tvm_stack_make_shape(5, 3, 1), 128)",
        "T.call_intrin(\"handle\", \"tir.nd_mem_alloc_with_scope\", \"texture:weight\", T.int64(2), \
            T.tvm_stack_make_shape(5, 3))",
    ] {
        let line = format!("Xt: T.handle(\"float32\", \"texture:weight\") = {call}");
        let text: String = head
            .lines()
            .map(|own| if own.contains("alloca") { format!("    {line}\n") } else { format!("{own}\n") })
            .collect();
        let body = "    for i, j in T.grid(3, 5):\n        T.texture2d_store(Xt, j, i, A[i, j, 0:4])\n";
        let module = read_module(&(text + body)).unwrap_or_else(|found| panic!("{call}: {found:#?}"));
        let named = program(&[LOOPS, "    T.texture2d_store(Xt, row=i, column=j, value=A[i, j, T.Ramp(0, 1, 4)])"]);
        assert_eq!(print_module(&module), named, "{call}");
    }
}

#[test]
fn wrong_coordinates_by_position_are_single_errors() {
    for (line, code) in [
        ("A[i, j, 0:4] = T.texture2d_load(Xt, j, i, 1, 128, T.Ramp(0, 1, 4))", "unsupported"),
        ("A[i, j, 0:4] = T.texture2d_load(Xt, j, i, 0, 64, T.Ramp(0, 1, 4))", "texture-type"),
        ("A[i, j, 0:4] = T.call_intrin(\"float16x4\", \"tir.texture2d_load\", Xt, j, i, T.Ramp(0, 1, 4))", "type"),
        ("A[i, j, 0:4] = T.texture2d_load(Xt, j, i, T.Ramp(0, 2, 4))", "type"),
        ("B[i, j] = T.texture2d_load(A, j, i, 0)", "texture-buffer"),
        ("T.texture2d_store(Xt, j, i, B[i, j])", "type"),
        ("T.texture2d_store(Xt, j, 1.5, A[i, j, 0:4])", "type"),
        (
            "Y: T.handle(\"float32\", \"texture\") = T.nd_mem_alloc_with_scope(\"texture\", 3, T.tvm_stack_make_shape(5, 3, 2))",
            "unsupported",
        ),
        ("Y: T.handle(\"float32\", \"texture\") = T.nd_mem_alloc_with_scope(\"texture\", 2)", "texture-memory"),
        (
            "Y: T.handle(\"float32\", \"local\") = T.nd_mem_alloc_with_scope(\"local\", 2, T.tvm_stack_make_shape(5, 3))",
            "texture-scope",
        ),
        ("Y = T.nd_mem_alloc_with_scope(\"texture\", 2, T.tvm_stack_make_shape(5, 3))", "unsupported"),
    ] {
        let error = single_error(line);
        assert_eq!(error.code, code, "{line}: {error:?}");
        assert!(!error.labels.is_empty() && error.help.is_some(), "{line}");
    }
}

#[test]
fn positions_that_no_release_has_are_rejected() {
    for line in [
        "A[i, j, 0:4] = T.texture2d_load(Xt, j, i)",
        "T.texture2d_store(Xt, j, i, value=A[i, j, 0:4])",
        "Yt = T.texture2d_alloca(3, 5, \"float32\")",
    ] {
        let error = single_error(line);
        assert_eq!(error.code, "texture-order", "{line}");
        assert!(error.help.unwrap().contains("x, y"), "{line}");
        assert!(!error.labels.is_empty(), "{line}");
    }
}

#[test]
fn ill_typed_texture_builtins_are_rejected() {
    let cases = [
        ("A[i, j, 0:4] = T.texture2d_load(A, row=i, column=j)", "texture-buffer"),
        ("T.texture2d_store(B, row=i, column=j, value=A[i, j, 0:4])", "texture-buffer"),
        ("T.texture2d_store(Xt, row=i, column=j)", "argument"),
        ("T.texture2d_store(Xt, row=i, column=j, lane=0, value=B[i, j])", "argument"),
        ("T.texture2d_store(Xt, row=i, column=j, value=B[i, j])", "type"),
        ("T.texture2d_store(Xt, row=i, column=j, value=0.0)", "type"),
        ("A[i, j, 0:4] = T.texture2d_load(Xt, row=i)", "argument"),
        ("B[i, j] = T.texture2d_load(Xt, row=i, column=j, lane=T.Ramp(0, 1, 4))", "type"),
        ("B[i, j] = T.texture2d_store(Xt, row=i, column=j, value=A[i, j, 0:4])", "texture-store"),
        ("Yt = T.texture2d_alloca(height=3, width=5, dtype=\"float64\")", "texture-type"),
        ("Yt = T.texture2d_alloca(height=3, width=5, dtype=\"float32x4\")", "texture-type"),
        ("Yt = T.texture2d_alloca(height=3, width=5, dtype=\"float32\", scope=\"shared\")", "texture-scope"),
        ("Yt = T.texture2d_alloca(height=3, width=2.5, dtype=\"float32\")", "type"),
    ];
    for (line, code) in cases {
        let error = single_error(line);
        assert_eq!(error.code, code, "{line}: {error:?}");
        assert!(!error.labels.is_empty() && error.help.is_some(), "{line}");
    }
}

//! The texture builtins of TVMScript are accesses to texel buffers, and their coordinates are named.

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
            assert!(indices.last().is_some_and(|lane: &Expr| is_whole_texel(lane)));
        }
    });
    assert_eq!(found[..2], ["i", "j"]);
}

#[test]
fn positional_coordinates_are_rejected() {
    for line in [
        "A[i, j, 0:4] = T.texture2d_load(Xt, j, i)",
        "T.texture2d_store(Xt, j, i, A[i, j, 0:4])",
        "Yt = T.texture2d_alloca(3, 5, \"float32\")",
    ] {
        let error = single_error(line);
        assert_eq!(error.code, "texture-order", "{line}");
        assert!(error.help.unwrap().contains("(x, y)"), "{line}");
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

//! The builtins of textures in TVMScript: they are accesses of texel buffers, their coordinates have names.

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

fn fault(line: &str) -> Diagnostic {
    let found = read_module(&program(&[LOOPS, &format!("    {line}")])).unwrap_err();
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

#[test]
fn the_builtins_print_as_they_are_read() {
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
fn the_row_is_the_first_index_wherever_it_is_named() {
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
fn coordinates_without_a_name_are_refused_because_two_orders_exist() {
    for line in [
        "A[i, j, 0:4] = T.texture2d_load(Xt, j, i)",
        "T.texture2d_store(Xt, j, i, A[i, j, 0:4])",
        "Yt = T.texture2d_alloca(3, 5, \"float32\")",
    ] {
        let fault = fault(line);
        assert_eq!(fault.code, "texture-order", "{line}");
        assert!(fault.help.unwrap().contains("(x, y)"), "{line}");
        assert!(!fault.labels.is_empty(), "{line}");
    }
}

#[test]
fn what_is_no_access_of_a_texel_buffer_is_refused() {
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
        let fault = fault(line);
        assert_eq!(fault.code, code, "{line}: {fault:?}");
        assert!(!fault.labels.is_empty() && fault.help.is_some(), "{line}");
    }
}

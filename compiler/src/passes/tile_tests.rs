//! The tile_layout pass: XLA's positions, the judge's verdicts, and twins that it must refuse.

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{Evidence, Expr, PrimFunc, Stmt, StmtKind, XlaShape, validate};
use tilewright_script::{print_func, read_module, read_xla_shape};
use tilewright_verify::{Config, Judge, Report, Verdict};

use super::{Rewritten, apply_buffer_transforms, flatten_buffer, tile_layout};

fn judge() -> Judge {
    Judge::new(Config::default(), tilewright_search::strategies()).unwrap()
}

fn read(text: &str) -> PrimFunc {
    read_module(text).unwrap_or_else(|found| panic!("{found:#?}")).funcs.remove(0)
}

/// `B[i, j] = A[i, j] + 1` over some shape, with a `tile_layout` attribute.
fn program(shape: [&str; 2], tiles: &str) -> PrimFunc {
    let [rows, columns] = shape;
    let symbols: String = shape
        .iter()
        .filter(|extent| extent.parse::<i64>().is_err())
        .flat_map(|extent| ["    ", extent, " = T.int32()\n"])
        .collect();
    read(&format!(
        "@T.prim_func\ndef main(a: T.handle, b: T.handle):\n{symbols}    A = T.match_buffer(a, ({rows}, {columns}), \"float32\")\n    \
         B = T.match_buffer(b, ({rows}, {columns}), \"float32\")\n    T.func_attr({{\"tile_layout\": {{{tiles}}}}})\n    \
         for i, j in T.grid({rows}, {columns}):\n        B[i, j] = A[i, j] + T.float32(1)\n"
    ))
}

fn undecided(reports: &[Report]) -> Vec<String> {
    let open = reports.iter().filter(|report| !report.verdict.is_proved());
    open.map(|report| format!("{} {}: {}", report.obligation, report.subject, report.verdict)).collect()
}

fn is_refuted(reports: &[Report], obligation: &str) -> bool {
    reports.iter().any(|report| report.obligation.id() == obligation && matches!(report.verdict, Verdict::Refuted(_)))
}

fn is_open(reports: &[Report], obligation: &str) -> bool {
    reports.iter().any(|report| report.obligation.id() == obligation && !report.verdict.is_proved())
}

/// The position that a constant access of `x` comes to.
fn position(layout: &str, shape: &[i64], index: &[i64]) -> i128 {
    let list = |numbers: &[i64]| numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let func = read(&format!(
        "@T.prim_func\ndef main(X: T.Buffer(({},), \"float32\")):\n    T.func_attr({{\"tile_layout\": {{X: \"{layout}\"}}}})\n    \
         X[{}] = T.float32(1)\n",
        list(shape),
        list(index)
    ));
    let tiled = tile_layout(&func).unwrap();
    validate(&tiled.func).unwrap();
    let flat = flatten_buffer(&tiled.func).unwrap().func;
    let mut found = None;
    flat.body.walk(&mut |stmt| {
        if let StmtKind::Store { indices, .. } = &stmt.kind {
            found = indices[0].as_const_int();
        }
    });
    found.unwrap()
}

#[test]
fn elements_lie_at_xlas_linear_index_once_flattened() {
    assert_eq!(position("{1,0:T(2,2)}", &[3, 5], &[2, 3]), 17);
    for (layout, shape) in [
        ("{1,0:T(2,4)(2,1)}", &[5, 11][..]),
        ("{0,1:T(8,128)}", &[3, 5]),
        ("{1,2,0:T(*,2,4)}", &[3, 5, 11]),
        ("{2,1,0:T(2,3,2,2)}", &[3, 5, 7]),
        ("{0:T(8)(3)}", &[13]),
    ] {
        let extents: Vec<String> = shape.iter().map(ToString::to_string).collect();
        let XlaShape::Array(array) = read_xla_shape(&format!("f32[{}]{layout}", extents.join(","))).unwrap() else {
            panic!()
        };
        let tiling = array.tiling().unwrap();
        let last: Vec<i64> = shape.iter().map(|extent| extent - 1).collect();
        let middle: Vec<i64> = shape.iter().map(|extent| extent / 2).collect();
        for index in [last, middle] {
            let unsigned: Vec<u64> = index.iter().map(|at| u64::try_from(*at).unwrap()).collect();
            let expected = i128::from(tiling.linear_index(&unsigned).unwrap());
            assert_eq!(position(layout, shape, &index), expected, "{layout} {shape:?} {index:?}");
        }
    }
}

#[test]
fn a_ragged_layout_is_proved_to_be_what_was_asked_for() {
    let before = program(["5", "11"], "A: \"{1,0:T(2,4)(2,1)}\", B: \"{0,1:T(4,2)}\"");
    let Rewritten { func, evidence, .. } = tile_layout(&before).unwrap();
    assert!(func.attrs.tile_layout.is_empty());
    let reports = judge().check_pass(&before, &func, &evidence);
    assert_eq!(undecided(&reports), Vec::<String>::new());
    assert_eq!(reports.iter().filter(|report| report.obligation.id() == "specification").count(), 2);
    assert_eq!(reports.iter().filter(|report| report.obligation.id() == "tiling").count(), 2);
    let again = tile_layout(&func).unwrap();
    assert!(again.evidence.buffers.is_empty());
}

#[test]
fn a_stated_padding_is_proved_to_be_written() {
    let pad = "{\"layout\": \"{1,0:T(2,4)(2,1)}\", \"pad_value\": -0.5}";
    let before = program(["5", "11"], &format!("A: {pad}, B: {pad}"));
    let Rewritten { func, evidence, .. } = tile_layout(&before).unwrap();
    validate(&func).unwrap();
    assert_eq!(evidence.fills.iter().map(|fill| fill.by_host).collect::<Vec<_>>(), [true, false]);
    let reports = judge().check_pass(&before, &func, &evidence);
    assert_eq!(undecided(&reports), Vec::<String>::new());
    let flat = flatten_buffer(&func).unwrap();
    assert_eq!(undecided(&judge().check_pass(&func, &flat.func, &flat.evidence)), Vec::<String>::new());
}

#[test]
fn layouts_of_every_shape_are_proved() {
    let before = program(["n", "m"], "A: \"{1,0:T(8,128)(2,1)}\", B: \"{1,0:T(8,128)}\"");
    let Rewritten { func, evidence, .. } = tile_layout(&before).unwrap();
    let reports = judge().check_pass(&before, &func, &evidence);
    assert_eq!(undecided(&reports), Vec::<String>::new());
}

#[test]
fn a_stated_padding_of_every_shape_is_proved_to_be_written() {
    let pad = "{\"layout\": \"{1,0:T(8,128)(2,1)}\", \"pad_value\": 0}";
    let before = program(["n", "m"], &format!("A: {pad}, B: {pad}"));
    let Rewritten { func, evidence, .. } = tile_layout(&before).unwrap();
    let reports = judge().check_pass(&before, &func, &evidence);
    assert_eq!(undecided(&reports), Vec::<String>::new());
}

#[test]
fn another_layout_than_the_one_asked_for_is_refuted() {
    let asked = program(["5", "11"], "A: \"{1,0:T(2,4)}\"");
    for other in ["{0,1:T(2,4)}", "{1,0:T(4,2)}"] {
        let mut lie = asked.clone();
        let request = program(["5", "11"], &format!("A: \"{other}\"")).attrs.tile_layout.remove(0).1;
        lie.attrs.tile_layout[0].1 = request;
        let Rewritten { func, evidence, .. } = tile_layout(&lie).unwrap();
        let reports = judge().check_pass(&asked, &func, &evidence);
        assert!(is_refuted(&reports, "specification"), "{other}: {:?}", undecided(&reports));
    }
}

#[test]
fn a_last_tile_that_is_not_whole_is_refuted() {
    let asked = program(["5", "11"], "A: \"{1,0:T(8,4)}\"");
    let by_hand = "@T.prim_func\ndef main(A: T.Buffer((5, 11), \"float32\")):\n    T.func_attr({\"layout_transform_map\": {A: [lambda i, j: [i // 8, j // 4, i % 8, j % 4]]}})\n    A[0, 0] = T.float32(0)\n";
    let map = read(by_hand).attrs.layout_transform_map.remove(0).1.remove(0);
    let mut lie = asked.clone();
    let data = lie.attrs.tile_layout.remove(0).0;
    lie.attrs.layout_transform_map.push((data, vec![map]));
    let Rewritten { func, evidence, .. } = apply_buffer_transforms(&lie).unwrap();
    let reports = judge().check_pass(&asked, &func, &evidence);
    assert!(is_refuted(&reports, "tiling"), "{:?}", undecided(&reports));
}

/// Rewrites the stores of a constant.
struct Change<F>(F);

impl<F: FnMut(&Stmt) -> Option<Stmt>> Rewrite for Change<F> {
    type Error = std::convert::Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Self::Error> {
        match (self.0)(stmt) {
            Some(other) => Ok(other),
            None => self.stmt_children(stmt),
        }
    }
}

fn changed(func: &PrimFunc, change: impl FnMut(&Stmt) -> Option<Stmt>) -> PrimFunc {
    let Ok(body) = Change(change).stmt(&func.body);
    PrimFunc { body, ..func.clone() }
}

#[test]
fn padding_that_is_not_written_as_claimed_is_not_proved() {
    let before = program(["5", "11"], "B: {\"layout\": \"{1,0:T(2,4)}\", \"pad_value\": 3}");
    let Rewritten { func, evidence, .. } = tile_layout(&before).unwrap();
    let is_fill = |stmt: &Stmt| matches!(&stmt.kind, StmtKind::Store { value: Expr::Float { .. }, .. });
    let refused = |func: &PrimFunc, evidence: &Evidence| {
        let reports = judge().check_pass(&before, func, evidence);
        assert!(is_open(&reports, "padding"), "{:?}", undecided(&reports));
        reports
    };
    // The nest is gone; it writes another value; its loops stop early; it writes elements too.
    let StmtKind::Seq(stmts) = &func.body.kind else { panic!("no nest") };
    refused(&PrimFunc { body: Stmt::seq(stmts[1..].to_vec()), ..func.clone() }, &evidence);
    refused(&PrimFunc { body: Stmt::seq(stmts.iter().rev().cloned().collect()), ..func.clone() }, &evidence);
    let other = changed(&func, |stmt| match &stmt.kind {
        StmtKind::Store { buffer, indices, .. } if is_fill(stmt) => {
            Some(Stmt::store(buffer, indices.clone(), Expr::float_of(4.0, buffer.dtype.scalar)))
        }
        _ => None,
    });
    refused(&other, &evidence);
    let short = changed(&func, |stmt| match &stmt.kind {
        StmtKind::For(inner) if inner.extent == Expr::int(4) => {
            let mut inner = inner.clone();
            std::sync::Arc::make_mut(&mut inner).extent = Expr::int(3);
            Some(Stmt::new(StmtKind::For(inner)))
        }
        _ => None,
    });
    refused(&short, &evidence);
    let everywhere = changed(&func, |stmt| match &stmt.kind {
        StmtKind::If { then_body, .. } => Some(Stmt::guarded(Expr::bool(true), (**then_body).clone())),
        _ => None,
    });
    refused(&everywhere, &evidence);
    // Claimed alike, but wrong: the predicate misses columns, or hits elements.
    for lie in [
        |index: &[Expr]| Expr::int(4).lt(index[0].clone() * Expr::int(2) + index[2].clone()),
        |index: &[Expr]| Expr::int(1).lt(index[0].clone()),
    ] {
        let mut evidence = evidence.clone();
        let index: Vec<Expr> = evidence.fills[0].inverse.vars.iter().map(Expr::from).collect();
        evidence.fills[0].inverse.padding = lie(&index);
        let func = changed(&func, |stmt| match &stmt.kind {
            StmtKind::If { then_body, .. } => {
                let StmtKind::Store { indices, .. } = &then_body.kind else { return None };
                Some(Stmt::guarded(lie(indices), (**then_body).clone()))
            }
            _ => None,
        });
        assert!(is_refuted(&refused(&func, &evidence), "padding"));
    }
    // An output is not the caller's business.
    let mut host = evidence.clone();
    host.fills[0].by_host = true;
    refused(&PrimFunc { body: Stmt::seq(stmts[1..].to_vec()), ..func.clone() }, &host);
    // A value that nobody claims.
    let silent = Evidence { fills: Vec::new(), ..evidence.clone() };
    refused(&PrimFunc { body: Stmt::seq(stmts[1..].to_vec()), ..func.clone() }, &silent);
}

#[test]
fn what_cannot_be_tiled_is_an_error() {
    let code = |func: &PrimFunc| tile_layout(func).unwrap_err()[0].code;
    assert_eq!(code(&program(["5", "11"], "A: \"{1,0:T(8,128)E(4)}\"")), "layout");
    assert_eq!(
        code(&program(["5", "11"], "A: {\"layout\": \"{1,0:T(2,4)}\", \"pad_value\": float(\"nan\")}")),
        "pad-value"
    );
    assert_eq!(code(&program(["4611686018427387904", "1"], "A: \"{1,0:T(8,128)}\"")), "size");
    let mut waiting = program(["5", "11"], "A: \"{1,0:T(2,4)}\"");
    let (data, request) = waiting.attrs.tile_layout[0].clone();
    let identity = tilewright_ir::IndexMap::identity([5, 11].map(Expr::int).to_vec());
    waiting.attrs.layout_transform_map.push((data.clone(), vec![identity]));
    assert_eq!(code(&waiting), "pass-order");
    let mut twice = program(["5", "11"], "A: \"{1,0:T(2,4)}\"");
    twice.attrs.tile_layout.push((data, request));
    twice.attrs.tile_layout[1].0 = twice.attrs.tile_layout[0].0.clone();
    assert_eq!(code(&twice), "duplicate-transform");
}

#[test]
fn requests_are_printed_and_read_back() {
    let text = print_func(&program(
        ["n", "m"],
        "A: \"{1,0:T(8,128)(2,1)}\", B: {\"layout\": \"{0,1:T(*,2)}\", \"pad_value\": -0.5}",
    ));
    let expected =
        "\"tile_layout\": {A: \"{1,0:T(8,128)(2,1)}\", B: {\"layout\": \"{0,1:T(*,2)}\", \"pad_value\": -0.5}}";
    assert!(text.contains(expected), "{text}");
    assert_eq!(print_func(&read(&text)), text);
}

#[test]
fn a_request_on_the_command_line_names_a_buffer_and_a_layout() {
    let mut func = program(["5", "11"], "");
    super::tile_layout::request(&mut func, "A:{1,0:T(2,4)}").unwrap();
    assert_eq!(tile_layout(&func).unwrap().evidence.buffers.len(), 1);
    for (text, said) in [
        ("A", "names no buffer"),
        ("X:{1,0}", "has no buffer `X`"),
        ("A:{1,0,2}", "orders 3 dimensions"),
        ("A:T(2,4)", "not a layout"),
    ] {
        let fault = super::tile_layout::request(&mut func, text).unwrap_err();
        assert!(fault.message.contains(said), "{text}: {}", fault.message);
    }
}

#[test]
fn a_request_that_cannot_be_read_is_an_error_at_its_place() {
    for (tiles, code) in [
        ("C: \"{1,0}\"", "unknown-name"),
        ("A: \"{1,0:T(2,4)\"", "unclosed"),
        ("A: \"(2,4)\"", "layout"),
        ("A: \"{1,0,2}\"", "layout-rank"),
        ("A: {\"pad_value\": 0}", "attribute"),
        ("A: {\"layout\": \"{1,0}\", \"pad_value\": \"x\"}", "pad-value"),
        ("A: {\"layout\": \"{1,0}\", \"pads\": 1}", "attribute"),
        ("A: \"{1,0}\", A: \"{0,1}\"", "duplicate"),
    ] {
        let text = format!(
            "@T.prim_func\ndef main(A: T.Buffer((5, 11), \"float32\")):\n    T.func_attr({{\"tile_layout\": {{{tiles}}}}})\n    A[0, 0] = T.float32(1)\n"
        );
        let found = read_module(&text).unwrap_err();
        assert_eq!((found[0].code, found[0].labels.is_empty()), (code, false), "{tiles}: {found:?}");
    }
}

#[test]
fn tiles_come_after_the_transformations_of_the_same_buffer() {
    let func = read(
        "@T.prim_func\ndef main(A: T.Buffer((5, 11), \"float32\")):\n    T.func_attr({\"layout_transform_map\": {A: [lambda i, j: [j, i]]}, \"tile_layout\": {A: \"{1,0:T(2,4)}\"}})\n    for i, j in T.grid(5, 11):\n        A[i, j] = T.float32(1)\n",
    );
    let moved = apply_buffer_transforms(&func).unwrap();
    validate(&moved.func).unwrap();
    assert_eq!(undecided(&judge().check_pass(&func, &moved.func, &moved.evidence)), Vec::<String>::new());
    let tiled = tile_layout(&moved.func).unwrap();
    assert_eq!(undecided(&judge().check_pass(&moved.func, &tiled.func, &tiled.evidence)), Vec::<String>::new());
    assert!(print_func(&tiled.func).contains("A[j // 2, i // 4, j % 2, i % 4]"), "{}", print_func(&tiled.func));
}

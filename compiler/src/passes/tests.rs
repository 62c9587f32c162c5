//! The passes on the programs of RFC 39 and RFC 63, with the numbers that they print.

use std::sync::Arc;

use tilewright_ir::{
    AxisSeparators, Buffer, Expr, ForKind, IndexMap, PrimFunc, ScalarType, SharedExpr, Stmt, StmtKind, Var,
    equal::funcs_equal, validate,
};

use super::{PASSES, Rewritten, apply_buffer_transforms, flatten_buffer, pass_by_name, simplify};

fn int(value: i64) -> Expr {
    Expr::int(value)
}

fn ints(values: &[i64]) -> Vec<Expr> {
    values.iter().map(|&value| int(value)).collect()
}

fn buffer(name: &str, shape: &[i64]) -> Buffer {
    Buffer::compact(name, ScalarType::Float32, ints(shape))
}

/// A function over parameters, with a body.
fn func(params: &[&Buffer], body: Stmt) -> PrimFunc {
    let handles: Vec<_> = params.iter().map(|buffer| Var::new(buffer.name.clone(), ScalarType::Handle)).collect();
    let buffer_map = handles.iter().cloned().zip(params.iter().map(|&buffer| buffer.clone())).collect();
    PrimFunc { name: "main".to_owned(), params: handles, buffer_map, attrs: tilewright_ir::FuncAttrs::default(), body }
}

/// Stores into `x` what it holds elsewhere: RFC 39's example of one load and one store.
fn load_and_store(x: &Buffer, load: &[i64], store: &[i64]) -> PrimFunc {
    func(&[x], Stmt::store(x, ints(store), Expr::load(x, ints(load))))
}

fn transform(mut func: PrimFunc, buffer: &Buffer, maps: Vec<IndexMap>) -> PrimFunc {
    func.attrs.layout_transform_map.push((buffer.data.clone(), maps));
    func
}

/// Everything a program loads and stores, as text; each load before its store.
fn accesses(func: &PrimFunc) -> Vec<String> {
    let mut found = Vec::new();
    func.body.walk(&mut |stmt| {
        for expr in stmt.exprs() {
            expr.walk(&mut |expr| {
                if matches!(expr, Expr::Load { .. }) {
                    found.push(expr.to_string());
                }
            });
        }
        if let StmtKind::Store { buffer, indices, .. } = &stmt.kind {
            found.push(Expr::load(buffer, indices.clone()).to_string());
        }
    });
    found
}

fn shape(buffer: &Buffer) -> Vec<String> {
    buffer.shape.iter().map(ToString::to_string).collect()
}

/// Runs a pass: the result is well formed, and a second run changes nothing.
fn run(name: &str, func: &PrimFunc) -> Rewritten {
    let pass = pass_by_name(name).unwrap();
    let result = (pass.run)(func).unwrap();
    validate(&result.func).unwrap();
    let again = (pass.run)(&result.func).unwrap();
    assert!(again.evidence.buffers.is_empty());
    assert!(funcs_equal(&again.func, &result.func, true));
    result
}

fn map(names: &[&str], domain: &[i64], outputs: impl Fn(&[Expr]) -> Vec<Expr>, separators: Vec<usize>) -> IndexMap {
    let vars: Vec<_> = names.iter().map(|name| Var::index(*name)).collect();
    let exprs: Vec<_> = vars.iter().map(Expr::from).collect();
    IndexMap::new(vars, ints(domain), outputs(&exprs), separators).unwrap()
}

fn nhwc_to_nchwc(domain: &[i64], separators: Vec<usize>) -> IndexMap {
    let outputs = |i: &[Expr]| {
        let c = i[3].clone();
        vec![i[0].clone(), c.clone().floor_div(int(4)), i[1].clone(), i[2].clone(), c.floor_mod(int(4))]
    };
    map(&["n", "h", "w", "c"], domain, outputs, separators)
}

#[test]
fn rfc39_row_major() {
    let x = buffer("x", &[64, 128]);
    let flat = run("flatten_buffer", &load_and_store(&x, &[10, 15], &[20, 23]));
    assert_eq!(
        accesses(&flat.func),
        [format!("x_flattened[{}]", 10 * 128 + 15), format!("x_flattened[{}]", 20 * 128 + 23)]
    );
    assert_eq!(shape(&flat.evidence.buffers[0].after), [(64 * 128).to_string()]);
    assert_eq!(flat.func.buffer_map[0].1, x);
}

#[test]
fn rfc39_transposed() {
    let x = buffer("x", &[64, 128]);
    let transposed = map(&["i", "j"], &[64, 128], |i| vec![i[1].clone(), i[0].clone()], vec![]);
    let before = transform(load_and_store(&x, &[10, 15], &[20, 23]), &x, vec![transposed]);
    let moved = run("apply_buffer_transforms", &before);
    assert_eq!(accesses(&moved.func), ["x[15, 10]", "x[23, 20]"]);
    assert_eq!(shape(&moved.func.buffer_map[0].1), ["128", "64"]);
    let flat = run("flatten_buffer", &moved.func);
    assert_eq!(
        accesses(&flat.func),
        [format!("x_flattened[{}]", 15 * 64 + 10), format!("x_flattened[{}]", 23 * 64 + 20)]
    );
}

#[test]
fn rfc39_nhwc_to_nchwc_in_one_axis() {
    let x = buffer("x", &[16, 64, 64, 128]);
    let before = load_and_store(&x, &[11, 37, 23, 101], &[1, 2, 3, 5]);
    let before = transform(before, &x, vec![nhwc_to_nchwc(&[16, 64, 64, 128], vec![])]);
    let moved = run("apply_buffer_transforms", &before);
    assert_eq!(accesses(&moved.func), ["x[11, 25, 37, 23, 1]", "x[1, 1, 2, 3, 1]"]);
    assert_eq!(shape(&moved.func.buffer_map[0].1), ["16", "32", "64", "64", "4"]);
    let flat = run("flatten_buffer", &moved.func);
    let index = 11 * (32 * 64 * 64 * 4) + 25 * (64 * 64 * 4) + 37 * (64 * 4) + 23 * 4 + 1;
    assert_eq!(accesses(&flat.func)[0], format!("x_flattened[{index}]"));
    assert_eq!(shape(&flat.evidence.buffers[0].after), [(16 * 32 * 64 * 64 * 4).to_string()]);
}

#[test]
fn rfc39_nhwc_to_nchwc_in_two_axes() {
    let x = buffer("x", &[16, 64, 64, 128]);
    let before = load_and_store(&x, &[11, 37, 23, 101], &[1, 2, 3, 5]);
    // RFC 39 prints [2], counting from the last axis of the group.
    let before = transform(before, &x, vec![nhwc_to_nchwc(&[16, 64, 64, 128], vec![3])]);
    let moved = run("apply_buffer_transforms", &before);
    assert_eq!(moved.func.buffer_map[0].1.axis_separators.positions(), [3]);
    let flat = run("flatten_buffer", &moved.func);
    assert_eq!(accesses(&flat.func)[0], format!("x_flattened[{}, {}]", 32 * 64 * 11 + 64 * 25 + 37, 4 * 23 + 1));
    let after = &flat.evidence.buffers[0].after;
    assert_eq!(shape(after), [(16 * 32 * 64).to_string(), (64 * 4).to_string()]);
    assert_eq!(after.axis_separators.positions(), [1]);
}

#[test]
fn rfc63_declares_a_flattened_alias() {
    let x = buffer("X", &[2, 3]);
    let (i, j) = (Var::index("i"), Var::index("j"));
    let store = Stmt::store(&x, vec![Expr::from(&i), Expr::from(&j)], Expr::float_of(1.0, ScalarType::Float32));
    let inner = Stmt::for_loop(&j, int(3), ForKind::Serial, store);
    let flat = run("flatten_buffer", &func(&[&x], Stmt::for_loop(&i, int(2), ForKind::Serial, inner)));
    let StmtKind::DeclBuffer { buffer: alias, .. } = &flat.func.body.kind else { panic!("no declaration") };
    assert_eq!((alias.name.as_str(), shape(alias)), ("X_flattened", vec!["6".to_owned()]));
    assert!(alias.aliases(&x));
    assert_eq!(accesses(&flat.func), ["X_flattened[i * 3 + j]"]);
}

#[test]
fn transformations_follow_one_another_and_carry_all_aliases() {
    let x = buffer("x", &[6, 20]);
    let alias = x.with(|info| {
        info.name = "y".to_owned();
        info.dtype = ScalarType::Int32.into();
    });
    let split = map(
        &["i", "j"],
        &[6, 20],
        |i| vec![i[0].clone(), i[1].clone().floor_div(int(4)), i[1].clone().floor_mod(int(4))],
        vec![],
    );
    let turn = map(&["a", "b", "c"], &[6, 5, 4], |i| vec![i[1].clone(), i[0].clone(), i[2].clone()], vec![]);
    let body = Stmt::seq(vec![
        Stmt::store(&x, ints(&[3, 7]), Expr::load(&x, ints(&[5, 18]))),
        Stmt::store(&alias, ints(&[2, 9]), int(7)),
    ]);
    let moved = run("apply_buffer_transforms", &transform(func(&[&x], body), &x, vec![split, turn]));
    assert_eq!(accesses(&moved.func), ["x[4, 5, 2]", "x[1, 3, 3]", "y[2, 2, 1]"]);
    assert_eq!(moved.evidence.buffers.len(), 2);
    assert!(moved.evidence.buffers.iter().all(|claim| shape(&claim.after) == ["5", "6", "4"]));
    assert_eq!(moved.evidence.buffers[0].map.to_string(), "lambda i, j: [j // 4, i, j % 4]");
}

#[test]
fn transformations_that_do_not_fit_are_errors() {
    let x = buffer("x", &[6, 20]);
    let turn = || map(&["i", "j"], &[6, 20], |i| vec![i[1].clone(), i[0].clone()], vec![]);
    let code = |alias: &Buffer, map: IndexMap| {
        let body = Stmt::store(alias, vec![int(0); alias.rank()], Expr::float_of(1.0, ScalarType::Float32));
        apply_buffer_transforms(&transform(func(&[&x], body), &x, vec![map])).unwrap_err()[0].code
    };
    assert_eq!(code(&x.with(|info| info.shape = ints(&[120])), turn()), "alias-shape");
    assert_eq!(code(&x.with(|info| info.dtype = ScalarType::Float64.into()), turn()), "alias-element");
    assert_eq!(code(&x.with(|info| info.elem_offset = int(3)), turn()), "strided-layout");
    assert_eq!(code(&x, map(&["i"], &[6], <[Expr]>::to_vec, vec![])), "rank");
    assert_eq!(
        code(&x, map(&["i", "j"], &[6, 20], |i| vec![i[0].clone() - int(1), i[1].clone()], vec![])),
        "negative-index"
    );
    let lost = map(&["i", "j"], &[6, 20], |i| vec![i[0].clone()], vec![]);
    let applied = apply_buffer_transforms(&transform(load_and_store(&x, &[1, 2], &[3, 4]), &x, vec![lost])).unwrap();
    assert_eq!(accesses(&applied.func), ["x[1]", "x[3]"]);
}

#[test]
fn strides_and_offset_are_folded_into_the_index() {
    let x = buffer("x", &[5, 7]).with(|info| {
        info.strides = Some(ints(&[1, 9]));
        info.elem_offset = int(4);
    });
    let flat = run("flatten_buffer", &load_and_store(&x, &[2, 3], &[4, 6]));
    assert_eq!(accesses(&flat.func), ["x_flattened[33]", "x_flattened[62]"]);
    assert_eq!(shape(&flat.evidence.buffers[0].after), ["63"]);
    let separated = x.with(|info| info.axis_separators = AxisSeparators::new(vec![1], 2).unwrap());
    let error = flatten_buffer(&load_and_store(&separated, &[2, 3], &[4, 6])).unwrap_err();
    assert_eq!(error[0].code, "strided-axes");
}

#[test]
fn rank_zero_becomes_one_element_and_allocations_are_replaced() {
    let (x, scratch) = (buffer("x", &[]), buffer("scratch", &[3, 5]));
    let body = Stmt::seq(vec![
        Stmt::store(&scratch, ints(&[2, 4]), Expr::load(&x, vec![])),
        Stmt::store(&x, vec![], Expr::load(&scratch, ints(&[2, 4]))),
    ]);
    let body = Stmt::new(StmtKind::Allocate { buffer: scratch, body: Arc::new(body) });
    let flat = run("flatten_buffer", &func(&[&x], body));
    assert_eq!(accesses(&flat.func), ["x_flattened[0]", "scratch[14]", "scratch[14]", "x_flattened[0]"]);
}

#[test]
fn a_ramp_stays_a_ramp() {
    let x = buffer("x", &[9, 16]);
    let i = Var::index("i");
    let base = SharedExpr::new(Expr::from(&i) * int(4));
    let ramp = Expr::Ramp { base, stride: SharedExpr::new(int(1)), lanes: 4 };
    let load = Expr::load(&x, vec![int(2), ramp.clone()]);
    let body = Stmt::for_loop(&i, int(4), ForKind::Serial, Stmt::store(&x, vec![int(1), ramp], load));
    let flat = run("flatten_buffer", &func(&[&x], body.clone()));
    assert_eq!(accesses(&flat.func)[0], "x_flattened[ramp(i * 4 + 32, 1, 4)]");
    let blocked = |i: &[Expr]| vec![i[1].clone().floor_div(int(4)), i[0].clone(), i[1].clone().floor_mod(int(4))];
    let kept = transform(func(&[&x], body.clone()), &x, vec![map(&["a", "b"], &[9, 16], blocked, vec![])]);
    let moved = run("apply_buffer_transforms", &kept);
    assert_eq!(accesses(&moved.func)[0], "x[i, 2, ramp(0, 1, 4)]");
    let turned = map(&["a", "b"], &[9, 16], |i| vec![i[1].clone(), i[0].clone()], vec![]);
    let error = apply_buffer_transforms(&transform(func(&[&x], body), &x, vec![turned])).unwrap_err();
    assert_eq!(error[0].code, "vector-index");
}

#[test]
fn large_buffers_are_indexed_with_64_bits() {
    let x = buffer("x", &[70_000, 70_001]);
    let (i, j) = (Var::index("i"), Var::index("j"));
    let at = || vec![Expr::from(&i), Expr::from(&j)];
    let inner = Stmt::for_loop(&j, int(70_001), ForKind::Serial, Stmt::store(&x, at(), Expr::load(&x, at())));
    let flat = run("flatten_buffer", &func(&[&x], Stmt::for_loop(&i, int(70_000), ForKind::Serial, inner)));
    assert_eq!(accesses(&flat.func)[0], "x_flattened[int64(i) * 70001 + int64(j)]");
}

#[test]
fn symbolic_shapes_flatten_to_horner_form() {
    let symbols = ["N", "H", "W", "C"].map(Var::index);
    let x = Buffer::compact("x", ScalarType::Float32, symbols.iter().map(Expr::from).collect());
    let loops = ["n", "h", "w", "c"].map(Var::index);
    let at = || loops.iter().map(Expr::from).collect::<Vec<_>>();
    let store = Stmt::store(&x, at(), Expr::load(&x, at()));
    let body = loops
        .iter()
        .zip(&symbols)
        .rev()
        .fold(store, |body, (var, extent)| Stmt::for_loop(var, Expr::from(extent), ForKind::Serial, body));
    let vars = ["n", "h", "w", "c"].map(Var::index);
    let [n, h, w, c] = [0, 1, 2, 3].map(|axis: usize| Expr::from(&vars[axis]));
    let outputs = vec![n, c.clone().floor_div(int(4)), h, w, c.floor_mod(int(4))];
    let blocked = IndexMap::new(vars.to_vec(), x.shape.clone(), outputs, vec![]).unwrap();
    let moved = run("apply_buffer_transforms", &transform(func(&[&x], body), &x, vec![blocked]));
    assert_eq!(shape(&moved.func.buffer_map[0].1), ["N", "(C + 3) // 4", "H", "W", "4"]);
    assert_eq!(moved.evidence.buffers[0].padded_axes, [4]);
    let flat = run("flatten_buffer", &moved.func);
    assert_eq!(accesses(&flat.func)[0], "x_flattened[(((n * ((C + 3) // 4) + c // 4) * H + h) * W + w) * 4 + c % 4]");
}

#[test]
fn a_layout_that_loses_an_extent_is_refused() {
    let (n, i) = (Var::index("n"), Var::index("i"));
    let x = Buffer::compact("x", ScalarType::Float32, vec![Expr::from(&n)]);
    let body = |extent| {
        Stmt::for_loop(&i, extent, ForKind::Serial, Stmt::store(&x, vec![Expr::from(&i)], Expr::load(&x, vec![int(0)])))
    };
    let v = Var::index("v");
    let wraps =
        IndexMap::new(vec![v.clone()], x.shape.clone(), vec![Expr::from(&v).floor_mod(int(4))], vec![]).unwrap();
    let error = apply_buffer_transforms(&transform(func(&[&x], body(Expr::from(&n))), &x, vec![wraps.clone()]));
    let error = error.unwrap_err().remove(0);
    assert_eq!(error.code, "extent-lost");
    assert_eq!(error.message, "variable `n` is not bound here: in the new layout, no argument's shape tells it");
    // Where nothing needs it there is nothing to be said.
    assert_eq!(
        shape(
            &run("apply_buffer_transforms", &transform(func(&[&x], body(int(3))), &x, vec![wraps])).func.buffer_map[0]
                .1
        ),
        ["4"]
    );
}

#[test]
fn simplify_drops_dead_branches_and_keeps_loops() {
    let x = buffer("x", &[16]);
    let (i, one) = (Var::index("i"), Var::index("one"));
    let at = Expr::from(&i) * int(2).floor_div(int(2)) + Expr::from(&one);
    let value = Expr::load(&x, vec![(at.clone() + int(3)).floor_mod(int(16)).floor_mod(int(32))]);
    let guarded = Stmt::guarded(at.clone().lt(int(16)), Stmt::store(&x, vec![at], value));
    let inner = Stmt::for_loop(&one, int(1), ForKind::Serial, guarded);
    let result = run("simplify", &func(&[&x], Stmt::for_loop(&i, int(16), ForKind::Serial, inner)));
    assert_eq!(accesses(&result.func), ["x[(i + 3) % 16]", "x[i]"]);
    let mut counts = (0, 0);
    result.func.body.walk(&mut |stmt| match stmt.kind {
        StmtKind::For(_) => counts.0 += 1,
        StmtKind::If { .. } => counts.1 += 1,
        _ => {}
    });
    assert_eq!(counts, (2, 0));
}

#[test]
fn integers_from_memory_wrap_and_are_left_alone() {
    let x = Buffer::compact("x", ScalarType::Int32, ints(&[16]));
    let element = Expr::load(&x, ints(&[3]));
    let value = (element * int(4)).floor_div(int(4));
    let before = func(&[&x], Stmt::store(&x, ints(&[5]), value.clone()));
    let StmtKind::Store { value: after, .. } = simplify(&before).unwrap().func.body.kind else { panic!("no store") };
    assert_eq!(after, value);
}

#[test]
fn an_unknown_pass_is_named_with_its_neighbour() {
    assert!(PASSES.iter().all(|pass| pass_by_name(pass.name).is_ok()));
    let error = pass_by_name("flaten_bufer").unwrap_err();
    assert_eq!(error.help.as_deref(), Some("did you mean `flatten_buffer`?"));
}

//! Textures: what is lowered rightly is proved, each broken twin is refuted.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::sync::Arc;

mod texture_programs;

use texture_programs::*;
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{
    AxisSeparators, BinaryOp, Buffer, BufferChange, BufferClaim, DataType, Evidence, Expr, ForKind, FuncAttrs,
    IndexMap, PrimFunc, Scope, Stmt, StmtKind, TextureLimits, Var,
};
use tilewright_verify::{Config, Judge, Report, Verdict};

#[test]
fn activations_with_ragged_channels_are_proved() {
    right().is_proved();
}

#[test]
fn weights_are_proved() {
    right_c1().is_proved();
}

#[test]
fn explicit_separators_are_proved() {
    Lowering { scope: Scope::Texture, separators: vec![1], ..right_c1() }.is_proved();
    Lowering { separators: vec![2, 3], ..right() }.is_proved();
}

#[test]
fn symbolic_extents_are_proved_under_the_premise_that_the_launch_checks_the_limits() {
    let lowering = Lowering { shape: symbolic(), ..right() };
    let reports = lowering.judged();
    assert!(reports.iter().all(|report| report.verdict.is_proved()));
    assert!(
        reports
            .iter()
            .any(|report| report.obligation.id() == "texture"
                && report.method.to_string().contains("premise: the launch"))
    );
    let slowest = reports.iter().map(|report| report.ms).fold(0.0, f64::max);
    assert!(slowest < 5000.0, "{slowest} ms");
    Lowering { shape: symbolic(), ..right_c1() }.is_proved();
}

/// The lowering of all shapes.
fn for_all_shapes(lowering: Lowering) -> Lowering {
    Lowering { shape: symbolic(), ..lowering }
}

#[test]
fn symbolic_lowerings_that_are_broken_are_refuted() {
    let texel = |shape: &Shape, [block, row, column, _]: At<'_>| {
        [block.clone(), row.clone() * shape.height.clone() + column.clone()]
    };
    for_all_shapes(Lowering { texel, ..right_c1() }).is_refuted("specification");
    for_all_shapes(Lowering { texel: c1, claimed: Some(c0), ..right() }).is_refuted("simulation");
    let down = |shape: &Shape| [shape.channels.clone().floor_div(int(4)) * shape.height.clone(), shape.width.clone()];
    for_all_shapes(Lowering { extents: down, ..right() }).is_refuted("bounds");
    let value = |input: &Buffer, _: &Shape, at: At<'_>| {
        Expr::load(input, vec![at[1].clone(), at[2].clone(), channel(&at[0], &at[3])])
    };
    for_all_shapes(store(full, value)).is_refuted("simulation");
    let until = |shape: &Shape| shape.channels.clone() + int(2);
    let (mut before, mut after, evidence) = for_all_shapes(Lowering { until, ..right() }).programs();
    for func in [&mut before, &mut after] {
        func.body = unguarded(&func.body);
    }
    assert!(refutation(&judged(&before, &after, &evidence), "defined").contains("a lane that has no value"));
}

#[test]
fn rows_of_two_axes_are_proved_and_those_of_another_convention_are_refuted() {
    // Rows are block and row, columns are column: nhwc and C0 agree on four axes.
    Lowering { scope: Scope::TextureNhwc, ..right() }.is_proved();
    let broken = Lowering { scope: Scope::TextureNhwc, texel: c1, extents: right_c1().extents, ..right() };
    broken.is_refuted("specification");
}

#[test]
fn separators_against_the_scope_are_no_proof() {
    let broken = Lowering { separators: vec![2], ..right_c1() };
    let reports = broken.judged();
    assert!(!verdict_of(&reports, "specification").is_proved());
}

#[test]
fn a_texture_that_is_a_parameter_keeps_its_calling_convention() {
    for broken in [false, true] {
        let (before, after, evidence) = parameter(broken);
        let reports = judged(&before, &after, &evidence);
        if broken {
            refutation(&reports, "simulation");
        } else {
            assert!(reports.iter().all(|report| report.verdict.is_proved()));
        }
    }
}

/// `for a, b, c, d: Y[a, b, c, d] = X[a, b, c, d]` with `X` a texture that is passed in, 2 x 3 x 5 x 4. Broken: row and
/// column exchanged in the access.
fn parameter(broken: bool) -> (PrimFunc, PrimFunc, Evidence) {
    let extents = [2, 3, 5, 4];
    let shape: Vec<Expr> = extents.map(int).to_vec();
    let input = Buffer::compact("X", F32, shape.clone()).with(|info| info.scope = Scope::TextureWeight);
    let output = Buffer::compact("Y", F32, shape.clone());
    let texels = input.with(|info| {
        info.name = "X_texels".into();
        info.shape = vec![int(2), int(15), int(4)];
        info.axis_separators = AxisSeparators::new(vec![1, 2], 3).unwrap();
    });
    let vars = ["a", "b", "c", "d"].map(Var::index);
    let at: Vec<Expr> = vars.iter().map(Expr::from).collect();
    let nest = |value: Expr| {
        let body = Stmt::store(&output, at.clone(), value);
        vars.iter()
            .zip(extents)
            .rev()
            .fold(body, |body, (var, extent)| Stmt::for_loop(var, int(extent), ForKind::Serial, body))
    };
    let texel = |at: &[Expr]| vec![at[0].clone(), at[1].clone() * int(5) + at[2].clone(), at[3].clone()];
    let mut read = texel(&at);
    if broken {
        read[1] = at[2].clone() * int(3) + at[1].clone();
    }
    let params = ["x", "y"].map(|name| Var::new(name, DataType::HANDLE)).to_vec();
    let buffer_map = vec![(params[0].clone(), input.clone()), (params[1].clone(), output.clone())];
    let body = nest(Expr::load(&input, at.clone()));
    let before = PrimFunc { name: "main".into(), params, buffer_map, attrs: FuncAttrs::default(), body };
    let body = Arc::new(nest(Expr::load(&texels, read)));
    let body = Stmt::new(StmtKind::DeclBuffer { buffer: texels.clone(), body });
    let after = PrimFunc { body, ..before.clone() };
    let axes = ["i", "j", "k", "l"].map(Var::index);
    let outputs = texel(&axes.iter().map(Expr::from).collect::<Vec<_>>());
    let map = IndexMap::new(axes.to_vec(), shape, outputs, vec![]).unwrap();
    let change = BufferChange::Texture;
    let claim = BufferClaim { before: input, after: texels, map, change, padded_axes: vec![] };
    (before, after, Evidence { pass: "lower_texture".into(), buffers: vec![claim], ..Evidence::default() })
}

#[test]
fn a_program_against_itself_is_proved() {
    for lowering in [right(), right_c1()] {
        let (before, after, _) = lowering.programs();
        for func in [before, after] {
            let reports = judged(&func, &func, &Evidence::default());
            assert!(reports.iter().all(|report| report.verdict.is_proved()));
        }
    }
}

#[test]
fn the_conventions_swapped_are_refuted() {
    let extents = |shape: &Shape| [shape.blocks.clone(), shape.height.clone() * shape.width.clone()];
    let text = Lowering { texel: c1, extents, ..right() }.is_refuted("specification");
    assert!(text.contains("`5 * 6` is 30, but `5` is 5"), "{text}");
    let extents = |shape: &Shape| [shape.blocks.clone() * shape.height.clone(), shape.width.clone()];
    Lowering { texel: c0, extents, ..right_c1() }.is_refuted("specification");
}

#[test]
fn rows_and_columns_exchanged_are_refuted() {
    let texel = |shape: &Shape, at: At<'_>| {
        let [row, column] = c0(shape, at);
        [column, row]
    };
    let extents = |shape: &Shape| [shape.width.clone(), shape.blocks.clone() * shape.height.clone()];
    Lowering { texel, extents, ..right() }.is_refuted("specification");
    // In the program only, the claim being right.
    Lowering { texel, claimed: Some(c0), ..right() }.is_refuted("simulation");
}

#[test]
fn the_lane_from_another_axis_is_refuted() {
    let lane = |at: At<'_>| at[0].clone().floor_mod(int(4));
    Lowering { lane, ..right() }.is_refuted("specification");
}

#[test]
fn a_column_numeral_with_another_stride_is_refuted() {
    let texel = |shape: &Shape, [block, row, column, _]: At<'_>| {
        [block.clone(), row.clone() * shape.height.clone() + column.clone()]
    };
    let broken = Lowering { texel, ..right_c1() };
    broken.is_refuted("specification");
    broken.is_refuted("injective");
}

#[test]
fn a_height_too_small_by_one_is_refuted() {
    let extents = |shape: &Shape| [shape.blocks.clone() * shape.height.clone() - int(1), shape.width.clone()];
    let broken = Lowering { extents, ..right() };
    assert!(broken.is_refuted("bounds").contains("lands on (29, 0, 0), outside the physical shape (29, 7, 4)"));
    broken.is_refuted("texture");
    broken.is_refuted("specification");
}

#[test]
fn an_extent_at_the_limit_is_proved_and_one_above_is_refuted() {
    let limits = |width, height| Some(TextureLimits { width, height });
    Lowering { limits: limits(7, 30), ..right() }.is_proved();
    let text = Lowering { limits: limits(6, 30), ..right() }.is_refuted("texture");
    assert!(text.contains("has the width 7, the limit is 6 (limits 6x30)"), "{text}");
    let text = Lowering { limits: limits(7, 29), ..right() }.is_refuted("texture");
    assert!(text.contains("has the height 30, the limit is 29"), "{text}");
}

#[test]
fn what_every_device_has_is_the_limit_where_none_is_stated() {
    let wide = |width| Lowering { shape: Shape { width: int(width), ..ragged() }, ..right() };
    wide(8192).is_proved();
    assert!(wide(8193).is_refuted("texture").contains("the limit is 8192"));
}

#[test]
fn a_symbolic_extent_above_the_limit_on_every_shape_is_refuted() {
    let shape = Shape { height: symbolic().height * int(9), ..symbolic() };
    let limits = Some(TextureLimits { width: 100, height: 8 });
    let text = Lowering { shape, limits, ..right() }.is_refuted("texture");
    assert!(text.contains("has the height 9 on the smallest shape, the limit is 8"), "{text}");
}

#[test]
fn limits_that_change_are_refuted() {
    let (before, mut after, evidence) = right().programs();
    after.attrs.texture_limits = Some(TextureLimits { width: 16384, height: 16384 });
    refutation(&judged(&before, &after, &evidence), "texture");
}

#[test]
fn another_element_type_scope_or_number_of_channels_is_refuted() {
    let half = Lowering { change: |info| info.scope = Scope::TextureWeight, ..right() };
    half.is_refuted("texture");
    Lowering { change: |info| info.scope = Scope::Global, ..right() }.is_refuted("texture");
    let wide = Lowering { change: |info| info.shape[2] = int(8), ..right() };
    wide.is_refuted("texture");
    wide.is_refuted("tight");
}

#[test]
fn a_lane_without_a_value_that_is_read_is_refuted() {
    // The consumer sums channels up to 19 of 18.
    let (mut before, mut after, evidence) = Lowering { until: |_| int(20), ..right() }.programs();
    for func in [&mut before, &mut after] {
        func.body = unguarded(&func.body);
    }
    let text = refutation(&judged(&before, &after, &evidence), "defined");
    assert!(text.contains("reads (4, 0, 0, 2), a lane that has no value at"), "{text}");
}

/// The consumer adds up what it reads in channel 0, without a guard.
fn unguarded(stmt: &Stmt) -> Stmt {
    let within = |stmt: &Stmt| unguarded(stmt);
    match &stmt.kind {
        StmtKind::Allocate { buffer, body } => {
            Stmt::new(StmtKind::Allocate { buffer: buffer.clone(), body: Arc::new(within(body)) })
        }
        StmtKind::Seq(stmts) => {
            let last = stmts.len() - 1;
            let stmts = stmts.iter().enumerate();
            Stmt::seq(stmts.map(|(place, stmt)| if place == last { within(stmt) } else { stmt.clone() }).collect())
        }
        StmtKind::For(inner) => {
            let mut inner = (**inner).clone();
            inner.body = within(&inner.body);
            if inner.var.name() == "k" {
                inner.kind = ForKind::Serial;
            }
            Stmt::new(StmtKind::For(Arc::new(inner)))
        }
        StmtKind::If { then_body, .. } => {
            let StmtKind::Store { buffer, indices, value } = &then_body.kind else { panic!() };
            let at = vec![indices[0].clone(), indices[1].clone(), int(0)];
            Stmt::store(buffer, at.clone(), Expr::load(buffer, at) + value.clone())
        }
        _ => panic!(),
    }
}

#[test]
fn a_gathered_store_whose_texel_two_iterations_share_is_refuted() {
    let (before, after, evidence) = right().programs();
    let twice = |func: &PrimFunc| {
        let StmtKind::Allocate { buffer, body } = &func.body.kind else { panic!() };
        let StmtKind::Seq(stmts) = &body.kind else { panic!() };
        let again = Stmt::for_loop(&Var::index("again"), int(3), ForKind::Serial, stmts[0].clone());
        let body = Arc::new(Stmt::seq(vec![again, stmts[1].clone()]));
        PrimFunc { body: Stmt::new(StmtKind::Allocate { buffer: buffer.clone(), body }), ..func.clone() }
    };
    let (before, after) = (twice(&before), twice(&after));
    let text = refutation(&judged(&before, &after, &evidence), "race");
    assert!(text.contains("(0, 0, 0, 0) and (1, 0, 0, 0) both land on (0, 0, 0)"), "{text}");
}

/// The right lowering with another value or vector index of the store.
fn store(stored: fn() -> Expr, value: fn(&Buffer, &Shape, At<'_>) -> Expr) -> Lowering {
    Lowering { stored, value, ..right() }
}

fn full() -> Expr {
    ramp(int(0), 1, 4)
}

#[test]
fn a_store_of_one_channel_is_refuted() {
    let value = |input: &Buffer, _: &Shape, at: At<'_>| Expr::load(input, vec![at[1].clone(), at[2].clone(), int(0)]);
    let broken = store(|| int(0), value);
    broken.is_refuted("lanes");
    let reports = broken.judged();
    assert!(reports.iter().any(|report| report.obligation.id() == "simulation" && !report.verdict.is_proved()));
}

#[test]
fn one_value_spread_over_the_lanes_is_refuted() {
    let value = |input: &Buffer, shape: &Shape, at: At<'_>| {
        let channel = channel(&at[0], &at[3]);
        let guard = Expr::binary(BinaryOp::Lt, channel, broadcast(shape.channels.clone()));
        let first = Expr::load(input, vec![at[1].clone(), at[2].clone(), at[0].clone() * int(4)]);
        choose(guard, broadcast(first), zero())
    };
    assert!(store(full, value).is_refuted("simulation").contains("became `X[y, x, b * 4]`, which is another one at"));
}

#[test]
fn a_reversed_ramp_is_refuted() {
    let broken = store(|| ramp(int(3), -1, 4), gathered);
    broken.is_refuted("simulation");
    broken.is_refuted("lanes");
}

#[test]
fn a_ramp_of_stride_two_is_refuted() {
    let broken = store(|| ramp(int(0), 2, 4), gathered);
    broken.is_refuted("simulation");
    broken.is_refuted("bounds");
    broken.is_refuted("lanes");
}

#[test]
fn a_dropped_guard_is_refuted() {
    let value = |input: &Buffer, _: &Shape, at: At<'_>| {
        Expr::load(input, vec![at[1].clone(), at[2].clone(), channel(&at[0], &at[3])])
    };
    let broken = store(full, value);
    assert!(broken.is_refuted("simulation").contains("does not hold"));
    broken.is_refuted("bounds");
}

#[test]
fn the_guard_of_another_lane_is_refuted() {
    let value = |input: &Buffer, shape: &Shape, at: At<'_>| {
        let channel = channel(&at[0], &at[3]);
        let guard = Expr::binary(BinaryOp::Lt, channel.clone() + broadcast(int(1)), broadcast(shape.channels.clone()));
        choose(guard, Expr::load(input, vec![at[1].clone(), at[2].clone(), channel]), zero())
    };
    store(full, value).is_refuted("simulation");
}

#[test]
fn lanes_without_a_value_hold_a_constant_or_nothing_is_proved() {
    let value = |input: &Buffer, shape: &Shape, at: At<'_>| {
        let Expr::IfThenElse(guard, value, _) = gathered(input, shape, at) else { panic!() };
        let outside = Expr::load(input, vec![int(77), int(0), full()]);
        choose(guard.into_expr(), value.into_expr(), outside)
    };
    let reports = store(full, value).judged();
    assert!(reports.iter().any(|report| report.obligation.id() == "simulation" && !report.verdict.is_proved()));
}

/// Only the reports of the program after, taken by itself.
fn alone(func: &PrimFunc) -> Vec<Report> {
    let reports = Judge::new(Config::default()).unwrap().check_program(func);
    for report in &reports {
        eprintln!("{:13} {:60} {} [{}]", report.obligation, report.subject, report.verdict, report.method);
    }
    reports
}

/// `for y, x: T[y, x, all] = 1`, split by 4 and guarded up to `guard` rows, then `for y, x: Y[y, x, k] = T[y, x, k]`.
fn tiled(height: &Expr, guard: &Expr, blocks: Expr, limits: Option<TextureLimits>) -> PrimFunc {
    let shape = vec![height.clone(), int(7), int(4)];
    let output = Buffer::compact("Y", F32, shape.clone());
    let texture = Buffer::compact("T", F32, shape).with(|info| {
        info.scope = Scope::Texture;
        info.axis_separators = tilewright_ir::AxisSeparators::new(vec![1, 2], 3).unwrap();
    });
    let [outer, inner, x] = ["yo", "yi", "x"].map(Var::index);
    let row = Expr::from(&outer) * int(4) + Expr::from(&inner);
    let one = broadcast(Expr::float_of(1.0, F32));
    let store = Stmt::store(&texture, vec![row.clone(), Expr::from(&x), ramp(int(0), 1, 4)], one);
    let mut first = Stmt::guarded(row.lt(guard.clone()), store);
    let block = ForKind::ThreadBinding(tilewright_ir::ThreadTag::Block(0));
    let thread = ForKind::ThreadBinding(tilewright_ir::ThreadTag::Thread(0));
    for (var, extent, kind) in [(&x, int(7), thread), (&inner, int(4), ForKind::Serial), (&outer, blocks, block)] {
        first = Stmt::for_loop(var, extent, kind, first);
    }
    let [y, x, k] = ["y", "x", "k"].map(Var::index);
    let at: Vec<Expr> = [&y, &x, &k].map(Expr::from).to_vec();
    let mut second = Stmt::store(&output, at.clone(), Expr::load(&texture, at));
    for (var, extent) in [(&k, int(4)), (&x, int(7)), (&y, height.clone())] {
        second = Stmt::for_loop(var, extent, ForKind::Serial, second);
    }
    let param = Var::new("y", tilewright_ir::DataType::HANDLE);
    let body = Arc::new(Stmt::seq(vec![first, second]));
    PrimFunc {
        name: "tiled".into(),
        params: vec![param.clone()],
        buffer_map: vec![(param, output)],
        attrs: tilewright_ir::FuncAttrs { texture_limits: limits, ..Default::default() },
        body: Stmt::new(StmtKind::Allocate { buffer: texture, body }),
    }
}

fn verdict_of<'r>(reports: &'r [Report], obligation: &str) -> &'r Verdict {
    &reports.iter().find(|report| report.obligation.id() == obligation).unwrap().verdict
}

#[test]
fn a_ragged_tile_writes_the_whole_texture_for_every_height() {
    let height = Expr::from(Var::index("h"));
    let blocks = (height.clone() + int(3)).floor_div(int(4));
    for (height, blocks) in [(height, blocks), (int(29), int(8))] {
        let reports = alone(&tiled(&height, &height, blocks, None));
        assert!(reports.iter().all(|report| report.verdict.is_proved()));
    }
}

#[test]
fn a_texel_that_is_read_and_was_never_written_is_refuted() {
    let reports = alone(&tiled(&int(29), &int(28), int(8), None));
    let text = refutation(&reports, "defined");
    assert!(text.starts_with("`T[y, x, k]` reads (28, 0, 0), which nothing wrote before"), "{text}");
    // Blocks rounded down leave the last row out.
    refutation(&alone(&tiled(&int(29), &int(29), int(7), None)), "defined");
    let height = Expr::from(Var::index("h"));
    let down = alone(&tiled(&height, &height, height.clone().floor_div(int(4)), None));
    assert!(matches!(verdict_of(&down, "defined"), Verdict::Refuted(_)));
}

#[test]
fn a_program_of_texels_is_held_to_the_limits_of_its_device() {
    let limits = |width, height| Some(TextureLimits { width, height });
    assert!(verdict_of(&alone(&tiled(&int(29), &int(29), int(8), limits(7, 29))), "texture").is_proved());
    let text = refutation(&alone(&tiled(&int(29), &int(29), int(8), limits(7, 28))), "texture");
    assert!(text.contains("has the height 29, the limit is 28"), "{text}");
}

#[test]
fn a_texture_read_and_written_by_one_nest_is_refuted() {
    let mut func = tiled(&int(29), &int(29), int(8), None);
    let StmtKind::Allocate { buffer, body } = &func.body.kind else { panic!() };
    let once = Arc::new(Stmt::for_loop(&Var::index("once"), int(1), ForKind::Serial, (**body).clone()));
    func.body = Stmt::new(StmtKind::Allocate { buffer: buffer.clone(), body: once });
    let text = refutation(&alone(&func), "race");
    assert!(text.contains("an image is read only or written only in a kernel"), "{text}");
}

#[test]
fn iterations_that_run_at_once_and_write_one_texel_are_refuted() {
    // 4 rows a block, but the blocks are 3 apart.
    let right = tiled(&int(29), &int(29), int(8), None);
    let Ok(body) = Apart.stmt(&right.body);
    let text = refutation(&alone(&PrimFunc { body, ..right }), "race");
    assert!(text.contains("texel (3, 0) is written at (yo, x) = "), "{text}");
}

struct Apart;

impl Rewrite for Apart {
    type Error = std::convert::Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Self::Error> {
        match expr {
            Expr::Binary(BinaryOp::Mul, block, _) => Ok((**block).clone() * int(3)),
            _ => self.expr_children(expr),
        }
    }
}

#[test]
fn what_the_program_asserts_may_be_relied_on() {
    let height = Expr::from(Var::index("h"));
    let blocks = height.clone().floor_div(int(4));
    let func = tiled(&height, &height, blocks, None);
    let StmtKind::Allocate { buffer, body } = &func.body.kind else { panic!() };
    let cond = Expr::binary(BinaryOp::Eq, height.floor_mod(int(4)), int(0));
    let assert = Stmt::new(StmtKind::Assert { cond, message: "whole blocks".into() });
    let body = Arc::new(Stmt::seq(vec![assert, (**body).clone()]));
    let asserted = PrimFunc { body: Stmt::new(StmtKind::Allocate { buffer: buffer.clone(), body }), ..func.clone() };
    assert!(alone(&asserted).iter().all(|report| report.verdict.is_proved()));
    refutation(&alone(&func), "defined");
}

//! Textures and lanes: what is lowered rightly is proved, each broken twin is refuted.
//!
//! The lowering is written here by hand, so that the judge is tested without any of the passes that it judges. Extents are
//! ragged and pairwise distinct: 6 rows, 7 columns, 18 channels in 5 blocks of 4.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use tilewright_ir::{
    AxisSeparators, BinaryOp, Buffer, BufferChange, BufferClaim, DataType, Evidence, Expr, ForKind, FuncAttrs,
    IndexMap, PrimFunc, ScalarType, Scope, Stmt, StmtKind, TextureLimits, ThreadTag, Var,
};
use tilewright_verify::{Config, Judge, Report, Verdict};

const F32: ScalarType = ScalarType::Float32;

fn int(value: i64) -> Expr {
    Expr::int(value)
}

fn ramp(base: Expr, stride: i64, lanes: u16) -> Expr {
    Expr::Ramp { base: Box::new(base), stride: Box::new(int(stride)), lanes }
}

fn broadcast(value: Expr) -> Expr {
    Expr::Broadcast { value: Box::new(value), lanes: 4 }
}

fn choose(cond: Expr, value: Expr, other: Expr) -> Expr {
    Expr::IfThenElse(Box::new(cond), Box::new(value), Box::new(other))
}

fn zero() -> Expr {
    broadcast(Expr::float_of(0.0, F32))
}

fn judged(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Vec<Report> {
    tilewright_ir::validate(before).unwrap();
    tilewright_ir::validate(after).unwrap();
    let reports = Judge::new(Config::default()).unwrap().check_pass(before, after, evidence);
    for report in &reports {
        let (id, subject, ms) = (report.obligation, &report.subject, report.ms);
        eprintln!("{id:13} {subject:60} {} [{}] {ms:.0} ms", report.verdict, report.method);
    }
    reports
}

/// Three extents: blocks of channels, rows, columns; and the channels.
#[derive(Clone)]
struct Shape {
    blocks: Expr,
    height: Expr,
    width: Expr,
    channels: Expr,
}

fn ragged() -> Shape {
    Shape { blocks: int(5), height: int(6), width: int(7), channels: int(18) }
}

fn symbolic() -> Shape {
    let [height, width, channels] = ["h", "w", "c"].map(|name| Expr::from(Var::index(name)));
    let blocks = (channels.clone() + int(3)).floor_div(int(4));
    Shape { blocks, height, width, channels }
}

/// The indices of a nest: block, row, column, lane.
type At<'a> = &'a [Expr; 4];

/// A lowering of the program below, with parts that can be broken.
struct Lowering {
    shape: Shape,
    scope: Scope,
    separators: Vec<usize>,
    /// Row and column of a texel, from block, row and column.
    texel: fn(&Shape, At<'_>) -> [Expr; 2],
    /// The same in the claim.
    claimed: Option<fn(&Shape, At<'_>) -> [Expr; 2]>,
    /// The claimed lane.
    lane: fn(At<'_>) -> Expr,
    extents: fn(&Shape) -> [Expr; 2],
    /// The vector index of the store.
    stored: fn() -> Expr,
    /// The value that is stored: from the input, the shape and the index (its lane is a ramp).
    value: fn(&Buffer, &Shape, At<'_>) -> Expr,
    /// What the consumer reads: the index of channel `k`.
    read: fn(Expr) -> [Expr; 2],
    /// Channels that the consumer reads.
    until: fn(&Shape) -> Expr,
    limits: Option<TextureLimits>,
    change: fn(&mut tilewright_ir::BufferInfo),
    threads: bool,
}

fn c0(shape: &Shape, [block, row, column, _]: At<'_>) -> [Expr; 2] {
    [block.clone() * shape.height.clone() + row.clone(), column.clone()]
}

fn c1(shape: &Shape, [block, row, column, _]: At<'_>) -> [Expr; 2] {
    [block.clone(), row.clone() * shape.width.clone() + column.clone()]
}

fn channel(block: &Expr, lane: &Expr) -> Expr {
    let block = block.clone() * int(4);
    match lane {
        Expr::Ramp { base, stride, lanes } if base.as_const_int() == Some(0) => {
            Expr::Ramp { base: Box::new(block), stride: stride.clone(), lanes: *lanes }
        }
        lane if lane.dtype().is_scalar() => block + lane.clone(),
        lane => broadcast(block) + lane.clone(),
    }
}

fn gathered(input: &Buffer, shape: &Shape, at: At<'_>) -> Expr {
    let channel = channel(&at[0], &at[3]);
    let guard = Expr::binary(BinaryOp::Lt, channel.clone(), broadcast(shape.channels.clone()));
    choose(guard, Expr::load(input, vec![at[1].clone(), at[2].clone(), channel]), zero())
}

fn right() -> Lowering {
    Lowering {
        shape: ragged(),
        scope: Scope::Texture,
        separators: vec![],
        texel: c0,
        claimed: None,
        lane: |at| at[3].clone(),
        extents: |shape| [shape.blocks.clone() * shape.height.clone(), shape.width.clone()],
        stored: || ramp(int(0), 1, 4),
        value: gathered,
        read: |k| [k.clone().floor_div(int(4)), k.floor_mod(int(4))],
        until: |shape| shape.channels.clone(),
        limits: None,
        change: |_| {},
        threads: true,
    }
}

fn right_c1() -> Lowering {
    Lowering {
        scope: Scope::TextureWeight,
        texel: c1,
        extents: |shape| [shape.blocks.clone(), shape.height.clone() * shape.width.clone()],
        ..right()
    }
}

fn folded(extent: &Expr) -> Expr {
    if extent.vars().is_empty() {
        let value = extent.eval_index(&tilewright_ir::Bindings::new()).unwrap();
        return Expr::int(i64::try_from(value).unwrap());
    }
    extent.clone()
}

impl Lowering {
    fn texture(&self) -> Buffer {
        let Shape { blocks, height, width, .. } = self.shape.clone();
        Buffer::compact("T", F32, vec![blocks, height, width, int(4)]).with(|info| {
            info.scope = self.scope;
            info.axis_separators = AxisSeparators::new(self.separators.clone(), 4).unwrap();
        })
    }

    fn texels(&self, before: &Buffer) -> Buffer {
        before.with(|info| {
            let [height, width] = (self.extents)(&self.shape);
            info.shape = vec![folded(&height), folded(&width), int(4)];
            info.axis_separators = AxisSeparators::new(vec![1, 2], 3).unwrap();
            (self.change)(info);
        })
    }

    fn kind(&self, tag: ThreadTag) -> ForKind {
        if self.threads { ForKind::ThreadBinding(tag) } else { ForKind::Serial }
    }

    /// `for b, h, w: body(b, h, w)`, then `for h, w, k: body(h, w, k)`.
    fn nests(
        &self,
        producer: impl FnOnce([Expr; 3]) -> Stmt,
        consumer: impl FnOnce([Expr; 3]) -> Stmt,
        texture: &Buffer,
    ) -> Stmt {
        let nest = |names: [&str; 3], extents: [Expr; 3], body: Box<dyn FnOnce([Expr; 3]) -> Stmt + '_>| {
            let vars = names.map(Var::index);
            let kinds =
                [self.kind(ThreadTag::Block(1)), self.kind(ThreadTag::Block(0)), self.kind(ThreadTag::Thread(0))];
            let inner = body([0, 1, 2].map(|axis| Expr::from(&vars[axis])));
            let loops = vars.iter().zip(extents).zip(kinds).rev();
            loops.fold(inner, |body, ((var, extent), kind)| Stmt::for_loop(var, extent, kind, body))
        };
        let Shape { blocks, height, width, .. } = self.shape.clone();
        let first = nest(["b", "y", "x"], [blocks, height.clone(), width.clone()], Box::new(producer));
        let second = nest(["y", "x", "k"], [height, width, (self.until)(&self.shape)], Box::new(consumer));
        Stmt::new(StmtKind::Allocate { buffer: texture.clone(), body: Box::new(Stmt::seq(vec![first, second])) })
    }

    fn func(&self, body: impl FnOnce(&Buffer, &Buffer) -> Stmt, input: &Buffer, output: &Buffer) -> PrimFunc {
        let params = ["x", "y"].map(|name| Var::new(name, DataType::HANDLE)).to_vec();
        let buffer_map = vec![(params[0].clone(), input.clone()), (params[1].clone(), output.clone())];
        let attrs = FuncAttrs { texture_limits: self.limits, ..FuncAttrs::default() };
        PrimFunc { name: "main".into(), params, buffer_map, attrs, body: body(input, output) }
    }

    /// Before: the texture has the axes block, row, column, channel. After: it consists of texels.
    fn programs(&self) -> (PrimFunc, PrimFunc, Evidence) {
        let Shape { height, width, channels, .. } = self.shape.clone();
        let [input, output] =
            ["X", "Y"].map(|name| Buffer::compact(name, F32, vec![height.clone(), width.clone(), channels.clone()]));
        let (texture, two) = (self.texture(), Expr::float_of(2.0, F32));
        let before = |input: &Buffer, output: &Buffer| {
            let producer = |[b, y, x]: [Expr; 3]| {
                let c = Var::index("c");
                let channel = b.clone() * int(4) + Expr::from(&c);
                let value = Expr::load(input, vec![y.clone(), x.clone(), channel.clone()]);
                let store = Stmt::store(&texture, vec![b, y, x, Expr::from(&c)], value);
                Stmt::for_loop(&c, int(4), ForKind::Vectorized, Stmt::guarded(channel.lt(channels.clone()), store))
            };
            let consumer = |[y, x, k]: [Expr; 3]| {
                let [block, lane] = (self.read)(k.clone());
                let value = Expr::load(&texture, vec![block, y.clone(), x.clone(), lane]) * two.clone();
                let inside = k.clone().lt(channels.clone());
                Stmt::guarded(inside, Stmt::store(output, vec![y, x, k], value))
            };
            self.nests(producer, consumer, &texture)
        };
        let texels = self.texels(&texture);
        let after = |input: &Buffer, output: &Buffer| {
            let producer = |[b, y, x]: [Expr; 3]| {
                let at = [b, y, x, ramp(int(0), 1, 4)];
                let [row, column] = (self.texel)(&self.shape, &at);
                Stmt::store(&texels, vec![row, column, (self.stored)()], (self.value)(input, &self.shape, &at))
            };
            let consumer = |[y, x, k]: [Expr; 3]| {
                let [block, lane] = (self.read)(k.clone());
                let at = [block, y.clone(), x.clone(), lane.clone()];
                let [row, column] = (self.texel)(&self.shape, &at);
                let value = Expr::load(&texels, vec![row, column, lane]) * two.clone();
                let inside = k.clone().lt(channels.clone());
                Stmt::guarded(inside, Stmt::store(output, vec![y, x, k], value))
            };
            self.nests(producer, consumer, &texels)
        };
        let vars = ["i0", "i1", "i2", "i3"].map(Var::index);
        let at = [0, 1, 2, 3].map(|axis| Expr::from(&vars[axis]));
        let [row, column] = (self.claimed.unwrap_or(self.texel))(&self.shape, &at);
        let outputs = vec![row, column, (self.lane)(&at)];
        let map = IndexMap::new(vars.to_vec(), texture.shape.clone(), outputs, vec![]).unwrap();
        let change = BufferChange::Texture;
        let claim = BufferClaim { before: texture.clone(), after: texels.clone(), map, change, padded_axes: vec![] };
        let evidence = Evidence { pass: "lower_texture".into(), buffers: vec![claim], ..Evidence::default() };
        (self.func(before, &input, &output), self.func(after, &input, &output), evidence)
    }

    fn judged(&self) -> Vec<Report> {
        let (before, after, evidence) = self.programs();
        judged(&before, &after, &evidence)
    }

    fn is_proved(&self) {
        let reports = self.judged();
        assert!(reports.len() > 12, "{}", reports.len());
        assert!(reports.iter().all(|report| report.verdict.is_proved()));
    }

    /// Refuted for this obligation, with something concrete.
    fn is_refuted(&self, obligation: &str) -> String {
        refutation(&self.judged(), obligation)
    }
}

fn refutation(reports: &[Report], obligation: &str) -> String {
    let found = reports.iter().find_map(|report| match &report.verdict {
        Verdict::Refuted(found) if report.obligation == obligation => Some(found.to_string()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{obligation} was not refuted"))
}

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
        reports.iter().any(|report| report.obligation == "texture" && report.method.contains("premise: the launch"))
    );
    let slowest = reports.iter().map(|report| report.ms).fold(0.0, f64::max);
    assert!(slowest < 5000.0, "{slowest} ms");
    Lowering { shape: symbolic(), ..right_c1() }.is_proved();
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
            Stmt::new(StmtKind::Allocate { buffer: buffer.clone(), body: Box::new(within(body)) })
        }
        StmtKind::Seq(stmts) => {
            let last = stmts.len() - 1;
            let stmts = stmts.iter().enumerate();
            Stmt::seq(stmts.map(|(place, stmt)| if place == last { within(stmt) } else { stmt.clone() }).collect())
        }
        StmtKind::For(inner) => {
            let mut inner = inner.clone();
            inner.body = within(&inner.body);
            if inner.var.name() == "k" {
                inner.kind = ForKind::Serial;
            }
            Stmt::new(StmtKind::For(inner))
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
        let body = Box::new(Stmt::seq(vec![again, stmts[1].clone()]));
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
    assert!(reports.iter().any(|report| report.obligation == "simulation" && !report.verdict.is_proved()));
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
        choose(*guard, *value, outside)
    };
    let reports = store(full, value).judged();
    assert!(reports.iter().any(|report| report.obligation == "simulation" && !report.verdict.is_proved()));
}

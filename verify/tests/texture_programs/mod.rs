//! A lowering of a program to textures, written by hand, so that the judge is tested without any of the passes that it
//! judges; any part of it can be broken. Extents are ragged and pairwise distinct: 6 rows, 7 columns, 18 channels in 5
//! blocks of 4.

#![allow(clippy::unwrap_used, dead_code, unreachable_pub, reason = "a test may fail, and uses a part of this")]

use std::sync::Arc;

use tilewright_ir::{
    AxisSeparators, BinaryOp, Buffer, BufferChange, BufferClaim, DataType, Evidence, Expr, ForKind, FuncAttrs,
    IndexMap, PrimFunc, ScalarType, Scope, SharedExpr, Stmt, StmtKind, TextureLimits, ThreadTag, Var,
};
use tilewright_verify::{Config, Judge, Report, Verdict};

pub const F32: ScalarType = ScalarType::Float32;

pub fn int(value: i64) -> Expr {
    Expr::int(value)
}

pub fn ramp(base: Expr, stride: i64, lanes: u16) -> Expr {
    Expr::Ramp { base: SharedExpr::new(base), stride: SharedExpr::new(int(stride)), lanes }
}

pub fn broadcast(value: Expr) -> Expr {
    Expr::Broadcast { value: SharedExpr::new(value), lanes: 4 }
}

pub fn choose(cond: Expr, value: Expr, other: Expr) -> Expr {
    Expr::IfThenElse(SharedExpr::new(cond), SharedExpr::new(value), SharedExpr::new(other))
}

pub fn zero() -> Expr {
    broadcast(Expr::float_of(0.0, F32))
}

pub fn judged(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Vec<Report> {
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
pub struct Shape {
    pub blocks: Expr,
    pub height: Expr,
    pub width: Expr,
    pub channels: Expr,
}

pub fn ragged() -> Shape {
    Shape { blocks: int(5), height: int(6), width: int(7), channels: int(18) }
}

pub fn symbolic() -> Shape {
    let [height, width, channels] = ["h", "w", "c"].map(|name| Expr::from(Var::index(name)));
    let blocks = (channels.clone() + int(3)).floor_div(int(4));
    Shape { blocks, height, width, channels }
}

/// The indices of a nest: block, row, column, lane.
pub type At<'a> = &'a [Expr; 4];

/// A lowering of the program below, with parts that can be broken.
pub struct Lowering {
    pub shape: Shape,
    pub scope: Scope,
    pub separators: Vec<usize>,
    /// Row and column of a texel, from block, row and column.
    pub texel: fn(&Shape, At<'_>) -> [Expr; 2],
    /// The same in the claim.
    pub claimed: Option<fn(&Shape, At<'_>) -> [Expr; 2]>,
    /// The claimed lane.
    pub lane: fn(At<'_>) -> Expr,
    pub extents: fn(&Shape) -> [Expr; 2],
    /// The vector index of the store.
    pub stored: fn() -> Expr,
    /// The value that is stored: from the input, the shape and the index (its lane is a ramp).
    pub value: fn(&Buffer, &Shape, At<'_>) -> Expr,
    /// What the consumer reads: the index of channel `k`.
    pub read: fn(Expr) -> [Expr; 2],
    /// Channels that the consumer reads.
    pub until: fn(&Shape) -> Expr,
    pub limits: Option<TextureLimits>,
    pub change: fn(&mut tilewright_ir::BufferInfo),
    pub threads: bool,
}

pub fn c0(shape: &Shape, [block, row, column, _]: At<'_>) -> [Expr; 2] {
    [block.clone() * shape.height.clone() + row.clone(), column.clone()]
}

pub fn c1(shape: &Shape, [block, row, column, _]: At<'_>) -> [Expr; 2] {
    [block.clone(), row.clone() * shape.width.clone() + column.clone()]
}

pub fn channel(block: &Expr, lane: &Expr) -> Expr {
    let block = block.clone() * int(4);
    match lane {
        Expr::Ramp { base, stride, lanes } if base.as_const_int() == Some(0) => {
            Expr::Ramp { base: SharedExpr::new(block), stride: stride.clone(), lanes: *lanes }
        }
        lane if lane.dtype().is_scalar() => block + lane.clone(),
        lane => broadcast(block) + lane.clone(),
    }
}

pub fn gathered(input: &Buffer, shape: &Shape, at: At<'_>) -> Expr {
    let channel = channel(&at[0], &at[3]);
    let guard = Expr::binary(BinaryOp::Lt, channel.clone(), broadcast(shape.channels.clone()));
    choose(guard, Expr::load(input, vec![at[1].clone(), at[2].clone(), channel]), zero())
}

pub fn right() -> Lowering {
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

pub fn right_c1() -> Lowering {
    Lowering {
        scope: Scope::TextureWeight,
        texel: c1,
        extents: |shape| [shape.blocks.clone(), shape.height.clone() * shape.width.clone()],
        ..right()
    }
}

pub fn folded(extent: &Expr) -> Expr {
    if extent.vars().is_empty() {
        let value = extent.eval_index(&tilewright_ir::Bindings::new()).unwrap();
        return Expr::int(i64::try_from(value).unwrap());
    }
    extent.clone()
}

impl Lowering {
    pub fn texture(&self) -> Buffer {
        let Shape { blocks, height, width, .. } = self.shape.clone();
        Buffer::compact("T", F32, vec![blocks, height, width, int(4)]).with(|info| {
            info.scope = self.scope;
            info.axis_separators = AxisSeparators::new(self.separators.clone(), 4).unwrap();
        })
    }

    pub fn texels(&self, before: &Buffer) -> Buffer {
        before.with(|info| {
            let [height, width] = (self.extents)(&self.shape);
            info.shape = vec![folded(&height), folded(&width), int(4)];
            info.axis_separators = AxisSeparators::new(vec![1, 2], 3).unwrap();
            (self.change)(info);
        })
    }

    pub fn kind(&self, tag: ThreadTag) -> ForKind {
        if self.threads { ForKind::ThreadBinding(tag) } else { ForKind::Serial }
    }

    /// `for b, h, w: body(b, h, w)`, then `for h, w, k: body(h, w, k)`.
    pub fn nests(
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
        Stmt::new(StmtKind::Allocate { buffer: texture.clone(), body: Arc::new(Stmt::seq(vec![first, second])) })
    }

    pub fn func(&self, body: impl FnOnce(&Buffer, &Buffer) -> Stmt, input: &Buffer, output: &Buffer) -> PrimFunc {
        let params = ["x", "y"].map(|name| Var::new(name, DataType::HANDLE)).to_vec();
        let buffer_map = vec![(params[0].clone(), input.clone()), (params[1].clone(), output.clone())];
        let attrs = FuncAttrs { texture_limits: self.limits, ..FuncAttrs::default() };
        PrimFunc { name: "main".into(), params, buffer_map, attrs, body: body(input, output) }
    }

    /// Before: the texture has the axes block, row, column, channel. After: it consists of texels.
    pub fn programs(&self) -> (PrimFunc, PrimFunc, Evidence) {
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

    pub fn judged(&self) -> Vec<Report> {
        let (before, after, evidence) = self.programs();
        judged(&before, &after, &evidence)
    }

    pub fn is_proved(&self) {
        let reports = self.judged();
        assert!(reports.len() > 12, "{}", reports.len());
        assert!(reports.iter().all(|report| report.verdict.is_proved()));
    }

    /// Refuted for this obligation, with something concrete.
    pub fn is_refuted(&self, obligation: &str) -> String {
        refutation(&self.judged(), obligation)
    }
}

pub fn refutation(reports: &[Report], obligation: &str) -> String {
    let found = reports.iter().find_map(|report| match &report.verdict {
        Verdict::Refuted(found) if report.obligation.id() == obligation => Some(found.to_string()),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("{obligation} was not refuted"))
}

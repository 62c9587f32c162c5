//! The fast engine against the reference interpreter on random programs: expressions of every type with scalars and
//! vectors, loads through views, wrapping indices of narrow types, nests of loops of every kind, guards, bindings and
//! allocations. Many of the programs trap.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may stop at what it did not expect")]

use std::collections::BTreeMap;
use std::sync::Arc;

mod common;

use common::{agree_everywhere, func};
use tilewright_interp::{Arguments, Tensor};
use tilewright_ir::{
    BinaryOp as B, Buffer, DataType, Expr, For, ForKind, MathFn, PrimFunc, Scalar, ScalarType as S, SharedExpr, Stmt,
    StmtKind, ThreadTag, TypeClass, UnaryOp, Var, scalar, validate,
};

/// Elements of every buffer.
const EXTENT: i64 = 16;

/// A generator of programs.
struct Draw {
    state: u64,
    /// Inputs and outputs, one of each for every element type.
    inputs: Vec<Buffer>,
    outputs: Vec<Buffer>,
    /// The integer variables in scope.
    vars: Vec<Var>,
}

fn shared(expr: Expr) -> SharedExpr {
    SharedExpr::new(expr)
}

fn pick<T: Clone>(draw: &mut Draw, items: &[T]) -> T {
    items[draw.below(items.len())].clone()
}

impl Draw {
    fn new(seed: u64) -> Self {
        let named = |name| S::ELEMENTS.map(|ty| Buffer::compact(name, ty, vec![Expr::int(EXTENT)])).to_vec();
        Self { state: seed, inputs: named("A"), outputs: named("O"), vars: Vec::new() }
    }

    /// A number below the bound.
    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.state >> 33).unwrap() % bound.max(1)
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn constant(&mut self, ty: S) -> Expr {
        match self.edge(ty) {
            Scalar::Int(value) => Expr::Int { value, ty },
            Scalar::Float(value) => Expr::Float { value, ty },
        }
    }

    /// A small value or one at the end of the range.
    fn edge(&mut self, ty: S) -> Scalar {
        let small = i128::try_from(self.below(7)).unwrap();
        if let Some((low, high)) = ty.integer_range() {
            let values = [small, small, small - 3, low, low + small, high, high - small];
            return Scalar::Int(pick(self, &values).clamp(low, high));
        }
        let values = [0.0, -0.0, 1.0, 2.5, -1.5, 0.1, -7.0, 300.5, 65504.0, 1e30, f64::INFINITY, f64::NAN];
        Scalar::Float(scalar::round_float(ty, pick(self, &values)))
    }

    /// A type whose values an index may have.
    fn integer(&mut self) -> S {
        pick(self, &[S::Int32, S::Int32, S::Int64, S::Int8, S::UInt8, S::UInt16, S::UInt32, S::UInt64, S::Int16])
    }

    /// An index that is in bounds in most cases; its type may be narrow, so that it wraps.
    fn index(&mut self, depth: usize) -> Expr {
        let ty = self.integer();
        let terms = self.below(3);
        let mut sum = Expr::Int { value: i128::try_from(self.below(6)).unwrap(), ty };
        for _ in 0..terms {
            let Some(var) = (!self.vars.is_empty()).then(|| self.below(self.vars.len())) else { break };
            let var = Expr::Cast(ty.into(), shared(Expr::from(&self.vars[var])));
            let factor = Expr::Int { value: i128::try_from(self.below(4)).unwrap(), ty };
            let op = if self.one_in(4) { B::Sub } else { B::Add };
            sum = Expr::binary(op, sum, if self.one_in(3) { var * factor } else { var });
        }
        // A base up to 12 leaves room for the lanes of most vectors, and fits every view.
        let extent = Expr::Int { value: pick(self, &[3, 7, 10, 13]), ty };
        match self.below(12) {
            0 => sum,
            2 if depth > 0 => {
                Expr::Cast(S::Int32.into(), shared(self.expr(ty.into(), depth - 1))).floor_mod(Expr::int(EXTENT))
            }
            _ => sum.floor_mod(extent),
        }
    }

    /// A view of a buffer, or the buffer itself.
    fn view(&mut self, buffer: &Buffer) -> Buffer {
        match self.below(6) {
            0 => buffer.with(|info| (info.shape, info.elem_offset) = (vec![Expr::int(EXTENT - 3)], Expr::int(3))),
            1 => buffer
                .with(|info| (info.shape, info.strides) = (vec![Expr::int(EXTENT)], Some(vec![Expr::int(-1)])))
                .with(|info| info.elem_offset = Expr::int(EXTENT - 1)),
            2 => buffer.with(|info| (info.shape, info.strides) = (vec![Expr::int(EXTENT)], Some(vec![Expr::int(0)]))),
            _ => buffer.clone(),
        }
    }

    /// A view whose elements have this type; its memory belongs to another type in some cases. The bits of a NaN are not
    /// specified, so memory of floats is viewed as floats only.
    fn element(&mut self, ty: DataType, from_outputs: bool) -> Buffer {
        let buffers = if from_outputs { &self.outputs } else { &self.inputs };
        let is_like = |other: S| other == ty.scalar || !(other.is_float() || ty.scalar.is_float());
        let fits = |buffer: &&Buffer| is_like(buffer.dtype.scalar) && buffer.dtype.bytes() == ty.scalar.bytes();
        let same: Vec<_> = buffers.iter().filter(fits).cloned().collect();
        let exact = buffers.iter().find(|buffer| buffer.dtype.scalar == ty.scalar).unwrap().clone();
        let buffer = if self.one_in(6) { pick(self, &same) } else { exact };
        let lanes = i64::from(ty.lanes);
        if lanes > 1 {
            return buffer.with(|info| (info.dtype, info.shape) = (ty, vec![Expr::int(EXTENT / lanes)]));
        }
        let view = self.view(&buffer);
        if view.dtype == ty { view } else { view.with(|info| info.dtype = ty) }
    }

    fn load(&mut self, ty: DataType, depth: usize) -> Expr {
        let from_outputs = self.one_in(5);
        if ty.lanes > 1 && self.one_in(2) {
            let buffer = self.element(ty, from_outputs);
            return Expr::load(
                &buffer,
                [self.index(depth).floor_mod(Expr::int(4)).clone()].map(|index| unified(&index)),
            );
        }
        let buffer = self.element(ty.scalar.into(), from_outputs);
        let index = self.index(depth);
        Expr::load(&buffer, [if ty.lanes > 1 { self.lanes_of(index, ty.lanes) } else { index }])
    }

    /// A vector index that begins at a scalar one.
    fn lanes_of(&mut self, base: Expr, lanes: u16) -> Expr {
        let ty = base.dtype().scalar;
        if self.one_in(4) {
            return Expr::Broadcast { value: shared(base), lanes };
        }
        let stride = shared(Expr::Int { value: i128::try_from(self.below(3)).unwrap(), ty });
        Expr::Ramp { base: shared(base), stride, lanes }
    }

    fn expr(&mut self, ty: DataType, depth: usize) -> Expr {
        if depth == 0 || self.one_in(6) {
            return self.leaf(ty, depth);
        }
        let other = DataType { scalar: pick(self, &S::ELEMENTS), lanes: ty.lanes };
        match self.below(9) {
            0 => Expr::Cast(ty, shared(self.expr(other, depth - 1))),
            1 | 2 => {
                let lanes = if self.one_in(2) { ty.lanes } else { 1 };
                let cond = shared(self.expr(DataType::BOOL.with_lanes(lanes), depth - 1));
                let (a, b) = (shared(self.expr(ty, depth - 1)), shared(self.expr(ty, depth - 1)));
                if self.one_in(3) { Expr::Select(cond, a, b) } else { Expr::IfThenElse(cond, a, b) }
            }
            3 => self.unary(ty, depth),
            4 => self.leaf(ty, depth),
            _ => self.binary(ty, other, depth),
        }
    }

    fn leaf(&mut self, ty: DataType, depth: usize) -> Expr {
        let var = if self.vars.is_empty() { None } else { Some(pick(self, &self.vars.clone())) };
        let lanes = ty.lanes;
        match (self.below(4), var) {
            (0, Some(var)) if lanes == 1 => Expr::Cast(ty, shared(Expr::from(var))),
            (1, _) if lanes > 1 => {
                Expr::Broadcast { value: shared(self.expr(ty.scalar.into(), depth.saturating_sub(1))), lanes }
            }
            (0 | 2, _) if lanes > 1 && ty.scalar.is_integer() => {
                Expr::Ramp { base: shared(self.constant(ty.scalar)), stride: shared(self.constant(ty.scalar)), lanes }
            }
            (0, _) if lanes == 1 => self.constant(ty.scalar),
            _ => self.load(ty, depth.saturating_sub(1)),
        }
    }

    fn unary(&mut self, ty: DataType, depth: usize) -> Expr {
        let operand = self.expr(ty, depth - 1);
        match ty.scalar.class() {
            TypeClass::Bool => Expr::unary(UnaryOp::Not, operand),
            TypeClass::Float => {
                let function =
                    pick(self, &[MathFn::Abs, MathFn::Floor, MathFn::Round, MathFn::Sqrt, MathFn::Exp, MathFn::Tanh]);
                Expr::Call(function, [operand].into())
            }
            TypeClass::Int | TypeClass::UInt | TypeClass::Handle => match self.below(3) {
                0 => Expr::unary(UnaryOp::BitNot, operand),
                1 => Expr::Call(MathFn::Abs, [operand].into()),
                _ => Expr::unary(UnaryOp::Neg, operand),
            },
        }
    }

    fn binary(&mut self, ty: DataType, other: DataType, depth: usize) -> Expr {
        let numbers = [B::Add, B::Sub, B::Mul, B::Min, B::Max];
        let integers =
            [B::BitAnd, B::BitOr, B::BitXor, B::FloorDiv, B::FloorMod, B::TruncDiv, B::TruncMod, B::Shl, B::Shr];
        let op = match ty.scalar.class() {
            TypeClass::Bool if self.one_in(3) => pick(self, &[B::And, B::Or, B::BitAnd, B::BitOr, B::BitXor]),
            TypeClass::Bool => {
                let op = pick(self, &[B::Eq, B::Ne, B::Lt, B::Le, B::Gt, B::Ge]);
                return Expr::binary(op, self.expr(other, depth - 1), self.expr(other, depth - 1));
            }
            TypeClass::Float if self.one_in(5) => B::Div,
            TypeClass::Float => pick(self, &numbers),
            TypeClass::Int | TypeClass::UInt | TypeClass::Handle if self.one_in(2) => pick(self, &numbers),
            TypeClass::Int | TypeClass::UInt | TypeClass::Handle => pick(self, &integers),
        };
        let lhs = self.expr(ty, depth - 1);
        let may_trap = integers[3..].contains(&op) && !self.one_in(12);
        let rhs = if may_trap { self.safe_operand(ty) } else { self.expr(ty, depth - 1) };
        Expr::binary(op, lhs, rhs)
    }

    /// A constant that neither divides by zero nor shifts too far.
    fn safe_operand(&mut self, ty: DataType) -> Expr {
        let constant = Expr::Int { value: i128::try_from(1 + self.below(7)).unwrap(), ty: ty.scalar };
        if ty.lanes == 1 { constant } else { Expr::Broadcast { value: shared(constant), lanes: ty.lanes } }
    }

    fn store(&mut self) -> Stmt {
        let ty = pick(self, &S::ELEMENTS);
        let lanes = pick(self, &[1, 1, 1, 2, 4]);
        let depth = self.below(4);
        let value = self.expr(DataType { scalar: ty, lanes }, depth);
        let target = self.element(ty.into(), true);
        let index = self.index(1);
        let index = if lanes > 1 { self.lanes_of(index, lanes) } else { index };
        Stmt::store(&target, vec![index], value)
    }

    fn stmt(&mut self, depth: usize) -> Stmt {
        let n_vars = self.vars.len();
        let made = match self.below(if depth == 0 { 2 } else { 8 }) {
            0 | 1 => self.store(),
            2 => Stmt::seq(vec![self.stmt(depth - 1), self.stmt(depth - 1)]),
            3 => {
                let cond = self.expr(DataType::BOOL, 2);
                let else_body = self.one_in(2).then(|| Arc::new(self.stmt(depth - 1)));
                Stmt::new(StmtKind::If { cond, then_body: Arc::new(self.stmt(depth - 1)), else_body })
            }
            4 => {
                let ty = self.integer();
                let (var, value) = (Var::new("x", ty), self.expr(ty.into(), 2));
                self.vars.push(var.clone());
                Stmt::new(StmtKind::Let { var, value, body: Arc::new(self.stmt(depth - 1)) })
            }
            _ => self.nest(depth),
        };
        self.vars.truncate(n_vars);
        made
    }

    fn nest(&mut self, depth: usize) -> Stmt {
        let ty = if self.one_in(4) { self.integer() } else { S::Int32 };
        let var = Var::new("i", ty);
        let kinds = [ForKind::Serial, ForKind::Parallel, ForKind::Vectorized, ForKind::Unrolled];
        let threads = ForKind::ThreadBinding(ThreadTag::Thread(0));
        let kind = if self.one_in(3) {
            pick(self, &kinds)
        } else if self.one_in(8) {
            threads
        } else {
            ForKind::Serial
        };
        let (min, extent) = (pick(self, &[0, 0, 0, 1, 3]), pick(self, &[1, 2, 3, 5, 7, 16, 40]));
        self.vars.push(var.clone());
        let body = self.stmt(depth - 1);
        let (min, extent) = (Expr::Int { value: min, ty }, Expr::int(extent));
        Stmt::new(StmtKind::For(Arc::new(For { var, min, extent, kind, annotations: Vec::new(), body })))
    }

    /// A program, and arguments in some of which an element is undefined.
    fn program(mut self) -> (PrimFunc, Arguments) {
        let count = 1 + self.below(3);
        let mut stmts = Vec::new();
        for _ in 0..count {
            stmts.push(self.nest(3));
            self.vars.clear();
        }
        let body = Stmt::seq(stmts);
        let buffers: Vec<_> = self.inputs.iter().chain(&self.outputs).cloned().collect();
        let program = func(&buffers.iter().collect::<Vec<_>>(), body);
        let shape = [u64::try_from(EXTENT).unwrap()];
        let tensor = |buffer: &Buffer| {
            let mut tensor = Tensor::undefined(buffer.dtype, &shape).unwrap();
            for lane in 0..tensor.lane_count() {
                if !self.one_in(400) {
                    tensor.set(lane, self.edge(buffer.dtype.scalar));
                }
            }
            tensor
        };
        (program, Arguments::tensors(buffers.iter().map(tensor).collect::<Vec<_>>()))
    }
}

/// The index with all its parts in one type, which `index % 4` needs.
fn unified(index: &Expr) -> Expr {
    match index {
        Expr::Binary(op, a, b) if a.dtype() != b.dtype() => {
            let ty = a.dtype();
            Expr::binary(*op, (**a).clone(), Expr::Cast(ty, b.clone()))
        }
        other => other.clone(),
    }
}

#[test]
fn the_fast_engine_agrees_with_the_reference_on_random_programs() {
    let programs = std::env::var("PROGRAMS").ok().and_then(|count| count.parse().ok()).unwrap_or(800);
    let first = std::env::var("FIRST").ok().and_then(|first| first.parse().ok()).unwrap_or(0);
    let mut outcomes: BTreeMap<String, u64> = BTreeMap::new();
    for seed in first..first + programs {
        let (program, args) = Draw::new(seed * 7919).program();
        if let Err(found) = validate(&program) {
            panic!("program {seed} is not valid: {}", found[0]);
        }
        let compared =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| agree_everywhere(&program, &args, 5_000)));
        let Ok(trap) = compared else { panic!("program {seed}: {:#?}", program.body) };
        *outcomes.entry(trap.map_or_else(|| "results".to_owned(), |kind| format!("{kind:?}"))).or_default() += 1;
    }
    eprintln!("{outcomes:?}");
    let count = |outcome: &str| outcomes.get(outcome).copied().unwrap_or(0);
    assert!(count("results") * 3 > programs, "{outcomes:?}");
    assert!(["OutOfBounds", "DivisionByZero", "Undefined"].iter().all(|trap| count(trap) > 0), "{outcomes:?}");
}

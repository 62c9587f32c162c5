//! Printing and reading is the identity on random programs, and damaged programs do not make the reader panic.

#![expect(clippy::unwrap_used, reason = "the generator makes valid parts only")]

use std::sync::Arc;

use proptest::prelude::*;
use tilewright_ir::equal::modules_equal;
use tilewright_ir::{
    AttrValue, AxisSeparators, BinaryOp, Buffer, DataType, Expr, For, ForKind, FuncAttrs, IndexMap, MathFn, Module,
    PrimFunc, ScalarType, Scope, SharedExpr, Stmt, StmtKind, TextureLimits, ThreadTag, UnaryOp, Var, validate,
};
use tilewright_script::{print_module, read_module};

/// Generates valid programs from a sequence of choices, so that proptest can shrink the sequence.
struct Generator {
    choices: Vec<u32>,
    at: usize,
    mapped: Option<Var>,
    vars: Vec<Var>,
    buffers: Vec<Buffer>,
}

impl Generator {
    fn pick(&mut self, n: usize) -> usize {
        let choice = self.choices.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        choice as usize % n
    }

    fn constant(&mut self, ty: ScalarType) -> Expr {
        if ty.is_float() {
            let value = [0.1, -0.5, 1e-40, 3e30, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0][self.pick(8)];
            return Expr::float_of(value, ty);
        }
        let (low, high) = ty.integer_range().unwrap();
        Expr::int_of([low, high, 0, 1, (low + high) / 3][self.pick(5)], ty).unwrap()
    }

    fn expr(&mut self, ty: DataType, depth: usize) -> Expr {
        let scalar = DataType::scalar(ty.scalar);
        let boxed = |generator: &mut Self, ty| SharedExpr::new(generator.expr(ty, depth - 1));
        if depth == 0 || self.pick(6) == 0 {
            if !ty.is_scalar() {
                return Expr::Broadcast { value: SharedExpr::new(self.expr(scalar, 0)), lanes: ty.lanes };
            }
            let vars: Vec<_> = self.vars.iter().filter(|var| var.dtype() == ty).cloned().collect();
            if !vars.is_empty() && self.pick(2) == 0 {
                return Expr::from({
                    let at = self.pick(vars.len());
                    vars[at].clone()
                });
            }
            return self.constant(ty.scalar);
        }
        match self.pick(10) {
            0..=2 => {
                let fits = |op: &BinaryOp| op.result_type(ty, ty) == Some(ty);
                let ops: Vec<_> = BinaryOp::ALL.into_iter().filter(fits).collect();
                if ops.is_empty() {
                    return self.expr(ty, 0);
                }
                let op = {
                    let at = self.pick(ops.len());
                    ops[at]
                };
                Expr::Binary(op, boxed(self, ty), boxed(self, ty))
            }
            3 => {
                let ops = [UnaryOp::Neg, UnaryOp::Not, UnaryOp::BitNot];
                let ops: Vec<_> = ops.into_iter().filter(|op| op.result_type(ty).is_some()).collect();
                let op = {
                    let at = self.pick(ops.len());
                    ops[at]
                };
                Expr::Unary(op, boxed(self, ty))
            }
            4 if ty.scalar == ScalarType::Bool => {
                let ops = [BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge];
                let op = ops[self.pick(6)];
                let other = DataType::scalar(ScalarType::ELEMENTS[self.pick(13)]).with_lanes(ty.lanes);
                Expr::Binary(op, boxed(self, other), boxed(self, other))
            }
            4 if ty.scalar.is_float() => {
                let function = MathFn::ALL[self.pick(32)];
                let args = (0..function.info().1).map(|_| self.expr(ty, depth - 1)).collect();
                Expr::Call(function, args)
            }
            5 => {
                let lanes = DataType::BOOL.with_lanes([1, ty.lanes][self.pick(2)]);
                Expr::Select(boxed(self, lanes), boxed(self, ty), boxed(self, ty))
            }
            6 => {
                let lanes = DataType::BOOL.with_lanes([1, ty.lanes][self.pick(2)]);
                Expr::IfThenElse(boxed(self, lanes), boxed(self, ty), boxed(self, ty))
            }
            7 => {
                let from = DataType::scalar(ScalarType::ELEMENTS[self.pick(13)]).with_lanes(ty.lanes);
                Expr::Cast(ty, boxed(self, from))
            }
            8 if !ty.is_scalar() && ty.scalar.is_integer() => {
                Expr::Ramp { base: boxed(self, scalar), stride: boxed(self, scalar), lanes: ty.lanes }
            }
            _ => {
                let texel = |buffer: &&Buffer| buffer.is_texel_buffer() && buffer.dtype.with_lanes(4) == ty;
                let fits = |buffer: &&Buffer| buffer.dtype == ty || texel(buffer);
                let buffers: Vec<_> = self.buffers.iter().filter(fits).cloned().collect();
                if buffers.is_empty() {
                    return self.expr(ty, depth - 1);
                }
                let buffer = {
                    let at = self.pick(buffers.len());
                    buffers[at].clone()
                }
                .clone();
                let mut indices: Vec<_> = (0..buffer.rank()).map(|_| self.expr(DataType::INT32, depth - 1)).collect();
                if buffer.dtype != ty {
                    indices[2] = self.lanes_of_a_texel();
                }
                Expr::load(&buffer, indices)
            }
        }
    }

    /// A ramp over all channels of a texel, sometimes with another stride or type.
    fn lanes_of_a_texel(&mut self) -> Expr {
        let ty = [ScalarType::Int32, ScalarType::Int64][usize::from(self.pick(5) == 4)];
        let stride = [1, 1, 1, 3][self.pick(4)];
        let constant = |value| SharedExpr::new(Expr::int_of(value, ty).unwrap());
        Expr::Ramp { base: constant(0), stride: constant(stride), lanes: 4 }
    }

    /// A texel buffer, or a texture that differs from one in a single property.
    fn texture(&mut self) -> Buffer {
        let ty = [ScalarType::Float32, ScalarType::Int8, ScalarType::Float64][self.pick(3)];
        let height = if self.pick(2) == 0 { Expr::int(7) } else { Expr::from(&self.vars[0]) };
        let width = Expr::int(5) * Expr::int(3);
        let lanes = [Expr::int(4), Expr::int_of(4, ScalarType::Int64).unwrap(), Expr::int(5)][self.pick(3)].clone();
        let scope = Scope::ALL[2 + self.pick(4)];
        let separators = [vec![1, 2], vec![1], vec![]][self.pick(3)].clone();
        Buffer::compact(self.name(), ty, vec![height, width, lanes]).with(|info| {
            info.scope = scope;
            info.axis_separators = AxisSeparators::new(separators, 3).unwrap();
        })
    }

    fn any_buffer(&mut self) -> Buffer {
        let at = self.pick(self.buffers.len());
        self.buffers[at].clone()
    }

    fn name(&mut self) -> &'static str {
        ["i", "j", "A", "T", "x", "lambda", "range"][self.pick(7)]
    }

    fn attr(&mut self) -> AttrValue {
        match self.pick(7) {
            0 => AttrValue::Bool(self.pick(2) == 0),
            1 => AttrValue::Int(-7),
            2 => AttrValue::Float([1.5, f64::INFINITY, -0.25][self.pick(3)]),
            3 => AttrValue::Str("quote \" back \\ line \n tab \t ü".into()),
            4 => AttrValue::List(vec![AttrValue::Int(1), AttrValue::Dict(vec![("k".into(), AttrValue::Int(2))])]),
            5 => AttrValue::Var(self.buffers[0].data.clone()),
            _ => AttrValue::Expr(Expr::int(5) + Expr::int(6)),
        }
    }

    fn scoped(&mut self, depth: usize, make: impl FnOnce(&mut Self, Arc<Stmt>) -> StmtKind) -> Stmt {
        let (vars, buffers) = (self.vars.len(), self.buffers.len());
        let body = self.stmt(depth - 1);
        let kind = make(self, Arc::new(body));
        self.vars.truncate(vars.min(self.vars.len()));
        self.buffers.truncate(buffers.min(self.buffers.len()));
        Stmt::new(kind)
    }

    fn stmt(&mut self, depth: usize) -> Stmt {
        if depth == 0 {
            let buffer = self.any_buffer();
            let mut indices: Vec<_> = (0..buffer.rank()).map(|_| self.expr(DataType::INT32, 2)).collect();
            if buffer.dtype.is_scalar() && !indices.is_empty() && self.pick(3) == 0 {
                indices.pop();
                indices.push(self.expr(DataType::INT32.with_lanes(4), 2));
            }
            if buffer.is_texel_buffer() && self.pick(3) != 0 {
                indices[2] = self.lanes_of_a_texel();
            }
            let ty = Expr::load(&buffer, indices.clone()).dtype();
            let value = self.expr(ty, 4);
            return Stmt::store(&buffer, indices, value);
        }
        let (n_vars, n_buffers) = (self.vars.len(), self.buffers.len());
        let made = match self.pick(9) {
            0 => {
                let kinds = [
                    ForKind::Serial,
                    ForKind::Parallel,
                    ForKind::Vectorized,
                    ForKind::Unrolled,
                    ForKind::ThreadBinding(ThreadTag::Thread(1)),
                ];
                let types = [ScalarType::Int32, ScalarType::Int64, ScalarType::UInt8];
                let ty = types[self.pick(3)];
                let (low, high) = (types[self.pick(3)], if self.pick(3) == 0 { types[self.pick(3)] } else { ty });
                let min = if self.pick(2) == 0 { Expr::Int { value: 0, ty } } else { self.expr(low.into(), 2) };
                let extent = self.expr(high.into(), 2);
                let var = Var::new(self.name(), ty);
                let kind = kinds[self.pick(5)];
                let annotations = if self.pick(3) == 0 { vec![("note".to_owned(), self.attr())] } else { Vec::new() };
                self.vars.push(var.clone());
                let body = self.stmt(depth - 1);
                Stmt::new(StmtKind::For(Arc::new(For { var, min, extent, kind, annotations, body })))
            }
            1 => {
                let cond = self.expr(DataType::BOOL, 3);
                let then_body = Arc::new(self.stmt(depth - 1));
                let else_body = if self.pick(2) == 0 { Some(Arc::new(self.stmt(depth - 1))) } else { None };
                Stmt::new(StmtKind::If { cond, then_body, else_body })
            }
            2 => {
                let ty = DataType::scalar(ScalarType::ELEMENTS[self.pick(13)]);
                let value = self.expr(ty, 3);
                let var = Var::new(self.name(), ty);
                self.vars.push(var.clone());
                self.scoped(depth, |_, body| StmtKind::Let { var, value, body })
            }
            3 => {
                let ty = DataType::scalar(ScalarType::ELEMENTS[self.pick(13)]).with_lanes([1, 4][self.pick(2)]);
                let scope = Scope::ALL[self.pick(6)];
                let shape = vec![Expr::int(2), Expr::int(9)];
                let mut buffer = Buffer::compact(self.name(), ty, shape).with(|info| info.scope = scope);
                if self.pick(2) == 0 {
                    buffer = self.texture();
                }
                self.buffers.push(buffer.clone());
                self.scoped(depth, |_, body| StmtKind::Allocate { buffer, body })
            }
            4 => {
                let data = self.any_buffer().data.clone();
                let ty = DataType::scalar(ScalarType::ELEMENTS[self.pick(13)]);
                let strided = self.pick(2) == 0;
                let mapped = self.mapped.as_ref() == Some(&data);
                let buffer = Buffer::compact(self.name(), ty, vec![Expr::int(17)]).with(|info| {
                    info.data = data;
                    // The separators belong to the layout after the transformation, whose rank is 2.
                    info.axis_separators = AxisSeparators::none(if mapped { 2 } else { 1 });
                    info.elem_offset = Expr::int(3);
                    info.strides = strided.then(|| vec![Expr::int(2)]);
                });
                self.buffers.push(buffer.clone());
                self.scoped(depth, |_, body| StmtKind::DeclBuffer { buffer, body })
            }
            5 => {
                let (node, value) = (self.attr(), self.attr());
                self.scoped(depth, |_, body| StmtKind::Attr { node, key: "pragma".into(), value, body })
            }
            6 => {
                let (cond, message) = (self.expr(DataType::BOOL, 3), "no \"way\"".into());
                Stmt::new(StmtKind::Assert { cond, message, is_assumed: false })
            }
            7 => Stmt::new(StmtKind::Evaluate(self.expr(DataType::INT32.with_lanes(2), 3))),
            _ => {
                let stmts = (0..self.pick(4)).map(|_| self.stmt(depth - 1)).collect();
                Stmt::seq(stmts)
            }
        };
        self.vars.truncate(n_vars);
        self.buffers.truncate(n_buffers);
        made
    }
}

fn program(choices: Vec<u32>) -> PrimFunc {
    let mut generator = Generator { choices, at: 0, mapped: None, vars: Vec::new(), buffers: Vec::new() };
    let (n, m) = (Var::index("n"), Var::index("m"));
    let a = Buffer::compact("A", ScalarType::Float32, vec![Expr::from(&n), Expr::from(&m)]);
    let b = Buffer::compact("B", ScalarType::Int32, vec![Expr::int(7)]);
    let (i, j) = (Var::index("i"), Var::index("n"));
    let outputs = vec![Expr::from(&j), Expr::from(&i) + Expr::from(&n)];
    let map = IndexMap::new(vec![i, j], a.shape.clone(), outputs, vec![1]).unwrap();
    let params = vec![Var::new("A", DataType::HANDLE), n.clone(), Var::new("b", DataType::HANDLE)];
    generator.vars = vec![n, m];
    generator.buffers = vec![a.clone(), b.clone()];
    let maps = if generator.pick(2) == 0 { vec![(a.data.clone(), vec![map])] } else { Vec::new() };
    generator.mapped = maps.first().map(|(data, _): &(Var, Vec<IndexMap>)| data.clone());
    let other = vec![("global_symbol".to_owned(), generator.attr())];
    let other = if generator.pick(2) == 0 { other } else { Vec::new() };
    let texture_limits = [None, Some(TextureLimits { width: 16384, height: 1 })][generator.pick(2)];
    let attrs = FuncAttrs { layout_transform_map: maps, other, texture_limits, ..FuncAttrs::default() };
    let buffer_map = vec![(params[0].clone(), a), (params[2].clone(), b)];
    let body = generator.stmt(5);
    PrimFunc { name: "main".into(), params, buffer_map, attrs, body }
}

fn damaged(text: &str, edits: &[(usize, u8, usize)]) -> String {
    let mut tokens: Vec<String> =
        text.split_inclusive([' ', '(', ')', '[', ']', ',', '.', '\n']).map(str::to_owned).collect();
    for &(at, what, other) in edits {
        let (at, other) = (at % tokens.len(), other % tokens.len());
        match what % 4 {
            0 => drop(tokens.remove(at)),
            1 => tokens.insert(at, tokens[other].clone()),
            2 => tokens.swap(at, other),
            _ => tokens[at].push(char::from(what)),
        }
        if tokens.is_empty() {
            break;
        }
    }
    tokens.concat()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn printing_then_reading_is_the_identity(choices in prop::collection::vec(any::<u32>(), 0..400)) {
        let func = program(choices);
        prop_assert!(validate(&func).is_ok(), "{:?}", validate(&func).err());
        let module = Module { funcs: vec![func] };
        let text = print_module(&module);
        let again = read_module(&text);
        prop_assert!(again.is_ok(), "{:#?}\n{text}", again.err());
        let again = again.unwrap();
        prop_assert!(modules_equal(&module, &again, false), "{text}\n{}", print_module(&again));
    }

    #[test]
    fn damaged_programs_do_not_panic(
        choices in prop::collection::vec(any::<u32>(), 0..200),
        edits in prop::collection::vec((any::<usize>(), any::<u8>(), any::<usize>()), 1..6),
    ) {
        let text = print_module(&Module { funcs: vec![program(choices)] });
        let text = damaged(&text, &edits);
        if let Ok(module) = read_module(&text) {
            prop_assert!(!module.funcs.is_empty());
        }
    }
}

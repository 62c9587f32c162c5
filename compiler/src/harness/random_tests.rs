//! Random programs in the interpreter and on the device: the same bits.

use std::sync::Arc;

use tilewright_ir::{
    BinaryOp, Buffer, DataType, Expr, ForKind, FuncAttrs, PrimFunc, ScalarType, SharedExpr, Stmt, StmtKind, ThreadTag,
    UnaryOp, Var,
};

use super::arguments::Inputs;
use super::engine::{StageProgram, Status};
use super::inputs::Numbers;
use super::interpreter::Interpreter;
use super::opencl::OpenCl;
use super::stages::{Config, Stage, run_chain};

/// Draws programs.
struct Draw {
    numbers: Numbers,
    vars: Vec<Var>,
    inputs: [Buffer; 2],
}

const INPUT: i64 = 41;

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.numbers.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    fn small(&mut self) -> i64 {
        i64::try_from(self.below(19)).unwrap() - 9
    }

    fn var(&mut self) -> Expr {
        let place = self.below(self.vars.len());
        Expr::from(&self.vars[place])
    }

    /// An index into an input: anything, brought into its shape by a floor modulo.
    fn index(&mut self, depth: usize) -> Expr {
        let index = self.affine(depth);
        index.floor_mod(Expr::int(INPUT))
    }

    fn affine(&mut self, depth: usize) -> Expr {
        if depth == 0 {
            return if self.below(3) == 0 { Expr::int(self.small()) } else { self.var() };
        }
        let (a, b) = (self.affine(depth - 1), self.affine(depth - 1));
        let divisor = [-5, -3, 2, 4, 7][self.below(5)];
        match self.below(7) {
            0 => a - b,
            1 => a * Expr::int(self.small()),
            2 => a.floor_div(Expr::int(divisor)),
            3 => a.floor_mod(Expr::int(divisor)),
            4 => Expr::binary(BinaryOp::TruncDiv, a, Expr::int(divisor)),
            5 => Expr::binary([BinaryOp::Min, BinaryOp::Max][self.below(2)], a, b),
            _ => a + b,
        }
    }

    /// A value of the type of input `which`: int32 or float32.
    fn value(&mut self, which: usize, depth: usize) -> Expr {
        let ty = self.inputs[which].dtype.scalar;
        if depth == 0 {
            let index = self.index(1);
            return Expr::load(&self.inputs[which], vec![index]);
        }
        let (a, b) = (self.value(which, depth - 1), self.value(which, depth - 1));
        let arithmetic = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Min, BinaryOp::Max];
        match self.below(9) {
            op @ 0..5 => Expr::binary(arithmetic[op], a, b),
            5 => Expr::unary(UnaryOp::Neg, a),
            6 => Expr::Select(
                SharedExpr::new(Expr::binary(BinaryOp::Le, a.clone(), b.clone())),
                SharedExpr::new(a),
                SharedExpr::new(b),
            ),
            7 => {
                let cond = self.affine(1).lt(self.affine(1));
                Expr::IfThenElse(SharedExpr::new(cond), SharedExpr::new(a), SharedExpr::new(b))
            }
            _ if ty == ScalarType::Int32 => {
                let divisor = [-7, -2, 3, 1000][self.below(4)];
                a.floor_div(Expr::int(divisor))
            }
            _ => Expr::Cast(ty.into(), SharedExpr::new(self.value(0, depth - 1))),
        }
    }

    /// Loops around a store whose index is their row-major number, or another order of it, and perhaps a guard.
    fn func(&mut self) -> PrimFunc {
        let n_loops = 1 + self.below(4);
        self.vars = (0..n_loops).map(|k| Var::index(["i", "j", "k", "l"][k])).collect();
        let extents: Vec<i64> = (0..n_loops).map(|_| [1, 2, 3, 5, 7][self.below(5)]).collect();
        let mut order: Vec<_> = (0..n_loops).collect();
        for place in (1..n_loops).rev() {
            order.swap(place, self.below(place + 1));
        }
        let index = order.iter().fold(Expr::int(0), |sum, &k| sum * Expr::int(extents[k]) + Expr::from(&self.vars[k]));
        let which = self.below(2);
        let size = extents.iter().product();
        let output = Buffer::compact("out", self.inputs[which].dtype, vec![Expr::int(size)]);
        let value = self.value(which, 3);
        let mut body = Stmt::store(&output, vec![index.clone()], value);
        if self.below(2) == 0 {
            let twice = Expr::load(&output, vec![index.clone()]) + self.value(which, 1);
            body = Stmt::seq(vec![body, Stmt::store(&output, vec![index], twice)]);
        }
        if self.below(3) == 0 {
            let cond = self.affine(1).lt(self.affine(2));
            let other = (self.below(2) == 0).then(|| Arc::new(body.clone()));
            body = Stmt::new(StmtKind::If { cond, then_body: Arc::new(body), else_body: other });
        }
        let mut tags = vec![ThreadTag::Thread(0), ThreadTag::Block(0), ThreadTag::Thread(1), ThreadTag::Block(2)];
        for (var, &extent) in self.vars.clone().iter().zip(&extents).rev() {
            let kinds = [ForKind::Serial, ForKind::Parallel, ForKind::Unrolled, ForKind::Vectorized];
            let kind = match self.below(7) {
                k @ 0..4 => kinds[k],
                k => ForKind::ThreadBinding(tags.remove((k - 4).min(tags.len() - 1))),
            };
            body = Stmt::for_loop(var, Expr::int(extent), kind, body);
        }
        let buffers = [self.inputs[0].clone(), self.inputs[1].clone(), output];
        let params = ["a", "b", "out"].map(|name| Var::new(name, DataType::HANDLE));
        let buffer_map = params.iter().cloned().zip(buffers).collect();
        PrimFunc { name: "random".into(), params: params.to_vec(), buffer_map, attrs: FuncAttrs::default(), body }
    }
}

#[test]
fn random_programs_give_the_same_bits_on_the_device() {
    let device = OpenCl::open(None).expect("an OpenCL device");
    let mut compared = 0;
    for seed in 0..60 {
        let input = |name, ty| Buffer::compact(name, ty, vec![Expr::int(INPUT)]);
        let inputs = [input("A", ScalarType::Int32), input("B", ScalarType::Float32)];
        let func = Draw { numbers: Numbers::new(seed, 0), vars: Vec::new(), inputs }.func();
        let stages = [Stage { name: "input", program: StageProgram::Func(&func), evidence: None, reassociates: false }];
        let config = Config { seed, symbols: Vec::new(), inputs: Inputs::Random, ..Config::default() };
        let report = run_chain(&stages, &config, &Interpreter::default(), &[Ok(&device)]).unwrap();
        assert_eq!(report.engines[0].status, Status::Reference, "seed {seed}: {report:#?}");
        let line = &report.engines[1];
        // A guard that is never true leaves nothing to compare.
        assert!(
            line.status == Status::Agrees || (line.status == Status::Skipped && line.detail.starts_with("nothing")),
            "seed {seed}: {line:#?}\n{:#?}",
            func.body
        );
        compared += line.compared;
    }
    assert!(compared > 1000, "only {compared} values were compared");
}

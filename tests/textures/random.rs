//! Random programs over a texture and a buffer: the same bits in the interpreter and on the device.

use tilewright::codegen::Options;
use tilewright_ir::{BinaryOp, Buffer, Expr, ScalarType, SharedExpr};

use crate::textures::{Case, broadcast, channel, four, function, linear, nest, numbers, store, texel, texture, values};

const TYPES: [ScalarType; 7] = [
    ScalarType::Float32,
    ScalarType::Float16,
    ScalarType::Int8,
    ScalarType::Int16,
    ScalarType::Int32,
    ScalarType::UInt8,
    ScalarType::UInt32,
];

/// Draws values of four lanes at a row and column.
struct Draw<'a> {
    state: u64,
    texture: &'a Buffer,
    linear: &'a Buffer,
    row: &'a tilewright_ir::Var,
    column: &'a tilewright_ir::Var,
}

impl Draw<'_> {
    fn below(&mut self, bound: u64) -> i64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((self.state >> 33) % bound).unwrap()
    }

    fn affine(&mut self) -> Expr {
        let (row, column) = (Expr::from(self.row), Expr::from(self.column));
        row * Expr::int(self.below(7) - 3) + column * Expr::int(self.below(7) - 3) + Expr::int(self.below(9))
    }

    fn leaf(&mut self) -> Expr {
        let (row, column) = (self.affine().floor_mod(Expr::int(5)), self.affine().floor_mod(Expr::int(7)));
        match self.below(5) {
            0 => broadcast(channel(self.texture, row, column, self.below(4))),
            1 => {
                let lane = self.affine().floor_mod(Expr::int(4));
                broadcast(channel(self.texture, row, column, lane))
            }
            2 => Expr::load(self.linear, vec![four(self.row, self.column, 7)]),
            _ => texel(self.texture, row, column),
        }
    }

    fn value(&mut self, depth: u32) -> Expr {
        if depth == 0 {
            return self.leaf();
        }
        let (a, b) = (self.value(depth - 1), self.value(depth - 1));
        let boxed = |c, a, b| (SharedExpr::new(c), SharedExpr::new(a), SharedExpr::new(b));
        match self.below(8) {
            0 => {
                let (c, a, b) = boxed(self.affine().lt(self.affine()), a, b);
                Expr::IfThenElse(c, a, b)
            }
            1 => {
                let (c, a, b) = boxed(self.value(0).lt(self.value(0)), a, b);
                Expr::IfThenElse(c, a, b)
            }
            2 => {
                let (c, a, b) = boxed(self.value(0).lt(self.value(0)), a, b);
                Expr::Select(c, a, b)
            }
            // Only the guard keeps the column inside.
            3 => {
                let next = Expr::from(self.column) + Expr::int(self.below(4));
                let (c, a, b) = boxed(next.clone().lt(Expr::int(7)), texel(self.texture, self.row, next), a + b);
                Expr::IfThenElse(c, a, b)
            }
            op => {
                let ops = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Min];
                Expr::binary(ops[usize::try_from(op).unwrap() - 4], a, b)
            }
        }
    }
}

#[test]
fn random_programs_over_textures_give_the_same_bits_on_the_device() {
    for seed in 0..42 {
        let ty = TYPES[seed % TYPES.len()];
        let (x, a, y) = (texture("X", ty, 5, 7), linear("A", ty, 140), texture("Y", ty, 5, 7));
        let body = nest(5, 7, |i, j| {
            let state = u64::try_from(seed).unwrap().wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
            let value = Draw { state, texture: &x, linear: &a, row: i, column: j }.value(3);
            store(&y, i, j, value)
        });
        let case = Case::new(function("random", &[&x, &a, &y], body), &[values(ty, &[5, 7, 4]), numbers(ty, &[140])]);
        let generated = case.kernels(Options { checked: seed % 2 == 1, placed: seed % 3 == 2, aliased: false });
        let found = case.run(&generated, &generated.source);
        assert_eq!(found, (None, None), "seed {seed}\n{}", generated.source);
    }
}

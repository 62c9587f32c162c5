//! Loops whose variable is divided by a constant in indices, which the block engine runs as two loops: the same results and traps as in the
//! reference interpreter, also where the range is not divided by the number.
#![allow(clippy::unwrap_used, reason = "a test may stop at what it did not expect")]

mod common;

use std::sync::Arc;

use common::{agree_everywhere, buffer, empty, filled, func};
use tilewright_interp::{Arguments, TrapKind};
use tilewright_ir::{Buffer, Expr, ForKind, PrimFunc, Stmt, StmtKind, Var};

const ROWS: i64 = 6;
const FUEL: u64 = 1 << 22;

/// `for c in min .. min + extent`.
fn range(var: &Var, (min, extent): (i64, i64), body: Stmt) -> Stmt {
    let mut made = Stmt::for_loop(var, Expr::int(extent), ForKind::Serial, body);
    if let StmtKind::For(inner) = &mut made.kind {
        Arc::make_mut(inner).min = Expr::int(min);
    }
    made
}

fn size(extent: i64) -> u64 {
    u64::try_from(extent).unwrap()
}

/// The loops over rows and channels and the numbers by which channels are divided.
#[derive(Clone, Copy, Debug)]
struct Case {
    min: i64,
    extent: i64,
    by: i64,
    modulo: i64,
    /// Whether the loop over channels is the outer one.
    channels_outside: bool,
}

impl Case {
    fn nest(self, row: &Var, channel: &Var, body: Stmt) -> Stmt {
        let (rows, channels) = ((0, ROWS), (self.min, self.extent));
        if self.channels_outside {
            range(channel, channels, range(row, rows, body))
        } else {
            range(row, rows, range(channel, channels, body))
        }
    }

    /// The buffer of blocks, of which the last `missing` are left out.
    fn blocked(self, missing: i64) -> (Buffer, [u64; 3]) {
        let blocks = (self.min + self.extent).div_euclid(self.by) + 1 - missing;
        (buffer("A", &[blocks, ROWS, self.modulo]), [size(blocks), size(ROWS), size(self.modulo)])
    }

    fn index(self, row: &Var, channel: &Var) -> Vec<Expr> {
        let channel = || Expr::from(channel);
        vec![channel().floor_div(Expr::int(self.by)), Expr::from(row), channel().floor_mod(Expr::int(self.modulo))]
    }

    /// `B[h, c] = A[c // by, h, c % modulo] * 2 + A[...]`, `S[h] = S[h] + A[...]` and `A[...] = D[h, c]`.
    fn programs(self, missing: i64) -> Vec<(PrimFunc, Arguments)> {
        let (row, channel) = (Var::index("h"), Var::index("c"));
        let (blocked, shape) = self.blocked(missing);
        let width = self.min + self.extent;
        let (plain, sums) = (buffer("B", &[ROWS, width]), buffer("S", &[ROWS]));
        let load = || Expr::load(&blocked, self.index(&row, &channel));
        let at = || vec![Expr::from(&row), Expr::from(&channel)];
        let two = Expr::float_of(2.0, tilewright_ir::ScalarType::Float32);
        let copy = Stmt::store(&plain, at(), load() * two + load());
        let sum = vec![Expr::from(&row)];
        let update = Stmt::store(&sums, sum.clone(), Expr::load(&sums, sum) + load());
        let scatter = Stmt::store(&blocked, self.index(&row, &channel), Expr::load(&plain, at()));
        let flat = [size(ROWS), size(width)];
        vec![
            (
                func(&[&blocked, &plain], self.nest(&row, &channel, copy)),
                Arguments::tensors([filled(&shape, 3), empty(&flat)]),
            ),
            (
                func(&[&blocked, &sums], self.nest(&row, &channel, update)),
                Arguments::tensors([filled(&shape, 4), filled(&[size(ROWS)], 5)]),
            ),
            (
                func(&[&plain, &blocked], self.nest(&row, &channel, scatter)),
                Arguments::tensors([filled(&flat, 6), empty(&shape)]),
            ),
        ]
    }
}

/// Whole blocks, an offset, ragged and misaligned ranges, two different numbers, and more channels than a block of iterations.
fn cases() -> Vec<Case> {
    let numbers =
        [(0, 24, 4, 4), (8, 24, 4, 4), (0, 23, 4, 4), (2, 24, 4, 4), (0, 24, 4, 8), (0, 24, 8, 4), (0, 4, 4, 4)];
    let long = [(0, 600, 4, 4), (0, 602, 4, 4), (0, 25_000, 8, 8), (0, 1040, 260, 260)];
    let all = numbers.into_iter().chain(long);
    let case = |(min, extent, by, modulo)| {
        [false, true].map(|channels_outside| Case { min, extent, by, modulo, channels_outside })
    };
    all.flat_map(case).collect()
}

#[test]
fn divided_indices_give_the_results_of_the_reference() {
    for case in cases() {
        for (program, args) in case.programs(0) {
            assert_eq!(agree_everywhere(&program, &args, FUEL), None, "{case:?}");
        }
    }
}

#[test]
fn an_index_beyond_the_last_block_traps_where_the_reference_does() {
    // The range has one more value than there are blocks for, or several.
    for case in cases().into_iter().filter(|case| case.extent < 1000) {
        for (program, args) in case.programs(2) {
            assert_eq!(agree_everywhere(&program, &args, FUEL), Some(TrapKind::OutOfBounds), "{case:?}");
        }
    }
}

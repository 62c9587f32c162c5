//! A loop that is called independent computes the same in any order and has no race.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tilewright_ir::{Bindings, Buffer, DataType, Expr, For, ForKind, FuncAttrs, PrimFunc, ScalarType, Stmt, StmtKind};
use tilewright_ir::{Var, validate};

use super::{Ranges, is_independent};
use crate::{Arguments, Config, Observers, Order, Tensor, fill, run};

/// Extents of the loops k, i and j; i is the loop that is tested.
const EXTENTS: [i64; 3] = [3, 6, 4];
const SIDE: i64 = 96;

/// An index `(k, i, j) * factors + plus`, possibly divided.
#[derive(Clone, Debug)]
struct Index {
    factors: [i64; 3],
    plus: i64,
    /// A divisor and a modulus that are applied to the sum unless they are 1.
    div: i64,
    rest: i64,
}

/// An element of one of the buffers.
#[derive(Clone, Debug)]
struct Access {
    buffer: usize,
    indices: [Index; 2],
}

/// Stores, each with a load.
type Spec = Vec<(Access, Access)>;

fn index() -> impl Strategy<Value = Index> {
    let factor = || prop_oneof![4 => Just(0i64), 3 => Just(1), 2 => Just(4), 2 => -3..=4i64];
    let rest = prop_oneof![6 => Just(1i64), 1 => 2..=7i64];
    ([factor(), factor(), factor()], 0..3i64, prop_oneof![5 => Just(1i64), 1 => 2..=5i64], rest)
        .prop_map(|(factors, plus, div, rest)| Index { factors, plus: plus + 31, div, rest })
}

fn access() -> impl Strategy<Value = Access> {
    (0..3usize, [index(), index()]).prop_map(|(buffer, indices)| Access { buffer, indices })
}

fn spec() -> impl Strategy<Value = Spec> {
    // Half of the loads read the element that is stored, as updates in real programs do.
    let statement = (access(), access(), any::<bool>())
        .prop_map(|(store, load, same)| if same { (store.clone(), store) } else { (store, load) });
    prop::collection::vec(statement, 1..3)
}

fn expr(index: &Index, vars: &[Var; 3]) -> Expr {
    let terms = vars.iter().zip(index.factors).map(|(var, factor)| Expr::from(var) * Expr::int(factor));
    let mut sum = terms.fold(Expr::int(index.plus), |sum, term| sum + term);
    if index.div > 1 {
        sum = sum.floor_div(Expr::int(index.div));
    }
    if index.rest > 1 { sum.floor_mod(Expr::int(index.rest)) } else { sum }
}

/// The program of a spec with the loop over `i` of the given kind, that loop, and the variable `k` around it.
fn build(spec: &Spec, kind: ForKind) -> (PrimFunc, For, Var) {
    let vars = ["k", "i", "j"].map(Var::index);
    let buffers =
        ["A", "B", "C"].map(|name| Buffer::compact(name, ScalarType::Int32, vec![Expr::int(SIDE), Expr::int(SIDE)]));
    let at = |access: &Access| access.indices.iter().map(|index| expr(index, &vars)).collect::<Vec<_>>();
    let stmt = |(to, from): &(Access, Access)| {
        let value = Expr::load(&buffers[from.buffer], at(from)) * Expr::int(3) + Expr::from(&vars[1]);
        Stmt::store(&buffers[to.buffer], at(to), value)
    };
    let body = Stmt::seq(spec.iter().map(stmt).collect());
    let body = Stmt::for_loop(&vars[2], Expr::int(EXTENTS[2]), ForKind::Serial, body);
    let middle = Stmt::for_loop(&vars[1], Expr::int(EXTENTS[1]), kind, body);
    let StmtKind::For(inner) = middle.kind.clone() else { unreachable!("a loop was made") };
    let body = Stmt::for_loop(&vars[0], Expr::int(EXTENTS[0]), ForKind::Serial, middle);
    let params = ["a", "b", "c"].map(|name| Var::new(name, DataType::HANDLE)).to_vec();
    let buffer_map = params.iter().cloned().zip(buffers).collect();
    let [k, ..] = vars;
    (PrimFunc { name: "f".into(), params, buffer_map, attrs: FuncAttrs::default(), body }, (*inner).clone(), k)
}

/// The contents of the buffers after a run.
fn result(func: &PrimFunc, config: &Config) -> Vec<Tensor> {
    let tensor = |seed| {
        let side = u64::try_from(SIDE).unwrap();
        let mut tensor = Tensor::undefined(ScalarType::Int32, &[side, side]).unwrap();
        fill(&mut tensor, seed);
        tensor
    };
    let mut args = Arguments::tensors([1, 2, 3].map(tensor));
    run(validate(func).unwrap(), &mut args, config).unwrap();
    (0..3).map(|param| args.tensor(param).unwrap().clone()).collect()
}

/// Whether the loop is called independent; asserts that it is.
fn holds(spec: &Spec) -> bool {
    let (serial, inner, k) = build(spec, ForKind::Serial);
    let mut ranges = Ranges::new(&Bindings::new());
    ranges.0.insert(k, tilewright_ir::Interval { low: 0, high: i128::from(EXTENTS[0]) - 1 });
    if !is_independent(&inner, &ranges) {
        return false;
    }
    let expected = result(&serial, &Config { threads: 1, ..Config::default() });
    let (parallel, ..) = build(spec, ForKind::Parallel);
    let watched = Observers { defined: true, race: true };
    for order in [Order::Program, Order::Reversed, Order::Shuffled(77)] {
        let config = Config { order, observers: watched, ..Config::default() };
        assert_eq!(result(&parallel, &config), expected, "{order:?} of {spec:?}");
    }
    true
}

#[test]
fn an_independent_loop_computes_the_same_in_any_order_without_races() {
    let mut runner = TestRunner::deterministic();
    let (mut called, mut cases) = (0, 0);
    while cases < 3000 {
        let spec = spec().new_tree(&mut runner).unwrap().current();
        called += usize::from(holds(&spec));
        cases += 1;
    }
    assert!(called > 100 && called < cases / 2, "{called} of {cases} were called independent");
}

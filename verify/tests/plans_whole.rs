//! Claims about the stores that write a result: right ones prove that every element is written, bent ones prove nothing.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::plan::tensor;
use common::{judge, program};
use tilewright_ir::{
    Expr, Graph, GraphStep, Instance, MemoryPlan, Pool, PoolPlace, PoolRules, Region, Room, ScalarType, Scope,
    TensorRole, TextureLimits,
};
use tilewright_verify::{Finders, Obligation, Verdict};

/// More elements than are tried.
const N: u64 = 100_000;

/// What is said of a result of `N` elements that the caller takes, written by a function with this body, where `claim` says which stores
/// write element `x`.
fn verdict(body: &str, claim: impl Fn(&Expr) -> Vec<Instance>) -> Verdict {
    let lines: Vec<String> = body.lines().map(|line| format!("    {line}")).collect();
    let params = format!("A: T.Buffer(({N},), \"float32\"), B: T.Buffer(({N},), \"float32\")");
    let func = program(&format!("def work({params}):\n{}", lines.join("\n")));
    let tensors = vec![tensor("x", N, TensorRole::Input), tensor("y", N, TensorRole::Output)];
    let steps = vec![GraphStep { name: "work".into(), reads: vec![0], writes: vec![1] }];
    let at = |offset| PoolPlace { pool: 0, region: Region::Bytes { offset, size: 4 * N } };
    let pool = Pool { scope: Scope::Global, dtype: ScalarType::UInt8.into(), room: Room::Bytes(8 * N) };
    let (graph, plan) = (Graph { tensors, steps }, MemoryPlan { pools: vec![pool], places: vec![at(0), at(4 * N)] });
    let writers = |stores: &tilewright_verify::Stores<'_>| claim(&Expr::from(&stores.element.loops()[0]));
    let find = Finders { writers: &writers, ..Finders::NOTHING };
    let rules = PoolRules::any_width(TextureLimits::PROMISED);
    let reports = judge().check_plan_of(&graph, &plan, rules, &[Some(&func)], &find);
    let report = reports.last().unwrap();
    assert_eq!(report.obligation, Obligation::Defined);
    let stores_operand = body.contains(" A[i] =");
    let access = reports.iter().find(|report| report.obligation == Obligation::PlanAccess).unwrap();
    assert_eq!(access.verdict.is_proved(), !stores_operand, "{}", access.verdict);
    report.verdict.clone()
}

#[test]
fn a_step_stores_to_nothing_that_it_only_reads() {
    let body = "for i in range(100000):\n    B[i] = A[i]";
    let here = |x: &Expr| vec![case(None, 0, vec![x.clone()])];
    assert!(verdict(body, here).is_proved());
    // The helper asks that *plan-access* is not proved.
    verdict(&format!("{body}\n    A[i] = T.float32(0)"), here);
}

fn case(when: Option<Expr>, store: usize, at: Vec<Expr>) -> Instance {
    Instance { when, store: Some(store), at }
}

#[track_caller]
fn unknown(body: &str, claim: impl Fn(&Expr) -> Vec<Instance>) {
    let found = verdict(body, claim);
    assert!(matches!(found, Verdict::Unknown(_)), "{found}");
}

#[test]
fn the_claimed_iteration_has_to_run_and_to_write_the_element() {
    let body = "for o, i in T.grid(1000, 100):\n    B[o * 100 + i] = A[i]";
    let parts = |x: &Expr| vec![x.clone().floor_div(Expr::int(100)), x.clone().floor_mod(Expr::int(100))];
    let right = verdict(body, |x| vec![case(None, 0, parts(x))]);
    assert!(right.is_proved(), "{right}");
    // No claim, a store that there is not, another number of loops.
    unknown(body, |_| Vec::new());
    unknown(body, |x| vec![case(None, 1, parts(x))]);
    unknown(body, |x| vec![case(None, 0, vec![x.clone()])]);
    unknown(body, |x| vec![Instance { store: None, ..case(None, 0, parts(x)) }]);
    // Another element, and iterations that are outside of the loops for some elements or for all.
    unknown(body, |x| vec![case(None, 0, vec![parts(x)[0].clone(), Expr::int(0)])]);
    unknown(body, |x| vec![case(None, 0, vec![Expr::int(0), x.clone()])]);
    unknown(body, |x| {
        vec![case(None, 0, vec![parts(x)[0].clone() - Expr::int(1), parts(x)[1].clone() + Expr::int(100)])]
    });
    let short = body.replace("1000", "999");
    unknown(&short, |x| vec![case(None, 0, parts(x))]);
    unknown(&short, |x| vec![case(Some(x.clone().lt(Expr::int(99_900))), 0, parts(x)), case(None, 0, parts(x))]);
    unknown(&body.replace("o * 100", "o * 99"), |x| vec![case(None, 0, parts(x))]);
}

#[test]
fn the_cases_have_to_cover_all_elements_and_their_conditions_to_hold() {
    let body = "for i in range(100000):\n    if i < 7:\n        B[i] = A[0]\n    else:\n        B[i] = A[1]";
    let below = |bound: i64| {
        move |x: &Expr| {
            let here = vec![x.clone()];
            vec![case(Some(x.clone().lt(Expr::int(bound))), 0, here.clone()), case(None, 1, here)]
        }
    };
    assert!(verdict(body, below(7)).is_proved());
    for bound in [6, 8] {
        unknown(body, below(bound));
    }
    // One case for all, none for the rest, and a condition that memory decides.
    unknown(body, |x| vec![case(None, 1, vec![x.clone()])]);
    unknown(body, |x| vec![case(Some(x.clone().lt(Expr::int(7))), 0, vec![x.clone()])]);
    unknown(&body.replace("i < 7", "A[i] < T.float32(7)"), below(7));
    // A name on the way is not a loop.
    let named = "for i in range(100000):\n    j: T.int32 = 99999 - i\n    B[j] = A[0]";
    assert!(verdict(named, |x| vec![case(None, 0, vec![Expr::int(99_999) - x.clone()])]).is_proved());
    unknown(named, |x| vec![case(None, 0, vec![x.clone()])]);
}

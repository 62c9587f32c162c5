//! Steps that read their results: proved if each element is written before it is read, refuted if one is not, wherever the result lies.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::plan::{is_proved, is_refuted, is_unknown, tensor};
use common::{judge, program};
use tilewright_ir::{
    Expr, Graph, GraphStep, Instance, MemoryPlan, Pool, PoolPlace, PoolRules, PrimFunc, Region, Room, ScalarType,
    Scope, Sources, TensorRole, TextureLimits,
};
use tilewright_verify::{FindSources, Finders, Verdict};

const N: u64 = 60;

/// One step `work x -> y`, where `work` is a function of `A` and `B`.
fn network() -> (Graph, MemoryPlan) {
    let tensors = vec![tensor("x", N, TensorRole::Input), tensor("y", N, TensorRole::Intermediate)];
    let steps = vec![GraphStep { name: "work".into(), reads: vec![0], writes: vec![1] }];
    let at = |offset| PoolPlace { pool: 0, region: Region::Bytes { offset, size: 4 * N } };
    let pool = Pool { scope: Scope::Global, dtype: ScalarType::UInt8.into(), room: Room::Bytes(8 * N) };
    (Graph { tensors, steps }, MemoryPlan { pools: vec![pool], places: vec![at(0), at(4 * N)] })
}

fn work(body: &str) -> PrimFunc {
    let lines: Vec<String> = body.lines().map(|line| format!("    {line}")).collect();
    program(&format!(
        "def work(A: T.Buffer(({N},), \"float32\"), B: T.Buffer(({N},), \"float32\")):\n{}",
        lines.join("\n")
    ))
}

/// The verdict on the step; `None` if nothing is asked, because it does not read its result.
fn verdict_by(body: &str, find: &FindSources<'_>) -> Option<Verdict> {
    let ((graph, plan), func) = (network(), work(body));
    let rules = PoolRules::any_width(TextureLimits::PROMISED);
    let reports =
        judge().check_plan_of(&graph, &plan, rules, &[Some(&func)], &Finders { sources: find, ..Finders::NOTHING });
    assert!(reports[..4].iter().all(|report| report.verdict.is_proved()));
    let report = reports.get(4)?;
    assert_eq!((report.obligation.id(), reports.len()), ("defined", 5));
    assert_eq!(report.subject, "step 0 `work` reads `y` as it writes it");
    Some(report.verdict.clone())
}

fn verdict(body: &str) -> Verdict {
    verdict_by(body, &|_| Vec::new()).unwrap()
}

#[track_caller]
fn proved(body: &str) {
    is_proved(&verdict(body), body);
}

#[track_caller]
fn refuted(body: &str, part: &str) {
    is_refuted(&verdict(body), body, part);
}

#[track_caller]
fn unknown(body: &str) {
    is_unknown(&verdict(body), body);
}

#[test]
fn nothing_is_asked_of_a_step_that_does_not_read_its_result() {
    assert!(verdict_by("for i in range(60):\n    B[i] = A[i] + A[59 - i]", &|_| Vec::new()).is_none());
}

#[test]
fn a_sum_that_starts_with_a_store_is_proved() {
    proved("for i in range(60):\n    B[i] = T.float32(0)\n    for k in range(60):\n        B[i] = B[i] + A[k]");
    proved(
        "for i in range(60):\n    B[i] = T.float32(0)\nfor i in range(60):\n    for k in range(60):\n        B[i] = B[i] + A[k]",
    );
    proved(
        "for i in range(60):\n    for k in range(60):\n        if k == 0:\n            B[i] = T.float32(0)\n        B[i] = B[i] + A[k]",
    );
    // Vectors, and threads.
    proved(
        "for i in range(15):\n    B[i * 4:i * 4 + 4] = T.broadcast(T.float32(0), 4)\n    for k in range(60):\n        \
         B[i * 4:i * 4 + 4] = B[i * 4:i * 4 + 4] + T.broadcast(A[k], 4)",
    );
    proved(
        "for t in T.thread_binding(60, thread=\"threadIdx.x\"):\n    B[t] = T.float32(0)\n    for k in range(60):\n        \
         B[t] = B[t] + A[k]",
    );
    // A recurrence, whose first element is written alone.
    proved("B[0] = A[0]\nfor i in range(59):\n    B[i + 1] = B[i] + A[i + 1]");
    // What is read only where it was written.
    proved("for i in range(60):\n    B[i] = T.if_then_else(i < 1, A[i], B[T.max(i - 1, 0)])");
}

#[test]
fn an_element_that_nothing_has_written_refutes() {
    refuted("for i in range(60):\n    B[i] = B[i] + A[i]", "`B[i]` reads element 0, which nothing has written");
    refuted("for i in range(60):\n    for k in range(60):\n        B[i] = B[i] + A[k]", "reads element 0");
    // The start is missing for the last element, comes too late, or is of another element.
    refuted(
        "for i in range(59):\n    B[i] = T.float32(0)\nfor i in range(60):\n    for k in range(60):\n        B[i] = B[i] + A[k]",
        "reads element 59",
    );
    refuted(
        "for i in range(60):\n    for k in range(60):\n        B[i] = B[i] + A[k]\n    if i < 0:\n        B[i] = T.float32(0)",
        "reads element 0",
    );
    refuted(
        "for i in range(60):\n    for k in range(60):\n        if k == 1:\n            B[i] = T.float32(0)\n        B[i] = B[i] + A[k]",
        "reads element 0",
    );
    refuted("for i in range(59):\n    B[i] = B[i + 1] + A[i]\nB[59] = A[59]", "reads element 1");
    refuted("for i in range(15):\n    B[i * 4:i * 4 + 4] = B[i * 4:i * 4 + 4] + A[i * 4:i * 4 + 4]", "reads element 0");
    // The condition is another one.
    refuted(
        "for i in range(60):\n    if i < 30:\n        B[i] = A[i]\n    if i < 31:\n        B[i] = B[i] + A[i]",
        "element 30",
    );
}

#[test]
fn what_depends_on_memory_or_on_the_order_of_threads_is_unknown() {
    unknown(
        "for i in range(60):\n    if A[i] < T.float32(0):\n        B[i] = A[i]\n    if A[i] < T.float32(0):\n        B[i] = B[i] + A[i]",
    );
    unknown("for t in T.thread_binding(60, thread=\"threadIdx.x\"):\n    B[t] = A[t]\n    B[t] = B[59 - t] + A[t]");
    unknown("for t in T.parallel(60):\n    if t < 59:\n        B[t] = A[t]\n    if t == 59:\n        B[t] = B[0]");
    // Too many iterations to try, and nothing is claimed.
    unknown(
        "for i in range(60):\n    B[i] = T.float32(0)\nfor i in range(60):\n    for k in range(2000):\n        B[i] = B[i] + A[i]",
    );
}

/// Sums of too many summands to try: one store that is element `i` of `B` in the iteration `at`, one that reads what `claimed` says.
fn claimed(claimed: impl Fn(Vec<Expr>) -> Vec<Instance>) -> Verdict {
    let body = "for i in range(60):\n    B[i] = T.float32(0)\nfor i in range(60):\n    for k in range(2000):\n        B[i] = B[i] + A[i]";
    let find = |func: &PrimFunc| -> Vec<Sources> {
        let [first, _] = tilewright_verify::flow::programs(func, func, &tilewright_ir::Evidence::default()).unwrap();
        let loops = first.program.statements[1].loops();
        let mut sources: Vec<Sources> = first.program.statements.iter().map(|_| Vec::new()).collect();
        sources[1] = vec![claimed(loops.iter().map(Expr::from).collect())];
        sources
    };
    verdict_by(body, &find).unwrap()
}

#[test]
fn a_claim_is_checked() {
    let before = |i: &Expr, k: &Expr| Instance {
        when: Some(Expr::int(0).lt(k.clone())),
        store: Some(1),
        at: vec![i.clone(), k.clone() - Expr::int(1)],
    };
    let right =
        claimed(|at| vec![before(&at[0], &at[1]), Instance { when: None, store: Some(0), at: vec![at[0].clone()] }]);
    assert!(right.is_proved(), "{right}");
    // That it was there before, that it is another element, and the store itself.
    let found = claimed(|at| vec![before(&at[0], &at[1]), Instance { when: None, store: None, at: Vec::new() }]);
    assert!(matches!(found, Verdict::Unknown(_)), "{found}");
    let other = claimed(|at| {
        vec![before(&at[0], &at[1]), Instance { when: None, store: Some(0), at: vec![Expr::int(59) - at[0].clone()] }]
    });
    assert!(matches!(other, Verdict::Unknown(_)), "{other}");
    let itself = claimed(|at| vec![Instance { when: None, store: Some(1), at }]);
    assert!(matches!(itself, Verdict::Unknown(_)), "{itself}");
}

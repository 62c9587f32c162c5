//! Steps in place: a result where an operand lies is proved if each element is read in the iteration that alone writes it, and refuted
//! otherwise.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::plan::{is_proved, is_refuted, is_unknown, tensor};
use common::{judge, program};
use tilewright_ir::{
    Graph, GraphStep, GraphTensor, MemoryPlan, Pool, PoolPlace, PoolRules, PrimFunc, Region, Room, ScalarType, Scope,
    TensorRole, TextureLimits,
};
use tilewright_verify::{Finders, Report, Verdict};

const N: u64 = 60;

fn step(name: &str, reads: &[usize], writes: &[usize]) -> GraphStep {
    GraphStep { name: name.into(), reads: reads.to_vec(), writes: writes.to_vec() }
}

const X: usize = 0;
const W: usize = 1;
const A: usize = 2;
const B: usize = 3;
const Y: usize = 4;

/// `make x -> a`, `work a, w -> b`, `last b -> y`.
fn network() -> Graph {
    let roles = [TensorRole::Input, TensorRole::Input, TensorRole::Intermediate, TensorRole::Intermediate];
    let tensors = ["x", "w", "a", "b"].into_iter().zip(roles).map(|(name, role)| tensor(name, N, role));
    let tensors = tensors.chain([tensor("y", N, TensorRole::Output)]).collect();
    Graph { tensors, steps: vec![step("make", &[X], &[A]), step("work", &[A, W], &[B]), step("last", &[B], &[Y])] }
}

/// Each tensor in a part of one pool; `b` has that of `a`.
fn plan() -> MemoryPlan {
    let at = |part: u64| PoolPlace { pool: 0, region: Region::Bytes { offset: part * 240, size: 240 } };
    let pool = Pool { scope: Scope::Global, dtype: ScalarType::UInt8.into(), room: Room::Bytes(4 * 240) };
    MemoryPlan { pools: vec![pool], places: vec![at(0), at(1), at(2), at(2), at(3)] }
}

/// The function of the step `work` with this body.
fn work(body: &str) -> PrimFunc {
    let lines: Vec<String> = body.lines().map(|line| format!("    {line}")).collect();
    let body = lines.join("\n");
    program(&format!(
        "def work(A: T.Buffer(({N},), \"float32\"), W: T.Buffer(({N},), \"float32\"), B: T.Buffer(({N},), \"float32\")):\n{body}"
    ))
}

fn check(graph: &Graph, plan: &MemoryPlan, func: Option<&PrimFunc>) -> Vec<Report> {
    let functions: Vec<Option<&PrimFunc>> =
        graph.steps.iter().map(|step| func.filter(|_| step.name == "work")).collect();
    judge().check_plan_of(graph, plan, PoolRules::any_width(TextureLimits::PROMISED), &functions, &Finders::NOTHING)
}

/// The verdict on the step in place; plan-disjoint has to be proved.
fn verdict(body: &str) -> Verdict {
    let reports = check(&network(), &plan(), Some(&work(body)));
    assert!(reports[0].verdict.is_proved(), "{}", reports[0].verdict);
    let last = &reports[4];
    assert_eq!(last.obligation.id(), "plan-in-place");
    // A step that reads its result is asked about that, too.
    assert!(reports[5..].iter().all(|report| report.obligation.id() == "defined"));
    assert_eq!(last.subject, "step 1 `work` writes `b` in place of `a`");
    last.verdict.clone()
}

#[track_caller]
fn proved(body: &str) {
    is_proved(&verdict(body), body);
}

#[track_caller]
fn refuted(body: &str, part: &str) {
    is_refuted(&verdict(body), body, part);
}

/// Neither proved nor refuted: a shape that is not decided.
#[track_caller]
fn unknown(body: &str) {
    is_unknown(&verdict(body), body);
}

#[test]
fn an_elementwise_step_may_work_in_place() {
    proved("for i in range(60):\n    B[i] = T.max(A[i], T.float32(0))");
    proved("for i in range(60):\n    B[i] = A[i] + W[59 - i] + A[i]");
    // Threads, with a guard, since 64 is more than 60.
    proved(
        "for b in T.thread_binding(4, thread=\"blockIdx.x\"):\n    for t in T.thread_binding(16, thread=\"threadIdx.x\"):\n        \
         if b * 16 + t < 60:\n            B[b * 16 + t] = A[b * 16 + t] * W[b * 16 + t]",
    );
    proved("for i in range(15):\n    B[i * 4:i * 4 + 4] = A[i * 4:i * 4 + 4] + W[i * 4:i * 4 + 4]");
    // The same index, though not the row-major one.
    proved("for i in range(6):\n    for j in range(10):\n        B[j * 6 + i] = A[j * 6 + i] * T.float32(2)");
    // Read under a condition only.
    proved("for i in range(60):\n    B[i] = T.if_then_else(i < 7, A[i], T.float32(0))");
    // Not read at all.
    proved("for i in range(60):\n    B[i] = W[i]");
}

#[test]
fn elements_of_other_iterations_are_refuted() {
    refuted("for i in range(60):\n    B[i] = A[59 - i]", "`A[59 - i]` reads it");
    refuted("for i in range(59):\n    B[i + 1] = A[i]", "writes element 1 in iteration i = ");
    // Serially it would be right, but loops may become threads.
    refuted("for i in range(59):\n    B[i] = A[i + 1]", "writes element 1 in iteration i = ");
    refuted("for i in range(6):\n    for j in range(10):\n        B[i * 10 + j] = A[j * 6 + i]", "reads it");
    refuted("for i in range(60):\n    B[i] = A[i] + A[0]", "writes element 0 in iteration i = 0, and `A[0]` reads it");
    refuted(
        "for i in range(60):\n    B[i] = T.if_then_else(i < 7, A[i], A[0])",
        "writes element 0 in iteration i = 0, and `A[0]` reads it",
    );
}

#[test]
fn a_window_and_a_reduction_are_refuted() {
    refuted(
        "for i in range(58):\n    B[i] = A[i] * W[0] + A[i + 1] * W[1] + A[i + 2] * W[2]",
        "writes element 1 in iteration i = ",
    );
    refuted(
        "for i, k in T.grid(60, 3):\n    B[i] = B[i] + T.if_then_else(i + k < 60, A[i + k], T.float32(0))",
        "reads it",
    );
    refuted(
        "acc = T.allocate([1], \"float32\", \"local\")\nacc_1 = T.Buffer((1,), data=acc, scope=\"local\")\nfor i in range(60):\n    \
         acc_1[0] = T.float32(0)\n    for k in range(60):\n        acc_1[0] = acc_1[0] + A[k]\n    B[i] = acc_1[0]",
        "reads it at i = 0, k = 1",
    );
}

#[test]
fn an_element_that_is_written_twice_is_refuted() {
    refuted("for i, j in T.grid(60, 2):\n    B[i] = A[i] + T.float32(1)", "writes element 0");
    refuted("for i in range(60):\n    B[i] = A[i]\nfor i in range(60):\n    B[i] = A[i] + W[i]", "writes element 0");
    refuted("for i in range(60):\n    B[i] = T.float32(0)\n    B[i] = A[i]", "writes element 0");
}

#[test]
fn what_is_read_before_it_is_written_in_the_same_iteration_is_not_decided() {
    unknown("for i in range(15):\n    B[i * 4:i * 4 + 4] = T.Broadcast(A[i * 4], 4)");
    unknown("for i in range(15):\n    B[i * 4:i * 4 + 4] = A[T.Ramp(i * 4 + 3, -1, 4)]");
    unknown("for i in range(60):\n    x: T.float32 = A[i]\n    B[i] = x");
    let local = "c = T.allocate([60], \"float32\", \"local\")\nc_1 = T.Buffer((60,), data=c, scope=\"local\")";
    unknown(&format!("{local}\nfor i in range(60):\n    c_1[i] = A[i]\n    B[i] = c_1[i]"));
    unknown(&format!("{local}\nfor i in range(60):\n    c_1[i] = A[59 - i]\nfor i in range(60):\n    B[i] = c_1[i]"));
    // All threads read before one writes.
    let shared = "s = T.allocate([60], \"float32\", \"shared\")\ns_1 = T.Buffer((60,), data=s, scope=\"shared\")";
    unknown(&format!(
        "for b in T.thread_binding(1, thread=\"blockIdx.x\"):\n    {}\n    for t in T.thread_binding(60, thread=\"threadIdx.x\"):\n        \
         s_1[t] = A[59 - t]\n        T.tvm_storage_sync(\"shared\")\n        B[t] = s_1[t]",
        shared.replace('\n', "\n    ")
    ));
    // In the next iteration it is too late.
    refuted(
        &format!("{local}\nfor i in range(59):\n    c_1[i] = A[i]\n    B[i + 1] = c_1[i]"),
        "writes element 1 in iteration i = 0, and `A[i]` reads it",
    );
}

#[test]
fn what_memory_decides_is_not_decided() {
    unknown("for i in range(60):\n    B[T.Cast(\"int32\", W[i])] = A[T.Cast(\"int32\", W[i])]");
}

#[test]
fn a_step_that_writes_its_operand_is_not_proved() {
    let body = "for i in range(60):\n    A[i] = W[i]\n    B[i] = A[i]";
    assert!(!verdict(body).is_proved());
}

/// The element-wise step, which is proved.
fn relu() -> PrimFunc {
    work("for i in range(60):\n    B[i] = T.max(A[i], T.float32(0))")
}

#[track_caller]
fn disjoint_is_refuted(spoil: impl FnOnce(&mut Graph, &mut MemoryPlan)) {
    let (mut graph, mut plan) = (network(), plan());
    assert!(check(&graph, &plan, Some(&relu())).iter().all(|report| report.verdict.is_proved()));
    spoil(&mut graph, &mut plan);
    let reports = check(&graph, &plan, Some(&relu()));
    assert!(matches!(reports[0].verdict, Verdict::Refuted(_)), "{}", reports[0].verdict);
}

#[test]
fn memory_that_is_still_needed_is_no_place_for_a_result() {
    // The operand is read later, is the caller's, or is taken by the caller.
    disjoint_is_refuted(|graph, _| graph.steps[2].reads.push(A));
    disjoint_is_refuted(|graph, _| graph.tensors[A].role = TensorRole::Output);
    disjoint_is_refuted(|graph, plan| {
        graph.steps[1].reads[0] = X;
        plan.places[B] = plan.places[X];
    });
    // A view of the operand is read later, or taken.
    let view = |graph: &mut Graph, plan: &mut MemoryPlan, role| {
        graph.tensors.push(GraphTensor { view_of: Some(A), ..tensor("v", N, role) });
        plan.places.push(plan.places[A]);
    };
    disjoint_is_refuted(|graph, plan| view(graph, plan, TensorRole::Output));
    disjoint_is_refuted(|graph, plan| {
        view(graph, plan, TensorRole::Intermediate);
        graph.steps[2].reads.push(5);
    });
    // Other bytes than those of the operand, in part.
    disjoint_is_refuted(|_, plan| plan.places[B].region = Region::Bytes { offset: 484, size: 240 });
    // The memory of another operand, which is needed as well.
    disjoint_is_refuted(|_, plan| plan.places[B] = plan.places[W]);
    // Two results in one place.
    disjoint_is_refuted(|graph, plan| {
        graph.tensors.push(tensor("c", N, TensorRole::Output));
        graph.steps[1].writes.push(5);
        plan.places.push(plan.places[A]);
    });
}

#[test]
fn without_the_function_a_step_is_not_in_place() {
    let reports = check(&network(), &plan(), None);
    assert_eq!(reports.len(), 4);
    assert!(matches!(reports[0].verdict, Verdict::Refuted(_)), "{}", reports[0].verdict);
}

#[test]
fn an_operand_that_is_read_twice_or_by_a_view_is_the_operand_each_time() {
    // Both parameters are the operand.
    let (mut graph, plan) = (network(), plan());
    graph.steps[1].reads = vec![A, A];
    let both = "for i in range(60):\n    B[i] = A[i] * W[i]";
    assert!(check(&graph, &plan, Some(&work(both)))[4].verdict.is_proved());
    let other = "for i in range(60):\n    B[i] = A[i] * W[59 - i]";
    let verdict = &check(&graph, &plan, Some(&work(other)))[4].verdict;
    assert!(matches!(verdict, Verdict::Refuted(_)), "{verdict}");
    // The second one is a view of it.
    let mut plan = plan;
    graph.tensors.push(GraphTensor { view_of: Some(A), ..tensor("v", N, TensorRole::Intermediate) });
    plan.places.push(plan.places[A]);
    graph.steps[1].reads = vec![A, 5];
    assert!(check(&graph, &plan, Some(&work(both)))[4].verdict.is_proved());
    let verdict = &check(&graph, &plan, Some(&work(other)))[4].verdict;
    assert!(matches!(verdict, Verdict::Refuted(_)), "{verdict}");
}

#[test]
fn a_function_with_other_parameters_is_not_proved() {
    let func = program(&format!(
        "def work(A: T.Buffer(({N},), \"float32\"), B: T.Buffer(({N},), \"float32\")):\n    for i in range(60):\n        B[i] = A[i]"
    ));
    let reports = check(&network(), &plan(), Some(&func));
    assert!(!reports[4].verdict.is_proved(), "{}", reports[4].verdict);
    let narrow = program(
        "def work(A: T.Buffer((60,), \"float32\"), W: T.Buffer((60,), \"float32\"), B: T.Buffer((120,), \"float16\")):\n    \
         for i in range(60):\n        B[i] = T.Cast(\"float16\", A[i])",
    );
    let reports = check(&network(), &plan(), Some(&narrow));
    assert!(!reports[4].verdict.is_proved(), "{}", reports[4].verdict);
}

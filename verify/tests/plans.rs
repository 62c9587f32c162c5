//! Memory plans: right ones are proved, and broken ones are refuted with the byte or texel.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use std::time::Instant;

use common::judge;
use tilewright_ir::{
    Graph, GraphStep, GraphTensor, MemoryPlan, Pool, PoolPlace, Region, Room, ScalarType, Scope, TensorRole,
};
use tilewright_verify::{Report, Verdict};

const F32: ScalarType = ScalarType::Float32;
const F16: ScalarType = ScalarType::Float16;

fn tensor(name: &str, scope: Scope, dtype: ScalarType, shape: &[u64]) -> GraphTensor {
    GraphTensor {
        name: name.into(),
        shape: shape.to_vec(),
        dtype: dtype.into(),
        scope,
        axis_separators: Vec::new(),
        view_of: None,
        role: TensorRole::Intermediate,
    }
}

fn step(name: &str, reads: &[usize], writes: &[usize]) -> GraphStep {
    GraphStep { name: name.into(), reads: reads.to_vec(), writes: writes.to_vec() }
}

fn texels(pool: usize, [x, y, width, height]: [u64; 4]) -> PoolPlace {
    PoolPlace { pool, region: Region::Texels { x, y, width, height } }
}

fn bytes(pool: usize, offset: u64, size: u64) -> PoolPlace {
    PoolPlace { pool, region: Region::Bytes { offset, size } }
}

fn texture(scope: Scope, dtype: ScalarType, width: u64, height: u64) -> Pool {
    Pool { scope, dtype: dtype.into(), room: Room::Texels { width, height } }
}

fn buffer(size: u64) -> Pool {
    Pool { scope: Scope::Global, dtype: F32.into(), room: Room::Bytes(size) }
}

// Places of the network's tensors.
const X: usize = 0;
const W: usize = 1;
const A: usize = 2;
const B: usize = 3;
const C: usize = 4;
const D: usize = 5;
const V: usize = 6;
const U: usize = 7;
const S: usize = 8;
const Y: usize = 9;

/// Textures and buffers, a tensor that is read twice, and a chain of views.
///
/// ```text
/// 0 pack x -> a     1 conv a, w -> b     2 relu b -> c     3 add b, c -> d
/// 4 unpack d -> s   5 scale u (a view of v, a view of s) -> y
/// ```
fn network() -> Graph {
    let mut tensors = vec![
        tensor("x", Scope::Global, F32, &[2, 3, 5, 4]),
        tensor("w", Scope::TextureWeight, F32, &[3, 2, 7, 4]),
        tensor("a", Scope::Texture, F32, &[2, 3, 5, 4]),
        tensor("b", Scope::Texture, F32, &[3, 2, 7, 4]),
        tensor("c", Scope::Texture, F32, &[3, 2, 7, 4]),
        tensor("d", Scope::Texture, F32, &[1, 6, 7, 4]),
        tensor("v", Scope::Global, F32, &[42, 4]),
        tensor("u", Scope::Global, F32, &[168]),
        tensor("s", Scope::Global, F32, &[6, 7, 4]),
        tensor("y", Scope::Global, F16, &[168]),
    ];
    tensors[V].view_of = Some(S);
    tensors[U].view_of = Some(V);
    tensors[X].role = TensorRole::Input;
    tensors[W].role = TensorRole::Input;
    tensors[Y].role = TensorRole::Output;
    let steps = vec![
        step("pack", &[X], &[A]),
        step("conv", &[A, W], &[B]),
        step("relu", &[B], &[C]),
        step("add", &[B, C], &[D]),
        step("unpack", &[D], &[S]),
        step("scale", &[U], &[Y]),
    ];
    Graph { tensors, steps }
}

/// `a` and `c` share texture 1, `b` lies alone in texture 2, `d` in texture 3; the buffers share pool 4.
fn plan() -> MemoryPlan {
    MemoryPlan {
        pools: vec![
            texture(Scope::TextureWeight, F32, 14, 3),
            texture(Scope::Texture, F32, 7, 6),
            texture(Scope::Texture, F32, 7, 6),
            texture(Scope::Texture, F32, 7, 6),
            buffer(480 + 672 + 336),
        ],
        places: vec![
            bytes(4, 0, 480),
            texels(0, [0, 0, 14, 3]),
            texels(1, [0, 0, 5, 6]),
            texels(2, [0, 0, 7, 6]),
            texels(1, [0, 0, 7, 6]),
            texels(3, [0, 0, 7, 6]),
            bytes(4, 480, 672),
            bytes(4, 480, 672),
            bytes(4, 480, 672),
            bytes(4, 1152, 336),
        ],
    }
}

fn check(graph: &Graph, plan: &MemoryPlan) -> Vec<Report> {
    let reports = judge().check_plan(graph, plan);
    assert_eq!(
        reports.iter().map(|report| report.obligation.id()).collect::<Vec<_>>(),
        ["plan-disjoint", "plan-fits", "plan-type", "plan-access"]
    );
    reports
}

fn proved(graph: &Graph, plan: &MemoryPlan) {
    for report in check(graph, plan) {
        assert!(report.verdict.is_proved(), "{}: {}", report.obligation, report.verdict);
    }
}

/// Proves the network's plan, breaks it, and gives what refutes one obligation.
fn broken(obligation: &str, spoil: impl FnOnce(&mut Graph, &mut MemoryPlan)) -> String {
    let (mut graph, mut plan) = (network(), plan());
    proved(&graph, &plan);
    spoil(&mut graph, &mut plan);
    refuted(obligation, &graph, &plan)
}

fn refuted(obligation: &str, graph: &Graph, plan: &MemoryPlan) -> String {
    let reports = check(graph, plan);
    let report = reports.iter().find(|report| report.obligation.id() == obligation).unwrap();
    match &report.verdict {
        Verdict::Refuted(found) => found.to_string(),
        other => panic!("{obligation}: {other}"),
    }
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{text:?} says nothing of {part:?}");
    }
}

#[test]
fn the_plan_of_the_network_is_proved() {
    proved(&network(), &plan());
}

#[test]
fn a_tensor_freed_before_its_last_read_is_refuted() {
    // `b` is read by steps 2 and 3; `d` is put in its place as if step 2 were the last. (In step 3 both meet.)
    let text = broken("plan-disjoint", |_, plan| plan.places[D] = plan.places[B]);
    says(&text, &["`b` (alive from step 1 `conv` to step 3 `add`)", "`d`", "in step 3 `add`", "column = 0, row = 0"]);
}

#[test]
fn a_tensor_freed_long_before_its_last_read_is_refuted() {
    let text = broken("plan-disjoint", |graph, _| graph.steps[4].reads.push(A));
    says(&text, &["`a` (alive from step 0 `pack` to step 4 `unpack`)", "`c`", "in step 2 `relu`", "pool = 1"]);
}

#[test]
fn a_tensor_freed_in_the_step_that_reads_it_is_refuted() {
    // Freed in the very step that still reads it.
    let text = broken("plan-disjoint", |_, plan| plan.places[B] = texels(1, [0, 0, 7, 6]));
    says(&text, &["`a` (alive from step 0 `pack` to step 1 `conv`)", "`b`", "in step 1 `conv`"]);
    let text = broken("plan-access", |_, plan| plan.places[B] = texels(1, [0, 0, 7, 6]));
    says(&text, &["step 1 `conv`", "one texture"]);
}

#[test]
fn two_tensors_written_to_one_place_in_one_step_are_refuted() {
    let text = broken("plan-disjoint", |graph, plan| {
        graph.tensors.push(tensor("unread", Scope::Texture, F32, &[1, 6, 7, 4]));
        graph.steps[2].writes.push(10);
        plan.places.push(plan.places[C]);
    });
    says(&text, &["`unread` (alive from step 2 `relu` to step 2 `relu`)", "`c`"]);
}

#[test]
fn a_region_of_the_right_area_and_wrong_extents_is_refuted() {
    let spoil = |_: &mut Graph, plan: &mut MemoryPlan| plan.pools[2] = texture(Scope::Texture, F32, 6, 7);
    says(&broken("plan-fits", spoil), &["`b` leaves its pool of 6 columns and 7 rows", "column = 6"]);
}

#[test]
fn reuse_across_element_types_is_refuted() {
    let spoil = |graph: &mut Graph, _: &mut MemoryPlan| graph.tensors[C].dtype = F16.into();
    says(&broken("plan-type", spoil), &["`c` holds float16, its pool float32", "pool = 1"]);
}

#[test]
fn reuse_across_scopes_is_refuted() {
    let spoil = |graph: &mut Graph, _: &mut MemoryPlan| {
        graph.tensors[D].scope = Scope::TextureWeight;
        graph.tensors[D].shape = vec![6, 1, 7, 4];
    };
    says(&broken("plan-type", spoil), &["`d` is in scope `texture:weight`, its pool in `texture`"]);
}

#[test]
fn a_pool_that_is_one_too_small_is_refuted() {
    let column = broken("plan-fits", |_, plan| plan.pools[3] = texture(Scope::Texture, F32, 6, 6));
    says(&column, &["`d` leaves", "column = 6"]);
    let row = broken("plan-fits", |_, plan| plan.pools[3] = texture(Scope::Texture, F32, 7, 5));
    says(&row, &["`d` leaves", "row = 5"]);
    let byte = broken("plan-fits", |_, plan| plan.pools[4] = buffer(1487));
    says(&byte, &["`y` leaves its pool of 1487 bytes", "byte = 1487"]);
}

#[test]
fn x_and_y_exchanged_are_refuted() {
    let wide = |plan: &mut MemoryPlan| plan.pools[3] = texture(Scope::Texture, F32, 9, 6);
    let (graph, mut right) = (network(), plan());
    wide(&mut right);
    right.places[D] = texels(3, [2, 0, 7, 6]);
    proved(&graph, &right);
    right.places[D] = texels(3, [0, 2, 7, 6]);
    says(&refuted("plan-fits", &graph, &right), &["`d` leaves", "row = 7"]);
}

#[test]
fn width_and_height_exchanged_are_refuted() {
    let text = broken("plan-fits", |_, plan| plan.places[A] = texels(1, [0, 0, 6, 5]));
    says(&text, &["`a` needs 5 columns and 6 rows, the plan gives it 6 columns and 5 rows"]);
}

#[test]
fn swapped_texture_conventions_are_refuted() {
    let text = broken("plan-fits", |_, plan| {
        plan.pools[0] = texture(Scope::TextureWeight, F32, 14, 6);
        plan.places[W] = texels(0, [0, 0, 7, 6]);
    });
    says(&text, &["`w` needs 14 columns and 3 rows"]);
    let text = broken("plan-fits", |graph, _| graph.tensors[A].scope = Scope::TextureWeight);
    says(&text, &["`a` needs 15 columns and 2 rows"]);
    let text = broken("plan-fits", |graph, _| graph.tensors[A].axis_separators = vec![1, 3]);
    says(&text, &["`a` needs 15 columns and 2 rows"]);
}

#[test]
fn an_output_freed_at_its_last_read_is_refuted() {
    let spoil = |graph: &mut Graph, _: &mut MemoryPlan| {
        graph.tensors[A].role = TensorRole::Output;
    };
    let text = broken("plan-disjoint", spoil);
    says(&text, &["`a` (alive from step 0 `pack` to the end)", "`c`", "in step 2 `relu`"]);
}

#[test]
fn an_input_overwritten_after_its_last_read_is_refuted() {
    let text = broken("plan-disjoint", |_, plan| plan.places[Y] = bytes(4, 144, 336));
    says(&text, &["`x` (alive from the start to the end)", "`y`", "in step 5 `scale`", "byte = 144"]);
    let text = broken("plan-access", |graph, _| graph.steps[4].writes.push(X));
    says(&text, &["step 4 `unpack` writes `x`, which is the caller's"]);
}

#[test]
fn a_memory_freed_before_an_input_is_read_is_refuted() {
    // Something made and read before the input is: the input is there from the start.
    let mut graph = network();
    let mut plan = plan();
    graph.tensors.push(tensor("early", Scope::Global, F32, &[3]));
    plan.places.push(bytes(4, 1488, 12));
    plan.pools[4] = buffer(1500);
    graph.steps.insert(0, step("make", &[], &[10]));
    proved(&graph, &plan);
    plan.places[10] = bytes(4, 0, 12);
    says(&refuted("plan-disjoint", &graph, &plan), &["`x` (alive from the start", "`early`", "in step 0 `make`"]);
}

#[test]
fn a_view_as_a_tensor_of_its_own_is_refuted() {
    let text = broken("plan-disjoint", |_, plan| {
        plan.pools.push(buffer(672));
        plan.places[U] = bytes(5, 0, 672);
    });
    says(&text, &["`u` is a view of `s` and lies elsewhere", "pool = 5"]);
    // The root freed at its own last touch, though a view is read later.
    let text = broken("plan-disjoint", |graph, plan| {
        graph.tensors.push(tensor("t", Scope::Global, F32, &[168]));
        graph.steps.insert(5, step("make", &[D], &[10]));
        plan.places.push(bytes(4, 480, 672));
    });
    says(&text, &["`s` (alive from step 4 `unpack` to step 6 `scale`)", "`t`", "in step 5 `make`"]);
}

#[test]
fn a_chain_of_views_keeps_its_root_alive() {
    // Only the last link of s <- v <- u is read; with the chain cut it would be read before it is written.
    let text = broken("plan-disjoint", |graph, _| graph.tensors[V].view_of = None);
    says(&text, &["step 5 `scale` reads `u`, which no step before it wrote"]);
    // An output that is a view keeps its root to the end.
    let (mut graph, mut plan) = (network(), plan());
    graph.tensors[U].role = TensorRole::Output;
    graph.tensors.push(tensor("late", Scope::Global, F32, &[3]));
    graph.steps.push(step("last", &[Y], &[10]));
    plan.pools[4] = buffer(1500);
    plan.places.push(bytes(4, 1488, 12));
    proved(&graph, &plan);
    plan.places[10] = bytes(4, 480, 12);
    says(&refuted("plan-disjoint", &graph, &plan), &["`s` (alive from step 4 `unpack` to the end)", "`late`"]);
}

#[test]
fn a_step_that_reads_and_writes_one_place_is_refuted() {
    let text = broken("plan-access", |graph, _| graph.steps[2].writes.push(B));
    says(&text, &["step 2 `relu` writes `b` where `b` lies, which it reads"]);
    // Through a view as well.
    let text = broken("plan-access", |graph, _| graph.steps[5].writes.push(S));
    says(&text, &["step 5 `scale` writes `s` where `u` lies, which it reads"]);
    let text = broken("plan-access", |graph, _| graph.steps[4].writes.push(V));
    says(&text, &["step 4 `unpack` writes the memory of `v` twice, as `s` as well"]);
}

#[test]
fn a_texture_read_and_written_side_by_side_is_refuted() {
    let text = broken("plan-access", |_, plan| {
        plan.pools[2] = texture(Scope::Texture, F32, 14, 6);
        plan.places[C] = texels(2, [7, 0, 7, 6]);
    });
    says(&text, &["step 2 `relu` writes `c` and reads `b`, which lie in one texture", "pool = 2"]);
}

/// `p` and `q` side by side in one texture, both written by step 0 and read by step 1.
fn neighbours() -> (Graph, MemoryPlan) {
    let mut tensors = vec![
        tensor("p", Scope::Texture, F16, &[3, 5, 4]),
        tensor("q", Scope::Texture, F16, &[4, 2, 4]),
        tensor("r", Scope::Global, F16, &[9]),
    ];
    tensors[2].role = TensorRole::Output;
    let graph = Graph { tensors, steps: vec![step("make", &[], &[0, 1]), step("use", &[0, 1], &[2])] };
    let places = vec![texels(0, [2, 1, 5, 3]), texels(0, [7, 0, 2, 4]), bytes(1, 0, 18)];
    (graph, MemoryPlan { pools: vec![texture(Scope::Texture, F16, 9, 7), buffer(18)], places })
}

#[test]
fn rectangles_that_touch_are_proved_and_those_that_share_one_texel_are_refuted() {
    let (graph, right) = neighbours();
    proved(&graph, &right);
    for (region, texel) in [
        ([6, 3, 2, 4], "column = 6, row = 3"),
        ([1, 3, 2, 4], "column = 2, row = 3"),
        ([3, 1, 2, 4], "column = 3, row = 1"),
    ] {
        let mut plan = right.clone();
        plan.places[1] = texels(0, region);
        says(&refuted("plan-disjoint", &graph, &plan), &["`p`", "`q`", "in step 0 `make`", texel]);
    }
    for region in [[7, 3, 2, 4], [0, 0, 2, 4], [2, 4, 2, 4]] {
        let mut plan = right.clone();
        plan.pools[0] = texture(Scope::Texture, F16, 9, 8);
        plan.places[1] = texels(0, region);
        assert!(check(&graph, &plan)[0].verdict.is_proved(), "{region:?}");
    }
}

#[test]
fn an_offset_in_elements_instead_of_bytes_is_refuted() {
    // 120 elements of 4 bytes stand before `s`.
    let spoil = |_: &mut Graph, plan: &mut MemoryPlan| {
        for tensor in [S, V, U] {
            plan.places[tensor] = bytes(4, 120, 672);
        }
    };
    says(&broken("plan-disjoint", spoil), &["`x`", "`s`", "in step 4 `unpack`", "byte = 120"]);
}

#[test]
fn an_address_that_is_not_aligned_is_refuted() {
    let spoil = |graph: &mut Graph, plan: &mut MemoryPlan| {
        plan.pools[4] = buffer(1489);
        graph.tensors[Y].dtype = F16.into();
        plan.places[Y] = bytes(4, 1153, 336);
    };
    says(
        &broken("plan-type", spoil),
        &["`y` holds float16 and begins at a byte that 2 does not divide", "byte = 1153"],
    );
}

#[test]
fn a_size_in_elements_instead_of_bytes_is_refuted() {
    let text = broken("plan-fits", |_, plan| plan.places[Y] = bytes(4, 1152, 168));
    says(&text, &["`y` needs 336 bytes, the plan gives it 168 bytes"]);
}

#[test]
fn a_region_or_a_pool_of_the_wrong_kind_is_refuted() {
    says(&broken("plan-fits", |_, plan| plan.places[A] = bytes(1, 0, 480)), &["`a` needs 5 columns and 6 rows"]);
    says(&broken("plan-fits", |_, plan| plan.pools[1] = buffer(4096)), &["`a` lies in a pool of 4096 bytes"]);
    says(&broken("plan-type", |_, plan| plan.pools[1] = buffer(4096)), &["`a` is in scope `texture`"]);
    let spoil = |_: &mut Graph, plan: &mut MemoryPlan| plan.pools[1].room = Room::Bytes(480);
    says(&broken("plan-fits", spoil), &["a pool is in scope `texture` and measured in bytes"]);
    let spoil = |_: &mut Graph, plan: &mut MemoryPlan| plan.pools[1].dtype = ScalarType::Float64.into();
    says(&broken("plan-fits", spoil), &["a pool holds float64"]);
}

#[test]
fn offsets_and_sizes_near_2_to_the_64_are_refuted() {
    let text = broken("plan-fits", |_, plan| plan.places[Y] = bytes(4, u64::MAX - 1, 336));
    says(&text, &["`y` leaves its pool"]);
    let text = broken("plan-fits", |_, plan| plan.places[D] = texels(3, [u64::MAX, u64::MAX, 7, 6]));
    says(&text, &["`d` leaves its pool"]);
    let text = broken("plan-fits", |graph, _| graph.tensors[Y].shape = vec![1 << 62, 1 << 62]);
    says(&text, &["`y` is larger than 2^63 - 1"]);
    let text = broken("plan-fits", |graph, _| graph.tensors[A].shape = vec![1 << 62, 1 << 62, 5, 4]);
    says(&text, &["`a` is larger than 2^63 - 1"]);
    let text = broken("plan-fits", |graph, _| graph.tensors[A].shape = vec![u64::MAX, 5, 4]);
    says(&text, &["`a` has the extent"]);
    // Two that overlap only beyond 64 bits.
    let text = broken("plan-disjoint", |_, plan| {
        plan.places[Y] = bytes(4, u64::MAX - 7, 336);
        for view in [S, V, U] {
            plan.places[view] = bytes(4, u64::MAX - 3, 672);
        }
    });
    says(&text, &["`s`", "`y`", "byte = 18446744073709551612"]);
}

/// The verdict of all obligations of the spoilt network, which must not be proved.
fn unproved(spoil: impl FnOnce(&mut Graph, &mut MemoryPlan)) -> Vec<String> {
    let (mut graph, mut plan) = (network(), plan());
    spoil(&mut graph, &mut plan);
    let reports = check(&graph, &plan);
    for report in &reports {
        assert!(!report.verdict.is_proved(), "{} is proved", report.obligation);
    }
    reports.iter().map(|report| report.verdict.to_string()).collect()
}

#[test]
fn an_inconsistent_graph_or_plan_is_never_proved() {
    says(&unproved(|graph, _| graph.tensors[S].view_of = Some(U))[0], &["unknown", "is a view of itself"]);
    says(&unproved(|graph, _| graph.tensors[A].view_of = Some(A))[0], &["`a` is a view of itself"]);
    says(&unproved(|graph, _| graph.tensors[A].view_of = Some(99))[0], &["`a` is a view of tensor 99 of 10"]);
    says(&unproved(|graph, _| graph.steps[2].reads.push(10))[0], &["step 2 `relu` uses tensor 10 of 10"]);
    says(&unproved(|graph, _| graph.tensors[B].name = "a".into())[0], &["two tensors are called `a`"]);
    says(&unproved(|_, plan| plan.places[C].pool = 5)[0], &["refuted", "`c` lies in pool 5 of 5"]);
    says(&unproved(|_, plan| plan.places.truncate(9))[0], &["refuted", "10 tensors, the plan places for 9"]);
    says(&unproved(|graph, plan| (*graph, *plan) = Default::default())[0], &["vacuous"]);
}

#[test]
fn a_read_or_output_of_an_unwritten_tensor_is_refuted() {
    says(&broken("plan-disjoint", |graph, _| graph.steps[0].writes.clear()), &["step 1 `conv` reads `a`"]);
    says(&broken("plan-disjoint", |graph, _| graph.steps.swap(0, 1)), &["step 0 `conv` reads `a`"]);
    let text = broken("plan-disjoint", |graph, _| graph.steps[5].writes.clear());
    says(&text, &["the caller takes `y`, which no step writes"]);
    let text = broken("plan-disjoint", |graph, _| graph.tensors[X].role = TensorRole::Intermediate);
    says(&text, &["step 0 `pack` reads `x`"]);
}

#[test]
fn a_graph_without_steps_shares_nothing_among_its_inputs() {
    let mut graph = network();
    graph.steps.clear();
    graph.tensors.truncate(2);
    graph.tensors[W] = GraphTensor { role: TensorRole::Input, ..tensor("w", Scope::Global, F32, &[7]) };
    let mut plan = MemoryPlan { pools: vec![buffer(508)], places: vec![bytes(0, 28, 480), bytes(0, 0, 28)] };
    assert!(check(&graph, &plan)[0].verdict.is_proved());
    plan.places[W] = bytes(0, 4, 28);
    says(&refuted("plan-disjoint", &graph, &plan), &["`x`", "`w`", "all the time", "byte = 28"]);
}

#[test]
fn tensors_without_elements_share_nothing() {
    let (mut graph, mut plan) = neighbours();
    graph.tensors[1].shape = vec![0, 2, 4];
    plan.places[1] = texels(0, [3, 2, 2, 0]);
    proved(&graph, &plan);
}

#[test]
fn two_deciders_agree_on_every_pair_of_a_pool() {
    let reports = judge().recording().check_plan(&network(), &plan());
    for report in &reports {
        assert!(report.verdict.is_proved(), "{}: {}", report.obligation, report.verdict);
    }
    // x, s and y in the buffer, a and c in texture 1: a goal for each but the last one of its pool.
    assert_eq!(reports[0].method.to_string(), "backward walk, sweep, 3 goals to z3");
    assert!(reports[0].proof.is_confirmed());
    assert_eq!(reports[1].method.to_string(), "evaluation, 1 goal to z3");
    assert!(reports[1].proof.is_confirmed());
    let mut broken = plan();
    broken.places[D] = broken.places[B];
    assert_eq!(judge().recording().check_plan(&network(), &broken)[0].verdict.word(), "refuted");
}

/// A chain of `n` steps over textures of ragged sizes, four of them alive at once, each in the next of five pools.
fn chain(n: u64) -> (Graph, MemoryPlan) {
    let size = |number: u64| [3 + number % 11, 5 + number % 7];
    let (mut graph, mut plan) = (Graph::default(), MemoryPlan::default());
    plan.pools = (0..5).map(|_| texture(Scope::Texture, F32, 13, 11)).collect();
    for number in 0..n {
        let [width, height] = size(number);
        graph.tensors.push(tensor(&format!("t{number}"), Scope::Texture, F32, &[height, width, 4]));
        let at = usize::try_from(number).unwrap();
        graph.steps.push(step("step", &(at.saturating_sub(4)..at).collect::<Vec<_>>(), &[at]));
        plan.places.push(texels(at % 5, [0, 0, width, height]));
    }
    (graph, plan)
}

#[test]
fn ten_thousand_tensors_are_decided_in_seconds_even_side_by_side() {
    let start = Instant::now();
    let (graph, plan) = chain(10_000);
    proved(&graph, &plan);
    // All alive until the end, in rows of one texture: the sweep may not look at all pairs.
    let n = 10_000_u64;
    let (mut wide, mut side) = (Graph::default(), MemoryPlan::default());
    side.pools.push(texture(Scope::Texture, F32, 300, 2000));
    for number in 0..n {
        wide.tensors.push(tensor(&format!("t{number}"), Scope::Texture, F32, &[5, 3, 4]));
        side.places.push(texels(0, [number % 100 * 3, number / 100 * 5, 3, 5]));
    }
    wide.tensors.iter_mut().for_each(|tensor| tensor.role = TensorRole::Output);
    wide.steps.push(step("make", &[], &(0..10_000).collect::<Vec<_>>()));
    proved(&wide, &side);
    side.places[9_999] = texels(0, [296, 494, 3, 5]);
    says(&refuted("plan-disjoint", &wide, &side), &["`t9999`", "column = 296"]);
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}

#[test]
fn too_many_rectangles_to_compare_are_soon_unknown() {
    let n = 20_000_u64;
    // A row or a column of them is easily decided; on the diagonal beside a very wide and a very high one each could meet
    // each.
    for (kind, word) in [("row", "proved"), ("column", "proved"), ("diagonal", "unknown")] {
        let (mut graph, mut plan) = (Graph::default(), MemoryPlan::default());
        plan.pools.push(texture(Scope::Texture, F32, n + 1, n + 1));
        let mut push = |[x, y, width, height]: [u64; 4]| {
            let name = format!("t{}", graph.tensors.len());
            let role = TensorRole::Output;
            let shape = [height, width, 4];
            graph.tensors.push(GraphTensor { role, ..tensor(&name, Scope::Texture, F32, &shape) });
            plan.places.push(texels(0, [x, y, width, height]));
        };
        if kind == "diagonal" {
            push([0, 0, n + 1, 1]);
            push([0, 1, 1, n]);
        }
        let place = |at: u64| if kind == "row" { [at, 1] } else { [if kind == "column" { 1 } else { at }, at] };
        (1..=n).map(place).for_each(|[x, y]| push([x, y, 1, 1]));
        graph.steps.push(step("make", &[], &(0..graph.tensors.len()).collect::<Vec<_>>()));
        let reports = check(&graph, &plan);
        let verdict = &reports[0].verdict;
        assert_eq!(verdict.word(), word, "{kind}: {verdict}");
        assert!(reports[1].verdict.is_proved());
    }
}

#[test]
fn a_long_chain_of_views_is_followed_without_recursion() {
    let (mut graph, mut plan) = neighbours();
    for number in 3..200_000_usize {
        let view_of = Some(if number == 3 { 2 } else { number - 1 });
        graph.tensors.push(GraphTensor { view_of, ..tensor(&format!("v{number}"), Scope::Global, F16, &[9]) });
        plan.places.push(bytes(1, 0, 18));
    }
    graph.tensors.reverse();
    let last = graph.tensors.len() - 1;
    graph.tensors.iter_mut().for_each(|tensor| tensor.view_of = tensor.view_of.map(|of| last - of));
    plan.places.reverse();
    for step in &mut graph.steps {
        step.reads.iter_mut().chain(&mut step.writes).for_each(|tensor| *tensor = last - *tensor);
    }
    proved(&graph, &plan);
}

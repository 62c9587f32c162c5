//! Broken plans and broken contents of networks: each fault is refuted by the judge, or found by comparison at the first tensor that it
//! affects. The plan and the network as they were made are tried first.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::OnceLock;

use common::{Lowered, Writer, adreno, float, int, options};
use tilewright_interp::Tensor;
use tilewright_ir::{Graph, MemoryPlan, PoolRules, Region, Room, ScalarType, TensorRole, TextureLimits};
use tilewright_memory::planner::{Strategy, plan_for};
use tilewright_network::profile::PROFILES;
use tilewright_verify::Verdict;

/// A normalization, a difference, a concatenation and a convolution in textures, with ragged extents.
fn model() -> Writer {
    let mut writer = Writer::new(9)
        .input("x", &[1, 8, 3, 5])
        .input("z", &[1, 8, 3, 5])
        .constant("scale", &[8])
        .constant("bias", &[8])
        .constant("mean", &[8])
        .constant("variance", &[8])
        .node("BatchNormalization", &["x", "scale", "bias", "mean", "variance"], "n", &[float("epsilon", 0.01)])
        .node("LeakyRelu", &["z"], "l", &[float("alpha", 0.25)])
        .node("Sub", &["n", "l"], "s", &[])
        .node("Concat", &["s", "n"], "k", &[int("axis", 1)])
        .constant("w", &[16, 16, 1, 1])
        .constant("b", &[16])
        .node("Conv", &["k", "w", "b"], "c", &[])
        .node("Relu", &["c"], "r", &[])
        .node("Tanh", &["r"], "y", &[])
        .output("y");
    let variance = writer.graph().initializer.iter_mut().find(|tensor| tensor.name == "variance").unwrap();
    variance.float_data.iter_mut().for_each(|value| *value = value.abs());
    writer
}

fn lowered() -> Lowered {
    static MODEL: OnceLock<Lowered> = OnceLock::new();
    MODEL.get_or_init(|| Lowered::new(model().model(), &adreno())).clone()
}

fn tensor(graph: &Graph, name: &str) -> usize {
    graph.tensors.iter().position(|tensor| tensor.name == name).unwrap()
}

/// The name of the first tensor that differs from the reference.
fn first_difference(lowered: &Lowered, inputs: &[Tensor]) -> Option<String> {
    lowered.interpreted(inputs).into_iter().find(|one| one.different > 0).map(|one| one.tensor)
}

/// What refutes a plan; nothing of it may be proved in whole.
fn refutation(graph: &Graph, plan: &MemoryPlan, rules: PoolRules) -> Option<(String, String)> {
    let reports = options().judge().unwrap().check_plan_for(graph, plan, rules);
    let refuted = reports.iter().find_map(|report| {
        let Verdict::Refuted(found) = &report.verdict else { return None };
        Some((report.obligation.to_string(), found.text.clone()))
    });
    assert!(refuted.is_some() || reports.iter().all(|report| report.verdict.is_proved()), "{reports:?}");
    refuted
}

/// The refutation of the plan of [`model`] after a change, by the rules of the target.
fn broken(change: impl Fn(&mut Graph, &mut MemoryPlan)) -> (String, String) {
    let Lowered { network, mut plan, .. } = lowered();
    let mut graph = network.graph.graph;
    let rules = adreno().pool_rules();
    assert_eq!(refutation(&graph, &plan, rules), None);
    change(&mut graph, &mut plan);
    refutation(&graph, &plan, rules).unwrap()
}

#[test]
fn the_network_itself_agrees() {
    let lowered = lowered();
    assert_eq!(first_difference(&lowered, &lowered.inputs()), None);
}

#[test]
fn a_pitch_that_is_ignored_is_refuted() {
    let Lowered { network, plan, .. } = lowered();
    let graph = &network.graph.graph;
    let rules = PoolRules { pitch: 8, ..adreno().pool_rules() };
    let (obligation, text) = refutation(graph, &plan, rules).unwrap();
    assert!(obligation == "plan-fits" && text.contains("the pitch of 8 texels does not divide"), "{obligation} {text}");
    for strategy in [Strategy::Unshared, Strategy::Compatible, Strategy::Best] {
        let plan = plan_for(graph, strategy, rules).unwrap();
        assert_eq!(refutation(graph, &plan, rules), None, "{strategy:?}");
        let is_padded = |room| matches!(room, Room::Texels { width, .. } if width % 8 == 0);
        assert!(plan.pools.iter().filter(|pool| pool.scope.is_texture()).all(|pool| is_padded(pool.room)));
    }
}

#[test]
fn a_texture_above_the_limits_is_refuted() {
    let Lowered { network, plan, .. } = lowered();
    let limits = TextureLimits { width: 4, height: 16384 };
    let rules = PoolRules::any_width(limits);
    let (obligation, text) = refutation(&network.graph.graph, &plan, rules).unwrap();
    assert!(obligation == "plan-fits" && text.contains("the limits are 4x16384"), "{obligation} {text}");
    // The planner refuses such limits, and those that leave no room for the pitch.
    assert!(plan_for(&network.graph.graph, Strategy::Best, rules).is_err());
    let narrow = PoolRules { limits: TextureLimits { width: 7, height: 16384 }, pitch: 8 };
    assert!(plan_for(&network.graph.graph, Strategy::Best, narrow).is_err());
}

#[test]
fn constants_in_a_pool_that_is_overwritten_are_refuted() {
    let (obligation, text) = broken(|graph, plan| {
        let [output, constant] = ["y", "b.vector"].map(|name| tensor(graph, name));
        assert_eq!(graph.tensors[constant].role, TensorRole::Constant);
        let pool = plan.places[constant].pool;
        plan.pools[pool].room = Room::Bytes(1 << 16);
        plan.places[output].pool = pool;
        if let Region::Bytes { offset, .. } = &mut plan.places[output].region {
            *offset = 0;
        }
    });
    assert!(obligation == "plan-disjoint" && text.contains("`b.vector`"), "{obligation} {text}");
}

#[test]
fn a_step_that_writes_a_constant_is_refuted() {
    let (obligation, text) = broken(|graph, _| {
        let constant = tensor(graph, "scale.vector");
        graph.steps.last_mut().unwrap().writes.push(constant);
    });
    assert!(obligation == "plan-access" && text.contains("which is the caller's"), "{obligation} {text}");
}

#[test]
fn an_elementwise_step_in_place_is_refuted_without_a_proof_of_its_kernel() {
    // In buffers, where no rule about images forbids it.
    let Lowered { network, mut plan, .. } = Lowered::new(model().model(), &PROFILES[0]);
    let graph = &network.graph.graph;
    let rules = PROFILES[0].pool_rules();
    assert_eq!(refutation(graph, &plan, rules), None);
    let [c, r] = ["c", "r"].map(|name| tensor(graph, name));
    plan.places[r] = plan.places[c];
    let (obligation, text) = refutation(graph, &plan, rules).unwrap();
    assert!(obligation == "plan-disjoint" && text.contains("`c`") && text.contains("`r`"), "{obligation} {text}");
}

#[test]
fn one_texture_that_a_step_reads_and_writes_is_refuted() {
    let (obligation, text) = broken(|graph, plan| {
        // Side by side, so that no texel is shared.
        let [c, r] = ["c", "r"].map(|name| tensor(graph, name));
        let pool = plan.places[c].pool;
        plan.pools[pool].room = Room::Texels { width: 64, height: 64 };
        plan.places[r].pool = pool;
        if let Region::Texels { x, .. } = &mut plan.places[r].region {
            *x = 32;
        }
    });
    assert!(obligation == "plan-access" && text.contains("lie in one texture"), "{obligation} {text}");
}

#[test]
fn other_channels_an_odd_offset_and_a_step_too_early_are_refuted() {
    let (obligation, _) = broken(|graph, plan| {
        let pool = plan.places[tensor(graph, "c")].pool;
        plan.pools[pool].dtype = ScalarType::Float16.into();
    });
    assert_eq!(obligation, "plan-type");
    let (obligation, text) = broken(|graph, plan| {
        let place = plan.places[tensor(graph, "y")];
        plan.pools[place.pool].room = Room::Bytes(1 << 16);
        if let Region::Bytes { offset, .. } = &mut plan.places[tensor(graph, "y")].region {
            *offset += 2;
        }
    });
    assert!(obligation == "plan-type" && text.contains("does not divide"), "{obligation} {text}");
    let (obligation, text) = broken(|graph, _| {
        let last = graph.steps.len() - 1;
        graph.steps.swap(last - 1, last);
    });
    assert!(obligation == "plan-disjoint" && text.contains("which no step before it wrote"), "{obligation} {text}");
}

/// The first difference after the contents of a constant are replaced by a function of their places in memory.
fn with_constant(name: &str, contents: impl Fn(&Tensor, usize) -> usize) -> Option<String> {
    let lowered = lowered();
    let mut inputs = lowered.inputs();
    let given = lowered.network.graph.graph.tensors.iter().filter(|tensor| tensor.role.is_given());
    let at = given.map(|tensor| tensor.name.as_str()).position(|other| other == name).unwrap();
    let right = inputs[at].clone();
    for lane in 0..right.lane_count() {
        inputs[at].set(lane, right.get(contents(&right, lane)).unwrap());
    }
    first_difference(&lowered, &inputs)
}

#[test]
fn constants_in_another_order_differ_at_their_node() {
    assert_eq!(with_constant("w.filters", |_, lane| lane), None);
    // Filters by [i, o] where [o, i] belongs: 16 x 16, packed as [o / 4, i, o % 4].
    let exchanged = |_: &Tensor, lane: usize| {
        let (o, i) = (lane / 64 * 4 + lane % 4, lane / 4 % 16);
        i / 4 * 64 + o * 4 + i % 4
    };
    assert_eq!(with_constant("w.filters", exchanged), Some("c".to_owned()));
    // OIHW where OIHW4o belongs.
    let unpacked = |_: &Tensor, lane: usize| (lane / 64 * 4 + lane % 4) * 16 + lane / 4 % 16;
    assert_eq!(with_constant("w.filters", unpacked), Some("c".to_owned()));
    // A bias that begins one texel later, and one with the lanes backwards.
    assert_eq!(with_constant("b.vector", |right, lane| (lane + 4) % right.lane_count()), Some("c".to_owned()));
    assert_eq!(with_constant("scale.vector", |_, lane| lane ^ 3), Some("n".to_owned()));
}

#[test]
fn constants_of_other_nodes_differ_at_their_node() {
    let lowered = lowered();
    let mut inputs = lowered.inputs();
    let given = lowered.network.graph.graph.tensors.iter().filter(|tensor| tensor.role.is_given());
    let names: Vec<&str> = given.map(|tensor| tensor.name.as_str()).collect();
    let [bias, mean] = ["bias.vector", "mean.vector"].map(|name| names.iter().position(|one| *one == name).unwrap());
    inputs.swap(bias, mean);
    assert_eq!(first_difference(&lowered, &inputs), Some("n".to_owned()));
}

#[test]
fn operands_in_another_order_differ_at_their_node() {
    for (node, name) in [("n_s", "s"), ("n_k", "k")] {
        let mut lowered = lowered();
        let steps = &mut lowered.network.graph.graph.steps;
        let step = steps.iter_mut().find(|step| step.name == node).unwrap();
        step.reads.swap(0, 1);
        assert_eq!(first_difference(&lowered, &lowered.inputs()), Some(name.to_owned()));
    }
}

#[test]
fn a_kernel_of_another_operator_differs_at_its_step() {
    let mut lowered = lowered();
    let steps = &lowered.network.graph.graph.steps;
    let [c, l] = ["n_s", "n_l"].map(|name| steps.iter().position(|step| step.name == name).unwrap());
    // The difference reads its first operand twice.
    lowered.network.graph.graph.steps[c].reads[1] = lowered.network.graph.graph.steps[c].reads[0];
    assert_eq!(first_difference(&lowered, &lowered.inputs()), Some("s".to_owned()));
    assert_ne!(lowered.network.graph.functions[c], lowered.network.graph.functions[l]);
}

#[test]
fn faults_are_made_everywhere_and_each_is_found() {
    let Lowered { network, .. } = lowered();
    let graph = &network.graph.graph;
    let mut count = 0;
    // Each result over each operand of its step that has the same room.
    for step in &graph.steps {
        let pairs = step.reads.iter().flat_map(|&read| step.writes.iter().map(move |&written| (read, written)));
        for (read, written) in pairs {
            let [one, other] = [read, written].map(|tensor| &graph.tensors[tensor]);
            if one.scope == other.scope && one.room() == other.room() {
                let (obligation, _) = broken(|_, plan| plan.places[written] = plan.places[read]);
                assert!(["plan-disjoint", "plan-access"].contains(&&*obligation), "{} {obligation}", step.name);
                count += 1;
            }
        }
    }
    // Each step before the one that writes what it reads.
    for at in 1..graph.steps.len() {
        if graph.steps[at].reads.iter().any(|read| graph.steps[at - 1].writes.contains(read)) {
            let (obligation, text) = broken(|graph, _| graph.steps.swap(at - 1, at));
            assert!(obligation == "plan-disjoint" && text.contains("which no step before it wrote"), "{text}");
            count += 1;
        }
    }
    // Each constant by one lane, and by one texel.
    for constant in graph.tensors.iter().filter(|tensor| tensor.role == TensorRole::Constant) {
        for by in [1, 4] {
            let found = with_constant(&constant.name, |right, lane| (lane + by) % right.lane_count());
            assert!(found.is_some(), "{} by {by}", constant.name);
            count += 1;
        }
    }
    assert!(count >= 20, "{count} faults");
}

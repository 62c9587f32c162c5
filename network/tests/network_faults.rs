//! Broken networks: each fault is refused, refuted or found by comparison at the first tensor that it affects. Nothing here may be
//! proved and agree.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::sync::OnceLock;

use common::{Lowered, Writer, adreno, float, ints, options, proved};
use tilewright_ir::{Region, Scope};
use tilewright_memory::runtime::{GraphFault, Network, interpret_graph};
use tilewright_network::model::{Op, Window};
use tilewright_network::ops::{Signature, program, unwritable};
use tilewright_network::place::{Arrangement, Operand};
use tilewright_verify::Verdict;

/// A convolution, a pool, two leaky functions and a convolution, with all channels but one odd.
fn small() -> Writer {
    Writer::new(9)
        .input("x", &[1, 6, 7, 9])
        .constant("w", &[5, 6, 3, 2])
        .constant("b", &[5])
        .node("Conv", &["x", "w", "b"], "c", &[ints("pads", &[1, 0, 1, 0])])
        .node("LeakyRelu", &["c"], "l", &[float("alpha", 0.25)])
        .node("LeakyRelu", &["l"], "m", &[float("alpha", 0.5)])
        .node("MaxPool", &["m"], "p", &[ints("kernel_shape", &[3, 3]), ints("pads", &[1, 1, 1, 1])])
        .constant("v", &[3, 5, 2, 2])
        .node("Conv", &["p", "v"], "y", &[])
        .output("y")
}

fn lowered() -> Lowered {
    static SMALL: OnceLock<Lowered> = OnceLock::new();
    SMALL.get_or_init(|| Lowered::new(small().model(), &adreno())).clone()
}

/// The name of the first tensor that differs.
fn first_difference(lowered: &Lowered, inputs: &[tilewright_interp::Tensor]) -> Option<String> {
    lowered.interpreted(inputs).into_iter().find(|one| one.different > 0).map(|one| one.tensor)
}

/// The tensor of a name.
fn tensor(lowered: &Lowered, name: &str) -> usize {
    lowered.network.graph.graph.tensors.iter().position(|tensor| tensor.name == name).unwrap()
}

/// The place of a tensor among the inputs of the graph.
fn among_inputs(lowered: &Lowered, name: &str) -> usize {
    let inputs = lowered.network.graph.graph.tensors.iter().filter(|tensor| tensor.role.is_given());
    inputs.map(|tensor| tensor.name.as_str()).position(|other| other == name).unwrap()
}

/// Why a network is refused before anything runs.
fn refusal(lowered: &Lowered) -> String {
    let network = Network::new(&lowered.network.graph, &lowered.plan, &lowered.module).unwrap();
    match interpret_graph(&network, &lowered.inputs()) {
        Err(GraphFault::Input(faults)) => faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_network_itself_agrees() {
    let lowered = lowered();
    assert_eq!(first_difference(&lowered, &lowered.inputs()), None);
}

#[test]
fn weights_packed_in_another_order_differ_at_their_node() {
    let lowered = lowered();
    let mut inputs = lowered.inputs();
    let weights = among_inputs(&lowered, "w.filters");
    let operand = &lowered.network.tensors[tensor(&lowered, "w.filters")].operand;
    let value = lowered.network.tensors[tensor(&lowered, "w.filters")].value;
    let contents = lowered.model.values[value].contents.clone().unwrap();
    // Rows and columns of the window exchanged: the element of [o, i, kx, ky] where that of [o, i, ky, kx] belongs.
    let exchanged = |at: usize| contents.float(at / 6 * 6 + at % 2 * 3 + at / 2 % 3).unwrap();
    inputs[weights] = operand.packed(exchanged).unwrap();
    assert_eq!(first_difference(&lowered, &inputs), Some("c".to_owned()));
}

#[test]
fn a_wrong_lane_differs_at_its_node() {
    let lowered = lowered();
    let mut inputs = lowered.inputs();
    for name in ["w.filters", "b.vector"] {
        let at = among_inputs(&lowered, name);
        let right = inputs[at].clone();
        let mut wrong = right.clone();
        for lane in 0..right.lane_count() {
            wrong.set(lane, right.get(lane ^ 1).unwrap());
        }
        inputs[at] = wrong;
        assert_eq!(first_difference(&lowered, &inputs), Some("c".to_owned()), "{name}");
        inputs[at] = right;
    }
    assert_eq!(first_difference(&lowered, &inputs), None);
}

#[test]
fn what_lies_in_the_padding_reaches_no_result() {
    let lowered = lowered();
    let mut inputs = lowered.inputs();
    // Lanes 1 to 3 of the second texel of filters are padding: 5 filters.
    let at = among_inputs(&lowered, "w.filters");
    let operand = lowered.network.tensors[tensor(&lowered, "w.filters")].operand.clone();
    let elements: std::collections::BTreeSet<usize> = operand.positions().collect();
    for lane in (0..inputs[at].lane_count()).filter(|lane| !elements.contains(lane)) {
        inputs[at].set(lane, tilewright_ir::Scalar::Float(f64::NAN));
    }
    assert_eq!(first_difference(&lowered, &inputs), None);
}

#[test]
fn a_tensor_freed_early_is_refuted() {
    let mut lowered = lowered();
    let [c, l] = ["c", "l"].map(|name| tensor(&lowered, name));
    assert_ne!(lowered.plan.places[c].pool, lowered.plan.places[l].pool);
    lowered.plan.places[l] = lowered.plan.places[c];
    let reports = options().judge().unwrap().check_plan(&lowered.network.graph.graph, &lowered.plan);
    assert!(reports.iter().any(|report| matches!(report.verdict, Verdict::Refuted(_))), "{reports:?}");
}

#[test]
fn a_place_beyond_its_pool_is_refuted() {
    let mut lowered = lowered();
    let at = tensor(&lowered, "m");
    let place = &mut lowered.plan.places[at];
    if let Region::Texels { x, .. } = &mut place.region {
        *x += 1;
    }
    let reports = options().judge().unwrap().check_plan(&lowered.network.graph.graph, &lowered.plan);
    assert!(reports.iter().any(|report| matches!(report.verdict, Verdict::Refuted(_))), "{reports:?}");
}

#[test]
fn a_wrong_scope_on_one_edge_is_refused() {
    let mut lowered = lowered();
    let at = tensor(&lowered, "l");
    lowered.network.graph.graph.tensors[at].scope = Scope::TextureWeight;
    assert!(
        refusal(&lowered).contains("is in scope `texture`, tensor `l` in `texture:weight`"),
        "{}",
        refusal(&lowered)
    );
    lowered.network.graph.graph.tensors[at].scope = Scope::Global;
    assert!(refusal(&lowered).contains("is in scope `texture`, tensor `l` in `global`"));
}

#[test]
fn swapped_conventions_are_refused() {
    let mut lowered = lowered();
    let at = tensor(&lowered, "w.filters");
    lowered.network.graph.graph.tensors[at].scope = Scope::Texture;
    assert!(refusal(&lowered).contains("is in scope `texture:weight`"));
}

#[test]
fn a_stale_kernel_differs_at_the_first_step_that_runs_it() {
    let mut lowered = lowered();
    let steps = &lowered.network.graph.graph.steps;
    let [first, second] = ["n_l", "n_m"].map(|name| steps.iter().position(|step| step.name == name).unwrap());
    // The same shapes and scopes, another factor: only the attributes tell the two signatures apart.
    assert_ne!(lowered.network.graph.functions[first], lowered.network.graph.functions[second]);
    lowered.network.graph.functions[second] = lowered.network.graph.functions[first].clone();
    assert_eq!(first_difference(&lowered, &lowered.inputs()), Some("m".to_owned()));
    // A kernel for other scopes is refused.
    let conversion = steps_of_kind(&lowered, "convert").unwrap();
    lowered.network.graph.functions[second] = lowered.network.graph.functions[conversion].clone();
    assert!(refusal(&lowered).contains("graph-parameters") || refusal(&lowered).contains("scope"));
}

fn steps_of_kind(lowered: &Lowered, kind: &str) -> Option<usize> {
    lowered.network.graph.functions.iter().position(|name| name.as_ref().is_some_and(|name| name.starts_with(kind)))
}

#[test]
fn equal_signatures_share_a_kernel_and_different_scopes_do_not() {
    let writer = Writer::new(9)
        .input("x", &[1, 6, 3, 5])
        .node("Relu", &["x"], "a", &[])
        .node("Relu", &["a"], "b", &[])
        .node("Relu", &["b"], "c", &[])
        .node("Relu", &["c"], "y", &[])
        .output("y");
    let lowered = Lowered::new(writer.model(), &adreno());
    // From the buffer of the caller, between textures twice, into the buffer of the caller.
    assert_eq!(lowered.network.programs.len(), 3);
    assert_eq!(lowered.network.graph.functions[1], lowered.network.graph.functions[2]);
}

fn window() -> Window {
    Window { kernel: [3, 3], strides: [2, 2], dilations: [1, 1], pads: [1, 1, 1, 1] }
}

fn convolution(window: Window, groups: u64) -> Signature {
    let operand = |shape: &[u64], arrangement| Operand { arrangement, ..Operand::plain(shape) };
    Signature {
        op: Op::Conv { window, groups },
        operands: vec![
            operand(&[1, 8, 9, 11], Arrangement::Channels4),
            operand(&[8, 8 / groups, 3, 3], Arrangement::Filter4),
            operand(&[8], Arrangement::Vector4),
        ],
        result: operand(&[1, 8, 5, 6], Arrangement::Channels4),
        group: 64,
    }
}

/// A kernel is proved of its own definition, and of none of another signature.
fn only_its_own(right: &Signature, twins: &[Signature]) {
    let profile = adreno();
    let own = program("kernel", right).unwrap();
    assert!(proved(&own, &profile).is_ok(), "{:?}", proved(&own, &profile));
    for twin in twins {
        let other = program("kernel", twin).unwrap();
        let mut mixed = own.clone();
        mixed.func = other.func;
        let mut claimed = own.clone();
        claimed.definition = other.definition;
        for (what, broken) in [("func", mixed), ("definition", claimed)] {
            assert!(proved(&broken, &profile).is_err(), "{what} of {twin:?}");
        }
    }
}

#[test]
fn kernels_are_not_proved_of_other_definitions() {
    let twins = [
        Window { pads: [0, 1, 2, 1], ..window() },
        Window { pads: [1, 2, 1, 0], ..window() },
        Window { dilations: [2, 1], pads: [2, 1, 2, 1], ..window() },
    ];
    only_its_own(&convolution(window(), 1), &twins.map(|window| convolution(window, 1)));
    let image = Operand { arrangement: Arrangement::Channels4, ..Operand::plain(&[1, 6, 9, 11]) };
    let result = Operand { shape: vec![1, 6, 5, 6], ..image.clone() };
    let pool = |op: Op| Signature { op, operands: vec![image.clone()], result: result.clone(), group: 64 };
    let average = |counts_padding| pool(Op::AveragePool { window: window(), counts_padding });
    only_its_own(&average(false), &[average(true), pool(Op::MaxPool(window()))]);
    only_its_own(
        &pool(Op::MaxPool(window())),
        &[pool(Op::MaxPool(Window { pads: [0, 1, 2, 1], ..window() })), average(true)],
    );
}

#[test]
fn texels_are_never_written_in_part() {
    let odd = convolution(window(), 4);
    assert!(unwritable(&odd.op, &odd.operands, &odd.result).unwrap().contains("2 filters a group"));
    assert!(program("kernel", &odd).is_err());
    let whole = convolution(window(), 2);
    assert_eq!(unwritable(&whole.op, &whole.operands, &whole.result), None);
}

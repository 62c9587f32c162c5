//! Every operator in every arrangement: each kernel is proved through all passes, the plan is proved, the kernels run in the
//! interpreter, and every tensor is the one that plain loops compute. Extents are ragged and pairwise distinct, and channels are no multiples
//! of 4 except where a test is about that.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Lowered, Writer, adreno, float, int, ints};
use tilewright_ir::ScalarType;
use tilewright_network::onnx::messages as proto;
use tilewright_network::profile::{PROFILES, Profile};
use tilewright_network::{lower, scopes};

/// Proves, runs and compares a model, in textures and in buffers.
fn holds(writer: &Writer) {
    for profile in [&adreno(), &PROFILES[0]] {
        let lowered = Lowered::new(writer.model(), profile);
        let differences = lowered.interpreted(&lowered.inputs());
        assert!(!differences.is_empty());
        for one in differences {
            assert!(one.compared > 0 && one.different == 0, "{}: {one:?}", profile.name);
        }
    }
}

#[test]
fn convolutions_with_stride_padding_and_dilation() {
    let attributes = [ints("strides", &[2, 1]), ints("pads", &[1, 0, 2, 3]), ints("dilations", &[1, 2])];
    holds(
        &Writer::new(9)
            .input("x", &[2, 6, 9, 11])
            .constant("w", &[10, 6, 3, 2])
            .constant("b", &[10])
            .node("Conv", &["x", "w", "b"], "c", &attributes)
            .node("Relu", &["c"], "r", &[])
            .constant("v", &[7, 10, 1, 1])
            .node("Conv", &["r", "v"], "y", &[])
            .output("y"),
    );
}

#[test]
fn convolutions_of_whole_texels_of_channels() {
    holds(
        &Writer::new(9)
            .input("x", &[1, 8, 7, 5])
            .constant("w", &[12, 8, 3, 2])
            .constant("b", &[12])
            .node("Conv", &["x", "w", "b"], "c", &[ints("strides", &[1, 2]), ints("pads", &[1, 0, 2, 1])])
            .constant("g", &[24, 4, 2, 1])
            .node("Conv", &["c", "g"], "y", &[int("group", 3), ints("dilations", &[2, 1])])
            .output("y"),
    );
}

#[test]
fn depthwise_and_grouped_convolutions() {
    holds(
        &Writer::new(9)
            .input("x", &[1, 6, 7, 5])
            .constant("w", &[6, 1, 3, 3])
            .constant("b", &[6])
            .node("Conv", &["x", "w", "b"], "depthwise", &[int("group", 6), ints("pads", &[1, 1, 1, 1])])
            .constant("g", &[8, 3, 1, 2])
            .node("Conv", &["depthwise", "g"], "groups_of_4", &[int("group", 2)])
            .constant("h", &[6, 4, 2, 1])
            .node("Conv", &["groups_of_4", "h"], "groups_of_3", &[int("group", 2)])
            .constant("k", &[5, 6, 3, 3])
            .node("Conv", &["groups_of_3", "k"], "y", &[])
            .output("y"),
    );
}

#[test]
fn means_of_windows_with_gaps_count_what_lies_inside() {
    holds(
        &Writer::new(19)
            .input("x", &[1, 3, 9, 10])
            .node(
                "AveragePool",
                &["x"],
                "y",
                &[ints("kernel_shape", &[3, 2]), ints("dilations", &[2, 3]), ints("pads", &[1, 2, 1, 0])],
            )
            .output("y"),
    );
}

#[test]
fn pools() {
    holds(
        &Writer::new(10)
            .input("x", &[1, 6, 11, 13])
            .node(
                "MaxPool",
                &["x"],
                "a",
                &[ints("kernel_shape", &[3, 2]), ints("strides", &[2, 2]), int("ceil_mode", 1)],
            )
            .node("AveragePool", &["a"], "b", &[ints("kernel_shape", &[3, 2]), ints("pads", &[1, 0, 1, 1])])
            .node(
                "AveragePool",
                &["b"],
                "c",
                &[ints("kernel_shape", &[2, 3]), ints("pads", &[0, 1, 1, 1]), int("count_include_pad", 1)],
            )
            .node("GlobalAveragePool", &["c"], "y", &[])
            .output("y"),
    );
}

#[test]
fn elementwise_functions_and_broadcasting() {
    holds(
        &Writer::new(9)
            .input("x", &[1, 6, 3, 5])
            .input("z", &[1, 6, 3, 5])
            .constant("per_channel", &[6, 1, 1])
            .constant("per_column", &[5])
            .constant("one", &[1])
            .node("Mul", &["x", "per_channel"], "a", &[])
            .node("Add", &["a", "z"], "b", &[])
            .node("Sub", &["b", "per_column"], "c", &[])
            .node("Div", &["c", "one"], "d", &[])
            .node("Clip", &["d"], "e", &[float("min", -0.5), float("max", 0.75)])
            .node("LeakyRelu", &["e"], "f", &[float("alpha", 0.25)])
            .node("Sigmoid", &["f"], "g", &[])
            .node("Tanh", &["g"], "h", &[])
            .node("Sum", &["h", "z", "x"], "y", &[])
            .output("y"),
    );
}

#[test]
fn limits_keep_nan_and_infinities_on_kernels() {
    let limits = |low, high| [float("min", low), float("max", high)];
    let special =
        [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.5, 0.75, 0.751, -0.501, 0.0, -0.0, 1.0, -1.0, f32::MAX];
    let writer = Writer::new(9)
        .input("x", &[1, 6, 3, 5])
        .node("Clip", &["x"], "inside", &limits(-0.5, 0.75))
        .node("Clip", &["x"], "contradictory", &limits(1.0, -1.0))
        .node("Relu", &["inside"], "r", &[])
        .output("contradictory")
        .output("r");
    for profile in [&adreno(), &PROFILES[0]] {
        let mut lowered = Lowered::new(writer.model(), profile);
        for (element, special) in lowered.given[0].iter_mut().zip(special.iter().cycle()) {
            *element = *special;
        }
        let differences = lowered.interpreted(&lowered.inputs());
        assert_eq!(differences.iter().map(|one| one.compared).sum::<usize>(), 3 * 90);
        for one in differences {
            assert_eq!(one.different, 0, "{}: {one:?}", profile.name);
        }
    }
}

#[test]
fn normalizations() {
    let mut writer = Writer::new(9)
        .input("x", &[1, 6, 3, 5])
        .constant("scale", &[6])
        .constant("bias", &[6])
        .constant("mean", &[6])
        .constant("variance", &[6])
        .node("BatchNormalization", &["x", "scale", "bias", "mean", "variance"], "n", &[float("epsilon", 0.01)])
        .node("LRN", &["n"], "l", &[int("size", 4), float("alpha", 0.5), float("beta", 0.75), float("bias", 1.5)])
        .node("Relu", &["l"], "y", &[])
        .output("y");
    let variance = writer.graph().initializer.iter_mut().find(|tensor| tensor.name == "variance").unwrap();
    variance.float_data.iter_mut().for_each(|value| *value = value.abs());
    holds(&writer);
}

#[test]
fn concatenations_with_whole_and_with_broken_texels() {
    holds(
        &Writer::new(9)
            .input("x", &[1, 8, 3, 5])
            .input("z", &[1, 6, 3, 5])
            .node("Relu", &["x"], "a", &[])
            .node("Relu", &["z"], "b", &[])
            .node("Concat", &["a", "b"], "whole", &[int("axis", 1)])
            .node("Concat", &["b", "whole", "a"], "broken", &[int("axis", 1)])
            .node("Concat", &["broken", "broken"], "rows", &[int("axis", 2)])
            .node("Relu", &["rows"], "y", &[])
            .output("y"),
    );
}

#[test]
fn from_an_image_to_probabilities() {
    holds(
        &Writer::new(9)
            .input("x", &[2, 6, 3, 5])
            .node("Relu", &["x"], "r", &[])
            .node("Flatten", &["r"], "f", &[])
            .constant("w", &[7, 90])
            .constant("b", &[7])
            .node("Gemm", &["f", "w", "b"], "g", &[int("transB", 1), float("alpha", 0.5), float("beta", 2.0)])
            .constant("m", &[7, 9])
            .node("MatMul", &["g", "m"], "p", &[])
            .node("Softmax", &["p"], "y", &[])
            .output("y"),
    );
}

#[test]
fn channels_are_shuffled_by_reshape_and_transpose() {
    holds(
        &Writer::new(9)
            .input("x", &[1, 6, 3, 5])
            .node("Relu", &["x"], "r", &[])
            .integers("split", &[1, 2, 3, 3, 5])
            .node("Reshape", &["r", "split"], "s", &[])
            .node("Transpose", &["s"], "t", &[ints("perm", &[0, 2, 1, 3, 4])])
            .integers("join", &[1, 6, 3, -1])
            .node("Reshape", &["t", "join"], "j", &[])
            .constant("w", &[5, 6, 3, 3])
            .node("Conv", &["j", "w"], "c", &[])
            .node("Pad", &["c"], "p", &[ints("pads", &[0, 0, 1, 0, 0, 0, 0, 2]), float("value", 0.5)])
            .node("Softmax", &["p"], "y", &[int("axis", 1)])
            .output("y"),
    );
}

#[test]
fn textures_of_half_floats_hold_what_was_accumulated_in_float32() {
    let writer = Writer::new(9)
        .input("x", &[1, 6, 9, 7])
        .constant("w", &[10, 6, 3, 3])
        .constant("b", &[10])
        .node("Conv", &["x", "w", "b"], "c", &[ints("pads", &[1, 1, 1, 1])])
        .node("Relu", &["c"], "r", &[])
        .node("MaxPool", &["r"], "m", &[ints("kernel_shape", &[3, 2]), ints("strides", &[2, 1])])
        .constant("v", &[5, 10, 1, 1])
        .node("Conv", &["m", "v"], "d", &[])
        .node("GlobalAveragePool", &["d"], "y", &[])
        .output("y");
    let lowered = Lowered::new(writer.model(), &Profile { half: true, ..adreno() });
    for tensor in &lowered.network.graph.graph.tensors {
        let expected = if tensor.scope.is_texture() { ScalarType::Float16 } else { ScalarType::Float32 };
        assert_eq!(tensor.dtype.scalar, expected, "{}", tensor.name);
    }
    let differences = lowered.interpreted(&lowered.inputs());
    assert!(differences.iter().all(|one| one.compared > 0 && one.different == 0), "{differences:?}");
    // Rounding shows, so that it was half floats that were stored; and it does not hide weights in another order.
    assert!(differences.iter().any(|one| one.largest > 1e-4), "{differences:?}");
    let mut inputs = lowered.inputs();
    let given = lowered.network.graph.graph.tensors.iter().filter(|tensor| tensor.role.is_given());
    let at = given.map(|tensor| tensor.name.as_str()).position(|name| name == "w.filters").unwrap();
    let right = inputs[at].clone();
    for lane in 0..right.lane_count() {
        inputs[at].set(lane, right.get(right.lane_count() - 1 - lane).unwrap());
    }
    let differences = lowered.interpreted(&inputs);
    assert_eq!(differences.iter().find(|one| one.different > 0).map(|one| one.tensor.as_str()), Some("c"));
}

/// A model with filters that are filled with one number.
fn filled(mut writer: Writer, name: &str, value: f32) -> Writer {
    let float_data = vec![value; 16];
    let tensor = proto::TensorProto {
        dims: vec![4, 4, 1, 1],
        data_type: 1,
        float_data,
        name: name.to_owned(),
        ..Default::default()
    };
    writer.graph().initializer.push(tensor);
    writer
}

#[test]
fn what_float16_cannot_hold_is_named() {
    // `a` is 4 * 30000, `b` is small again.
    let writer = filled(Writer::new(9).input("x", &[1, 4, 3, 5]), "w", 30000.0).node("Conv", &["x", "w"], "a", &[]);
    let writer = filled(writer, "v", 1e-4).node("Conv", &["a", "v"], "b", &[]);
    let writer = writer.node("GlobalAveragePool", &["b"], "y", &[]).output("y");
    let half = Profile { half: true, ..adreno() };
    let overflows = |profile: &Profile| {
        let mut lowered = Lowered::new(writer.model(), profile);
        lowered.given[0] = vec![1.0; 60];
        let differences = lowered.interpreted(&lowered.inputs());
        let beyond = differences.iter().filter_map(|one| Some((one.tensor.clone(), one.overflow.clone()?)));
        beyond.collect::<Vec<_>>()
    };
    // What is infinite stays so behind the tensor that is named.
    let found = overflows(&half);
    assert_eq!(found.iter().map(|(tensor, _)| tensor.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let overflow = &found[0].1;
    assert_eq!((overflow.step.as_str(), overflow.elements, overflow.largest), ("n_a", 60, 120_000.0));
    assert!(overflows(&adreno()).is_empty());
    // A constant beyond the range is refused.
    let writer = filled(Writer::new(9).input("x", &[1, 4, 3, 5]), "w", 70000.0).node("Conv", &["x", "w"], "a", &[]);
    let model = writer.node("GlobalAveragePool", &["a"], "y", &[]).output("y").model();
    let lowered = |profile: &Profile| lower::lower(&model, &scopes::collect_storage_info(&model, profile), profile);
    let faults = lowered(&half).unwrap_err();
    assert_eq!(faults[0].code, "network-half");
    assert!(faults[0].message.contains("`w` has the element 7e4"), "{faults:?}");
    assert!(lowered(&adreno()).is_ok());
}

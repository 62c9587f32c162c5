//! The reader of ONNX files: what it understands, what it refuses and how, and that no file makes it panic.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Writer, int, ints};
use tilewright_network::model::Contents;
use tilewright_network::npy::{self, Array};
use tilewright_network::onnx::{self, messages as proto};

fn small() -> Writer {
    Writer::new(9)
        .input("x", &[1, 3, 7, 9])
        .constant("w", &[5, 3, 3, 2])
        .node("Conv", &["x", "w"], "c", &[ints("strides", &[2, 2])])
        .node("Relu", &["c"], "y", &[])
        .output("y")
}

/// Code and message of the only fault.
fn refused(writer: &Writer) -> (&'static str, String) {
    let mut faults = onnx::read(&writer.bytes()).unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:?}");
    let fault = faults.remove(0);
    (fault.code, fault.message)
}

#[test]
fn shapes_are_inferred_and_constants_kept() {
    let model = small().model();
    let shape = |name: &str| model.values.iter().find(|value| value.name == name).unwrap().shape.clone();
    assert_eq!((shape("c"), shape("y")), (vec![1, 5, 3, 4], vec![1, 5, 3, 4]));
    assert_eq!(model.values.iter().filter(|value| value.contents.is_some()).count(), 1);
}

#[test]
fn an_unsupported_operator_is_named_with_its_node() {
    let writer = small().node("Einsum", &["y"], "e", &[]).node("LSTM", &["e"], "f", &[]);
    let faults = onnx::read(&writer.bytes()).unwrap_err();
    let messages: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
    assert_eq!(messages.len(), 2);
    assert!(messages[0].contains("`n_e`") && messages[0].contains("`Einsum`"), "{messages:?}");
    assert!(faults[1].help.as_ref().unwrap().contains("Conv"));
}

#[test]
fn what_changes_the_meaning_is_refused() {
    let one = |op, attributes: &[proto::AttributeProto]| {
        refused(&Writer::new(9).input("x", &[1, 4, 5, 7]).node(op, &["x"], "y", attributes).output("y"))
    };
    assert!(one("Relu", &[int("mystery", 1)]).1.contains("`mystery`"));
    assert!(one("MaxPool", &[ints("kernel_shape", &[2, 2]), int("storage_order", 1)]).1.contains("storage_order"));
    assert!(one("MaxPool", &[ints("kernel_shape", &[9, 2])]).1.contains("does not fit"));
    assert!(one("MaxPool", &[ints("kernel_shape", &[0, 2])]).1.contains('0'));
    assert!(one("Concat", &[int("axis", 4)]).1.contains("axis 4"));
    assert!(one("Transpose", &[ints("perm", &[0, 0, 1, 2])]).1.contains("order"));
    assert!(one("Conv", &[]).1.contains("weights"));
}

#[test]
fn a_negative_axis_of_flatten_counts_from_the_last_one() {
    let flat = |axis| {
        let writer = Writer::new(13).input("x", &[2, 3, 4, 5]).node("Flatten", &["x"], "y", &[int("axis", axis)]);
        let model = writer.output("y").model();
        model.values.iter().find(|value| value.name == "y").unwrap().shape.clone()
    };
    assert_eq!([flat(-1), flat(-4), flat(4), flat(0)], [[24, 5], [1, 120], [120, 1], [1, 120]].map(Vec::from));
    let beyond = Writer::new(13).input("x", &[2, 3]).node("Flatten", &["x"], "y", &[int("axis", -3)]).output("y");
    assert!(refused(&beyond).1.contains("axis -3"));
}

#[test]
fn an_operand_that_is_left_out_before_others_is_refused() {
    let gemm = |operands: &[&str]| {
        let writer = Writer::new(13).input("a", &[3, 5]).constant("b", &[5, 2]);
        writer.node("Gemm", operands, "y", &[]).output("y")
    };
    assert!(refused(&gemm(&["a", "", "b"])).1.contains("operand 2 is missing"));
    assert_eq!(gemm(&["a", "b", ""]).model().nodes.len(), 1);
    let dropout = Writer::new(13).input("x", &[3]).node("Dropout", &["x"], "y", &[int("mystery", 1)]).output("y");
    assert!(refused(&dropout).1.contains("mystery"));
}

#[test]
fn names_and_shapes_have_to_be_known() {
    assert!(refused(&small().node("Relu", &["nowhere"], "z", &[])).1.contains("`nowhere`"));
    let mut twice = small().node("Relu", &["c"], "y", &[]);
    assert!(refused(&twice).1.contains("another node has the same name"));
    twice.graph().node[2].name = "n".to_owned();
    assert!(refused(&twice).1.contains("defined twice"));
    assert!(refused(&small().output("never")).1.contains("`never`"));
    assert!(
        refused(&Writer::new(9).input("x", &[1, 0]).node("Relu", &["x"], "y", &[]).output("y"))
            .1
            .contains("no elements")
    );
    let mut unknown = small();
    let tensor = unknown.graph().input[0].r#type.as_mut().unwrap().tensor_type.as_mut().unwrap();
    tensor.shape.as_mut().unwrap().dim[0] =
        proto::DimensionProto { dim_value: None, dim_param: Some("batch".to_owned()) };
    assert!(refused(&unknown).1.contains("`batch`"));
}

/// What the file declares of the output of the small model.
fn declared(elem_type: i32, dims: &[i64]) -> Writer {
    let dim = |&value: &i64| proto::DimensionProto { dim_value: Some(value), dim_param: None };
    let shape = proto::TensorShapeProto { dim: dims.iter().map(dim).collect() };
    let tensor_type = proto::TensorTypeProto { elem_type, shape: Some(shape) };
    let mut model = small();
    model.graph().output[0].r#type = Some(proto::TypeProto { tensor_type: Some(tensor_type) });
    model
}

#[test]
fn an_output_is_what_the_file_declares() {
    let model = small().model();
    let shape: Vec<i64> =
        model.values[model.outputs[0]].shape.iter().map(|&extent| i64::try_from(extent).unwrap()).collect();
    assert_eq!(declared(1, &shape).model().outputs, model.outputs);
    let mut unknown = declared(1, &shape);
    let tensor = unknown.graph().output[0].r#type.as_mut().unwrap().tensor_type.as_mut().unwrap();
    tensor.shape.as_mut().unwrap().dim[0] =
        proto::DimensionProto { dim_value: None, dim_param: Some("batch".to_owned()) };
    assert_eq!(unknown.model().outputs, model.outputs);
    for wrong in [&shape[1..], &[7][..], &[], &[-1, 2, 3, 4]] {
        let found = refused(&declared(1, wrong));
        assert!(found.0 == "onnx-output" && found.1.contains("is declared as"), "{found:?}");
    }
    assert_eq!(refused(&declared(10, &shape)).0, "onnx-output");
    let mut twice = small();
    let output = twice.graph().output[0].clone();
    twice.graph().output.push(output);
    assert!(refused(&twice).1.contains("listed twice"));
}

#[test]
fn a_name_that_no_report_can_show_is_refused() {
    let clear = "n\u{1b}[2J";
    assert!(refused(&small().node(clear, &["c"], "z", &[])).1.contains("control character"));
    assert!(refused(&small().node("Relu", &["c"], clear, &[])).1.contains("control character"));
    let mut named = small();
    named.graph().node[0].name = "n\n".to_owned();
    assert_eq!(refused(&named), ("onnx-name", "the name \"n\\n\" has a control character".to_owned()));
}

#[test]
fn sizes_that_no_memory_has_are_refused() {
    let huge = Writer::new(9).input("x", &[1 << 40, 1 << 40]).node("Relu", &["x"], "y", &[]).output("y");
    assert_eq!(refused(&huge).0, "onnx-input");
    let mut lying = small();
    lying.graph().initializer[0].dims = vec![1 << 30, 1 << 30, 1 << 30];
    assert_eq!(refused(&lying).0, "onnx-tensor");
    let filled =
        Writer::new(9).integers("s", &[1 << 31, 1 << 31]).node("ConstantOfShape", &["s"], "y", &[]).output("y");
    assert_eq!(refused(&filled).0, "onnx-node");
}

#[test]
fn a_constant_of_a_shape_takes_no_memory() {
    let writer =
        small().integers("s", &[5, 1, 1]).node("ConstantOfShape", &["s"], "k", &[]).node("Add", &["c", "k"], "z", &[]);
    let model = writer.model();
    let constant = model.values.iter().find(|value| value.name == "k").unwrap();
    assert_eq!(
        (constant.shape.as_slice(), constant.contents.as_ref()),
        ([5, 1, 1].as_slice(), Some(&Contents::Same(0.0)))
    );
}

#[test]
fn nodes_that_compute_nothing_are_other_names() {
    let model = small()
        .node("Dropout", &["c"], "d", &[])
        .node("Identity", &["d"], "i", &[])
        .node("Relu", &["i"], "z", &[])
        .model();
    assert_eq!(model.nodes.len(), 3);
    assert_eq!(model.nodes[2].inputs, [model.nodes[0].output]);
}

/// A file with one text of its header replaced; the header keeps its length.
fn with_header(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let (start, end) = (10, 10 + usize::from(bytes[8]) + 256 * usize::from(bytes[9]));
    let header = String::from_utf8_lossy(&bytes[start..end]).replace(from, to);
    let header = format!("{:<width$}\n", header.trim_end(), width = end - start - 1);
    [&bytes[..start], header.as_bytes(), &bytes[end..]].concat()
}

#[test]
fn an_array_with_a_hostile_header_is_refused() {
    let good = npy::write(&Array { shape: vec![4], elements: vec![0.0; 4] }).unwrap();
    // The crate that reads headers multiplies extents without a check.
    let huge = ["(4000000000000,)", "(9223372036854775807, 9)", "(0, 9223372036854775807, 9)"];
    for shape in huge.into_iter().chain(["(0x7fffffffffffffff, 9)", "(-4,)"]) {
        let found = npy::read(&with_header(&good, "(4, )", shape));
        assert!(found.as_ref().is_err_and(|what| what.contains("shape")), "{shape}: {found:?}");
    }
    let records = npy::read(&with_header(&good, "'<f4'", "[('a', '<f4')]"));
    assert_eq!(records, Err("its elements are records, not float32".to_owned()));
    assert_eq!(npy::read(&with_header(&good, "(4, )", "(2, 2)")).map(|array| array.shape), Ok(vec![2, 2]));
    let longer = [&good[..], b"1"].concat();
    assert_eq!(npy::read(&longer), Err("it has 1 bytes behind the elements of its shape [4]".to_owned()));
}

#[test]
fn no_file_makes_the_reader_panic() {
    let good = small().bytes();
    for end in 0..good.len() {
        let _ = onnx::read(&good[..end]);
    }
    // Every byte replaced by values that are special for protobuf: ends of numbers, long lengths, other fields.
    for position in 0..good.len() {
        for value in [0x00, 0x01, 0x0a, 0x7f, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[position] = value;
            let _ = onnx::read(&bad);
        }
    }
    assert_eq!(onnx::read(&[0xff; 64]).unwrap_err()[0].code, "onnx-format");
    assert_eq!(onnx::read(b"").unwrap_err()[0].code, "onnx-format");
}

/// The model of the guide: a classifier with everything that the page explains.
fn example() -> Writer {
    Writer::new(9)
        .input("image", &[1, 3, 13, 11])
        .constant("w1", &[10, 3, 3, 3])
        .constant("b1", &[10])
        .node("Conv", &["image", "w1", "b1"], "edges", &[ints("strides", &[2, 2]), ints("pads", &[1, 1, 1, 1])])
        .node("Relu", &["edges"], "active", &[])
        .node("MaxPool", &["active"], "pooled", &[ints("kernel_shape", &[3, 3]), ints("strides", &[2, 2])])
        .constant("w2", &[6, 10, 1, 1])
        .node("Conv", &["pooled", "w2"], "features", &[])
        .node("GlobalAveragePool", &["features"], "means", &[])
        .node("Flatten", &["means"], "rows", &[])
        .constant("w3", &[5, 6])
        .node("Gemm", &["rows", "w3"], "scores", &[int("transB", 1)])
        .node("Softmax", &["scores"], "probabilities", &[])
        .output("probabilities")
}

#[test]
fn the_example_of_the_guide_is_this_model() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/models/tiny.onnx");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::create_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
        std::fs::write(path, example().bytes()).unwrap();
    }
    assert!(std::fs::read(path).unwrap() == example().bytes(), "UPDATE_EXPECT=1 writes examples/models/tiny.onnx");
}

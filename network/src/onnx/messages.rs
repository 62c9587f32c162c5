//! The protobuf messages of an ONNX file that the reader needs, by the field numbers of `onnx.proto`.
//!
//! Fields that have no influence on what a model computes (documentation, metadata, producer) are left out; protobuf
//! skips unknown fields. Fields that have, and that the reader does not support, are present so that it can refuse them.

/// A model: a graph and the versions of the operator sets that it uses.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ModelProto {
    /// Version of the file format.
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    /// The graph.
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    /// The operator sets.
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
}

/// An operator set.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OperatorSetIdProto {
    /// Empty for ONNX's own operators.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// The version.
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// A graph: nodes in an order in which they can run.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GraphProto {
    /// The nodes.
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    /// The name.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Constant tensors.
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    /// Inputs. Before format version 4 every initializer is listed here, too.
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    /// Outputs.
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
    /// Sparse constants, which the reader refuses.
    #[prost(message, repeated, tag = "15")]
    pub sparse_initializer: Vec<SparseTensorProto>,
}

/// A sparse tensor; only its presence is read.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SparseTensorProto {}

/// One operation.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NodeProto {
    /// Names of the values read; an empty name is an optional input that is absent.
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    /// Names of the values written.
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    /// The name, often empty.
    #[prost(string, tag = "3")]
    pub name: String,
    /// The operator.
    #[prost(string, tag = "4")]
    pub op_type: String,
    /// The attributes.
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
    /// The operator set; empty for ONNX's own.
    #[prost(string, tag = "7")]
    pub domain: String,
}

/// A named attribute; the field that is used depends on its type.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AttributeProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// A number.
    #[prost(float, tag = "2")]
    pub f: f32,
    /// An integer.
    #[prost(int64, tag = "3")]
    pub i: i64,
    /// A text.
    #[prost(bytes = "vec", tag = "4")]
    pub s: Vec<u8>,
    /// A tensor.
    #[prost(message, optional, tag = "5")]
    pub t: Option<TensorProto>,
    /// Numbers.
    #[prost(float, repeated, tag = "7")]
    pub floats: Vec<f32>,
    /// Integers.
    #[prost(int64, repeated, tag = "8")]
    pub ints: Vec<i64>,
    /// The type: 1 number, 2 integer, 3 text, 4 tensor, 6 numbers, 7 integers. 0 in old files.
    #[prost(int32, tag = "20")]
    pub r#type: i32,
}

/// A constant tensor. Its elements are in one of the fields, which depends on the element type and the writer.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorProto {
    /// The extents.
    #[prost(int64, repeated, tag = "1")]
    pub dims: Vec<i64>,
    /// The element type: 1 float32, 7 int64, ...
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    /// Elements of type float32.
    #[prost(float, repeated, tag = "4")]
    pub float_data: Vec<f32>,
    /// Elements of type int32 and of shorter types.
    #[prost(int32, repeated, tag = "5")]
    pub int32_data: Vec<i32>,
    /// Elements of type int64.
    #[prost(int64, repeated, tag = "7")]
    pub int64_data: Vec<i64>,
    /// The name.
    #[prost(string, tag = "8")]
    pub name: String,
    /// Elements as little-endian bytes.
    #[prost(bytes = "vec", tag = "9")]
    pub raw_data: Vec<u8>,
    /// 1 if the elements are in another file, which the reader refuses.
    #[prost(int32, tag = "14")]
    pub data_location: i32,
}

/// The name and type of a value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ValueInfoProto {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The type.
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
}

/// A type; only tensors are read.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TypeProto {
    /// A tensor.
    #[prost(message, optional, tag = "1")]
    pub tensor_type: Option<TensorTypeProto>,
}

/// The type of a tensor.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorTypeProto {
    /// The element type.
    #[prost(int32, tag = "1")]
    pub elem_type: i32,
    /// The shape; absent if unknown.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
}

/// A shape.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TensorShapeProto {
    /// The extents.
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<DimensionProto>,
}

/// An extent: a number, or a name for one that is not known.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DimensionProto {
    /// A number.
    #[prost(int64, optional, tag = "1")]
    pub dim_value: Option<i64>,
    /// A name.
    #[prost(string, optional, tag = "2")]
    pub dim_param: Option<String>,
}

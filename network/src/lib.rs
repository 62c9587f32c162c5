//! Neural networks in textures: reads a model, decides where its tensors are kept, and makes a kernel for each step.
//!
//! ```text
//! model.onnx ── onnx ──> Model ── scopes ──> a place for each value ── lower ──> graph of tensors and steps
//!                                                                              + a definition with a schedule for each kernel
//! ```
//!
//! The graph is planned and its plan proved like any other (`tilewright-memory`), and each kernel is lowered and proved like a
//! program that a user wrote (`tilewright-compiler`). Nothing here is trusted to keep a kernel inside of its buffers or a plan
//! free of overlaps. What *is* believed is that a [`model::Op`] means what its ONNX operator means, and that a definition in
//! [`ops`] is that operator; [`mod@reference`] computes every node a second time, in plain loops over the logical tensors, and
//! is compared with what a device computed.

pub mod lower;
pub mod model;
pub mod npy;
pub mod npz;
pub mod onnx;
pub mod ops;
pub mod place;
pub mod profile;
pub mod reference;
pub mod run;
pub mod scopes;
pub mod shapes;

//! Tensors of plans, and what is expected of a verdict about the function of a step.

use tilewright_ir::{GraphTensor, ScalarType, Scope, TensorRole};
use tilewright_verify::Verdict;

/// A tensor of `extent` floats in a buffer.
pub(crate) fn tensor(name: &str, extent: u64, role: TensorRole) -> GraphTensor {
    GraphTensor {
        name: name.into(),
        shape: vec![extent],
        dtype: ScalarType::Float32.into(),
        scope: Scope::Global,
        axis_separators: Vec::new(),
        view_of: None,
        role,
    }
}

/// It is proved of a function with this body.
#[track_caller]
pub(crate) fn is_proved(verdict: &Verdict, body: &str) {
    assert!(verdict.is_proved(), "{verdict}\n{body}");
}

/// It is refuted, and the counterexample says this.
#[track_caller]
pub(crate) fn is_refuted(verdict: &Verdict, body: &str, part: &str) {
    let Verdict::Refuted(found) = verdict else { panic!("{verdict}\n{body}") };
    assert!(found.to_string().contains(part), "{found}");
}

/// It is neither proved nor refuted.
#[track_caller]
pub(crate) fn is_unknown(verdict: &Verdict, body: &str) {
    assert!(matches!(verdict, Verdict::Unknown(_)), "{verdict}\n{body}");
}

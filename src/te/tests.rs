//! Whole programs: what they lower to, and that what is claimed of the loops is so.

use tilewright_ir::Diagnostic;

use super::{Lowered, evaluate};

fn lower(source: &str) -> Result<Vec<Lowered>, Vec<Diagnostic>> {
    evaluate(&tilewright_script::te::read(source)?, None)
}

#[test]
fn elementwise_lowers() {
    let source = "
A = te.placeholder((2, 7))
B = te.compute(A.shape, lambda i, j: A[i, j] + 1)
s = te.create_schedule(B.op)
";
    let lowered = lower(source).unwrap();
    assert_eq!(lowered.len(), 1);
}

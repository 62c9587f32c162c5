//! The passes: one file each, a free function from a program to a program and the evidence of what changed.

use tilewright_ir::{Evidence, PrimFunc};

/// What a pass gives: the new program, and the claim that the judge checks.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The program after the pass.
    pub func: PrimFunc,
    /// What was changed, as a claim.
    pub evidence: Evidence,
}

//! Pairs of functions with barriers: how they correspond phase by phase.
//!
//! ```text
//! for tx: S[tx] = A[tx]; barrier; B[tx] = S[7 - tx]      for tx: S[tx] = A[tx]
//!                                                        for tx: B[tx] = S[7 - tx]
//! ```

use tilewright_ir::phases::{Barriers, has_groups, without_barriers};
use tilewright_ir::{Comparison, Evidence, Phased, PrimFunc};
use tilewright_verify::Judge;

use super::vectors::{self, Scalar};
use super::ways::Pair;
use super::{GivenMap, Related, relate};
use crate::pipeline::findings::Way;

/// Two functions without barriers.
pub(super) struct Grouped {
    before: PrimFunc,
    after: PrimFunc,
    /// The claims about their buffers.
    evidence: Evidence,
    /// Whether all buffers have counterparts.
    is_whole: bool,
    /// Both without vectors, if there are any.
    scalar: Option<Scalar>,
}

/// Two functions, the second one in terms of the symbolic extents of the first, phase by phase. `None` if neither has barriers or memory
/// that threads share.
///
/// # Errors
/// Why one of them has no phases.
pub(super) fn without(
    before: &PrimFunc,
    after: &PrimFunc,
    maps: &[GivenMap],
    judge: &Judge,
) -> Result<Option<Grouped>, String> {
    if !has_groups(&before.body) && !has_groups(&after.body) {
        return Ok(None);
    }
    let one = |func: &PrimFunc| {
        let fault = |faults: Vec<tilewright_ir::Diagnostic>| faults.into_iter().map(|fault| fault.message).next();
        without_barriers(func, Barriers::Dropped).map_err(|faults| fault(faults).unwrap_or_default())
    };
    let (before, after) = (one(before)?, one(after)?);
    let related = relate(&before, &after, maps);
    let Related { after, evidence, is_whole, .. } = related.map_err(|_| "the phases do not correspond".to_owned())?;
    let scalar = vectors::without(&before, &after, maps, judge);
    Ok(Some(Grouped { before, after, evidence, is_whole, scalar }))
}

impl Grouped {
    /// The claim of a way about the functions without barriers.
    pub(super) fn claim(&self, way: Way, reassociate: bool, has_other: bool) -> Result<Evidence, String> {
        let Self { before, after, evidence, is_whole, scalar } = self;
        let (is_whole, scalar) = (*is_whole, scalar.as_ref());
        let pair = Pair { before, after, evidence, is_whole, reassociate, scalar, grouped: &Ok(None) };
        let evidence = pair.claim(way, has_other)?;
        let pass = evidence.pass.clone();
        let claim = Phased { before: before.clone(), after: after.clone(), evidence };
        Ok(Evidence { pass, comparison: Comparison::Phases(Box::new(claim)), ..Evidence::default() })
    }
}

//! The best of several planners.

use tilewright_ir::TextureLimits;

use super::live::Group;
use super::packing::Packing;
use super::{offsets, rectangles, tokens};

/// The smallest packing of a group; of equal ones the first that was tried, the compatible one first of all.
pub(super) fn pack(group: &Group, limits: TextureLimits) -> Packing {
    let compatible = tokens::pack(&group.slots);
    let others =
        offsets::candidates(&group.slots, group.alignment).into_iter().chain(rectangles::candidates(group, limits));
    others.fold(compatible, |best, other| if other.size() < best.size() { other } else { best })
}

//! Where the parameters of a program lie in its later stages, by what the passes claim.
//!
//! ```text
//! A[n, h, w, c]    apply_buffer_transforms: A -> A[n, c // 4, h, w, c % 4]    flatten_buffer: A -> A[...]
//!                  two steps of a layout, through which the harness packs an input and unpacks an output
//! ```

use tilewright_ir::{Buffer, Evidence, Expr, IndexMap, Scalar};

/// How a parameter of the first stage lies in the memory of a later stage.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    /// The maps to apply, one after the other.
    pub(super) steps: Vec<LayoutStep>,
}

/// The map of one pass, and the physical shape after it.
#[derive(Clone, Debug)]
pub(super) struct LayoutStep {
    pub(super) map: IndexMap,
    pub(super) shape: Vec<Expr>,
    /// The value of the padding, and whether the caller has to write it; `None` if the padding has no value.
    pub(super) pad: Option<(Scalar, bool)>,
}

/// Appends to the layouts what a pass did with the buffer of each parameter.
pub(super) fn follow_params(
    before: &[Buffer],
    after: &[Buffer],
    evidence: Option<&Evidence>,
    layouts: &mut [Layout],
) -> Result<(), String> {
    if before.len() != after.len() {
        return Err(format!("{} buffers became {}", before.len(), after.len()));
    }
    for ((before, after), layout) in before.iter().zip(after).zip(layouts) {
        layout.steps.extend(layout_steps(before, after, evidence)?);
    }
    Ok(())
}

/// Returns the maps from a parameter before a pass to the same parameter after it, by following the claims.
fn layout_steps(before: &Buffer, after: &Buffer, evidence: Option<&Evidence>) -> Result<Vec<LayoutStep>, String> {
    let mut steps = Vec::new();
    let mut current = before.clone();
    let claims = evidence.map_or(&[][..], |evidence| &evidence.buffers);
    while current != *after {
        let claim = claims.iter().find(|claim| claim.before == current);
        let Some(claim) = claim.filter(|_| steps.len() < claims.len()) else {
            let same = before.dtype == after.dtype && before.shape == after.shape;
            if evidence.is_none() && same {
                return Ok(Vec::new());
            }
            return Err(format!("parameter `{before}` was replaced, and the evidence does not say how"));
        };
        let fills = evidence.map_or(&[][..], |evidence| &evidence.fills);
        let fill = fills.iter().find(|fill| fill.buffer == claim.after);
        let pad = fill.and_then(|fill| Some((constant(&fill.value)?, fill.by_host)));
        steps.push(LayoutStep { map: claim.map.clone(), shape: claim.after.shape.clone(), pad });
        current = claim.after.clone();
    }
    Ok(steps)
}

/// The value of a constant.
fn constant(value: &Expr) -> Option<Scalar> {
    match value {
        Expr::Int { value, .. } => Some(Scalar::Int(*value)),
        Expr::Float { value, .. } => Some(Scalar::Float(*value)),
        Expr::Var(_) | Expr::Binary(..) | Expr::Unary(..) | Expr::Call(..) | Expr::Select(..) => None,
        Expr::IfThenElse(..) | Expr::Cast(..) => None,
        Expr::Ramp { .. } | Expr::Broadcast { .. } | Expr::Load { .. } => None,
    }
}

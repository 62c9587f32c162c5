//! What the passes that move values to other memory share: when memory is in use, what they refuse, and the claim that values stayed
//! the same.

pub(super) mod claims;
pub(super) mod in_place;
pub(super) mod lifetimes;

use tilewright_algebra::{Ranges, simplify};
use tilewright_ir::{BinaryOp, Block, Buffer, Diagnostic, Expr, PrimFunc, Stmt};

/// Refuses a program with blocks: these name the buffers that they read and write.
///
/// # Errors
/// `blocks`, at the first block.
pub(super) fn without_blocks(func: &PrimFunc, pass: &str) -> Result<(), Vec<Diagnostic>> {
    let mut found: Option<&Stmt> = None;
    func.body.walk(&mut |stmt| {
        if found.is_none() && Block::of(stmt).is_some() {
            found = Some(stmt);
        }
    });
    found.map_or(Ok(()), |block| {
        let message = format!("`{pass}` takes a program without blocks, which say what they read and write");
        Err(vec![Diagnostic::error("blocks", block.span, message).with_help("run lower_blocks first")])
    })
}

/// Returns whether another layout is asked for a buffer.
pub(super) fn is_layout_asked(func: &PrimFunc, buffer: &Buffer) -> bool {
    let attrs = &func.attrs;
    attrs.layout_transform_map.iter().any(|(data, maps)| *data == buffer.data && !maps.is_empty())
        || attrs.tile_layout.iter().any(|(data, _)| *data == buffer.data)
}

/// Returns whether elements lie one behind the other, from the start of the memory.
pub(super) fn is_compact(buffer: &Buffer) -> bool {
    buffer.strides.is_none() && buffer.elem_offset.as_const_int() == Some(0)
}

/// Returns whether another buffer shows the memory of this one.
pub(super) fn has_views(func: &PrimFunc, buffer: &Buffer) -> bool {
    func.buffers().iter().any(|other| other != buffer && other.aliases(buffer))
}

/// Whether one number is at most another one, whatever the extents are.
pub(super) fn is_at_most(a: &Expr, b: &Expr, known: &Ranges) -> bool {
    if a.dtype() != b.dtype() {
        return false;
    }
    let difference = simplify(&(b.clone() - a.clone()), known).as_const_int();
    let holds = || simplify(&Expr::binary(BinaryOp::Le, a.clone(), b.clone()), known).as_const_int() == Some(1);
    difference.map_or_else(holds, |difference| difference >= 0)
}

/// Whether an extent is at least 1, whatever the others are.
pub(super) fn is_at_least_one(extent: &Expr, known: &Ranges) -> bool {
    Expr::int_of(1, extent.dtype().scalar).is_some_and(|one| is_at_most(&one, extent, known))
}

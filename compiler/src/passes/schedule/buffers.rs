//! Which buffers a statement stores to and loads from.

use tilewright_ir::{Buffer, Diagnostic, Expr, PrimFunc, Stmt, StmtKind};

use super::fault;

/// Returns whether a statement stores to a buffer of a kind.
pub(super) fn stores_to(stmt: &Stmt, is_meant: &dyn Fn(&Buffer) -> bool) -> bool {
    let mut found = false;
    stmt.walk(&mut |part| found |= matches!(&part.kind, StmtKind::Store { buffer, .. } if is_meant(buffer)));
    found
}

/// Returns whether an expression loads from the memory of a buffer.
pub(super) fn loads(expr: &Expr, buffer: &Buffer) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= matches!(part, Expr::Load { buffer: read, .. } if read.aliases(buffer)));
    found
}

/// Returns whether a statement loads from the memory of a buffer.
pub(super) fn loads_from(stmt: &Stmt, buffer: &Buffer) -> bool {
    let mut found = false;
    stmt.walk(&mut |part| found |= part.exprs().any(|expr| loads(expr, buffer)));
    found
}

/// Returns whether a statement loads from or stores to the memory of a buffer.
pub(super) fn uses(stmt: &Stmt, buffer: &Buffer) -> bool {
    loads_from(stmt, buffer) || stores_to(stmt, &|stored| stored.aliases(buffer))
}

/// Returns the buffer of a name, if the function allocates it and nothing else sees its memory.
///
/// # Errors
/// There is no such buffer, it is a parameter or has a view, or a layout is asked for it.
pub(super) fn allocated(func: &PrimFunc, name: &str) -> Result<Buffer, Diagnostic> {
    let buffers = func.buffers();
    let mut named = buffers.iter().filter(|buffer| buffer.name == name);
    let Some(buffer) = named.next() else {
        let names: Vec<&str> = buffers.iter().map(|buffer| buffer.name.as_str()).collect();
        let near = tilewright_script::nearest(name, names.iter().copied());
        let help = near.map_or_else(|| format!("its buffers are {}", names.join(", ")), |near| format!("did you mean `{near}`?"));
        return Err(fault(format!("`{}` has no buffer `{name}`", func.name), help));
    };
    if named.next().is_some() {
        return Err(fault(format!("`{}` has several buffers `{name}`", func.name), "give them different names"));
    }
    if func.buffer_map.iter().any(|(_, param)| param.aliases(buffer)) {
        let help = "a caller sees all of a parameter; take a buffer that the function allocates";
        return Err(fault(format!("`{name}` is a parameter"), help));
    }
    let has_view = buffers.iter().any(|other| other != buffer && other.aliases(buffer));
    let is_plain = buffer.strides.is_none() && buffer.elem_offset.as_const_int() == Some(0);
    if has_view || !is_plain {
        return Err(fault(format!("`{name}` has views, strides or an offset"), "name a buffer with memory of its own"));
    }
    let attrs = &func.attrs;
    let is_moved = attrs.layout_transform_map.iter().any(|(data, maps)| *data == buffer.data && !maps.is_empty());
    if is_moved || attrs.tile_layout.iter().any(|(data, _)| *data == buffer.data) || !buffer.axis_separators.is_empty() {
        let help = "its axes are those of the layout; ask for a layout of another buffer";
        return Err(fault(format!("a layout is asked for `{name}`, which would be applied after the schedule"), help));
    }
    Ok(buffer.clone())
}

//! Turns buffers in texture scopes into texel buffers: rows, columns, and channels (texture RFC, "T0: Texture memory
//! lowering").
//!
//! ```text
//! # T: Buffer((1, 5, 7, 9, 4), scope="texture")
//! for c in range(4):
//!     T[0, o, h, w, c] = X[0, o, h, w, c]
//! # becomes, with T: Buffer((35, 9, 4), axis_separators=[1, 2], scope="texture")
//! T.texture2d_store(T, row=o * 7 + h, column=w, value=X[0, o, h, w, 0:4])
//! ```
//!
//! A texture scope stands for axis separators, so this is the flattening of `flatten_buffer` between the separators that
//! [`Buffer::texture_separators`] returns. As there, `buffer_map` is not changed. A loop over the channels of a stored texel
//! becomes one store, whether it is marked `vectorized` or not. A store that is not one of whole texels is refused; its
//! value is never spread over the lanes (`texture_stores`). Loads read one channel or the whole texel. Cost: three walks.

use tilewright_ir::{
    AxisSeparators, Buffer, BufferChange, Diagnostic, Expr, ForKind, PrimFunc, Span, Stmt, StmtKind, TextureLimits,
};

use super::Rewritten;
use super::flatten_buffer::grouped;
use super::lanes::is_all_of;
use super::remap::{Move, regrouped, remap, symbol_ranges};
use super::texture_stores::whole_texels;
use tilewright_algebra::Ranges;

/// Lowers every buffer in a texture scope.
///
/// # Errors
/// The errors of [`Buffer::texture_separators`], and `texture-limits`, `texture-alias`, `texture-alloc`, `texture-store`,
/// `texture-load`.
pub fn lower_texture(func: &PrimFunc) -> Result<Rewritten, Vec<Diagnostic>> {
    let mut found = misplaced(func);
    let ranges = symbol_ranges(func);
    let mut moves = Vec::new();
    for buffer in textures(func) {
        match texel_buffer(&buffer, func, &ranges) {
            Ok(change) => moves.extend(change),
            Err(fault) => found.push(fault),
        }
    }
    if !found.is_empty() {
        return Err(found);
    }
    let stored = PrimFunc { body: whole_texels(func)?, ..func.clone() };
    // A parameter that is lowered already is known by the view of it that the body has.
    let used = PrimFunc { buffer_map: Vec::new(), ..func.clone() }.buffers();
    let is_lowered = |buffer: &Buffer| !used.contains(buffer) && used.iter().any(|view| view.aliases(buffer));
    moves.retain(|change| !(is_param(func, &change.before) && is_lowered(&change.before)));
    let body = remap(&stored, &moves).map_err(|error| vec![error])?;
    let partial = partial_loads(&body);
    if !partial.is_empty() {
        return Err(partial);
    }
    Ok(regrouped(func, body, moves, "lower_texture", BufferChange::Texture))
}

/// Returns whether a function has a texture.
pub(super) fn is_wanted(func: &PrimFunc) -> bool {
    !textures(func).is_empty()
}

/// The buffers in texture scopes.
fn textures(func: &PrimFunc) -> Vec<Buffer> {
    func.buffers().into_iter().filter(|buffer| buffer.scope.is_texture()).collect()
}

/// Whether a buffer is a parameter of the function.
fn is_param(func: &PrimFunc, buffer: &Buffer) -> bool {
    func.buffer_map.iter().any(|(_, param)| param == buffer)
}

/// Returns the separators between rows, columns and channels: those of the scope, or, for a texel buffer, one between all
/// axes, even if its scope demands more than three axes.
fn separators(buffer: &Buffer) -> Result<AxisSeparators, Diagnostic> {
    if buffer.is_texel_buffer() { Ok(buffer.axis_separators.clone()) } else { buffer.texture_separators() }
}

/// Returns the texel buffer of a texture and the map to it; `None` if the buffer is a texel buffer already.
fn texel_buffer(buffer: &Buffer, func: &PrimFunc, ranges: &Ranges) -> Result<Option<Move>, Diagnostic> {
    let separators = separators(buffer)?;
    let suffix = if is_param(func, buffer) { "_texels" } else { "" };
    let change = grouped(buffer, &separators, suffix, ranges)?;
    within_limits(&change, func.attrs.texture_limits)?;
    Ok((!buffer.is_texel_buffer()).then_some(change))
}

/// Checks that constant extents are within the limits. Symbolic extents are checked at the launch.
fn within_limits(change: &Move, stated: Option<TextureLimits>) -> Result<(), Diagnostic> {
    let limits = stated.unwrap_or(TextureLimits::PROMISED);
    let extents = [("height", limits.height, "rows"), ("width", limits.width, "texels in a row")];
    for ((what, limit, unit), extent) in extents.into_iter().zip(&change.after.shape) {
        let Some(extent) = extent.as_const_int().filter(|extent| *extent > limit.into()) else { continue };
        let buffer = &change.before;
        let shape = buffer.shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let message = format!(
            "texture `{buffer}` [{shape}] has the {what} {extent}, but {limit} {unit} are the limit ({limits})"
        );
        let help = if stated.is_some() {
            "the limits are the texture_limits of the function"
        } else {
            "this is what OpenCL 1.2 promises of every device; state those of yours, such as --limits 16384x16384"
        };
        return Err(Diagnostic::error("texture-limits", buffer.span, message).with_help(help));
    }
    Ok(())
}

/// Returns an error for each texture that is allocated by threads or is a view of other memory.
fn misplaced(func: &PrimFunc) -> Vec<Diagnostic> {
    let mut places = MisplacedTextures {
        roots: func.buffer_map.iter().map(|(_, buffer)| buffer.clone()).collect(),
        ..MisplacedTextures::default()
    };
    places.stmt(&func.body, None, None);
    places.found
}

/// Walks a body and collects textures that are misplaced.
#[derive(Default)]
struct MisplacedTextures {
    /// The buffers whose memory is in scope: parameters and allocations.
    roots: Vec<Buffer>,
    found: Vec<Diagnostic>,
}

impl MisplacedTextures {
    fn stmt(&mut self, stmt: &Stmt, thread: Option<&str>, span: Option<Span>) {
        let span = stmt.span.or(span);
        let mut here = None;
        match &stmt.kind {
            StmtKind::Allocate { buffer, .. } => {
                self.roots.push(buffer.clone());
                if let Some(var) = thread.filter(|_| buffer.scope.is_texture()) {
                    let message = format!("texture `{buffer}` is allocated inside of the thread loop over `{var}`");
                    let help =
                        "images are made by the host, before a kernel starts: allocate it around the thread loops";
                    self.found.push(Diagnostic::error("texture-alloc", buffer.span.or(span), message).with_help(help));
                }
            }
            StmtKind::DeclBuffer { buffer, .. } => self.view(buffer, span),
            StmtKind::For(inner) if matches!(inner.kind, ForKind::ThreadBinding(_)) => here = Some(inner.var.name()),
            StmtKind::For(_) | StmtKind::Store { .. } | StmtKind::If { .. } | StmtKind::Let { .. } => {}
            StmtKind::Seq(_)
            | StmtKind::Evaluate(_)
            | StmtKind::Barrier
            | StmtKind::Assert { .. }
            | StmtKind::Attr { .. } => {}
        }
        for child in stmt.children() {
            self.stmt(child, thread.or(here), span);
        }
    }

    /// Checks a view: a texture may only be declared again as itself or as its texel buffer.
    fn view(&mut self, view: &Buffer, span: Option<Span>) {
        let Some(root) = self.roots.iter().rev().find(|root| root.data == view.data) else { return };
        if !(view.scope.is_texture() || root.scope.is_texture()) {
            return;
        }
        let cut = |buffer: &Buffer| separators(buffer).ok();
        let same = view.scope == root.scope
            && view.dtype == root.dtype
            && view.shape == root.shape
            && cut(view).is_some()
            && cut(view) == cut(root);
        // A texel buffer is the view of itself that the pass makes of a parameter.
        let lowered = || {
            view.is_texel_buffer()
                && grouped_shape(root).is_some_and(|shape| shape == view.shape)
                && view.dtype == root.dtype
        };
        if !same && !lowered() {
            let message = format!("`{view}` is another view of the memory of texture `{root}`");
            let help = "texels have no address that another shape or type could be laid over: copy it to a buffer";
            self.found.push(Diagnostic::error("texture-alias", view.span.or(span), message).with_help(help));
        }
    }
}

/// The extents of the texel buffer of a texture.
fn grouped_shape(texture: &Buffer) -> Option<Vec<Expr>> {
    let change = grouped(texture, &separators(texture).ok()?, "", &Ranges::new()).ok()?;
    Some(change.after.shape.clone())
}

/// Returns an error for each load of several channels other than the whole texel in order.
fn partial_loads(body: &Stmt) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    body.walk(&mut |stmt| {
        for expr in stmt.exprs() {
            expr.walk(&mut |part| {
                let Expr::Load { buffer, indices } = part else { return };
                let Some(lane) = indices.last().filter(|_| buffer.is_texel_buffer()) else { return };
                if !(lane.dtype().is_scalar() || is_all_of(buffer, lane)) {
                    let message = format!("`{part}` reads neither one channel nor the whole texel in order");
                    let help = "read the texel with a ramp over all channels from 0, or one channel at a time";
                    found.push(Diagnostic::error("texture-load", stmt.span, message).with_help(help));
                }
            });
        }
    });
    found
}

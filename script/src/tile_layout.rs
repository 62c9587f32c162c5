//! XLA layouts without the array around them: `{1,0:T(8,128)(2,1)}`.

use tilewright_ir::layout::{ArrayShape, Dimension, Layout};
use tilewright_ir::{Diagnostic, ElementType, Span, XlaShape};

use crate::xla::{print_xla_shape, read_xla_shape};

/// The largest number of dimensions for which a layout is read.
pub(crate) const MAX_RANK: usize = 64;

/// Reads the layout of an array with `rank` dimensions in XLA's notation, braces included.
///
/// # Errors
/// The text is not a layout, or the layout does not fit `rank` dimensions. Locations refer to `text`.
///
/// # Examples
/// ```
/// use tilewright_script::read_xla_layout;
/// let layout = read_xla_layout("{1,0:T(8,128)(2,1)}", 2)?;
/// assert_eq!((layout.minor_to_major, layout.tiles.len()), (vec![1, 0], 2));
/// # Ok::<(), Vec<tilewright_ir::Diagnostic>>(())
/// ```
pub fn read_xla_layout(text: &str, rank: usize) -> Result<Layout, Vec<Diagnostic>> {
    let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let error = |message: String, help: &str| {
        vec![Diagnostic::error("layout", Some(Span::new(0, end)), message).with_help(help)]
    };
    if rank > MAX_RANK {
        return Err(error(format!("layouts of at most {MAX_RANK} dimensions are read, not of {rank}"), "fuse axes"));
    }
    if !text.trim_start().starts_with('{') {
        return Err(error("this is not a layout".to_owned(), "such as `{1,0:T(8,128)(2,1)}`, with its braces"));
    }
    // A layout is only read as part of a shape. Extents of 1 fit every layout; the real ones may be symbolic.
    let head = format!("pred[{}]", vec!["1"; rank].join(","));
    let read = read_xla_shape(&format!("{head}{text}")).map_err(|mut errors| {
        let shift = u32::try_from(head.len()).unwrap_or(0);
        for label in errors.iter_mut().flat_map(|error| &mut error.labels) {
            label.span = Span::new(label.span.start.saturating_sub(shift), label.span.end.saturating_sub(shift));
        }
        errors
    })?;
    match read {
        XlaShape::Array(array) => Ok(array.layout_or_default()),
        XlaShape::Tuple(_) | XlaShape::Token | XlaShape::Opaque => {
            Err(error("this is not a layout of one array".to_owned(), "such as `{1,0:T(8,128)}`"))
        }
    }
}

/// Prints a layout in XLA's notation, braces included. A layout that does not fit its own rank is printed as `{}`.
pub fn print_xla_layout(layout: &Layout) -> String {
    let dimensions = vec![Dimension::Static(1); layout.minor_to_major.len()];
    let Ok(array) = ArrayShape::new(ElementType::Pred, dimensions, Some(layout.clone())) else {
        return "{}".to_owned();
    };
    let text = print_xla_shape(&XlaShape::Array(array));
    text.find('{').map_or_else(|| "{}".to_owned(), |start| text[start..].to_owned())
}

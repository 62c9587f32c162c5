//! Draws shapes in XLA's notation from its grammar, in exactly XLA's spelling. It does not use the
//! project's printer, because it is compared with it.

use arbitrary::{Result, Unstructured};

use crate::config::Config;
use crate::extents;

/// The element types.
const TYPES: [&str; 16] =
    ["f32", "f16", "bf16", "f64", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "pred", "s4", "u4", "c64"];

/// Draws a shape: an array in 14 cases out of 16, otherwise a tuple of up to seven arrays, a token
/// or an opaque type.
///
/// # Errors
/// Never because there are too few bytes.
pub fn shape(u: &mut Unstructured<'_>, config: &Config) -> Result<String> {
    match u.int_in_range(0..=15)? {
        0 => Ok(["token[]", "opaque[]"][u.choose_index(2)?].to_owned()),
        1 => {
            let n_parts = u.int_in_range(0..=7)?;
            let mut text = String::from("(");
            for position in 0..n_parts {
                text += if position > 0 { ", " } else { "" };
                if position == 5 {
                    text += "/*index=5*/";
                }
                text += &array(u, config)?;
            }
            Ok(text + ")")
        }
        _ => array(u, config),
    }
}

/// Draws an array; a few extents are bounded, unbounded or 0, and one array in six has no layout.
fn array(u: &mut Unstructured<'_>, config: &Config) -> Result<String> {
    let shape = if u.ratio(1, 20)? { Vec::new() } else { extents::shape(u, config)? };
    let mut parts = Vec::with_capacity(shape.len());
    let mut shape = shape;
    for extent in &mut shape {
        parts.push(match u.int_in_range(0..=19)? {
            0 => format!("<={extent}"),
            1 => "?".to_owned(),
            2 => {
                *extent = 0;
                "0".to_owned()
            }
            _ => extent.to_string(),
        });
    }
    let mut text = format!("{}[{}]", u.choose(&TYPES)?, parts.join(","));
    if !u.ratio(1, 6)? {
        text += &layout(u, config, &shape)?;
    }
    Ok(text)
}

/// Draws a layout: a random order of dimensions, then properties in the order in which XLA prints
/// them.
fn layout(u: &mut Unstructured<'_>, config: &Config, shape: &[i64]) -> Result<String> {
    let mut order: Vec<usize> = (0..shape.len()).rev().collect();
    for at in (1..order.len()).rev() {
        let other = u.int_in_range(0..=at)?;
        order.swap(at, other);
    }
    let sparse = !shape.is_empty() && u.ratio(1, 12)?;
    let mut properties = String::new();
    if sparse {
        let kinds = ["D", "C", "C+", "C~", "C+~", "S", "S+", "H", "H~"];
        let mut attributes = vec!["C"];
        for _ in 1..shape.len() {
            attributes.push(*u.choose(&kinds)?);
        }
        properties.extend(["D(", &attributes.join(","), ")"]);
    } else if u.ratio(3, 4)? {
        properties += &tiles(u, config, shape.len())?;
    }
    if u.ratio(1, 8)? {
        properties = format!("{properties}L({})", u.int_in_range(2..=1024)?);
    }
    if sparse && u.arbitrary()? {
        properties += "#(u32)*(u16)";
    }
    for (letter, most) in [("E", 32), ("S", 5)] {
        if u.ratio(1, 8)? {
            properties = format!("{properties}{letter}({})", u.int_in_range(1..=most)?);
        }
    }
    if let Some((dimension, &extent)) = shape.iter().enumerate().find(|&(_, &extent)| extent > 2)
        && u.ratio(1, 12)?
    {
        properties = format!("{properties}SC({dimension}:1,{})", extent - 1);
    }
    if u.ratio(1, 16)? {
        properties = format!("{properties}M({})", u.int_in_range(1..=64)?);
    }
    let colon = if properties.is_empty() { "" } else { ":" };
    if shape.is_empty() && properties.is_empty() {
        // The layout of a scalar without properties is not printed.
        return Ok(String::new());
    }
    let order: Vec<String> = order.iter().map(usize::to_string).collect();
    Ok(format!("{{{}{colon}{properties}}}", order.join(",")))
}

/// Draws up to three tiles, of a rank up to that of the array plus one.
fn tiles(u: &mut Unstructured<'_>, config: &Config, rank: usize) -> Result<String> {
    let mut text = String::from("T");
    for _ in 0..u.int_in_range(1..=3)? {
        let n_dims = u.int_in_range(1..=rank.max(1) + 1)?;
        let mut dims = Vec::with_capacity(n_dims);
        for at in 0..n_dims {
            let combined = at + 1 < n_dims && u.ratio(1, 6)?;
            dims.push(if combined { "*".to_owned() } else { extents::block(u, config)?.to_string() });
        }
        text.extend(["(", &dims.join(","), ")"]);
    }
    Ok(text)
}

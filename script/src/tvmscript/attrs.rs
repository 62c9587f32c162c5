//! Attributes of functions, loops and statements.
//!
//! ```python
//! @T.prim_func
//! def f(A: T.Buffer((16, 128), "float32")):
//!     T.func_attr({
//!         "global_symbol": "f",
//!         "texture_limits": "16384x16384",
//!         "layout_transform_map": {A: lambda i, j: [j // 4, i, j % 4]},
//!         "schedule": ["split=i:4", "unroll=i_inner"],
//!         "tile_layout": {B: {"layout": "{1,0:T(8,128)}", "pad_value": 0}},
//!     })
//!     B = T.alloc_buffer((17, 300), "float32")
//!     B[0, 0] = A[0, 0]
//! ```
//!
//! A buffer among the keys of `layout_transform_map`, `tile_layout` or `axis_separators` stands for its data
//! variable: the attribute applies to all buffers on the same memory. All other attributes are kept without
//! interpretation.

use ruff_python_ast as ast;
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::{AttrValue, Expr, FuncAttrs, Scalar, ScalarType, ScheduleStep, TextureLimits, TileRequest, Var};

use super::reader::{Binding, PendingMap, PendingTile, Reader, sequence, string};
use crate::source::{nearest, span};
use crate::tile_layout::read_xla_layout;

/// The attributes of functions whose misspellings are errors. All other attributes are kept, so without this check a
/// misspelled request would be dropped in silence. `extents` is not among them: many words are one letter off.
const REQUESTS: [&str; 5] = ["layout_transform_map", "tile_layout", "axis_separators", "texture_limits", "schedule"];

/// The properties of a request for a tiled layout.
const TILE_PROPERTIES: [&str; 2] = ["layout", "pad_value"];

/// An entry of a dictionary whose keys are strings.
struct Entry<'a> {
    key: &'a str,
    /// The place of the key.
    at: TextRange,
    value: &'a ast::Expr,
}

impl<'a> Reader<'a> {
    /// Reads `T.func_attr({...})`. A function reads each call twice.
    ///
    /// Without `attrs`, before any declaration, it collects the attributes that declarations depend on:
    /// `layout_transform_map`, `tile_layout` and `axis_separators`. Their values are read when their buffer is declared,
    /// since its shape is the domain of the first map. With `attrs`, after the declarations, it reads all others, which may
    /// refer to buffers.
    pub(super) fn func_attr(&mut self, call: &'a ast::ExprCall, attrs: Option<&mut FuncAttrs>) -> Option<()> {
        let mut attrs = attrs;
        let n_errors = self.errors.len();
        let args = self.bind_args(call, "func_attr", &["attrs"], 1);
        let entries = args.and_then(|args| self.string_keyed_dict(args.get(0)?));
        if attrs.is_some() {
            // The first reading has reported errors in the call itself.
            self.errors.truncate(n_errors);
        }
        for Entry { key, at, value } in entries? {
            if let Some(known) = misspelled(key) {
                if attrs.is_none() {
                    let message = format!("`{key}` is not an attribute that is known");
                    let _: Option<()> = self.error("attribute", at, message, format!("did you mean `{known}`?"));
                }
                continue;
            }
            match key {
                "layout_transform_map" if attrs.is_none() => self.layout_transform_map(value)?,
                "axis_separators" if attrs.is_none() => {
                    for (name, positions) in self.buffer_keyed_dict(value)? {
                        self.separators.push((name, positions));
                    }
                }
                "tile_layout" if attrs.is_none() => self.tile_layout(value)?,
                "layout_transform_map" | "axis_separators" | "tile_layout" => {}
                _ => {
                    let Some(attrs) = attrs.as_deref_mut() else { continue };
                    if key == "texture_limits" {
                        attrs.texture_limits = self.texture_limits(value);
                        continue;
                    }
                    if key == "extents" {
                        attrs.extents = self.extent_names(value)?;
                        continue;
                    }
                    if key == "schedule" {
                        attrs.schedule = self.schedule(value)?;
                        continue;
                    }
                    let value = self.attr_value(value)?;
                    attrs.other.push((key.to_owned(), value));
                }
            }
        }
        Some(())
    }

    /// Collects the buffers of `{A: [lambda i, j: [j, i]]}`. A single map need not be in a list.
    fn layout_transform_map(&mut self, value: &'a ast::Expr) -> Option<()> {
        for (key, maps) in self.buffer_keyed_dict(value)? {
            let entry = maps.range();
            let maps = match maps {
                ast::Expr::List(list) => list.elts.iter().collect(),
                other => vec![other],
            };
            if self.maps.iter().any(|map| map.key == key) {
                let message = format!("`{key}` appears twice in layout_transform_map");
                return self.error("duplicate", value.range(), message, "list its maps one after the other");
            }
            self.maps.push(PendingMap { key, range: value.range(), entry, maps, resolved: None });
        }
        Some(())
    }

    /// Reads `"16384x16384"`.
    fn texture_limits(&mut self, value: &'a ast::Expr) -> Option<TextureLimits> {
        let help = "such as `\"16384x16384\"`: texels in a row, then rows";
        let Some(text) = string(value) else {
            return self.error("texture-limits", value.range(), "texture limits are a string", help);
        };
        match text.parse() {
            Ok(limits) => Some(limits),
            Err(error) => {
                let error: tilewright_ir::texture::TextureLimitsError = error;
                self.error("texture-limits", value.range(), error.to_string(), help)
            }
        }
    }

    /// Reads `[n, m]`: names of integers of the call.
    fn extent_names(&mut self, value: &'a ast::Expr) -> Option<Vec<Var>> {
        let names = self.attr_value(value)?;
        let AttrValue::List(names) = &names else {
            return self.error("extents", value.range(), "extents are a list of names", "such as `[n, m]`");
        };
        let vars: Option<Vec<Var>> = names
            .iter()
            .map(|name| match name {
                AttrValue::Var(var) => Some(var.clone()),
                _ => None,
            })
            .collect();
        match vars {
            Some(vars) => Some(vars),
            None => self.error("extents", value.range(), "an extent is a name", "such as `[n, m]`"),
        }
    }

    /// Reads `["split=i:4", "unroll=i_inner"]`.
    fn schedule(&mut self, value: &'a ast::Expr) -> Option<Vec<ScheduleStep>> {
        let help = "such as `[\"split=i:4\", \"unroll=i_inner\"]`";
        let Some(steps) = sequence(value) else {
            return self.error("schedule", value.range(), "a schedule is a list of steps", help);
        };
        let read = |step: &ast::Expr| string(step).and_then(|text| ScheduleStep::parse(text, Some(span(step.range()))));
        let mut found = Vec::new();
        for step in steps {
            match read(step) {
                Some(step) => found.push(step),
                None => return self.error("schedule", step.range(), "a step is a primitive with an argument", help),
            }
        }
        Some(found)
    }

    /// Collects the buffers of `{A: "{1,0:T(8,128)}"}`. The layouts are read when their buffer is declared, which gives
    /// their rank.
    fn tile_layout(&mut self, value: &'a ast::Expr) -> Option<()> {
        for (key, value) in self.buffer_keyed_dict(value)? {
            if self.tiles.iter().any(|tile| tile.key == key) {
                let message = format!("`{key}` appears twice in tile_layout");
                return self.error("duplicate", value.range(), message, "a buffer has one tiled layout");
            }
            self.tiles.push(PendingTile { key, value, resolved: None });
        }
        Some(())
    }

    /// Reads the request for a buffer of `rank` axes: a layout as a string, or
    /// `{"layout": "{1,0:T(8,128)}", "pad_value": 0}`.
    pub(super) fn tile_request(&mut self, value: &'a ast::Expr, rank: usize) -> Option<TileRequest> {
        let help = "such as `\"{1,0:T(8,128)}\"`, or `{\"layout\": \"{1,0:T(8,128)}\", \"pad_value\": 0}`";
        let entries = if string(value).is_some() {
            vec![Entry { key: "layout", at: value.range(), value }]
        } else {
            self.string_keyed_dict(value)?
        };
        let (mut layout, mut pad_value) = (None, None);
        for Entry { key, at, value: entry } in entries {
            match key {
                "layout" => layout = Some((string(entry), entry.range())),
                "pad_value" => {
                    pad_value = Some(match self.attr_value(entry)? {
                        AttrValue::Int(value) => Scalar::Int(value.into()),
                        AttrValue::Bool(value) => Scalar::Int(value.into()),
                        AttrValue::Float(value) => Scalar::Float(value),
                        AttrValue::Str(_)
                        | AttrValue::Var(_)
                        | AttrValue::Expr(_)
                        | AttrValue::List(_)
                        | AttrValue::Dict(_)
                        | AttrValue::Block(_) => {
                            return self.error("pad-value", entry.range(), "the pad value is not a number", help);
                        }
                    });
                }
                _ => {
                    let help = nearest(key, TILE_PROPERTIES)
                        .map_or_else(|| help.to_owned(), |known| format!("did you mean `{known}`?"));
                    let message = format!("`{key}` is not a property of a tiled layout");
                    return self.error("attribute", at, message, help);
                }
            }
        }
        let Some((Some(text), range)) = layout else {
            return self.error("attribute", value.range(), "no layout is given", help);
        };
        match read_xla_layout(text, rank) {
            Ok(layout) => Some(TileRequest { layout, pad_value }),
            Err(found) => {
                // The string may contain escapes, so offsets inside it are not offsets in the source: point at all of it.
                for fault in found {
                    let _: Option<()> =
                        self.error(fault.code, range, fault.message, fault.help.unwrap_or_else(|| help.to_owned()));
                }
                None
            }
        }
    }

    /// Reads a dictionary whose keys are buffers or their data variables. They may be declared later, so the keys are
    /// returned as names.
    fn buffer_keyed_dict(&mut self, value: &'a ast::Expr) -> Option<Vec<(String, &'a ast::Expr)>> {
        let ast::Expr::Dict(dict) = value else {
            return self.error(
                "attribute",
                value.range(),
                "expected a dictionary",
                "such as `{A: [lambda i, j: [j, i]]}`",
            );
        };
        let mut entries = Vec::new();
        for item in &dict.items {
            // `A` and `A.data` are the same key: attributes of buffers are stored by data variable.
            let name = match &item.key {
                Some(ast::Expr::Name(name)) => Some(name.id.to_string()),
                Some(ast::Expr::Attribute(attribute)) if attribute.attr.as_str() == "data" => match &*attribute.value {
                    ast::Expr::Name(name) => Some(name.id.to_string()),
                    _ => None,
                },
                _ => None,
            };
            let Some(name) = name else {
                let at = item.key.as_ref().map_or_else(|| item.value.range(), Ranged::range);
                return self.error("attribute", at, "the keys are buffers", "such as `A` or `A.data`");
            };
            entries.push((name, &item.value));
        }
        Some(entries)
    }

    /// Reads a dictionary whose keys are strings.
    fn string_keyed_dict(&mut self, value: &'a ast::Expr) -> Option<Vec<Entry<'a>>> {
        let ast::Expr::Dict(dict) = value else {
            return self.error("attribute", value.range(), "expected a dictionary", "such as `{\"key\": 1}`");
        };
        let mut entries = Vec::new();
        for item in &dict.items {
            let at = item.key.as_ref().map_or_else(|| item.value.range(), Ranged::range);
            let Some(key) = item.key.as_ref().and_then(string) else {
                return self.error("attribute", at, "the keys are strings", "such as `{\"key\": 1}`");
            };
            entries.push(Entry { key, at, value: &item.value });
        }
        Some(entries)
    }

    /// Reads the annotations of a loop; none if there is no argument.
    pub(super) fn annotations(&mut self, value: Option<&'a ast::Expr>) -> Option<Vec<(String, AttrValue)>> {
        let Some(value) = value else { return Some(Vec::new()) };
        let entries = self.string_keyed_dict(value)?;
        entries.into_iter().map(|entry| Some((entry.key.to_owned(), self.attr_value(entry.value)?))).collect()
    }

    /// Reads the value of an attribute. Literals stay plain values, so that they are printed as they were read; anything
    /// else is an expression.
    pub(super) fn attr_value(&mut self, value: &'a ast::Expr) -> Option<AttrValue> {
        if let Some(text) = string(value) {
            return Some(AttrValue::Str(text.to_owned()));
        }
        if let Some(parts) = sequence(value) {
            let parts: Option<Vec<_>> = parts.iter().map(|part| self.attr_value(part)).collect();
            return parts.map(AttrValue::List);
        }
        match value {
            ast::Expr::NoneLiteral(_) => self.error(
                "attribute",
                value.range(),
                "an attribute has a value here, which `None` is not",
                "leave it out",
            ),
            ast::Expr::Dict(_) => self.annotations(Some(value)).map(AttrValue::Dict),
            // A hint is about the memory as a whole, wherever the buffer begins in it.
            ast::Expr::Attribute(attribute) if attribute.attr.as_str() == "data" => {
                self.buffer(&attribute.value).map(|buffer| AttrValue::Var(buffer.data.clone()))
            }
            ast::Expr::Attribute(_) => self.data(value).map(AttrValue::Var),
            ast::Expr::Name(name) => match self.name(name)? {
                Binding::Value(Expr::Var(var)) | Binding::Handle(var) => Some(AttrValue::Var(var)),
                Binding::Value(other) => Some(AttrValue::Expr(other)),
                Binding::Buffer(buffer) | Binding::Pointer(buffer) | Binding::Unallocated(buffer) => {
                    Some(AttrValue::Var(buffer.data.clone()))
                }
                Binding::Thread(axis) => Some(AttrValue::Str(axis.to_string())),
                Binding::Indices(_) | Binding::Window(_) | Binding::Declared(_) | Binding::Failed => self.error(
                    "attribute",
                    value.range(),
                    "this is not an attribute value",
                    "name a variable or a buffer",
                ),
            },
            // A target is kept as the string or the dictionary that describes it.
            ast::Expr::Call(call) if self.callee(&call.func) == Some("target") => {
                let args = self.bind_args(call, "target", &["target_config"], 1)?;
                self.attr_value(args.get(0)?)
            }
            ast::Expr::Call(call) if is_float_call(call) => {
                let text = call.arguments.args.first().and_then(string).unwrap_or_default();
                match text.parse() {
                    Ok(float) => Some(AttrValue::Float(float)),
                    Err(_) => self.error("attribute", value.range(), "this is not a float", "such as `float(\"inf\")`"),
                }
            }
            _ => {
                let read = self.value(value)?;
                // Only an untyped literal becomes a plain value: `T.int64(1)` must keep its type.
                Some(match read.expr {
                    Expr::Int { value, ty: ScalarType::Bool } => AttrValue::Bool(value != 0),
                    Expr::Int { value, .. } if read.is_literal => {
                        AttrValue::Int(i64::try_from(value).unwrap_or(i64::MAX))
                    }
                    Expr::Float { value, .. } if read.is_literal => AttrValue::Float(value),
                    other => AttrValue::Expr(other),
                })
            }
        }
    }
}

/// Returns the attribute that a misspelled key stands for; `None` if the key is one of them or like none.
fn misspelled(key: &str) -> Option<&'static str> {
    nearest(key, REQUESTS).filter(|known| *known != key)
}

/// Returns whether a call is Python's `float("inf")`.
fn is_float_call(call: &ast::ExprCall) -> bool {
    matches!(&*call.func, ast::Expr::Name(name) if name.id.as_str() == "float")
}

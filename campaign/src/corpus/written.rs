//! Programs written as a list of parameters and a body, as the files of pairs have them.
//!
//! ```
//! use tilewright_campaign::corpus::written::program;
//! let text = program("a: (n, 4), b: (n,) int32, x: T.int32", "B[0] = x");
//! assert!(text.contains("n = T.int32()") && text.contains(r#"B = T.match_buffer(b, (n,), "int32")"#));
//! ```

/// Names and types of parameters: a shape, with the type of its elements behind it or not, or a scalar type.
pub fn parameters(params: &str) -> Vec<(String, String)> {
    let mut parts: Vec<String> = Vec::new();
    for part in params.split(", ") {
        match parts.last_mut() {
            Some(last) if last.matches('(').count() > last.matches(')').count() => {
                last.push_str(", ");
                last.push_str(part);
            }
            _ => parts.push(part.to_owned()),
        }
    }
    let named = parts.iter().filter_map(|param| param.split_once(": "));
    named.map(|(name, ty)| (name.to_owned(), ty.to_owned())).collect()
}

/// The shape of a buffer, and the type of its elements; `None` for a scalar.
pub fn shape(ty: &str) -> Option<(&str, &str)> {
    if !ty.starts_with('(') {
        return None;
    }
    Some(match ty.split_once(") ") {
        Some((shape, dtype)) => (&ty[..=shape.len()], dtype),
        None => (ty, "float32"),
    })
}

/// The symbolic extents in the shapes of parameters, in alphabetical order.
pub fn extents(params: &[(String, String)]) -> Vec<String> {
    let shapes = params.iter().filter_map(|(_, ty)| Some(shape(ty)?.0));
    let words = shapes.flat_map(|shape| shape.split(|c: char| !c.is_alphanumeric()));
    let mut found: Vec<String> =
        words.filter(|word| word.starts_with(|c: char| c.is_alphabetic())).map(str::to_owned).collect();
    found.retain(|word| params.iter().all(|(name, _)| name != word));
    found.sort();
    found.dedup();
    found
}

/// The text of a function: buffers have elements of `float32` or of the type behind their shape, and are named in capital letters.
pub fn program(params: &str, body: &str) -> String {
    let params = parameters(params);
    let list = params.iter().map(|(name, ty)| format!("{name}: {}", shape(ty).map_or(ty.as_str(), |_| "T.handle")));
    let mut lines = vec!["@T.prim_func".to_owned(), format!("def main({}):", list.collect::<Vec<_>>().join(", "))];
    lines.extend(extents(&params).iter().map(|extent| format!("    {extent} = T.int32()")));
    for (name, ty) in &params {
        if let Some((shape, dtype)) = shape(ty) {
            lines.push(format!("    {} = T.match_buffer({name}, {shape}, \"{dtype}\")", name.to_uppercase()));
        }
    }
    lines.extend(body.lines().filter(|line| !line.is_empty()).map(|line| format!("    {line}")));
    lines.join("\n") + "\n"
}

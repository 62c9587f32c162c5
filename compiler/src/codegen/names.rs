//! Legal, unique names for a dialect of C.

use std::collections::BTreeSet;

use super::target::Reserved;

/// Returns whether a language reserves an identifier.
pub(crate) fn is_reserved(name: &str, reserved: &Reserved) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    reserved.words.contains(&name)
        || (stem != name && reserved.words.contains(&stem))
        || has_reserved_prefix(name, reserved)
        || reserved.macros.contains(&name)
}

/// Returns whether a language reserves names with the prefix of `name`.
fn has_reserved_prefix(name: &str, reserved: &Reserved) -> bool {
    reserved.prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns the text in a form that can neither end nor continue a `//` comment: backslashes, and characters other than
/// printable ASCII, become question marks.
pub(crate) fn comment_text(text: &str) -> String {
    text.chars().map(|c| if c == '\\' || (!c.is_ascii_graphic() && c != ' ') { '?' } else { c }).collect()
}

/// A source of unique names.
#[derive(Clone, Debug)]
pub(crate) struct Namer {
    reserved: Reserved,
    used: BTreeSet<String>,
}

impl Namer {
    /// Creates a namer for a language with reserved names.
    pub(crate) fn new(reserved: Reserved) -> Self {
        Self { reserved, used: BTreeSet::new() }
    }

    /// Returns a name that was not returned before, as similar to `wanted` as C allows.
    pub(crate) fn fresh(&mut self, wanted: &str) -> String {
        let mut base: String =
            wanted.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).take(60).collect();
        if !base.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            base.insert(0, 'v');
        }
        if base.starts_with('_') || has_reserved_prefix(&base, &self.reserved) {
            base.insert(0, 'v');
        }
        if is_reserved(&base, &self.reserved) {
            base.push('_');
        }
        let mut name = base.clone();
        let mut count = 1;
        while self.used.contains(&name) {
            name = format!("{base}_{count}");
            count += 1;
        }
        self.used.insert(name.clone());
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal_and_unique() {
        let reserved = crate::codegen::OPENCL.reserved;
        let mut namer = Namer::new(reserved);
        let wanted = ["A", "A", "float", "float4", "i.outer", "0", "", "convert_x", "__x", "tw_f", "linux", "min", "é"];
        let names: Vec<_> = wanted.iter().map(|name| namer.fresh(name)).collect();
        let expected = [
            "A",
            "A_1",
            "float_",
            "float4_",
            "i_outer",
            "v0",
            "v",
            "vconvert_x",
            "v__x",
            "vtw_f",
            "linux_",
            "min_",
            "v_",
        ];
        assert_eq!(names, expected);
        assert!(names.iter().all(|name| !is_reserved(name, &reserved)));
    }
}

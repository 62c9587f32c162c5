//! Pairs of programs written by hand: equal ones in another form, and broken twins of them.
//!
//! The pairs are those of `tests/equivalence`, where their verdicts are tested, and some more (`texts/extra.txt`). Here they are the start of random changes, because they
//! have what generated programs lack: values that go through other memory, sums in stages, recurrences, lanes, masks.
//!
//! ```text
//! == reverse                                  the name of a case
//! a: (n,), b: (n,)                            its parameters
//! -- before
//! for i in range(n):
//!     B[i] = A[i]
//! -- after                                    also `open`, `illegal` or `beyond`
//! for i in range(n):
//!     B[n - 1 - i] = A[n - 1 - i]
//! -- wrong                                    old and new text of changes
//! A[n - 1 - i] => A[i]
//! ```
//!
//! [`pairs`] and [`extra_pairs`] have one [`TextPair`] for each program after and for each broken twin of it.

pub mod bend;
pub mod programs;

use std::sync::LazyLock;

/// The files of pairs.
const FILES: [&str; 14] = [
    include_str!("texts/loops.txt"),
    include_str!("texts/values.txt"),
    include_str!("texts/storage.txt"),
    include_str!("texts/structural.txt"),
    include_str!("texts/vectors.txt"),
    include_str!("texts/vectors_illegal.txt"),
    include_str!("texts/assertions.txt"),
    include_str!("texts/reductions.txt"),
    include_str!("texts/sums.txt"),
    include_str!("texts/truths.txt"),
    include_str!("texts/masks.txt"),
    include_str!("texts/lengths.txt"),
    include_str!("texts/updates.txt"),
    include_str!("texts/recurrences.txt"),
];

/// The pairs that only campaigns have.
const EXTRA: &str = include_str!("texts/extra.txt");

/// Sizes that symbolic extents get, in this order, where a program of constant shape is needed: small, and no two are equal.
const SIZES: [i64; 6] = [5, 3, 4, 2, 6, 7];

/// Two programs, not yet as text: parameters and bodies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPair {
    params: [String; 2],
    bodies: [String; 2],
    /// Whether the second program is another form of the first one, and nothing is known to be wrong with it.
    pub is_equal: bool,
}

/// The pairs of the files of the tests, in their order.
pub fn pairs() -> &'static [TextPair] {
    static PAIRS: LazyLock<Vec<TextPair>> = LazyLock::new(|| FILES.into_iter().flat_map(of_file).collect());
    &PAIRS
}

/// The pairs that only campaigns have: few, and each about something that is rare among the others.
pub fn extra_pairs() -> &'static [TextPair] {
    static PAIRS: LazyLock<Vec<TextPair>> = LazyLock::new(|| of_file(EXTRA));
    &PAIRS
}

/// The pairs of a file.
fn of_file(file: &str) -> Vec<TextPair> {
    file.split("\n== ").skip(1).flat_map(of_case).collect()
}

impl TextPair {
    /// Both programs. With a number, the symbolic extents are constants: small sizes, rotated by the number.
    pub fn programs(&self, rotation: Option<usize>) -> [String; 2] {
        let extents = rotation.map(|rotation| (rotation, &self.params[0]));
        let program = |side: usize| {
            let [params, body] = constant([&self.params[side], &self.bodies[side]], extents);
            text(&params, &body)
        };
        [program(0), program(1)]
    }
}

/// Texts in which the symbolic extents of some parameters are small sizes, rotated by a number.
fn constant(texts: [&str; 2], rotated: Option<(usize, &String)>) -> [String; 2] {
    let mut texts = texts.map(str::to_owned);
    let Some((rotation, params)) = rotated else { return texts };
    for (place, extent) in extents(&parameters(params)).iter().enumerate() {
        let size = SIZES[(place + rotation) % SIZES.len()].to_string();
        texts = texts.map(|text| with_word(&text, extent, &size));
    }
    texts
}

/// The pairs of a case; none if it is not written as expected, which a test excludes.
fn of_case(case: &str) -> Vec<TextPair> {
    let Some((head, rest)) = case.split_once("\n-- before\n") else { return Vec::new() };
    let Some((_, params)) = head.split_once('\n') else { return Vec::new() };
    let mut parts = rest.split("\n-- ");
    let before = parts.next().unwrap_or_default();
    let mut found: Vec<TextPair> = Vec::new();
    let mut right = None;
    for part in parts {
        let (word, body) = part.split_once('\n').unwrap_or((part, ""));
        if word == "wrong" {
            let Some(place) = right else { continue };
            for line in body.lines() {
                let Some((old, new)) = line.split_once(" => ") else { continue };
                let pair: &TextPair = &found[place];
                let wrong = pair.bodies[1].replacen(&old.replace('¶', "\n"), &new.replace('¶', "\n"), 1);
                found.push(TextPair { bodies: [before.to_owned(), wrong], is_equal: false, ..pair.clone() });
            }
        } else {
            right = Some(found.len());
            found.push(variant(params, before, body, !word.starts_with("illegal") && !word.starts_with("beyond")));
        }
    }
    // Maps of buffers are given by the user, and are tried by other oracles.
    found.retain(|pair| !pair.bodies[1].lines().any(|line| line.starts_with("map ")));
    found
}

/// The pair of a program after, which may have other parameters.
fn variant(params: &str, before: &str, body: &str, is_equal: bool) -> TextPair {
    let (mut other, mut lines) = (params.to_owned(), Vec::new());
    for line in body.lines().filter(|line| *line != "reassociate") {
        match line.strip_prefix("with ").and_then(|with| with.split_once(" for ")) {
            Some((new, old)) => other = other.replacen(old, new, 1),
            None => lines.push(line),
        }
    }
    TextPair { params: [params.to_owned(), other], bodies: [before.to_owned(), lines.join("\n")], is_equal }
}

/// Names and types of parameters: a shape, or a scalar type.
fn parameters(params: &str) -> Vec<(String, String)> {
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
fn shape(ty: &str) -> Option<(&str, &str)> {
    if !ty.starts_with('(') {
        return None;
    }
    Some(match ty.split_once(") ") {
        Some((shape, dtype)) => (&ty[..=shape.len()], dtype),
        None => (ty, "float32"),
    })
}

/// The symbolic extents in the shapes of parameters, in alphabetical order.
fn extents(params: &[(String, String)]) -> Vec<String> {
    let shapes = params.iter().filter_map(|(_, ty)| Some(shape(ty)?.0));
    let words = shapes.flat_map(|shape| shape.split(|c: char| !c.is_alphanumeric()));
    let mut found: Vec<String> =
        words.filter(|word| word.starts_with(|c: char| c.is_alphabetic())).map(str::to_owned).collect();
    found.retain(|word| params.iter().all(|(name, _)| name != word));
    found.sort();
    found.dedup();
    found
}

/// A text with a name replaced wherever it is a word of its own.
fn with_word(text: &str, name: &str, by: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let (mut done, mut word) = (String::new(), String::new());
    for c in text.chars().chain([' ']) {
        if is_part(c) {
            word.push(c);
            continue;
        }
        done.push_str(if word == name { by } else { &word });
        word.clear();
        done.push(c);
    }
    done.pop();
    done
}

/// A function with these parameters.
fn text(params: &str, body: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_can_be_read_with_symbolic_and_with_constant_shapes() {
        let (mut equal, mut wrong) = (0, 0);
        for pair in pairs().iter().chain(extra_pairs()) {
            *if pair.is_equal { &mut equal } else { &mut wrong } += 1;
            for constant in [None, Some(0), Some(3)] {
                for program in pair.programs(constant) {
                    let read = tilewright_script::read_module(&program);
                    assert!(read.is_ok(), "{:?}\n{program}", read.err());
                }
            }
        }
        assert!(equal >= 200 && wrong >= 450, "{equal} equal pairs, {wrong} broken ones");
    }

    #[test]
    fn a_name_is_replaced_as_a_whole_word() {
        assert_eq!(with_word("for in n: n_1[n - 1, nn] = n", "n", "5"), "for in 5: n_1[5 - 1, nn] = 5");
    }
}

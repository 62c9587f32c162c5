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
pub mod written;

use std::sync::LazyLock;

use self::written::{extents, parameters, program};

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
    /// Whether it takes sums in another order.
    pub reassociates: bool,
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
        [0, 1].map(|side| {
            let [params, body] = constant([&self.params[side], &self.bodies[side]], extents);
            program(&params, &body)
        })
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
    let is_marked = |line: &&str| *line == "reassociate";
    for line in body.lines().filter(|line| !is_marked(line)) {
        match line.strip_prefix("with ").and_then(|with| with.split_once(" for ")) {
            Some((new, old)) => other = other.replacen(old, new, 1),
            None => lines.push(line),
        }
    }
    let bodies = [before.to_owned(), lines.join("\n")];
    TextPair {
        params: [params.to_owned(), other],
        bodies,
        is_equal,
        reassociates: body.lines().any(|line| is_marked(&line)),
    }
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

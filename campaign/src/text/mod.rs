//! Texts as cases for the readers: arbitrary bytes, and texts of a language with a few words
//! changed.
//!
//! ```text
//! bytes ── first is 0 ──> the rest is the text
//!       └─ otherwise ───> a text of the language, generated or from a small corpus ── changes ──> a text that is nearly right
//! ```
//!
//! A case consists of its text alone, so the file of a finding shows exactly what was read: as a
//! string, or as a list of bytes if the text is not UTF-8.

mod change;
mod corpus;
mod xla;

use std::borrow::Cow;
use std::fmt::Debug;
use std::marker::PhantomData;

use arbitrary::Unstructured;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tilewright_ir::Module;

use super::case::Case;
use super::config::Config;
use super::graph::{GraphCase, native, strategy};
use super::map::MapCase;
use super::program::ProgramCase;
use tilewright_memory::planner::plan_within;

use change::Change;
pub use xla::shape as xla_shape;

/// A language of texts.
pub trait Language: Clone + Debug + PartialEq + Send + 'static {
    /// Draws a valid or nearly valid text.
    ///
    /// # Errors
    /// Never because there are too few bytes.
    fn valid(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<String>;
}

/// TVMScript and TE: half of the texts are from the corpus, half are generated programs.
#[derive(Clone, Debug, PartialEq)]
pub struct Script;

/// XLA's shapes and layouts, index maps, shapes and formats: a quarter from the corpus, half XLA
/// shapes, a quarter index maps.
#[derive(Clone, Debug, PartialEq)]
pub struct LayoutText;

/// Graphs in both formats, with and without plans, and files of findings; one text in eight is from
/// the corpus.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphText;

/// A text that claims to be of a language.
#[derive(Clone, Debug, PartialEq)]
pub struct TextCase<L> {
    bytes: Vec<u8>,
    language: PhantomData<L>,
}

impl<L> TextCase<L> {
    /// The case with these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), language: PhantomData }
    }

    /// The text; invalid UTF-8 is replaced.
    pub fn read(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// The serialized form of a text.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Bytes(Vec<u8>),
}

impl<L> Serialize for TextCase<L> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match String::from_utf8(self.bytes.clone()) {
            Ok(text) => Written::Text(text),
            Err(error) => Written::Bytes(error.into_bytes()),
        }
        .serialize(serializer)
    }
}

impl<'de, L> Deserialize<'de> for TextCase<L> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Written::deserialize(deserializer)? {
            Written::Text(text) => Self::new(text),
            Written::Bytes(bytes) => Self::new(bytes),
        })
    }
}

impl<L: Language> Case for TextCase<L> {
    /// Draws arbitrary bytes in one case out of 32, otherwise a valid text with changes.
    fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        if u.int_in_range(0..=31_u8)? == 0 {
            let length = u.len().min(config.text.bytes);
            return Ok(Self::new(u.bytes(length)?));
        }
        // Changes are drawn before the text, which may use up all bytes.
        let n_changes = u.int_in_range(config.text.changes.clone())?;
        let changes = (0..n_changes).map(|_| Change::draw(u)).collect::<arbitrary::Result<Vec<_>>>()?;
        let mut bytes = L::valid(u, config)?.into_bytes();
        for change in changes {
            bytes = change.apply(bytes);
            bytes.truncate(config.text.bytes);
        }
        Ok(Self::new(bytes))
    }

    /// Without half of the lines or words, a quarter, and so on; without single bytes if the text
    /// is short.
    fn simpler(&self) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for pieces in [change::lines(&self.bytes), change::words(&self.bytes)] {
            let mut size = pieces.len() / 2;
            while size > 0 {
                for start in (0..pieces.len()).step_by(size) {
                    let kept = pieces[..start].iter().chain(&pieces[(start + size).min(pieces.len())..]);
                    found.push(Self::new(kept.flat_map(|piece| piece.iter().copied()).collect::<Vec<u8>>()));
                }
                size /= 2;
            }
        }
        if self.bytes.len() <= 64 {
            found
                .extend((0..self.bytes.len()).map(|at| Self::new([&self.bytes[..at], &self.bytes[at + 1..]].concat())));
        }
        found.retain(|simpler| simpler.bytes.len() < self.bytes.len());
        found
    }

    fn features(&self) -> Vec<String> {
        let has = |part: &[u8]| self.bytes.windows(part.len()).any(|window| window == part);
        let size = [16, 256, 1024, 4096].into_iter().find(|&most| self.bytes.len() <= most);
        let mut found = vec![size.map_or("text:longer".to_owned(), |most| format!("text:up to {most}"))];
        let parts: [(&str, &[u8]); 4] =
            [("text:nul", b"\0"), ("text:crlf", b"\r\n"), ("text:bom", b"\xEF\xBB\xBF"), ("text:tab", b"\t")];
        found.extend(parts.into_iter().filter(|(_, part)| has(part)).map(|(name, _)| name.to_owned()));
        let kind = if self.bytes.is_ascii() {
            "ascii"
        } else if str::from_utf8(&self.bytes).is_ok() {
            "unicode"
        } else {
            "no utf8"
        };
        found.push(format!("text:{kind}"));
        found
    }

    fn text(&self) -> String {
        self.read().into_owned()
    }
}

impl Language for Script {
    fn valid(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<String> {
        if u.ratio(1, 2)? {
            return Ok((*u.choose(corpus::SCRIPTS)?).to_owned());
        }
        let case = ProgramCase::draw(u, config)?;
        Ok(case.build().map_or_else(
            |_| corpus::SCRIPTS[0].to_owned(),
            |program| tilewright_script::print_module(&Module { funcs: vec![program.func] }),
        ))
    }
}

impl Language for LayoutText {
    fn valid(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<String> {
        Ok(match u.int_in_range(0..=3)? {
            0 => (*u.choose(corpus::LAYOUTS)?).to_owned(),
            1 | 2 => xla::shape(u, config)?,
            _ => {
                let case = MapCase::draw(u, config)?;
                case.build().map_or_else(|_| String::new(), |built| built.map.to_string())
            }
        })
    }
}

impl Language for GraphText {
    fn valid(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<String> {
        let kind = u.int_in_range(0..=7)?;
        if kind == 0 {
            return Ok((*u.choose(corpus::GRAPHS)?).to_owned());
        }
        let mut small = config.clone();
        small.graph.steps = 1..=4;
        let case = GraphCase::draw(u, &small)?;
        if kind == 1 {
            return Ok(corpus::finding(&case));
        }
        let Ok(graph) = case.build() else { return Ok(String::new()) };
        if kind < 5 {
            return Ok(native(&graph).to_string());
        }
        let plan = plan_within(&graph.graph, strategy(kind), case.limits()).ok();
        Ok(tilewright_memory::graph::write(&graph, plan.as_ref()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes;

    fn drawn<L: Language>(number: u64) -> TextCase<L> {
        let bytes = bytes::of_case(2, "text", number);
        TextCase::draw(&mut Unstructured::new(&bytes), &Config::default()).unwrap()
    }

    fn survives_its_file<L: Language>() {
        for number in 0..50 {
            let case = drawn::<L>(number);
            let text = serde_json::to_string(&case).unwrap();
            assert_eq!(serde_json::from_str::<TextCase<L>>(&text).unwrap(), case);
        }
        let bytes = TextCase::<L>::new([0xFF, b'a']);
        let text = serde_json::to_string(&bytes).unwrap();
        assert_eq!(text, "[255,97]");
        assert_eq!(serde_json::from_str::<TextCase<L>>(&text).unwrap(), bytes);
    }

    #[test]
    fn texts_are_what_they_were_after_their_files() {
        survives_its_file::<Script>();
        survives_its_file::<LayoutText>();
        survives_its_file::<GraphText>();
    }

    #[test]
    fn a_zero_first_and_the_rest_is_the_text() {
        let bytes = b"\0f32[3,5]";
        let case = TextCase::<LayoutText>::draw(&mut Unstructured::new(bytes), &Config::default()).unwrap();
        assert_eq!(case.read(), "f32[3,5]");
    }

    #[test]
    fn reduction_of_a_text_ends_with_none() {
        let mut case = drawn::<Script>(3);
        while let Some(simpler) = case.simpler().into_iter().next() {
            assert!(simpler.bytes.len() < case.bytes.len());
            case = simpler;
        }
        assert_eq!(case.bytes, b"");
    }
}

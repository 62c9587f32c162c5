//! Prints and reads back: programs, modules, index maps, XLA's shapes and layouts, graphs and plans
//! have to be the same afterwards, and have to print as the same text again.

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::equal::{index_maps_equal, modules_equal};
use tilewright_ir::{Diagnostic, IndexMap, Module, PrimFunc, XlaShape};
use tilewright_script::{
    Symbols, print_module, print_xla_layout, print_xla_shape, read_index_map, read_module, read_shape, read_xla_layout,
    read_xla_shape,
};

use crate::case::{Case, without_one};
use crate::config::Config;
use crate::graph::{GraphCase, native, strategy};
use crate::map::{Generated, MapCase, listed};
use crate::mutate::with_equal_names;
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};
use crate::program::ProgramCase;
use crate::text::xla_shape;
use tilewright_memory::graph::{Document, NamedGraph, read, write};
use tilewright_memory::planner::plan_within;

/// A case: something with a text form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Printable {
    /// A function.
    Program(ProgramCase),
    /// A function in which all loop variables have the same name, and constants need all their
    /// digits.
    Alike(ProgramCase),
    /// Several functions, with numbers in their names.
    Module(Vec<ProgramCase>),
    /// An index map.
    Map(MapCase),
    /// A shape in exactly the notation that XLA prints.
    Xla(String),
    /// A graph and one of its plans.
    Graph(GraphCase),
}

impl Case for Printable {
    /// Draws out of 64: 4 programs, 1 with equal names, 1 module of two or three functions, 2
    /// graphs of at most six steps, 26 maps, 30 XLA shapes. Texts that are cheap to print are drawn
    /// more often.
    fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        Ok(match u.int_in_range(0..=63)? {
            0..=3 => Self::Program(ProgramCase::draw(u, config)?),
            4 => Self::Alike(ProgramCase::draw(u, config)?),
            5 => {
                let n_funcs = u.int_in_range(2..=3)?;
                Self::Module((0..n_funcs).map(|_| ProgramCase::draw(u, config)).collect::<arbitrary::Result<_>>()?)
            }
            6..=7 => {
                let mut small = config.clone();
                small.graph.steps = 1..=6;
                small.graph.changes = 0..=0;
                Self::Graph(GraphCase::draw(u, &small)?)
            }
            8..=33 => Self::Map(MapCase::draw(u, config)?),
            _ => Self::Xla(xla_shape(u, config)?),
        })
    }

    fn simpler(&self) -> Vec<Self> {
        match self {
            Self::Program(case) => case.simpler().into_iter().map(Self::Program).collect(),
            Self::Alike(case) => case.simpler().into_iter().map(Self::Alike).collect(),
            Self::Map(case) => case.simpler().into_iter().map(Self::Map).collect(),
            Self::Graph(case) => case.simpler().into_iter().map(Self::Graph).collect(),
            Self::Module(cases) => {
                let mut found: Vec<Self> = cases.iter().cloned().map(Self::Program).collect();
                found.extend(without_one(cases).into_iter().filter(|cases| cases.len() > 1).map(Self::Module));
                for (at, case) in cases.iter().enumerate() {
                    found.extend(case.simpler().into_iter().map(|case| {
                        let mut cases = cases.clone();
                        cases[at] = case;
                        Self::Module(cases)
                    }));
                }
                found
            }
            Self::Xla(text) => xla_simpler(text).into_iter().map(Self::Xla).collect(),
        }
    }

    fn features(&self) -> Vec<String> {
        let (kind, mut found) = match self {
            Self::Program(case) => ("program", case.features()),
            Self::Alike(case) => ("alike", case.features()),
            Self::Module(cases) => ("module", cases.first().map(Case::features).unwrap_or_default()),
            Self::Map(case) => ("map", case.features()),
            Self::Xla(text) => ("xla", xla_features(text)),
            Self::Graph(case) => ("graph", case.features()),
        };
        found.push(format!("printed:{kind}"));
        found
    }

    fn text(&self) -> String {
        match self {
            Self::Program(case) | Self::Alike(case) => case.text(),
            Self::Module(cases) => cases.iter().map(Case::text).collect::<Vec<_>>().join("\n"),
            Self::Map(case) => case.text(),
            Self::Xla(text) => text.clone(),
            Self::Graph(case) => case.text(),
        }
    }
}

/// Texts of shapes without a part of this text. Texts that cannot be read, or whose shapes print as longer
/// texts, are left out, because only XLA's own spelling has to round-trip.
fn xla_simpler(text: &str) -> Vec<String> {
    let cuts: Vec<usize> = text.char_indices().filter(|(_, c)| !c.is_ascii_alphanumeric()).map(|(at, _)| at).collect();
    let mut found = Vec::new();
    for (k, &start) in cuts.iter().enumerate() {
        for &end in cuts[k + 1..].iter().rev() {
            let shorter = format!("{}{}", &text[..start], &text[end..]);
            // Other spellings of a shape are not expected to print as they are.
            if read_xla_shape(&shorter).is_ok_and(|shape| print_xla_shape(&shape).len() <= shorter.len()) {
                found.push(shorter);
            }
        }
    }
    found.sort_by_key(String::len);
    found.truncate(40);
    found
}

/// The features of a shape, by substrings of its text.
fn xla_features(text: &str) -> Vec<String> {
    const PARTS: [(&str, &str); 12] = [
        ("T(", "tiles"),
        ("*,", "combined"),
        ("D(", "sparse"),
        ("L(", "tail"),
        ("E(", "bits"),
        ("S(", "space"),
        ("SC(", "splits"),
        ("M(", "prefix"),
        ("<=", "bounded"),
        ("?", "unbounded"),
        ("#(", "index type"),
        ("index=5", "long tuple"),
    ];
    PARTS.iter().filter(|(part, _)| text.contains(part)).map(|(_, name)| format!("xla:{name}")).collect()
}

/// The oracle `roundtrip`; see the module. The printers are fields so that tests can replace them.
#[derive(Debug)]
pub struct RoundTrip {
    module: fn(&Module) -> String,
    map: fn(&IndexMap) -> String,
    xla: fn(&XlaShape) -> String,
    graph: fn(&NamedGraph, Option<&tilewright_ir::MemoryPlan>) -> Result<String, Diagnostic>,
}

impl RoundTrip {
    /// Creates the oracle with the project's printers.
    ///
    /// # Errors
    /// Never.
    pub fn new(_: &Environment) -> Result<Self, String> {
        Ok(Self { module: print_module, map: IndexMap::to_string, xla: print_xla_shape, graph: write })
    }

    /// Checks functions as one module.
    fn funcs(&self, cases: &[ProgramCase], is_alike: bool, tally: &mut Tally) -> Result<(), Outcome> {
        let mut module = Module { funcs: Vec::with_capacity(cases.len()) };
        for (number, case) in cases.iter().enumerate() {
            let func = case.build().map_err(Outcome::Invalid)?.func;
            let func = if is_alike { with_equal_names(&func) } else { func };
            let name = if cases.len() > 1 { format!("{}_{number}", func.name) } else { func.name.clone() };
            module.funcs.push(PrimFunc { name, ..func });
        }
        let printed = (self.module)(&module);
        let back = read_module(&printed).map_err(|found| unread("program", &found, &printed))?;
        // Names that are not unique are printed with a number, so the comparison ignores them; the
        // texts are compared instead.
        if !modules_equal(&module, &back, false) {
            return Err(other("program", &printed, &(self.module)(&back)));
        }
        same_text("program", &printed, &(self.module)(&back))?;
        tally.count(if cases.len() > 1 { "round trips of modules" } else { "round trips of programs" }, 1);
        Ok(())
    }

    /// Checks an index map together with its domain.
    fn map(&self, case: &MapCase, tally: &mut Tally) -> Result<(), Outcome> {
        let Generated { map, symbols: extents, .. } = case.build().map_err(Outcome::Invalid)?;
        let printed = (self.map)(&map);
        let mut symbols = Symbols::default();
        // Reading creates new symbols; those of the domain and of the map are identified by name.
        let domain = if extents.is_empty() {
            map.domain().to_vec()
        } else {
            let printed = listed(map.domain());
            read_shape(&printed, &mut symbols).map_err(|found| unread("shape", &found, &printed))?
        };
        let back = read_index_map(&printed, Some(&domain), &mut symbols);
        let back = back.map_err(|found| unread("map", &found, &printed))?;
        if !index_maps_equal(&map, &back, true) {
            return Err(other("map", &printed, &(self.map)(&back)));
        }
        same_text("map", &printed, &(self.map)(&back))?;
        tally.count("round trips of maps", 1);
        Ok(())
    }

    /// Checks an XLA shape and its layout alone.
    fn xla(&self, text: &str, tally: &mut Tally) -> Result<(), Outcome> {
        let shape = read_xla_shape(text).map_err(|found| unread("XLA shape", &found, text))?;
        let printed = (self.xla)(&shape);
        same_text("XLA shape", text, &printed)?;
        let back = read_xla_shape(&printed).map_err(|found| unread("XLA shape", &found, &printed))?;
        if back != shape {
            return Err(other("XLA shape", text, &printed));
        }
        tally.count("round trips of XLA shapes", 1);
        let XlaShape::Array(array) = &shape else { return Ok(()) };
        let rank = array.dimensions().len();
        // A layout by itself lacks the extents to which splits and sparse dimensions refer.
        let Some(layout) = array.layout().filter(|layout| layout.split_configs.is_empty() && rank > 0) else {
            return Ok(());
        };
        let printed = print_xla_layout(layout);
        let back = read_xla_layout(&printed, rank).map_err(|found| unread("XLA layout", &found, &printed))?;
        if back != *layout || !text.ends_with(&printed) {
            return Err(other("XLA layout", text, &printed));
        }
        tally.count("round trips of XLA layouts", 1);
        Ok(())
    }

    /// Checks a graph with and without a plan, in both formats.
    fn graph(&self, case: &GraphCase, tally: &mut Tally) -> Result<(), Outcome> {
        let invalid =
            |faults: &[Diagnostic]| Outcome::Invalid(faults.first().map_or("", |fault| fault.code).to_owned());
        let graph = case.build().map_err(|faults| invalid(&faults))?;
        let number = u8::try_from(case.steps.len() % 3).unwrap_or(0);
        let plan = plan_within(&graph.graph, strategy(number), case.limits()).map_err(|fault| invalid(&[fault]))?;
        for plan in [None, Some(plan)] {
            let written =
                |graph: &NamedGraph| (self.graph)(graph, plan.as_ref()).map_err(|fault| unread("graph", &[fault], ""));
            let text = written(&graph)?;
            let back = read(&text).map_err(|found| unread("graph", &found, &text))?;
            let again = written(&back.graph)?;
            if back != (Document { graph: graph.clone(), plan: plan.clone() }) {
                return Err(other("graph", &text, &again));
            }
            same_text("graph", &text, &again)?;
            tally.count("round trips of graphs", 1);
        }
        let text = native(&graph).to_string();
        let mut back = read(&text).map_err(|found| unread("graph", &found, &text))?.graph;
        // The native format lists each output only once.
        back.outputs.clone_from(&graph.outputs);
        if back != graph {
            return Err(other("graph", &text, &native(&back).to_string()));
        }
        tally.count("round trips of graphs", 1);
        Ok(())
    }
}

/// The failure that a printed text is refused.
fn unread(kind: &str, found: &[Diagnostic], text: &str) -> Outcome {
    let first = found.first().map(ToString::to_string).unwrap_or_default();
    Failure::outcome(format!("{kind}: what is printed is not read"), format!("{first}\n{text}"))
}

/// The failure that a printed text reads back as another value.
fn other(kind: &str, text: &str, again: &str) -> Outcome {
    Failure::outcome(format!("{kind}: what is printed reads back as another"), format!("{text}\nis read as\n{again}"))
}

/// Checks that two texts are equal.
fn same_text(kind: &str, text: &str, again: &str) -> Result<(), Outcome> {
    if text == again {
        return Ok(());
    }
    Err(Failure::outcome(
        format!("{kind}: the text is another after reading"),
        format!("{text}\nis printed as\n{again}"),
    ))
}

impl Oracle for RoundTrip {
    type Case = Printable;

    const NAME: &'static str = "roundtrip";

    fn check(&mut self, case: &Printable, tally: &mut Tally) -> Outcome {
        let held = match case {
            Printable::Program(case) => self.funcs(std::slice::from_ref(case), false, tally),
            Printable::Alike(case) => self.funcs(std::slice::from_ref(case), true, tally),
            Printable::Module(cases) => self.funcs(cases, false, tally),
            Printable::Map(case) => self.map(case, tally),
            Printable::Xla(text) => self.xla(text, tally),
            Printable::Graph(case) => self.graph(case, tally),
        };
        held.err().unwrap_or(Outcome::Held)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::bytes;

    fn cases(end: u64) -> impl Iterator<Item = Printable> {
        let bytes = (0..end).map(|number| bytes::of_case(4, "roundtrip", number));
        bytes.map(|bytes| Printable::draw(&mut Unstructured::new(&bytes), &Config::default()).unwrap())
    }

    fn found(change: impl FnOnce(&mut RoundTrip)) -> Vec<String> {
        let mut oracle = RoundTrip::new(&Environment::default()).unwrap();
        change(&mut oracle);
        let outcomes = cases(400).map(|case| oracle.check(&case, &mut Tally::default()));
        let mut found: Vec<String> = outcomes
            .filter_map(|outcome| match outcome {
                Outcome::Failed(failure) => Some(failure.what),
                Outcome::Invalid(why) => Some(why),
                Outcome::Held | Outcome::Undecided(_) => None,
            })
            .collect();
        found.dedup();
        found
    }

    #[test]
    fn printers_hold_and_broken_ones_are_flagged() {
        assert_eq!(found(|_| ()), Vec::<String>::new());
        let flagged = |what: &str, change: fn(&mut RoundTrip)| {
            let found = found(change);
            assert!(found.iter().all(|failure| failure.starts_with(what)) && !found.is_empty(), "{what}: {found:?}");
        };
        flagged("program", |oracle| {
            oracle.module = |module| print_module(module).replace(" + ", " - ");
        });
        flagged("map", |oracle| oracle.map = |map| map.to_string().replace("//", "%"));
        flagged("XLA", |oracle| oracle.xla = |shape| print_xla_shape(shape).replacen("T(", "T(1,", 1));
        flagged("graph", |oracle| {
            oracle.graph = |graph, plan| {
                let mut graph = graph.clone();
                graph.functions.iter_mut().for_each(|function| *function = None);
                write(&graph, plan)
            };
        });
    }

    /// Measures the rate of each kind; `cargo test --release --lib -- --ignored
    /// round_trips_a_second --nocapture`.
    #[test]
    #[ignore = "it measures"]
    fn round_trips_a_second() {
        let mut oracle = RoundTrip::new(&Environment::default()).unwrap();
        let all: Vec<Printable> = cases(60_000).collect();
        let mut line = |kind: &str, cases: Vec<&Printable>| {
            let mut tally = Tally::default();
            let start = Instant::now();
            for case in &cases {
                let outcome = oracle.check(case, &mut tally);
                assert!(!matches!(outcome, Outcome::Failed(_)), "{case:?}: {outcome:?}");
            }
            let trips: u64 = tally.counts.values().sum();
            #[expect(clippy::cast_precision_loss, reason = "for people")]
            let rate = trips as f64 / start.elapsed().as_secs_f64();
            eprintln!("{kind}: {trips} round trips of {} cases, {rate:.0} a second", cases.len());
        };
        line("all", all.iter().collect());
        line(
            "programs",
            all.iter().filter(|case| matches!(case, Printable::Program(_) | Printable::Module(_))).collect(),
        );
        line("maps", all.iter().filter(|case| matches!(case, Printable::Map(_))).collect());
        line("layouts", all.iter().filter(|case| matches!(case, Printable::Xla(_))).collect());
        line("graphs", all.iter().filter(|case| matches!(case, Printable::Graph(_))).collect());
    }
}

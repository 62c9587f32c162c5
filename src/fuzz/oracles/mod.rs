//! Every oracle by name: one file each.

pub mod certificate;
pub mod inverse;
pub mod judge_layouts;
pub mod judge_maps;
pub mod passes;

use super::oracle::{Environment, Oracle};
use super::session::{Runner, Session};

/// An oracle in the list.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it holds against what, in a line.
    pub summary: &'static str,
    /// Makes it ready to run; the error says in a sentence why it cannot be had here.
    pub make: fn(&Environment) -> Result<Box<dyn Runner>, String>,
}

/// All of them, in the order of the table in README.
pub static ORACLES: &[Entry] = &[
    Entry {
        name: passes::Passes::NAME,
        summary: "a program in the interpreter, before and after every pass",
        make: |environment| session(passes::Passes::new, environment),
    },
    Entry {
        name: judge_maps::JudgeMaps::NAME,
        summary: "the judge's verdicts on index maps against every point tried",
        make: |environment| session(judge_maps::JudgeMaps::new, environment),
    },
    Entry {
        name: judge_layouts::JudgeLayouts::NAME,
        summary: "the judge's verdicts on tiled layouts against pad, reshape, transpose",
        make: |environment| session(judge_layouts::JudgeLayouts::new, environment),
    },
    Entry {
        name: certificate::Certificate::NAME,
        summary: "digit certificates are accepted, and every mutation of them is rejected",
        make: |environment| session(certificate::Certificate::new, environment),
    },
    Entry {
        name: inverse::Inverse::NAME,
        summary: "maps, tensors and layouts there and back",
        make: |environment| session(inverse::Inverse::new, environment),
    },
];

fn session<O: Oracle + 'static>(
    make: fn(&Environment) -> Result<O, String>,
    environment: &Environment,
) -> Result<Box<dyn Runner>, String> {
    Ok(Box::new(Session::new(make, environment.clone())?))
}

/// The oracle of that name.
pub fn by_name(name: &str) -> Option<&'static Entry> {
    ORACLES.iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::{Tally, bytes};

    #[test]
    fn every_oracle_holds_on_its_first_cases() {
        for entry in ORACLES {
            let mut runner = (entry.make)(&Environment::default()).unwrap();
            let mut tally = Tally::default();
            for number in 0..20 {
                let found = runner.run(&[bytes::of_case(0, entry.name, number)], &mut tally);
                assert!(found.is_empty(), "{found:#?}");
            }
            assert!(tally.held > 5, "{}: {tally:#?}", entry.name);
        }
    }
}

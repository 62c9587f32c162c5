//! Oracles that are wrong on purpose, with which campaigns are tested. They are not in the list,
//! and run only by name.

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};

use super::{Entry, session};
use crate::case::{Case, without_one};
use crate::config::Config;
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};

/// The names, which say what happens for a case with a number of at least [`BAD`].
const NAMES: [&str; 7] = [
    "self-test-holds",
    "self-test-fails",
    "self-test-panics",
    "self-test-ends",
    "self-test-hangs",
    "self-test-eats-memory",
    "self-test-is-absent",
];

/// The smallest bad number: one number out of 64 is bad.
const BAD: u16 = 64512;

/// One entry for each of [`NAMES`].
pub(super) static ENTRIES: &[Entry] = &[
    entry::<0>("holds"),
    entry::<1>("fails where a number is large"),
    entry::<2>("panics where a number is large"),
    entry::<3>("ends the process where a number is large"),
    entry::<4>("never comes back where a number is large"),
    entry::<5>("takes ever more memory where a number is large"),
    entry::<6>("cannot be had"),
];

/// The entry of the oracle with this index in [`NAMES`].
const fn entry<const N: usize>(summary: &'static str) -> Entry {
    Entry { name: NAMES[N], summary, make: |environment| session(SelfTest::<N>::new, environment) }
}

/// A case: some numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Numbers(Vec<u16>);

impl Case for Numbers {
    fn draw(u: &mut Unstructured<'_>, _: &Config) -> arbitrary::Result<Self> {
        let length = u.int_in_range(1..=4)?;
        Ok(Self((0..length).map(|_| u.arbitrary()).collect::<arbitrary::Result<_>>()?))
    }

    fn simpler(&self) -> Vec<Self> {
        let fewer = without_one(&self.0).into_iter().map(Self);
        let less = (0..self.0.len()).flat_map(|at| {
            [0, BAD].into_iter().filter(move |&less| less < self.0[at]).map(move |less| {
                let mut numbers = self.0.clone();
                numbers[at] = less;
                Self(numbers)
            })
        });
        fewer.chain(less).collect()
    }

    fn features(&self) -> Vec<String> {
        vec![format!("numbers:{}", self.0.len())]
    }

    fn text(&self) -> String {
        format!("{:?}", self.0)
    }
}

/// The oracle with index `N` in [`NAMES`].
struct SelfTest<const N: usize>;

impl<const N: usize> SelfTest<N> {
    fn new(_: &Environment) -> Result<Self, String> {
        if N == 6 { Err("it is absent on purpose".into()) } else { Ok(Self) }
    }
}

impl<const N: usize> Oracle for SelfTest<N> {
    type Case = Numbers;

    const NAME: &'static str = NAMES[N];

    fn check(&mut self, case: &Numbers, tally: &mut Tally) -> Outcome {
        tally.count("numbers", 1);
        let Some(bad) = case.0.iter().find(|&&number| number >= BAD) else { return Outcome::Held };
        match N {
            1 => Failure::outcome("a number is too large", bad.to_string()),
            // An index out of bounds panics like the mistakes that this oracle stands for.
            2 => Failure::outcome("no panic", case.0[usize::from(*bad)].to_string()),
            3 => std::process::abort(),
            4 => loop {
                std::thread::sleep(std::time::Duration::from_secs(1));
            },
            5 => {
                let mut pieces = Vec::new();
                loop {
                    pieces.push(vec![1u8; 1 << 20]);
                    std::hint::black_box(&pieces);
                }
            }
            _ => Outcome::Held,
        }
    }
}

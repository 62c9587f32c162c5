//! Graphs for the tests of memory planners, by the generator of the fuzzer.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use arbitrary::Unstructured;
use tilewright::fuzz::graph::GraphCase;
use tilewright::fuzz::{Case, Config, bytes};
use tilewright::graph::NamedGraph;

/// Numbers that look random and are the same for the same seed (xorshift64*).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % end
    }

    /// A place in a list of `n`.
    pub(crate) fn place(&mut self, n: usize) -> usize {
        usize::try_from(self.below(u64::try_from(n).unwrap())).unwrap()
    }

    pub(crate) fn one_of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.place(list.len())].clone()
    }

    /// Whether something happens that happens `times` times of 100.
    pub(crate) fn percent(&mut self, times: u64) -> bool {
        self.below(100) < times
    }
}

/// A graph made from a seed: chains and branches, steps with several outputs, long skips, tensors that nobody reads, views of
/// views, views that are outputs, outputs in the middle.
pub(crate) fn random(seed: u64) -> NamedGraph {
    let bytes = bytes::of_case(seed, "graphs", 0);
    let case = GraphCase::draw(&mut Unstructured::new(&bytes), &Config::default()).unwrap();
    case.build().unwrap_or_else(|faults| panic!("seed {seed}: {faults:?}"))
}

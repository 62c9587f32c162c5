//! Cases as proptest strategies: drawn from bytes and reduced as in a campaign.
//!
//! ```
//! use proptest::prelude::*;
//! use tilewright_campaign::map::MapCase;
//! use tilewright_campaign::{Config, strategy};
//!
//! proptest!(ProptestConfig::with_cases(16), |(case in strategy::<MapCase>(Config::default()))| {
//!     prop_assert!(case.build().is_ok());
//! });
//! ```

use std::marker::PhantomData;
use std::vec::IntoIter;

use arbitrary::Unstructured;
use proptest::prelude::Rng;
use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::bytes;
use super::case::Case;
use super::config::Config;

/// A strategy for cases within the given ranges.
pub fn strategy<C: Case>(config: Config) -> Cases<C> {
    Cases { config, kind: PhantomData }
}

/// The type of [`strategy()`].
#[derive(Clone, Debug)]
pub struct Cases<C> {
    config: Config,
    kind: PhantomData<fn() -> C>,
}

/// A case, and the simpler cases that have not been tried.
#[derive(Clone, Debug)]
pub struct Reduction<C> {
    current: C,
    /// The simplest case that failed.
    failed: C,
    simpler: IntoIter<C>,
}

impl<C: Case> Strategy for Cases<C> {
    type Tree = Reduction<C>;
    type Value = C;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let mut bytes = vec![0; bytes::LENGTH];
        runner.rng().fill_bytes(&mut bytes);
        let case = C::draw(&mut Unstructured::new(&bytes), &self.config).map_err(|error| error.to_string())?;
        Ok(Reduction { current: case.clone(), failed: case, simpler: Vec::new().into_iter() })
    }
}

impl<C: Case> ValueTree for Reduction<C> {
    type Value = C;

    fn current(&self) -> C {
        self.current.clone()
    }

    fn simplify(&mut self) -> bool {
        self.failed = self.current.clone();
        self.simpler = self.current.simpler().into_iter();
        self.complicate()
    }

    fn complicate(&mut self) -> bool {
        let next = self.simpler.next();
        let is_next = next.is_some();
        self.current = next.unwrap_or_else(|| self.failed.clone());
        is_next
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::program::ProgramCase;
    use crate::program::recipe::Layout;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn programs_of_the_strategy_are_valid(case in strategy::<ProgramCase>(Config::default())) {
            prop_assert!(case.build().is_ok());
        }
    }

    #[test]
    fn a_failing_case_is_reduced_to_what_matters() {
        let has_layout = |case: &ProgramCase| match case {
            ProgramCase::Recipe(recipe) => recipe
                .inputs
                .iter()
                .filter(|input| matches!(&input.layout, Layout::Ops { ops, .. } if !ops.is_empty()))
                .count(),
            ProgramCase::Tvmscript { .. } => 0,
        };
        let mut runner = TestRunner::deterministic();
        let cases = strategy::<ProgramCase>(Config::default());
        let mut tree = loop {
            let tree = cases.new_tree(&mut runner).unwrap();
            if has_layout(&tree.current()) > 0 {
                break tree;
            }
        };
        let mut fails = true;
        while if fails { tree.simplify() } else { tree.complicate() } {
            fails = has_layout(&tree.current()) > 0;
        }
        let ProgramCase::Recipe(least) = tree.current() else { panic!("a recipe") };
        assert_eq!((least.inputs.len(), least.stages.len()), (1, 1));
        assert_eq!((least.inputs[0].shape.as_slice(), least.stages[0].target.shape.as_slice()), (&[1][..], &[1][..]));
        assert!(
            matches!(&least.inputs[0].layout, Layout::Ops { ops, separators, .. } if ops.len() == 1 && separators.is_empty())
        );
    }
}

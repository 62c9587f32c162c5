//! The generator of pairs: what it draws is valid, and its equal forms are equal.

use std::collections::BTreeMap;

use super::*;
use crate::bytes;
use crate::oracle::Outcome;
use crate::oracles::judge_pairs::{Truth, examine};

/// The drawn cases with these numbers.
fn drawn(n: u64) -> impl Iterator<Item = PairCase> {
    (0..n).map(|number| {
        let bytes = bytes::of_case(5, "pairs", number);
        PairCase::draw(&mut Unstructured::new(&bytes), &Config::default()).unwrap()
    })
}

#[test]
fn pairs_are_valid_and_equal_forms_are_equal_and_many_pairs_differ() {
    let (mut invalid, mut truths): (BTreeMap<String, usize>, BTreeMap<&str, usize>) = Default::default();
    for case in drawn(400) {
        match examine(&case.texts()) {
            Ok(examined) => *truths.entry(examined.truth.word()).or_default() += 1,
            Err(Outcome::Invalid(why)) => *invalid.entry(why).or_default() += 1,
            Err(other) => panic!("{other:?}\n{}", case.text()),
        }
    }
    let least = |word| *truths.get(word).unwrap_or(&0);
    assert!(invalid.values().sum::<usize>() < 20, "{invalid:#?}");
    assert!(least("equal") > 80 && least("different") > 80, "{truths:?}");
}

#[test]
fn races_that_some_scalars_show_are_drawn() {
    let racing = drawn(200).filter(|case| {
        let examined = examine(&case.texts());
        examined.is_ok_and(|found| {
            found.wrong[0].iter().any(|(_, trap)| trap.contains("race") || trap.contains("iterations"))
        })
    });
    assert!(racing.count() > 5);
}

#[test]
fn a_recipe_is_reduced_to_a_smaller_one_and_pinned_as_its_texts() {
    for case in drawn(50) {
        assert!(!case.simpler().contains(&case));
        assert_eq!(case.pinned().map(|pinned| pinned.texts()), Some(case.texts()));
        let json = serde_json::to_value(&case).unwrap();
        assert_eq!(serde_json::from_value::<PairCase>(json).unwrap(), case);
    }
    let mut case = drawn(1).next().unwrap();
    while let Some(simpler) = case.simpler().into_iter().next() {
        case = simpler;
    }
    let PairCase::Recipe(least) = &case else { panic!("a recipe") };
    assert!(least.twists.is_empty() && least.both.is_empty());
    assert!(matches!(examine(&case.texts()).unwrap().truth, Truth::Equal));
}

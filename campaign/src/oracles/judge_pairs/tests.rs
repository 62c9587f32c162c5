//! The oracle `judge_pairs`: it holds on right verdicts, and wrong ones are detected.

use super::*;

const COPY: &str = "from tvm.script import tir as T

@T.prim_func
def main(k: T.int32, A: T.Buffer((7,), \"int32\"), B: T.Buffer((7,), \"int32\")):
    for i in range(7):
        if k > 0:
            B[i] = A[i]
";

/// A pair of texts.
fn pair_of(before: &str, after: &str, known: Known) -> PairTexts {
    PairTexts { before: before.into(), after: after.into(), known, executed: None, is_resized: false, seed: 3 }
}

#[test]
fn a_guard_on_a_scalar_of_any_sign_tells_programs_apart() {
    let bare = COPY.replace("if k > 0:", "if k > -99:");
    let examined = examine(&pair_of(COPY, &bare, Known::Nothing)).unwrap();
    assert!(matches!(examined.truth, Truth::Different(_)));
    let same = examine(&pair_of(COPY, COPY, Known::Nothing)).unwrap();
    assert_eq!(same.truth, Truth::Unknown);
    let mut oracle = JudgePairs::new(&Environment::default()).unwrap();
    let held = oracle.check(&PairCase::Tvmscript(pair_of(COPY, &bare, Known::Nothing)), &mut Tally::default());
    assert_eq!(held, Outcome::Held);
    let held = oracle.check(&PairCase::Tvmscript(pair_of(COPY, COPY, Known::Equal)), &mut Tally::default());
    assert_eq!(held, Outcome::Held);
}

#[test]
fn wrong_verdicts_on_pairs_are_detected() {
    let oracle = JudgePairs::new(&Environment::default()).unwrap();
    let (copy, bare) = (read(COPY).unwrap(), read(&COPY.replace("if k > 0:", "if k > -99:")).unwrap());
    let texts = pair_of(COPY, COPY, Known::Equal);
    let of = |before, after| pair::validate(before, after, &[], &oracle.judge).unwrap().reports;
    let (proved, refuted) = (of(&copy, &copy), of(&copy, &bare));
    assert!(matches!(judged(&Truth::Different(String::new()), &proved, &texts), Outcome::Failed(_)));
    assert!(matches!(judged(&Truth::Equal, &refuted, &texts), Outcome::Failed(_)));
    assert_eq!(judged(&Truth::Equal, &proved, &texts), Outcome::Held);
    assert_eq!(judged(&Truth::Different(String::new()), &refuted, &texts), Outcome::Held);
}

#[test]
fn a_race_that_only_some_scalars_show_is_found_and_a_wrong_proof_of_it_is_detected() {
    let racing = COPY.replace("range(7)", "T.parallel(7)").replace("B[i]", "B[T.if_then_else(k >= 1, i, 0)]");
    let racing = racing.replace("if k > 0", "if k > -99");
    let examined = examine(&pair_of(&racing, &racing, Known::Equal)).unwrap();
    let of_before = &examined.wrong[0];
    assert!(of_before.iter().any(|(obligation, _)| *obligation == Obligation::Race), "{of_before:?}");
    let oracle = JudgePairs::new(&Environment::default()).unwrap();
    let [right, wrong] = [COPY.replace("range(7)", "T.parallel(7)"), racing].map(|text| read(&text).unwrap());
    let (of_right, of_wrong) = (oracle.judge.check_program(&right), oracle.judge.check_program(&wrong));
    assert!(false_proof(of_before, &of_right, &right).is_some());
    assert!(false_proof(of_before, &of_wrong, &wrong).is_none());
}

//! The oracle `judge_programs`: right passes hold, and a judge with wrong verdicts is detected.

use super::*;
use tilewright_compiler::passes::{flatten_buffer, vectorize};

const COPY: &str = "from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((5, 7), \"int32\"), B: T.Buffer((5, 7), \"int32\")):
    for i, j in T.grid(5, 7):
        if j < 6:
            B[i, j] = A[i, j + 1] - j
";

fn read(text: &str) -> PrimFunc {
    tilewright_script::read_module(text).unwrap().funcs.remove(0)
}

#[test]
fn a_right_pass_holds_and_every_change_that_shows_is_not_proved() {
    let mut oracle = JudgePrograms::new(&Environment::default()).unwrap();
    let program = ProgramCase::tvmscript(COPY, 3);
    let mut tally = Tally::default();
    let outcome = oracle.check(&JudgedCase { program, changes: (0..20).collect() }, &mut tally);
    assert_eq!(outcome, Outcome::Held, "{tally:#?}");
    assert!(tally.counts["changes refuted"] + tally.counts.get("changes unknown").unwrap_or(&0) > 5, "{tally:#?}");
    assert!(tally.counts["passes proved"] == 3 && tally.counts["values compared"] > 100, "{tally:#?}");
}

#[test]
fn a_judge_that_is_asked_about_another_program_than_ran_is_found_out() {
    let oracle = JudgePrograms::new(&Environment::default()).unwrap();
    let before = read(COPY);
    let same = vectorize(&before).unwrap();
    let differs = |wrong: &PrimFunc| {
        matches!(compare_runs(&before, wrong, &same.evidence, &Bindings::new(), 3), RunComparison::Differ(_))
    };
    let wrong = (0..100).map(|seed| mutated_program(&before, seed)).find(differs).unwrap();
    let done = flatten_buffer(&wrong).unwrap();
    let mut tally = Tally::default();
    let step = Transformation {
        name: "flatten_buffer",
        before: &before,
        after: &done.func,
        evidence: &done.evidence,
        symbols: &Bindings::new(),
        seed: 3,
    };
    assert!(matches!(oracle.check_pass_as_is(&step, &mut None, &mut tally), Err(Outcome::Failed(_))));
    // The runs of two programs that differ, with the verdict on two that do not, as a wrong judge
    // would give it.
    let reports = oracle.judge.check_pass(&before, &same.func, &same.evidence);
    assert!(reports.iter().all(|report| report.verdict.is_proved()));
    assert!(matches!(compare_runs(&before, &wrong, &same.evidence, &Bindings::new(), 3), RunComparison::Differ(_)));
    assert!(matches!(compare_runs(&before, &before, &same.evidence, &Bindings::new(), 3), RunComparison::Same(70..)));
}

#[test]
fn accesses_that_are_called_inside_or_outside_wrongly_are_found_out() {
    let oracle = JudgePrograms::new(&Environment::default()).unwrap();
    let (right, outside) = (read(COPY), read(&COPY.replace("j + 1", "j + 2")));
    let (of_right, of_outside) = (oracle.judge.check_program(&right), oracle.judge.check_program(&outside));
    let failed = |func: &PrimFunc, reports: &[Report]| {
        check_alone(func, &Bindings::new(), reports, &mut Tally::default()).is_err()
    };
    assert!(!failed(&right, &of_right) && !failed(&outside, &of_outside));
    assert!(failed(&outside, &of_right) && failed(&right, &of_outside));
}

const SYMBOLIC: &str = "from tvm.script import tir as T

@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 7), \"int32\")
    B = T.match_buffer(b, (n, 7), \"int32\")
    for i, j in T.grid(n, 7):
        B[i, j] = A[i, j] + A[0, j]
";

#[test]
fn a_refutation_for_other_extents_is_run_with_those() {
    let oracle = JudgePrograms::new(&Environment::default()).unwrap();
    // Both run with three rows and with five; the mistake in the second shows with fewer than
    // three.
    let (right, wrong) = (read(SYMBOLIC), read(&SYMBOLIC.replace("A[0, j]", "A[2, j]")));
    let look = |func: &PrimFunc, report: &Report| {
        let symbols = func.symbols().into_iter().map(|var| (var, 5)).collect();
        let done = vectorize(func).unwrap();
        let step = Transformation {
            name: "vectorize",
            before: func,
            after: &done.func,
            evidence: &done.evidence,
            symbols: &symbols,
            seed: 3,
        };
        assert!(matches!(compare_runs(func, step.after, step.evidence, &symbols, 3), RunComparison::Same(70..)));
        matches!(
            compare_at_counterexample(&step, report, std::slice::from_ref(report), &mut Tally::default()),
            RunComparison::Same(_)
        )
    };
    let reports = oracle.judge.check_program(&wrong);
    let refuted = reports.iter().find(|report| matches!(report.verdict, Verdict::Refuted(_))).unwrap();
    assert!(!look(&wrong, refuted), "the program is at fault there");
    assert!(look(&right, refuted), "a judge that refutes what is right is found out");
    let mut tally = Tally::default();
    let symbols = [("n".to_owned(), 5)].into();
    let text = SYMBOLIC.replace("A[0, j]", "A[2, j]");
    let program = ProgramCase::Tvmscript { text, seed: 3, symbols };
    let mut oracle = oracle;
    let outcome = oracle.check(&JudgedCase { program, changes: (0..8).collect() }, &mut tally);
    assert_eq!(outcome, Outcome::Held);
    assert!(tally.counts["passes refuted for other extents"] > 0, "{tally:#?}");
}

/// A condition that leaves its type in the first three iterations of five.
const LEAVES: &str = "from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((5,), \"uint8\"), B: T.Buffer((5,), \"uint8\")):
    for i in range(5):
        B[i] = T.Select(T.Cast(\"uint8\", i - 3) < T.uint8(9), A[i], T.uint8(1))
";

#[test]
fn only_an_overflow_of_the_program_before_in_the_same_iteration_excuses_a_pass() {
    let oracle = JudgePrograms::new(&Environment::default()).unwrap();
    let before = read(LEAVES);
    let reports = oracle.judge.check_program(&before);
    let refuted = reports.iter().find(|report| matches!(report.verdict, Verdict::Refuted(_))).unwrap();
    // As if the pass had been refuted in another iteration, or for another statement.
    let at = |value: i128, subject: &str| {
        let Verdict::Refuted(found) = &refuted.verdict else { panic!("{}", refuted.verdict) };
        let mut found = found.clone();
        found.assignments = vec![("i".to_owned(), value)];
        Report { verdict: Verdict::Refuted(found), subject: subject.to_owned(), ..refuted.clone() }
    };
    for value in 0..5 {
        let own = at(value, &refuted.subject);
        assert_eq!(oracle.is_refuted_before(&before, &own), value < 3, "i = {value}");
    }
    assert!(!oracle.is_refuted_before(&before, &at(7, &refuted.subject)), "no iteration of the loop");
    assert!(!oracle.is_refuted_before(&before, &at(2, "indices of `C[i] = ...`")), "another statement");
    let right = read(&LEAVES.replace("i - 3", "i + 3"));
    assert!(!oracle.is_refuted_before(&right, &at(1, &refuted.subject)), "the program before has no overflow");
}

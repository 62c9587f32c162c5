//! Every program means what it means: `validate X X` is proved, as far as two programs are compared, also with other names for the
//! integers of the call. Examples, the programs of the file tests, and what the campaigns generate.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arbitrary::Unstructured;
use tilewright::fuzz::conditions::with_condition;
use tilewright::fuzz::pairs::PairCase;
use tilewright::fuzz::program::ProgramCase;
use tilewright::fuzz::te::Scheduled;
use tilewright::fuzz::tiny::Tiny;
use tilewright::fuzz::{Case, Config as Drawn, bytes};
use tilewright::pipeline::pair::pair;
use tilewright::pipeline::read;
use tilewright_ir::{Module, PrimFunc};
use tilewright_script::print_module;
use tilewright_verify::{Config, Judge, OWN_MEMORY, Obligation, Reason, Report, Verdict};

/// Longer texts are left out: they test limits of the readers.
const LONGEST: usize = 20_000;

/// How a program was shown to mean what it means.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// Everything is proved.
    followed: usize,
    /// Followed, or seen to be the same; the program itself is wrong.
    same: usize,
    /// The premises of the program contradict each other or have no value: nothing at all is proved.
    vacuous: usize,
}

impl Count {
    fn all(self) -> usize {
        self.followed + self.same + self.vacuous
    }
}

fn judge() -> Judge {
    let config = Config { timeout: Duration::from_millis(300), rlimit: 300_000, ..Config::default() };
    Judge::new(config, tilewright_search::strategies()).unwrap()
}

fn text_of(func: PrimFunc) -> String {
    print_module(&Module { funcs: vec![func] })
}

/// The functions of a text that can be read, each as a text of its own.
fn functions(text: &str) -> Vec<String> {
    let found =
        if text.len() > LONGEST { Vec::new() } else { read(text, None).map_or(Vec::new(), |read| read.programs) };
    found.into_iter().map(|program| text_of(program.func)).collect()
}

fn func(text: &str) -> PrimFunc {
    let read = read(text, None).unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"));
    read.programs.into_iter().next().unwrap().func
}

/// The text with each integer of the call under another name.
fn with_other_names(text: &str) -> String {
    let func = func(text);
    let names: Vec<String> =
        func.symbols().iter().chain(&func.scalars()).map(|scalar| scalar.name().to_owned()).collect();
    let is_end = |c: char| !c.is_alphanumeric() && c != '_' && c != '.';
    let other = |piece: &str| {
        let word = piece.trim_end_matches(is_end);
        if names.iter().any(|name| name == word) {
            format!("{word}_renamed{}", &piece[word.len()..])
        } else {
            piece.into()
        }
    };
    text.split_inclusive(is_end).map(other).collect()
}

/// Whether a program is wrong by itself: an obligation of the program after alone is refuted, or speaks of nothing. What is merely
/// open holds if it holds of the program before. That threads exchange values in memory of each thread is never refuted, since no run shows it.
fn is_wrong_itself(report: &Report) -> bool {
    if report.subject.ends_with(OWN_MEMORY) {
        return report.verdict.reason().is_some_and(|why| why.to_string().contains("and others touch it"));
    }
    let of_both = [Obligation::Simulation, Obligation::Iteration, Obligation::Injective, Obligation::Tight];
    let is_of_both = |why: &Reason| why.to_string().contains("does not hold of the program before, either");
    let is_open =
        report.verdict.reason().is_some_and(|why| matches!(report.verdict, Verdict::Unknown(_)) && !is_of_both(why));
    !is_open && !of_both.contains(&report.obligation) && !report.subject.contains("lambda")
}

/// Judges a program and itself, as `validate` does.
fn check(judge: &Judge, before: &str, after: &str, count: &mut Count) {
    let before_func = func(before);
    let (after_func, evidence) =
        pair(&before_func, &func(after), &[]).unwrap_or_else(|faults| panic!("{faults:#?}\n{before}\n{after}"));
    let reports = judge.taking_over().check_pass(&before_func, &after_func, &evidence);
    let is_proved = |report: &Report| report.verdict.is_proved();
    let place = if !reports.is_empty() && reports.iter().all(is_proved) {
        &mut count.followed
    } else if !reports.is_empty()
        && reports.iter().filter(|report| !is_proved(report)).all(is_wrong_itself)
        && reports.iter().any(|report| is_proved(report) && report.obligation == Obligation::Simulation)
    {
        &mut count.same
    } else if !reports.is_empty() && !reports.iter().any(is_proved) {
        &mut count.vacuous
    } else {
        let open: Vec<_> = reports.iter().filter(|report| !is_proved(report)).collect();
        panic!("{before}\n{after}\n{open:#?}");
    };
    *place += 1;
}

/// Judges each program, and with other names.
fn all_are_themselves(texts: impl IntoIterator<Item = String>) -> Count {
    let (judge, mut count) = (judge(), Count::default());
    for text in texts {
        check(&judge, &text, &text, &mut count);
        let renamed = with_other_names(&text);
        if renamed != text {
            check(&judge, &text, &renamed, &mut count);
        }
    }
    eprintln!("{count:?}");
    count
}

/// The files at or below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// Cases of a campaign.
fn drawn<C: Case>(name: &str, count: u64) -> impl Iterator<Item = C> {
    (0..count).filter_map(move |number| {
        let bytes = bytes::of_case(31, name, number);
        C::draw(&mut Unstructured::new(&bytes), &Drawn::default()).ok()
    })
}

#[test]
fn examples_are_themselves() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let texts = files(&folder).into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "py"));
    let count = all_are_themselves(texts.flat_map(|file| functions(&fs::read_to_string(file).unwrap())));
    assert!(count.all() > 15 && count.followed > 12, "{count:?}");
}

#[test]
fn programs_of_file_tests_are_themselves() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    let sections = files(&folder).into_iter().flat_map(|file| {
        let text = fs::read_to_string(file).unwrap();
        text.split("# ---- ").map(str::to_owned).collect::<Vec<_>>()
    });
    let programs = sections.filter_map(|section| {
        let (head, text) = section.split_once('\n')?;
        head.starts_with("file ").then(|| functions(text))
    });
    let count = all_are_themselves(programs.flatten());
    assert!(count.all() > 50 && count.followed > 30, "{count:?}");
}

#[test]
fn generated_programs_are_themselves() {
    let built = || drawn::<ProgramCase>("programs", 100).filter_map(|case| case.build().ok());
    let plain = all_are_themselves(built().map(|built| text_of(built.func)));
    let conditions = built().take(60).map(|built| with_condition(&built.func, built.seed));
    let conditions = all_are_themselves(conditions.map(text_of).filter(|text| read(text, None).is_ok()));
    assert!(plain.all() >= 100 && conditions.all() >= 60, "{plain:?} {conditions:?}");
}

#[test]
fn programs_of_pairs_are_themselves() {
    let texts = drawn::<PairCase>("pairs", 200).map(|case| case.texts());
    let programs = texts.flat_map(|texts| [texts.before, texts.after]).filter(|text| read(text, None).is_ok());
    let count = all_are_themselves(programs);
    assert!(count.all() >= 200 && count.vacuous * 10 < count.all(), "{count:?}");
}

#[test]
fn scheduled_and_tiny_programs_are_themselves() {
    let scheduled = drawn::<Scheduled>("schedules", 60).flat_map(|case| functions(&case.source()));
    let scheduled = all_are_themselves(scheduled);
    let tiny = drawn::<Tiny>("tiny", 60).map(|case| text_of(case.func()));
    let tiny = all_are_themselves(tiny.filter(|text| read(text, None).is_ok()));
    assert!(scheduled.all() >= 30 && tiny.all() >= 30, "{scheduled:?} {tiny:?}");
}

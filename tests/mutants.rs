//! Programs with random mistakes are not proved equal to what they were.
//!
//! The programs are the restructured ones of `tests/equivalence`, each proved equal to its program before. A change after which the
//! program still computes the same, as the judge proves and no run contradicts, makes no mutant, and another one is drawn. No mutant may be proved; at
//! least 95 % are refuted, and the others are unknown.
//! `MUTANTS=50` makes as many as that; `cargo test --test mutants -- --nocapture` prints the table of `docs/EQUIVALENCE.md`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]
#![allow(clippy::print_stdout, reason = "the table is printed")]

#[path = "equivalence/mutate.rs"]
mod mutate;
#[path = "equivalence/pairs.rs"]
mod pairs;

use mutate::{Change, mutant};
use pairs::{Kind, Variant, cases, is_documented, is_proved, is_refuted, judge, open, read};
use rayon::prelude::*;
use tilewright::harness::arguments::Inputs;
use tilewright::harness::engine::{StageProgram, Status};
use tilewright::harness::inputs::Numbers;
use tilewright::harness::interpreter::Interpreter;
use tilewright::harness::stages::{Config, Stage, run_chain};
use tilewright::pipeline::pair;
use tilewright_ir::{PrimFunc, validate};
use tilewright_verify::Judge;

const SEED: u64 = 20;

/// The mutants that are made, unless the environment asks for another number.
const MUTANTS: usize = 1000;

const FILES: [&str; 9] = [
    "loops",
    "values",
    "storage",
    "structural",
    "polybench/products",
    "polybench/stencils",
    "polybench/solvers",
    "polybench/dynamic",
    "polybench/mining",
];

/// Extents that are tried, by position, and the inputs; other ones than those with which the judge's pairs are run.
const EXTENTS: [&[i128]; 5] = [&[1], &[3, 4, 2, 5], &[4, 6, 7, 3], &[9, 5, 6, 8], &[18, 3, 10, 6]];
const INPUTS: [(u64, Inputs); 6] = [
    (13, Inputs::Random),
    (14, Inputs::Random),
    (15, Inputs::Special),
    (16, Inputs::Random),
    (17, Inputs::Diagonal),
    (0, Inputs::Positions),
];

/// A proved program, and the one before.
struct Proved {
    before: PrimFunc,
    after: PrimFunc,
    variant: Variant,
}

fn programs() -> Vec<Proved> {
    let cases = FILES.iter().flat_map(|file| cases(file));
    let of_case = |case: pairs::Case| {
        let before = read(&case.before);
        let proved = case.variants.into_iter().filter(|variant| variant.kind == Kind::After);
        proved
            .map(|variant| Proved { before: before.clone(), after: read(&variant.after()), variant })
            .collect::<Vec<_>>()
    };
    cases.flat_map(of_case).collect()
}

/// Whether some run of both programs comes out otherwise.
fn differs(Proved { before, variant, .. }: &Proved, mutant: &PrimFunc) -> bool {
    // Where local buffers have no counterpart, all shapes are constant, and parameters are as they were.
    let (after, evidence) = match pair::pair(before, mutant, &variant.maps) {
        Ok((after, evidence)) => (after, Some(evidence)),
        Err(_) => (mutant.clone(), None),
    };
    let stage =
        |name, program, evidence| Stage { name, program: StageProgram::Func(program), evidence, reassociates: false };
    let stages = [stage("before", before, None), stage("after", &after, evidence.as_ref())];
    let names: Vec<String> = before.symbols().iter().map(|var| var.name().to_owned()).collect();
    let engine = Interpreter {
        config: tilewright_interp::Config { threads: 1, fuel: Some(1 << 20), ..tilewright_interp::Config::default() },
        is_reference: true,
    };
    let choices = if names.is_empty() { &EXTENTS[..1] } else { &EXTENTS[..] };
    choices.iter().any(|extents| {
        INPUTS.iter().any(|&(seed, inputs)| {
            let symbols = names.iter().cloned().zip(extents.iter().copied().cycle()).collect();
            let Ok(ran) = run_chain(&stages, &Config { seed, symbols, inputs, ..Config::default() }, &engine, &[])
            else {
                return false;
            };
            let [one, two] = ran.engines.as_slice() else { return false };
            matches!(
                (one.status, two.status),
                (Status::Reference, Status::Mismatch | Status::Trap)
                    | (Status::Trap, Status::Reference | Status::Agrees)
            )
        })
    })
}

/// What became of one mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Proved, and no run comes out otherwise: the change was no mistake.
    Equal,
    Refuted,
    Unknown,
    /// A run comes out otherwise, and it is proved.
    Escaped,
}

struct Mutant {
    change: Change,
    fate: Fate,
    text: String,
}

/// Makes the mutant of a number, and decides it.
fn decide(number: usize, programs: &[Proved], judge: &Judge) -> Option<Mutant> {
    let program = &programs[number % programs.len()];
    let mut numbers = Numbers::new(SEED, u64::try_from(number).unwrap());
    let (change, after) = mutant(&program.after, &mut numbers)?;
    validate(&after).ok()?;
    let judged = pair::validate(&program.before, &after, &program.variant.maps, judge).ok()?;
    assert!(judged.reports.iter().all(|report| !report.is_internal()), "{}", program.variant.name);
    let fate = if is_refuted(&judged.reports) {
        Fate::Refuted
    } else if !is_proved(&judged.reports) {
        Fate::Unknown
    } else if differs(program, &after) {
        Fate::Escaped
    } else {
        Fate::Equal
    };
    let text = format!(
        "{}, {} ({fate:?}): {}\n{}",
        program.variant.name,
        change.name(),
        open(&judged.reports).join("; "),
        tilewright_script::print_func(&after)
    );
    Some(Mutant { change, fate, text })
}

/// A row of the table: changes that compute the same, mutants, and of these the refuted and unknown ones.
fn row(name: &str, changes: &[&Mutant]) -> String {
    let count = |fate: Fate| changes.iter().filter(|mutant| mutant.fate == fate).count();
    let [equal, refuted, unknown] = [Fate::Equal, Fate::Refuted, Fate::Unknown].map(count);
    format!("| {name} | {equal} | {} | {refuted} | {unknown} |", changes.len() - equal)
}

/// Makes changes until so many of them are mutants; those that compute the same come with them.
fn draw(wanted: usize, programs: &[Proved], judge: &Judge) -> Vec<Mutant> {
    let is_mutant = |mutant: &&Mutant| mutant.fate != Fate::Equal;
    let (mut drawn, mut number) = (Vec::<Mutant>::new(), 0);
    while number < 2 * wanted {
        let missing = wanted - drawn.iter().filter(is_mutant).count();
        if missing == 0 {
            break;
        }
        let next = (number..number + missing).into_par_iter().filter_map(|number| decide(number, programs, judge));
        drawn.append(&mut next.collect());
        number += missing;
    }
    drawn
}

#[test]
fn no_mutant_is_proved() {
    let wanted = std::env::var("MUTANTS").map_or(MUTANTS, |number| number.parse().unwrap());
    let (programs, judge) = (programs(), judge());
    assert!(programs.len() >= 290, "{} programs", programs.len());
    let mutants = draw(wanted, &programs, &judge);
    let found = mutants.iter().filter(|mutant| mutant.fate != Fate::Equal).count();
    assert_eq!(found, wanted, "{} changes", mutants.len());
    let mut rows = Vec::new();
    for change in Change::ALL {
        let of_kind: Vec<&Mutant> = mutants.iter().filter(|mutant| mutant.change == change).collect();
        assert!(!of_kind.is_empty(), "{}", change.name());
        rows.push(row(change.name(), &of_kind));
    }
    rows.push(row("all", &mutants.iter().collect::<Vec<_>>()));
    println!("{}", rows.join("\n"));
    let of = |fate: Fate| mutants.iter().filter(move |mutant| mutant.fate == fate);
    of(Fate::Unknown).for_each(|mutant| println!("{}", mutant.text));
    let escaped: Vec<&str> = of(Fate::Escaped).map(|mutant| mutant.text.as_str()).collect();
    assert!(escaped.is_empty(), "{}", escaped.join("\n"));
    let missing: Vec<&String> = rows.iter().filter(|row| wanted == MUTANTS && !is_documented(row)).collect();
    assert!(missing.is_empty(), "docs/EQUIVALENCE.md lacks {missing:?}");
    let (refuted, unknown) = (of(Fate::Refuted).count(), of(Fate::Unknown).count());
    assert!(refuted * 100 >= wanted * 95, "{refuted} refuted, {unknown} unknown");
}

//! The kernels of PolyBench: restructured programs are proved equal for all sizes, and broken ones are refuted by a run.
//!
//! The programs are in `tests/equivalence/polybench`. `cargo test --test polybench -- --nocapture` prints the table of
//! `docs/EQUIVALENCE.md`; `KERNEL=lu` before it takes one kernel alone.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]
#![allow(clippy::print_stdout, reason = "the table is printed")]

#[path = "equivalence/pairs.rs"]
mod pairs;

use std::time::{Duration, Instant};

use pairs::{Case, Kind, Variant, cases, is_documented, is_proved, is_refuted, judge, open, read};
use tilewright::pipeline::pair::{self, Judged};
use tilewright_ir::PrimFunc;
use tilewright_verify::{Judge, Obligation, Report, Verdict};

/// What was found of a kernel.
#[derive(Default)]
struct Row {
    proved: usize,
    open: usize,
    refuted: usize,
    beyond: usize,
    /// Of the proofs, those of open pairs included.
    total: Duration,
    slowest: Duration,
    /// Of all pairs of programs that were compared for a proof.
    lines: usize,
    wrong: Vec<String>,
}

impl Row {
    fn of(kernel: &Case, judge: &Judge) -> Self {
        let mut row = Self::default();
        let func = read(&kernel.before);
        let same = pair::validate(&func, &read(&kernel.before), &[], judge).unwrap();
        if !is_proved(&same.reports) {
            row.wrong.push(format!("{}: not proved equal to itself", kernel.name));
        }
        for variant in &kernel.variants {
            row.judge(&func, kernel, variant, judge);
        }
        row
    }

    fn judge(&mut self, func: &PrimFunc, kernel: &Case, variant: &Variant, judge: &Judge) {
        let after = read(&variant.after());
        let start = Instant::now();
        let judged = variant.validate(func, &after, judge);
        let took = start.elapsed();
        self.judged(variant.kind, &variant.name, &judged);
        if matches!(variant.kind, Kind::After | Kind::Open) {
            self.total += took;
            self.slowest = self.slowest.max(took);
            self.lines += kernel.before.lines().count() + variant.after().lines().count();
            if variant.wrong.is_empty() {
                self.wrong.push(format!("{}: no broken twin", variant.name));
            }
        }
        for (name, twin) in variant.twins() {
            let judged = variant.validate(func, &read(&twin), judge);
            self.refuted += 1;
            if !is_refuted(&judged.reports) {
                self.wrong.push(format!("{name} is not refuted: {}", open(&judged.reports).join("; ")));
            }
        }
    }

    fn judged(&mut self, kind: Kind, name: &str, judged: &Judged) {
        let open = open(&judged.reports);
        let is_proved = is_proved(&judged.reports);
        match kind {
            Kind::Illegal => self.refuted += 1,
            Kind::Beyond => self.beyond += 1,
            _ if is_proved => self.proved += 1,
            _ => self.open += 1,
        }
        let is_as_said = match kind {
            Kind::After => is_proved,
            Kind::Open => !is_proved && !is_refuted(&judged.reports),
            Kind::Illegal => is_refuted(&judged.reports),
            Kind::Beyond => !is_refuted(&judged.reports) && leaves_its_memory_or_type(&judged.reports),
        };
        if !is_as_said {
            let said = match kind {
                Kind::After => "not proved",
                Kind::Open => "proved or refuted",
                Kind::Illegal => "not refuted",
                Kind::Beyond => "refuted by a run, or nothing is found",
            };
            self.wrong.push(format!("{name}: {said}: {}", open.join("; ")));
        }
    }
}

/// Whether the judge found sizes for which a program leaves its buffers or the integers.
fn leaves_its_memory_or_type(reports: &[Report]) -> bool {
    let is_of_one = |report: &&Report| matches!(report.obligation, Obligation::Bounds | Obligation::Overflow);
    reports.iter().filter(is_of_one).any(|report| matches!(report.verdict, Verdict::Refuted(_)))
}

fn check(file: &str, least: usize) {
    let judge = judge();
    let kernels = cases(&format!("polybench/{file}"));
    assert!(kernels.len() >= least, "{} kernels", kernels.len());
    let only = std::env::var("KERNEL").ok();
    let mut wrong = Vec::new();
    for kernel in kernels.iter().filter(|kernel| only.as_ref().is_none_or(|name| *name == kernel.name)) {
        let row = Row::of(kernel, &judge);
        let Row { proved, open, refuted, beyond, total, slowest, lines, wrong: found } = row;
        let (total, slowest) = (total.as_secs_f64(), slowest.as_secs_f64());
        let speed = f64::from(u32::try_from(lines).unwrap()) / total;
        let counts = format!("| {} | {proved} | {open} | {refuted} | {beyond} |", kernel.name);
        println!("{counts} {total:.1} s | {slowest:.1} s | {speed:.0} |");
        if !is_documented(&counts) {
            wrong.push(format!("docs/EQUIVALENCE.md has no row `{counts}`"));
        }
        assert!(proved + open >= 6, "{} has {proved} + {open} restructurings", kernel.name);
        wrong.extend(found);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn products() {
    check("products", 13);
}

#[test]
fn stencils() {
    check("stencils", 6);
}

#[test]
fn solvers() {
    check("solvers", 6);
}

#[test]
fn dynamic_programming() {
    check("dynamic", 2);
}

#[test]
fn filters_and_statistics() {
    check("mining", 3);
}

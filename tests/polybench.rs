//! The kernels of PolyBench: restructured programs are proved equal for all sizes, and broken ones are refuted by a run.
//!
//! The programs are in `tests/equivalence/polybench`. `cargo test --test polybench -- --nocapture` prints the table of
//! `docs/EQUIVALENCE.md`; `KERNEL=lu` before it takes one kernel alone.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]
#![allow(clippy::print_stdout, reason = "the table is printed")]

#[path = "equivalence/pairs.rs"]
mod pairs;

use std::time::{Duration, Instant};

use pairs::{is_refuted, judge, open, program, read};
use tilewright::pipeline::pair::{self, GivenMap, Judged};
use tilewright_ir::PrimFunc;
use tilewright_verify::Judge;

/// What is known of a program after.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It is proved equal.
    After,
    /// It is equal, and neither proved nor refuted.
    Open,
    /// It computes something else.
    Illegal,
}

/// A program after.
struct Variant {
    kind: Kind,
    name: String,
    params: String,
    body: String,
    maps: Vec<GivenMap>,
    /// Old and new text of changes that make it wrong.
    wrong: Vec<(String, String)>,
}

struct Kernel {
    name: String,
    before: String,
    variants: Vec<Variant>,
}

/// The kernels of a file.
fn kernels(text: &str) -> Vec<Kernel> {
    text.split("\n== ").skip(1).map(kernel).collect()
}

fn kernel(text: &str) -> Kernel {
    let (head, rest) = text.split_once("\n-- before\n").unwrap();
    let (name, params) = head.split_once('\n').unwrap();
    let mut parts = rest.split("\n-- ");
    let before = program(params, parts.next().unwrap());
    let mut variants: Vec<Variant> = Vec::new();
    for part in parts {
        let (head, body) = part.split_once('\n').unwrap();
        match head.split_once(' ').unwrap_or((head, "")) {
            ("wrong", _) => {
                let changes = body.lines().filter(|line| !line.is_empty());
                variants.last_mut().unwrap().wrong = changes.map(change).collect();
            }
            ("after", name) => variants.push(variant(Kind::After, name, params, body)),
            ("open", name) => variants.push(variant(Kind::Open, name, params, body)),
            ("illegal", name) => variants.push(variant(Kind::Illegal, name, params, body)),
            (other, _) => panic!("`{other}` in {name}"),
        }
    }
    Kernel { name: name.to_owned(), before, variants }
}

fn change(line: &str) -> (String, String) {
    let (old, new) = line.split_once(" => ").unwrap();
    (old.to_owned(), new.to_owned())
}

/// A program after. Lines `with a: (m, n) for a: (n, m)` change its parameters, lines `map A: lambda i, j: [j, i]` say how.
fn variant(kind: Kind, name: &str, params: &str, body: &str) -> Variant {
    let (mut params, mut maps, mut lines) = (params.to_owned(), Vec::new(), Vec::new());
    for line in body.lines() {
        if let Some(with) = line.strip_prefix("with ") {
            let (new, old) = with.split_once(" for ").unwrap();
            assert!(params.contains(old), "no `{old}` in {params}");
            params = params.replacen(old, new, 1);
        } else if let Some(map) = line.strip_prefix("map ") {
            let (buffer, text) = map.split_once(": ").unwrap();
            maps.push(GivenMap { buffer: buffer.to_owned(), text: text.to_owned() });
        } else {
            lines.push(line);
        }
    }
    Variant { kind, name: name.to_owned(), params, body: lines.join("\n"), maps, wrong: Vec::new() }
}

/// What was found of a kernel.
#[derive(Default)]
struct Row {
    proved: usize,
    open: usize,
    refuted: usize,
    /// Of the proofs, those of open pairs included.
    total: Duration,
    slowest: Duration,
    /// Of all pairs of programs that were compared for a proof.
    lines: usize,
    wrong: Vec<String>,
}

impl Row {
    fn of(kernel: &Kernel, judge: &Judge) -> Self {
        let mut row = Self::default();
        let func = read(&kernel.before);
        let same = pair::validate(&func, &read(&kernel.before), &[], judge).unwrap();
        if same.reports.is_empty() || !open(&same.reports).is_empty() {
            row.wrong.push(format!("{}: not proved equal to itself", kernel.name));
        }
        for variant in &kernel.variants {
            row.judge(&func, kernel, variant, judge);
        }
        row
    }

    fn judge(&mut self, func: &PrimFunc, kernel: &Kernel, variant: &Variant, judge: &Judge) {
        let name = format!("{}, {}", kernel.name, variant.name);
        let body = variant.body.as_str();
        let decide = |body: &str| {
            let other = read(&program(&variant.params, body));
            pair::validate(func, &other, &variant.maps, judge).unwrap_or_else(|faults| panic!("{name}: {faults:?}"))
        };
        let start = Instant::now();
        let judged = decide(body);
        let took = start.elapsed();
        self.judged(variant.kind, &name, &judged);
        if variant.kind != Kind::Illegal {
            self.total += took;
            self.slowest = self.slowest.max(took);
            self.lines += kernel.before.lines().count() + body.lines().count();
            if variant.wrong.is_empty() {
                self.wrong.push(format!("{name}: no broken twin"));
            }
        }
        for (old, new) in &variant.wrong {
            assert!(body.contains(old.as_str()), "{name}: no `{old}` in\n{body}");
            let judged = decide(&body.replacen(old, new, 1));
            self.refuted += 1;
            if !is_refuted(&judged.reports) {
                let open = open(&judged.reports).join("; ");
                self.wrong.push(format!("{name}: `{new}` for `{old}` is not refuted: {open}"));
            }
        }
    }

    fn judged(&mut self, kind: Kind, name: &str, judged: &Judged) {
        let open = open(&judged.reports);
        let is_proved = !judged.reports.is_empty() && open.is_empty();
        match kind {
            Kind::Illegal => self.refuted += 1,
            _ if is_proved => self.proved += 1,
            _ => self.open += 1,
        }
        let is_as_said = match kind {
            Kind::After => is_proved,
            Kind::Open => !is_proved && !is_refuted(&judged.reports),
            Kind::Illegal => is_refuted(&judged.reports),
        };
        if !is_as_said {
            let said = match kind {
                Kind::After => "not proved",
                Kind::Open => "proved or refuted",
                Kind::Illegal => "not refuted",
            };
            self.wrong.push(format!("{name}: {said}: {}", open.join("; ")));
        }
    }
}

fn check(file: &str, least: usize) {
    let judge = judge();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/equivalence/polybench");
    let kernels = kernels(&std::fs::read_to_string(format!("{folder}/{file}.txt")).unwrap());
    assert!(kernels.len() >= least, "{} kernels", kernels.len());
    let only = std::env::var("KERNEL").ok();
    let mut wrong = Vec::new();
    for kernel in kernels.iter().filter(|kernel| only.as_ref().is_none_or(|name| *name == kernel.name)) {
        let row = Row::of(kernel, &judge);
        let Row { proved, open, refuted, total, slowest, lines, wrong: found } = row;
        let (total, slowest) = (total.as_secs_f64(), slowest.as_secs_f64());
        let speed = f64::from(u32::try_from(lines).unwrap()) / total;
        println!("| {} | {proved} | {open} | {refuted} | {total:.1} s | {slowest:.1} s | {speed:.0} |", kernel.name);
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

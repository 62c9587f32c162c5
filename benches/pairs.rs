//! The time to prove that a restructured program is equal: everything from two functions to the verdict, by all threads.
//!
//! The pairs are those of `examples/pairs`. One of them is also compared by its results alone, which runs both programs on terms: a
//! convolution with `EXTENTS=56,56,64,64`, which are the height, width, channels and filters.
//!
//! `cargo bench --bench pairs`

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};
use tilewright::pipeline::{self, pair};
use tilewright_ir::{Buffer, BufferChange, BufferClaim, Comparison, Evidence, IndexMap, PrimFunc, Var};
use tilewright_script::{Symbols, read_index_map};
use tilewright_verify::{Config, Judge};

/// A name, the files before and after, the maps of buffers, and the extent in the place of all symbols.
type Case = (&'static str, [&'static str; 2], &'static [(&'static str, &'static str)], Option<u32>);

const CASES: [Case; 4] = [
    ("product, tiled", ["product.py", "product_tiled.py"], &[], None),
    ("product, three levels, packed", ["product.py", "product_packed.py"], &[], None),
    ("product of 512, three levels, packed", ["product.py", "product_packed.py"], &[], Some(512)),
    (
        "convolution in NCHW4c with a halo",
        ["convolution.py", "convolution_nchw4c.py"],
        &[("X", "lambda i, j, p: [p // 4, i, j, p % 4]"), ("Y", "lambda i, j, q: [q // 4, i, j, q % 4]")],
        None,
    ),
];

const CONVOLUTION: &Case = &CASES[3];

fn text(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/pairs");
    std::fs::read_to_string(folder.join(file)).unwrap()
}

fn read(file: &str, extent: Option<u32>) -> PrimFunc {
    let mut text = text(file);
    if let Some(extent) = extent {
        for symbol in ["n", "m", "k"] {
            text = text.replace(&format!("    {symbol} = T.int32()\n"), "");
            text = constant(&text, symbol, &extent.to_string());
        }
    }
    pipeline::read(&text, None).unwrap().programs.remove(0).func
}

/// A text with a number in the place of a name.
fn constant(text: &str, name: &str, number: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let mut found = String::new();
    let mut word = String::new();
    for c in text.chars().chain(['\n']) {
        if is_part(c) {
            word.push(c);
            continue;
        }
        found.push_str(if word == name { number } else { &word });
        word.clear();
        found.push(c);
    }
    found
}

/// The convolution with constant extents, as programs and evidence that claims nothing but the maps of the parameters.
fn convolution(extents: &[&str]) -> (PrimFunc, PrimFunc, Evidence) {
    let (_, files, maps, _) = CONVOLUTION;
    let [before, after] = files.map(|file| {
        let mut text = text(file).replace(", h: T.int32, w: T.int32, c: T.int32, o: T.int32", "");
        for (symbol, extent) in ["h", "w", "c", "o"].iter().zip(extents) {
            text = constant(&text, symbol, extent);
        }
        pipeline::read(&text, None).unwrap().programs.remove(0).func
    });
    let claim = |((_, before), (_, after)): (&(Var, Buffer), &(Var, Buffer))| {
        let given = maps.iter().find(|(name, _)| before.name == *name);
        let map = given.map_or_else(
            || IndexMap::identity(before.shape.clone()),
            |(_, map)| read_index_map(map, Some(&before.shape), &mut Symbols::default()).unwrap(),
        );
        let change = if given.is_some() { BufferChange::Layout } else { BufferChange::Rename };
        BufferClaim { before: before.clone(), after: after.clone(), map, change, padded_axes: Vec::new() }
    };
    let buffers = before.buffer_map.iter().zip(&after.buffer_map).map(claim).collect();
    (before, after, Evidence { comparison: Comparison::Results, buffers, ..Evidence::default() })
}

fn results(c: &mut Criterion) {
    let extents = std::env::var("EXTENTS").unwrap_or_else(|_| "28,28,16,16".into());
    let extents: Vec<&str> = extents.split(',').collect();
    let (before, after, evidence) = convolution(&extents);
    let mut group = c.benchmark_group("results");
    group.sampling_mode(SamplingMode::Flat).sample_size(10).measurement_time(Duration::from_secs(20));
    group.bench_function(format!("convolution of {} on terms", extents.join(" x ")), |bencher| {
        bencher.iter(|| {
            let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
            let reports = judge.check_pass(&before, black_box(&after), &evidence);
            assert!(reports.iter().all(|report| report.verdict.is_proved()));
        });
    });
    group.finish();
}

fn pairs(c: &mut Criterion) {
    let mut group = c.benchmark_group("pairs");
    group.sampling_mode(SamplingMode::Flat).sample_size(10).measurement_time(Duration::from_secs(20));
    for (name, [before, after], maps, extent) in CASES {
        let (before, after) = (read(before, extent), read(after, extent));
        let given = |(buffer, text): &(&str, &str)| pair::GivenMap { buffer: (*buffer).into(), text: (*text).into() };
        let maps: Vec<pair::GivenMap> = maps.iter().map(given).collect();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
                let judged = pair::validate(&before, black_box(&after), &maps, &judge).unwrap();
                assert!(judged.reports.iter().all(|report| report.verdict.is_proved()));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, pairs, results);
criterion_main!(benches);

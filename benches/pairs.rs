//! The time to prove that a restructured program is equal: everything from two functions to the verdict, by all threads.
//!
//! The pairs are those of `examples/pairs`.
//!
//! `cargo bench --bench pairs`

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};
use tilewright::pipeline::{self, pair};
use tilewright_ir::PrimFunc;
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

fn read(file: &str, extent: Option<u32>) -> PrimFunc {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/pairs");
    let mut text = std::fs::read_to_string(folder.join(file)).unwrap();
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

criterion_group!(benches, pairs);
criterion_main!(benches);

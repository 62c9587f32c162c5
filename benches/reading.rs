//! The time that reading takes, in bytes and in functions, maps or layouts: TVMScript of a small and a large program, TE, XLA's
//! layouts, index maps; and printing TVMScript again.
//!
//! `cargo bench --bench reading`

#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]

#[path = "cases/maps.rs"]
mod maps;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tilewright_script::{print_module, read_module, read_xla_shape, te};

const SMALL: &str = include_str!("../examples/nhwc_to_nchwc.tvm.py");
const TE: [(&str, &str); 2] = [
    ("te, addone", include_str!("../examples/addone.py")),
    ("te, conv2d", include_str!("../examples/conv2d_resnet.py")),
];
const LAYOUTS: [&str; 6] = [
    "f32[3,5]{1,0:T(2,2)}",
    "bf16[1000,1000]{1,0:T(8,128)(2,1)}",
    "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}",
    "bf16[?,?]{1,0:T(8,128)(2,1)}",
    "f32[?,7,?]{0,2,1:T(*,3)(2,1)L(7)}",
    "u8[16,64,64,128]{3,2,1,0}",
];

/// A function of 120 loop nests, each with a guard, a window and a store.
fn large() -> String {
    let mut text = "from tvm.script import tir as T\n\n\n@T.prim_func\n\
        def large(A: T.Buffer((8, 66, 66, 32), \"float32\"), B: T.Buffer((8, 64, 64, 32), \"float32\")):\n"
        .to_owned();
    for number in 0..120 {
        let nest = format!(
            "    for n, h, w, c in T.grid(8, 64, 64, 32):\n        if h * 64 + w < {}:\n            B[n, h, w, c] = T.max(A[n, h, \
             w, c] * T.float32({number}) + A[n, h + 2, w + 1, c], B[n, (h + {number}) % 64, w // 2, c])\n",
            4096 - number
        );
        text.push_str(&nest);
    }
    text
}

fn size(text: &str, elements: usize) -> Throughput {
    Throughput::ElementsAndBytes {
        elements: u64::try_from(elements).unwrap(),
        bytes: u64::try_from(text.len()).unwrap(),
    }
}

fn reading(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("read");
    group.sample_size(20).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    let large = large();
    for (name, text) in [("tvmscript, small", SMALL), ("tvmscript, large", large.as_str())] {
        group.throughput(size(text, 1));
        group.bench_function(name, |bencher| bencher.iter(|| read_module(black_box(text)).unwrap()));
    }
    for (name, text) in TE {
        group.throughput(size(text, 1));
        group.bench_function(name, |bencher| bencher.iter(|| te::read(black_box(text)).unwrap()));
    }
    group.throughput(size(&LAYOUTS.concat(), LAYOUTS.len()));
    group.bench_function("xla layouts", |bencher| {
        bencher.iter(|| LAYOUTS.map(|text| read_xla_shape(black_box(text)).unwrap()));
    });
    let maps: String = maps::CONSTANT.iter().flat_map(|[_, map, shape]| [*map, *shape]).collect();
    group.throughput(size(&maps, maps::CONSTANT.len()));
    group.bench_function("index maps", |bencher| {
        bencher.iter(|| maps::CONSTANT.map(|of| maps::read_map(black_box(of))));
    });
    group.finish();
}

fn printing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("print");
    group.sample_size(20).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    let large = large();
    for (name, text) in [("tvmscript, small", SMALL), ("tvmscript, large", large.as_str())] {
        let module = read_module(text).unwrap();
        group.throughput(size(text, 1));
        group.bench_function(name, |bencher| bencher.iter(|| print_module(black_box(&module))));
    }
    group.finish();
}

criterion_group!(benches, reading, printing);
criterion_main!(benches);

//! Our side of the comparison with other tools: `scripts/peers.py` asks for one measurement at a time, a line of JSON each on standard
//! input, and takes its own between two of them, so that both sides see the same machine.
//!
//! ```text
//! {"do": "map", "map": "lambda c: [c // 4, c % 4]", "shape": "17"}
//! {"certificate_us": 12.1, "confirmation_us": 130.4, ...}
//! ```
//!
//! Without input, as under `cargo bench`, it measures the constant maps once and prints a table.

#![allow(missing_docs, reason = "a program, not a library")]
#![allow(clippy::print_stdout, reason = "the answers are the result")]
#![allow(clippy::unwrap_used, clippy::cast_precision_loss, reason = "a benchmark may fail, and times are small")]

#[path = "cases/map_times.rs"]
mod map_times;
#[path = "cases/maps.rs"]
mod maps;
#[path = "cases/programs.rs"]
mod programs;

use std::hint::black_box;
use std::io::{BufRead, IsTerminal, Write};

use programs::Kernel;
use serde_json::{Value, json};
use tilewright::passes::pass_by_name;
use tilewright_ir::PrimFunc;
use tilewright_verify::{Config, Judge};

fn answer(request: &Value) -> Result<Value, String> {
    let text = |key: &str| request.get(key).and_then(Value::as_str).ok_or_else(|| format!("`{key}` is missing"));
    match text("do")? {
        "maps" => Ok(json!({ "constant": maps::CONSTANT, "symbolic": maps::SYMBOLIC })),
        "programs" => Ok(json!({
            "multiply_add": programs::MULTIPLY_ADD, "padded": programs::PADDED, "transpose": programs::TRANSPOSE,
            "blocked": programs::BLOCKED,
        })),
        "map" => Ok(map_times::measure(text("map")?, text("shape")?)),
        "flatten" => Ok(flatten(&programs::read(text("program")?))),
        "interpret" => {
            let threads = request.get("threads").and_then(Value::as_u64).unwrap_or(1);
            let func = programs::read(text("program")?);
            let threads = usize::try_from(threads).map_err(|error| error.to_string())?;
            Ok(json!({ "ns": middle(3, || programs::interpret(&func, threads)) }))
        }
        "kernel" => {
            let kernel = Kernel::new(&programs::read(text("program")?), text("device")?)?;
            let times = if text("device")? == "Oclgrind" { 1 } else { 15 };
            kernel.run();
            let ns = middle(times, || kernel.run());
            let (copy_ns, memcpy_ns) = (middle(times, || kernel.copy()), {
                let bytes = usize::try_from(kernel.bytes()).map_err(|error| error.to_string())?;
                middle(15, || programs::memcpy(bytes))
            });
            Ok(json!({ "ns": ns, "copy_ns": copy_ns, "memcpy_ns": memcpy_ns, "device": kernel.device() }))
        }
        other => Err(format!("nobody knows how to do `{other}`")),
    }
}

/// The median of some measurements.
fn middle(times: usize, mut measure: impl FnMut() -> f64) -> f64 {
    let mut taken: Vec<f64> = (0..times).map(|_| measure()).collect();
    taken.sort_by(f64::total_cmp);
    taken[times / 2]
}

/// `flatten_buffer` alone, and with every obligation proved by a judge that remembers nothing.
fn flatten(func: &PrimFunc) -> Value {
    let pass = pass_by_name("flatten_buffer").unwrap();
    let prove = || {
        let rewritten = (pass.run)(func).unwrap();
        let judge = Judge::new(Config { threads: 1, ..Config::default() }, tilewright_search::strategies()).unwrap();
        let reports = judge.check_pass(func, &rewritten.func, &rewritten.evidence);
        assert!(reports.iter().all(|report| report.verdict.is_proved()), "flattening is not proved");
        judge.solver_time().as_secs_f64() * 1e6
    };
    let pass_us = map_times::median(|| drop(black_box((pass.run)(func))));
    let proved_us = map_times::median(|| {
        black_box(prove());
    });
    json!({ "pass_us": pass_us, "proved_us": proved_us, "solver_us": prove() })
}

fn main() {
    let asked = std::env::args().any(|argument| argument == "--serve");
    if asked && !std::io::stdin().is_terminal() {
        for line in std::io::stdin().lock().lines() {
            let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let reply = answer(&request).unwrap_or_else(|error| json!({ "error": error }));
            println!("{reply}");
            std::io::stdout().flush().unwrap();
        }
        return;
    }
    map_times::table();
}

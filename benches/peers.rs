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

use std::io::{BufRead, IsTerminal, Write};

use serde_json::{Value, json};

fn answer(request: &Value) -> Result<Value, String> {
    let text = |key: &str| request.get(key).and_then(Value::as_str).ok_or_else(|| format!("`{key}` is missing"));
    match text("do")? {
        "map" => Ok(map_times::measure(text("map")?, text("shape")?)),
        other => Err(format!("nobody knows how to do `{other}`")),
    }
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

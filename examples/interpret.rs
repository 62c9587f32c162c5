//! Runs a program in the reference interpreter, and shows how it reports a program that has no meaning.
//!
//! `cargo run --example interpret`

use std::error::Error;
use std::io::{self, Write};

use tilewright_interp::{Arguments, Config, Tensor};
use tilewright_ir::{Diagnostic, PrimFunc, Scalar, ScalarType, validate};

const PROGRAM: &str = r#"
@T.prim_func
def prefix_sum(A: T.Buffer((6,), "int32"), B: T.Buffer((6,), "int32")):
    B[0] = A[0]
    for i in range(1, 6):
        B[i] = B[i - 1] + A[i]
"#;

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}

/// Writes the result of the program, and the trap of a program that reads an element that was never written.
pub fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    for text in [PROGRAM, &PROGRAM.replace("    B[0] = A[0]\n", "")] {
        let func = function(text)?;
        let valid = validate(&func).map_err(first)?;
        let input = Tensor::from_fn(ScalarType::Int32, &[6], |at| Scalar::Int(at as i128 + 1))?;
        // Outputs are arguments too. This one is undefined, and to read an undefined element is a trap.
        let mut arguments = Arguments::tensors([input, Tensor::undefined(ScalarType::Int32, &[6])?]);
        match tilewright_interp::run(valid, &mut arguments, &Config::default()) {
            Ok(report) => {
                let output = arguments.tensor(1).ok_or("the second argument is a tensor")?;
                let values: Vec<_> = (0..6).filter_map(|at| output.get_f64(at)).collect();
                writeln!(out, "{values:?} after {} iterations", report.iterations)?;
            }
            Err(error) => writeln!(out, "trap: {error}")?,
        }
    }
    Ok(())
}

fn function(text: &str) -> Result<PrimFunc, Box<dyn Error>> {
    let module = tilewright_script::read_module(text).map_err(first)?;
    module.funcs.into_iter().next().ok_or_else(|| "the text holds one function".into())
}

/// The first of the faults of a text.
fn first(faults: Vec<Diagnostic>) -> String {
    faults.into_iter().next().map_or_else(String::new, |fault| fault.to_string())
}

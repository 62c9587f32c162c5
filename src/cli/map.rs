//! `tilewright map`: what is known about an index map.

use tilewright_ir::{AxisSeparators, Bindings, Diagnostic, Expr, IndexMap};
use tilewright_verify::{Judge, MapClaim};

use super::exit::ExitStatus;
use super::failure::Failure;
use super::options::Global;
use super::printer::Printer;
use crate::algebra;
use crate::report::{AtRow, Dim, MapReport, ObligationRow, Source, text};

/// Say everything about an index map: physical shape, separators, inverse, padding, proofs
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  tilewright map 'lambda n, h, w, c: [n, c//4, h, w, c%4]' --shape 16,64,64,128 \
                        --at 11,37,23,101\n  tilewright map 'lambda i, j: [2*i + j]' --shape 3,4     # refuted: exit \
                        code 1\n  tilewright map 'lambda n, h, w, c: [n, c//4, h, AXIS_SEPARATOR, w, c%4]' --shape \
                        n,64,64,c")]
pub struct Args {
    /// The map as a Python lambda; `-` reads it from standard input
    #[arg(value_name = "MAP")]
    map: String,
    /// The logical shape: numbers, or names for symbolic extents
    #[arg(long, value_name = "16,64,64,128", required = true, allow_hyphen_values = true)]
    shape: String,
    /// A logical index to follow; may be given many times
    #[arg(long, value_name = "11,37,23,101", allow_hyphen_values = true)]
    at: Vec<String>,
}

//! Defines a matrix product, schedules it, and lowers it, without any Python text.
//!
//! `cargo run --example build_schedule`

use std::error::Error;
use std::io::{self, Write};

use tilewright::te::build::{Builder, LayoutLoops, SplitBy, reduce, reduce_axis};
use tilewright_ir::{Diagnostic, Expr, IndexMap, ReduceOp, ScalarType, ThreadTag, Var};
use tilewright_verify::{Config, Judge};

fn main() -> Result<(), Box<dyn Error>> {
    run(&mut io::stdout().lock())
}

/// Writes the lowered function, and how many obligations of the lowering are proved.
pub fn run(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    // What is computed: C[i, j] is the sum of A[i, k] * B[k, j].
    let mut te = Builder::new();
    let [rows, columns, depth] = [64, 32, 16].map(Expr::int);
    let a = te.placeholder("A", &[rows.clone(), depth.clone()], ScalarType::Float32)?;
    let b = te.placeholder("B", &[depth.clone(), columns.clone()], ScalarType::Float32)?;
    let k = reduce_axis("k", &Expr::int(0), &depth)?;
    let c = te.compute("C", &[rows, columns], |te, index| {
        let (i, j) = (index[0].clone(), index[1].clone());
        let product = te.load(a, &[i, k.index()])? * te.load(b, &[k.index(), j])?;
        reduce(ReduceOp::Sum, product, std::slice::from_ref(&k.axis))
    })?;

    // How it is computed: C is stored in blocks of 4 columns, one group for each block and 8 work-items for each row of it.
    let mut schedule = te.create_schedule(&[c])?;
    let mut stage = schedule.stage(c)?;
    let (i, j) = (Var::index("i"), Var::index("j"));
    let block = vec![Expr::from(&j).floor_div(Expr::int(4)), Expr::from(&i), Expr::from(&j).floor_mod(Expr::int(4))];
    let map = IndexMap::new(vec![i, j], stage.layout_shape()?, block, vec![])?;
    let LayoutLoops::Rewritten(loops) = stage.transform_layout(&map)? else {
        return Err("the map has an inverse, so the loops follow it".into());
    };
    let (_, lane) = stage.split(loops[1], SplitBy::Factor(8))?;
    stage.bind(loops[0], ThreadTag::Block(0), None)?;
    stage.bind(lane, ThreadTag::Thread(0), Some(&Expr::int(8)))?;
    stage.unroll(loops[2])?;

    // A loop that was split is no loop any more, and the error says what to use instead.
    if let Err(error) = stage.parallel(loops[1]) {
        writeln!(out, "error: {error}")?;
    }

    let lowered = schedule.lower(&[a.into(), b.into(), c.into()], "matmul").map_err(|faults| first(&faults))?;
    write!(out, "{}", tilewright_script::print_func(&lowered.func))?;
    let judge = Judge::new(Config::default(), tilewright_search::strategies())?;
    let mut reports = judge.check_definition(&lowered.definition);
    reports.extend(judge.check_lowering(&lowered.definition, &lowered.func, &lowered.evidence));
    let proved = reports.iter().filter(|report| report.verdict.is_proved()).count();
    writeln!(out, "{proved} of {} obligations proved", reports.len())?;
    Ok(())
}

/// The first fault of a list.
fn first(faults: &[Diagnostic]) -> String {
    faults.first().map_or_else(String::new, ToString::to_string)
}

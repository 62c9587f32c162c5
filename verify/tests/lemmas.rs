//! Every lemma is proved, in little time.

#![expect(clippy::print_stdout, reason = "the test shows its times")]

use std::time::Instant;
use tilewright_verify::kernel::Failure;
use tilewright_verify::lemmas::{Lemma, Lemmas};
use tilewright_verify::solver::Solver;

#[test]
fn every_lemma_is_proved_as_stated() -> Result<(), Failure> {
    let lemmas = Lemmas::new(&Solver::new()?);
    for lemma in Lemma::ALL {
        let start = Instant::now();
        let theorem = lemmas.theorem(*lemma)?;
        println!("{:16} {:>6} us", lemma.name(), start.elapsed().as_micros());
        assert_eq!(theorem.hypotheses(), lemma.hypotheses());
        assert_eq!(*theorem.conclusion(), lemma.conclusion());
    }
    Ok(())
}

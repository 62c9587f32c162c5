//! Every lemma is proved.
use std::time::Instant;
use tilewright_verify::lemmas::{Lemma, Lemmas};
use tilewright_verify::solver::Solver;

#[test]
fn every_lemma_is_proved() {
    let solver = Solver::new().unwrap();
    let lemmas = Lemmas::new(&solver);
    for lemma in Lemma::ALL {
        let start = Instant::now();
        let theorem = lemmas.theorem(*lemma);
        println!(
            "{:18} {:>6} us {}",
            lemma.name(),
            start.elapsed().as_micros(),
            match &theorem {
                Ok(_) => "ok".into(),
                Err(e) => e.to_string(),
            }
        );
    }
}

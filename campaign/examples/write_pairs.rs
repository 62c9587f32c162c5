//! Writes generated pairs of programs as files, with what is true of them, for another version of the judge to decide.
//! `write_pairs FOLDER COUNT SEED`; the current judge decides them, too.
//!
//! ```text
//! FOLDER/17/before.py, after.py   the programs
//! FOLDER/17/truth.json            {"class": "a", "pair": "different", "before": ["race"], "after": []}
//! ```
//!
//! `before` and `after` list the obligations that do not hold of each program alone. `scripts/old_judge.py` reads the files.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, error, fs};

use arbitrary::Unstructured;
use tilewright_campaign::oracles::judge_pairs::{JudgePairs, examine};
use tilewright_campaign::pairs::PairCase;
use tilewright_campaign::{Case, Config, Environment, Oracle, Outcome, Tally, bytes};

fn main() -> Result<(), Box<dyn error::Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [folder, count, seed] = arguments.as_slice() else { return Err("write_pairs FOLDER COUNT SEED".into()) };
    let (folder, count, seed) = (Path::new(folder), count.parse::<u64>()?, seed.parse::<u64>()?);
    let mut oracle = JudgePairs::new(&Environment::default())?;
    let (mut outcomes, mut tally) = (BTreeMap::<String, u64>::new(), Tally::default());
    for number in 0..count {
        let bytes = bytes::of_case(seed, JudgePairs::NAME, number);
        let case = PairCase::draw(&mut Unstructured::new(&bytes), &Config::default())?;
        let outcome = oracle.check(&case, &mut tally);
        let word = match &outcome {
            Outcome::Held => "held".to_owned(),
            Outcome::Invalid(why) => format!("invalid: {why}"),
            Outcome::Undecided(why) => format!("undecided: {why}"),
            Outcome::Failed(failure) => {
                println!("{number}: {}\n{}", failure.what, failure.detail);
                format!("failed: {}", failure.what)
            }
        };
        *outcomes.entry(word).or_default() += 1;
        let texts = case.texts();
        let Ok(examined) = examine(&texts) else { continue };
        let folder = folder.join(number.to_string());
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("before.py"), &texts.before)?;
        fs::write(folder.join("after.py"), &texts.after)?;
        let [before, after] =
            examined.wrong.map(|wrong| wrong.iter().map(|(id, _)| id.to_string()).collect::<Vec<_>>());
        let truth = serde_json::json!({
            "class": case.class(), "pair": examined.truth.word(), "before": before, "after": after,
        });
        fs::write(folder.join("truth.json"), truth.to_string())?;
    }
    println!("{outcomes:#?}\n{:#?}", tally.counts);
    Ok(())
}

//! The judge's verdicts on index maps against every point tried: what is proved must hold (soundness), what holds should be
//! proved (completeness, counted).

use std::collections::HashSet;

use tilewright_ir::{Bindings, Expr};
use tilewright_verify::{Config as Budget, Judge, MapClaim, Verdict};

use crate::fuzz::case::Case;
use crate::fuzz::map::{Generated, MapCase, domain};
use crate::fuzz::oracle::{Environment, Failure, Oracle, Outcome, Tally};

/// The oracle.
#[derive(Debug)]
pub struct JudgeMaps {
    judge: Judge,
}

impl JudgeMaps {
    /// With a judge of its own, on one thread.
    ///
    /// # Errors
    /// There is no solver that will do.
    pub fn new(_: &Environment) -> Result<Self, String> {
        let judge = Judge::new(Budget { threads: 1, ..Budget::default() }).map_err(|error| error.to_string())?;
        Ok(Self { judge })
    }
}

/// What is so, for each obligation.
fn truth(built: &Generated) -> Option<[(&'static str, bool); 2]> {
    let extents = domain(&built.map)?;
    let shape: Option<Vec<i128>> = built.shape.iter().map(Expr::as_const_int).collect();
    let shape = shape?;
    let mut seen = HashSet::new();
    let (mut bounds, mut injective) = (true, true);
    let mut point = vec![0i128; extents.len()];
    loop {
        let image = built.map.eval(&point, &Bindings::new()).ok()?;
        bounds &= image.iter().zip(&shape).all(|(at, extent)| (0..*extent).contains(at));
        injective &= seen.insert(image);
        let Some(axis) = (0..point.len()).rev().find(|&axis| point[axis] + 1 < extents[axis]) else { break };
        point[axis] += 1;
        point[axis + 1..].fill(0);
    }
    Some([("bounds", bounds), ("injective", injective)])
}

impl Oracle for JudgeMaps {
    type Case = MapCase;

    const NAME: &'static str = "judge_maps";

    fn check(&mut self, case: &MapCase, tally: &mut Tally) -> Outcome {
        let Some(built) = case.build() else { return Outcome::Invalid("no map".into()) };
        let Some(truth) = truth(&built) else { return Outcome::Invalid("a map that cannot be evaluated".into()) };
        let reports = self.judge.check_map(MapClaim::new(&built.map, &built.shape));
        for (obligation, holds) in truth {
            let Some(report) = reports.iter().find(|report| report.obligation == obligation) else {
                return Failure::outcome(format!("{obligation} is not reported"), case.text());
            };
            let word = report.verdict.word();
            tally.count(&format!("{obligation} {word}"), 1);
            match (&report.verdict, holds) {
                (Verdict::Proved, false) => {
                    return Failure::outcome(format!("{obligation} is proved and does not hold"), case.text());
                }
                (Verdict::Refuted(_), true) => {
                    return Failure::outcome(format!("{obligation} is refuted and holds"), case.text());
                }
                (Verdict::Unknown(_), _) => return Outcome::Undecided(format!("{obligation} unknown")),
                _ => {}
            }
        }
        Outcome::Held
    }
}

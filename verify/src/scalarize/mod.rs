//! Programs with vectors, as programs without.
//!
//! ```text
//! A[ramp(i * 4, 1, 4)] = A[ramp(i * 4, 1, 4)] + B[i]      for lane in 4:
//!                                                             A[i * 4 + lane] = A[i * 4 + lane] + B[i, lane]
//! ```
//!
//! A statement on vectors reads all lanes before it writes one, and then writes them in order. The loop over the lanes does the same
//! if no lane reads or writes what a lane in front of it wrote, which is an obligation; or if the values are kept in memory of
//! their own until all of them are read. A buffer of vectors is a buffer with one more axis.
//!
//! Truth values that are kept as integers of one byte are kept as truth values (`truths`).
//!
//! The claim names both programs without vectors. The judge makes them by itself and compares up to names, and then decides whether
//! these mean the same. What is asked of one program alone is asked of the programs with vectors, too.

mod rewrite;
mod truths;
mod views;

use rayon::prelude::*;
use tilewright_ir::equal::funcs_equal;
use tilewright_ir::{Comparison, Evidence, Expr, PrimFunc, Scalarization, StmtKind, Var, sabotage};

pub use rewrite::{Scalarized, has_other_form, scalarize};
pub use views::scalar_parameters;

use crate::access::accesses;
use crate::judge::{Decision, Judge, Report, Side, all_of, suspected, unsupported};
use crate::lanes::{differ, renamed};
use crate::obligation::Obligation;
use crate::pass::holds;
use crate::path::{Path, Site, Step, sites};
use crate::words::describe;

impl Judge {
    /// Decides whether two programs mean the same by what they are without vectors.
    pub(crate) fn check_scalarized(
        &self,
        (before, after): (&PrimFunc, &PrimFunc),
        evidence: &Evidence,
        claim: &Scalarization,
    ) -> Vec<Report> {
        let stuck = |reason: String| vec![Self::report(Obligation::Simulation, "vectors", || unsupported(reason))];
        let Evidence { pass: _, buffers, fills, guessed: _, comparison: _ } = evidence;
        if !buffers.is_empty() || !fills.is_empty() {
            return stuck("the buffers of vectors are claimed to be moved".into());
        }
        if matches!(claim.evidence.comparison, Comparison::Scalarized(_)) {
            return stuck("a program without vectors is claimed to have some".into());
        }
        let sides = [(Side::Before, before, &claim.before), (Side::After, after, &claim.after)];
        let mut reports = Vec::new();
        for ((side, func, claimed), buffered) in sides.into_iter().zip(&claim.buffered) {
            match own(func, claimed, buffered) {
                Ok(own) => reports.extend(self.check_lanes_apart(side, &own)),
                Err(reason) => return stuck(reason),
            }
        }
        reports.extend(self.check_pass(&claim.before, &claim.after, &claim.evidence));
        reports.extend(self.of_before(self.check_program_on(Side::Before, before)));
        reports
    }

    /// That no lane of a store reads or writes what a lane in front of it wrote: a report for each store whose lanes are a loop.
    fn check_lanes_apart(&self, side: Side, scalarized: &Scalarized) -> Vec<Report> {
        let report = |(site, lane): &(Site<'_>, Var)| {
            let subject = format!("lanes of `{}`", describe(site.stmt));
            let decide = || suspected(apart(self, site, lane));
            Self::report(Obligation::Simulation, subject, decide).placed(side, site.stmt.span)
        };
        let stores: Vec<(Site<'_>, Var)> =
            lane_stores(scalarized).into_iter().map(|(_, site, lane)| (site, lane)).collect();
        self.in_parallel(|| stores.par_iter().map(report).collect())
    }

    /// The positions of the stores of vectors whose lanes are not seen to be apart.
    pub fn lanes_together(&self, scalarized: &Scalarized) -> Vec<usize> {
        let stores = lane_stores(scalarized);
        let open = stores.iter().filter(|(_, site, lane)| !apart(self, site, lane).0.is_proved());
        open.map(|(position, ..)| *position).collect()
    }
}

/// A function without vectors, if it is the claimed one up to names inside.
fn own(func: &PrimFunc, claimed: &PrimFunc, buffered: &[usize]) -> Result<Scalarized, String> {
    let own = scalarize(func, buffered)?;
    // What the caller passes goes by the same names, since the claims about both programs speak of it.
    let is_same_call = claimed.params == func.params && claimed.symbols() == own.func.symbols();
    if is_same_call && funcs_equal(&own.func, claimed, false) {
        Ok(own)
    } else {
        Err(format!("`{}` without vectors is another program than claimed", func.name))
    }
}

/// The stores in loops over lanes, each with the position of the store of a vector and the variable of the loop.
fn lane_stores(scalarized: &Scalarized) -> Vec<(usize, Site<'_>, Var)> {
    let stores = sites(&scalarized.func).into_iter().filter_map(|site| {
        let StmtKind::Store { .. } = &site.stmt.kind else { return None };
        let lane = site.path.loops().pop()?;
        let position = scalarized.lanes.iter().position(|one| one.as_ref() == Some(&lane))?;
        Some((position, site, lane))
    });
    stores.collect()
}

/// No lane touches what a lane in front of it wrote.
fn apart(judge: &Judge, site: &Site<'_>, lane: &Var) -> Decision {
    if sabotage::on("lanes-see-each-other") {
        return all_of([]);
    }
    let touched = accesses(site);
    let Some(written) = touched.last() else { return unsupported("nothing is written") };
    let depth = site.path.steps.iter().position(|step| matches!(step, Step::Loop(var, ..) if var == lane));
    let Some(depth) = depth else { return unsupported("there is no loop over the lanes") };
    let touched = touched.iter().filter(|other| other.buffer.aliases(&written.buffer));
    all_of(touched.map(|other| {
        if other.buffer != written.buffer || written.buffer.strides.is_some() {
            return unsupported(format!(
                "the memory of `{}` is written, and seen in more than one way",
                written.buffer
            ));
        }
        // The same statement in a later lane, under the conditions of the other access.
        let inside = Path { steps: other.path.steps.iter().skip(depth).cloned().collect(), ..other.path.clone() };
        let (later, renames) = renamed(&inside);
        let mut path = site.path.clone();
        for step in &later.steps {
            path.steps.push(step.clone());
        }
        let lane = Expr::from(lane);
        path.steps.push(Step::Guard(lane.clone().lt(renames.apply(&lane)), true));
        let there: Vec<Expr> = other.indices.iter().map(|index| renames.apply(index)).collect();
        holds(judge, &path, &differ(&written.indices, &there))
    }))
}

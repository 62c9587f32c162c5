//! Whether two programs of constant shape leave the same values in every element of every parameter: both run on terms.
//!
//! ```text
//! before: T[i] = A[i] * 2              B[3] is A[3] * 2 + 1 in both, and so on for every element: the same terms,
//!         B[i] = T[i] + 1              whatever buffers and loops the programs use on the way
//! after:  B[i] = A[i] * 2 + 1
//! ```
//!
//! A run on terms stands for all runs: what the caller gives is a term, loops and indices are constants, and what depends on
//! values becomes a choice. Each parameter after holds what the claims say, before both run and afterwards; its padding holds nothing,
//! so that a load of it ends the run. A parameter that the program before writes may hold nothing at the call, unless that program reads
//! it first; so the program after reads what the call gave only where the program before does. Iterations that run at once are run one
//! after the other, since they do not race, which is an obligation of both programs. Terms are rewritten by rules that keep every bit
//! (`terms`).
//!
//! Runs of more than some hundred thousand steps are made in parts: some elements, with those units of both runs that they need (`trace`),
//! one part after the other (`parts`).

mod code;
mod machine;
mod parts;
mod plan;
mod terms;
#[cfg(test)]
mod tests;
mod trace;

use tilewright_ir::{Bindings, Buffer, BufferClaim, Evidence, PrimFunc, StmtKind};

use self::code::Layout;
use self::parts::compared;
use crate::access::Base;
use crate::claims::{Relation, parameters};
use crate::judge::{Judge, Report, Side, unsupported};
use crate::obligation::Obligation;
use crate::pass::decide_goal;

impl Judge {
    /// Decides whether two programs of constant shape mean the same, by running both on terms; with the obligations of the
    /// program before by itself. The claims about parameters are those of the evidence.
    pub(crate) fn check_execution(
        &self,
        (before, after): (&PrimFunc, &PrimFunc),
        evidence: &Evidence,
        base: &Base<'_>,
    ) -> Vec<Report> {
        let relation = Relation::new(evidence);
        let goals = parameters(before, after, &relation);
        let goals = goals
            .iter()
            .map(|goal| Self::report(Obligation::Simulation, "parameters", || decide_goal(self, evidence, base, goal)));
        let mut reports: Vec<Report> = goals.collect();
        reports.push(Self::report(Obligation::Simulation, "every element of every parameter", || {
            let params = params(before, after, evidence);
            let compared = |params: Vec<Param<'_>>| compared(self, (before, after), &params);
            self.in_parallel(|| params.and_then(compared)).unwrap_or_else(unsupported)
        }));
        reports.extend(self.of_before(self.check_program_on(Side::Before, before)));
        reports
    }
}

/// A parameter of both programs.
struct Param<'a> {
    before: &'a Buffer,
    after: &'a Buffer,
    claim: Option<&'a BufferClaim>,
}

impl Param<'_> {
    /// The index after of an index before.
    fn image(&self, index: &[i128]) -> Result<Vec<i128>, String> {
        match self.claim {
            Some(claim) => claim.map.eval(index, &Bindings::default()).map_err(|error| error.to_string()),
            None => Ok(index.to_vec()),
        }
    }

    /// The name of an element, by the number of one of its lanes in row-major order.
    fn element(&self, number: u32) -> Result<String, String> {
        let (mut rest, mut named) = (number / u32::from(self.before.dtype.lanes), None);
        self.each(|index| {
            if rest == 0 {
                named.get_or_insert_with(|| format!("`{}{index:?}`", self.before));
            }
            rest = rest.saturating_sub(1);
            Ok(())
        })?;
        named.ok_or_else(|| "an element has no name".into())
    }

    /// Calls `visit` for each index before, in row-major order.
    fn each(&self, mut visit: impl FnMut(&[i128]) -> Result<(), String>) -> Result<(), String> {
        let extents = Layout::of(self.before)?.extents;
        let count = extents.iter().product::<i64>();
        let mut index = vec![0; extents.len()];
        for _ in 0..count {
            visit(&index)?;
            for (at, extent) in index.iter_mut().zip(&extents).rev() {
                *at += 1;
                if *at < i128::from(*extent) {
                    break;
                }
                *at = 0;
            }
        }
        Ok(())
    }
}

/// The buffers of the parameters of both programs.
fn params<'a>(func: &'a PrimFunc, after: &'a PrimFunc, evidence: &'a Evidence) -> Result<Vec<Param<'a>>, String> {
    let buffers = |func: &'a PrimFunc| func.params.iter().filter_map(|param| func.param_buffer(param));
    let pairs: Vec<_> = buffers(func).zip(buffers(after)).collect();
    if pairs.len() != func.buffer_map.len() || pairs.len() != after.buffer_map.len() {
        return Err("the parameters differ in number".into());
    }
    let locals = [func.buffers(), after.buffers()].concat();
    let shared =
        |one: &Buffer, others: &[(&Buffer, &Buffer)]| others.iter().any(|(x, y)| x.aliases(one) || y.aliases(one));
    let param = |(place, (before, after)): (usize, &(&'a Buffer, &'a Buffer))| {
        let claim = evidence.buffers.iter().find(|claim| claim.before == **before && claim.after == **after);
        if (claim.is_none() && before != after) || before.dtype != after.dtype {
            return Err(format!("nothing is claimed of how `{before}` became `{after}`"));
        }
        // What a view writes before the first element, or between those of a strided buffer, is in no element.
        let is_dense = before.strides.is_none() && before.elem_offset.as_const_int() == Some(0);
        if !is_dense && locals.iter().any(|other| other.aliases(before) && other != *before) {
            return Err(format!("`{before}` has strides or an offset, and its memory is seen by another buffer"));
        }
        if shared(before, &pairs[..place]) {
            return Err(format!("`{before}` shares its memory with another parameter"));
        }
        Ok(Param { before, after, claim })
    };
    pairs.iter().enumerate().map(param).collect()
}

/// Whether a function stores to the memory of a buffer.
fn writes(func: &PrimFunc, buffer: &Buffer) -> bool {
    let mut found = false;
    func.body.walk(&mut |stmt| {
        found |= matches!(&stmt.kind, StmtKind::Store { buffer: other, .. } if other.aliases(buffer));
    });
    found
}

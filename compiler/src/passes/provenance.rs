//! Where the stores of a program come from that was rewritten in several small steps.
//!
//! ```text
//! step 1   for j unrolled:  store 3 was store 1, at j = 2          together: store 7 was store 1, at i = 1, j = 2
//! step 2   for i unrolled:  store 7 was store 3, at i = 1
//! ```
//!
//! A pass that unrolls or partitions several loops knows what each step did. The judge wants one claim for all of them; a value of a
//! loop in the middle is replaced by what it is at the ends.

use tilewright_ir::visit::Substitution;
use tilewright_ir::{Comparison, Diagnostic, Evidence, Expr, PrimFunc, StoreOrigin};
use tilewright_verify::reorder::{Statement, program};

use super::Rewritten;
use super::schedule::claims::Claim;

/// What is known of the stores of the program after some steps.
pub(super) struct Provenance {
    /// For each store the one of the first program; `None` if that is not known, and has to be searched for.
    origins: Option<Vec<StoreOrigin>>,
    /// The stores after the last step.
    stores: Vec<Statement>,
    /// Whether there was no step: then the programs are the same.
    is_unchanged: bool,
}

impl Provenance {
    /// That of a program before the first step: each store is itself.
    ///
    /// # Errors
    /// A note that the pass leaves the program as it is, since the judge would not follow what becomes of its stores.
    pub(super) fn of(func: &PrimFunc, pass: &str) -> Result<Self, Diagnostic> {
        let found = program(func).map_err(|why| {
            let message = format!("`{pass}` leaves `{}` as it is: {why}", func.name);
            Diagnostic::warning("not-followed", None, message).with_help("what it does could not be proved")
        })?;
        let itself = |(before, store): (usize, &Statement)| {
            let loops: Vec<Expr> = store.loops().iter().map(Expr::from).collect();
            StoreOrigin { when: None, before, forward: loops.clone(), back: loops }
        };
        let origins = Some(found.statements.iter().enumerate().map(itself).collect());
        Ok(Self { origins, stores: found.statements, is_unchanged: true })
    }

    /// Adds a step that made `after`. `origins` says which store of the program in front of the step each store after it is.
    pub(super) fn step(
        &mut self,
        after: &PrimFunc,
        origins: impl FnOnce(&[Statement], &[Statement]) -> Option<Vec<StoreOrigin>>,
    ) {
        self.is_unchanged = false;
        let Some(first) = self.origins.take() else { return };
        let Ok(found) = program(after) else { return };
        let second = origins(&self.stores, &found.statements);
        self.origins = second.and_then(|second| joined(&first, &self.stores, &second));
        self.stores = found.statements;
    }

    /// What is claimed of the first program and the last one.
    pub(super) fn comparison(self, before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Comparison {
        if self.is_unchanged {
            return Comparison::Statements;
        }
        let origins = self.origins;
        let stated =
            move |_: &[Statement], new: &[Statement]| origins.clone().filter(|origins| origins.len() == new.len());
        Claim::Iterations(Box::new(stated)).comparison(before, after, evidence)
    }
}

/// The origins of two steps as one. The loops of the stores between them are named by neither end.
fn joined(first: &[StoreOrigin], between: &[Statement], second: &[StoreOrigin]) -> Option<Vec<StoreOrigin>> {
    let join = |step: &StoreOrigin| {
        let (origin, loops) = (first.get(step.before)?, between.get(step.before)?.loops());
        let from_last = Substitution::new(&loops, step.forward.iter().cloned());
        let from_first = Substitution::new(&loops, origin.back.iter().cloned());
        let forward = origin.forward.iter().map(|value| from_last.apply(value)).collect();
        let back = step.back.iter().map(|value| from_first.apply(value)).collect();
        Some(StoreOrigin { when: None, before: origin.before, forward, back })
    };
    second.iter().map(join).collect()
}

/// A program that a pass leaves as it is, with a note.
pub(super) fn unchanged(func: &PrimFunc, pass: &str, note: Diagnostic) -> Rewritten {
    let evidence = Evidence { pass: pass.to_owned(), ..Evidence::default() };
    Rewritten { func: func.clone(), evidence, notes: vec![note] }
}

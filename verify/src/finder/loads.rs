//! Which load of the program before a load after is, as far as samples say.

use tilewright_ir::{Bindings, Buffer, Expr};

use super::Finder;
use crate::concrete::tuple;
use crate::correspondence::LoadPair;
use crate::lockstep::{Choice, Read, loads, with_old_loads};
use crate::sample;

/// Samples on which two loads are compared.
const TRIED: usize = 16;

impl Finder<'_> {
    /// For each load in expressions of the program after, one in expressions of the program before.
    pub(super) fn loads(&mut self, old: &[Expr], new: &[Expr]) -> Vec<LoadPair> {
        let before = loads(old);
        let mut found = Vec::new();
        with_old_loads(new, |load, known| {
            let (pair, put) = self.load(load, &before, known);
            found.push(pair);
            put
        });
        found
    }

    /// A load before for a load after, where these choices are known, and what stands for it.
    fn load(&mut self, load: &Expr, before: &[Read], known: &[Choice]) -> (LoadPair, Expr) {
        let unmet = |read: &Read| read.unmet(known).next().is_some();
        if self.relation.keeps(load) && before.iter().any(|read| read.load == *load && !unmet(read)) {
            return (LoadPair::Same, load.clone());
        }
        let samples = self.path.samples(TRIED);
        let is_it = |read: &Read| {
            self.corresponds(&read.load, load)
                && seems_made(read, known, &samples)
                && self.seems_same(&read.load, load, &samples)
        };
        let found = before.iter().enumerate().find(|(_, read)| is_it(read));
        if let (Some((position, read)), Expr::Load { buffer: y, indices: j }) = (found, load)
            && let Expr::Load { buffer: x, indices: i } = &read.load
        {
            return (LoadPair::Moved(position, self.access((x, i), (y, j))), read.load.clone());
        }
        self.n_unknown += 1;
        (LoadPair::Unknown, load.clone())
    }

    /// Whether two loads are of corresponding buffers.
    fn corresponds(&self, old: &Expr, new: &Expr) -> bool {
        match (old, new) {
            (Expr::Load { buffer: x, indices: i }, Expr::Load { buffer: y, .. }) => {
                self.relation.image(x, y, i).is_some() && old.dtype() == new.dtype()
            }
            _ => false,
        }
    }

    /// Whether two loads seem to read corresponding elements. Where nothing is claimed of the buffers they do not.
    pub(super) fn seems_same_load(&self, old: &Expr, new: &Expr) -> bool {
        let (Expr::Load { buffer: x, indices: i }, Expr::Load { buffer: y, indices: j }) = (old, new) else {
            return false;
        };
        match self.relation.image(x, y, i) {
            Some(image) => image.as_slice() == &**j || self.seems_same(old, new, &self.path.samples(TRIED)),
            None => false,
        }
    }

    /// Whether two loads read corresponding elements.
    fn seems_same(&self, old: &Expr, new: &Expr, samples: &[Bindings]) -> bool {
        let after = |buffer: &Buffer, index: &[i128]| Some(format!("{buffer:?}{}", tuple(index)));
        samples.iter().all(|bindings| {
            let before = |buffer: &Buffer, index: &[i128]| match self.relation.claim_of(buffer) {
                Some(claim) => after(&claim.after, &claim.map.eval(index, bindings).ok()?),
                None => after(buffer, index),
            };
            let (x, y) = (sample::lanes(old, bindings, &before), sample::lanes(new, bindings, &after));
            x.zip(y).is_none_or(|(x, y)| x.iter().zip(&y).all(|(x, y)| x.same(*y)))
        })
    }
}

/// Whether a load before is made where these choices are known: what is read in one case only may hold nothing in the others.
/// What memory decides is not said by samples.
fn seems_made(read: &Read, known: &[Choice], samples: &[Bindings]) -> bool {
    let comes_out = |(cond, holds): &Choice, bindings: &Bindings| {
        cond.eval_index(bindings).is_ok_and(|value| (value != 0) == *holds)
    };
    let is_here =
        |bindings: &&Bindings| known.iter().all(|choice| choice.0.reads_memory() || comes_out(choice, bindings));
    let is_made = |choice: &Choice| samples.iter().filter(is_here).all(|bindings| comes_out(choice, bindings));
    read.unmet(known).all(|choice| !choice.0.reads_memory() && is_made(choice))
}

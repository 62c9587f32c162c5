//! Obligation alive: a value that is read is the one that the claimed instance wrote.

use tilewright_ir::{Buffer, Expr, Instance, sabotage};

use super::{Flowing, Half, pieces};
use crate::judge::{Decision, Side, all_of, unsupported};
use crate::lanes::renamed;
use crate::lockstep::Read;
use crate::pass::{equal, fit, holds};
use crate::path::{Path, Step};
use crate::reorder::order::{cases, loops};
use crate::reorder::{Statement, all, any, domain, equals, values};

/// A load of an instance, and the way to it.
struct Reader<'a> {
    store: &'a Statement,
    buffer: &'a Buffer,
    index: &'a [Expr],
}

impl Flowing<'_> {
    /// The sources of all values that a store reads.
    pub(super) fn alive(&self, half: &Half, place: usize) -> Decision {
        let store = &half.observed.program.statements[place];
        let (reads, claims) = (half.observed.reads_where(store), &half.sources[place]);
        if reads.len() != claims.len() {
            return unsupported(format!("{} values are claimed, and {} are read", claims.len(), reads.len()));
        }
        all_of(
            reads
                .iter()
                .zip(claims)
                .map(|(read, claimed)| self.read(half, place, read, claimed).unwrap_or_else(unsupported)),
        )
    }

    /// The sources of one value.
    fn read(&self, half: &Half, place: usize, read: &Read, claimed: &[Instance]) -> Result<Decision, String> {
        let store = half.statement(place)?;
        let Expr::Load { buffer, indices } = &read.load else { return Err("a load is no load".into()) };
        let mut path = store.path.clone();
        for (cond, holds) in read.unmet(&[]) {
            path.steps.push(Step::Guard(cond.clone(), *holds));
        }
        let reader = Reader { store, buffer, index: indices };
        let mut pieces = pieces(&path, &store.loops(), claimed)?;
        if sabotage::on("flow-checks-one-case") {
            pieces.truncate(1);
        }
        let decisions = pieces.into_iter().map(|(path, piece)| match piece.store {
            None => Ok(all_of([self.as_found(half, &reader, &path)?, self.is_given(half, place, &path)?])),
            Some(writer) => self.written(half, &reader, &path, (half.statement(writer)?, &piece.at)),
        });
        Ok(all_of(decisions.collect::<Result<Vec<_>, String>>()?))
    }

    /// Nothing writes the element before it is read, and the caller gave it a value.
    fn as_found(&self, half: &Half, reader: &Reader<'_>, path: &Path) -> Result<Decision, String> {
        if !half.observed.params.contains(reader.buffer) {
            return Err(format!("`{}` may be read before it is written", reader.buffer));
        }
        if sabotage::on("flow-ignores-earlier-writes") {
            return Ok(all_of([]));
        }
        let nothing = |_: &Statement, _: &[Expr]| Expr::bool(false);
        Ok(all_of(self.others(half, reader, path, &nothing)))
    }

    /// Where an instance after reads what the call gave, an instance before does, too: a caller gives no value to a parameter that the
    /// program before never reads before it writes it. What is read in the end may hold nothing.
    fn is_given(&self, half: &Half, place: usize, path: &Path) -> Result<Decision, String> {
        let is_free = half.side == Side::Before || place >= half.observed.n_stores;
        if is_free || sabotage::on("flow-takes-parameters-for-given") {
            return Ok(all_of([]));
        }
        let reader = half.statement(place)?;
        let claimed = self.origins[place].given.as_ref().and_then(|one| Some((one.store?, &one.at)));
        let Some((store, at)) = claimed.filter(|(store, _)| *store < self.before.observed.n_stores) else {
            return Err(format!("`{}` reads a parameter that may hold nothing", reader.subject));
        };
        let old = self.before.statement(store)?;
        let theirs = old.loops();
        let at = values(&theirs, at, &reader.loops(), path)?;
        let there: Vec<Expr> = theirs.iter().map(|var| at.apply(&Expr::from(var))).collect();
        let found = self.before.observed.finds(old, &self.before.sources[store]);
        let parts = domain(old, &at).into_iter().chain([at.apply(&found)]);
        let parts = parts.map(|part| holds(self.judge, path, &part));
        Ok(all_of([fit(path, &there, self.base)].into_iter().chain(parts)))
    }

    /// An instance wrote the element before it is read, and whatever else wrote it before ran before that instance.
    fn written(
        &self,
        half: &Half,
        reader: &Reader<'_>,
        path: &Path,
        (writer, at): (&Statement, &[Expr]),
    ) -> Result<Decision, String> {
        if writer.buffer != *reader.buffer || writer.indices.len() != reader.index.len() {
            return Err(format!("`{}` is said to write `{}`", writer.subject, reader.buffer));
        }
        let (mine, theirs) = (loops(reader.store), writer.loops());
        let at = values(&theirs, at, &reader.store.loops(), path)?;
        let there: Vec<Expr> = theirs.iter().map(|var| at.apply(&Expr::from(var))).collect();
        let mut element: Vec<(Expr, Expr)> =
            writer.indices.iter().map(|index| at.apply(index)).zip(reader.index.iter().cloned()).collect();
        // Memory that is allocated in a loop is new in each iteration.
        let skipped = sabotage::on("flow-forgets-allocations");
        let around =
            if skipped { 0 } else { half.observed.loops_around(reader.buffer).min(there.len()).min(mine.len()) };
        element.extend(there.iter().cloned().zip(mine.iter().cloned()).take(around));
        let earlier = any(cases(writer, reader.store, &there, &mine).into_iter().map(all));
        let skipped = sabotage::on("flow-sources-need-not-run");
        let runs = domain(writer, &at).into_iter().filter(|_| !skipped).chain([earlier]);
        let runs = runs.map(|part| holds(self.judge, path, &part));
        let not_after = |other: &Statement, instance: &[Expr]| {
            let itself = std::ptr::eq(other, writer)
                .then(|| all(instance.iter().zip(&there).map(|(x, y)| equals(x.clone(), y.clone()))));
            any(cases(other, writer, instance, &there).into_iter().map(all).chain(itself))
        };
        let others = || self.others(half, reader, path, &not_after);
        let others = (!sabotage::on("flow-ignores-later-writes")).then(others).into_iter().flatten();
        let first = [fit(path, &there, self.base), equal(self.judge, path, &element)];
        Ok(all_of(first.into_iter().chain(runs).chain(others)))
    }

    /// For each other instance that writes the element before it is read: what has to hold of it.
    fn others<'s>(
        &'s self,
        half: &'s Half,
        reader: &'s Reader<'_>,
        path: &'s Path,
        must: &'s dyn Fn(&Statement, &[Expr]) -> Expr,
    ) -> impl Iterator<Item = Decision> + 's {
        let statements = &half.observed.program.statements[..half.observed.n_stores];
        let writers = statements.iter().filter(|store| store.buffer.aliases(reader.buffer));
        writers.flat_map(move |other| {
            let (way, renames) = renamed(&other.path);
            let mut path = path.clone();
            for step in &way.steps {
                path.steps.push(step.clone());
            }
            let instance: Vec<Expr> = loops(other).iter().map(|var| renames.apply(var)).collect();
            for (index, read) in other.indices.iter().zip(reader.index) {
                path.steps.push(Step::Guard(equals(renames.apply(index), read.clone()), true));
            }
            let goal = must(other, &instance);
            let when = cases(other, reader.store, &instance, &loops(reader.store));
            when.into_iter().map(move |conditions| {
                let mut path = path.clone();
                for cond in conditions {
                    path.steps.push(Step::Guard(cond, true));
                }
                holds(self.judge, &path, &goal)
            })
        })
    }
}

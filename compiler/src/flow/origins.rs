//! Which stores of two programs write the same values: both are followed back from what they leave, side by side.

use std::cmp::Reverse;
use std::collections::HashSet;

use tilewright_algebra::simplify;
use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, Bindings, Buffer, BufferClaim, Evidence, Expr, Instance, Origin, Sources, UnaryOp, Var};
use tilewright_verify::flow::Observed;
use tilewright_verify::reorder::{Statement, domain};

use super::budget::{Budget, SOLVING};
use super::samples::samples;
use super::sources::left;
use crate::reorder::solve::{Loop, System, loops, ranges};

/// Cases of a value that are followed.
const MOST_CASES: usize = 64;

/// A condition, and whether it holds.
type Choice = (Expr, bool);

/// A value, and the conditions under which it is that one.
type Case = (Vec<Choice>, Expr);

/// Sets of equations between two stores that are tried.
const MOST_TRIED: usize = 24;

/// Copies and values without a counterpart that are looked through.
const DEPTH: usize = 6;

/// The instances before that each store after is.
pub(super) fn find(
    before: &Observed,
    after: &Observed,
    (sources, links): ([&[Sources]; 2], [&[usize]; 2]),
    (evidence, budget): (&Evidence, &Budget),
) -> Vec<Origin> {
    let half = |observed, side: usize| {
        let (sources, links) = (sources[side], links[side]);
        Half { observed, sources, links, names: names(observed) }
    };
    let (before, after) = (half(before, 0), half(after, 1));
    let stores = vec![Origin::default(); after.observed.program.statements.len()];
    let mut search = Search { before, after, evidence, budget, stores, queue: Vec::new() };
    let pairs = (search.before.observed.n_stores..).zip(search.after.observed.n_stores..);
    let ends: Vec<(usize, usize)> = pairs.take_while(|(_, new)| *new < search.after.sources.len()).collect();
    for (old, new) in ends {
        let at = search.after.store(new).loops().iter().map(Expr::from).collect();
        search.queue.push((old, new, at));
    }
    while let Some((old, new, at)) = search.queue.pop() {
        search.follow(old, new, &at);
    }
    search.with_conditions()
}

/// Loops under other names.
pub(super) fn named(loops: &[Loop], vars: &[Var], names: &Substitution) -> Vec<Loop> {
    let named =
        |(l, var): (&Loop, &Var)| Loop { var: var.clone(), min: names.apply(&l.min), extent: names.apply(&l.extent) };
    loops.iter().zip(vars).map(named).collect()
}

/// The operands of nested operations of one kind.
fn operands(op: BinaryOp, expr: &Expr) -> Vec<Expr> {
    match expr {
        Expr::Binary(other, a, b) if *other == op => [operands(op, a), operands(op, b)].concat(),
        _ => vec![expr.clone()],
    }
}

/// The operands of a difference, which may be a sum with the other sign: `a - b`, `a + (0 - b)` or `a + -b`.
fn subtraction(expr: &Expr) -> Option<(&Expr, &Expr)> {
    match expr {
        Expr::Binary(BinaryOp::Sub, a, b) => Some((a, b)),
        Expr::Binary(BinaryOp::Add, a, negated) => match &**negated {
            Expr::Binary(BinaryOp::Sub, zero, b) if zero.as_const_int() == Some(0) => Some((a, b)),
            Expr::Unary(UnaryOp::Neg, b) => Some((a, b)),
            _ => None,
        },
        _ => None,
    }
}

/// For each store, a buffer whose elements stand for the values of its instances.
fn names(observed: &Observed) -> Vec<Buffer> {
    let name = |(place, store): (usize, &Statement)| {
        Buffer::compact(format!("store {place}"), store.value.dtype(), vec![Expr::int(1); store.loops().len()])
    };
    observed.program.statements.iter().enumerate().map(name).collect()
}

/// A program with the sources of what it reads.
struct Half<'a> {
    observed: &'a Observed,
    sources: &'a [Sources],
    /// Stores without a counterpart, whose values later stores add to.
    links: &'a [usize],
    names: Vec<Buffer>,
}

impl Half<'_> {
    fn store(&self, place: usize) -> &Statement {
        &self.observed.program.statements[place]
    }

    /// The store whose value a load by name stands for.
    fn named<'e>(&self, expr: &'e Expr) -> Option<(usize, &'e [Expr])> {
        let Expr::Load { buffer, indices } = expr else { return None };
        let place = self.names.iter().position(|name| name == buffer)?;
        Some((place, indices))
    }

    /// Whether a store only moves a value.
    fn is_copy(&self, place: usize) -> bool {
        matches!(self.store(place).value, Expr::Load { .. })
    }

    /// The values of an instance, with names in the place of what it reads: one for each combination of sources.
    fn values(&self, place: usize, at: &[Expr]) -> Vec<Case> {
        let store = self.store(place);
        let there = Substitution::new(&store.loops(), at.iter().cloned());
        let mut found: Vec<(Vec<Choice>, Vec<Expr>)> = vec![(Vec::new(), Vec::new())];
        for (read, pieces) in self.observed.reads(store).iter().zip(&self.sources[place]) {
            let mut not: Vec<Choice> = Vec::new();
            let mut options: Vec<Case> = Vec::new();
            for piece in pieces {
                let at: Vec<Expr> = piece.at.iter().map(|at| there.apply(at)).collect();
                let values = match piece.store {
                    None => vec![(Vec::new(), there.apply(read))],
                    Some(writer) if self.links.contains(&writer) && writer != place => self.values(writer, &at),
                    Some(writer) => vec![(Vec::new(), Expr::load(&self.names[writer], at))],
                };
                let when = piece.when.as_ref().map(|when| there.apply(when));
                let here = [not.clone(), when.iter().map(|when| (when.clone(), true)).collect()].concat();
                options.extend(values.into_iter().map(|(more, value)| ([here.as_slice(), &more].concat(), value)));
                not.extend(when.map(|when| (when, false)));
            }
            let with = |(when, loads): &(Vec<Choice>, Vec<Expr>), (also, load): &Case| {
                ([when.as_slice(), also].concat(), [loads.as_slice(), std::slice::from_ref(load)].concat())
            };
            found = found.iter().flat_map(|one| options.iter().map(move |other| with(one, other))).collect();
            found.truncate(MOST_CASES);
        }
        let value = there.apply(&store.value);
        found.into_iter().map(|(when, loads)| (when, self.observed.with_loads(&value, loads))).collect()
    }
}

/// What two values have in common.
struct Found {
    /// Instances after that are tried: those in the case that is looked at.
    samples: Vec<Bindings>,
    /// Indices before and after that are equal.
    equations: Vec<(Expr, Expr)>,
    /// Instances before and after that have the same value.
    meetings: Vec<Meeting>,
    /// Stores before, and stores after, whose values were looked at.
    opened_before: Vec<usize>,
    opened_after: Vec<usize>,
}

impl Found {
    fn of(samples: Vec<Bindings>) -> Self {
        let (opened_before, opened_after) = (Vec::new(), Vec::new());
        Self { samples, equations: Vec::new(), meetings: Vec::new(), opened_before, opened_after }
    }

    /// Opens the counterpart of each opened store, too: a claim either compares two stores with each other or replaces both by the values
    /// that they store.
    fn open_both(&mut self) {
        loop {
            let opened = self.opened_before.len() + self.opened_after.len();
            for Meeting { old: (old, _), new: (new, _) } in &self.meetings {
                match (self.opened_before.contains(old), self.opened_after.contains(new)) {
                    (true, false) => self.opened_after.push(*new),
                    (false, true) => self.opened_before.push(*old),
                    _ => {}
                }
            }
            if self.opened_before.len() + self.opened_after.len() == opened {
                return;
            }
        }
    }

    /// Looks for more where conditions hold, if that is so for one of the instances that are tried.
    fn under(&mut self, conditions: &[Choice], look: impl FnOnce(&mut Self)) {
        // What is in terms of loops that are to be found has no value yet.
        let holds = |bindings: &&Bindings| {
            let fails = |(cond, holds): &Choice| cond.eval_index(bindings).is_ok_and(|value| (value != 0) != *holds);
            !conditions.iter().any(fails)
        };
        if self.samples.is_empty() {
            return look(self);
        }
        let inside: Vec<Bindings> = self.samples.iter().filter(holds).cloned().collect();
        if inside.is_empty() {
            return;
        }
        let outside = std::mem::replace(&mut self.samples, inside);
        look(self);
        self.samples = outside;
    }

    /// Looks at the operands of an `if_then_else`, as where an element is padded: at the second one only if the first one has nothing in
    /// common with the other program's value.
    fn either(&mut self, cond: &Expr, sides: [&Expr; 2], look: &dyn Fn(&Expr, &mut Self)) {
        let known = |found: &Self| found.equations.len() + found.meetings.len();
        let before = known(self);
        for (side, holds) in sides.into_iter().zip([true, false]) {
            if known(self) == before {
                self.under(&[(cond.clone(), holds)], |found| look(side, found));
            }
        }
    }
}

/// Instances that have the same value.
struct Meeting {
    old: (usize, Vec<Expr>),
    new: (usize, Vec<Expr>),
}

struct Search<'a> {
    before: Half<'a>,
    after: Half<'a>,
    evidence: &'a Evidence,
    budget: &'a Budget,
    stores: Vec<Origin>,
    /// Stores before and after that are the same, and the loops before; still to be followed.
    queue: Vec<(usize, usize, Vec<Expr>)>,
}

impl Search<'_> {
    /// Follows what an instance after and the instance before read.
    fn follow(&mut self, old: usize, new: usize, at: &[Expr]) {
        let itself: Vec<Expr> = self.after.store(new).loops().iter().map(Expr::from).collect();
        let mut found = Found::of(samples(&self.after.store(new).path, 1));
        self.pairs(&self.before.values(old, at), &self.after.values(new, &itself), DEPTH, &mut found);
        found.open_both();
        for meeting in std::mem::take(&mut found.meetings) {
            self.meet(&meeting, new);
        }
        (self.stores[new].opened_before, self.stores[new].opened_after) = (found.opened_before, found.opened_after);
    }

    /// What two values have in common in the cases that some instance is in.
    fn pairs(&self, old: &[Case], new: &[Case], depth: usize, found: &mut Found) {
        for (when, new) in new {
            for (also, old) in old {
                if !self.budget.spend((when.len() + also.len()) * found.samples.len()) {
                    return;
                }
                found.under(&[when.as_slice(), also].concat(), |found| self.walk(old, new, depth, found));
            }
        }
    }

    /// What two values have in common, where they have the same form.
    fn walk(&self, old: &Expr, new: &Expr, depth: usize, found: &mut Found) {
        let (x, y) = (self.before.named(old), self.after.named(new));
        let Some(deeper) = depth.checked_sub(1).filter(|_| self.budget.spend(1)) else { return };
        match (x, y) {
            (Some((p, _)), Some((q, _))) if !self.before.is_copy(p) && !self.after.is_copy(q) => {
                let at = |named: Option<(usize, &[Expr])>| named.map(|(place, at)| (place, at.to_vec()));
                if let (Some(old), Some(new)) = (at(x), at(y)) {
                    found.meetings.push(Meeting { old, new });
                }
            }
            (_, Some((q, at))) if x.is_none() || self.after.is_copy(q) => {
                found.opened_after.push(q);
                let values = self.after.values(q, at);
                self.budget.spend(values.len() * SOLVING);
                self.pairs(&[(Vec::new(), old.clone())], &values, deeper, found);
            }
            (Some((p, at)), _) => {
                found.opened_before.push(p);
                let values = self.before.values(p, at);
                self.budget.spend(values.len() * SOLVING);
                self.pairs(&values, &[(Vec::new(), new.clone())], deeper, found);
            }
            _ => self.parts(old, new, depth, found),
        }
    }

    /// The same for two sums or products, whose operands may be exchanged, joined in another way or spread over several stores: operand by
    /// operand.
    fn sums(&self, old: &Expr, new: &Expr, depth: usize, found: &mut Found) -> bool {
        let (Expr::Binary(op, ..), Expr::Binary(other, ..)) = (old, new) else { return false };
        let commutes = matches!(op, BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max);
        let [old, mut new] = [old, new].map(|value| operands(*op, value));
        if op != other || !commutes || old.len() != new.len() {
            return false;
        }
        if let Some(exchanged) = self.exchanged(&old, &new) {
            new = exchanged;
        }
        old.iter().zip(&new).for_each(|(old, new)| self.walk(old, new, depth, found));
        true
    }

    /// The operands after in the order of those before, if each has one that is like it: the first one that is left.
    fn exchanged(&self, old: &[Expr], new: &[Expr]) -> Option<Vec<Expr>> {
        let mut rest = new.to_vec();
        let mut found = Vec::new();
        for old in old {
            let like = rest.iter().position(|new| self.is_alike(old, new))?;
            found.push(rest.remove(like));
        }
        Some(found)
    }

    /// Whether two operands are of one kind: values of instances, loads from buffers that correspond, or the same operation.
    fn is_alike(&self, old: &Expr, new: &Expr) -> bool {
        match (self.before.named(old), self.after.named(new), old, new) {
            (Some(_), Some(_), ..) => true,
            (None, None, Expr::Load { buffer: x, .. }, Expr::Load { buffer: y, indices }) => {
                self.in_old_layout(x, y, indices).is_some()
            }
            (None, None, ..) => std::mem::discriminant(old) == std::mem::discriminant(new),
            (Some(_), None, ..) | (None, Some(_), ..) => false,
        }
    }

    /// The same for values that are not names.
    fn parts(&self, old: &Expr, new: &Expr, depth: usize, found: &mut Found) {
        if self.sums(old, new, depth, found) {
            return;
        }
        let is_index = |expr: &Expr| expr.dtype().scalar.integer_range().is_some() && !expr.reads_memory();
        match (old, new) {
            (Expr::Load { buffer: x, indices: i }, Expr::Load { buffer: y, indices: j }) => {
                if let Some(j) = self.in_old_layout(x, y, j).filter(|j| j.len() == i.len()) {
                    found.equations.extend(i.iter().cloned().zip(j));
                }
            }
            _ if is_index(old) && is_index(new) => found.equations.push((old.clone(), new.clone())),
            (Expr::Binary(op, ..), Expr::Binary(other, ..)) if op != other => {
                if let (Some((a, b)), Some((c, d))) = (subtraction(old), subtraction(new)) {
                    self.walk(a, c, depth, found);
                    self.walk(b, d, depth, found);
                }
            }
            (Expr::IfThenElse(..) | Expr::Select(..), Expr::IfThenElse(..) | Expr::Select(..)) => {
                for (old, new) in old.children().zip(new.children()) {
                    self.walk(old, new, depth, found);
                }
            }
            (_, Expr::IfThenElse(cond, a, b) | Expr::Select(cond, a, b)) => {
                self.budget.spend(found.samples.len());
                found.either(cond, [a, b], &|new, found| self.walk(old, new, depth, found));
            }
            (Expr::IfThenElse(cond, a, b) | Expr::Select(cond, a, b), _) => {
                self.budget.spend(found.samples.len());
                found.either(cond, [a, b], &|old, found| self.walk(old, new, depth, found));
            }
            _ if std::mem::discriminant(old) == std::mem::discriminant(new) => {
                for (old, new) in old.children().zip(new.children()) {
                    self.walk(old, new, depth, found);
                }
            }
            _ => {}
        }
    }

    fn in_old_layout(&self, old: &Buffer, new: &Buffer, indices: &[Expr]) -> Option<Vec<Expr>> {
        let claim: Option<&BufferClaim> = self.evidence.buffers.iter().find(|claim| claim.after == *new);
        match claim {
            Some(claim) if claim.before == *old => crate::reorder::undo(claim, indices),
            Some(_) => None,
            None => (old == new).then(|| indices.to_vec()),
        }
    }

    /// Claims that a store after is one before, if that was not claimed yet.
    fn meet(&mut self, meeting: &Meeting, reader: usize) {
        let ((old, _), (new, _)) = (&meeting.old, &meeting.new);
        if self.stores[*new].instances.iter().any(|known| known.store == Some(*old)) {
            return;
        }
        let at = self.forward(meeting, reader);
        self.stores[*new].instances.push(Instance { when: None, store: Some(*old), at: at.clone() });
        self.queue.push((*old, *new, at));
    }

    /// The loops of the store before in terms of those of the store after: of the solutions for each case the one that leads most
    /// instances into the store before, and to most different ones.
    fn forward(&self, meeting: &Meeting, reader: usize) -> Vec<Expr> {
        let (old, new) = (self.before.store(meeting.old.0), self.after.store(meeting.new.0));
        let theirs = old.loops();
        let fresh: Vec<Var> = theirs.iter().map(|var| Var::new(format!("{}'", var.name()), var.dtype())).collect();
        let tried = samples(&new.path, 1);
        let hints = self.hints(meeting, reader);
        let quality = |forward: &Vec<Expr>| {
            let image = |instance: &Bindings| {
                let image: Vec<i128> =
                    forward.iter().map(|value| value.eval_index(instance).ok()).collect::<Option<_>>()?;
                let mut bindings = instance.clone();
                bindings.extend(theirs.iter().cloned().zip(image.iter().copied()));
                let sizes: Vec<i128> = new.path.symbols.iter().map(|var| instance[var]).collect();
                old.path.admits(&bindings).then_some((sizes, image))
            };
            let images: Vec<_> = tried.iter().filter_map(image).collect();
            images.len() + images.iter().collect::<HashSet<_>>().len()
        };
        // The reader may see the last iteration of a loop only, where each one is that of the loop of the same name and as many iterations.
        // Few samples may not tell these apart.
        let n_loops = |forward: &Vec<Expr>| {
            new.loops().iter().filter(|var| forward.iter().any(|value| value.vars().contains(var))).count()
        };
        let solutions = self.equations(meeting, &fresh, &tried).into_iter().map(|equations| {
            let seen = self.solution(meeting, (&fresh, equations.clone()), (&hints, true));
            let alike = self.solution(meeting, (&fresh, equations), (&hints, false));
            let is_better = (quality(&alike), n_loops(&alike)) > (quality(&seen), n_loops(&seen));
            if is_better { alike } else { seen }
        });
        // The first of the best.
        let best = solutions.map(|forward| (quality(&forward), forward)).reduce(|a, b| if b.0 > a.0 { b } else { a });
        best.map(|(_, forward)| forward).unwrap_or_default()
    }

    /// The loops of the store before, by some equations; what they leave open as the reader saw it, or as a loop of the same name (and as
    /// many iterations) has it: whichever of both is trusted more.
    fn solution(
        &self,
        meeting: &Meeting,
        (fresh, equations): (&[Var], Vec<(Expr, Expr)>),
        (hints, trusts_reader): (&[Option<Expr>], bool),
    ) -> Vec<Expr> {
        let (old, new) = (self.before.store(meeting.old.0), self.after.store(meeting.new.0));
        let names = Substitution::new(&old.loops(), fresh.iter().map(Expr::from));
        let unknown = named(&loops(&old.path), fresh, &names);
        let known = ranges(&[&new.path]);
        let inner = unknown.iter().fold(known.clone(), |known, l| known.with_loop(&l.var, &l.min, &l.extent));
        let mut system = System { unknown, equations, ranges: &inner, solved: Substitution::default() };
        system.solve();
        let used: Vec<Var> = fresh.iter().filter_map(|var| system.solved.get(var)).flat_map(Expr::vars).collect();
        for l in system.open() {
            let position = fresh.iter().position(|var| *var == l.var);
            let hint = position.and_then(|position| hints.get(position).cloned().flatten());
            let mine = loops(&new.path);
            let alike = mine.iter().find(|other| {
                let is_named = !used.contains(&other.var) && format!("{}'", other.var.name()) == l.var.name();
                is_named && (trusts_reader || (&other.min, &other.extent) == (&l.min, &l.extent))
            });
            let depends = |value: &Expr| mine.iter().any(|other| value.vars().contains(&other.var));
            let value = match (hint, alike) {
                _ if l.extent.as_const_int() == Some(1) => system.solved.apply(&l.min),
                (Some(hint), _) if trusts_reader && depends(&hint) => hint,
                (_, Some(other)) => Expr::from(&other.var),
                (Some(hint), None) => hint,
                (None, None) => system.solved.apply(&l.min),
            };
            system.found(&l.var, &value);
        }
        let again = |value: &Expr| simplify(&system.solved.apply(value), &known);
        fresh.iter().map(|var| again(&again(&Expr::from(var)))).collect()
    }

    /// The equations between the indices of what both read, for each pair of cases, those with most of them first: they may be those of
    /// a single instance, as where a loop starts.
    fn equations(&self, meeting: &Meeting, fresh: &[Var], tried: &[Bindings]) -> Vec<Vec<(Expr, Expr)>> {
        let itself: Vec<Expr> = self.after.store(meeting.new.0).loops().iter().map(Expr::from).collect();
        let fresh: Vec<Expr> = fresh.iter().map(Expr::from).collect();
        let mut all: Vec<Vec<(Expr, Expr)>> = Vec::new();
        for new in self.after.values(meeting.new.0, &itself) {
            for old in self.before.values(meeting.old.0, &fresh) {
                let mut found = Found::of(tried.to_vec());
                self.pairs(&[old], std::slice::from_ref(&new), DEPTH, &mut found);
                if !all.contains(&found.equations) {
                    all.push(found.equations);
                }
            }
        }
        all.sort_by_key(|equations| Reverse(equations.len()));
        all.truncate(MOST_TRIED);
        all
    }

    /// The loops before at a meeting, in terms of the loops of the store after, as far as the reader that saw both tells.
    fn hints(&self, meeting: &Meeting, reader: usize) -> Vec<Option<Expr>> {
        let (reader, new) = (self.after.store(reader), self.after.store(meeting.new.0));
        let theirs = reader.loops();
        let fresh: Vec<Var> = theirs.iter().map(|var| Var::new(var.name(), var.dtype())).collect();
        let names = Substitution::new(&theirs, fresh.iter().map(Expr::from));
        let unknown = named(&loops(&reader.path), &fresh, &names);
        let known = ranges(&[&new.path]);
        let inner = unknown.iter().fold(known.clone(), |known, l| known.with_loop(&l.var, &l.min, &l.extent));
        let there = meeting.new.1.iter().map(|value| names.apply(value));
        let equations = there.zip(new.loops().iter().map(Expr::from)).collect();
        let mut system = System { unknown, equations, ranges: &inner, solved: Substitution::default() };
        system.solve();
        let open: Vec<Var> = system.open().into_iter().map(|l| l.var).collect();
        let value = |value: &Expr| {
            let value = simplify(&system.solved.apply(&system.solved.apply(&names.apply(value))), &known);
            (!value.vars().iter().any(|var| open.contains(var))).then_some(value)
        };
        meeting.old.1.iter().map(value).collect()
    }

    /// The claims, each with the condition that the instance before exists.
    fn with_conditions(self) -> Vec<Origin> {
        let mut stores = self.stores;
        for (new, origin) in stores.iter_mut().enumerate() {
            let origins = &mut origin.instances;
            let mut covers = false;
            for origin in origins.iter_mut() {
                let Some(old) = origin.store.map(|old| self.before.store(old)) else { continue };
                let at = Substitution::new(&old.loops(), origin.at.iter().cloned());
                let conditions = left(&self.after.store(new).path, &domain(old, &at));
                let conditions = conditions.unwrap_or_else(|| vec![Expr::bool(false)]);
                origin.when = conditions.into_iter().reduce(Expr::and);
                covers = origin.when.is_none();
                if covers {
                    break;
                }
            }
            let needed = origins.iter().position(|origin| origin.when.is_none()).map_or(origins.len(), |last| last + 1);
            origins.truncate(needed);
            if !covers {
                origins.push(Instance { when: None, store: None, at: Vec::new() });
            }
        }
        stores
    }
}

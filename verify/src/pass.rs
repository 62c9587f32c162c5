//! Obligations of a pass: the program after it means what the program before it means.

use std::cell::Cell;

use rayon::prelude::*;
use tilewright_ir::equal::same_operation;
use tilewright_ir::{
    Bindings, Buffer, BufferChange, BufferClaim, BufferInfo, Comparison, Evidence, Expr, PrimFunc, Var,
};

use crate::access::{Base, at_point, bindings_of, overflow};
use crate::claims::{self, Relation, row_major, strided};
use crate::concrete::tuple;
use crate::correspondence::Correspondence;
use crate::door::inspected;
use crate::fills;
use crate::finder;
use crate::inherited;
use crate::iterations::{Seen, mixes_bits};
use crate::judge::{
    Decision, Judge, Report, Side, decide, free_vars, on_the_way, suspected, unreached, unsupported, without_value,
};
use crate::lanes;
use crate::lockstep::{Goal, GoalKind, Lockstep};
use crate::map::{MapClaim, subterms};
use crate::method::Method;
use crate::obligation::Obligation;
use crate::path::Path;
use crate::reason::Reason;
use crate::ring::same_polynomial;
use crate::term::{Prop, Term};
use crate::texture;
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};
use crate::{phases, same, sample};

/// Concrete iterations tried before Z3 is asked.
const TRIED: usize = 120;

impl Judge {
    /// Decides whether a pass kept the meaning: the claims about buffers (bounds, injective, tight, overflow, flatten,
    /// simulation of aliases), the loops (iteration), every store and load (simulation, bounds, overflow).
    ///
    /// The program before is first held against itself; if that is not proved, nothing else is believed, unless the program
    /// after is the same up to names.
    pub fn check_pass(&self, before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Vec<Report> {
        let is_walked = matches!(evidence.comparison, Comparison::Statements);
        let along = if is_walked { correspondence(before, after, evidence) } else { Correspondence::default() };
        let compared = self.check_pass_along(before, after, evidence, &along);
        let is_open = |report: &&Report| !report.verdict.is_proved();
        let of_both = |report: &Report| matches!(report.obligation, Obligation::Simulation | Obligation::Iteration);
        let n_open = compared.iter().filter(is_open).count();
        // A program that cannot be followed still does what it does.
        if n_open > 0 && same::is_same(before, after, evidence) {
            let same = self.check_same(after);
            if compared.iter().filter(is_open).any(of_both) || same.iter().filter(is_open).count() < n_open {
                return same;
            }
        }
        compared
    }

    /// [`Judge::check_pass`] along a correspondence that the caller gives, and in no other way. It is a claim: a wrong one proves
    /// nothing.
    pub fn check_pass_along(
        &self,
        before: &PrimFunc,
        after: &PrimFunc,
        evidence: &Evidence,
        along: &Correspondence,
    ) -> Vec<Report> {
        if let Some(reason) = claims::wrong(before, after, evidence) {
            return vec![Self::report(Obligation::Simulation, "claims of the pass", || unsupported(reason))];
        }
        let in_the_way = phases::across_barriers(before, after, evidence);
        if let Some(report) = in_the_way.or_else(|| self.against_itself(before)) {
            return vec![report];
        }
        let unfilled = match fills::without(after, evidence) {
            Ok(unfilled) => unfilled,
            Err(reason) => {
                let decide = || unsupported(reason);
                return vec![Self::report(Obligation::Padding, "claims of the pass", decide)];
            }
        };
        let scalars = before.scalars();
        let mut reports: Vec<Report> = self.in_parallel(|| {
            evidence
                .buffers
                .par_iter()
                .flat_map_iter(|claim| {
                    let span = before.layout_span(&claim.before);
                    let is_guess = evidence.guessed.contains(&claim.after);
                    let reports = self.check_claim(claim, &scalars).into_iter();
                    reports.map(move |report| report.placed(Side::Before, span).guessed_if(is_guess))
                })
                .collect()
        });
        reports.extend(Self::check_device_functions(after));
        reports.push(Self::report(Obligation::Simulation, "aliases move together", || {
            suspected(aliases(before, after, evidence))
        }));
        if [before, after].iter().any(|func| !func.attrs.layout_transform_map.is_empty()) {
            let decide = || suspected(claims::requested(self, before, after, evidence));
            reports.push(Self::report(Obligation::Simulation, "layouts asked for are applied", decide));
        }
        reports.extend(fills::requested(self, before, after, evidence));
        reports.extend(texture::requested(self, before, after, evidence));
        reports.extend(self.check_fills(before, &unfilled, evidence));
        let mut buffers = before.buffers();
        buffers.extend(after.buffers());
        let base = Base::new(self, before, &buffers);
        let mut are_paired = inherited::is_each_access_paired(self, after, evidence, &[]);
        reports.extend(match &evidence.comparison {
            Comparison::Statements => {
                let goals = Lockstep::run(before, &unfilled, &Relation::new(evidence), along);
                are_paired = inherited::is_each_access_paired(self, after, evidence, &goals);
                let (ordered, goals): (Vec<Goal>, Vec<Goal>) =
                    goals.into_iter().partition(|goal| matches!(goal.kind, GoalKind::Ordered));
                let races = if ordered.is_empty() { Vec::new() } else { self.check_races(before) };
                self.in_parallel(|| self.decide_goals(evidence, &base, &goals)).into_iter().chain(races).collect()
            }
            Comparison::Iterations(claim) => self.check_reordering((before, &unfilled), evidence, claim, &base),
            Comparison::Values(claim) => self.check_flow((before, &unfilled), evidence, claim, &base),
            Comparison::Definitions(claim) => self.check_lifting((before, &unfilled), evidence, claim, &base),
            Comparison::Results => self.check_execution((before, after), evidence, &base),
            Comparison::Phases(claim) => self.check_phased((before, after), evidence, claim),
            Comparison::Barriers => self.check_barriers_alone((before, after), evidence),
            Comparison::Packed => self.check_packed((before, after), evidence),
            Comparison::Scalarized(claim) => self.check_scalarized((before, after), evidence, claim),
        });
        let is_inherited = are_paired && reports.iter().all(|report| report.verdict.is_proved());
        // Where the program before stays in its buffers, so does each image of an index of it.
        let is_inside = is_inherited && self.takes_over && !inherited::has_scattered(evidence, after);
        let own = self.check_program_given(Side::After, after, is_inside);
        reports.extend(self.check_views(after, &after.buffers()));
        reports.extend(if is_inherited { self.given(&[Obligation::Bounds], own) } else { own });
        base.grounded(reports)
    }

    /// A program against itself: none if that is proved.
    fn against_itself(&self, func: &PrimFunc) -> Option<Report> {
        let evidence = Evidence::default();
        let along = correspondence(func, func, &evidence);
        let goals = Lockstep::run(func, func, &Relation::new(&evidence), &along);
        let base = Base::new(self, func, &func.buffers());
        let wrong = goals.iter().find_map(|goal| match decide_goal(self, &evidence, &base, goal) {
            (Verdict::Proved(_) | Verdict::Vacuous(_), _) => None,
            (verdict, _) => Some((goal.subject.clone(), verdict)),
        })?;
        let reason =
            format!("the judge cannot follow this program, not even against itself: {} at {}", wrong.1, wrong.0);
        Some(Self::report(Obligation::Simulation, "the program against itself", || {
            (Verdict::Unknown(Reason::unsupported(reason)), Method::Lockstep)
        }))
    }

    /// One report for each statement and obligation: the worst of its goals.
    fn decide_goals(&self, evidence: &Evidence, base: &Base<'_>, goals: &[Goal]) -> Vec<Report> {
        let mut groups: Vec<Vec<&Goal>> = Vec::new();
        for goal in goals {
            let same = |group: &&mut Vec<&Goal>| {
                group[0].obligation == goal.obligation
                    && group[0].subject == goal.subject
                    && group[0].path.loops() == goal.path.loops()
            };
            match groups.last_mut().into_iter().find(same) {
                Some(group) => group.push(goal),
                None => groups.push(vec![goal]),
            }
        }
        groups.par_iter().map(|group| self.decide_group(evidence, base, group)).collect()
    }

    fn decide_group(&self, evidence: &Evidence, base: &Base<'_>, group: &[&Goal]) -> Report {
        let report = Self::report(group[0].obligation, group[0].subject.clone(), || {
            let mut worst: Decision = (inspected(), Method::SameText);
            // A whole store evaluated shows more than one index of it.
            let ordered = group.iter().filter(|goal| matches!(goal.kind, GoalKind::Stored(..)));
            let rest = group.iter().filter(|goal| !matches!(goal.kind, GoalKind::Stored(..)));
            for goal in ordered.chain(rest) {
                let decision = decide_goal(self, evidence, base, goal);
                let both_proved = decision.0.is_proved() && worst.0.is_proved();
                if decision.0 > worst.0 || (both_proved && decision.1.weight() > worst.1.weight()) {
                    worst = decision;
                }
                if matches!(worst.0, Verdict::Refuted(_)) {
                    break;
                }
            }
            suspected(worst)
        });
        let Goal { side, spans: [span, counterpart], .. } = *group[0];
        report.placed(side, span).compared_with(side.other(), counterpart)
    }

    /// What is claimed of one buffer of a program with these scalars.
    fn check_claim(&self, claim: &BufferClaim, scalars: &[Var]) -> Vec<Report> {
        let subject = format!("{} -> {}: {}", claim.before, claim.after, claim.map);
        let mut reports = vec![Self::report(Obligation::Simulation, format!("claim of {subject}"), || {
            suspected(well_formed(self, claim, scalars))
        })];
        let map = MapClaim::new(&claim.map, &claim.after.shape).padded(&claim.padded_axes).scalars(scalars);
        reports.extend(self.check_map_twice(map));
        if claim.change == BufferChange::Flatten {
            reports.push(Self::report(Obligation::Flatten, subject, || flatten(self, claim, scalars)));
        }
        reports
    }
}

/// Finds how the parts of two programs correspond, for [`Judge::check_pass_along`]. It speaks of the program after without the
/// loops that fill padding. Nothing that is found is believed.
pub fn correspondence(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Correspondence {
    let well_formed = claims::wrong(before, after, evidence).is_none();
    let unfilled = fills::without(after, evidence).ok().filter(|_| well_formed);
    let found = unfilled.map(|unfilled| finder::functions(before, &unfilled, &Relation::new(evidence)));
    found.unwrap_or_default()
}

/// The claim speaks of the buffers that it names.
fn well_formed(judge: &Judge, claim: &BufferClaim, scalars: &[Var]) -> Decision {
    let (before, after) = (claim.before.info(), claim.after.info());
    let wrong = |what: &str| unsupported(format!("the claim does not fit: {what}"));
    if claim.map.domain().len() != before.shape.len() || claim.map.outputs().len() != after.shape.len() {
        return wrong("the map has another rank than the buffers");
    }
    if before.dtype != after.dtype {
        return wrong("the element type changed");
    }
    if before.scope != after.scope {
        return wrong("the scope changed");
    }
    let zero = |offset: &Expr| offset.as_const_int() == Some(0);
    let compact = |info: &BufferInfo| info.strides.is_none() && zero(&info.elem_offset);
    let folded = matches!(claim.change, BufferChange::Flatten);
    if !compact(after) || !(folded || compact(before)) {
        return wrong("strides and offsets are left over");
    }
    let identity: Vec<Expr> = claim.map.vars().iter().map(Expr::from).collect();
    if claim.change == BufferChange::Rename && (claim.map.outputs() != identity || before.shape != after.shape) {
        return wrong("it is called a renaming, but the indices or the shape changed");
    }
    let pairs: Vec<_> = claim.map.domain().iter().cloned().zip(before.shape.iter().cloned()).collect();
    all_equal(judge, claim, scalars, &pairs)
}

/// Pairs of expressions over the map's indices and the symbols are equal for every index of the domain. Symbols that are
/// not among the scalars are extents.
pub(crate) fn all_equal(judge: &Judge, claim: &BufferClaim, scalars: &[Var], pairs: &[(Expr, Expr)]) -> Decision {
    let vars = claim.map.vars();
    let exprs = pairs.iter().flat_map(|(a, b)| [a, b]).chain(claim.map.domain());
    let (scalars, symbols) = free_vars(exprs, vars).into_iter().partition(|var| scalars.contains(var));
    let steps = vars.iter().zip(claim.map.domain());
    let steps = steps.map(|(var, extent)| crate::path::Step::Loop(var.clone(), Expr::int(0), extent.clone())).collect();
    let path = Path { symbols, scalars, steps, ..Path::default() };
    equal(judge, &path, pairs)
}

/// Each separator group is the row-major numeral of its axes; the result is flat.
fn flatten(judge: &Judge, claim: &BufferClaim, scalars: &[Var]) -> Decision {
    let before = claim.before.info();
    let groups = before.axis_separators.groups();
    if before.axis_separators.rank() != before.shape.len() || groups.len() != claim.after.rank() {
        let text = format!("{} separator groups became {} axes", groups.len(), claim.after.rank());
        return refuted_claim(text);
    }
    if !claim.after.axis_separators.is_flat() {
        return refuted_claim(format!(
            "{} would be flattened again: its separators are {:?}",
            claim.after,
            claim.after.axis_separators.positions()
        ));
    }
    let index: Vec<Expr> = claim.map.vars().iter().map(Expr::from).collect();
    let expected: Vec<Expr> = match (&before.strides, groups.as_slice()) {
        (Some(strides), [_]) => vec![strided(&index, strides, &before.elem_offset)],
        (strides, [_, _, ..]) if strides.is_some() || before.elem_offset.as_const_int() != Some(0) => {
            return unsupported("strides or an offset and several physical axes");
        }
        (Some(_), _) => return unsupported("strides without axes"),
        (None, [only]) => vec![row_major(&index, &before.shape, only.clone()) + before.elem_offset.clone()],
        (None, _) => groups.iter().map(|group| row_major(&index, &before.shape, group.clone())).collect(),
    };
    let pairs: Vec<_> = expected.into_iter().zip(claim.map.outputs().iter().cloned()).collect();
    all_equal(judge, claim, scalars, &pairs)
}

fn refuted_claim(text: String) -> Decision {
    (Verdict::Refuted(Counterexample { text, ..Counterexample::default() }), Method::Structure)
}

/// Where memory is rearranged, every alias is rearranged alike.
fn aliases(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Decision {
    if let Some(wrong) = memory(before, after, evidence) {
        return unsupported(wrong);
    }
    let moved: Vec<&BufferClaim> =
        evidence.buffers.iter().filter(|claim| claim.change == BufferChange::Layout).collect();
    let (buffers, kept) = (before.buffers(), after.buffers());
    for claim in &moved {
        for alias in buffers.iter().filter(|alias| alias.aliases(&claim.before) && **alias != claim.before) {
            match moved.iter().find(|other| other.before == *alias) {
                None if kept.contains(alias) => return left_behind(claim, alias),
                None => {}
                Some(other) if same_move(claim, other) => {}
                Some(_) => {
                    let reason = format!("the aliases {} and {alias} are moved by different maps", claim.before);
                    return unsupported(reason);
                }
            }
        }
    }
    (inspected(), Method::Inspection("every alias is claimed"))
}

/// Each allocation became one allocation, and no two became the same.
fn memory(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Option<String> {
    let kept = after.buffers();
    let unchanged = before.buffers().into_iter().filter(|buffer| kept.contains(buffer));
    let mut pairs: Vec<(Buffer, Buffer)> = unchanged.map(|buffer| (buffer.clone(), buffer)).collect();
    pairs.extend(evidence.buffers.iter().map(|claim| (claim.before.clone(), claim.after.clone())));
    let split = |(x, y): &(Buffer, Buffer)| {
        let other = pairs.iter().find(|(p, q)| p.aliases(x) != q.aliases(y))?;
        Some(format!(
            "`{y}` is said to be `{x}`, and `{}` to be `{}`, but they share memory on one side only",
            other.1, other.0
        ))
    };
    pairs.iter().find_map(split)
}

fn same_move(a: &BufferClaim, b: &BufferClaim) -> bool {
    let index: Vec<Expr> = a.map.vars().iter().map(Expr::from).collect();
    let same_width = a.before.dtype.bytes() == b.before.dtype.bytes();
    same_width
        && a.before.shape == b.before.shape
        && a.after.shape == b.after.shape
        && b.map.apply(&index) == a.map.outputs()
}

/// An alias that stayed in the old layout: the first element that both now see in different places.
fn left_behind(claim: &BufferClaim, alias: &Buffer) -> Decision {
    let text = |index: &[i128], there: &[i128]| {
        format!(
            "element {} of {} moved to {}, but its alias {alias} still looks for it where it was",
            tuple(index),
            claim.before,
            tuple(there)
        )
    };
    match sample::first_moved(&claim.map, &claim.after) {
        Some((index, there)) => {
            let text = text(&index, &there);
            let found = Counterexample { text, indices: vec![index], ..Counterexample::default() };
            (Verdict::Refuted(found), Method::Evaluation)
        }
        None => unsupported(format!("{alias} was left out of a layout change of its memory")),
    }
}

pub(crate) fn decide_goal(judge: &Judge, evidence: &Evidence, base: &Base<'_>, goal: &Goal) -> Decision {
    let decision = match &goal.kind {
        GoalKind::Equal(pairs) => equal(judge, &goal.path, pairs),
        GoalKind::Same(old, new) => same_value(judge, &goal.path, (old, new), base),
        GoalKind::Holds(cond) => holds(judge, &goal.path, cond),
        GoalKind::Fits(exprs) => fit(&goal.path, exprs, base),
        GoalKind::Stored(old, new) => stores(&goal.path, (old, new), evidence),
        GoalKind::Stuck(reason) => (Verdict::Unknown(Reason::unsupported(reason.clone())), Method::Lockstep),
        GoalKind::Missing => missing(judge, &goal.path),
        GoalKind::Unread(unread) => unread.decide(judge),
        GoalKind::Alone(gathered) => lanes::alone(judge, &goal.path, gathered),
        GoalKind::Early => (inspected(), Method::SameText),
        GoalKind::Ordered => unsupported("a loop over vectors became a loop in order"),
    };
    guessed_if(goal.is_guess, decision)
}

/// Parts that correspond by a guess and are equal make a whole that is equal; those that are not say nothing of it.
pub(crate) fn guessed_if(is_guess: bool, decision: Decision) -> Decision {
    match decision {
        (Verdict::Refuted(_), method) if is_guess => {
            (Verdict::Unknown(Reason::undecided("a part is computed in another way")), method)
        }
        decision => decision,
    }
}

/// No operation in the expressions leaves its type or has no value.
pub(crate) fn fit(path: &Path, exprs: &[Expr], base: &Base<'_>) -> Decision {
    let mut parts = Vec::new();
    for expr in exprs {
        subterms(expr, &mut parts);
    }
    let parts: Vec<_> = parts.into_iter().map(|part| (part.clone(), path.clone())).collect();
    overflow(&parts, base)
}

/// A statement that the program after does not have: it is never reached, or here is the first iteration that is.
fn missing(judge: &Judge, path: &Path) -> Decision {
    let text = "the program after does not do this".to_owned();
    if let Some(bindings) = path.samples(TRIED).first() {
        return (Verdict::Refuted(at_point(path, bindings, text)), Method::Evaluation);
    }
    let mut names = Names::default();
    let mut question = judge.question(&mut names, &path.symbols);
    path.assume(&mut question, &mut names);
    match unreached(&question) {
        Some(decision) => decision,
        None => (Verdict::Unknown(Reason::undecided(text)), Method::Lockstep),
    }
}

/// Pairs of integer expressions are equal at every iteration of the way.
pub(crate) fn equal(judge: &Judge, path: &Path, pairs: &[(Expr, Expr)]) -> Decision {
    let different: Vec<_> = pairs.iter().filter(|(old, new)| old != new).collect();
    // Whether a side had no value where it was looked at.
    let is_partial = Cell::new(false);
    if different.is_empty() {
        return (inspected(), Method::SameText);
    }
    let differ = |bindings: &Bindings| {
        different.iter().find_map(|(old, new)| {
            let (Ok(x), Ok(y)) = (old.eval_index(bindings), new.eval_index(bindings)) else {
                is_partial.set(true);
                return None;
            };
            (x != y).then(|| at_point(path, bindings, format!("`{old}` is {x}, but `{new}` is {y}")))
        })
    };
    if let Some(found) = path.samples(TRIED).iter().find_map(differ) {
        return (Verdict::Refuted(found), Method::Evaluation);
    }
    let goal = |names: &mut Names| {
        Prop::all(different.iter().map(|(old, new)| {
            let (old, new): (Term, Term) = (names.term(old), names.term(new));
            old.equals(new)
        }))
    };
    let read = different.iter().any(|(old, new)| old.reads_memory() || new.reads_memory());
    is_partial.set(false);
    let look = |bindings: &Bindings| {
        let mut sides = different.iter().flat_map(|(old, new)| [old, new]);
        if sides.any(|side| side.eval_index(bindings).is_err()) {
            return Seen::Unclear;
        }
        differ(bindings).map_or(Seen::Holds, Seen::Fails)
    };
    let bits = mixes_bits(different.iter().flat_map(|(old, new)| [old, new]));
    let prove = || on_the_way(path, read, proved(judge, path, goal, differ));
    let decision = judge.proved_or_tried(path, bits, look, prove);
    if is_partial.get() { without_value(decision) } else { decision }
}

/// Two integers are the same value at every iteration of the way. If nothing in them wraps, they are what the integers say; if
/// something may, one operation on operands that are the same is the same. Wrapping alone is no fault of a value.
pub(crate) fn same_value(judge: &Judge, path: &Path, (old, new): (&Expr, &Expr), base: &Base<'_>) -> Decision {
    if old == new {
        return (inspected(), Method::SameText);
    }
    let is_integer = |expr: &Expr| expr.dtype().scalar.integer_range().is_some();
    let fits = if is_integer(old) && is_integer(new) {
        fit(path, &[old.clone(), new.clone()], base)
    } else {
        unsupported("it is no integer")
    };
    match fits.0 {
        Verdict::Proved(fitting) => {
            let (verdict, method) = equal(judge, path, &[(old.clone(), new.clone())]);
            let verdict = match verdict {
                Verdict::Proved(grounds) => Verdict::Proved(grounds.and(fitting)),
                open => open,
            };
            return (verdict, fits.1.then(method));
        }
        Verdict::Vacuous(_) => return fits,
        Verdict::Refuted(_) | Verdict::Unknown(_) | Verdict::Skipped(_) => {}
    }
    let nowhere = |_: &Bindings, _: &Buffer, _: &[i128]| None;
    if let Some(bindings) = sample::difference(path, TRIED, [old, new], [&nowhere, &nowhere]) {
        let text = format!("`{old}` became `{new}`, which is another value");
        return (Verdict::Refuted(at_point(path, &bindings, text)), Method::Evaluation);
    }
    let (left, right) = (old.children(), new.children());
    let part = |pair: (&Expr, &Expr)| same_value(judge, path, pair, base).0.is_proved();
    if same_polynomial(old, new) {
        return (inspected(), Method::Inspection("same polynomial"));
    }
    if same_operation(old, new) && old.dtype() == new.dtype() && left.into_iter().zip(right).all(part) {
        return (inspected(), Method::Inspection("part by part"));
    }
    (Verdict::Unknown(Reason::undecided(format!("`{old}` may wrap where `{new}` does not, or otherwise"))), fits.1)
}

/// A condition holds at every iteration of the way.
pub(crate) fn holds(judge: &Judge, path: &Path, cond: &Expr) -> Decision {
    let fails = |bindings: &Bindings| {
        let value = cond.eval_index(bindings).ok()?;
        (value == 0).then(|| at_point(path, bindings, format!("`{cond}` does not hold")))
    };
    if let Some(found) = path.samples(TRIED).iter().find_map(fails) {
        return (Verdict::Refuted(found), Method::Evaluation);
    }
    let look = |bindings: &Bindings| match cond.eval_index(bindings) {
        Ok(_) => fails(bindings).map_or(Seen::Holds, Seen::Fails),
        Err(_) => Seen::Unclear,
    };
    let prove = || on_the_way(path, cond.reads_memory(), proved(judge, path, |names| names.prop(cond), fails));
    judge.proved_or_tried(path, mixes_bits([cond]), look, prove)
}

/// Asks for a proof at every iteration of the way; a model counts if it is an execution and evaluation agrees.
fn proved(
    judge: &Judge,
    path: &Path,
    goal: impl FnOnce(&mut Names) -> Prop,
    replay: impl Fn(&Bindings) -> Option<Counterexample>,
) -> Decision {
    let mut names = Names::default();
    let mut question = judge.question(&mut names, &path.symbols);
    path.assume(&mut question, &mut names);
    let is_reached = path.is_reached();
    let equal = if is_reached { Vec::new() } else { path.equalities(&mut names) };
    names.next_statement();
    let goal = goal(&mut names);
    names.assume_types(&mut question);
    let from = question.steps().len();
    // Two numbers that are equal may be what nothing gets past, which the strategy sees sooner than the solver.
    question.equated(&equal);
    let early = (!equal.is_empty()).then(|| question.settle(&goal));
    if !is_reached
        && !matches!(early, Some(Ok(_)))
        && let Some(unreached) = unreached(&question)
    {
        return unreached;
    }
    let result = early.unwrap_or_else(|| question.settle(&goal));
    let decision = decide("goal", result, &question, from, |model| {
        let bindings = bindings_of(path, &mut names, model);
        path.admits(&bindings).then(|| replay(&bindings)).flatten()
    });
    on_the_way(path, false, decision)
}

/// Evaluates both stores on memory that nobody wrote: corresponding elements have the same made-up value. Finding no
/// difference proves nothing: the other goals do.
fn stores(path: &Path, (before, after): (&Expr, &Expr), evidence: &Evidence) -> Decision {
    let moved =
        |bindings: &Bindings, buffer: &Buffer, index: &[i128]| sample::moved_place(evidence, bindings, buffer, index);
    match sample::difference(path, TRIED / 2, [before, after], [&moved, &sample::own_place]) {
        Some(bindings) => {
            let text = format!("the value `{before}` became `{after}`, which is another one");
            (Verdict::Refuted(at_point(path, &bindings, text)), Method::Evaluation)
        }
        None => (inspected(), Method::SameText),
    }
}

//! The obligations of maps as goals, for the certificates of verdicts that no solver was involved in.
//!
//! Each goal is the definition of the obligation over the integers, without quantifiers and lemmas. Tightness states that
//! an index exists, so it has no such goal. The certificate of a counterexample is the goal together with the refuting
//! values, where the facts and the negated goal are satisfiable.
//!
//! ```text
//! injective    0 <= i < 17, 0 <= i' < 17, i // 4 == i' // 4, i % 4 == i' % 4    implies    i == i'
//! bounds       0 <= i < 17    implies    0 <= i // 4 < 5 and 0 <= i % 4 < 4
//! ```

use tilewright_ir::{Expr, InverseClaim, Var};

use super::{MapClaim, overflow};
use crate::obligation::Obligation;
use crate::record::{Expected, Part};
use crate::term::{Assignment, Prop, Term, Value};
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

/// A goal of an obligation, with its premises.
struct Statement {
    /// The symbols of all variables.
    names: Names,
    /// The premises.
    using: Vec<Prop>,
    /// The proposition that has to follow.
    goal: Prop,
    /// The logical indices in the goal, in the order of a counterexample.
    logical: Vec<Vec<Term>>,
    /// The physical index in the goal, if there is one.
    physical: Vec<(Var, Term)>,
}

/// The parts of a certificate for a verdict that no solver was involved in: the obligation as a goal, or the counterexample.
pub(super) fn parts(obligation: Obligation, verdict: &Verdict, claim: MapClaim<'_>) -> Vec<Part> {
    let stated = statements(obligation, claim).into_iter();
    match verdict {
        Verdict::Proved(_) => {
            let part = |Statement { using, goal, .. }| Part::Statement { using, goal, expected: Expected::Unsat };
            stated.map(part).collect()
        }
        Verdict::Refuted(found) => stated.filter_map(|statement| statement.at(found, claim)).take(1).collect(),
        Verdict::Skipped(_) | Verdict::Vacuous(_) | Verdict::Unknown(_) => Vec::new(),
    }
}

/// The goals that make up an obligation; empty if it has no such goals.
fn statements(obligation: Obligation, claim: MapClaim<'_>) -> Vec<Statement> {
    let inverse = |goals: fn(MapClaim<'_>, &InverseClaim) -> [Statement; 2]| {
        claim.inverse.map_or_else(Vec::new, |inverse| goals(claim, inverse).into())
    };
    match obligation {
        Obligation::Bounds => vec![bounds(claim)],
        Obligation::Injective => vec![injective(claim)],
        Obligation::Overflow => vec![overflow(claim)],
        Obligation::Specification => specification(claim).into_iter().collect(),
        Obligation::Inverse => inverse(|claim, inverse| [left(claim, inverse, false), right(claim, inverse)]),
        Obligation::Padding => inverse(|claim, inverse| [left(claim, inverse, true), right(claim, inverse)]),
        _ => Vec::new(),
    }
}

impl Statement {
    /// A statement with the claim's assumptions as premises and no goal yet.
    fn new(claim: MapClaim<'_>) -> Self {
        let mut names = Names::default();
        let range = |symbol: &Var| {
            let term = names.var(symbol);
            claim.kind_of(symbol).range(symbol, &term, &mut names)
        };
        let mut using: Vec<Prop> = claim.symbols().iter().map(range).collect();
        using.extend(claim.assumptions.iter().map(|assumption| names.prop(assumption)));
        Self { names, using, goal: Prop::bool(true), logical: Vec::new(), physical: Vec::new() }
    }

    /// Binds `vars` to fresh symbols, adds the premise that these are an index of a box, and returns them.
    fn index(&mut self, vars: &[Var], shape: &[Expr]) -> Vec<Term> {
        let terms: Vec<Term> = vars.iter().map(|var| Term::sym(self.names.fresh(var.name()))).collect();
        for ((var, term), extent) in vars.iter().zip(&terms).zip(shape) {
            self.names.bind(var, term.clone());
            let extent = self.names.term(extent);
            self.using.push(term.at_least(0).and(term.less(extent)));
        }
        terms
    }

    /// Fresh symbols that are a logical index of the claim's map for which its predicate holds.
    fn logical(&mut self, claim: MapClaim<'_>) -> Vec<Term> {
        let terms = self.index(claim.map.vars(), claim.map.domain());
        if let Some(predicate) = claim.predicate {
            let holds = self.names.prop(predicate);
            self.using.push(holds);
        }
        self.logical.push(terms.clone());
        terms
    }

    /// Expressions as terms.
    fn terms(&mut self, exprs: &[Expr]) -> Vec<Term> {
        exprs.iter().map(|expr| self.names.term(expr)).collect()
    }

    /// The statement with the conjunction of these goals.
    fn showing(self, goals: impl IntoIterator<Item = Prop>) -> Self {
        Self { goal: Prop::all(goals), ..self }
    }

    /// The goal with the values of a counterexample, if evaluation shows that these refute it.
    fn at(mut self, found: &Counterexample, claim: MapClaim<'_>) -> Option<Part> {
        if found.indices.len() != self.logical.len() {
            return None;
        }
        let mut values: Vec<(Term, i128)> = Vec::new();
        for symbol in claim.symbols() {
            let (_, value) = found.shape.iter().find(|(name, _)| name == symbol.name())?;
            values.push((self.names.var(&symbol), *value));
        }
        for (terms, index) in self.logical.iter().zip(&found.indices) {
            values.extend(terms.iter().cloned().zip(index.iter().copied()));
        }
        for (var, term) in &self.physical {
            let (_, value) = found.assignments.iter().find(|(name, _)| name == var.name())?;
            values.push((term.clone(), *value));
        }
        let mut model = Assignment::new();
        for (term, value) in &values {
            model.set(term.free_symbols().into_iter().next()?, Value::Int(*value));
        }
        let holds = |prop: &Prop| prop.eval(&model).ok();
        let refutes = self.using.iter().all(|prop| holds(prop) == Some(true)) && holds(&self.goal) == Some(false);
        self.using.extend(values.iter().map(|(term, value)| term.equals(*value)));
        refutes.then_some(Part::Statement { using: self.using, goal: self.goal, expected: Expected::Sat })
    }
}

/// The proposition that two tuples are equal.
fn equal(left: &[Term], right: &[Term]) -> Prop {
    Prop::all(left.iter().zip(right).map(|(left, right)| left.equals(right)))
}

/// The proposition that an index lies in a box.
fn within(index: &[Term], shape: &[Term]) -> Prop {
    Prop::all(index.iter().zip(shape).map(|(index, extent)| index.at_least(0).and(index.less(extent))))
}

/// Every output lies in its extent.
fn bounds(claim: MapClaim<'_>) -> Statement {
    let mut statement = Statement::new(claim);
    statement.logical(claim);
    let (outputs, shape) = (statement.terms(claim.map.outputs()), statement.terms(claim.shape));
    statement.showing([within(&outputs, &shape)])
}

/// Two indices with the same image are equal.
fn injective(claim: MapClaim<'_>) -> Statement {
    let mut statement = Statement::new(claim);
    let a = statement.logical(claim);
    let left = statement.terms(claim.map.outputs());
    let b = statement.logical(claim);
    let right = statement.terms(claim.map.outputs());
    statement.using.push(equal(&left, &right));
    statement.showing([equal(&a, &b)])
}

/// Every operation fits its type.
fn overflow(claim: MapClaim<'_>) -> Statement {
    let mut statement = Statement::new(claim);
    statement.logical(claim);
    for shape in [claim.map.domain(), claim.shape] {
        statement.using.extend(overflow::addressable(shape, &mut statement.names));
    }
    let guarded = overflow::evaluated(claim.map.outputs());
    let goals: Vec<Prop> = guarded.iter().map(|guarded| guarded.fits(&mut statement.names)).collect();
    statement.showing(goals)
}

/// Both maps are equal.
fn specification(claim: MapClaim<'_>) -> Option<Statement> {
    let meaning = claim.meaning?;
    let mut statement = Statement::new(claim);
    let index = statement.logical(claim);
    let outputs = statement.terms(claim.map.outputs());
    let mut inside = statement.names.renamed(meaning.vars(), &index);
    let stated: Vec<Term> = meaning.outputs().iter().map(|output| inside.term(output)).collect();
    Some(statement.showing([equal(&outputs, &stated)]))
}

/// The inverse maps the image of every logical index back to it; with `padding`, the image is not padding.
fn left(claim: MapClaim<'_>, inverse: &InverseClaim, padding: bool) -> Statement {
    let mut statement = Statement::new(claim);
    let index = statement.logical(claim);
    let image = statement.terms(claim.map.outputs());
    for (var, output) in inverse.vars.iter().zip(image) {
        statement.names.bind(var, output);
    }
    let goal = if padding {
        statement.names.prop(&inverse.padding).negate()
    } else {
        let back = statement.terms(&inverse.outputs);
        equal(&back, &index)
    };
    statement.showing([goal])
}

/// Every physical index that is not padding is the image of its inverse, which lies in the domain.
fn right(claim: MapClaim<'_>, inverse: &InverseClaim) -> Statement {
    let mut statement = Statement::new(claim);
    let place = statement.index(&inverse.vars, claim.shape);
    statement.physical = inverse.vars.iter().cloned().zip(place.iter().cloned()).collect();
    let reached = statement.names.prop(&inverse.padding).negate();
    statement.using.push(reached);
    let back = statement.terms(&inverse.outputs);
    let domain = statement.terms(claim.map.domain());
    for (var, back) in claim.map.vars().iter().zip(&back) {
        statement.names.bind(var, back.clone());
    }
    let again = statement.terms(claim.map.outputs());
    let holds = claim.predicate.map(|predicate| statement.names.prop(predicate));
    statement.showing([within(&back, &domain), equal(&again, &place)].into_iter().chain(holds))
}

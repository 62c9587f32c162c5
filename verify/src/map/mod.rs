//! The obligations of index maps: bounds, injective, tight, overflow; inverse and padding; specification.
//!
//! Each obligation has a file, which begins with the list of its tiers (`case`), the cheapest first. The method of a report
//! begins with the name of the tier that decided:
//!
//! | word | what decides |
//! |---|---|
//! | `enumeration` | all points of a constant shape; small shapes of a symbolic claim, which can only refute |
//! | `gf2` | Z3 over bit-vectors, for maps that move and mix bits, with what linear algebra over GF(2) finds |
//! | `z3` | Z3: linear goals directly, flattened ones with symbolic extents digit by digit through the lemmas |
//!
//! A refutation comes with a counterexample that was evaluated, and that `shrink` has made small.
//!
//! A claim about symbolic extents is proved for all extents that satisfy its assumptions, or refuted by one shape.
//! Enumeration therefore never proves a symbolic claim, and Z3's models count only after the map was evaluated at them.

mod bits;
mod bounds;
mod case;
mod fast;
mod injective;
mod instance;
mod inverse;
mod memory;
mod overflow;
mod padding;
mod restriction;
mod shrink;
mod specification;
mod statement;
mod tight;
mod twice;
mod value;
mod witness;

use tilewright_ir::{Bindings, DigitCertificate, Expr, IndexMap, InverseClaim, ScalarType, Var};

use self::case::{Case, Loops, Shared, Tier};
use crate::concrete::{extents, points};
use crate::goal::Kind;
use crate::judge::{Decision, Judge, Report, free_vars, unfit};
use crate::method::Method;
use crate::obligation::Obligation as Id;
use crate::question::{Question, index_of};
use crate::reason::Reason;
use crate::term::{Assignment, Symbol, Term, Value};
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

pub(crate) use memory::Memory;
pub(crate) use overflow::{assume_addressable, fits, has_operation, is_operation, subterms};
pub(crate) use twice::BUDGET as SECOND_BUDGET;

/// Number of points of a large constant shape that are tried before Z3 is asked.
const QUICK: usize = 600;

/// A claim about an index map: its physical shape and, optionally, its inverse, its padding and its meaning.
///
/// ```
/// use tilewright_ir::{Expr, IndexMap, InverseClaim, Var};
/// use tilewright_verify::{Config, Judge, MapClaim};
/// let (c, p, q) = (Var::index("c"), Var::index("p"), Var::index("q"));
/// let (outer, inner) = (Expr::from(&c).floor_div(Expr::int(4)), Expr::from(&c).floor_mod(Expr::int(4)));
/// let map = IndexMap::new(vec![c], vec![Expr::int(17)], vec![outer, inner], vec![])?;
/// let back = Expr::from(&p) * Expr::int(4) + Expr::from(&q);
/// let inverse = InverseClaim { vars: vec![p, q], outputs: vec![back.clone()], padding: Expr::int(16).lt(back) };
/// let shape = [Expr::int(5), Expr::int(4)];
/// let reports = Judge::new(Config::default(), tilewright_search::strategies())?.check_map(MapClaim::new(&map, &shape).inverse(&inverse));
/// assert!(reports.iter().all(|report| report.verdict.is_proved()));
/// assert_eq!(reports.len(), 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MapClaim<'a> {
    /// The map, with its domain.
    pub map: &'a IndexMap,
    /// The physical shape in elements, one extent for each output.
    pub shape: &'a [Expr],
    /// Outputs whose extent is larger than needed on purpose; `tight` does not apply to them.
    pub padded: &'a [usize],
    /// Conditions on the symbolic extents that may be assumed, such as `c % 4 == 0` or `n <= 1024`.
    pub assumptions: &'a [Expr],
    /// The claimed inverse and padding predicate; without them `inverse` and `padding` are not checked.
    pub inverse: Option<&'a InverseClaim>,
    /// The meaning of the map, an independent statement of it that has to be equal on the domain.
    pub meaning: Option<&'a IndexMap>,
    /// A predicate on the logical index. The claim is about the indices where it holds, and about no others.
    pub predicate: Option<&'a Expr>,
    /// A certificate in terms of mixed-radix digits. It is untrusted: a wrong one only costs time.
    pub digits: Option<&'a DigitCertificate>,
    /// Free variables that are no extents: each has one value, the same for all indices, and it may be any value of its
    /// type. All other free variables are extents, of at least 1.
    pub scalars: &'a [Var],
}

impl<'a> MapClaim<'a> {
    /// A claim about a map and its physical shape only.
    pub fn new(map: &'a IndexMap, shape: &'a [Expr]) -> Self {
        Self {
            map,
            shape,
            padded: &[],
            assumptions: &[],
            inverse: None,
            meaning: None,
            predicate: None,
            digits: None,
            scalars: &[],
        }
    }

    /// The claim with outputs whose extents are larger than needed on purpose.
    #[must_use]
    pub fn padded(self, padded: &'a [usize]) -> Self {
        Self { padded, ..self }
    }

    /// The claim, restricted to symbolic extents for which these conditions hold.
    #[must_use]
    pub fn assuming(self, assumptions: &'a [Expr]) -> Self {
        Self { assumptions, ..self }
    }

    /// The claim with an inverse and a padding predicate.
    #[must_use]
    pub fn inverse(self, inverse: &'a InverseClaim) -> Self {
        Self { inverse: Some(inverse), ..self }
    }

    /// The claim with a meaning.
    #[must_use]
    pub fn meaning(self, meaning: &'a IndexMap) -> Self {
        Self { meaning: Some(meaning), ..self }
    }

    /// The claim about the indices for which `predicate` holds only. It is an expression in the parameters of the map and
    /// the symbolic extents.
    #[must_use]
    pub fn restricted_to(self, predicate: &'a Expr) -> Self {
        Self { predicate: Some(predicate), ..self }
    }

    /// The claim with free variables that are no extents.
    #[must_use]
    pub fn scalars(self, scalars: &'a [Var]) -> Self {
        Self { scalars, ..self }
    }

    /// The claim with a certificate.
    #[must_use]
    pub fn digits(self, certificate: &'a DigitCertificate) -> Self {
        Self { digits: Some(certificate), ..self }
    }
}

/// An obligation: its id, its decision procedures for one constant shape, and the tiers that try to decide it.
type Obligation = (Id, Loops, &'static [Tier]);

/// All obligations, in the order of the reports.
const OBLIGATIONS: [Obligation; 7] = [
    bounds::OBLIGATION,
    injective::OBLIGATION,
    tight::OBLIGATION,
    overflow::OBLIGATION,
    inverse::OBLIGATION,
    padding::OBLIGATION,
    specification::OBLIGATION,
];

impl Judge {
    /// Decides bounds, injective, tight and overflow of a map; inverse and padding if an inverse is claimed; and
    /// specification if a meaning is. A claim that is not well formed gives a single report with the reason.
    pub fn check_map(&self, claim: MapClaim<'_>) -> Vec<Report> {
        self.check_map_then(claim, |_, decision| decision)
    }

    /// Decides one obligation of a map. A claim that is not well formed, or that the obligation is not about, is unknown, with
    /// the reason.
    pub fn check_map_for(&self, claim: MapClaim<'_>, obligation: Id) -> Report {
        let report = Judge::report(obligation, claim.map.to_string(), || decide(self, obligation, claim));
        self.with_statement(report, claim)
    }

    /// The same with two deciders for bounds and injective.
    pub(crate) fn check_map_twice(&self, claim: MapClaim<'_>) -> Vec<Report> {
        self.check_map_then(claim, twice::confirmed)
    }

    /// Decides the obligations of a map; `then` sees each decision before it is reported.
    fn check_map_then(&self, claim: MapClaim<'_>, then: fn(&Case<'_>, Decision) -> Decision) -> Vec<Report> {
        let subject = claim.map.to_string();
        if let Some(reason) = claim.ill_formed() {
            return vec![Judge::report(Id::Bounds, subject, || unfit(reason))];
        }
        let is_asked = |(id, ..): &Obligation| match *id {
            Id::Inverse | Id::Padding => claim.inverse.is_some(),
            Id::Specification => claim.meaning.is_some(),
            _ => true,
        };
        let shared = Shared::new(claim);
        let decide = |(id, loops, tiers): Obligation| {
            let case = Case { judge: self, claim, obligation: id, loops, shared: &shared };
            Judge::report(id, subject.clone(), || then(&case, case.decide(tiers)))
        };
        OBLIGATIONS.into_iter().filter(is_asked).map(decide).map(|report| self.with_statement(report, claim)).collect()
    }

    /// The report, with what a certificate says if no solver was asked.
    fn with_statement(&self, mut report: Report, claim: MapClaim<'_>) -> Report {
        if self.is_recording() && report.proof.parts().is_empty() {
            for part in statement::parts(report.obligation, &report.verdict, claim) {
                report.proof.push(part);
            }
        }
        report
    }
}

impl MapClaim<'_> {
    /// Why the claim is not well formed, such as a shape of the wrong rank; `None` if it is.
    pub(crate) fn ill_formed(&self) -> Option<String> {
        if self.shape.len() != self.map.outputs().len() {
            return Some(format!("{} extents for {} outputs", self.shape.len(), self.map.outputs().len()));
        }
        // Indices, physical indices and symbols share one space of names in goals. A variable that is bound on one side
        // and free on the other would be taken for the same number, and a false claim could be proved.
        let constant = self.map.domain().iter().chain(self.shape).chain(self.assumptions);
        if let Some(var) = constant.flat_map(Expr::vars).find(|var| self.map.vars().contains(var)) {
            return Some(format!("an extent or an assumption depends on the index `{var}`"));
        }
        if let Some(predicate) = self.predicate
            && !(predicate.dtype().is_scalar() && predicate.dtype().scalar == ScalarType::Bool)
        {
            return Some(format!("the predicate `{predicate}` is neither true nor false"));
        }
        if let Some(inverse) = self.inverse {
            let fits = inverse.vars.len() == self.shape.len() && inverse.outputs.len() == self.map.vars().len();
            if !fits {
                let (from, to) = (inverse.vars.len(), inverse.outputs.len());
                return Some(format!(
                    "the inverse takes {from} indices to {to}, the map {} to {}",
                    self.map.vars().len(),
                    self.shape.len()
                ));
            }
            if let Err(error) =
                IndexMap::new(inverse.vars.clone(), self.shape.to_vec(), inverse.outputs.clone(), Vec::new())
            {
                return Some(format!("the inverse is no index map: {error}"));
            }
            let mut exprs = inverse.outputs.iter().chain([&inverse.padding]).chain(self.shape).chain(self.map.domain());
            if let Some(var) = exprs.find_map(|expr| expr.vars().into_iter().find(|var| self.map.vars().contains(var)))
            {
                return Some(format!("the inverse depends on the logical index `{var}`"));
            }
            let meaning = self.meaning.map(IndexMap::outputs).unwrap_or_default();
            let mut symbolic = self
                .map
                .domain()
                .iter()
                .chain(self.shape)
                .chain(self.assumptions)
                .chain(self.map.outputs())
                .chain(self.predicate)
                .chain(meaning);
            if let Some(var) = symbolic.find_map(|expr| expr.vars().into_iter().find(|var| inverse.vars.contains(var)))
            {
                return Some(format!("the map depends on the physical index `{var}` of its inverse"));
            }
        }
        if let Some(meaning) = self.meaning
            && let Some(var) =
                free_vars(meaning.outputs(), meaning.vars()).iter().find(|var| self.map.vars().contains(var))
        {
            return Some(format!("the meaning depends on the index `{var}` of the map"));
        }
        let fits = |meaning: &IndexMap| {
            meaning.vars().len() == self.map.vars().len() && meaning.outputs().len() == self.map.outputs().len()
        };
        (!self.meaning.is_none_or(fits)).then(|| "the map and its meaning differ in their number of indices".into())
    }

    /// The free variables of the claim: the symbolic extents.
    pub(crate) fn symbols(&self) -> Vec<Var> {
        let exprs = self.map.domain().iter().chain(self.map.outputs()).chain(self.shape).chain(self.assumptions);
        let mut symbols = free_vars(exprs, self.map.vars());
        let more = |symbols: &mut Vec<Var>, found: Vec<Var>| {
            symbols.extend(found.into_iter().filter(|var| !symbols.contains(var)).collect::<Vec<_>>());
        };
        if let Some(inverse) = self.inverse {
            more(&mut symbols, free_vars(inverse.outputs.iter().chain([&inverse.padding]), &inverse.vars));
        }
        if let Some(meaning) = self.meaning {
            more(&mut symbols, free_vars(meaning.outputs(), meaning.vars()));
        }
        if let Some(predicate) = self.predicate {
            more(&mut symbols, free_vars([predicate], self.map.vars()));
        }
        symbols
    }

    /// What a free variable is.
    fn kind_of(&self, symbol: &Var) -> Kind<'static> {
        if self.scalars.contains(symbol) { Kind::Scalar } else { Kind::Extent }
    }

    /// A question about the claim: its symbols are declared, and its assumptions guaranteed.
    fn question(&self, judge: &Judge, names: &mut Names) -> Question {
        let mut question = judge.question(names, &[]);
        for symbol in self.symbols() {
            question.declare(names, &symbol, self.kind_of(&symbol));
        }
        for assumption in self.assumptions {
            let prop = names.prop(assumption);
            question.guaranteed(&prop, "assumed of the shape by the user");
        }
        question
    }

    /// Assumes that fresh symbols, whose names end in `suffix`, are an index of the domain for which the predicate of the
    /// claim holds; binds the map's variables to them and returns them.
    fn assume(&self, question: &mut Question, names: &mut Names, suffix: &str) -> Vec<Term> {
        let index = self.assume_in_box(question, names, suffix);
        if let Some(predicate) = self.predicate {
            let holds = names.prop(predicate).with_negations_inside();
            question.assume(&holds, "the predicate that restricts the domain");
        }
        index
    }

    /// As `assume`, without the predicate.
    fn assume_in_box(&self, question: &mut Question, names: &mut Names, suffix: &str) -> Vec<Term> {
        index_of(self.map.vars(), self.map.domain(), question, names, suffix)
    }

    /// The outputs of the map as terms.
    fn outputs(&self, names: &mut Names) -> Vec<Term> {
        self.map.outputs().iter().map(|output| names.term(output)).collect()
    }

    /// Calls `look` with some points of a constant domain and their images until it finds something.
    fn sample<T>(&self, mut look: impl FnMut(&[i128], Vec<i128>) -> Option<T>) -> Option<T> {
        let symbols = Bindings::new();
        let domain = extents(self.map.domain(), &symbols)?;
        let points = points(&domain, QUICK);
        let mut admitted = points.iter().filter(|point| self.admits(point, &symbols));
        admitted.find_map(|point| look(point, self.map.eval(point, &symbols).ok()?))
    }
}

/// The values of the symbols by name, in the order of the variables.
fn shape_of(symbols: &Bindings) -> Vec<(String, i128)> {
    let mut shape: Vec<_> = symbols.iter().map(|(var, &value)| (var.clone(), value)).collect();
    shape.sort_by_key(|(var, _)| var.clone());
    shape.into_iter().map(|(var, value)| (var.name().to_owned(), value)).collect()
}

/// A counterexample that consists of some indices of the map.
fn at(claim: MapClaim<'_>, symbols: &Bindings, indices: &[&[i128]], text: String) -> Counterexample {
    let names = || claim.map.vars().iter().map(|var| var.name().to_owned());
    let assignments = indices.iter().flat_map(|index| names().zip(index.iter().copied())).collect();
    let indices = indices.iter().map(|index| index.to_vec()).collect();
    Counterexample { shape: shape_of(symbols), indices, assignments, text }
}

/// The index that a model gives: the values of `terms`, which `vars` are bound to.
fn from_model(model: &Assignment, vars: &[Var], terms: &[Term]) -> Option<Vec<i128>> {
    let value = |symbol: &Symbol| match model.get(symbol) {
        Some(Value::Int(value)) => value,
        // Z3 omits variables whose value does not matter.
        Some(Value::Bool(_)) | None => 0,
    };
    vars.iter().zip(terms).map(|(_, term)| term.free_symbols().iter().next().map(value)).collect()
}

/// The values of the symbols that a model gives; 1 for those that it omits.
fn symbols_from(model: &Assignment, names: &mut Names, symbols: &[Var]) -> Bindings {
    let value = |term: Term| match term.free_symbols().iter().next().and_then(|symbol| model.get(symbol)) {
        Some(Value::Int(value)) => value,
        Some(Value::Bool(_)) | None => 1,
    };
    symbols.iter().map(|symbol| (symbol.clone(), value(names.var(symbol)))).collect()
}

/// Decides one obligation of a map, for claims that consist of several maps.
pub(crate) fn decide(judge: &Judge, id: Id, claim: MapClaim<'_>) -> Decision {
    decide_by(judge, id, claim, None)
}

/// Decides one obligation of a map by enumeration of a constant shape, if that takes milliseconds; unknown otherwise.
pub(crate) fn look(judge: &Judge, id: Id, claim: MapClaim<'_>) -> Decision {
    decide_by(judge, id, claim, Some(&[case::empty, case::small, case::easy]))
}

/// Decides one obligation by the given tiers, or by all of its own.
fn decide_by(judge: &Judge, id: Id, claim: MapClaim<'_>, tiers: Option<&[Tier]>) -> Decision {
    if let Some(reason) = claim.ill_formed() {
        return unfit(reason);
    }
    let Some((obligation, loops, all)) = OBLIGATIONS.into_iter().find(|(other, ..)| *other == id) else {
        let reason = Reason::unsupported(format!("there is no obligation `{id}` of a single map"));
        return (Verdict::Unknown(reason), Method::Nothing);
    };
    let shared = Shared::new(claim);
    Case { judge, claim, obligation, loops, shared: &shared }.decide(tiers.unwrap_or(all))
}

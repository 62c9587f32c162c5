//! Obligations of index maps: bounds, injective, tight, overflow.
//!
//! Small instances are enumerated first: a wrong map is refuted there with the smallest indices that show it. What
//! survives is proved by Z3: an unflattened map over constant divisors is linear and decided at once; a flattened one
//! with symbolic extents is led digit by digit through the lemmas.

use std::collections::HashMap;

use tilewright_ir::{BinaryOp, Bindings, Expr, IndexMap, MAX_SYMBOLIC_ELEMENTS, Var};

use crate::concrete::{extents, instances, points, tuple};
use crate::judge::{Decision, Judge, Report, decide, free_vars, method_of, vacuity};
use crate::kernel::{Fact, Failure};
use crate::prove::Prover;
use crate::term::{Assignment, Prop, Symbol, Term, Value};
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

/// Points tried before Z3 is asked; of each instance of a symbolic shape a quarter.
const QUICK: usize = 600;
/// Points tried where Z3 gives no answer.
const THOROUGH: usize = 1 << 20;

/// A map and the physical shape that is claimed for it.
#[derive(Clone, Copy, Debug)]
pub struct MapClaim<'a> {
    /// The map; it carries its domain.
    pub map: &'a IndexMap,
    /// The physical shape, an extent an output.
    pub shape: &'a [Expr],
    /// Outputs whose extent is stated larger than needed, on purpose.
    pub padded: &'a [usize],
}

impl Judge {
    /// Decides bounds, injective, tight and overflow of a map into a physical shape.
    pub fn check_map(&self, claim: MapClaim<'_>) -> Vec<Report> {
        let subject = claim.map.to_string();
        if claim.shape.len() != claim.map.outputs().len() {
            let reason = format!("{} extents for {} outputs", claim.shape.len(), claim.map.outputs().len());
            return vec![Judge::report("bounds", subject, || (Verdict::Unknown(reason), "shape".into()))];
        }
        let extents = claim.map.domain().iter().chain(claim.shape);
        if let Some(var) = extents.flat_map(Expr::vars).find(|var| claim.map.vars().contains(var)) {
            let reason = format!("an extent depends on the index `{var}`");
            return vec![Judge::report("bounds", subject, || (Verdict::Unknown(reason), "shape".into()))];
        }
        type Obligation = (&'static str, fn(&Judge, MapClaim<'_>) -> Decision);
        let obligations: [Obligation; 4] =
            [("bounds", bounds), ("injective", injective), ("tight", tight), ("overflow", overflow)];
        obligations.map(|(id, run)| Judge::report(id, subject.clone(), || run(self, claim))).into()
    }
}

impl MapClaim<'_> {
    fn symbols(&self) -> Vec<Var> {
        let exprs = self.map.domain().iter().chain(self.map.outputs()).chain(self.shape);
        free_vars(exprs, self.map.vars())
    }

    /// The premises, and the map in terms of symbols that end in `suffix`.
    fn assume(&self, prover: &mut Prover<'_>, names: &mut Names, suffix: &str) -> Vec<Term> {
        let vars: Vec<Term> =
            self.map.vars().iter().map(|var| Term::sym(names.fresh(&format!("{}{suffix}", var.name())))).collect();
        for (var, term) in self.map.vars().iter().zip(&vars) {
            names.bind(var, term.clone());
        }
        for (var, extent) in vars.iter().zip(self.map.domain()) {
            prover.index(var.free_symbols());
            let extent = names.term(extent);
            prover.assume(&var.at_least(0).and(var.less(extent)), "an index of the domain");
        }
        vars
    }

    fn outputs(&self, names: &mut Names) -> Vec<Term> {
        self.map.outputs().iter().map(|output| names.term(output)).collect()
    }

    /// Whether the domain has an index, for some small shape.
    fn has_points(&self) -> bool {
        self.search(1, |_, _, _, _| Some(())).is_some()
    }

    /// Calls `look` on the points of small instances until it finds something.
    fn search<T>(
        &self,
        limit: usize,
        mut look: impl FnMut(&Bindings, &[i128], &[i128], Option<Vec<i128>>) -> Option<T>,
    ) -> Option<T> {
        let instances = instances(&self.symbols());
        let limit = if instances.len() > 1 { limit.div_ceil(4) } else { limit };
        for symbols in instances {
            let (Some(domain), Some(shape)) = (extents(self.map.domain(), &symbols), extents(self.shape, &symbols))
            else {
                continue;
            };
            for point in points(&domain, limit) {
                let image = self.map.eval(&point, &symbols).ok();
                if let Some(found) = look(&symbols, &shape, &point, image) {
                    return Some(found);
                }
            }
        }
        None
    }
}

fn shape_of(symbols: &Bindings) -> Vec<(String, i128)> {
    let mut shape: Vec<_> = symbols.iter().map(|(var, &value)| (var.clone(), value)).collect();
    shape.sort_by_key(|(var, _)| var.clone());
    shape.into_iter().map(|(var, value)| (var.name().to_owned(), value)).collect()
}

/// A counterexample about some indices of the map.
fn at(claim: MapClaim<'_>, symbols: &Bindings, indices: &[&[i128]], text: String) -> Counterexample {
    let names = || claim.map.vars().iter().map(|var| var.name().to_owned());
    let assignments = indices.iter().flat_map(|index| names().zip(index.iter().copied())).collect();
    let indices = indices.iter().map(|index| index.to_vec()).collect();
    Counterexample { shape: shape_of(symbols), indices, assignments, text }
}

/// The values that Z3's model gives to the map's variables (as `terms`) and to the symbols.
fn from_model(model: &Assignment, vars: &[Var], terms: &[Term]) -> Option<Vec<i128>> {
    let value = |symbol: &Symbol| match model.get(symbol) {
        Some(Value::Int(value)) => value,
        // Z3 leaves out what does not matter.
        Some(Value::Bool(_)) | None => 0,
    };
    vars.iter().zip(terms).map(|(_, term)| term.free_symbols().iter().next().map(value)).collect()
}

fn symbols_from(model: &Assignment, names: &mut Names, symbols: &[Var]) -> Bindings {
    let value = |term: Term| match term.free_symbols().iter().next().and_then(|symbol| model.get(symbol)) {
        Some(Value::Int(value)) => value,
        Some(Value::Bool(_)) | None => 1,
    };
    symbols.iter().map(|symbol| (symbol.clone(), value(names.var(symbol)))).collect()
}

fn outside(claim: MapClaim<'_>, symbols: &Bindings, shape: &[i128], point: &[i128]) -> Option<Counterexample> {
    let image = match claim.map.eval(point, symbols) {
        Ok(image) => image,
        Err(error) => {
            let text = format!("{} has no image: {error}", tuple(point));
            return Some(at(claim, symbols, &[point], text));
        }
    };
    let inside = image.iter().zip(shape).all(|(index, extent)| (0..*extent).contains(index));
    let text = format!("{} lands on {}, outside the physical shape {}", tuple(point), tuple(&image), tuple(shape));
    (!inside).then(|| at(claim, symbols, &[point], text))
}

/// Every result index lies in the physical shape.
fn bounds(judge: &Judge, claim: MapClaim<'_>) -> Decision {
    let quick = claim.search(QUICK, |symbols, shape, point, _| outside(claim, symbols, shape, point));
    if let Some(found) = quick {
        return (Verdict::Refuted(found), "evaluation".into());
    }
    let mut names = Names::default();
    let symbols = claim.symbols();
    let mut prover = judge.prover(&mut names, &symbols);
    let vars = claim.assume(&mut prover, &mut names, "");
    if !claim.has_points()
        && let Some(vacuous) = vacuity(&prover)
    {
        return vacuous;
    }
    let from = prover.context().steps().len();
    let outputs = claim.outputs(&mut names);
    let mut result = Ok(());
    for (output, extent) in outputs.iter().zip(claim.shape) {
        let extent = names.term(extent);
        result = prover.prove(&output.at_least(0).and(output.less(extent))).map(drop);
        if result.is_err() {
            break;
        }
    }
    decide("map bounds", result, &prover, from, |model| {
        let point = from_model(model, claim.map.vars(), &vars)?;
        let symbols = symbols_from(model, &mut names, &symbols);
        outside(claim, &symbols, &extents(claim.shape, &symbols)?, &point)
    })
}

/// Two indices of one image, by evaluation.
fn collision(claim: MapClaim<'_>, symbols: &Bindings, a: &[i128], b: &[i128]) -> Option<Counterexample> {
    let image = claim.map.eval(a, symbols).ok()?;
    let text = format!("{} and {} both land on {}", tuple(a), tuple(b), tuple(&image));
    (a != b && claim.map.eval(b, symbols).ok()? == image).then(|| at(claim, symbols, &[a, b], text))
}

/// The first collision among at most `limit` points an instance.
fn find_collision(claim: MapClaim<'_>, limit: usize) -> Option<Counterexample> {
    let mut seen: HashMap<Vec<i128>, Vec<i128>> = HashMap::new();
    let mut instance = None;
    claim.search(limit, |symbols, _, point, image| {
        if instance.as_ref() != Some(symbols) {
            seen.clear();
            instance = Some(symbols.clone());
        }
        let first = seen.entry(image?).or_insert_with(|| point.to_vec());
        if first == point { None } else { collision(claim, symbols, first, point) }
    })
}

/// Different logical indices never share a physical one.
fn injective(judge: &Judge, claim: MapClaim<'_>) -> Decision {
    if let Some(found) = find_collision(claim, QUICK) {
        return (Verdict::Refuted(found), "evaluation".into());
    }
    let mut names = Names::default();
    let symbols = claim.symbols();
    let mut prover = judge.prover(&mut names, &symbols);
    let a = claim.assume(&mut prover, &mut names, "");
    let left = claim.outputs(&mut names);
    let b = claim.assume(&mut prover, &mut names, "'");
    let right = claim.outputs(&mut names);
    if !claim.has_points()
        && let Some(vacuous) = vacuity(&prover)
    {
        return vacuous;
    }
    let from = prover.context().steps().len();
    let result = same_image(&mut prover, &left, &right, &a, &b);
    let decision = decide("map injective", result, &prover, from, |model| {
        let (first, second) = (from_model(model, claim.map.vars(), &a)?, from_model(model, claim.map.vars(), &b)?);
        let symbols = symbols_from(model, &mut names, &symbols);
        collision(claim, &symbols, &first, &second)
    });
    match decision {
        (Verdict::Unknown(reason), method) => by_enumeration(claim, reason, method),
        decided => decided,
    }
}

/// From equal images to equal indices.
fn same_image(prover: &mut Prover<'_>, left: &[Term], right: &[Term], a: &[Term], b: &[Term]) -> Result<(), Failure> {
    let mut digits: Vec<Fact> = Vec::new();
    for (this, other) in left.iter().zip(right) {
        let same = this.equals(other);
        prover.assume(&same, "both have the same image");
        if let Some(fact) = prover.known(&same)
            && let Some(found) = prover.digits_equal(this, other, &fact)
        {
            digits.extend(found);
        }
    }
    for fact in digits {
        prover.keep(&fact);
    }
    let goal = Prop::all(a.iter().zip(b).map(|(x, y)| x.equals(y)));
    prover.prove(&goal).map(drop)
}

/// Where Z3 gives up: every point, if they are few enough.
fn by_enumeration(claim: MapClaim<'_>, reason: String, method: String) -> Decision {
    let count = claim.map.domain().iter().try_fold(1i128, |count, extent| count.checked_mul(extent.as_const_int()?));
    match count.and_then(|count| usize::try_from(count).ok()).filter(|&count| count <= THOROUGH) {
        _ if !claim.symbols().is_empty() => (Verdict::Unknown(reason), method),
        None => (Verdict::Unknown(reason), method),
        Some(count) => match find_collision(claim, THOROUGH) {
            Some(found) => (Verdict::Refuted(found), "evaluation".into()),
            None => (Verdict::Proved, format!("enumeration of {count} points")),
        },
    }
}

/// The stated physical shape is the smallest one, or the padding is stated.
fn tight(judge: &Judge, claim: MapClaim<'_>) -> Decision {
    let mut methods = Vec::new();
    for axis in 0..claim.shape.len() {
        if claim.padded.contains(&axis) {
            methods.push("padding stated".to_owned());
            continue;
        }
        match tight_axis(judge, claim, axis) {
            (Verdict::Proved, method) => methods.push(method),
            other => return other,
        }
    }
    methods.sort_unstable();
    methods.dedup();
    let method = if methods.is_empty() { "no axes".to_owned() } else { methods.join(", ") };
    (Verdict::Proved, method)
}

fn tight_axis(judge: &Judge, claim: MapClaim<'_>, axis: usize) -> Decision {
    let mut names = Names::default();
    let symbols = claim.symbols();
    let mut prover = judge.prover(&mut names, &symbols);
    let domain: Vec<Term> = claim.map.domain().iter().map(|extent| names.term(extent)).collect();
    let extent = names.term(&claim.shape[axis]);
    let from = prover.context().steps().len();
    let used = claim.map.outputs()[axis].vars();
    let moving: Vec<usize> = (0..domain.len()).filter(|&position| used.contains(&claim.map.vars()[position])).collect();
    for mask in 0..1usize << moving.len().min(10) {
        // All axes that matter at their end first: that is the largest index of nearly every map.
        let at_end = |position: usize| {
            moving.iter().position(|&other| other == position).is_some_and(|bit| mask >> bit.min(9) & 1 == 0)
        };
        for (position, var) in claim.map.vars().iter().enumerate() {
            names.bind(var, if at_end(position) { &domain[position] - 1 } else { Term::int(0) });
        }
        let reached = names.term(&claim.map.outputs()[axis]);
        if prover.prove(&reached.equals(&extent - 1)).is_ok() {
            prover.keep_proof("map tight");
            return (Verdict::Proved, format!("witness, {}", method_of(&prover, from)));
        }
    }
    by_witness(claim, axis)
}

/// The axis of a constant map whose largest index is at no corner: found by enumeration, or not at all.
fn by_witness(claim: MapClaim<'_>, axis: usize) -> Decision {
    let mut largest: Option<(Bindings, i128, i128)> = None;
    let reached = claim.search(THOROUGH.min(1 << 18), |symbols, shape, _, image| {
        let (index, extent) = (*image?.get(axis)?, *shape.get(axis)?);
        if largest.as_ref().is_none_or(|(instance, best, _)| instance == symbols && index > *best) {
            largest = Some((symbols.clone(), index, extent));
        }
        (index + 1 == extent && symbols.is_empty()).then_some(index)
    });
    if let Some(index) = reached {
        return (Verdict::Proved, format!("witness {index} by evaluation"));
    }
    let total = claim.map.domain().iter().try_fold(1i128, |count, extent| count.checked_mul(extent.as_const_int()?));
    match (largest, total) {
        // Of a symbolic map only some instances were looked at.
        (Some((symbols, index, extent)), Some(total)) if symbols.is_empty() && total <= 1 << 18 => {
            let text = format!("axis {axis} has extent {extent}, but the largest index is {index}");
            let found = at(claim, &symbols, &[], text);
            (Verdict::Refuted(found), "enumeration".into())
        }
        _ => (Verdict::Unknown(format!("no index was found that reaches the end of axis {axis}")), "z3".into()),
    }
}

/// No subterm of the map leaves its type. Of symbolic shapes it is assumed that both sides have no more elements than the
/// index type can count, which whoever launches the program checks.
fn overflow(judge: &Judge, claim: MapClaim<'_>) -> Decision {
    let mut names = Names::default();
    let symbols = claim.symbols();
    let mut prover = judge.prover(&mut names, &symbols);
    let vars = claim.assume(&mut prover, &mut names, "");
    if !claim.has_points()
        && let Some(vacuous) = vacuity(&prover)
    {
        return vacuous;
    }
    assume_addressable(&mut prover, &mut names, claim.map.domain());
    assume_addressable(&mut prover, &mut names, claim.shape);
    let from = prover.context().steps().len();
    let mut parts = Vec::new();
    for output in claim.map.outputs() {
        subterms(output, &mut parts);
    }
    let mut result = Ok(());
    let mut wrong = None;
    for part in &parts {
        result = prover.prove(&fits(part, &mut names)).map(drop);
        if result.is_err() {
            wrong = Some(*part);
            break;
        }
    }
    decide("map overflow", result, &prover, from, |model| {
        let part = wrong?;
        let point = from_model(model, claim.map.vars(), &vars)?;
        let symbols = symbols_from(model, &mut names, &symbols);
        let mut bindings = symbols.clone();
        bindings.extend(claim.map.vars().iter().cloned().zip(point.iter().copied()));
        let value = part.eval_index(&bindings).ok()?;
        let (low, high) = part.dtype().scalar.integer_range()?;
        let text = format!("`{part}` is {value} at {}, which does not fit {}", tuple(&point), part.dtype());
        (value < low || value > high).then(|| at(claim, &symbols, &[&point], text))
    })
}

/// Assumes, of a symbolic shape, that it has no more than [`MAX_SYMBOLIC_ELEMENTS`].
pub(crate) fn assume_addressable(prover: &mut Prover<'_>, names: &mut Names, shape: &[Expr]) {
    if shape.iter().all(|extent| extent.as_const_int().is_some()) {
        return;
    }
    let size = shape.iter().fold(Term::int(1), |size, extent| size * names.term(extent));
    let max = Term::int(i128::from(MAX_SYMBOLIC_ELEMENTS));
    prover.assume(&size.at_most(&max), "a symbolic buffer has at most 2^31 - 2^16 - 1 elements (checked at launch)");
    for extent in shape {
        let extent = names.term(extent);
        if extent.as_const().is_none() {
            prover.keep_if_implied(&extent.at_most(&max), &size, &extent);
        }
    }
}

/// That `part` has a value and that it fits its type.
pub(crate) fn fits(part: &Expr, names: &mut Names) -> Prop {
    let term = names.term(part);
    let range = match part.dtype().scalar.integer_range() {
        Some((low, high)) => term.at_least(low).and(term.at_most(high)),
        None => Prop::bool(true),
    };
    let Expr::Binary(op, _, operand) = part else { return range };
    match op {
        BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::TruncDiv | BinaryOp::TruncMod => {
            range.and(names.term(operand).differs(0))
        }
        BinaryOp::Shl | BinaryOp::Shr => {
            let amount = names.term(operand);
            range.and(amount.at_least(0)).and(amount.less(i128::from(part.dtype().scalar.bits())))
        }
        _ => range,
    }
}

/// The integer operations in an expression, innermost first, each once.
pub(crate) fn subterms<'e>(expr: &'e Expr, found: &mut Vec<&'e Expr>) {
    for child in expr.children() {
        subterms(child, found);
    }
    let operation = matches!(expr, Expr::Binary(..) | Expr::Unary(..) | Expr::Call(..) | Expr::Cast(..));
    let ty = expr.dtype();
    if operation && ty.is_scalar() && ty.scalar.is_integer() && !found.contains(&expr) {
        found.push(expr);
    }
}

//! The inverse of an index map: logical indices from physical ones.
//!
//! ```text
//! lambda c: [c // 4, c % 4]   over c < 17   in [5, 4]
//! inverse: c_outer, c_inner -> c = c_outer*4 + c_inner   guard: c_outer*4 + c_inner < 17
//! ```
//!
//! Each physical index is an equation between a sum of digits (an index, a quotient or a remainder) and a variable.
//! A sum whose digits are nested, `a*N + b` with `b < N`, is taken apart from the greatest coefficient down. Digits of
//! the same number, `x % 4`, `x // 4 % 8`, `x // 32`, are put together from the least up; if `x` is a sum itself, that
//! is the next equation. The guard is by definition: the logical indices are in their ranges and lead back to the
//! physical ones; what follows from the ranges is left out. Last, the inverse is tried on points.

use tilewright_ir::visit::Substitution;
use tilewright_ir::{BinaryOp, Bindings, Diagnostic, Expr, IndexMap, InverseClaim, Var};

use super::padding::padding_of;
use super::physical::known_of;
use super::poly::{Atom, Poly, Term};
use super::ranges::Ranges;
use super::rewrite::Simplifier;

/// Points on which an inverse is tried, for each choice of the symbolic extents.
const SAMPLES: u64 = 64;

/// The inverse of a map on a physical shape, for maps made of permutations, splits, fusions, offsets, reversals,
/// rotations and skews, with constant or symbolic factors.
///
/// # Errors
/// The map is of none of these forms, or not injective.
pub fn inverse(map: &IndexMap, physical: &[Expr], assumptions: &[Expr]) -> Result<InverseClaim, Diagnostic> {
    if physical.len() != map.outputs().len() {
        let message = format!("the map has {} outputs, the shape {} axes", map.outputs().len(), physical.len());
        return Err(Diagnostic::error("rank", None, message));
    }
    let vars = physical_vars(map);
    let ranges =
        vars.iter().zip(physical).fold(known_of(map, assumptions), |ranges, (var, extent)| ranges.with(var, extent));
    let mut solver = Solver { map, ranges: &ranges, solved: Vec::new(), digits: Vec::new(), open: Vec::new() };
    let solution = solver.run(&vars).ok_or_else(|| not_invertible(map))?;
    let simplifier = Simplifier::new(&ranges);
    let emitted = map.vars().iter().zip(&solution).map(|(var, value)| simplifier.emit(value, var.dtype().scalar));
    let outputs: Vec<Expr> = emitted.collect::<Option<_>>().ok_or_else(|| not_invertible(map))?;
    let padding = padding_of(map, physical, &vars, &outputs, assumptions);
    let result = InverseClaim { vars, outputs, padding };
    let sound = (1..=3).all(|size| holds_on_samples(map, physical, &result, size));
    if sound { Ok(result) } else { Err(not_invertible(map)) }
}

fn not_invertible(map: &IndexMap) -> Diagnostic {
    let message = format!("no inverse was found for the map `{map}`");
    let help = "a map is inverted if it permutes, splits by // and %, fuses, offsets, reverses or rotates indices, and \
                loses none of them";
    Diagnostic::error("not-invertible", None, message).with_help(help)
}

/// Fresh physical indices with telling names.
fn physical_vars(map: &IndexMap) -> Vec<Var> {
    let mut names: Vec<String> = Vec::new();
    for output in map.outputs() {
        let base = physical_name(map, output);
        let taken = |name: &String| names.contains(name);
        let numbered = (1..).map(|number| format!("{base}_{number}"));
        let name = std::iter::once(base.clone()).chain(numbered).find(|name| !taken(name));
        names.push(name.unwrap_or(base));
    }
    names.into_iter().zip(map.outputs()).map(|(name, output)| Var::new(name, output.dtype())).collect()
}

fn physical_name(map: &IndexMap, output: &Expr) -> String {
    let used: Vec<_> = output.vars().into_iter().filter(|var| map.vars().contains(var)).collect();
    let names: Vec<_> = used.iter().map(Var::name).collect();
    match (output, names.as_slice()) {
        (_, []) => "unit".to_owned(),
        (Expr::Binary(BinaryOp::FloorDiv, ..), [name]) => format!("{name}_outer"),
        (Expr::Binary(BinaryOp::FloorMod, inner, _), [name]) => {
            let nested = matches!(**inner, Expr::Binary(BinaryOp::FloorDiv, ..));
            format!("{name}_{}", if nested { "mid" } else { "inner" })
        }
        (_, [name]) => (*name).to_owned(),
        (_, names) => format!("{}_fused", names.join("_")),
    }
}

/// `(base // place) % modulus == value`; without a modulus it is the last digit.
struct Digit {
    base: Poly,
    place: Poly,
    modulus: Option<Poly>,
    value: Poly,
}

struct Solver<'a> {
    map: &'a IndexMap,
    ranges: &'a Ranges,
    solved: Vec<(Var, Poly)>,
    digits: Vec<Digit>,
    /// Equations between a sum of logical digits and a physical value.
    open: Vec<(Poly, Poly)>,
}

impl Solver<'_> {
    /// The value of each logical index in terms of the physical ones.
    fn run(&mut self, physical: &[Var]) -> Option<Vec<Poly>> {
        let simplifier = Simplifier::new(self.ranges);
        for (output, var) in self.map.outputs().iter().zip(physical) {
            self.open.push((simplifier.poly(output)?, Atom::var(var).into()));
        }
        for (var, extent) in self.map.vars().iter().zip(self.map.domain()) {
            if extent.as_const_int() == Some(1) {
                self.solved.push((var.clone(), Poly::default()));
            }
        }
        // Each round solves an equation or a number, or is the last.
        while self.solve_equation() || self.solve_number() {}
        self.map.vars().iter().map(|var| self.value_of(var).cloned()).collect()
    }

    fn value_of(&self, var: &Var) -> Option<&Poly> {
        self.solved.iter().find(|(solved, _)| solved == var).map(|(_, value)| value)
    }

    fn is_logical(&self, var: &Var) -> bool {
        self.map.vars().contains(var)
    }

    fn solve_equation(&mut self) -> bool {
        for position in 0..self.open.len() {
            let (sum, value) = self.open[position].clone();
            if let Some(found) = self.digits_of(&sum, &value) {
                self.open.remove(position);
                for (atom, value) in found {
                    self.record(atom, value);
                }
                return true;
            }
        }
        false
    }

    /// Splits a sum into what is known already, in terms of the physical indices, and the rest.
    fn known_part(&self, sum: &Poly) -> Option<(Poly, Vec<Term>)> {
        let simplifier = Simplifier::new(self.ranges);
        let (mut known, mut unknown) = (Poly::default(), Vec::new());
        for term in sum.terms() {
            let poly = Poly::from(term.clone());
            let vars: Vec<_> = poly.vars().into_iter().filter(|var| self.is_logical(var)).collect();
            if vars.iter().any(|var| self.value_of(var).is_none()) {
                unknown.push(term);
                continue;
            }
            let ty = self.map.vars().first()?.dtype().scalar;
            let values = vars.iter().map(|var| simplifier.emit(self.value_of(var)?, ty));
            let substitution = Substitution::new(&vars, values.collect::<Option<Vec<_>>>()?);
            let replaced = substitution.apply(&simplifier.emit(&poly, ty)?);
            known = known.plus(&simplifier.poly(&replaced)?)?;
        }
        Some((known, unknown))
    }

    /// The digits of a sum, if they are nested.
    fn digits_of(&self, sum: &Poly, value: &Poly) -> Option<Vec<(Atom, Poly)>> {
        let (known, unknown) = self.known_part(sum)?;
        let mut value = value.minus(&known)?;
        let mut places = Vec::new();
        for term in unknown {
            let (atom, coef) = self.digit_term(&term)?;
            let (least, greatest) = self.atom_bounds(&atom)?;
            let reversed = term.coef < 0;
            let magnitude = Poly::from(Term { coef: coef.coef.checked_abs()?, mono: coef.mono });
            let start = if reversed { greatest.scaled(-1)? } else { least.clone() };
            value = value.minus(&magnitude.times(&start)?)?;
            let span = greatest.minus(&least)?;
            places.push((atom, magnitude, span, if reversed { greatest } else { least }, reversed));
        }
        let mut found = Vec::new();
        while !places.is_empty() {
            let (atom, place, _, start, reversed) = places.remove(self.top_place(&places)?);
            let (digit, rest) = Simplifier::new(self.ranges).divide(&value, &place)?;
            value = rest;
            found.push((atom, if reversed { start.minus(&digit)? } else { start.plus(&digit)? }));
        }
        Some(found)
    }

    /// The one place that all others together stay below.
    fn top_place(&self, places: &[(Atom, Poly, Poly, Poly, bool)]) -> Option<usize> {
        (0..places.len()).find(|&top| {
            let others = places.iter().enumerate().filter(|(position, _)| *position != top);
            let below = others
                .map(|(_, (_, place, span, ..))| place.times(span))
                .try_fold(Poly::default(), |sum, product| sum.plus(&product?));
            below.is_some_and(|below| self.ranges.prove_below(&below, &places[top].1))
        })
    }

    /// The one atom of a term that is unknown, and its coefficient.
    fn digit_term(&self, term: &Term) -> Option<(Atom, Term)> {
        let is_digit = |atom: &Atom| Poly::from(atom.clone()).vars().iter().any(|var| self.is_logical(var));
        let (digits, symbols): (Vec<_>, Vec<_>) = term.mono.iter().cloned().partition(is_digit);
        let [digit] = <[Atom; 1]>::try_from(digits).ok()?;
        let fixed = match &digit {
            Atom::Opaque(_) => digit.as_var().is_some(),
            Atom::Div(_, by) | Atom::Mod(_, by) => !by.vars().iter().any(|var| self.is_logical(var)),
        };
        fixed.then_some((digit, Term { coef: term.coef, mono: symbols }))
    }

    fn atom_bounds(&self, atom: &Atom) -> Option<(Poly, Poly)> {
        let poly = Poly::from(atom.clone());
        Some((self.ranges.least(&poly)?, self.ranges.greatest(&poly)?))
    }

    fn record(&mut self, atom: Atom, value: Poly) {
        if let Some(var) = atom.as_var() {
            if self.value_of(var).is_none() {
                self.solved.push((var.clone(), value));
            }
            return;
        }
        let one = Poly::constant(1);
        let digit = match atom {
            Atom::Opaque(_) => return,
            Atom::Div(base, by) => Digit { base: *base, place: *by, modulus: None, value },
            Atom::Mod(base, by) => match base.as_atom() {
                Some(Atom::Div(inner, place)) => {
                    Digit { base: (**inner).clone(), place: (**place).clone(), modulus: Some(*by), value }
                }
                _ => Digit { base: *base, place: one, modulus: Some(*by), value },
            },
        };
        self.digits.push(digit);
    }

    /// Puts the digits of one number together; the number is the next equation.
    fn solve_number(&mut self) -> bool {
        let bases: Vec<Poly> = self.digits.iter().map(|digit| digit.base.clone()).collect();
        for base in bases {
            if let Some(equation) = self.assembled(&base) {
                self.digits.retain(|digit| digit.base != base);
                self.open.push(equation);
                return true;
            }
        }
        false
    }

    fn assembled(&self, base: &Poly) -> Option<(Poly, Poly)> {
        let (mut total, mut place) = (Poly::default(), Some(Poly::constant(1)));
        while let Some(at) = &place {
            let mut here = self.digits.iter().filter(|digit| digit.base == *base && digit.place == *at);
            let Some(digit) = here.next() else { break };
            total = total.plus(&at.times(&digit.value)?)?;
            place = match &digit.modulus {
                Some(modulus) => Some(at.times(modulus)?),
                None => None,
            };
        }
        let (known, unknown) = self.known_part(base)?;
        let unknown = unknown.into_iter().try_fold(Poly::default(), |sum, term| sum.plus(&term.into()))?;
        let value = total.minus(&known)?;
        let Some(modulus) = place else { return Some((unknown, value)) };
        // Known up to multiples of `modulus`: enough if the number moves in a window of that width.
        let (least, greatest) = (self.ranges.least(&unknown)?, self.ranges.greatest(&unknown)?);
        self.ranges.prove_below(&greatest.minus(&least)?, &modulus).then_some(())?;
        let (_, offset) = Simplifier::new(self.ranges).divide(&value.minus(&least)?, &modulus)?;
        Some((unknown, least.plus(&offset)?))
    }
}

/// Tries an inverse on logical and physical points, with symbolic extents bound to small numbers.
fn holds_on_samples(map: &IndexMap, physical: &[Expr], inverse: &InverseClaim, size: i128) -> bool {
    let extents = map.domain().iter().chain(physical);
    let mut symbols = Bindings::new();
    let free = map.domain().iter().chain(physical).chain(map.outputs()).flat_map(Expr::vars);
    for (position, symbol) in (0i128..).zip(free.filter(|var| !map.vars().contains(var))) {
        symbols.entry(symbol).or_insert(size * 3 + (position * 7) % 5);
    }
    let Ok(extents) = extents.map(|extent| extent.eval_index(&symbols)).collect::<Result<Vec<_>, _>>() else {
        return false;
    };
    if extents.iter().any(|&extent| extent < 1) {
        return true;
    }
    let (logical, physical) = extents.split_at(map.domain().len());
    (0..SAMPLES).all(|seed| {
        leads_back(map, inverse, &symbols, &point(logical, seed)) == Some(true)
            && is_reached(map, inverse, &symbols, &point(physical, seed)) == Some(true)
    })
}

/// The first, the last, and then arbitrary points of a shape.
fn point(extents: &[i128], seed: u64) -> Vec<i128> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let step = |extent: &i128| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match seed {
            0 => 0,
            1 => extent - 1,
            _ => i128::from(state >> 33) % extent,
        }
    };
    extents.iter().map(step).collect()
}

fn evaluate(inverse: &InverseClaim, symbols: &Bindings, at: &[i128]) -> Option<(Vec<i128>, bool)> {
    let mut bindings = symbols.clone();
    bindings.extend(inverse.vars.iter().cloned().zip(at.iter().copied()));
    let outputs = inverse.outputs.iter().map(|output| output.eval_index(&bindings).ok()).collect::<Option<_>>()?;
    let reached = inverse.padding.eval_index(&bindings).ok()? == 0;
    Some((outputs, reached))
}

fn leads_back(map: &IndexMap, inverse: &InverseClaim, symbols: &Bindings, logical: &[i128]) -> Option<bool> {
    let image = map.eval(logical, symbols).ok()?;
    let (back, reached) = evaluate(inverse, symbols, &image)?;
    Some(reached && back == logical)
}

fn is_reached(map: &IndexMap, inverse: &InverseClaim, symbols: &Bindings, physical: &[i128]) -> Option<bool> {
    let (logical, reached) = evaluate(inverse, symbols, physical)?;
    Some(!reached || map.eval(&logical, symbols).ok()? == physical)
}

//! Solves the equations `output == physical index` of a map without conditions for the logical indices.
//!
//! The left side of each equation is a sum of unknown digits (an index, a quotient, a remainder, an exclusive or); the
//! right side is known in terms of the physical indices. The rules are applied until none makes progress:
//!
//! | rule | from | to |
//! |---|---|---|
//! | digits | `a*N + b == v`, `0 <= b < N` | `a == v // N`, `b == v % N` |
//! | number | `x // 4 == v`, `x % 4 == w` | `x == 4*v + w`; from a remainder alone if `x` stays in a window of its modulus |
//! | xor | `x ^ g == v`, `g` known | `x == v ^ g` |
//! | matrix | `x ^ x // 2 == v`, `x < 2^k` | each bit of `x` as an exclusive or of bits of `v` |
//! | elimination | `i + j == v`, `i - j == w` | `2*i == v + w` |

use std::sync::Arc;

use tilewright_ir::{BinaryOp, Expr, IndexMap, Var};

use super::super::bits::{bits_limit, xor_of, xor_operands};
use super::super::cases::Case;
use super::super::divide;
use super::super::extreme::extremes;
use super::super::poly::{Atom, Key, Poly, Term};
use super::super::ranges::Ranges;
use super::super::rewrite::Simplifier;
use super::{known, linear, matrix};

/// Rule applications before the solver gives up; maps of practical size need far fewer.
const MAX_STEPS: usize = 400;

/// The equation `(base // place) % modulus == value`; without a modulus the digit is the top one.
struct Digit {
    base: Poly,
    place: Poly,
    modulus: Option<Poly>,
    value: Poly,
}

/// The state of a solution: solved indices and digits, and the equations that are left.
pub(super) struct Solver<'a> {
    /// The map whose indices are solved for.
    pub(super) map: &'a IndexMap,
    /// Ranges of logical and physical indices.
    pub(super) ranges: &'a Ranges,
    /// Logical indices and their values in terms of the physical ones.
    pub(super) solved: Vec<(Var, Poly)>,
    /// Digits whose values are known.
    digits: Vec<Digit>,
    /// Equations between a sum of logical digits and a physical value.
    pub(super) open: Vec<(Poly, Poly)>,
    /// Equations between an expression that is no sum and a physical value.
    pub(super) opaque: Vec<(Expr, Poly)>,
    /// Radices of the numerals that were taken apart, each from the innermost.
    pub(super) radices: Vec<Vec<Poly>>,
}

impl<'a> Solver<'a> {
    pub(super) fn new(map: &'a IndexMap, ranges: &'a Ranges) -> Self {
        let (solved, digits, open) = (Vec::new(), Vec::new(), Vec::new());
        Self { map, ranges, solved, digits, open, opaque: Vec::new(), radices: Vec::new() }
    }

    /// Returns the value of each logical index in terms of the physical ones.
    ///
    /// # Errors
    /// The indices that the rules did not determine, as part of a sentence.
    pub(super) fn run(&mut self, case: &Case, physical: &[Var]) -> Result<Vec<Poly>, String> {
        let simplifier = Simplifier::new(self.ranges);
        for (output, var) in case.exprs.iter().zip(physical) {
            let no_sum = || format!("`{output}` may have no value, or is too large a sum");
            self.open
                .push((simplifier.poly(output).ok_or_else(no_sum)?, simplifier.poly(&var.into()).ok_or_else(no_sum)?));
        }
        for var in self.map.vars() {
            if let Some(value) = self.ranges.fixed(var) {
                self.solved.push((var.clone(), value.clone()));
            }
        }
        // From the cheapest rule to the most expensive; after each success the cheap ones are tried again.
        for _ in 0..MAX_STEPS {
            let moved = self.solve_equation()
                || self.solve_number()
                || self.undo_xor()
                || linear::eliminate(self)
                || matrix::solve(self)
                || self.split_xor();
            if !moved {
                break;
            }
        }
        let missing: Vec<String> =
            self.map.vars().iter().filter(|var| self.value_of(var).is_none()).map(|var| format!("`{var}`")).collect();
        if missing.is_empty() {
            return Ok(self.map.vars().iter().filter_map(|var| self.value_of(var).cloned()).collect());
        }
        Err(format!("no rule finds {} from the places alone", missing.join(", ")))
    }

    /// The value of a logical index, if it is solved.
    pub(super) fn value_of(&self, var: &Var) -> Option<&Poly> {
        self.solved.iter().find(|(solved, _)| solved == var).map(|(_, value)| value)
    }

    /// Whether a variable is an index of the map.
    pub(super) fn is_logical(&self, var: &Var) -> bool {
        self.map.vars().contains(var)
    }

    /// The logical indices among `vars` that are not solved.
    pub(super) fn unknowns(&self, vars: Vec<Var>) -> Vec<Var> {
        vars.into_iter().filter(|var| self.is_logical(var) && self.value_of(var).is_none()).collect()
    }

    /// The solved digits of indices, as atoms, and their values in terms of the physical indices.
    pub(super) fn known_digits(&self) -> impl Iterator<Item = (Atom, &Poly)> {
        let atom = |digit: &Digit| known::digit_atom(&digit.base, &digit.place, digit.modulus.as_ref());
        self.digits.iter().filter_map(move |digit| Some((atom(digit)?, &digit.value)))
    }

    /// Applies the rule "digits" to the first open equation that it solves. Returns whether there was one.
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

    /// Splits a sum into its known part, in terms of the physical indices, and its unknown terms. Returns `None` if
    /// the known part cannot be written.
    pub(super) fn known_part(&self, sum: &Poly) -> Option<(Poly, Vec<Term>)> {
        let simplifier = Simplifier::new(self.ranges);
        let (mut known, mut unknown) = (Poly::default(), Vec::new());
        for term in sum.terms() {
            let poly = Poly::from(term.clone());
            let ty = self.map.vars().first()?.dtype().scalar;
            match self.substituted(&simplifier.emit(&poly, ty)?) {
                Some(replaced) => known = known.plus(&simplifier.poly(&replaced)?)?,
                None if self.unknowns(poly.vars()).is_empty() => return None,
                None => unknown.push(term),
            }
        }
        Some((known, unknown))
    }

    /// Returns the digits of a sum with the given value, if the value determines them: term by term, or with all terms
    /// that share an index taken as one number.
    fn digits_of(&mut self, sum: &Poly, value: &Poly) -> Option<Vec<(Atom, Poly)>> {
        let (known, unknown) = self.known_part(sum)?;
        let value = value.minus(&known)?;
        // One number alone needs no bounds: an exclusive or with a symbolic extent has none.
        let alone = match unknown.as_slice() {
            [Term { coef: 1, mono }] if mono.len() == 1 => Some((vec![(mono[0].clone(), value.clone())], None)),
            _ => None,
        };
        let (found, radices) = self
            .places(&unknown)
            .and_then(|places| linear::take_apart(self.ranges, places, value.clone()))
            .or_else(|| linear::take_apart(self.ranges, self.places(&self.clusters(&unknown)?)?, value))
            .or(alone)?;
        self.radices.extend(radices);
        Some(found)
    }

    /// Returns the summands that the terms stand for; `None` if a term has no bounds.
    fn places(&self, terms: &[Term]) -> Option<Vec<linear::Summand>> {
        let mut places: Vec<linear::Summand> = Vec::new();
        for term in terms {
            let (atom, coef) = self.digit_term(term)?;
            let reversed = term.coef < 0;
            let place = Poly::from(Term { coef: coef.coef.checked_abs()?, mono: coef.mono });
            // `i * m + i` is one digit, at the place `m + 1`.
            if let Some(same) = places.iter_mut().find(|same| same.atom == atom && same.reversed == reversed) {
                same.place = same.place.plus(&place)?;
                continue;
            }
            let (least, greatest) = self.atom_bounds(&atom)?;
            let span = greatest.minus(&least)?;
            places.push(linear::Summand {
                atom,
                place,
                span,
                start: if reversed { greatest } else { least },
                reversed,
            });
        }
        Some(places)
    }

    /// Joins the terms that share an unknown index into one term, a multiple of an opaque number. Returns `None` if
    /// that changes nothing or leaves a single term.
    fn clusters(&self, terms: &[Term]) -> Option<Vec<Term>> {
        let mut clusters: Vec<(Vec<Var>, Poly)> = Vec::new();
        for term in terms {
            let poly = Poly::from(term.clone());
            let mut cluster = (self.unknowns(poly.vars()), poly);
            for (vars, sum) in std::mem::take(&mut clusters) {
                if vars.iter().any(|var| cluster.0.contains(var)) {
                    cluster = ([cluster.0, vars].concat(), cluster.1.plus(&sum)?);
                } else {
                    clusters.push((vars, sum));
                }
            }
            clusters.push(cluster);
        }
        (clusters.len() > 1 && clusters.len() < terms.len()).then_some(())?;
        let simplifier = Simplifier::new(self.ranges);
        let ty = self.map.vars().first()?.dtype().scalar;
        let number = |(_, sum): (Vec<Var>, Poly)| {
            let content = sum.content();
            let whole = simplifier.emit(&sum.divided(&Term { coef: content, mono: Vec::new() })?, ty)?;
            Some(Term { coef: content, mono: vec![Atom::Opaque(Key(whole))] })
        };
        clusters.into_iter().map(number).collect()
    }

    /// Returns the one unknown atom of a term, and its coefficient.
    pub(super) fn digit_term(&self, term: &Term) -> Option<(Atom, Term)> {
        let is_digit = |atom: &Atom| Poly::from(atom.clone()).vars().iter().any(|var| self.is_logical(var));
        let (digits, symbols): (Vec<_>, Vec<_>) = term.mono.iter().cloned().partition(is_digit);
        let [digit] = <[Atom; 1]>::try_from(digits).ok()?;
        let fixed = match &digit {
            Atom::Opaque(_) => true,
            Atom::Div(_, by) | Atom::Mod(_, by) => !by.vars().iter().any(|var| self.is_logical(var)),
        };
        fixed.then_some((digit, Term { coef: term.coef, mono: symbols }))
    }

    /// Returns the least and the greatest value of an atom, as polynomials in symbolic extents.
    fn atom_bounds(&self, atom: &Atom) -> Option<(Poly, Poly)> {
        if let Atom::Opaque(Key(expr @ Expr::Binary(..))) = atom
            && let Some((least, greatest)) = self.exact_bounds(expr)
        {
            return Some((Poly::constant(least), Poly::constant(greatest)));
        }
        let poly = Poly::from(atom.clone());
        Some((self.ranges.least(&poly)?, self.ranges.greatest(&poly)?))
    }

    /// Returns the exact bounds of an expression over constant extents, for which intervals are too wide: `x ^ 1` for
    /// `x < 9`.
    fn exact_bounds(&self, expr: &Expr) -> Option<(i128, i128)> {
        let extent = |var: Var| {
            let axis = self.map.vars().iter().position(|other| *other == var)?;
            Some((var, self.map.domain()[axis].as_const_int().filter(|extent| *extent > 0)?))
        };
        let vars: Vec<(Var, i128)> = expr.vars().into_iter().map(extent).collect::<Option<_>>()?;
        let (least, greatest) = extremes(expr, &vars).ok()??;
        Some((least.value, greatest.value))
    }

    /// Stores the value of an atom: as a solved index, as a digit, or as a new equation.
    fn record(&mut self, atom: Atom, value: Poly) {
        if let Some(var) = atom.as_var() {
            if self.value_of(var).is_none() {
                self.solved.push((var.clone(), value));
            }
            return;
        }
        let one = Poly::constant(1);
        let unwrap = Arc::unwrap_or_clone;
        let digit = match atom {
            Atom::Opaque(Key(expr)) => {
                return match Simplifier::new(self.ranges).poly(&expr).filter(|sum| sum.as_atom().is_none()) {
                    Some(sum) => self.open.push((sum, value)),
                    None => self.opaque.push((expr, value)),
                };
            }
            Atom::Div(base, by) => Digit { base: unwrap(base), place: unwrap(by), modulus: None, value },
            Atom::Mod(base, by) => match in_quotient(&base) {
                Some((base, place)) => Digit { base, place, modulus: Some(unwrap(by)), value },
                None => Digit { base: unwrap(base), place: one, modulus: Some(unwrap(by)), value },
            },
        };
        self.digits.push(digit);
    }

    /// Applies the rule "number": puts the digits of one number together, and makes the number the next equation.
    /// Returns whether that was possible.
    fn solve_number(&mut self) -> bool {
        let bases: Vec<Poly> = self.digits.iter().map(|digit| digit.base.clone()).collect();
        for base in bases {
            if let Some(equation) = self.assembled(&base) {
                let digits = std::mem::take(&mut self.digits);
                self.digits = digits.into_iter().filter(|digit| !same_digit(digit, &base)).collect();
                self.open.push(equation);
                return true;
            }
        }
        let residues = self.digits.iter().find_map(|digit| self.residue(digit));
        residues.map(|(atom, value)| self.record(atom, value)).is_some()
    }

    /// Returns an index, or a digit of one, that the remainder of a sum determines: `5*i + 3*j == v` modulo 15 gives
    /// `5*i == v` modulo 3.
    fn residue(&self, digit: &Digit) -> Option<(Atom, Poly)> {
        let modulus = digit.modulus.as_ref()?.as_const().filter(|_| digit.place.as_const() == Some(1))?;
        let (known, unknown) = self.known_part(&digit.base)?;
        let mut value = digit.value.minus(&known)?;
        let mut places = vec![(None, modulus)];
        for term in unknown {
            let (atom, coef) = self.digit_term(&term)?;
            let (least, greatest) = self.atom_bounds(&atom)?;
            let place = Poly::from(coef).as_const()?;
            value = value.minus(&least.scaled(place)?)?;
            let span = greatest.minus(&least)?.as_const()?;
            places.push((Some((atom, least, span)), place));
        }
        let simplifier = Simplifier::new(self.ranges);
        let constants: Vec<i128> = places.iter().map(|(_, place)| *place).collect();
        places.iter().enumerate().find_map(|(at, (unknown, _))| {
            let (atom, least, span) = unknown.as_ref()?;
            // A value that is recorded already would be found again and again.
            let is_news = match atom {
                Atom::Opaque(_) => atom.as_var().is_some(),
                _ => !self.known_digits().any(|(known, _)| known == *atom),
            };
            is_news.then_some(())?;
            let offset = linear::digit_by_remainder(&simplifier, &constants, at, *span, &value)?;
            Some((atom.clone(), least.plus(&offset)?))
        })
    }

    /// Returns the equation for `base` that its digits give together: the unknown part, and its value.
    fn assembled(&self, base: &Poly) -> Option<(Poly, Poly)> {
        let (mut total, mut place) = (Poly::default(), Some(Poly::constant(1)));
        while let Some(at) = &place {
            let here = || self.digits.iter().filter(|digit| same_digit(digit, base));
            let Some((value, modulus)) = here().find_map(|digit| self.digit_at(digit, at)) else {
                let Some((value, modulus)) = here().find_map(|digit| self.by_remainders(digit, &total, at)) else {
                    break;
                };
                total = total.plus(&at.times(&value)?)?;
                place = Some(at.times(&modulus)?);
                continue;
            };
            total = total.plus(&at.times(&value)?)?;
            place = match &modulus {
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

    /// Returns the digit at the place `at` from a remainder by a number coprime to it (the Chinese remainder theorem):
    /// if `x % 3 == v` and `x % 5 == w`, then `x % 15 == v + 3 * ((w - v) * 2 % 5)`. `total` is the value below `at`.
    /// Returns the digit and its modulus.
    fn by_remainders(&self, digit: &Digit, total: &Poly, at: &Poly) -> Option<(Poly, Poly)> {
        (digit.place.as_const() == Some(1)).then_some(())?;
        let modulus = digit.modulus.as_ref()?;
        let (place, by) = (at.as_const()?, modulus.as_const()?);
        let turned = digit.value.minus(total)?.scaled(linear::reciprocal(place, by).filter(|_| by > 1)?)?;
        Some((Simplifier::new(self.ranges).divide(&turned, modulus)?.1, modulus.clone()))
    }

    /// Returns the value and the modulus that a digit has from the place `at` upwards; `None` if it says nothing
    /// there.
    fn digit_at(&self, digit: &Digit, at: &Poly) -> Option<(Poly, Option<Poly>)> {
        if digit.place == *at {
            return Some((digit.value.clone(), digit.modulus.clone()));
        }
        let simplifier = Simplifier::new(self.ranges);
        let exact = |a: &Poly, b: &Poly| {
            let (whole, rest) = divide::split(a, b)?;
            rest.is_zero().then_some(whole)
        };
        let above = exact(at, &digit.place)?;
        let modulus = match &digit.modulus {
            Some(modulus) => Some(exact(modulus, &above).filter(|left| left.as_const() != Some(1))?),
            None => None,
        };
        Some((simplifier.divide(&digit.value, &above)?.0, modulus))
    }

    /// Applies the rule "xor": `x ^ g == v` with a known `g` becomes `x == v ^ g`. Returns whether there was such an
    /// equation.
    fn undo_xor(&mut self) -> bool {
        for position in 0..self.opaque.len() {
            let (expr, value) = &self.opaque[position];
            let (unknown, known): (Vec<Expr>, Vec<Expr>) =
                xor_operands(expr).into_iter().partition(|operand| self.substituted(operand).is_none());
            let is_xor = matches!(expr, Expr::Binary(BinaryOp::BitXor, ..));
            if unknown.len() > 1 && known.is_empty() || unknown.len() == 1 && !is_xor {
                continue;
            }
            let ty = expr.dtype().scalar;
            let simplifier = Simplifier::new(self.ranges);
            let known: Option<Vec<Expr>> = known.iter().map(|operand| self.substituted(operand)).collect();
            let moved = || {
                let all: Vec<Expr> = known?.into_iter().chain([simplifier.emit(value, ty)?]).collect();
                simplifier.poly(&xor_of(&all)?)
            };
            let Some(value) = moved() else { continue };
            self.opaque.remove(position);
            match xor_of(&unknown) {
                Some(Expr::Binary(BinaryOp::BitXor, a, b)) => {
                    self.opaque.push((Expr::Binary(BinaryOp::BitXor, a, b), value));
                }
                Some(single) => match Simplifier::new(self.ranges).poly(&single) {
                    Some(sum) => self.open.push((sum, value)),
                    None => return false,
                },
                // All of it is known: nothing is learnt.
                None => {}
            }
            return true;
        }
        false
    }

    /// Replaces `x ^ g == v` with `0 <= g < 2^k` by `x // 2^k == v // 2^k` and the equation of the remainders. Returns
    /// whether there was such an equation.
    fn split_xor(&mut self) -> bool {
        let simplifier = Simplifier::new(self.ranges);
        for position in 0..self.opaque.len() {
            let (expr, value) = self.opaque[position].clone();
            let Expr::Binary(BinaryOp::BitXor, a, b) = &expr else { continue };
            let split = || {
                let (x, y) = (simplifier.poly(a)?, simplifier.poly(b)?);
                let (p, q) = (bits_limit(&x, self.ranges), bits_limit(&y, self.ranges));
                // The operand with fewer bits leaves the upper bits of the other one as they are. Equal limits
                // separate nothing.
                let (large, small, limit) = match (p, q) {
                    (Some(p), Some(q)) if p == q => return None,
                    (p, Some(q)) if p.is_none_or(|p| p > q) => (x, y, q),
                    (Some(p), _) => (y, x, p),
                    (None, _) => return None,
                };
                let limit = Poly::constant(limit);
                let ((high, low), (above, below)) =
                    (simplifier.divide(&large, &limit)?, simplifier.divide(&value, &limit)?);
                let ty = a.dtype().scalar;
                let low = Expr::binary(BinaryOp::BitXor, simplifier.emit(&low, ty)?, simplifier.emit(&small, ty)?);
                Some(((high, above), (simplifier.poly(&low)?, below)))
            };
            if let Some((high, low)) = split() {
                self.opaque.remove(position);
                self.open.extend([high, low]);
                return true;
            }
        }
        false
    }
}

/// Writes `rest + x // p` as `(x + rest * p) // p`, and returns dividend and divisor.
fn in_quotient(sum: &Poly) -> Option<(Poly, Poly)> {
    sum.terms().find_map(|term| {
        let (1, [atom @ Atom::Div(x, by)]) = (term.coef, term.mono.as_slice()) else { return None };
        let rest = sum.minus(&atom.clone().into())?;
        Some((x.plus(&rest.times(by)?)?, (**by).clone()))
    })
}

/// Whether a digit is one of `base`: the two differ by a multiple of `modulus * place`, which the digit does not see.
fn same_digit(digit: &Digit, base: &Poly) -> bool {
    if digit.base == *base {
        return true;
    }
    let seen = digit.modulus.as_ref().and_then(|modulus| modulus.times(&digit.place));
    let divided = seen.zip(base.minus(&digit.base)).and_then(|(seen, gap)| divide::split(&gap, &seen));
    divided.is_some_and(|(_, rest)| rest.is_zero())
}

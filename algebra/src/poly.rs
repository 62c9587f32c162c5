//! Polynomials with integer coefficients over atoms: the normal form of `+`, `-` and `*`.
//!
//! An atom is an expression that a polynomial does not look into: a variable, a load, a `min`, or a floor quotient or
//! remainder of two polynomials. `4*i + i*j - 4*i` and `j*i` are the same polynomial. All arithmetic is checked: if a
//! coefficient leaves 128 bits, or a product has too many terms, the result is `None`, and the caller keeps the
//! expression as it was.

use std::cmp::Ordering;
use std::sync::Arc;

use tilewright_ir::{Expr, Var};

/// Terms of a polynomial: more are not worth a normal form, and products of hostile input would grow without limit.
const MAX_TERMS: usize = 128;

/// An expression with a total order by structure.
#[derive(Clone, Debug)]
pub(super) struct Key(pub(super) Expr);

/// A factor of a product. Polynomials inside are shared, because proofs copy polynomials at every step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Atom {
    /// A variable, a load, a `min`, ...: everything that is neither a sum, a product nor a division.
    Opaque(Key),
    /// Floor quotient; the divisor is at least 1.
    Div(Arc<Poly>, Arc<Poly>),
    /// Floor remainder; the divisor is at least 1.
    Mod(Arc<Poly>, Arc<Poly>),
}

/// A product of atoms, sorted. The empty product is 1.
pub(super) type Mono = Vec<Atom>;

/// A coefficient times a product of atoms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) coef: i128,
    pub(super) mono: Mono,
}

/// A sum of terms. No coefficient is 0. The constant is stored separately, because most polynomials are constants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Poly {
    constant: i128,
    /// Products and coefficients, sorted by product. No product is empty.
    rest: Vec<(Mono, i128)>,
}

impl Atom {
    /// The atom of a variable.
    pub(super) fn var(var: &Var) -> Self {
        Self::Opaque(Key(Expr::from(var)))
    }

    /// The variable, if the atom is one.
    pub(super) fn as_var(&self) -> Option<&Var> {
        if let Self::Opaque(Key(Expr::Var(var))) = self { Some(var) } else { None }
    }

    /// Calls `visit` for every occurrence of a variable.
    pub(super) fn each_var(&self, visit: &mut impl FnMut(&Var)) {
        match self {
            Self::Opaque(Key(expr)) => expr.walk(&mut |expr| {
                if let Expr::Var(var) = expr {
                    visit(var);
                }
            }),
            Self::Div(a, b) | Self::Mod(a, b) => {
                a.each_var(visit);
                b.each_var(visit);
            }
        }
    }
}

impl Term {
    /// This term divided by `other`, if the division is exact.
    pub(super) fn divided(&self, other: &Self) -> Option<Self> {
        let coef = self.coef.checked_div(other.coef)?;
        (coef.checked_mul(other.coef)? == self.coef).then_some(())?;
        Some(Self { coef, mono: without(&self.mono, &other.mono)? })
    }

    /// The greatest common factor of two terms, with a positive coefficient.
    pub(super) fn gcd(&self, other: &Self) -> Self {
        let mut left = other.mono.clone();
        let mut mono = Mono::new();
        for atom in &self.mono {
            if let Some(position) = left.iter().position(|candidate| candidate == atom) {
                mono.push(left.remove(position));
            }
        }
        Self { coef: gcd(self.coef, other.coef), mono }
    }

    /// Whether the term is 1.
    pub(super) fn is_one(&self) -> bool {
        self.coef == 1 && self.mono.is_empty()
    }
}

impl From<Term> for Poly {
    fn from(term: Term) -> Self {
        match (term.coef, term.mono.is_empty()) {
            (0, _) => Self::default(),
            (coef, true) => Self { constant: coef, rest: Vec::new() },
            (coef, false) => Self { constant: 0, rest: vec![(term.mono, coef)] },
        }
    }
}

impl From<Atom> for Poly {
    fn from(atom: Atom) -> Self {
        Self::from(Term { coef: 1, mono: vec![atom] })
    }
}

/// Ordered term by term, the constant first.
impl Ord for Poly {
    fn cmp(&self, other: &Self) -> Ordering {
        self.pairs().cmp(other.pairs())
    }
}

impl PartialOrd for Poly {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Poly {
    /// A constant.
    pub(super) fn constant(coef: i128) -> Self {
        Self { constant: coef, rest: Vec::new() }
    }

    /// Whether this is 0.
    pub(super) fn is_zero(&self) -> bool {
        self.constant == 0 && self.rest.is_empty()
    }

    /// The value, if this is a constant.
    pub(super) fn as_const(&self) -> Option<i128> {
        self.rest.is_empty().then_some(self.constant)
    }

    /// The coefficient of a product; 0 if the product does not occur.
    pub(super) fn coef(&self, mono: &Mono) -> i128 {
        if mono.is_empty() {
            return self.constant;
        }
        self.rest.binary_search_by(|(other, _)| other.cmp(mono)).map_or(0, |position| self.rest[position].1)
    }

    /// The atom, if this is a single atom.
    pub(super) fn as_atom(&self) -> Option<&Atom> {
        match (self.constant, self.rest.as_slice()) {
            (0, [(mono, 1)]) if mono.len() == 1 => mono.first(),
            _ => None,
        }
    }

    /// The term, if this is a single term; the term 0 has no products.
    pub(super) fn as_term(&self) -> Option<Term> {
        match (self.constant, self.rest.as_slice()) {
            (0, [(mono, coef)]) => Some(Term { coef: *coef, mono: mono.clone() }),
            (0, _) => None,
            (coef, []) => Some(Term { coef, mono: Mono::new() }),
            _ => None,
        }
    }

    /// The products and coefficients of all terms, without copying them. The constant comes first.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&[Atom], i128)> + '_ {
        let constant = (self.constant != 0).then_some((&[] as &[Atom], self.constant));
        constant.into_iter().chain(self.rest.iter().map(|(mono, coef)| (mono.as_slice(), *coef)))
    }

    /// The terms, the constant first.
    pub(super) fn terms(&self) -> impl Iterator<Item = Term> + '_ {
        self.pairs().map(|(mono, coef)| Term { coef, mono: mono.to_vec() })
    }

    /// All atoms, each once, sorted.
    pub(super) fn atoms(&self) -> Vec<Atom> {
        let mut atoms: Vec<Atom> = self.rest.iter().flat_map(|(mono, _)| mono).cloned().collect();
        atoms.sort();
        atoms.dedup();
        atoms
    }

    /// Calls `visit` for every occurrence of a variable.
    pub(super) fn each_var(&self, visit: &mut impl FnMut(&Var)) {
        for atom in self.rest.iter().flat_map(|(mono, _)| mono) {
            atom.each_var(visit);
        }
    }

    /// The variables of all atoms, each once, sorted.
    pub(super) fn vars(&self) -> Vec<Var> {
        let mut vars = Vec::new();
        self.each_var(&mut |var| vars.push(var.clone()));
        vars.sort();
        vars.dedup();
        vars
    }

    /// The sum.
    pub(super) fn plus(&self, other: &Self) -> Option<Self> {
        let mut sum = self.plus_const(other.constant)?;
        for (mono, coef) in &other.rest {
            sum.add_term(mono, *coef)?;
        }
        Some(sum)
    }

    /// The difference.
    pub(super) fn minus(&self, other: &Self) -> Option<Self> {
        self.plus(&other.scaled(-1)?)
    }

    /// The sum with a constant.
    pub(super) fn plus_const(&self, value: i128) -> Option<Self> {
        Some(Self { constant: self.constant.checked_add(value)?, rest: self.rest.clone() })
    }

    /// The product with a constant.
    pub(super) fn scaled(&self, factor: i128) -> Option<Self> {
        if factor == 0 {
            return Some(Self::default());
        }
        let scaled = |(mono, coef): &(Mono, i128)| Some((mono.clone(), coef.checked_mul(factor)?));
        let rest = self.rest.iter().map(scaled).collect::<Option<_>>()?;
        Some(Self { constant: self.constant.checked_mul(factor)?, rest })
    }

    /// The product.
    pub(super) fn times(&self, other: &Self) -> Option<Self> {
        match (self.as_const(), other.as_const()) {
            (_, Some(factor)) => return self.scaled(factor),
            (Some(factor), None) => return other.scaled(factor),
            (None, None) => {}
        }
        let mut product = Self::default();
        for (a, x) in self.pairs() {
            for (b, y) in other.pairs() {
                let mut mono: Mono = a.iter().chain(b).cloned().collect();
                mono.sort();
                product.add_term(&mono, x.checked_mul(y)?)?;
            }
        }
        Some(product)
    }

    /// Adds a term; `None` if the coefficient leaves 128 bits or there are too many terms.
    fn add_term(&mut self, mono: &[Atom], coef: i128) -> Option<()> {
        if mono.is_empty() {
            self.constant = self.constant.checked_add(coef)?;
            return Some(());
        }
        match self.rest.binary_search_by(|(other, _)| other.as_slice().cmp(mono)) {
            Ok(position) => {
                let sum = self.rest[position].1.checked_add(coef)?;
                if sum == 0 {
                    self.rest.remove(position);
                } else {
                    self.rest[position].1 = sum;
                }
            }
            Err(_) if coef == 0 => {}
            Err(position) => self.rest.insert(position, (mono.to_vec(), coef)),
        }
        (self.rest.len() < MAX_TERMS).then_some(())
    }

    /// The sum of terms with pairwise different products, in any order.
    fn of_terms(terms: impl Iterator<Item = (Mono, i128)>) -> Self {
        let (mut constant, mut rest) = (0, Vec::new());
        for (mono, coef) in terms {
            if mono.is_empty() {
                constant = coef;
            } else {
                rest.push((mono, coef));
            }
        }
        rest.sort();
        Self { constant, rest }
    }

    /// Writes this as `factor * atom + rest` and returns `(factor, rest)`. From each product that holds the atom, one
    /// occurrence moves out; higher powers stay in `factor`.
    pub(super) fn by_atom(&self, atom: &Atom) -> (Self, Self) {
        let (mut factor, mut rest) = (Vec::new(), Vec::new());
        for (mono, coef) in self.pairs() {
            match without(mono, std::slice::from_ref(atom)) {
                Some(other) => factor.push((other, coef)),
                None => rest.push((mono.to_vec(), coef)),
            }
        }
        (Self::of_terms(factor.into_iter()), Self::of_terms(rest.into_iter()))
    }

    /// Splits this into the terms for which `keep` is true, and the others.
    pub(super) fn split(&self, keep: impl Fn(&Term) -> bool) -> (Self, Self) {
        let (kept, others): (Vec<Term>, Vec<Term>) = self.terms().partition(keep);
        let poly = |terms: Vec<Term>| Self::of_terms(terms.into_iter().map(|term| (term.mono, term.coef)));
        (poly(kept), poly(others))
    }

    /// Every term divided by `divisor`; `None` if a division is not exact.
    pub(super) fn divided(&self, divisor: &Term) -> Option<Self> {
        let mut quotient = Self::default();
        for term in self.terms() {
            let term = term.divided(divisor)?;
            quotient.add_term(&term.mono, term.coef)?;
        }
        Some(quotient)
    }

    /// The greatest positive integer that divides all coefficients; 1 for 0.
    pub(super) fn content(&self) -> i128 {
        self.rest.iter().fold(gcd(self.constant, 0), |common, (_, coef)| gcd(common, *coef)).max(1)
    }
}

/// The product without the atoms of `part`, if it contains all of them.
fn without(mono: &[Atom], part: &[Atom]) -> Option<Mono> {
    let mut left = mono.to_vec();
    for atom in part {
        let position = left.iter().position(|candidate| candidate == atom)?;
        left.remove(position);
    }
    Some(left)
}

/// The greatest common divisor, which is not negative; 0 for two zeros. It is 1 for values whose magnitude does not
/// fit `i128`.
pub(super) fn gcd(a: i128, b: i128) -> i128 {
    i128::try_from(tilewright_ir::gcd(a.unsigned_abs(), b.unsigned_abs())).unwrap_or(1)
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

/// Compares two expressions: first the kind, then the operator or value, then the operands.
fn compare(a: &Expr, b: &Expr) -> Ordering {
    kind(a).cmp(&kind(b)).then_with(|| compare_heads(a, b)).then_with(|| {
        let (left, right) = (a.children(), b.children());
        let lengths = left.len().cmp(&right.len());
        let pairs = left.zip(right).map(|(a, b)| compare(a, b));
        pairs.fold(Ordering::Equal, Ordering::then).then(lengths)
    })
}

/// Compares what two nodes of the same kind hold besides their operands.
fn compare_heads(a: &Expr, b: &Expr) -> Ordering {
    match (a, b) {
        (Expr::Int { value: x, ty: s }, Expr::Int { value: y, ty: t }) => x.cmp(y).then(s.cmp(t)),
        (Expr::Float { value: x, ty: s }, Expr::Float { value: y, ty: t }) => x.total_cmp(y).then(s.cmp(t)),
        (Expr::Var(x), Expr::Var(y)) => x.cmp(y),
        (Expr::Binary(x, ..), Expr::Binary(y, ..)) => x.cmp(y),
        (Expr::Unary(x, _), Expr::Unary(y, _)) => x.cmp(y),
        (Expr::Call(x, _), Expr::Call(y, _)) => x.cmp(y),
        (Expr::Cast(x, _), Expr::Cast(y, _)) => x.cmp(y),
        (Expr::Ramp { lanes: x, .. }, Expr::Ramp { lanes: y, .. })
        | (Expr::Broadcast { lanes: x, .. }, Expr::Broadcast { lanes: y, .. }) => x.cmp(y),
        (Expr::Load { buffer: x, .. }, Expr::Load { buffer: y, .. }) => x.cmp(y),
        _ => Ordering::Equal,
    }
}

/// The position of a kind of expression in the order: variables first, loads last.
fn kind(expr: &Expr) -> u8 {
    match expr {
        Expr::Var(_) => 0,
        Expr::Int { .. } => 1,
        Expr::Float { .. } => 2,
        Expr::Binary(..) => 3,
        Expr::Unary(..) => 4,
        Expr::Call(..) => 5,
        Expr::Select(..) => 6,
        Expr::IfThenElse(..) => 7,
        Expr::Cast(..) => 8,
        Expr::Ramp { .. } => 9,
        Expr::Broadcast { .. } => 10,
        Expr::Load { .. } => 11,
    }
}

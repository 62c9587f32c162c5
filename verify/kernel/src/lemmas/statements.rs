//! The statements of the lemmas, and their proofs.
//!
//! A lemma is a sequent: hypotheses, and a conclusion that follows from them for all integers. Its proof is a list of helper
//! facts (instances of simpler lemmas, and consequences of them) from which Z3 derives the conclusion with products and
//! divisions as uninterpreted functions.
//!
//! ```text
//! DivBelow    0 < b,  a < n * b   |-   a // b < n          helper: Euclid for a and b
//! ```

use super::Lemmas;
use crate::facts::{self as kernel, Context, Fact, Failure, Mode, Theorem};
use crate::solver::Solver;
use crate::term::{Prop, Term};

macro_rules! lemmas {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A lemma; the letters are the variables that [`Lemmas::apply`] gives values to.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Lemma {
            $($(#[$doc])* $name,)*
        }

        impl Lemma {
            /// All lemmas.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name in reports and certificates.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }
    };
}

lemmas! {
    /// `0 < b` ⊢ `a == a // b * b + a % b`, `0 <= a % b`, `a % b < b`
    Euclid,
    /// `0 < b`, `0 <= a` ⊢ `0 <= a // b`
    DivNonNegative,
    /// `0 < b`, `a < n` ⊢ `a // b < (n + (b - 1)) // b`
    DivBelowCeil,
    /// `0 < b`, `a < n * b` ⊢ `a // b < n`
    DivBelow,
    /// `0 < b`, `a // b == c // b`, `a % b == c % b` ⊢ `a == c`
    DigitsDetermine,
    /// `0 <= r`, `r < d`, `0 <= s`, `s < d`, `q * d + r == p * d + s` ⊢ `q == p`, `r == s`
    HornerInjective,
    /// `0 <= q`, `q < n`, `0 <= r`, `r < d` ⊢ `0 <= q * d + r`, `q * d + r < n * d`
    HornerBounds,
    /// `0 <= r`, `r < d` ⊢ `(q * d + r) // d == q`, `(q * d + r) % d == r`
    HornerInverse,
    /// `0 <= a`, `x <= y` ⊢ `a * x <= a * y`
    Monotone,
    /// `0 < a`, `0 < b` ⊢ `0 < a * b`
    ProductPositive,
    /// `0 <= a`, `0 <= b` ⊢ `0 <= a + b`, `0 <= a * b`
    NonNegative,
    /// `0 < a`, `0 <= a * x + (a - 1)` ⊢ `0 <= x`
    Scaled,
    /// `0 < a`, `0 < b` ⊢ `x // a // b == x // (a * b)`
    DivDiv,
    /// `0 < a`, `0 < b` ⊢ `x % (a * b) % b == x % b`
    ModMod,
    /// `0 < a`, `0 < b` ⊢ `x % (a * b) // b == x // b % a`
    ModDiv,
    /// `0 < b` ⊢ `(x + k * b) // b == x // b + k`, `(x + k * b) % b == x % b`
    DivShift,
}

/// A variable of a lemma.
fn v(name: &str) -> Term {
    Term::sym(name)
}

/// The numeral `q * d + r`.
fn numeral() -> Term {
    v("q") * v("d") + v("r")
}

impl Lemma {
    /// The propositions that the conclusion follows from.
    pub fn hypotheses(self) -> Vec<Prop> {
        let [a, b] = ["a", "b"].map(v);
        let digit = |digit: &str, extent: &str| [v(digit).at_least(0), v(digit).less(v(extent))];
        match self {
            Self::Euclid | Self::DivShift => vec![b.more(0)],
            Self::DivNonNegative => vec![b.more(0), a.at_least(0)],
            Self::DivBelowCeil => vec![b.more(0), a.less(v("n"))],
            Self::DivBelow => vec![b.more(0), a.less(v("n") * &b)],
            Self::DigitsDetermine => {
                let c = v("c");
                vec![b.more(0), a.floor_div(&b).equals(c.floor_div(&b)), a.floor_mod(&b).equals(c.floor_mod(&b))]
            }
            Self::HornerInjective => {
                let same = numeral().equals(v("p") * v("d") + v("s"));
                [digit("r", "d"), digit("s", "d")].into_iter().flatten().chain([same]).collect()
            }
            Self::HornerBounds => [digit("q", "n"), digit("r", "d")].concat(),
            Self::HornerInverse => digit("r", "d").to_vec(),
            Self::Monotone => vec![a.at_least(0), v("x").at_most(v("y"))],
            Self::ProductPositive | Self::DivDiv | Self::ModMod | Self::ModDiv => vec![a.more(0), b.more(0)],
            Self::NonNegative => vec![a.at_least(0), b.at_least(0)],
            Self::Scaled => vec![a.more(0), (&a * v("x") + (&a - 1)).at_least(0)],
        }
    }

    /// The proposition that follows (a table over the lemmas).
    pub fn conclusion(self) -> Prop {
        let [a, b, x] = ["a", "b", "x"].map(v);
        let (quotient, rest) = (a.floor_div(&b), a.floor_mod(&b));
        match self {
            Self::Euclid => Prop::all([a.equals(quotient * &b + &rest), rest.at_least(0), rest.less(&b)]),
            Self::DivNonNegative => quotient.at_least(0),
            Self::DivBelowCeil => quotient.less(v("n").ceil_div(&b)),
            Self::DivBelow => quotient.less(v("n")),
            Self::DigitsDetermine => a.equals(v("c")),
            Self::HornerInjective => v("q").equals(v("p")).and(v("r").equals(v("s"))),
            Self::HornerBounds => numeral().at_least(0).and(numeral().less(v("n") * v("d"))),
            Self::HornerInverse => {
                numeral().floor_div(v("d")).equals(v("q")).and(numeral().floor_mod(v("d")).equals(v("r")))
            }
            Self::Monotone => (&a * &x).at_most(&a * v("y")),
            Self::ProductPositive => (&a * &b).more(0),
            Self::NonNegative => (&a + &b).at_least(0).and((&a * &b).at_least(0)),
            Self::Scaled => x.at_least(0),
            Self::DivDiv => x.floor_div(&a).floor_div(&b).equals(x.floor_div(&a * &b)),
            Self::ModMod => x.floor_mod(&a * &b).floor_mod(&b).equals(x.floor_mod(&b)),
            Self::ModDiv => x.floor_mod(&a * &b).floor_div(&b).equals(x.floor_div(&b).floor_mod(&a)),
            Self::DivShift => {
                let moved = &x + v("k") * &b;
                let quotient = moved.floor_div(&b).equals(x.floor_div(&b) + v("k"));
                quotient.and(moved.floor_mod(&b).equals(x.floor_mod(&b)))
            }
        }
    }

    /// Proves the lemma from its hypotheses, with the help of other lemmas.
    pub(super) fn prove(self, lemmas: &Lemmas, solver: &Solver) -> Result<Theorem, Failure> {
        if self == Self::Euclid {
            return kernel::euclid(solver);
        }
        let mut context = Context::new(solver);
        let premises: Vec<Fact> =
            self.hypotheses().into_iter().map(|prop| context.assume(prop, "hypothesis")).collect();
        let helpers = self.helpers(lemmas, &mut context, &premises)?;
        let using: Vec<&Fact> = premises.iter().chain(&helpers).collect();
        let fact = context.derive(self.conclusion(), &using, Mode::Abstract)?;
        context.generalize(self.name(), &fact)
    }

    /// Intermediate facts that Z3 needs for the proof: instances of other lemmas and consequences of them.
    fn helpers(self, lemmas: &Lemmas, context: &mut Context, premises: &[Fact]) -> Result<Vec<Fact>, Failure> {
        let [a, b, c, n] = ["a", "b", "c", "n"].map(v);
        // A lemma may use only simpler ones: in a cycle each theorem would wait for the other to be proved.
        let mut guide = Guide { lemmas, context, facts: premises.to_vec() };
        match self {
            Self::Euclid
            | Self::HornerInjective
            | Self::HornerBounds
            | Self::Monotone
            | Self::ProductPositive
            | Self::NonNegative
            | Self::Scaled => {}
            Self::DivNonNegative | Self::DivBelow => guide.divide(&a, &b)?,
            Self::DivBelowCeil => {
                guide.divide(&a, &b)?;
                guide.divide(&(n + (&b - 1)), &b)?;
            }
            Self::DigitsDetermine => {
                guide.divide(&a, &b)?;
                guide.divide(&c, &b)?;
            }
            Self::HornerInverse => {
                guide.divide(&numeral(), &v("d"))?;
                let (quotient, rest) = (numeral().floor_div(v("d")), numeral().floor_mod(v("d")));
                guide.same_digits([&quotient, &rest], [&v("q"), &v("r")], &v("d"))?;
            }
            Self::DivDiv => guide.div_div()?,
            Self::ModMod => guide.mod_mod()?,
            Self::ModDiv => guide.mod_div()?,
            Self::DivShift => guide.div_shift()?,
        }
        Ok(guide.facts.split_off(premises.len()))
    }
}

/// A proof under construction: each step adds a fact.
struct Guide<'c> {
    /// The lemmas that may be instantiated.
    lemmas: &'c Lemmas,
    /// The context of the proof.
    context: &'c mut Context,
    /// The hypotheses, then the facts found so far.
    facts: Vec<Fact>,
}

impl Guide<'_> {
    /// Adds an instance of another lemma.
    fn apply(&mut self, lemma: Lemma, values: &[(&str, &Term)]) -> Result<(), Failure> {
        let using: Vec<&Fact> = self.facts.iter().collect();
        let fact = self.lemmas.apply(self.context, lemma, values, &using)?;
        self.facts.push(fact);
        Ok(())
    }

    /// Adds a goal that Z3 derives from the facts so far.
    fn derive(&mut self, goal: Prop) -> Result<(), Failure> {
        let using: Vec<&Fact> = self.facts.iter().collect();
        let fact = self.context.derive(goal, &using, Mode::Abstract)?;
        self.facts.push(fact);
        Ok(())
    }

    /// Quotient and remainder of `a` by `b`.
    fn divide(&mut self, a: &Term, b: &Term) -> Result<(), Failure> {
        self.apply(Lemma::Euclid, &[("a", a), ("b", b)])
    }

    /// Adds that two numerals with the same value, whose last digits are below `d`, have the same digits.
    fn same_digits(&mut self, [q, r]: [&Term; 2], [p, s]: [&Term; 2], d: &Term) -> Result<(), Failure> {
        self.apply(Lemma::HornerInjective, &[("q", q), ("r", r), ("p", p), ("s", s), ("d", d)])
    }

    /// `x` is `x // a // b * (a * b) + (x // a % b * a + x % a)`, whose last digit is below `a * b`.
    fn div_div(&mut self) -> Result<(), Failure> {
        let [a, b, x] = ["a", "b", "x"].map(v);
        let (first, low) = (x.floor_div(&a), x.floor_mod(&a));
        let (second, middle) = (first.floor_div(&b), first.floor_mod(&b));
        let size = &a * &b;
        self.apply(Lemma::ProductPositive, &[("a", &a), ("b", &b)])?;
        self.divide(&x, &a)?;
        self.divide(&first, &b)?;
        self.divide(&x, &size)?;
        self.apply(Lemma::HornerBounds, &[("q", &middle), ("n", &b), ("r", &low), ("d", &a)])?;
        self.derive((&first * &a).equals((&second * &b + &middle) * &a))?;
        let rest = &middle * &a + &low;
        self.same_digits([&second, &rest], [&x.floor_div(&size), &x.floor_mod(&size)], &size)
    }

    /// `x` is `(x // (a * b) * a + x % (a * b) // b) * b + x % (a * b) % b`.
    fn mod_mod(&mut self) -> Result<(), Failure> {
        let [a, b, x] = ["a", "b", "x"].map(v);
        let size = &a * &b;
        let rest = x.floor_mod(&size);
        self.apply(Lemma::ProductPositive, &[("a", &a), ("b", &b)])?;
        self.divide(&x, &size)?;
        self.divide(&rest, &b)?;
        self.divide(&x, &b)?;
        let high = x.floor_div(&size) * &a + rest.floor_div(&b);
        self.same_digits([&high, &rest.floor_mod(&b)], [&x.floor_div(&b), &x.floor_mod(&b)], &b)
    }

    /// `x // b` is `x // (a * b) * a + x % (a * b) // b`, whose last digit is below `a`.
    fn mod_div(&mut self) -> Result<(), Failure> {
        let [a, b, x] = ["a", "b", "x"].map(v);
        let size = &a * &b;
        let (rest, first) = (x.floor_mod(&size), x.floor_div(&b));
        self.mod_mod()?;
        self.divide(&first, &a)?;
        self.apply(Lemma::DivNonNegative, &[("a", &rest), ("b", &b)])?;
        self.apply(Lemma::DivBelow, &[("a", &rest), ("b", &b), ("n", &a)])?;
        let (high, low) = (x.floor_div(&size), rest.floor_div(&b));
        self.derive(first.equals(&high * &a + &low))?;
        self.same_digits([&first.floor_div(&a), &first.floor_mod(&a)], [&high, &low], &a)
    }

    /// `x + k * b` is `(x // b + k) * b + x % b`.
    fn div_shift(&mut self) -> Result<(), Failure> {
        let [b, x, k] = ["b", "x", "k"].map(v);
        let moved = &x + &k * &b;
        self.divide(&x, &b)?;
        self.divide(&moved, &b)?;
        let high = x.floor_div(&b) + &k;
        self.same_digits([&moved.floor_div(&b), &moved.floor_mod(&b)], [&high, &x.floor_mod(&b)], &b)
    }
}

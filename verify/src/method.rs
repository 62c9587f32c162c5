//! The methods by which obligations are decided, as data, with the text of each in reports.
//!
//! ```text
//! Enumeration(Count(256))              enumeration of 256 points
//! Proof { goals: 2, lemmas: 3 }        z3 lemma chain (2 goals, 3 lemmas)
//! Gf2 { goals: 4 }                     gf2, confirmed by z3 (4 goals)
//! InStages(..)                         z3, in 3 stages
//! ```
//!
//! A method says what was done. One that names Z3 was confirmed by Z3: goals that follow without it, because they are
//! true as they are written or are among the premises, say so.

use std::fmt;

use tilewright_ir::TextureLimits;

/// The method by which an obligation was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Method {
    /// None: no method applies.
    Nothing,
    /// By looking at ranks and extents of the claim, which do not fit.
    Shape,
    /// By looking at the structure of the program or the claim.
    Structure,
    /// By walking both programs side by side.
    Lockstep,
    /// By running both programs on terms, of which there are this many.
    Execution(usize),
    /// A layout has stages; part of [`Method::InStages`].
    Stages,
    /// Both sides are the same text, or there is nothing to compare.
    SameText,
    /// The goals are true as they are written, or are among the premises: no solver was asked.
    Premises,
    /// The program before does the same, and it is a premise that it may.
    Before,
    /// By looking at the program and its claims; the text says what was seen. No solver and no point was needed.
    Inspection(&'static str),
    /// Constant extents were compared with the limits of textures.
    WithinLimits(TextureLimits),
    /// Symbolic extents are compared with the limits of textures when the kernels are launched; that is a premise here.
    CheckedAtLaunch(TextureLimits),
    /// By evaluation at concrete values.
    Evaluation,
    /// The ranges of the values suffice.
    Intervals,
    /// Every axis is declared as padded, so there is nothing to decide.
    AllPadded,
    /// By trying points.
    Enumeration(Points),
    /// A certificate in terms of digits.
    Digits {
        /// Instances of lemmas that it rests on.
        instances: usize,
        /// Whether Z3 was asked about them and confirmed them.
        confirmed: bool,
    },
    /// Linear algebra over GF(2).
    Gf2 {
        /// Goals over bit-vectors that Z3 confirmed.
        goals: usize,
    },
    /// Z3 was asked, and gave an answer that is not a proof or a confirmed model; or it showed that the premises
    /// contradict each other.
    Z3,
    /// A proof of the kernel; at least one of the numbers is not 0, see [`Method::proof`].
    Proof {
        /// Goals that Z3 showed.
        goals: usize,
        /// Instances of lemmas, which Z3 showed once for all values.
        lemmas: usize,
    },
    /// A model of Z3's that evaluation confirmed.
    Model,
    /// Numerals, digit by digit, by lemmas.
    Numerals {
        /// The number of digits.
        digits: usize,
        /// Whether Z3 was asked about some of them.
        asked: bool,
    },
    /// A run of the interpreter.
    Interpreter,
    /// A run of the interpreter that compared all accesses of so many iterations.
    Iterations(u64),
    /// Decided by the method, and then confirmed by this many goals that were put to Z3.
    Confirmed(Box<Self>, usize),
    /// The index maps of all accesses, decided by these methods.
    IndexMaps(Vec<Self>),
    /// Several parts of one statement, in the order in which they were decided.
    Together(Vec<Self>),
    /// Several statements, decided by these methods.
    Each(Vec<Self>),
    /// An existential statement, by the method for a witness that was found by evaluation.
    WithWitness(Box<Self>),
    /// Injectivity, from a left inverse that was proved by the method.
    ByInverse(Box<Self>),
    /// A statement that is never reached, which the method showed.
    NeverReached(Box<Self>),
    /// The size of an allocation, by the method.
    Allocation(Box<Self>),
    /// All stages of a layout, by the method; the number of stages.
    InStages(Box<Self>, usize),
    /// By the first method, and again by the second one; none if that is beyond Z3's budget for second decisions.
    Twice(Box<Self>, Option<Box<Self>>),
}

/// The points that were tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Points {
    /// All points; the number of them.
    Count(u64),
    /// All points or iterations.
    All,
    /// All points of some parts, one of which has a counterexample.
    SomeParts,
    /// All points of small shapes.
    SmallShapes,
    /// Some points of a shape that is too large.
    Some,
    /// All reads; the number of them.
    Reads(u64),
}

/// The kind of a method, as statistics count it: the tier that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Nothing.
    Nothing,
    /// The claim and its structure.
    Structure,
    /// The ranges of the values.
    Intervals,
    /// Points that were tried or evaluated.
    Enumeration,
    /// A certificate in terms of digits.
    Digits,
    /// Linear algebra over GF(2).
    Gf2,
    /// The premises alone.
    Premises,
    /// Lemmas alone.
    Lemmas,
    /// Z3.
    Z3,
    /// The interpreter.
    Interpreter,
    /// The size of an allocation, however it was decided.
    Allocation,
}

impl Tier {
    /// The word in statistics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::Structure => "structure",
            Self::Intervals => "intervals",
            Self::Enumeration => "enumeration",
            Self::Digits => "digits",
            Self::Gf2 => "gf2",
            Self::Premises => "premises",
            Self::Lemmas => "lemma",
            Self::Z3 => "z3",
            Self::Interpreter => "interpreter",
            Self::Allocation => "allocation",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl Method {
    /// A proof with these numbers of goals shown by Z3 and of instances of lemmas; [`Method::Premises`] if both are 0.
    pub const fn proof(goals: usize, lemmas: usize) -> Self {
        match (goals, lemmas) {
            (0, 0) => Self::Premises,
            _ => Self::Proof { goals, lemmas },
        }
    }

    /// Several parts of one statement; the method of the part if there is one only.
    pub(crate) fn together(mut methods: Vec<Self>) -> Self {
        match (methods.pop(), methods.is_empty()) {
            (Some(only), true) => only,
            (last, _) => {
                methods.extend(last);
                Self::Together(methods)
            }
        }
    }

    /// The tier of the method (a table). A method with parts has the tier of the first part that decided, or Z3 if
    /// layouts or index maps needed it anywhere.
    pub fn tier(&self) -> Tier {
        match self {
            Self::Nothing => Tier::Nothing,
            Self::Shape
            | Self::Structure
            | Self::Lockstep
            | Self::Stages
            | Self::SameText
            | Self::Inspection(_)
            | Self::WithinLimits(_)
            | Self::CheckedAtLaunch(_)
            | Self::NeverReached(_) => Tier::Structure,
            Self::Premises | Self::Before => Tier::Premises,
            Self::Intervals | Self::AllPadded => Tier::Intervals,
            Self::Evaluation | Self::Enumeration(_) => Tier::Enumeration,
            Self::Digits { .. } => Tier::Digits,
            Self::Gf2 { .. } => Tier::Gf2,
            Self::Proof { goals: 0, .. } | Self::Numerals { asked: false, .. } => Tier::Lemmas,
            Self::Z3 | Self::Proof { .. } | Self::Model | Self::Numerals { .. } => Tier::Z3,
            Self::Interpreter | Self::Iterations(_) | Self::Execution(_) => Tier::Interpreter,
            Self::Allocation(_) => Tier::Allocation,
            Self::Confirmed(method, _)
            | Self::WithWitness(method)
            | Self::ByInverse(method)
            | Self::Twice(method, _) => method.tier(),
            Self::InStages(..) if self.asks_solver() => Tier::Z3,
            Self::InStages(method, _) => method.tier(),
            Self::IndexMaps(_) if self.asks_solver() => Tier::Z3,
            Self::IndexMaps(methods) | Self::Together(methods) | Self::Each(methods) => {
                let mut decided = methods.iter().filter(|method| **method != Self::Stages);
                decided.next().map_or(Tier::Nothing, Self::tier)
            }
        }
    }

    /// Whether a goal of this obligation was put to Z3, or to the memo of its answers (a table).
    pub fn asks_solver(&self) -> bool {
        match self {
            Self::Nothing
            | Self::Shape
            | Self::Structure
            | Self::Lockstep
            | Self::Execution(_)
            | Self::Stages
            | Self::SameText
            | Self::Premises
            | Self::Before
            | Self::Inspection(_)
            | Self::WithinLimits(_)
            | Self::CheckedAtLaunch(_)
            | Self::Evaluation
            | Self::Intervals
            | Self::AllPadded
            | Self::Enumeration(_)
            | Self::Interpreter
            | Self::Iterations(_) => false,
            Self::Z3 | Self::Model => true,
            Self::Digits { confirmed, .. } => *confirmed,
            Self::Gf2 { goals } | Self::Proof { goals, .. } => *goals > 0,
            Self::Numerals { asked, .. } => *asked,
            Self::Confirmed(method, goals) => *goals > 0 || method.asks_solver(),
            Self::Twice(first, second) => {
                [Some(first), second.as_ref()].into_iter().flatten().any(|by| by.asks_solver())
            }
            Self::WithWitness(method)
            | Self::ByInverse(method)
            | Self::NeverReached(method)
            | Self::Allocation(method)
            | Self::InStages(method, _) => method.asks_solver(),
            Self::IndexMaps(methods) | Self::Together(methods) | Self::Each(methods) => {
                methods.iter().any(Self::asks_solver)
            }
        }
    }

    /// Whether lemmas took part in a proof of the kernel.
    pub(crate) fn has_lemmas(&self) -> bool {
        match self {
            Self::Proof { lemmas, .. } => *lemmas > 0,
            Self::Digits { .. } | Self::Numerals { .. } => true,
            _ => self.parts().iter().any(|part| part.has_lemmas()),
        }
    }

    /// How informative the method is beside others: the same text least, the premises alone little.
    pub(crate) fn weight(&self) -> u8 {
        match self {
            Self::SameText => 0,
            Self::Premises | Self::Before => 1,
            _ => 2,
        }
    }

    /// The method of two parts that were decided one after the other: the second one, unless lemmas took part in the first
    /// alone or the second one says less.
    pub(crate) fn then(self, second: Self) -> Self {
        let keeps = self.has_lemmas() && !second.has_lemmas() || second.weight() < self.weight();
        if keeps { self } else { second }
    }

    /// The methods of which it consists.
    fn parts(&self) -> Vec<&Self> {
        match self {
            Self::Confirmed(method, _)
            | Self::WithWitness(method)
            | Self::ByInverse(method)
            | Self::NeverReached(method)
            | Self::Allocation(method)
            | Self::InStages(method, _) => vec![method],
            Self::Twice(first, second) => std::iter::once(first).chain(second).map(AsRef::as_ref).collect(),
            Self::IndexMaps(methods) | Self::Together(methods) | Self::Each(methods) => methods.iter().collect(),
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for Points {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(points) => write!(f, "enumeration of {points} points"),
            Self::All => f.write_str("enumeration"),
            Self::SomeParts => f.write_str("enumeration of some parts"),
            Self::SmallShapes => f.write_str("enumeration of small shapes"),
            Self::Some => f.write_str("enumeration of some points"),
            Self::Reads(reads) => write!(f, "enumeration of {reads} reads"),
        }
    }
}

/// A number of things: `1 goal`, `2 goals`.
struct Counted(usize, &'static str);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.0, self.1, if self.0 == 1 { "" } else { "s" })
    }
}

/// Methods with a separator between them.
struct Joined<'a>(&'a [Method], &'static str);

impl fmt::Display for Joined<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, method) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str(self.1)?;
            }
            write!(f, "{method}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Method {
    /// The text in reports (a table). It is not read back: decisions are made on the data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("none"),
            Self::Shape => f.write_str("shape"),
            Self::Structure => f.write_str("structure"),
            Self::Lockstep => f.write_str("lockstep"),
            Self::Execution(terms) => write!(f, "symbolic execution with {terms} terms"),
            Self::Stages => f.write_str("stages"),
            Self::SameText => f.write_str("same text"),
            Self::Premises => f.write_str("premises"),
            Self::Before => f.write_str("as before"),
            Self::Inspection(seen) => f.write_str(seen),
            Self::WithinLimits(limits) => write!(f, "within {limits} (width x height)"),
            Self::CheckedAtLaunch(limits) => {
                write!(f, "premise: the launch checks that height and width are within {limits} (width x height)")
            }
            Self::Evaluation => f.write_str("evaluation"),
            Self::Intervals => f.write_str("intervals"),
            Self::AllPadded => f.write_str("intervals: all axes are padded"),
            Self::Enumeration(points) => write!(f, "{points}"),
            Self::Digits { instances, confirmed } => {
                let by = if *confirmed { ", confirmed by z3" } else { "" };
                write!(f, "digits: {instances} lemma instances{by}")
            }
            Self::Gf2 { goals: 0 } => f.write_str("gf2"),
            Self::Gf2 { goals } => write!(f, "gf2, confirmed by z3 ({})", Counted(*goals, "goal")),
            Self::Z3 => f.write_str("z3"),
            Self::Proof { goals, lemmas } => match (goals, lemmas) {
                (0, 0) => f.write_str("premises"),
                (0, lemmas) => write!(f, "lemma chain ({})", Counted(*lemmas, "lemma")),
                (1, 0) => f.write_str("z3"),
                (goals, 0) => write!(f, "z3 ({goals} goals)"),
                (goals, lemmas) => {
                    write!(f, "z3 lemma chain ({}, {})", Counted(*goals, "goal"), Counted(*lemmas, "lemma"))
                }
            },
            Self::Model => f.write_str("z3 model, replayed"),
            Self::Numerals { digits, asked } => {
                let by = if *asked { "z3 " } else { "" };
                write!(f, "{by}lemma chain ({digits} digits)")
            }
            Self::Interpreter => f.write_str("interpreter"),
            Self::Iterations(count) => write!(f, "all {count} iterations compared"),
            Self::Confirmed(method, 0) => write!(f, "{method}"),
            Self::Confirmed(method, goals) => write!(f, "{method}, {} to z3", Counted(*goals, "goal")),
            Self::IndexMaps(_) => write!(f, "{}, index maps", self.tier()),
            Self::Together(methods) => write!(f, "{}", Joined(methods, ", ")),
            Self::Each(methods) => write!(f, "{}", Joined(methods, "; ")),
            Self::WithWitness(method) => write!(f, "{method}, with a witness"),
            Self::ByInverse(method) => write!(f, "{method}, by the inverse"),
            Self::NeverReached(method) => write!(f, "never reached, {method}"),
            Self::Allocation(method) => write!(f, "allocation: {method}"),
            Self::Twice(first, Some(second)) => write!(f, "{first}, and {second}"),
            Self::Twice(first, None) => write!(f, "{first}; beyond z3's budget for a second decision"),
            Self::InStages(_, stages) => write!(f, "{}, in {stages} stages", self.tier()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_without_goals_never_says_z3() {
        assert_eq!(Method::proof(0, 0), Method::Premises);
        for method in [
            Method::proof(0, 0),
            Method::proof(0, 3),
            Method::Numerals { digits: 3, asked: false },
            Method::Digits { instances: 7, confirmed: false },
            Method::Gf2 { goals: 0 },
            Method::InStages(Box::new(Method::Together(vec![Method::Stages, Method::Intervals])), 2),
            Method::IndexMaps(vec![Method::Intervals, Method::Enumeration(Points::All)]),
            Method::Confirmed(Box::new(Method::Evaluation), 0),
        ] {
            assert!(!method.asks_solver() && !method.to_string().contains("z3"), "{method}");
            assert_ne!(method.tier(), Tier::Z3);
        }
        for method in [
            Method::proof(1, 0),
            Method::proof(2, 5),
            Method::Gf2 { goals: 3 },
            Method::InStages(Box::new(Method::Together(vec![Method::Intervals, Method::proof(1, 0)])), 2),
            Method::IndexMaps(vec![Method::Intervals, Method::proof(1, 0)]),
            Method::Confirmed(Box::new(Method::Evaluation), 4),
        ] {
            assert!(method.asks_solver() && method.to_string().contains("z3"), "{method}");
        }
    }

    #[test]
    fn methods_read_as_they_are_printed() {
        let printed = [
            (Method::proof(1, 0), "z3"),
            (Method::proof(4, 0), "z3 (4 goals)"),
            (Method::proof(4, 2), "z3 lemma chain (4 goals, 2 lemmas)"),
            (Method::proof(0, 2), "lemma chain (2 lemmas)"),
            (Method::Digits { instances: 9, confirmed: true }, "digits: 9 lemma instances, confirmed by z3"),
            (Method::Enumeration(Points::Count(24)), "enumeration of 24 points"),
            (Method::Each(vec![Method::proof(1, 0), Method::Intervals]), "z3; intervals"),
            (Method::InStages(Box::new(Method::Z3), 3), "z3, in 3 stages"),
        ];
        for (method, text) in printed {
            assert_eq!(method.to_string(), text);
        }
    }

    #[test]
    fn one_part_is_the_whole() {
        let (one, two) = (Method::Intervals, Method::Z3);
        assert_eq!(Method::together(vec![one.clone()]), one);
        assert_eq!(Method::together(vec![one, two]).to_string(), "intervals, z3");
    }

    #[test]
    fn of_two_parts_the_one_that_says_more_is_kept() {
        let (chain, z3) = (Method::proof(2, 3), Method::proof(1, 0));
        assert_eq!(z3.clone().then(Method::Premises), z3);
        assert_eq!(Method::Premises.then(z3.clone()), z3);
        assert_eq!(chain.clone().then(z3.clone()), chain);
        assert_eq!(z3.then(Method::Enumeration(Points::All)), Method::Enumeration(Points::All));
    }
}

//! Cases of the oracle `encoder`: integer expressions and conditions over a few variables with small ranges.
//!
//! ```text
//! x in -7..=9, y in -3..=4      premise  x < y << 1      value  (x // y) % -3 + (x & 6)      goal  y != 0
//! ```
//!
//! All operators of index arithmetic are drawn, with operands of either sign. A point where the expression has no value
//! is left out by the oracle, so divisors may be 0 somewhere.

use std::fmt::Write as _;

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::{BinaryOp, DataType, Expr, MathFn, ScalarType, SharedExpr, UnaryOp, Var};

use crate::case::{Case, without_one};
use crate::config::Config;

/// The operators of integers with two operands.
const ARITHMETIC: [BinaryOp; 14] = [
    BinaryOp::FloorDiv,
    BinaryOp::FloorMod,
    BinaryOp::TruncDiv,
    BinaryOp::TruncMod,
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Min,
    BinaryOp::Max,
    BinaryOp::BitAnd,
    BinaryOp::BitOr,
    BinaryOp::BitXor,
    BinaryOp::Shl,
    BinaryOp::Shr,
];

/// The comparisons.
const COMPARISONS: [BinaryOp; 6] = [BinaryOp::Lt, BinaryOp::Le, BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Gt, BinaryOp::Ge];

/// The connectives with two operands.
const CONNECTIVES: [BinaryOp; 4] = [BinaryOp::And, BinaryOp::Or, BinaryOp::BitAnd, BinaryOp::BitOr];

/// An integer expression. Operators are positions in tables, modulo their lengths.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Value {
    /// A constant.
    Constant(i64),
    /// A variable, modulo their number.
    Variable(usize),
    /// `-a`, `~a` or `abs(a)`.
    Unary(usize, Box<Value>),
    /// An operator with two operands.
    Binary(usize, Box<Value>, Box<Value>),
    /// A choice of which both sides are evaluated.
    Select(Box<Truth>, Box<Value>, Box<Value>),
    /// A choice of which one side is evaluated.
    Choice(Box<Truth>, Box<Value>, Box<Value>),
    /// A conversion to eight bits and back, which has no value where it wraps.
    Narrow(Box<Value>),
    /// 1 or 0.
    Truth(Box<Truth>),
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Truth {
    /// A constant.
    Constant(bool),
    /// A comparison.
    Compare(usize, Value, Value),
    /// `not a`
    Not(Box<Truth>),
    /// A connective.
    Both(usize, Box<Truth>, Box<Truth>),
    /// A choice between conditions.
    Choice(Box<Truth>, Box<Truth>, Box<Truth>),
}

impl Value {
    /// Draws an expression with at most `depth` nested operators.
    fn draw(u: &mut Unstructured<'_>, depth: u32) -> arbitrary::Result<Self> {
        let less = depth.saturating_sub(1);
        let kind = if depth == 0 { u.int_in_range(0..=1)? } else { u.int_in_range(0..=15)? };
        Ok(match kind {
            0 => Self::Variable(u.int_in_range(0..=2)?),
            1 => Self::Constant(match u.int_in_range(0..=7)? {
                0 => 1 << u.int_in_range(0..=10)?,
                1 => i64::from(u.arbitrary::<i16>()?),
                _ => u.int_in_range(-9..=9)?,
            }),
            2 => Self::Unary(u.int_in_range(0..=2)?, Box::new(Self::draw(u, less)?)),
            3 => Self::Select(
                Box::new(Truth::draw(u, less)?),
                Box::new(Self::draw(u, less)?),
                Box::new(Self::draw(u, less)?),
            ),
            4 => Self::Choice(
                Box::new(Truth::draw(u, less)?),
                Box::new(Self::draw(u, less)?),
                Box::new(Self::draw(u, less)?),
            ),
            5 if u.arbitrary()? => Self::Narrow(Box::new(Self::draw(u, less)?)),
            5 => Self::Truth(Box::new(Truth::draw(u, less)?)),
            _ => {
                let op = u.int_in_range(0..=ARITHMETIC.len() - 1)?;
                let left = Self::draw(u, less)?;
                // An amount that is a variable has 64 cases, so most amounts are small constants.
                let right = match ARITHMETIC[op] {
                    BinaryOp::Shl | BinaryOp::Shr if u.ratio(3, 4)? => Self::Constant(u.int_in_range(0..=6)?),
                    _ if u.ratio(1, 3)? => Self::Constant(u.int_in_range(-9..=9)?),
                    _ => Self::draw(u, less)?,
                };
                Self::Binary(op, Box::new(left), Box::new(right))
            }
        })
    }

    /// The expression over variables.
    pub fn expr(&self, vars: &[Var], ty: ScalarType) -> Expr {
        let shared = |value: &Self| SharedExpr::new(value.expr(vars, ty));
        match self {
            Self::Constant(value) => Expr::int_of(i128::from(*value), ty).unwrap_or(Expr::Int { value: 0, ty }),
            Self::Variable(at) => vars.get(at % vars.len().max(1)).map_or(Expr::Int { value: 0, ty }, Expr::from),
            Self::Unary(op, a) => match op % 3 {
                0 => Expr::unary(UnaryOp::Neg, a.expr(vars, ty)),
                1 => Expr::unary(UnaryOp::BitNot, a.expr(vars, ty)),
                _ => Expr::Call(MathFn::Abs, vec![a.expr(vars, ty)].into()),
            },
            Self::Binary(op, a, b) => {
                Expr::binary(ARITHMETIC[op % ARITHMETIC.len()], a.expr(vars, ty), b.expr(vars, ty))
            }
            Self::Select(c, a, b) => Expr::Select(c.shared(vars, ty), shared(a), shared(b)),
            Self::Choice(c, a, b) => Expr::IfThenElse(c.shared(vars, ty), shared(a), shared(b)),
            Self::Narrow(a) => {
                let narrow = Expr::Cast(DataType::from(ScalarType::Int8), shared(a));
                Expr::Cast(DataType::from(ty), SharedExpr::new(narrow))
            }
            Self::Truth(truth) => Expr::Cast(DataType::from(ty), truth.shared(vars, ty)),
        }
    }

    /// Its operands that are integers.
    fn operands(&self) -> Vec<&Self> {
        match self {
            Self::Constant(_) | Self::Variable(_) | Self::Truth(_) => Vec::new(),
            Self::Unary(_, a) | Self::Narrow(a) => vec![a],
            Self::Binary(_, a, b) | Self::Select(_, a, b) | Self::Choice(_, a, b) => vec![a, b],
        }
    }

    /// Simpler expressions: an operand in its place, a smaller constant, a simpler operand.
    fn simpler(&self) -> Vec<Self> {
        let mut found: Vec<Self> = self.operands().into_iter().cloned().collect();
        match self {
            Self::Constant(value) => {
                let nearer = [0, 1, -1, value / 2].into_iter().filter(|less| less.abs() < value.abs());
                found.extend(nearer.map(Self::Constant));
                if *value < -1 {
                    found.push(Self::Constant(-value));
                }
            }
            Self::Variable(_) => found.push(Self::Constant(0)),
            Self::Unary(op, a) => found.extend(a.simpler().into_iter().map(|a| Self::Unary(*op, Box::new(a)))),
            Self::Narrow(a) => found.extend(a.simpler().into_iter().map(|a| Self::Narrow(Box::new(a)))),
            Self::Truth(a) => found.extend(a.simpler().into_iter().map(|a| Self::Truth(Box::new(a)))),
            Self::Binary(op, a, b) => {
                found.extend(a.simpler().into_iter().map(|a| Self::Binary(*op, Box::new(a), b.clone())));
                found.extend(b.simpler().into_iter().map(|b| Self::Binary(*op, a.clone(), Box::new(b))));
            }
            Self::Select(c, a, b) | Self::Choice(c, a, b) => {
                let again = |c: Truth, a: Self, b: Self| match self {
                    Self::Select(..) => Self::Select(Box::new(c), Box::new(a), Box::new(b)),
                    _ => Self::Choice(Box::new(c), Box::new(a), Box::new(b)),
                };
                found.extend(c.simpler().into_iter().map(|c| again(c, (**a).clone(), (**b).clone())));
                found.extend(a.simpler().into_iter().map(|a| again((**c).clone(), a, (**b).clone())));
                found.extend(b.simpler().into_iter().map(|b| again((**c).clone(), (**a).clone(), b)));
            }
        }
        found
    }

    /// The expression with its operator or constant number `at`, counted along the left operands, replaced by the next.
    #[must_use]
    pub fn changed(&self, at: usize) -> Self {
        match self {
            Self::Constant(value) => Self::Constant(value + 1),
            Self::Variable(number) => Self::Variable(number + 1),
            Self::Binary(op, a, b) if at == 0 => Self::Binary(op + 1, a.clone(), b.clone()),
            Self::Binary(op, a, b) if at % 2 == 1 => Self::Binary(*op, Box::new(a.changed(at / 2)), b.clone()),
            Self::Binary(op, a, b) => Self::Binary(*op, a.clone(), Box::new(b.changed(at / 2))),
            Self::Unary(op, a) if at == 0 => Self::Unary(op + 1, a.clone()),
            Self::Unary(op, a) => Self::Unary(*op, Box::new(a.changed(at / 2))),
            Self::Narrow(a) => Self::Narrow(Box::new(a.changed(at / 2))),
            Self::Select(c, a, b) => Self::Select(c.clone(), b.clone(), a.clone()),
            Self::Choice(c, a, b) => Self::Choice(c.clone(), b.clone(), a.clone()),
            Self::Truth(a) => Self::Truth(Box::new(Truth::Not(a.clone()))),
        }
    }
}

impl Truth {
    /// Draws a condition with at most `depth` nested operators.
    fn draw(u: &mut Unstructured<'_>, depth: u32) -> arbitrary::Result<Self> {
        let less = depth.saturating_sub(1);
        let kind = if depth == 0 { 0 } else { u.int_in_range(0..=7)? };
        Ok(match kind {
            0..=3 => {
                let op = u.int_in_range(0..=COMPARISONS.len() - 1)?;
                Self::Compare(op, Value::draw(u, less)?, Value::draw(u, less)?)
            }
            4 => Self::Not(Box::new(Self::draw(u, less)?)),
            5 | 6 => {
                let op = u.int_in_range(0..=CONNECTIVES.len() - 1)?;
                Self::Both(op, Box::new(Self::draw(u, less)?), Box::new(Self::draw(u, less)?))
            }
            _ => Self::Choice(
                Box::new(Self::draw(u, less)?),
                Box::new(Self::draw(u, less)?),
                Box::new(Self::draw(u, less)?),
            ),
        })
    }

    /// The condition over variables.
    pub fn expr(&self, vars: &[Var], ty: ScalarType) -> Expr {
        match self {
            Self::Constant(value) => Expr::bool(*value),
            Self::Compare(op, a, b) => {
                Expr::binary(COMPARISONS[op % COMPARISONS.len()], a.expr(vars, ty), b.expr(vars, ty))
            }
            Self::Not(a) => Expr::unary(UnaryOp::Not, a.expr(vars, ty)),
            Self::Both(op, a, b) => {
                Expr::binary(CONNECTIVES[op % CONNECTIVES.len()], a.expr(vars, ty), b.expr(vars, ty))
            }
            Self::Choice(c, a, b) => Expr::Select(c.shared(vars, ty), a.shared(vars, ty), b.shared(vars, ty)),
        }
    }

    /// The condition as an operand.
    fn shared(&self, vars: &[Var], ty: ScalarType) -> SharedExpr {
        SharedExpr::new(self.expr(vars, ty))
    }

    /// Simpler conditions.
    fn simpler(&self) -> Vec<Self> {
        let boxed = |truth: &Self| Box::new(truth.clone());
        match self {
            Self::Constant(true) => vec![Self::Constant(false)],
            Self::Constant(false) => Vec::new(),
            Self::Compare(op, a, b) => {
                let mut found = vec![Self::Constant(false), Self::Constant(true)];
                found.extend(a.simpler().into_iter().map(|a| Self::Compare(*op, a, b.clone())));
                found.extend(b.simpler().into_iter().map(|b| Self::Compare(*op, a.clone(), b)));
                found
            }
            Self::Not(a) => {
                let mut found = vec![(**a).clone()];
                found.extend(a.simpler().into_iter().map(|a| Self::Not(Box::new(a))));
                found
            }
            Self::Both(op, a, b) => {
                let mut found = vec![(**a).clone(), (**b).clone()];
                found.extend(a.simpler().into_iter().map(|a| Self::Both(*op, Box::new(a), boxed(b))));
                found.extend(b.simpler().into_iter().map(|b| Self::Both(*op, boxed(a), Box::new(b))));
                found
            }
            Self::Choice(c, a, b) => {
                let mut found = vec![(**c).clone(), (**a).clone(), (**b).clone()];
                found.extend(c.simpler().into_iter().map(|c| Self::Choice(Box::new(c), boxed(a), boxed(b))));
                found
            }
        }
    }
}

/// How the two conditions of a conclusion are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Link {
    /// The first condition implies the second.
    Implies,
    /// The conditions are equivalent.
    Iff,
    /// The first condition alone.
    First,
}

/// A case: for all variables in their ranges, the premises and `result == value` imply the conclusion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// Whether integers have 64 bits, otherwise 32.
    pub wide: bool,
    /// The least value of each variable, and how many more there are.
    pub ranges: Vec<(i64, u8)>,
    /// Conditions that are assumed to hold.
    pub premises: Vec<Truth>,
    /// The expression whose value the additional variable `result` has.
    pub value: Value,
    /// The first condition of the conclusion.
    pub goal: Truth,
    /// The second condition of the conclusion; `link` says whether it is used.
    pub other: Truth,
    /// How the two conditions make up the conclusion.
    pub link: Link,
    /// The number of the point that Z3 is asked about, and the place in `value` where the twin, the second question about
    /// that point, has another operator or constant.
    pub twin: usize,
}

impl Case for Goal {
    /// Draws one to three variables of up to 17 values around 0. In half of the cases the goal is `false`, so that every
    /// point at which the premises hold tests the value.
    fn draw(u: &mut Unstructured<'_>, _: &Config) -> arbitrary::Result<Self> {
        let count = u.int_in_range(1..=3)?;
        let mut ranges = Vec::new();
        for _ in 0..count {
            ranges.push((if u.arbitrary()? { u.int_in_range(-9..=9)? } else { 0 }, u.int_in_range(1..=16)?));
        }
        let depth = u.int_in_range(1..=3)?;
        let value = Value::draw(u, depth)?;
        let premises = if u.ratio(1, 3)? { vec![Truth::draw(u, 2)?] } else { Vec::new() };
        let (goal, other) = if u.arbitrary()? {
            (Truth::Constant(false), Truth::Constant(false))
        } else {
            (Truth::draw(u, 2)?, Truth::draw(u, 1)?)
        };
        let link = *u.choose(&[Link::First, Link::Implies, Link::Iff])?;
        Ok(Self {
            wide: u.arbitrary()?,
            ranges,
            premises,
            value,
            goal,
            other,
            link,
            twin: usize::from(u.int_in_range(0..=7u8)?),
        })
    }

    fn simpler(&self) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        found.extend(without_one(&self.premises).into_iter().map(|premises| Self { premises, ..self.clone() }));
        if self.link != Link::First {
            found.push(Self { link: Link::First, ..self.clone() });
        }
        if self.link == Link::First && self.other != Truth::Constant(false) {
            found.push(Self { other: Truth::Constant(false), ..self.clone() });
        }
        found.extend(self.goal.simpler().into_iter().map(|goal| Self { goal, ..self.clone() }));
        found.extend(self.value.simpler().into_iter().map(|value| Self { value, ..self.clone() }));
        for (at, premise) in self.premises.iter().enumerate() {
            found.extend(premise.simpler().into_iter().map(|simple| {
                let mut case = self.clone();
                case.premises[at] = simple;
                case
            }));
        }
        for at in 0..self.ranges.len() {
            let (low, more) = self.ranges[at];
            let smaller = [(low, more / 2), (low + i64::from(more) / 2 + 1, more / 2)];
            found.extend(smaller.into_iter().filter(|range| range.1 < more).map(|range| {
                let mut case = self.clone();
                case.ranges[at] = range;
                case
            }));
        }
        if self.wide {
            found.push(Self { wide: false, ..self.clone() });
        }
        found
    }

    fn features(&self) -> Vec<String> {
        let mut found = Vec::new();
        let (vars, ty) = (self.vars(), self.ty());
        self.value.expr(&vars, ty).walk(&mut |part| {
            let name = match part {
                Expr::Binary(op, ..) => op.info().call.to_owned(),
                Expr::Unary(op, _) => format!("unary {}", op.symbol().0),
                Expr::Select(..) => "select".to_owned(),
                Expr::IfThenElse(..) => "if_then_else".to_owned(),
                Expr::Cast(..) => "cast".to_owned(),
                _ => return,
            };
            found.push(format!("op:{name}"));
        });
        found.sort_unstable();
        found.dedup();
        found
    }

    fn text(&self) -> String {
        let (vars, ty) = (self.vars(), self.ty());
        let mut text = String::new();
        for (var, (low, more)) in vars.iter().zip(&self.ranges) {
            let _ = write!(text, "{low} <= {} <= {}, ", var.name(), low + i64::from(*more));
        }
        for premise in &self.premises {
            let _ = write!(text, "{}, ", premise.expr(&vars, ty));
        }
        let _ = write!(text, "result == {} |- {}", self.value.expr(&vars, ty), self.goal.expr(&vars, ty));
        match self.link {
            Link::First => text,
            Link::Implies => format!("{text} implies {}", self.other.expr(&vars, ty)),
            Link::Iff => format!("{text} if and only if {}", self.other.expr(&vars, ty)),
        }
    }
}

impl Goal {
    /// The variables.
    pub fn vars(&self) -> Vec<Var> {
        (0..self.ranges.len()).map(|at| Var::new(format!("x{at}"), self.ty())).collect()
    }

    /// The type of all integers.
    pub fn ty(&self) -> ScalarType {
        if self.wide { ScalarType::Int64 } else { ScalarType::Int32 }
    }
}

//! The readable infix form, in the notation of TVMScript: `//` and `%` round down.
//!
//! An operand is put in parentheses only if it binds less tightly than its operator, so `(x + y) * 4` keeps them and
//! `x + y * 4` has none. The text is for people; certificates contain SMT-LIB.

use super::{BinaryOp, Comparison, Prop, PropKind, Term, TermKind, UnaryOp};
use std::fmt::{Display, Formatter, Result};

/// How an operator is written: between its operands with a binding strength, or as a function.
enum Notation {
    Infix(&'static str, u8),
    Function(&'static str),
}

/// The notation of an operator; a greater number binds tighter.
fn notation(op: BinaryOp) -> Notation {
    use Notation::{Function, Infix};
    match op {
        BinaryOp::BitOr => Infix("|", 5),
        BinaryOp::BitXor => Infix("^", 6),
        BinaryOp::BitAnd => Infix("&", 7),
        BinaryOp::Shl => Infix("<<", 8),
        BinaryOp::Shr => Infix(">>", 8),
        BinaryOp::Add => Infix("+", 9),
        BinaryOp::Sub => Infix("-", 9),
        BinaryOp::Mul => Infix("*", 10),
        BinaryOp::FloorDiv => Infix("//", 10),
        BinaryOp::FloorMod => Infix("%", 10),
        BinaryOp::TruncDiv => Function("truncdiv"),
        BinaryOp::TruncMod => Function("truncmod"),
        BinaryOp::Min => Function("min"),
        BinaryOp::Max => Function("max"),
    }
}

/// Binding strength of constants, variables and function calls.
const ATOM: u8 = 12;
/// Binding strength of prefix operators and of negative constants.
const UNARY: u8 = 11;
/// Binding strength of comparisons; those of connectives follow.
const COMPARISON: u8 = 4;
const NOT: u8 = 3;
const AND: u8 = 2;
const OR: u8 = 1;
const CHOICE: u8 = 0;

/// The sign of a comparison.
fn comparison_sign(op: Comparison) -> &'static str {
    match op {
        Comparison::Eq => "==",
        Comparison::Ne => "!=",
        Comparison::Lt => "<",
        Comparison::Le => "<=",
    }
}

impl Term {
    /// The binding strength of the outermost operator.
    fn strength(&self) -> u8 {
        match self.kind() {
            TermKind::Const(value) if *value < 0 => UNARY,
            TermKind::Const(_) | TermKind::Sym(_) | TermKind::App(..) => ATOM,
            TermKind::Unary(UnaryOp::Abs, _) => ATOM,
            TermKind::Unary(UnaryOp::Neg | UnaryOp::Not, _) => UNARY,
            TermKind::Binary(op, ..) => match notation(*op) {
                Notation::Infix(_, strength) => strength,
                Notation::Function(_) => ATOM,
            },
            TermKind::Ite(..) => CHOICE,
        }
    }
}

/// Writes an operand, in parentheses if needed.
fn guarded(f: &mut Formatter<'_>, shown: &impl Display, parentheses: bool) -> Result {
    if parentheses { write!(f, "({shown})") } else { write!(f, "{shown}") }
}

/// Writes a function call.
fn list<T: Display>(f: &mut Formatter<'_>, name: &dyn Display, args: &[T]) -> Result {
    write!(f, "{name}(")?;
    for (position, arg) in args.iter().enumerate() {
        let separator = if position == 0 { "" } else { ", " };
        write!(f, "{separator}{arg}")?;
    }
    f.write_str(")")
}

impl Display for Term {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.kind() {
            TermKind::Const(value) => write!(f, "{value}"),
            TermKind::Sym(symbol) => write!(f, "{symbol}"),
            TermKind::Unary(UnaryOp::Abs, a) => write!(f, "abs({a})"),
            TermKind::Unary(op @ (UnaryOp::Neg | UnaryOp::Not), a) => {
                f.write_str(if *op == UnaryOp::Neg { "-" } else { "~" })?;
                guarded(f, a, a.strength() <= UNARY)
            }
            TermKind::Binary(op, lhs, rhs) => match notation(*op) {
                Notation::Function(name) => write!(f, "{name}({lhs}, {rhs})"),
                Notation::Infix(sign, strength) => {
                    guarded(f, lhs, lhs.strength() < strength)?;
                    write!(f, " {sign} ")?;
                    guarded(f, rhs, rhs.strength() <= strength)
                }
            },
            TermKind::Ite(condition, then, otherwise) => {
                guarded(f, then, then.strength() == CHOICE)?;
                write!(f, " if {condition} else ")?;
                guarded(f, otherwise, otherwise.strength() == CHOICE)
            }
            TermKind::App(name, args) => list(f, name, args),
        }
    }
}

impl Prop {
    /// The binding strength of the outermost connective.
    fn strength(&self) -> u8 {
        match self.kind() {
            PropKind::Bool(_) | PropKind::Sym(_) => ATOM,
            PropKind::Compare(..) => COMPARISON,
            PropKind::Not(_) => NOT,
            PropKind::And(_) => AND,
            PropKind::Or(_) => OR,
            PropKind::Implies(..) | PropKind::Iff(..) => CHOICE,
        }
    }
}

/// Writes operands with a connective between them, in parentheses where they bind no tighter.
fn joined(f: &mut Formatter<'_>, parts: &[Prop], sign: &str, strength: u8) -> Result {
    for (position, part) in parts.iter().enumerate() {
        if position > 0 {
            write!(f, " {sign} ")?;
        }
        guarded(f, part, part.strength() <= strength)?;
    }
    Ok(())
}

impl Display for Prop {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.kind() {
            PropKind::Bool(value) => write!(f, "{value}"),
            PropKind::Sym(symbol) => write!(f, "{symbol}"),
            PropKind::Compare(op, lhs, rhs) => {
                guarded(f, lhs, lhs.strength() <= COMPARISON)?;
                write!(f, " {} ", comparison_sign(*op))?;
                guarded(f, rhs, rhs.strength() <= COMPARISON)
            }
            PropKind::Not(inner) => {
                f.write_str("not ")?;
                guarded(f, inner, inner.strength() <= NOT)
            }
            PropKind::And(parts) => joined(f, parts, "and", AND),
            PropKind::Or(parts) => joined(f, parts, "or", OR),
            // Implication and equivalence do not associate, so each operand of the same strength gets parentheses.
            PropKind::Implies(lhs, rhs) => {
                guarded(f, lhs, lhs.strength() == CHOICE)?;
                f.write_str(" implies ")?;
                guarded(f, rhs, rhs.strength() == CHOICE)
            }
            PropKind::Iff(lhs, rhs) => {
                guarded(f, lhs, lhs.strength() == CHOICE)?;
                f.write_str(" iff ")?;
                guarded(f, rhs, rhs.strength() == CHOICE)
            }
        }
    }
}

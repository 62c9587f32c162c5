//! Translation of the language's expressions to terms.
//!
//! Integers become terms over the mathematical integers; that no operation wraps is an obligation of its own (overflow).
//! Everything else (loads, floats, vectors) becomes an uninterpreted function of its operands. A load is stamped with the
//! number of its statement: memory may change between two statements, so their loads are unrelated. Only the loads of buffers
//! that are never written have no number.
//!
//! ```text
//! i * 4 + j % 4            i * 4 + j % 4, over the mathematical integers
//! i < n and j >= 0         i < n and 0 <= j
//! A[i] (int32)             `load A at 3`(i), of which -2^31 <= .. < 2^31 may be assumed
//! x * 2.0 (float32)        `Mul float32`(x, `float32 4000000000000000`()): equal operands give equal values, no more
//! ```

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tilewright_ir::{BinaryOp, Buffer, DataType, Expr, MathFn, ScalarType, UnaryOp, Var, sabotage};

use crate::question::Question;
use crate::term::{BinaryOp as TermOp, Prop, Symbol, Term, UnaryOp as TermUnary};

/// The terms of variables: each has a symbol of its own, unless it is bound to another term.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// The term of each variable.
    terms: HashMap<Var, Term>,
    /// Names of symbols in use.
    taken: HashSet<String>,
    /// The number of the current statement.
    stamp: usize,
    /// Buffers whose memory is never written: their loads are the same function in all statements.
    constant: Arc<Vec<Buffer>>,
    /// Opaque integers (loads and casts) with their types, whose ranges a question may assume.
    typed: Vec<(Term, ScalarType)>,
    /// Number of them that have been assumed.
    n_assumed: usize,
}

impl Names {
    /// A new symbol called `name`, followed by a number if that name is taken.
    pub fn fresh(&mut self, name: &str) -> Symbol {
        let mut candidate = name.to_owned();
        let mut number = 1;
        while !self.taken.insert(candidate.clone()) {
            number += 1;
            candidate = format!("{name}#{number}");
        }
        Symbol::new(&candidate)
    }

    /// The term for a variable: its own symbol unless it was bound.
    pub fn var(&mut self, var: &Var) -> Term {
        if let Some(term) = self.terms.get(var) {
            return term.clone();
        }
        let term = Term::sym(self.fresh(var.name()));
        self.terms.insert(var.clone(), term.clone());
        term
    }

    /// Binds a variable to a term; replaces an earlier binding.
    pub fn bind(&mut self, var: &Var, term: Term) {
        self.terms.insert(var.clone(), term);
    }

    /// A copy in which `vars` are bound to `terms`.
    #[must_use]
    pub fn renamed(&self, vars: &[Var], terms: &[Term]) -> Self {
        let mut names = self.clone();
        for (var, term) in vars.iter().zip(terms) {
            names.bind(var, term.clone());
        }
        names
    }

    /// Declares the buffers whose memory is never written. Terms made before keep their loads apart.
    pub(crate) fn never_written(&mut self, buffers: &Arc<Vec<Buffer>>) {
        self.constant = Arc::clone(buffers);
    }

    /// Begins a new statement: later loads are unrelated to earlier ones, except those of buffers that are never written.
    pub fn next_statement(&mut self) {
        self.stamp += 1;
    }

    /// Assumes that loaded and cast integers translated since the last call are in the range of their type: a loaded `uint8`
    /// is below 256, whatever it is.
    pub(crate) fn assume_types(&mut self, question: &mut Question) {
        for (term, ty) in &self.typed[self.n_assumed..] {
            if let Some((low, high)) = ty.integer_range() {
                question.assume(&term.at_least(low).and(term.at_most(high)), "a value of this type");
            }
        }
        self.n_assumed = self.typed.len();
    }

    /// An integer expression of one lane as a term; another one as an uninterpreted function.
    pub fn term(&mut self, expr: &Expr) -> Term {
        let ty = expr.dtype();
        // A truth value used as an integer is 1 or 0. Everything that is no scalar integer is opaque: only equality is
        // known of it.
        if ty == DataType::BOOL {
            return Term::ite(&self.prop(expr), 1, 0);
        }
        if !ty.is_scalar() || !ty.scalar.is_integer() {
            return self.opaque(expr);
        }
        match expr {
            Expr::Int { value, .. } => Term::int(*value),
            Expr::Var(var) => self.var(var),
            Expr::Binary(op, lhs, rhs) => match term_op(*op) {
                Some(op) => Term::binary(op, self.term(lhs), self.term(rhs)),
                None => self.opaque(expr),
            },
            Expr::Unary(UnaryOp::Neg, operand) => -self.term(operand),
            Expr::Unary(UnaryOp::BitNot, operand) => Term::unary(TermUnary::Not, self.term(operand)),
            Expr::Call(MathFn::Abs, args) if args.len() == 1 => self.term(&args[0]).abs(),
            Expr::Select(c, a, b) | Expr::IfThenElse(c, a, b) => {
                let condition = self.prop(c);
                Term::ite(&condition, self.term(a), self.term(b))
            }
            Expr::Cast(_, value) if value.dtype().scalar.integer_range().is_some() => self.term(value),
            Expr::Float { .. }
            | Expr::Unary(UnaryOp::Not, _)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Ramp { .. }
            | Expr::Broadcast { .. }
            | Expr::Load { .. } => self.opaque(expr),
        }
    }

    /// A `bool` expression of one lane as a proposition.
    pub fn prop(&mut self, expr: &Expr) -> Prop {
        match expr {
            Expr::Int { value, .. } => Prop::bool(*value != 0),
            Expr::Unary(UnaryOp::Not, operand) => self.prop(operand).negate(),
            Expr::Binary(op, lhs, rhs) => self.binary_prop(*op, lhs, rhs, expr),
            Expr::Select(c, a, b) | Expr::IfThenElse(c, a, b) => {
                let (c, mut a, mut b) = (self.prop(c), self.prop(a), self.prop(b));
                if sabotage::on("translate-swaps-choice") {
                    std::mem::swap(&mut a, &mut b);
                }
                c.and(a).or(c.negate().and(b))
            }
            Expr::Cast(_, value) if value.dtype().scalar.is_integer() && value.dtype().is_scalar() => {
                self.term(value).differs(0)
            }
            Expr::Var(var) => self.var(var).differs(0),
            Expr::Float { .. }
            | Expr::Unary(..)
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Ramp { .. }
            | Expr::Broadcast { .. }
            | Expr::Load { .. } => self.opaque(expr).differs(0),
        }
    }

    /// A binary operator as a proposition: comparisons of integers and connectives; others are opaque.
    fn binary_prop(&mut self, op: BinaryOp, lhs: &Expr, rhs: &Expr, whole: &Expr) -> Prop {
        let ty = lhs.dtype();
        let integers = ty.is_scalar() && ty.scalar.integer_range().is_some();
        match op {
            // Comparisons of floats fall through to the last arm: NaN and rounding make them no order of the integers.
            BinaryOp::And => self.prop(lhs).and(self.prop(rhs)),
            BinaryOp::Or => self.prop(lhs).or(self.prop(rhs)),
            BinaryOp::BitAnd if ty == DataType::BOOL => self.prop(lhs).and(self.prop(rhs)),
            BinaryOp::BitOr if ty == DataType::BOOL => self.prop(lhs).or(self.prop(rhs)),
            BinaryOp::Eq if integers => self.term(lhs).equals(self.term(rhs)),
            BinaryOp::Ne if integers => self.term(lhs).differs(self.term(rhs)),
            BinaryOp::Lt if integers => self.term(lhs).less(self.term(rhs)),
            BinaryOp::Le if integers => self.term(lhs).at_most(self.term(rhs)),
            BinaryOp::Gt if integers => self.term(lhs).more(self.term(rhs)),
            BinaryOp::Ge if integers => self.term(lhs).at_least(self.term(rhs)),
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::FloorDiv
            | BinaryOp::FloorMod
            | BinaryOp::TruncDiv
            | BinaryOp::TruncMod
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Shl
            | BinaryOp::Shr => self.opaque(whole).differs(0),
        }
    }

    /// An uninterpreted function of the operands, named by everything else that the expression consists of.
    fn opaque(&mut self, expr: &Expr) -> Term {
        let name = match expr {
            Expr::Load { buffer, .. } if self.constant.contains(buffer) => format!("load {buffer:?}"),
            Expr::Load { buffer, .. } if sabotage::on("memory-never-changes") => format!("load {buffer:?}"),
            Expr::Load { buffer, .. } => format!("load {buffer:?} at {}", self.stamp),
            Expr::Float { value, ty } => format!("{ty} {:x}", value.to_bits()),
            Expr::Var(var) => return self.var(var),
            Expr::Int { value, .. } => return Term::int(*value),
            Expr::Binary(op, lhs, _) => format!("{} {}", op.info().call, lhs.dtype()),
            Expr::Unary(op, operand) => format!("{} {}", op.symbol().0, operand.dtype()),
            Expr::Call(function, _) => format!("{} {}", function.info().0, expr.dtype()),
            Expr::Select(_, value, _) => format!("select {}", value.dtype()),
            Expr::IfThenElse(_, value, _) => format!("if_then_else {}", value.dtype()),
            Expr::Cast(ty, value) => format!("cast {} to {ty}", value.dtype()),
            Expr::Ramp { lanes, .. } => format!("ramp {lanes}"),
            Expr::Broadcast { lanes, .. } => format!("broadcast {lanes}"),
        };
        let operands: Vec<_> = expr.children().map(|child| self.term(child)).collect();
        let term = Term::app(name.as_str(), operands);
        let (ty, is_value) = (expr.dtype(), matches!(expr, Expr::Load { .. } | Expr::Cast(..)));
        let typed = (term.clone(), ty.scalar);
        if is_value && ty.is_scalar() && ty.scalar.is_integer() && !self.typed.contains(&typed) {
            self.typed.push(typed);
        }
        term
    }
}

/// The term operator of an arithmetic operator (a table); `None` for comparisons, connectives and float division.
fn term_op(op: BinaryOp) -> Option<TermOp> {
    Some(match op {
        BinaryOp::Add => TermOp::Add,
        BinaryOp::Sub => TermOp::Sub,
        BinaryOp::Mul => TermOp::Mul,
        BinaryOp::FloorDiv => TermOp::FloorDiv,
        BinaryOp::FloorMod => TermOp::FloorMod,
        BinaryOp::TruncDiv => TermOp::TruncDiv,
        BinaryOp::TruncMod => TermOp::TruncMod,
        BinaryOp::Min => TermOp::Min,
        BinaryOp::Max => TermOp::Max,
        BinaryOp::BitAnd => TermOp::BitAnd,
        BinaryOp::BitOr => TermOp::BitOr,
        BinaryOp::BitXor => TermOp::BitXor,
        BinaryOp::Shl => TermOp::Shl,
        BinaryOp::Shr => TermOp::Shr,
        BinaryOp::Div
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge
        | BinaryOp::And
        | BinaryOp::Or => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_one_name_stay_apart() {
        let mut names = Names::default();
        let (a, b) = (Var::index("i"), Var::index("i"));
        assert_ne!(names.var(&a), names.var(&b));
        assert_eq!(names.var(&a), names.var(&a));
    }

    #[test]
    fn loads_of_different_statements_stay_apart() {
        let mut names = Names::default();
        let buffer = tilewright_ir::Buffer::compact("A", DataType::INT32, vec![Expr::int(7)]);
        let load = Expr::load(&buffer, vec![Expr::int(3)]);
        let before = names.term(&load);
        assert_eq!(before, names.term(&load));
        names.next_statement();
        assert_ne!(before, names.term(&load));
    }
}

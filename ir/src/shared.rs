//! Shared, immutable parts of expressions.
//!
//! An operand is a [`SharedExpr`] and a list of operands a [`SharedExprs`]. Both count their owners: a clone costs one
//! increment however large the expression is, and two expressions may hold the same part. Nothing is changed in place.
//!
//! Dropping the last owner of a deep expression takes no more stack than dropping a shallow one: parts without another
//! owner are put on a list instead of being dropped recursively.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::expr::Expr;

/// An operand of an expression: a shared expression.
///
/// ```
/// use tilewright_ir::{Expr, SharedExpr, UnaryOp, Var};
/// let operand = SharedExpr::new(Expr::from(Var::index("i")) + Expr::int(1));
/// let negated = Expr::Unary(UnaryOp::Neg, operand.clone());
/// assert_eq!(negated.to_string(), "-(i + 1)");
/// assert!(matches!(&negated, Expr::Unary(_, inner) if inner.is_same(&operand)));
/// ```
#[derive(Clone)]
pub struct SharedExpr(Option<Arc<Expr>>);

/// The operands of a call or the indices of an access: a shared list of expressions.
#[derive(Clone)]
pub struct SharedExprs(Option<Arc<[Expr]>>);

impl SharedExpr {
    /// Shares an expression.
    pub fn new(expr: Expr) -> Self {
        Self(Some(Arc::new(expr)))
    }

    /// Returns whether both are one object in memory, and so the same expression, even if `==` is false for it because it
    /// contains a NaN. Equal expressions need not be one object.
    pub fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(&raw const **self, &raw const **other)
    }

    /// Returns the expression itself. Its parts stay shared.
    pub fn into_expr(mut self) -> Expr {
        match self.0.take() {
            Some(shared) => Arc::unwrap_or_clone(shared),
            None => unreachable!("a shared expression is emptied only when it is dropped or consumed"),
        }
    }
}

impl SharedExprs {
    /// Returns whether both are one object in memory, or both are empty, and so the same list. Equal lists need not be one
    /// object.
    pub fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(&raw const **self, &raw const **other) || (self.is_empty() && other.is_empty())
    }
}

impl Deref for SharedExpr {
    type Target = Expr;

    fn deref(&self) -> &Expr {
        match &self.0 {
            Some(shared) => shared,
            None => unreachable!("a shared expression is emptied only when it is dropped or consumed"),
        }
    }
}

impl Deref for SharedExprs {
    type Target = [Expr];

    fn deref(&self) -> &[Expr] {
        match &self.0 {
            Some(shared) => shared,
            None => unreachable!("a shared list is emptied only when it is dropped"),
        }
    }
}

impl AsRef<Expr> for SharedExpr {
    fn as_ref(&self) -> &Expr {
        self
    }
}

impl From<Expr> for SharedExpr {
    fn from(expr: Expr) -> Self {
        Self::new(expr)
    }
}

impl From<Vec<Expr>> for SharedExprs {
    fn from(exprs: Vec<Expr>) -> Self {
        Self(Some(exprs.into()))
    }
}

impl<const N: usize> From<[Expr; N]> for SharedExprs {
    fn from(exprs: [Expr; N]) -> Self {
        Self(Some(exprs.into()))
    }
}

impl From<&[Expr]> for SharedExprs {
    fn from(exprs: &[Expr]) -> Self {
        Self(Some(exprs.into()))
    }
}

impl FromIterator<Expr> for SharedExprs {
    fn from_iter<I: IntoIterator<Item = Expr>>(exprs: I) -> Self {
        Self(Some(exprs.into_iter().collect()))
    }
}

impl<'a> IntoIterator for &'a SharedExprs {
    type Item = &'a Expr;
    type IntoIter = std::slice::Iter<'a, Expr>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for SharedExpr {
    fn eq(&self, other: &Self) -> bool {
        // No shortcut for one object: a NaN in it does not equal itself.
        **self == **other
    }
}

impl PartialEq for SharedExprs {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for SharedExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl fmt::Debug for SharedExprs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl fmt::Display for SharedExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

impl Drop for SharedExpr {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            release(Part::One(shared));
        }
    }
}

impl Drop for SharedExprs {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            release(Part::List(shared));
        }
    }
}

/// A shared part of an expression.
enum Part {
    One(Arc<Expr>),
    List(Arc<[Expr]>),
}

/// Drops one owner of a part. If it was the last one, the parts inside it that have no other owner are dropped in a loop.
fn release(part: Part) {
    let mut pending = Vec::new();
    let mut next = Some(part);
    while let Some(part) = next {
        match part {
            Part::One(shared) => {
                if let Some(mut expr) = Arc::into_inner(shared) {
                    take_parts(&mut expr, &mut pending);
                }
            }
            Part::List(mut shared) => {
                for expr in Arc::get_mut(&mut shared).unwrap_or_default() {
                    take_parts(expr, &mut pending);
                }
            }
        }
        next = pending.pop();
    }
}

/// Moves the parts out of an expression that is about to be dropped. Dropping it then reaches no other expression.
fn take_parts(expr: &mut Expr, pending: &mut Vec<Part>) {
    let mut one = |part: &mut SharedExpr| pending.extend(part.0.take().map(Part::One));
    match expr {
        Expr::Int { .. } | Expr::Float { .. } | Expr::Var(_) => {}
        Expr::Unary(_, a) | Expr::Cast(_, a) | Expr::Broadcast { value: a, .. } => one(a),
        Expr::Binary(_, a, b) | Expr::Ramp { base: a, stride: b, .. } => [a, b].into_iter().for_each(one),
        Expr::Select(a, b, c) | Expr::IfThenElse(a, b, c) => [a, b, c].into_iter().for_each(one),
        Expr::Call(_, list) | Expr::Load { indices: list, .. } => pending.extend(list.0.take().map(Part::List)),
    }
}

/// Parts of an expression or a statement in their order: those of a list, then up to three others.
#[derive(Clone, Debug)]
pub struct Parts<'a, T> {
    list: std::slice::Iter<'a, T>,
    others: [Option<&'a T>; 3],
}

impl<'a, T> Parts<'a, T> {
    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn none() -> Self {
        Self::list(&[])
    }

    pub(crate) fn list(list: &'a [T]) -> Self {
        Self { list: list.iter(), others: [None; 3] }
    }

    pub(crate) fn one(a: &'a T) -> Self {
        Self::none().then(a)
    }

    pub(crate) fn two(a: &'a T, b: &'a T) -> Self {
        Self { list: [].iter(), others: [Some(a), Some(b), None] }
    }

    pub(crate) fn three(a: &'a T, b: &'a T, c: &'a T) -> Self {
        Self { list: [].iter(), others: [Some(a), Some(b), Some(c)] }
    }

    /// The parts so far, which are a list at most, and one more.
    pub(crate) fn then(mut self, a: &'a T) -> Self {
        self.others[0] = Some(a);
        self
    }
}

impl<'a, T> Iterator for Parts<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        self.list.next().or_else(|| {
            let first = self.others[0].take();
            self.others.rotate_left(1);
            first
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.list.len() + self.others.iter().flatten().count();
        (len, Some(len))
    }
}

impl<T> DoubleEndedIterator for Parts<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let last = self.others.iter_mut().rev().find_map(Option::take);
        last.or_else(|| self.list.next_back())
    }
}

impl<T> ExactSizeIterator for Parts<'_, T> {}

#[cfg(test)]
mod tests {
    use crate::{BinaryOp, Buffer, Expr, ScalarType, SharedExpr, UnaryOp, Var};

    /// Far deeper than the stack of a test's thread bears a recursion.
    const DEEP: usize = 1_000_000;

    #[test]
    fn a_deep_expression_is_dropped_without_recursion() {
        let i = Expr::from(Var::index("i"));
        let left = (0..DEEP).fold(i.clone(), |sum, _| sum + Expr::int(1));
        let right = (0..DEEP).fold(i.clone(), |sum, _| Expr::int(1) + sum);
        let table = Buffer::compact("T", ScalarType::Int32, vec![Expr::int(8)]);
        let chased = (0..DEEP).fold(i, |at, _| Expr::load(&table, vec![at]));
        drop((left, right, chased));
    }

    #[test]
    fn a_part_that_is_held_elsewhere_outlives_the_whole() {
        let i = Expr::from(Var::index("i"));
        let shared = SharedExpr::new(i + Expr::int(1));
        let whole = Expr::Binary(BinaryOp::Mul, shared.clone(), shared.clone());
        let Expr::Binary(_, lhs, rhs) = &whole else { unreachable!("a product was built") };
        assert!(lhs.is_same(rhs) && lhs.is_same(&shared));
        drop(whole);
        assert_eq!(shared.to_string(), "i + 1");
        assert_eq!(shared.into_expr().to_string(), "i + 1");
    }

    #[test]
    fn parts_come_in_their_order_from_both_ends() {
        let [a, b, c] = ["a", "b", "c"].map(|name| Expr::from(Var::index(name)));
        let chosen = Expr::Select(a.clone().into(), b.clone().into(), c.clone().into());
        assert_eq!(chosen.children().len(), 3);
        assert_eq!(chosen.children().cloned().collect::<Vec<_>>(), [a.clone(), b.clone(), c.clone()]);
        assert_eq!(chosen.children().rev().cloned().collect::<Vec<_>>(), [c.clone(), b.clone(), a.clone()]);
        let mut both = chosen.children();
        assert_eq!((both.next(), both.next_back(), both.len()), (Some(&a), Some(&c), 1));
        assert_eq!((both.next(), both.next()), (Some(&b), None));
        let buffer = Buffer::compact("A", ScalarType::Int32, vec![Expr::int(8); 2]);
        let store = crate::Stmt::store(&buffer, vec![a.clone(), b.clone()], Expr::unary(UnaryOp::Neg, c));
        let listed: Vec<_> = store.exprs().map(ToString::to_string).collect();
        assert_eq!(listed, ["a", "b", "-c"]);
    }
}

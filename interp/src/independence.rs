//! Which serial loops may run their iterations concurrently: a conservative test.
//!
//! A loop over `i` is independent if, for every allocation that its body writes, all accesses go through the same buffer
//! and there is an axis on which different iterations have different indices. The test for an axis: every index on it
//! is `c * i + outer + inner` with the same `c` and the same loop-invariant part `outer`, and the values of `inner`
//! span less than `|c|`.
//!
//! ```text
//! for i in 8: for j in 4: B[4 * i + j] = B[4 * i + j] + A[i]      independent: c = 4, inner in 0..=3
//! for i in 8: for j in 4: B[4 * i + j] = B[4 * i + j + 1]         not: inner in 0..=4
//! ```

use std::collections::HashMap;

use tilewright_ir::{BinaryOp, Bindings, Buffer, Expr, For, Interval, ScalarType, Stmt, StmtKind, UnaryOp, Var};

/// The intervals of variables whose values are bounded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(HashMap<Var, Interval>);

impl Ranges {
    /// Creates ranges in which each given variable has only the given value.
    pub(crate) fn new(bindings: &Bindings) -> Self {
        #[expect(clippy::iter_over_hash_type, reason = "the order of insertion into a map does not matter")]
        let known = |bindings: &Bindings| {
            let mut map = HashMap::new();
            for (var, &value) in bindings {
                map.insert(var.clone(), Interval::point(value));
            }
            map
        };
        Self(known(bindings))
    }

    /// Records the range of a loop variable, if the loop's bounds are known.
    pub(crate) fn bind_loop(&mut self, inner: &For) {
        self.0.remove(&inner.var);
        if let (Some(min), Some(extent)) = (self.interval(&inner.min), self.interval(&inner.extent)) {
            let high = min.high.saturating_add((extent.high - 1).max(0));
            self.0.insert(inner.var.clone(), Interval { low: min.low, high });
        }
    }

    /// Records the range of a let-bound variable, if that of its value is known.
    pub(crate) fn bind_let(&mut self, var: &Var, value: &Expr) {
        self.0.remove(var);
        if let Some(interval) = self.interval(value) {
            self.0.insert(var.clone(), interval);
        }
    }

    /// An interval that contains all values of an integer expression. `None` if it is not known, or if a value may
    /// leave the type of some subexpression: it would wrap.
    pub(crate) fn interval(&self, expr: &Expr) -> Option<Interval> {
        let result = match expr {
            Expr::Int { value, .. } => Interval::point(*value),
            Expr::Var(var) => *self.0.get(var)?,
            Expr::Binary(op, a, b) => binary(*op, self.interval(a)?, self.interval(b)?)?,
            Expr::Unary(UnaryOp::Neg, a) => self.interval(a)?.checked_neg()?,
            Expr::Float { .. }
            | Expr::Unary(UnaryOp::Not | UnaryOp::BitNot, _)
            | Expr::Call(..)
            | Expr::Select(..)
            | Expr::IfThenElse(..)
            | Expr::Cast(..)
            | Expr::Ramp { .. }
            | Expr::Broadcast { .. }
            | Expr::Load { .. } => return None,
        };
        fits(expr.dtype().scalar, result).then_some(result)
    }
}

/// Whether all values of an interval are values of the type.
pub(crate) fn fits(ty: ScalarType, interval: Interval) -> bool {
    ty.integer_range().is_some_and(|(low, high)| Interval { low, high }.includes(interval))
}

/// The interval of an operator over the integers; `None` if it is not supported. Divisors must be positive constants.
fn binary(op: BinaryOp, a: Interval, b: Interval) -> Option<Interval> {
    let divisor = b.constant().filter(|divisor| *divisor > 0).map(Interval::point);
    match op {
        // These suffice for the indices that passes produce; the rest makes a loop dependent, which is always sound.
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::FloorDiv => a.floor_div(divisor?),
        BinaryOp::FloorMod => a.floor_mod(divisor?),
        BinaryOp::Min => Some(a.min(b)),
        BinaryOp::Max => Some(a.max(b)),
        BinaryOp::Div
        | BinaryOp::TruncDiv
        | BinaryOp::TruncMod
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Shl
        | BinaryOp::Shr
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge
        | BinaryOp::And
        | BinaryOp::Or => None,
    }
}

/// An index as `factor * i + outside + inside`, where `i` is the variable of the loop in question.
#[derive(Clone, Debug, Default)]
struct Linear {
    factor: i128,
    /// Loop-invariant terms with their factors.
    outside: Vec<(Expr, i128)>,
    /// The interval of the sum of all other terms.
    inside: Interval,
}

impl Linear {
    /// The product with a constant; `None` on overflow.
    fn scaled(mut self, by: i128) -> Option<Self> {
        self.factor = self.factor.checked_mul(by)?;
        for (_, factor) in &mut self.outside {
            *factor = factor.checked_mul(by)?;
        }
        self.inside = self.inside.checked_mul(Interval::point(by))?;
        Some(self)
    }

    /// The sum; `None` on overflow.
    fn plus(mut self, other: Self) -> Option<Self> {
        self.factor = self.factor.checked_add(other.factor)?;
        for (term, factor) in other.outside {
            match self.outside.iter_mut().find(|(known, _)| *known == term) {
                Some((_, known)) => *known = known.checked_add(factor)?,
                None => self.outside.push((term, factor)),
            }
        }
        self.outside.retain(|&(_, factor)| factor != 0);
        self.inside = self.inside.checked_add(other.inside)?;
        Some(self)
    }

    /// Whether factor and loop-invariant terms are equal, up to the order of the terms.
    fn matches(&self, other: &Self) -> bool {
        self.factor == other.factor
            && self.outside.len() == other.outside.len()
            && self.outside.iter().all(|term| other.outside.contains(term))
    }
}

/// All accesses to one allocation in a loop.
#[derive(Default)]
struct Accesses {
    buffers: Vec<Buffer>,
    written: bool,
    /// The indices of each access; `None` for an index that is not affine.
    indices: Vec<Vec<Option<Linear>>>,
}

/// Collects the accesses of a loop body.
struct Scan<'a> {
    /// The loop's variable.
    var: &'a Var,
    ranges: Ranges,
    /// Variables bound inside the loop.
    inner: Vec<Var>,
    /// Data variables allocated inside the loop, private to an iteration.
    private: Vec<Var>,
    /// Accesses by data variable.
    found: Vec<(Var, Accesses)>,
}

/// Returns whether different iterations of a serial loop access different elements, except in allocations that are only
/// read. False may also mean that the test cannot tell.
pub(crate) fn is_independent(inner: &For, ranges: &Ranges) -> bool {
    let mut ranges = ranges.clone();
    ranges.bind_loop(inner);
    let mut scan = Scan { var: &inner.var, ranges, inner: Vec::new(), private: Vec::new(), found: Vec::new() };
    scan.stmt(&inner.body);
    scan.found.iter().filter(|(_, accesses)| accesses.written).all(|(_, accesses)| are_disjoint(accesses))
}

/// Whether the accesses to an allocation by different iterations are to different elements.
fn are_disjoint(accesses: &Accesses) -> bool {
    let [buffer] = accesses.buffers.as_slice() else { return false };
    // With strides, different indices may have the same address.
    if buffer.strides.is_some() {
        return false;
    }
    (0..buffer.rank()).any(|axis| {
        let column: Option<Vec<&Linear>> = accesses.indices.iter().map(|row| row.get(axis)?.as_ref()).collect();
        let Some(column) = column else { return false };
        let Some(first) = column.first() else { return true };
        let low = column.iter().map(|index| index.inside.low).min().unwrap_or(0);
        let high = column.iter().map(|index| index.inside.high).max().unwrap_or(0);
        column.iter().all(|index| index.matches(first)) && high - low < first.factor.abs()
    })
}

impl Scan<'_> {
    /// Collects the accesses of a statement.
    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            // Variables and allocations are recorded before the expressions and the body that use them. They stay recorded
            // after their scope, which is harmless: no variable is bound twice, and no memory is allocated twice.
            StmtKind::For(inner) => {
                self.ranges.bind_loop(inner);
                self.inner.push(inner.var.clone());
            }
            StmtKind::Let { var, value, .. } => {
                self.ranges.bind_let(var, value);
                self.inner.push(var.clone());
            }
            StmtKind::Allocate { buffer, .. } => self.private.push(buffer.data.clone()),
            StmtKind::Store { buffer, indices, .. } => self.access(buffer, indices, true),
            StmtKind::DeclBuffer { .. }
            | StmtKind::If { .. }
            | StmtKind::Seq(_)
            | StmtKind::Evaluate(_)
            | StmtKind::Barrier
            | StmtKind::Attr { .. }
            | StmtKind::Assert { .. } => {}
        }
        for expr in stmt.exprs() {
            expr.walk(&mut |expr| {
                if let Expr::Load { buffer, indices } = expr {
                    self.access(buffer, indices, false);
                }
            });
        }
        for child in stmt.children() {
            self.stmt(child);
        }
    }

    /// Records an access, unless the memory is private to an iteration.
    fn access(&mut self, buffer: &Buffer, indices: &[Expr], write: bool) {
        if self.private.contains(&buffer.data) {
            return;
        }
        let row = indices.iter().map(|index| self.index(index)).collect();
        let at = self.found.iter().position(|(data, _)| *data == buffer.data).unwrap_or_else(|| {
            self.found.push((buffer.data.clone(), Accesses::default()));
            self.found.len() - 1
        });
        let accesses = &mut self.found[at].1;
        accesses.written |= write;
        accesses.indices.push(row);
        if !accesses.buffers.contains(buffer) {
            accesses.buffers.push(buffer.clone());
        }
    }

    /// An index as a linear expression. `None` if it is not linear, or if its value may leave its type: the expression
    /// over the integers would then differ from the wrapped one.
    fn index(&self, index: &Expr) -> Option<Linear> {
        let (base, last) = match index {
            Expr::Ramp { base, stride, lanes } => {
                (&**base, stride.as_const_int()?.checked_mul(i128::from(*lanes) - 1)?)
            }
            Expr::Broadcast { value, .. } => (&**value, 0),
            Expr::Int { .. }
            | Expr::Float { .. }
            | Expr::Var(_)
            | Expr::Binary(..)
            | Expr::Unary(..)
            | Expr::Call(..)
            | Expr::Select(..)
            | Expr::IfThenElse(..)
            | Expr::Cast(..)
            | Expr::Load { .. } => (index, 0),
        };
        let mut linear = self.linear(base)?;
        linear.inside = linear.inside.checked_add(Interval { low: last.min(0), high: last.max(0) })?;
        let var = *self.ranges.0.get(self.var)?;
        // Only the whole index has to fit its type: sums and products are exact modulo 2^bits, so wrapping in between
        // cancels.
        let mut total = var.checked_mul(Interval::point(linear.factor))?.checked_add(linear.inside)?;
        for (term, factor) in &linear.outside {
            total = total.checked_add(self.ranges.interval(term)?.checked_mul(Interval::point(*factor))?)?;
        }
        fits(base.dtype().scalar, total).then_some(linear)
    }

    /// An expression as a linear expression over the integers.
    fn linear(&self, expr: &Expr) -> Option<Linear> {
        match expr {
            Expr::Var(var) if var == self.var => Some(Linear { factor: 1, ..Linear::default() }),
            Expr::Binary(BinaryOp::Add, a, b) => self.linear(a)?.plus(self.linear(b)?),
            Expr::Binary(BinaryOp::Sub, a, b) => self.linear(a)?.plus(self.linear(b)?.scaled(-1)?),
            Expr::Binary(BinaryOp::Mul, a, b) => match (self.constant_factor(a), self.constant_factor(b)) {
                (Some(by), _) => self.linear(b)?.scaled(by),
                (_, Some(by)) => self.linear(a)?.scaled(by),
                (None, None) => self.term(expr),
            },
            Expr::Int { .. }
            | Expr::Float { .. }
            | Expr::Var(_)
            | Expr::Binary(..)
            | Expr::Unary(..)
            | Expr::Call(..)
            | Expr::Select(..)
            | Expr::IfThenElse(..)
            | Expr::Cast(..)
            | Expr::Ramp { .. }
            | Expr::Broadcast { .. }
            | Expr::Load { .. } => self.term(expr),
        }
    }

    /// The value of an expression that has only one.
    fn constant_factor(&self, expr: &Expr) -> Option<i128> {
        self.ranges.interval(expr)?.constant().filter(|_| !expr.vars().contains(self.var))
    }

    /// A term that does not contain the loop's variable; `None` if it does, or if its interval is unknown.
    fn term(&self, expr: &Expr) -> Option<Linear> {
        let vars = expr.vars();
        if vars.contains(self.var) {
            return None;
        }
        let interval = self.ranges.interval(expr)?;
        if interval.constant().is_some() || vars.iter().any(|var| self.inner.contains(var)) {
            return Some(Linear { inside: interval, ..Linear::default() });
        }
        Some(Linear { outside: vec![(expr.clone(), 1)], ..Linear::default() })
    }
}

#[cfg(test)]
mod tests;

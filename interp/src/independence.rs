//! Which serial loops may run their iterations at once: a conservative test.
//!
//! A loop is independent if, for every allocation that its body writes, all accesses go through one buffer, and on one
//! axis the indices of different iterations never meet: there each index is `c * i + r` with the same `c` and the same
//! dependence on what lies outside, and what varies inside `r` spans less than `c`.

use std::collections::HashMap;

use tilewright_ir::{BinaryOp, Bindings, Buffer, Expr, For, ScalarType, Stmt, StmtKind, UnaryOp, Var};

type Interval = (i128, i128);

/// The values that variables can take, where they are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(HashMap<Var, Interval>);

impl Ranges {
    pub(crate) fn new(bindings: &Bindings) -> Self {
        #[expect(clippy::iter_over_hash_type, reason = "the order of insertion into a map does not matter")]
        let known = |bindings: &Bindings| {
            let mut map = HashMap::new();
            for (var, &value) in bindings {
                map.insert(var.clone(), (value, value));
            }
            map
        };
        Self(known(bindings))
    }

    /// Notes the range of a loop variable.
    pub(crate) fn bind_loop(&mut self, inner: &For) {
        self.0.remove(&inner.var);
        if let (Some(min), Some(extent)) = (self.interval(&inner.min), self.interval(&inner.extent)) {
            let high = min.1.saturating_add((extent.1 - 1).max(0));
            self.0.insert(inner.var.clone(), (min.0, high));
        }
    }

    /// Notes the range of a bound variable.
    pub(crate) fn bind_let(&mut self, var: &Var, value: &Expr) {
        self.0.remove(var);
        if let Some(interval) = self.interval(value) {
            self.0.insert(var.clone(), interval);
        }
    }

    /// The values of an integer expression; none if they are not known or may leave its type.
    pub(crate) fn interval(&self, expr: &Expr) -> Option<Interval> {
        let result = match expr {
            Expr::Int { value, .. } => (*value, *value),
            Expr::Var(var) => *self.0.get(var)?,
            Expr::Binary(op, a, b) => combine(*op, self.interval(a)?, self.interval(b)?)?,
            Expr::Unary(UnaryOp::Neg, a) => {
                let (low, high) = self.interval(a)?;
                (-high, -low)
            }
            _ => return None,
        };
        fits(expr.dtype().scalar, result).then_some(result)
    }
}

/// Whether all values between two are the type's.
pub(crate) fn fits(ty: ScalarType, (low, high): Interval) -> bool {
    ty.integer_range().is_some_and(|(least, greatest)| least <= low && high <= greatest)
}

fn combine(op: BinaryOp, a: Interval, b: Interval) -> Option<Interval> {
    let positive = |(low, high): Interval| (low == high && low > 0).then_some(low);
    Some(match op {
        BinaryOp::Add => (a.0.checked_add(b.0)?, a.1.checked_add(b.1)?),
        BinaryOp::Sub => (a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?),
        BinaryOp::Mul => {
            let pairs = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)];
            let mut products = pairs.iter().map(|(x, y)| x.checked_mul(*y)).collect::<Option<Vec<_>>>()?;
            products.sort_unstable();
            (products[0], products[3])
        }
        BinaryOp::FloorDiv => (a.0.div_euclid(positive(b)?), a.1.div_euclid(positive(b)?)),
        BinaryOp::FloorMod => {
            let divisor = positive(b)?;
            if a.0 >= 0 && a.1 < divisor { a } else { (0, divisor - 1) }
        }
        BinaryOp::Min => (a.0.min(b.0), a.1.min(b.1)),
        BinaryOp::Max => (a.0.max(b.0), a.1.max(b.1)),
        _ => return None,
    })
}

/// An index as `factor * i + outside + inside`.
#[derive(Clone, Debug, Default)]
struct Linear {
    factor: i128,
    /// Terms that are the same in every iteration, with their factors.
    outside: Vec<(Expr, i128)>,
    /// The range of everything else.
    inside: Interval,
}

impl Linear {
    fn scaled(mut self, by: i128) -> Option<Self> {
        self.factor = self.factor.checked_mul(by)?;
        for (_, factor) in &mut self.outside {
            *factor = factor.checked_mul(by)?;
        }
        self.inside = combine(BinaryOp::Mul, self.inside, (by, by))?;
        Some(self)
    }

    fn plus(mut self, other: Self) -> Option<Self> {
        self.factor = self.factor.checked_add(other.factor)?;
        for (term, factor) in other.outside {
            match self.outside.iter_mut().find(|(known, _)| *known == term) {
                Some((_, known)) => *known = known.checked_add(factor)?,
                None => self.outside.push((term, factor)),
            }
        }
        self.outside.retain(|&(_, factor)| factor != 0);
        self.inside = combine(BinaryOp::Add, self.inside, other.inside)?;
        Some(self)
    }

    /// The same up to the order of the terms, apart from what varies inside.
    fn matches(&self, other: &Self) -> bool {
        self.factor == other.factor
            && self.outside.len() == other.outside.len()
            && self.outside.iter().all(|term| other.outside.contains(term))
    }
}

/// All accesses to an allocation in a loop.
#[derive(Default)]
struct Accesses {
    buffers: Vec<Buffer>,
    written: bool,
    /// One list of indices an access; none where an index is not understood.
    indices: Vec<Vec<Option<Linear>>>,
}

struct Scan<'a> {
    var: &'a Var,
    ranges: Ranges,
    /// Variables bound inside the loop.
    inner: Vec<Var>,
    /// Memory allocated inside the loop: private to an iteration.
    private: Vec<Var>,
    found: Vec<(Var, Accesses)>,
}

/// Whether the iterations of a serial loop can be shown to touch different memory, except for what they only read.
pub(crate) fn independent(inner: &For, ranges: &Ranges) -> bool {
    let mut ranges = ranges.clone();
    ranges.bind_loop(inner);
    let mut scan = Scan { var: &inner.var, ranges, inner: Vec::new(), private: Vec::new(), found: Vec::new() };
    scan.stmt(&inner.body);
    scan.found.iter().filter(|(_, accesses)| accesses.written).all(|(_, accesses)| apart(accesses))
}

fn apart(accesses: &Accesses) -> bool {
    let [buffer] = accesses.buffers.as_slice() else { return false };
    if buffer.strides.is_some() {
        return false;
    }
    (0..buffer.rank()).any(|axis| {
        let column: Option<Vec<&Linear>> = accesses.indices.iter().map(|row| row.get(axis)?.as_ref()).collect();
        let Some(column) = column else { return false };
        let Some(first) = column.first() else { return true };
        let low = column.iter().map(|index| index.inside.0).min().unwrap_or(0);
        let high = column.iter().map(|index| index.inside.1).max().unwrap_or(0);
        column.iter().all(|index| index.matches(first)) && high - low < first.factor.abs()
    })
}

impl Scan<'_> {
    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
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
            _ => {}
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

    /// An index as a linear expression whose value is known to fit its type, so that nothing wraps.
    fn index(&self, index: &Expr) -> Option<Linear> {
        let (base, last) = match index {
            Expr::Ramp { base, stride, lanes } => {
                (&**base, stride.as_const_int()?.checked_mul(i128::from(*lanes) - 1)?)
            }
            Expr::Broadcast { value, .. } => (&**value, 0),
            _ => (index, 0),
        };
        let mut linear = self.linear(base)?;
        linear.inside = combine(BinaryOp::Add, linear.inside, (last.min(0), last.max(0)))?;
        let (low, high) = *self.ranges.0.get(self.var)?;
        let mut total = combine(BinaryOp::Mul, (linear.factor, linear.factor), (low, high))?;
        total = combine(BinaryOp::Add, total, linear.inside)?;
        for (term, factor) in &linear.outside {
            let term = combine(BinaryOp::Mul, self.ranges.interval(term)?, (*factor, *factor))?;
            total = combine(BinaryOp::Add, total, term)?;
        }
        fits(base.dtype().scalar, total).then_some(linear)
    }

    fn linear(&self, expr: &Expr) -> Option<Linear> {
        match expr {
            Expr::Var(var) if var == self.var => Some(Linear { factor: 1, ..Linear::default() }),
            Expr::Binary(BinaryOp::Add, a, b) => self.linear(a)?.plus(self.linear(b)?),
            Expr::Binary(BinaryOp::Sub, a, b) => self.linear(a)?.plus(self.linear(b)?.scaled(-1)?),
            Expr::Binary(BinaryOp::Mul, a, b) => match (self.fixed(a), self.fixed(b)) {
                (Some(by), _) => self.linear(b)?.scaled(by),
                (_, Some(by)) => self.linear(a)?.scaled(by),
                (None, None) => self.term(expr),
            },
            _ => self.term(expr),
        }
    }

    fn fixed(&self, expr: &Expr) -> Option<i128> {
        let (low, high) = self.ranges.interval(expr)?;
        (low == high && !expr.vars().contains(self.var)).then_some(low)
    }

    /// A part of an index that does not depend on the loop's variable.
    fn term(&self, expr: &Expr) -> Option<Linear> {
        let vars = expr.vars();
        if vars.contains(self.var) {
            return None;
        }
        let interval = self.ranges.interval(expr)?;
        if interval.0 == interval.1 || vars.iter().any(|var| self.inner.contains(var)) {
            return Some(Linear { inside: interval, ..Linear::default() });
        }
        Some(Linear { outside: vec![(expr.clone(), 1)], ..Linear::default() })
    }
}

#[cfg(test)]
mod tests;

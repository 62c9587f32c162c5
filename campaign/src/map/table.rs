//! Evaluates expressions at all points of a box at once: brute force that is fast enough to check
//! every verdict.
//!
//! The code is independent of the judge's enumeration. Expressions that it cannot evaluate
//! column-wise (a division by zero in a branch that is not taken, a value beyond 64 bits) are
//! evaluated point by point by `ir`.

use std::cell::Cell;

use tilewright_ir::{BinaryOp, Bindings, Expr, MathFn, UnaryOp, Var};

/// The values of variables at a number of points, column-wise.
#[derive(Clone, Debug)]
pub struct Table {
    vars: Vec<Var>,
    columns: Vec<Vec<i64>>,
    symbols: Bindings,
    len: usize,
}

/// The values of an expression at all points.
#[derive(Clone, Debug)]
enum Column {
    /// The same value at every point.
    Same(i64),
    /// One value for each point.
    Each(Vec<i64>),
}

impl Column {
    /// The value at a point.
    fn at(&self, point: usize) -> i64 {
        match self {
            Self::Same(value) => *value,
            Self::Each(values) => values[point],
        }
    }
}

/// The number of points of a box; `None` if there are more than `most` or an extent is negative.
pub fn n_points(extents: &[i64], most: usize) -> Option<usize> {
    let count = extents.iter().try_fold(1usize, |count, &extent| count.checked_mul(usize::try_from(extent).ok()?));
    count.filter(|count| *count <= most)
}

impl Table {
    /// All points of a box in row-major order; `None` if there are more than `most`.
    pub fn of_box(vars: &[Var], extents: &[i64], symbols: &Bindings, most: usize) -> Option<Self> {
        let len = n_points(extents, most)?;
        let mut columns = vec![vec![0; len]; extents.len()];
        let mut period = 1;
        for (column, &extent) in columns.iter_mut().zip(extents).rev() {
            let mut value = 0;
            for run in column.chunks_mut(period) {
                run.fill(value);
                value = if value + 1 == extent { 0 } else { value + 1 };
            }
            period *= usize::try_from(extent).unwrap_or(1).max(1);
        }
        Some(Self { vars: vars.to_vec(), columns, symbols: symbols.clone(), len })
    }

    /// Points given by the values of each variable; all columns have the same length.
    pub fn of_columns(vars: &[Var], columns: Vec<Vec<i64>>, symbols: &Bindings) -> Self {
        let len = columns.first().map_or(1, Vec::len);
        Self { vars: vars.to_vec(), columns, symbols: symbols.clone(), len }
    }

    /// The number of points.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The values of the variables at a point.
    pub fn point(&self, at: usize) -> Vec<i64> {
        self.columns.iter().map(|column| column[at]).collect()
    }

    /// The values of the variables, one column each.
    pub fn columns(&self) -> &[Vec<i64>] {
        &self.columns
    }

    /// The value of an expression at each point; `None` if it has no value at some point.
    pub fn eval(&self, expr: &Expr) -> Option<Vec<i64>> {
        self.eval_fitting(expr).map(|(values, _)| values)
    }

    /// The value of an expression at each point, and whether every intermediate result fits its
    /// type.
    pub fn eval_fitting(&self, expr: &Expr) -> Option<(Vec<i64>, bool)> {
        let fits = Cell::new(true);
        let found = self.column(expr, None, &fits).map(|column| (self.spread(column), fits.get()));
        found.or_else(|| self.one_by_one(expr))
    }

    /// A column as a list.
    fn spread(&self, column: Column) -> Vec<i64> {
        match column {
            Column::Same(value) => vec![value; self.len],
            Column::Each(values) => values,
        }
    }

    /// Evaluates point by point with `ir`.
    fn one_by_one(&self, expr: &Expr) -> Option<(Vec<i64>, bool)> {
        let mut bindings = self.symbols.clone();
        let (mut values, mut fits) = (Vec::with_capacity(self.len), true);
        for at in 0..self.len {
            bindings.extend(self.vars.iter().cloned().zip(self.columns.iter().map(|column| i128::from(column[at]))));
            values.push(i64::try_from(expr.eval_index(&bindings).ok()?).ok()?);
            fits &= all_fits(expr, &bindings);
        }
        Some((values, fits))
    }

    /// Evaluates column-wise. `active` marks the points at which the value is needed: overflows in
    /// a branch that is not taken do not count.
    fn column(&self, expr: &Expr, active: Option<&[bool]>, fits: &Cell<bool>) -> Option<Column> {
        let found = match expr {
            // After `None`, `eval_fitting` goes point by point, where a branch that is not taken needs no value.
            Expr::Int { value, .. } => return i64::try_from(*value).ok().map(Column::Same),
            Expr::Var(var) => return self.var(var),
            Expr::Binary(op, lhs, rhs) => {
                let (a, b) = (self.column(lhs, active, fits)?, self.column(rhs, active, fits)?);
                binary(*op, &a, &b, lhs)?
            }
            Expr::Unary(UnaryOp::Neg, operand) => map(&self.column(operand, active, fits)?, i64::checked_neg)?,
            Expr::Unary(UnaryOp::Not, operand) => {
                map(&self.column(operand, active, fits)?, |value| Some(i64::from(value == 0)))?
            }
            Expr::Unary(UnaryOp::BitNot, operand) => map(&self.column(operand, active, fits)?, |value| Some(!value))?,
            Expr::Call(MathFn::Abs, args) => match &**args {
                [arg] => map(&self.column(arg, active, fits)?, i64::checked_abs)?,
                _ => return None,
            },
            // `Select` evaluates both values, so an overflow in either counts wherever the expression is evaluated.
            Expr::Select(condition, then, otherwise) => {
                let condition = self.column(condition, active, fits)?;
                let (a, b) = (self.column(then, active, fits)?, self.column(otherwise, active, fits)?);
                return Some(self.chosen(&condition, &a, &b));
            }
            Expr::IfThenElse(condition, then, otherwise) => {
                let condition = self.column(condition, active, fits)?;
                let part = |wanted: bool| -> Vec<bool> {
                    let is_active = |at: usize| active.is_none_or(|active| active[at]);
                    (0..self.len).map(|at| is_active(at) && (condition.at(at) != 0) == wanted).collect()
                };
                let a = self.column(then, Some(&part(true)), fits)?;
                let b = self.column(otherwise, Some(&part(false)), fits)?;
                return Some(self.chosen(&condition, &a, &b));
            }
            Expr::Float { .. }
            | Expr::Call(..)
            | Expr::Cast(..)
            | Expr::Ramp { .. }
            | Expr::Broadcast { .. }
            | Expr::Load { .. } => return None,
        };
        // Constants, variables and choices have returned: only a computed value can leave the range of its type.
        check_range(expr, &found, active, fits);
        Some(found)
    }

    /// The values of a variable or a symbol.
    fn var(&self, var: &Var) -> Option<Column> {
        match self.vars.iter().position(|known| known == var) {
            Some(axis) => Some(Column::Each(self.columns[axis].clone())),
            None => i64::try_from(*self.symbols.get(var)?).ok().map(Column::Same),
        }
    }

    /// The values of a conditional.
    fn chosen(&self, condition: &Column, a: &Column, b: &Column) -> Column {
        let one = |at: usize| if condition.at(at) != 0 { a.at(at) } else { b.at(at) };
        Column::Each((0..self.len).map(one).collect())
    }
}

/// Clears `fits` if a value at an active point exceeds the type of its expression.
fn check_range(expr: &Expr, found: &Column, active: Option<&[bool]>, fits: &Cell<bool>) {
    let Some((low, high)) = expr.dtype().scalar.integer_range().filter(|_| fits.get()) else { return };
    let inside = |value: i64| (low..=high).contains(&i128::from(value));
    let all = match (found, active) {
        (Column::Same(value), None) => inside(*value),
        (Column::Same(value), Some(active)) => inside(*value) || !active.contains(&true),
        (Column::Each(values), None) => values.iter().all(|value| inside(*value)),
        (Column::Each(values), Some(active)) => {
            values.iter().zip(active).all(|(value, active)| !*active || inside(*value))
        }
    };
    fits.set(all);
}

/// Applies a function to each value.
fn map(a: &Column, function: impl Fn(i64) -> Option<i64>) -> Option<Column> {
    match a {
        Column::Same(value) => function(*value).map(Column::Same),
        Column::Each(values) => values.iter().map(|value| function(*value)).collect::<Option<_>>().map(Column::Each),
    }
}

/// Applies an operator to each pair of values. Frequent operators are written out, the others use
/// `ir`.
fn binary(op: BinaryOp, a: &Column, b: &Column, lhs: &Expr) -> Option<Column> {
    match op {
        BinaryOp::Add => zip(a, b, i64::checked_add),
        BinaryOp::Sub => zip(a, b, i64::checked_sub),
        BinaryOp::Mul => zip(a, b, i64::checked_mul),
        BinaryOp::FloorDiv => zip(a, b, |a, b| {
            let (quotient, rest) = (a.checked_div(b)?, a.checked_rem(b)?);
            // Rounding towards zero gives one more than rounding down if the exact quotient is negative and no integer.
            Some(if rest != 0 && (rest < 0) != (b < 0) { quotient - 1 } else { quotient })
        }),
        BinaryOp::FloorMod => zip(a, b, |a, b| {
            let rest = a.checked_rem(b)?;
            Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
        }),
        BinaryOp::BitXor => zip(a, b, |a, b| Some(a ^ b)),
        BinaryOp::BitAnd => zip(a, b, |a, b| Some(a & b)),
        BinaryOp::Div
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
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::BitOr
        | BinaryOp::Shl
        | BinaryOp::Shr => {
            let ty = lhs.dtype().scalar;
            zip(a, b, |a, b| i64::try_from(op.eval_exact(a.into(), b.into(), ty).ok()?).ok())
        }
    }
}

/// Applies a function to each pair of values.
fn zip(a: &Column, b: &Column, function: impl Fn(i64, i64) -> Option<i64>) -> Option<Column> {
    match (a, b) {
        (Column::Same(a), Column::Same(b)) => function(*a, *b).map(Column::Same),
        (Column::Each(a), Column::Same(b)) => {
            a.iter().map(|a| function(*a, *b)).collect::<Option<_>>().map(Column::Each)
        }
        (Column::Same(a), Column::Each(b)) => {
            b.iter().map(|b| function(*a, *b)).collect::<Option<_>>().map(Column::Each)
        }
        (Column::Each(a), Column::Each(b)) => {
            a.iter().zip(b).map(|(a, b)| function(*a, *b)).collect::<Option<_>>().map(Column::Each)
        }
    }
}

/// Whether every intermediate result at one point fits its type; of a conditional, only the branch
/// that is taken counts.
fn all_fits(expr: &Expr, bindings: &Bindings) -> bool {
    if let Expr::IfThenElse(condition, then, otherwise) = expr {
        let chosen = if condition.eval_index(bindings).is_ok_and(|value| value != 0) { then } else { otherwise };
        return all_fits(condition, bindings) && all_fits(chosen, bindings);
    }
    let computed = matches!(expr, Expr::Binary(..) | Expr::Unary(..) | Expr::Call(..) | Expr::Cast(..));
    let range = expr.dtype().scalar.integer_range().filter(|_| computed);
    let fits =
        range.is_none_or(|(low, high)| expr.eval_index(bindings).is_ok_and(|value| (low..=high).contains(&value)));
    fits && expr.children().into_iter().all(|child| all_fits(child, bindings))
}

#[cfg(test)]
mod tests {
    use arbitrary::Unstructured;

    use super::*;
    use crate::case::Case;
    use crate::map::MapCase;
    use crate::{Config, bytes};

    #[test]
    fn tables_agree_with_evaluation_point_by_point() {
        let config = Config::default();
        for number in 0..300 {
            let bytes = bytes::of_case(5, "table", number);
            let case = MapCase::draw(&mut Unstructured::new(&bytes), &config).unwrap();
            let built = case.build().unwrap();
            let symbols: Bindings = built.symbols.iter().map(|symbol| (symbol.clone(), 3)).collect();
            let extent = |extent: &Expr| i64::try_from(extent.eval_index(&symbols).unwrap()).unwrap();
            let extents: Vec<i64> = built.map.domain().iter().map(extent).collect();
            let Some(table) = Table::of_box(built.map.vars(), &extents, &symbols, 1 << 9) else { continue };
            for output in built.map.outputs() {
                let fast = table.eval_fitting(output).unwrap();
                assert_eq!(fast, table.one_by_one(output).unwrap(), "{output} in {}", case.text());
            }
        }
    }

    #[test]
    fn a_branch_that_is_not_chosen_need_not_fit_nor_have_a_value() {
        let x = Var::index("x");
        let big = Expr::from(&x) * Expr::int(i64::from(i32::MAX));
        let guarded = |bad: Expr| {
            let condition = Expr::from(&x).lt(Expr::int(2));
            Expr::IfThenElse(condition.into(), Expr::from(&x).into(), bad.into())
        };
        let table = |extent: i64| Table::of_box(std::slice::from_ref(&x), &[extent], &Bindings::new(), 9).unwrap();
        assert_eq!(table(2).eval_fitting(&guarded(big.clone())), Some((vec![0, 1], true)));
        assert!(!table(3).eval_fitting(&guarded(big)).unwrap().1);
        let none = Expr::int(1).floor_div(Expr::int(0));
        assert_eq!(table(2).eval(&guarded(none.clone())), Some(vec![0, 1]));
        assert_eq!(table(3).eval(&guarded(none)), None);
    }
}

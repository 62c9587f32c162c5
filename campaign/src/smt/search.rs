//! Whether the assertions of a query can hold when some variables have given values.
//!
//! The encoding introduces variables for quotients, remainders and bits, and defines them by assertions. The search finds
//! them: an equation that is linear in what is missing determines an integer, or a bit by its parity; otherwise bits, and
//! integers between bounds, are tried one value after the other.
//!
//! ```text
//! 17 = 5 * q + r, 0 <= r, r < 5        r is tried from 0 to 4; only r = 2 leaves an integer for q
//! ```

use std::collections::BTreeMap;

use super::{Node, Script, Sort, Value};

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The assertions hold for some values of the variables that were not given.
    Satisfied,
    /// They hold for none.
    Contradicted,
    /// The search is not able to decide it.
    Open,
}

/// Number of times that all expressions may be evaluated for a search.
const EVALUATIONS: usize = 1500;
/// The most values of an integer that are tried.
const MOST_VALUES: i128 = 300;

/// The values of declared functions.
pub type Functions<'a> = &'a dyn Fn(&str, &[i128]) -> Option<i128>;

/// A search.
struct Search<'s> {
    script: &'s Script,
    functions: Functions<'s>,
    /// Evaluations that are left.
    left: usize,
}

/// What the open assertions say about a variable.
enum Progress {
    /// Nothing can be concluded.
    Nothing,
    /// A variable has a value now.
    Forced,
    /// They cannot hold.
    Contradiction,
}

/// A sum of variables with coefficients, and a constant.
struct Linear {
    constant: i128,
    coefficients: BTreeMap<usize, i128>,
}

/// Whether the assertions can hold; `variables` has the values of the declared constants, in their order.
pub fn satisfiable(script: &Script, variables: &[Option<Value>], functions: Functions<'_>) -> Answer {
    let mut values = variables.to_vec();
    Search { script, functions, left: EVALUATIONS }.solve(&mut values)
}

impl Search<'_> {
    /// Decides the assertions; on the way, values are given to variables.
    fn solve(&mut self, values: &mut [Option<Value>]) -> Answer {
        loop {
            if self.left == 0 {
                return Answer::Open;
            }
            self.left -= 1;
            let known = self.script.values(values, self.functions);
            let mut open = Vec::new();
            for assertion in &self.script.assertions {
                match known[*assertion] {
                    Some(Value::Bool(true)) => {}
                    Some(_) => return Answer::Contradicted,
                    None => self.split(*assertion, &known, &mut open),
                }
            }
            if open.is_empty() {
                return Answer::Satisfied;
            }
            match self.conclude(&open, &known, values) {
                Progress::Forced => {}
                Progress::Contradiction => return Answer::Contradicted,
                Progress::Nothing => return self.branch(&open, &known, values),
            }
        }
    }

    /// Splits an expression that has to hold into parts that have to.
    fn split(&self, node: usize, known: &[Option<Value>], open: &mut Vec<usize>) {
        match &self.script.nodes[node] {
            Node::Call("and", parts) => {
                for part in parts.iter().filter(|part| known[**part].is_none()) {
                    self.split(*part, known, open);
                }
            }
            Node::Call("=>", parts) if known[parts[0]].is_some() => self.split(parts[1], known, open),
            Node::Call("ite", parts) => match known[parts[0]] {
                Some(Value::Bool(condition)) => self.split(parts[if condition { 1 } else { 2 }], known, open),
                _ => open.push(node),
            },
            _ => open.push(node),
        }
    }

    /// The difference of the two sides of an equation or comparison of integers, if it is linear in what is missing.
    fn difference(&self, node: usize, operators: &[&str], known: &[Option<Value>]) -> Option<(Linear, &'static str)> {
        let Node::Call(operator, parts) = &self.script.nodes[node] else { return None };
        if !operators.contains(operator) || self.script.sorts[parts[0]] != Sort::Int {
            return None;
        }
        let mut sum = Linear { constant: 0, coefficients: BTreeMap::new() };
        self.linear(parts[0], 1, known, &mut sum)?;
        self.linear(parts[1], -1, known, &mut sum)?;
        sum.coefficients.retain(|_, coefficient| *coefficient != 0);
        Some((sum, *operator))
    }

    /// Adds `factor` times an expression to a sum; `None` if the expression is not linear.
    fn linear(&self, node: usize, factor: i128, known: &[Option<Value>], sum: &mut Linear) -> Option<()> {
        if let Some(Value::Int(value)) = known[node] {
            sum.constant = sum.constant.checked_add(factor.checked_mul(value)?)?;
            return Some(());
        }
        match &self.script.nodes[node] {
            Node::Variable(at) => {
                let coefficient = sum.coefficients.entry(*at).or_insert(0);
                *coefficient = coefficient.checked_add(factor)?;
                Some(())
            }
            Node::Call("+", parts) => parts.iter().try_for_each(|part| self.linear(*part, factor, known, sum)),
            Node::Call("-", parts) => match parts.as_slice() {
                [only] => self.linear(*only, -factor, known, sum),
                [first, rest @ ..] => {
                    self.linear(*first, factor, known, sum)?;
                    rest.iter().try_for_each(|part| self.linear(*part, -factor, known, sum))
                }
                [] => None,
            },
            Node::Call("*", parts) => match (known[parts[0]], known[*parts.get(1)?], parts.len()) {
                (Some(Value::Int(by)), None, 2) => self.linear(parts[1], factor.checked_mul(by)?, known, sum),
                (None, Some(Value::Int(by)), 2) => self.linear(parts[0], factor.checked_mul(by)?, known, sum),
                _ => None,
            },
            Node::Call("ite", parts) => match (known[parts[0]], &self.script.nodes[parts[0]]) {
                (Some(Value::Bool(condition)), _) => {
                    self.linear(parts[if condition { 1 } else { 2 }], factor, known, sum)
                }
                (None, Node::Variable(at)) => match (known[parts[1]], known[parts[2]]) {
                    (Some(Value::Int(then)), Some(Value::Int(otherwise))) => {
                        sum.constant = sum.constant.checked_add(factor.checked_mul(otherwise)?)?;
                        let coefficient = sum.coefficients.entry(*at).or_insert(0);
                        *coefficient = coefficient.checked_add(factor.checked_mul(then.checked_sub(otherwise)?)?)?;
                        Some(())
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// Gives a value to one variable that the open expressions determine.
    fn conclude(&self, open: &[usize], known: &[Option<Value>], values: &mut [Option<Value>]) -> Progress {
        for node in open {
            let Some((sum, _)) = self.difference(*node, &["="], known) else { continue };
            for (&at, &coefficient) in &sum.coefficients {
                let others = sum.coefficients.iter().filter(|(other, _)| **other != at);
                let step = others.fold(0, |step, (_, coefficient)| gcd(step, coefficient.abs()));
                let fits = |value: i128| {
                    let rest = sum.constant + coefficient * value;
                    if step == 0 { rest == 0 } else { rest % step == 0 }
                };
                let value = match self.script.variables[at].1 {
                    Sort::Bool => match (fits(0), fits(1)) {
                        (true, true) => continue,
                        (false, false) => return Progress::Contradiction,
                        (_, value) => Value::Bool(value),
                    },
                    _ if step != 0 => continue,
                    _ if sum.constant % coefficient != 0 => return Progress::Contradiction,
                    _ => Value::Int(-(sum.constant / coefficient)),
                };
                values[at] = Some(value);
                return Progress::Forced;
            }
        }
        Progress::Nothing
    }

    /// The bounds of integers that comparisons with one variable state.
    fn bounds(&self, open: &[usize], known: &[Option<Value>]) -> BTreeMap<usize, (Option<i128>, Option<i128>)> {
        let mut found: BTreeMap<usize, (Option<i128>, Option<i128>)> = BTreeMap::new();
        for node in open {
            let Some((sum, operator)) = self.difference(*node, &["<", "<="], known) else { continue };
            let mut variables = sum.coefficients.iter();
            let (Some((&at, &coefficient)), None) = (variables.next(), variables.next()) else { continue };
            if self.script.variables[at].1 != Sort::Int {
                continue;
            }
            // coefficient * x + constant <= 0, after one is added for `<`.
            let limit = -(sum.constant + i128::from(operator == "<"));
            let (low, high) = found.entry(at).or_default();
            if coefficient > 0 {
                let bound = limit.div_euclid(coefficient);
                *high = Some(high.map_or(bound, |high: i128| high.min(bound)));
            } else {
                let bound = -limit.div_euclid(-coefficient);
                *low = Some(low.map_or(bound, |low: i128| low.max(bound)));
            }
        }
        found
    }

    /// Tries the values of one variable.
    fn branch(&mut self, open: &[usize], known: &[Option<Value>], values: &[Option<Value>]) -> Answer {
        let mut best: Option<(usize, i128, i128)> = None;
        for (at, bounds) in self.bounds(open, known) {
            let (Some(low), Some(high)) = bounds else { continue };
            if best.is_none_or(|(_, least, most)| high - low < most - least) {
                best = Some((at, low, high));
            }
        }
        let candidates: (usize, Vec<Value>) = match best {
            Some((at, low, high)) if high - low < MOST_VALUES => (at, (low..=high).map(Value::Int).collect()),
            _ => match open.iter().find_map(|node| self.missing_bit(*node, known)) {
                Some(at) => (at, vec![Value::Bool(false), Value::Bool(true)]),
                None => return Answer::Open,
            },
        };
        let mut result = Answer::Contradicted;
        for value in candidates.1 {
            let mut tried = values.to_vec();
            tried[candidates.0] = Some(value);
            match self.solve(&mut tried) {
                Answer::Satisfied => return Answer::Satisfied,
                Answer::Open => result = Answer::Open,
                Answer::Contradicted => {}
            }
        }
        result
    }

    /// A truth value without a value that an expression depends on.
    fn missing_bit(&self, node: usize, known: &[Option<Value>]) -> Option<usize> {
        if known[node].is_some() {
            return None;
        }
        match &self.script.nodes[node] {
            Node::Variable(at) => (self.script.variables[*at].1 == Sort::Bool).then_some(*at),
            Node::Call(_, parts) | Node::Function(_, parts) => {
                parts.iter().find_map(|part| self.missing_bit(*part, known))
            }
            Node::Value(_) => None,
        }
    }
}

/// The greatest common divisor of two numbers that are not negative.
fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(assertion: &str, x: i128) -> Answer {
        let declared = "(declare-const x Int)(declare-const q Int)(declare-const r Int)(declare-const b Bool)";
        let script = Script::read(&format!("{declared}(assert {assertion})")).unwrap();
        satisfiable(&script, &[Some(Value::Int(x)), None, None, None], &|_, _| None)
    }

    #[test]
    fn quotients_and_bits_are_found() {
        let quotient = |q: i64| format!("(and (= x (+ (* 5 q) r)) (<= 0 r) (< r 5) (= q (- {q})))");
        assert_eq!(answer(&quotient(4), -17), Answer::Satisfied);
        assert_eq!(answer(&quotient(3), -17), Answer::Contradicted);
        assert_eq!(answer("(and (= x (+ (* 2 q) (ite b 1 0))) b)", 7), Answer::Satisfied);
        assert_eq!(answer("(and (= x (+ (* 2 q) (ite b 1 0))) b)", 8), Answer::Contradicted);
        assert_eq!(answer("(= x (* 2 q))", 7), Answer::Contradicted);
        assert_eq!(answer("(= x (* q q))", 9), Answer::Open);
        assert_eq!(answer("(and (<= (* 3 q) 8) (<= 7 (* 3 q)))", 0), Answer::Contradicted);
        assert_eq!(answer("(and (<= (* 3 q) 9) (<= 7 (* 3 q)))", 0), Answer::Satisfied);
    }
}

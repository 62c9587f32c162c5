//! The values of expressions, as SMT-LIB defines them, where some variables may have no value.
//!
//! `div` and `mod` are Euclidean: `(div (- 7) 2)` is -4 and `(div (- 7) (- 2))` is 4, the remainder is never negative. What
//! the standard leaves open, such as `(div x 0)`, has no value here.

use super::{Node, Script, Sort, Value};

/// The bits of a width that are set in all ones.
fn ones(width: u32) -> u128 {
    (1 << width) - 1
}

/// The bits as a number in two's complement.
fn signed(bits: u128, width: u32) -> i128 {
    let value = i128::try_from(bits).unwrap_or(0);
    if bits >> (width - 1) == 0 { value } else { value - (1 << width) }
}

/// The bits of a number in two's complement of a width.
pub fn bits_of(value: i128, width: u32) -> u128 {
    u128::try_from(value.rem_euclid(1 << width)).unwrap_or(0)
}

impl Script {
    /// The value of every expression; `None` if it depends on a variable that has none, is left open by the standard, or
    /// does not fit 128 bits. `functions` gives the values of the declared functions.
    pub fn values(
        &self,
        variables: &[Option<Value>],
        functions: &dyn Fn(&str, &[i128]) -> Option<i128>,
    ) -> Vec<Option<Value>> {
        let mut found: Vec<Option<Value>> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let value = match node {
                Node::Value(value) => Some(*value),
                Node::Variable(at) => variables.get(*at).copied().flatten(),
                Node::Call(operator, operands) => {
                    let values: Vec<Option<Value>> = operands.iter().map(|operand| found[*operand]).collect();
                    let width = match operands.first().map(|operand| self.sorts[*operand]) {
                        Some(Sort::Bits(width)) => width,
                        _ => 1,
                    };
                    call(operator, &values, width)
                }
                Node::Function(name, operands) => {
                    let integer = |operand: &usize| match found[*operand] {
                        Some(Value::Int(value)) => Some(value),
                        _ => None,
                    };
                    let values: Option<Vec<i128>> = operands.iter().map(integer).collect();
                    values.and_then(|values| functions(name, &values)).map(Value::Int)
                }
            };
            found.push(value);
        }
        found
    }
}

/// The value of an operator.
fn call(operator: &str, values: &[Option<Value>], width: u32) -> Option<Value> {
    let truth = |value: &Option<Value>| matches!(value, Some(Value::Bool(true)));
    let falsity = |value: &Option<Value>| matches!(value, Some(Value::Bool(false)));
    // The connectives may be decided by some of their operands.
    match (operator, values) {
        ("and", _) if values.iter().any(falsity) => return Some(Value::Bool(false)),
        ("or", _) if values.iter().any(truth) => return Some(Value::Bool(true)),
        ("=>", [premise, conclusion]) if falsity(premise) || truth(conclusion) => return Some(Value::Bool(true)),
        ("ite", [Some(Value::Bool(condition)), then, otherwise]) => return if *condition { *then } else { *otherwise },
        _ => {}
    }
    let known: Vec<Value> = values.iter().copied().collect::<Option<_>>()?;
    match known.as_slice() {
        [Value::Bool(_), ..] => connective(operator, &known),
        [Value::Int(_), ..] => {
            let numbers: Vec<i128> =
                known.iter().map(|value| if let Value::Int(value) = value { *value } else { 0 }).collect();
            on_integers(operator, &numbers)
        }
        [Value::Bits(_), ..] => {
            let bits: Vec<u128> =
                known.iter().map(|value| if let Value::Bits(value) = value { *value } else { 0 }).collect();
            on_bits(operator, &bits, width)
        }
        [] => None,
    }
}

/// The value of a connective.
fn connective(operator: &str, values: &[Value]) -> Option<Value> {
    let is_true = |value: &Value| *value == Value::Bool(true);
    Some(Value::Bool(match (operator, values) {
        ("and", _) => values.iter().all(is_true),
        ("or", _) => values.iter().any(is_true),
        ("not", [value]) => !is_true(value),
        ("=>", [premise, conclusion]) => !is_true(premise) || is_true(conclusion),
        ("=", [a, b]) => a == b,
        ("distinct", [a, b]) => a != b,
        _ => return None,
    }))
}

/// The value of an operator of integers.
fn on_integers(operator: &str, values: &[i128]) -> Option<Value> {
    let folded = |combine: fn(i128, i128) -> Option<i128>| {
        let (first, rest) = values.split_first()?;
        rest.iter().try_fold(*first, |sum, value| combine(sum, *value)).map(Value::Int)
    };
    match (operator, values) {
        ("-", [a]) => a.checked_neg().map(Value::Int),
        ("+", _) => folded(i128::checked_add),
        ("-", _) => folded(i128::checked_sub),
        ("*", _) => folded(i128::checked_mul),
        ("div", _) => folded(i128::checked_div_euclid),
        ("mod", _) => folded(i128::checked_rem_euclid),
        ("=", [a, b]) => Some(Value::Bool(a == b)),
        ("distinct", [a, b]) => Some(Value::Bool(a != b)),
        ("<", [a, b]) => Some(Value::Bool(a < b)),
        ("<=", [a, b]) => Some(Value::Bool(a <= b)),
        _ => None,
    }
}

/// The value of an operator of bit-vectors of a width.
fn on_bits(operator: &str, values: &[u128], width: u32) -> Option<Value> {
    let folded = |combine: fn(u128, u128) -> u128| {
        let (first, rest) = values.split_first()?;
        Some(Value::Bits(rest.iter().fold(*first, |sum, value| combine(sum, *value) & ones(width))))
    };
    let [a, b] = match values {
        [a] if operator == "bvneg" => return Some(Value::Bits(a.wrapping_neg() & ones(width))),
        [a, b] => [*a, *b],
        _ => [0, 0],
    };
    let amount = u32::try_from(b).unwrap_or(u32::MAX);
    Some(match operator {
        "bvadd" => return folded(u128::wrapping_add),
        "bvmul" => return folded(u128::wrapping_mul),
        "bvand" => return folded(|a, b| a & b),
        "bvor" => return folded(|a, b| a | b),
        "bvxor" => return folded(|a, b| a ^ b),
        "bvsub" => Value::Bits(a.wrapping_sub(b) & ones(width)),
        "bvudiv" => Value::Bits(a.checked_div(b).unwrap_or(ones(width))),
        "bvurem" => Value::Bits(a.checked_rem(b).unwrap_or(a)),
        "bvshl" => Value::Bits(if amount < width { (a << amount) & ones(width) } else { 0 }),
        "bvashr" => Value::Bits(bits_of(signed(a, width) >> amount.min(width - 1), width)),
        "bvslt" => Value::Bool(signed(a, width) < signed(b, width)),
        "bvsle" => Value::Bool(signed(a, width) <= signed(b, width)),
        "=" => Value::Bool(a == b),
        "distinct" => Value::Bool(a != b),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of an expression without variables.
    fn value(text: &str) -> Option<Value> {
        let script = Script::read(&format!("(assert (= {text} {text}))")).unwrap();
        let at = match &script.nodes[script.assertions[0]] {
            Node::Call(_, operands) => operands[0],
            other => panic!("{other:?}"),
        };
        script.values(&[], &|_, _| None)[at]
    }

    #[test]
    fn operators_are_those_of_the_standard() {
        for (text, expected) in [
            ("(div (- 7) 2)", -4),
            ("(mod (- 7) 2)", 1),
            ("(div (- 7) (- 2))", 4),
            ("(mod (- 7) (- 2))", 1),
            ("(div 7 (- 2))", -3),
            ("(- 7 2 1)", 4),
            ("(ite (=> true false) 1 2)", 2),
        ] {
            assert_eq!(value(text), Some(Value::Int(expected)), "{text}");
        }
        assert_eq!(value("(div 7 0)"), None);
        for (text, expected) in [
            ("(bvudiv (_ bv7 4) (_ bv0 4))", 15),
            ("(bvurem (_ bv7 4) (_ bv0 4))", 7),
            ("(bvashr (_ bv12 4) (_ bv1 4))", 14),
            ("(bvashr (_ bv12 4) (_ bv9 4))", 15),
            ("(bvshl (_ bv3 4) (_ bv3 4))", 8),
            ("(bvneg (_ bv1 4))", 15),
            ("(bvmul (_ bv7 4) (_ bv7 4))", 1),
        ] {
            assert_eq!(value(text), Some(Value::Bits(expected)), "{text}");
        }
        assert_eq!(value("(bvslt (_ bv12 4) (_ bv3 4))"), Some(Value::Bool(true)));
    }
}

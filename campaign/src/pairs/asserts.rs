//! Changes of what a program asserts of a call: the same in other words, and mistakes.
//!
//! ```text
//! assert k < 3            assert not k >= 3            assert k < 4
//! assert -1 <= n          assert n > -2
//! ```

use super::nest::Function;
use super::recipe::Twist;

/// Comparisons, each with its opposite, and with the one for exchanged operands.
const COMPARISONS: [(&str, &str, &str); 6] =
    [("<=", ">", ">="), (">=", "<", "<="), ("==", "!=", "=="), ("!=", "==", "!="), ("<", ">=", ">"), (">", "<=", "<")];

/// A comparison of an integer with a number, as text.
struct Comparison<'a> {
    left: &'a str,
    /// The comparison, its opposite, and that of exchanged operands.
    how: (&'static str, &'static str, &'static str),
    number: i64,
}

impl<'a> Comparison<'a> {
    /// Reads one comparison; conditions that were reworded already may be several, or the opposite of one.
    fn read(text: &'a str) -> Option<Self> {
        let is_one = text.split(' ').all(|word| !["not", "and", "or"].contains(&word.trim_start_matches('(')));
        let (rest, number) = is_one.then(|| text.rsplit_once(' ')).flatten()?;
        let (left, operator) = rest.rsplit_once(' ')?;
        let how = *COMPARISONS.iter().find(|(symbol, ..)| *symbol == operator)?;
        Some(Self { left, how, number: number.parse().ok()? })
    }

    /// Returns an equivalent condition in another form.
    fn reworded(&self, by: i64) -> String {
        let Self { left, how: (operator, opposite, mirrored), number } = self;
        match (by.rem_euclid(4), *operator) {
            (0, _) => format!("not {left} {opposite} {number}"),
            (1, _) => format!("{number} {mirrored} {left}"),
            (2, "<") => format!("{left} <= {}", number - 1),
            (2, "<=") => format!("{left} < {}", number + 1),
            (2, ">") => format!("{left} >= {}", number + 1),
            (2, ">=") => format!("{left} > {}", number - 1),
            (2 | 3, "==") => format!("{left} <= {number} and {left} >= {number}"),
            (2 | 3, "!=") => format!("({left} < {number} or {left} > {number})"),
            _ => format!("{left} {operator} {number} and {left} {operator} {number}"),
        }
    }
}

/// Asserts the same in other words, twice, or in another order; says whether there is an assertion of that form.
pub(super) fn reword(function: &mut Function, twist: Twist) -> bool {
    let count = function.premises.len();
    if count == 0 {
        return false;
    }
    let place = twist.place % count;
    match twist.by {
        -3 => function.premises.push(function.premises[place].clone()),
        -2 => function.premises.reverse(),
        by => {
            let Some(reworded) = Comparison::read(&function.premises[place]).map(|found| found.reworded(by)) else {
                return false;
            };
            function.premises[place] = reworded;
        }
    }
    true
}

/// Asserts something else: another number, the opposite, or nothing.
pub(super) fn alter(function: &mut Function, twist: Twist) -> bool {
    let count = function.premises.len();
    if count == 0 {
        return false;
    }
    let place = twist.place % count;
    let found = Comparison::read(&function.premises[place]);
    let changed = found.map(|Comparison { left, how: (operator, opposite, _), number }| match twist.by {
        0 => format!("{left} {opposite} {number}"),
        by => format!("{left} {operator} {}", number + by),
    });
    match changed {
        Some(changed) if twist.by != -3 => function.premises[place] = changed,
        _ => {
            function.premises.remove(place);
        }
    }
    true
}

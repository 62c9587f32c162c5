//! Compares the interpreter's operators with arithmetic that is written down here and shares no
//! code with it.
//!
//! One case is one operator on vectors of 128 operands: extremes of the type, NaN, infinities,
//! values half-way between two floats, negative operands. Operands for which an operator is
//! undefined are avoided.
//!
//! NaNs are equal to each other whatever their bits are, and a zero is equal to a negative zero.

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_interp::{Arguments, Tensor, run};
use tilewright_ir::{Scalar, ScalarType, TypeClass, validate};

use crate::case::Case;
use crate::chain::interpreter_config;
use crate::config::Config;
use crate::oracle::{Environment, Failure, Oracle, Outcome, Tally};

/// Number of operands of a case.
const OPERANDS: u64 = 128;

/// The integer types.
const INTEGERS: [ScalarType; 7] = [
    ScalarType::Int8,
    ScalarType::Int16,
    ScalarType::Int32,
    ScalarType::Int64,
    ScalarType::UInt8,
    ScalarType::UInt16,
    ScalarType::UInt32,
];

/// The float types.
const FLOATS: [ScalarType; 4] = [ScalarType::Float16, ScalarType::BFloat16, ScalarType::Float32, ScalarType::Float64];

/// The operators on integers, as TVMScript on operands `a` and `b`.
const INTEGER_OPERATORS: [&str; 12] = [
    "a + b",
    "a - b",
    "a * b",
    "a // b",
    "a % b",
    "T.truncdiv(a, b)",
    "T.truncmod(a, b)",
    "T.min(a, b)",
    "T.max(a, b)",
    "a << b",
    "a >> b",
    "T.Select(a < b, a, b)",
];

/// The operators on floats.
const FLOAT_OPERATORS: [&str; 7] =
    ["a + b", "a - b", "a * b", "a / b", "T.min(a, b)", "T.max(a, b)", "T.Select(a <= b, a, b)"];

/// A case: an operator and the seed of its operands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// Index of the operands' type, integers first.
    pub ty: usize,
    /// Index of the type to which `a` is converted; `None` for an operator on two operands of one
    /// type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<usize>,
    /// Index of the operator, modulo the number of operators of the type.
    pub op: usize,
    /// Seed of the operands.
    pub seed: u64,
}

impl Operation {
    /// The type with this index.
    fn ty(number: usize) -> ScalarType {
        let number = number % (INTEGERS.len() + FLOATS.len());
        INTEGERS.get(number).copied().unwrap_or_else(|| FLOATS[number - INTEGERS.len()])
    }

    /// The operands' type, the result's type, and the operator.
    fn parts(&self) -> (ScalarType, ScalarType, &'static str) {
        let from = Self::ty(self.ty);
        let Some(to) = self.to else {
            let all: &[&str] = if from.is_float() { &FLOAT_OPERATORS } else { &INTEGER_OPERATORS };
            return (from, from, all[self.op % all.len()]);
        };
        (from, Self::ty(to), "a")
    }
}

impl Case for Operation {
    /// Draws a type out of 11 and an operator out of 12; one case in three is a conversion, to any
    /// of the 11 types. The operands follow from a seed of 16 bits.
    fn draw(u: &mut Unstructured<'_>, _: &Config) -> arbitrary::Result<Self> {
        let (ty, op) = (u.int_in_range(0..=10)?, u.int_in_range(0..=11)?);
        let to = if u.ratio(1, 3)? { Some(u.int_in_range(0..=10)?) } else { None };
        Ok(Self { ty, to, op, seed: u64::from(u.arbitrary::<u16>()?) })
    }

    fn simpler(&self) -> Vec<Self> {
        Vec::new()
    }

    fn features(&self) -> Vec<String> {
        let (from, to, op) = self.parts();
        let op = if self.to.is_some() { format!("op:cast to {to}") } else { format!("op:{op}") };
        vec![format!("dtype:{from}"), op]
    }

    fn text(&self) -> String {
        let (from, to, op) = self.parts();
        let value = if self.to.is_some() { format!("T.Cast(\"{to}\", A[i])") } else { on_elements(op) };
        format!(
            "from tvm.script import tir as T\n\n@T.prim_func\ndef main(A: T.Buffer(({OPERANDS},), \"{from}\"), B: \
             T.Buffer(({OPERANDS},), \"{from}\"), C: T.Buffer(({OPERANDS},), \"{to}\")):\n    for i in \
             range({OPERANDS}):\n        C[i] = {value}\n"
        )
    }
}

/// The operator applied to elements of the two buffers.
fn on_elements(op: &str) -> String {
    op.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric()).fold(String::new(), |mut text, word| {
        let name = word.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let rest = &word[name.len()..];
        text.push_str(match name {
            "a" => "A[i]",
            "b" => "B[i]",
            other => other,
        });
        text.push_str(rest);
        text
    })
}

/// A generator of pseudo-random numbers (`SplitMix64`).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A value of a type: with equal probability an extreme one, any one, or (twice) a small one.
    fn value(&mut self, ty: ScalarType) -> Scalar {
        let (kind, bits) = (self.next() % 4, self.next());
        let small = i8::try_from(bits % 41).unwrap_or(0) - 20;
        let Some((low, high)) = ty.integer_range().filter(|_| !ty.is_float()) else {
            let extreme =
                [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e10, -1e10, 65504.0, 3e38, 1e-7, 0.5];
            let any = f64::from(u32::try_from(bits >> 40).unwrap_or(0)) / 8192.0 - 1024.0;
            let value = match kind {
                0 => extreme[usize::try_from(bits % 11).unwrap_or(0)],
                1 => any,
                2 => any / 1024.0,
                _ => f64::from(small) / 2.0,
            };
            return Scalar::Float(rounded(ty, value));
        };
        Scalar::Int(match kind {
            0 => [low, high, low + 1, high - 1, 0, 1][usize::try_from(bits % 6).unwrap_or(0)],
            1 => low + i128::from(bits) % (high - low + 1),
            _ => i128::from(small).clamp(low, high),
        })
    }
}

/// Rounds to the nearest float of a type, ties to even. Written without the interpreter's
/// conversion: the unit in the last place follows from the exponent, and `f64` divides by it
/// exactly.
fn rounded(ty: ScalarType, value: f64) -> f64 {
    let (digits, least, most) = match ty {
        ScalarType::Float16 => (11, -14, 65504.0),
        ScalarType::BFloat16 => (8, -126, 2f64.powi(127) * (2.0 - 2f64.powi(-7))),
        #[expect(clippy::cast_possible_truncation, reason = "rounding is what is asked for")]
        ScalarType::Float32 => return f64::from(value as f32),
        _ => return value,
    };
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let exponent = i32::try_from((value.to_bits() >> 52) & 0x7ff).unwrap_or(0) - 1023;
    let unit = 2f64.powi(exponent.max(least) - digits + 1);
    let near = (value / unit).round_ties_even() * unit;
    if near.abs() > most { f64::INFINITY.copysign(value) } else { near }
}

/// Reduces an integer modulo the range of a type.
fn wrapped(ty: ScalarType, value: i128) -> i128 {
    let Some((low, high)) = ty.integer_range() else { return value };
    low + (value - low).rem_euclid(high - low + 1)
}

/// Converts a value to another type: floats to integers by truncation and saturation, NaN to 0;
/// integers to integers by wrapping.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "this is what conversion is")]
fn converted(to: ScalarType, value: Scalar) -> Scalar {
    match (value, to.is_float()) {
        (Scalar::Int(whole), true) if to == ScalarType::Float32 => Scalar::Float(f64::from(whole as f32)),
        (Scalar::Int(whole), true) => Scalar::Float(rounded(to, whole as f64)),
        (Scalar::Float(value), true) => Scalar::Float(rounded(to, value)),
        (Scalar::Int(whole), false) => Scalar::Int(wrapped(to, whole)),
        (Scalar::Float(value), false) => {
            let (low, high) = to.integer_range().unwrap_or((0, 0));
            let whole = if value.is_nan() { 0 } else { value.trunc().clamp(low as f64, high as f64) as i128 };
            Scalar::Int(whole.clamp(low, high))
        }
    }
}

/// The expected result of an operator on integers; `None` where it is undefined.
fn expected_integer(ty: ScalarType, op: &str, a: i128, b: i128) -> Option<i128> {
    let floor =
        || (b != 0).then(|| (a - a.rem_euclid(b.abs()) - if b < 0 && a.rem_euclid(b.abs()) != 0 { b } else { 0 }) / b);
    let value = match op {
        "a + b" => a + b,
        "a - b" => a - b,
        "a * b" => a * b,
        "a // b" => floor()?,
        "a % b" => a - floor()? * b,
        "T.truncdiv(a, b)" => a.checked_div(b)?,
        "T.truncmod(a, b)" => a.checked_rem(b)?,
        "T.min(a, b)" | "T.Select(a < b, a, b)" => {
            if a < b {
                a
            } else {
                b
            }
        }
        "T.max(a, b)" => {
            if a < b {
                b
            } else {
                a
            }
        }
        "a << b" => wrapped(ty, a).checked_mul(1i128.checked_shl(u32::try_from(b).ok()?)?)?,
        "a >> b" => a.div_euclid(1i128.checked_shl(u32::try_from(b).ok()?)?),
        _ => return None,
    };
    Some(wrapped(ty, value))
}

/// The expected result of an operator on floats.
fn expected_float(ty: ScalarType, op: &str, a: f64, b: f64) -> Option<f64> {
    // `min` and `max` ignore a NaN if the other operand is a number.
    let least = |a: f64, b: f64| if a.is_nan() || b < a { b } else { a };
    #[expect(clippy::cast_possible_truncation, reason = "they are of that type")]
    let (x, y) = (a as f32, b as f32);
    let single = |value: f32| f64::from(value);
    let is_single = ty == ScalarType::Float32;
    Some(match op {
        "a + b" if is_single => single(x + y),
        "a - b" if is_single => single(x - y),
        "a * b" if is_single => single(x * y),
        "a / b" if is_single => single(x / y),
        "a + b" => rounded(ty, a + b),
        "a - b" => rounded(ty, a - b),
        "a * b" => rounded(ty, a * b),
        "a / b" => rounded(ty, a / b),
        "T.min(a, b)" => least(a, b),
        "T.max(a, b)" => -least(-a, -b),
        "T.Select(a <= b, a, b)" => {
            if a <= b {
                a
            } else {
                b
            }
        }
        _ => return None,
    })
}

/// Whether two values are equal, NaNs and zeros as described for the module.
#[expect(clippy::float_cmp, reason = "the same value is meant")]
fn is_same(a: Scalar, b: Scalar) -> bool {
    match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => a == b,
        (Scalar::Float(a), Scalar::Float(b)) => a == b || (a.is_nan() && b.is_nan()),
        _ => false,
    }
}

/// The oracle `arithmetic`; see the module.
#[derive(Debug, Default)]
pub struct Arithmetic;

impl Arithmetic {
    /// Creates the oracle, which uses the interpreter on one thread.
    ///
    /// # Errors
    /// Never.
    pub fn new(_: &Environment) -> Result<Self, String> {
        Ok(Self)
    }
}

/// The operands of a case. Divisors are neither 0 nor -1, and shift counts are below the number of
/// bits.
fn operands(case: &Operation) -> (Vec<Scalar>, Vec<Scalar>) {
    let (from, to, op) = case.parts();
    let mut numbers = Numbers(case.seed);
    let mut pair = || {
        let (mut a, mut b) = (numbers.value(from), numbers.value(from));
        if let (Scalar::Int(x), Scalar::Int(y)) = (a, b) {
            let bits = i128::from(from.bits());
            b = Scalar::Int(match op {
                "a << b" | "a >> b" => y.rem_euclid(bits),
                _ if y == 0 || y == -1 => 1,
                _ => y,
            });
            // `f64` holds integers up to 2^53; beyond, the expected value itself would be rounded
            // twice.
            a = Scalar::Int(if case.to.is_some() && to.is_float() { x.clamp(-(1 << 53), 1 << 53) } else { x });
        }
        (a, b)
    };
    (0..OPERANDS).map(|_| pair()).unzip()
}

/// A tensor with these values.
fn tensor(ty: ScalarType, values: &[Scalar]) -> Result<Tensor, String> {
    let mut tensor = Tensor::undefined(ty, &[OPERANDS]).map_err(|error| error.to_string())?;
    for (lane, value) in values.iter().enumerate() {
        tensor.set(lane, *value);
    }
    Ok(tensor)
}

/// Runs the program of a case in the interpreter; the value of each result, `None` if it is
/// undefined.
fn results(case: &Operation, a: &[Scalar], b: &[Scalar]) -> Result<Vec<Option<Scalar>>, String> {
    let (from, to, _) = case.parts();
    let module = tilewright_script::read_module(&case.text());
    let module = module.map_err(|found| found.first().map_or_else(String::new, ToString::to_string))?;
    let func = module.funcs.first().ok_or("no function")?;
    let valid = validate(func).map_err(|found| found.first().map_or_else(String::new, ToString::to_string))?;
    let empty = Tensor::undefined(to, &[OPERANDS]).map_err(|error| error.to_string())?;
    let mut arguments = Arguments::tensors(vec![tensor(from, a)?, tensor(from, b)?, empty]);
    run(valid, &mut arguments, &interpreter_config()).map_err(|error| error.to_string())?;
    let result = arguments.params.last().and_then(|argument| match argument {
        tilewright_interp::Argument::Tensor(tensor) => Some(tensor),
        tilewright_interp::Argument::Scalar(_) => None,
    });
    let result = result.ok_or("no result")?;
    Ok((0..a.len()).map(|lane| result.get(lane)).collect())
}

impl Oracle for Arithmetic {
    type Case = Operation;

    const NAME: &'static str = "arithmetic";

    fn check(&mut self, case: &Operation, tally: &mut Tally) -> Outcome {
        let (a, b) = operands(case);
        let (from, to, op) = case.parts();
        let found = match results(case, &a, &b) {
            Ok(found) => found,
            Err(why) => return Outcome::Invalid(why),
        };
        for ((a, b), found) in a.into_iter().zip(b).zip(found) {
            let wanted = match (case.to, a, b) {
                (Some(_), ..) => Some(converted(to, a)),
                (None, Scalar::Int(a), Scalar::Int(b)) => expected_integer(from, op, a, b).map(Scalar::Int),
                (None, Scalar::Float(a), Scalar::Float(b)) => expected_float(from, op, a, b).map(Scalar::Float),
                _ => None,
            };
            // An operation whose result is not defined for these operands may give any value.
            let Some(wanted) = wanted else { continue };
            if !found.is_some_and(|found| is_same(found, wanted)) {
                let what = if case.to.is_some() { "a conversion".to_owned() } else { format!("`{op}`") };
                let class = |ty: ScalarType| if ty.class() == TypeClass::Float { "floats" } else { "integers" };
                return Failure::outcome(
                    format!("{what} of {} is not what it should be", class(from)),
                    format!("{from} to {to}: a = {a:?}, b = {b:?}: {found:?} instead of {wanted:?}"),
                );
            }
            tally.count("values compared", 1);
        }
        Outcome::Held
    }
}

//! Constants in C: integers with the suffix of their type, floats exactly.

use tilewright_ir::ScalarType;

/// Returns a constant of an integer type or `bool` in C. The least value of a signed type is written as a difference: in C,
/// `-` is an operator, and its operand would not fit the type.
pub(crate) fn int_literal(value: i128, ty: ScalarType) -> String {
    match ty {
        ScalarType::Int32 if value == i128::from(i32::MIN) => "(-2147483647 - 1)".into(),
        ScalarType::Int64 if value == i128::from(i64::MIN) => "(-9223372036854775807L - 1L)".into(),
        ScalarType::Int64 => format!("{value}L"),
        ScalarType::UInt32 => format!("{value}U"),
        ScalarType::UInt64 => format!("{value}UL"),
        ScalarType::Bool
        | ScalarType::Int8
        | ScalarType::Int16
        | ScalarType::Int32
        | ScalarType::UInt8
        | ScalarType::UInt16
        | ScalarType::Float16
        | ScalarType::BFloat16
        | ScalarType::Float32
        | ScalarType::Float64
        | ScalarType::Handle => value.to_string(),
    }
}

/// Returns a float constant in C with exactly the given value: in decimal if that is short, else in C99's hexadecimal
/// notation. NaN and infinity are macros of the language.
pub(crate) fn float_literal(value: f64, ty: ScalarType) -> String {
    let double = ty == ScalarType::Float64;
    let cast = if double { "(double)" } else { "" };
    if value.is_nan() {
        return format!("{cast}NAN");
    }
    if value.is_infinite() {
        return if value > 0.0 { format!("{cast}INFINITY") } else { format!("(-{cast}INFINITY)") };
    }
    let end = if double { "" } else { "f" };
    if value.abs() < 1e6 && (value * 1024.0).fract() == 0.0 {
        return format!("{value:?}{end}");
    }
    format!("{}{end}", hex_float(value))
}

/// C99's hexadecimal notation, which is exact.
fn hex_float(value: f64) -> String {
    let bits = value.to_bits();
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let fraction = bits & ((1 << 52) - 1);
    let biased = i64::try_from(bits >> 52 & 0x7ff).unwrap_or(0);
    let (lead, exponent) = if biased == 0 { (0, -1022) } else { (1, biased - 1023) };
    let digits = format!("{fraction:013x}");
    let digits = digits.trim_end_matches('0');
    let dot = if digits.is_empty() { "" } else { "." };
    format!("{sign}0x{lead}{dot}{digits}p{exponent:+}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_exact() {
        assert_eq!(float_literal(2.0, ScalarType::Float32), "2.0f");
        assert_eq!(float_literal(-0.0, ScalarType::Float64), "-0.0");
        assert_eq!(float_literal(f64::from(0.1f32), ScalarType::Float32), "0x1.99999ap-4f");
        assert_eq!(float_literal(0.1, ScalarType::Float64), "0x1.999999999999ap-4");
        assert_eq!(float_literal(5e-324, ScalarType::Float64), "0x0.0000000000001p-1022");
        assert_eq!(float_literal(f64::NEG_INFINITY, ScalarType::Float32), "(-INFINITY)");
        assert_eq!(int_literal(i128::from(i64::MIN), ScalarType::Int64), "(-9223372036854775807L - 1L)");
    }
}

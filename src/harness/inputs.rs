//! Inputs by seed, and sample values for symbolic extents.

use tilewright_interp::Tensor;
use tilewright_ir::{Bindings, DataType, Diagnostic, Scalar, ScalarType, TypeClass, Var};

/// Values for symbolic extents that nobody gave: small, ragged and pairwise distinct.
const DEFAULT_EXTENTS: [i128; 12] = [2, 7, 9, 17, 5, 11, 13, 19, 23, 3, 29, 31];

/// A reproducible stream of numbers (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Clone, Debug)]
pub struct Numbers(u64);

impl Numbers {
    /// The stream of a seed; streams of different parts are unrelated.
    pub fn new(seed: u64, part: u64) -> Self {
        let mut numbers = Self(seed ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let start = numbers.next();
        Self(start ^ part)
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A value of a type: floats between -2 and 2, integers between -100 and 100 as far as they fit.
    pub fn value(&mut self, ty: ScalarType) -> Scalar {
        let bits = self.next();
        match ty.class() {
            TypeClass::Bool => Scalar::Int((bits & 1).into()),
            TypeClass::UInt | TypeClass::Handle => Scalar::Int((bits % 101).into()),
            TypeClass::Int => Scalar::Int(i128::from(bits % 201) - 100),
            #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
            TypeClass::Float => {
                let unit = (bits >> 11) as f64 / (1u64 << 53) as f64;
                Scalar::Float(tilewright_ir::scalar::round_float(ty, unit * 4.0 - 2.0))
            }
        }
    }

    /// A tensor of values.
    ///
    /// # Errors
    /// The shape is no size.
    pub fn tensor(&mut self, dtype: DataType, shape: &[u64]) -> Result<Tensor, String> {
        Tensor::from_fn(dtype, shape, |_| self.value(dtype.scalar)).map_err(|error| error.to_string())
    }
}

/// Values for symbolic extents: those given by name, else small numbers that differ from each other and from those.
///
/// # Errors
/// A name is given that is no symbol, or a value below 1.
pub fn sample_symbols(symbols: &[Var], given: &[(String, i128)]) -> Result<Bindings, Diagnostic> {
    for (name, value) in given {
        if !symbols.iter().any(|var| var.name() == name) {
            let known: Vec<_> = symbols.iter().map(Var::name).collect();
            let help = if known.is_empty() {
                "no extent is symbolic".into()
            } else {
                format!("there is {}", known.join(", "))
            };
            let message = format!("`{name}` is no symbolic extent");
            return Err(Diagnostic::error("unknown-symbol", None, message).with_help(help));
        }
        if *value < 1 {
            let message = format!("`{name}` is {value}, but an extent is at least 1");
            return Err(Diagnostic::error("symbol-value", None, message));
        }
    }
    let mut by_name: Vec<(String, i128)> = given.to_vec();
    let mut bindings = Bindings::new();
    for var in symbols {
        let known = by_name.iter().find(|(name, _)| name == var.name()).map(|(_, value)| *value);
        let value = known.unwrap_or_else(|| {
            let taken = |value: &i128| by_name.iter().any(|(_, other)| other == value);
            let fresh = DEFAULT_EXTENTS.into_iter().find(|value| !taken(value));
            fresh.unwrap_or_else(|| 37 + i128::try_from(by_name.len()).unwrap_or(0))
        });
        if known.is_none() {
            by_name.push((var.name().to_owned(), value));
        }
        bindings.insert(var.clone(), value);
    }
    Ok(bindings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_get_distinct_values_unless_given() {
        let symbols = ["n", "h", "n", "c"].map(Var::index);
        let bindings = sample_symbols(&symbols, &[("h".into(), 2)]).unwrap();
        let values: Vec<_> = symbols.iter().map(|var| bindings[var]).collect();
        assert_eq!(values, [7, 2, 7, 9]);
        assert!(sample_symbols(&symbols, &[("w".into(), 2)]).is_err());
        assert!(sample_symbols(&symbols, &[("h".into(), 0)]).is_err());
    }

    #[test]
    fn the_same_seed_gives_the_same_values() {
        let make = |seed, part| Numbers::new(seed, part).tensor(ScalarType::Float32.into(), &[3, 5]).unwrap();
        assert_eq!(make(1, 2), make(1, 2));
        assert_ne!(make(1, 2), make(1, 3));
        assert_ne!(make(1, 2), make(2, 2));
    }
}

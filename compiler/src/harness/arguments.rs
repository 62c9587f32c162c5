//! The arguments of a run: what input tensors hold, by choice, and scalars from the seed.
//!
//! A run and its repetition by `tilewright run` make their arguments here, so that the same seed and the same choice
//! give the same values.
//!
//! | choice | element `i` of parameter `p` (from 1), in row-major order |
//! |---|---|
//! | random | a number from the seed: floats from -2 to 2, integers from -100 to 100 |
//! | special | the same, except that some floats are NaN, infinite, -0.0 or large, and some integers large or small |
//! | positions | `i + p / 16` as a float, `16 * i + p` as an integer: which element of which parameter it is |
//! | whole | floats are whole numbers from -2 to 2, whose sums are exact; integers as in random |
//! | diagonal | as in random, and the diagonals of square matrices of floats are larger than their rows together |
//! | indices | as in random, and integers are 0 or 1, which are indices of most axes |

use std::collections::HashSet;

use tilewright_interp::{Argument, Tensor};
use tilewright_ir::scalar::round_float;
use tilewright_ir::{Bindings, DataType, Diagnostic, Expr, PrimFunc, Scalar, ScalarType, StmtKind, TypeClass, Var};

use super::engine::{Param, StageProgram};
use super::inputs::Numbers;
use super::layout::shape;

/// How the values of input tensors are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inputs {
    /// Pseudo-random values ([`Numbers::value`]).
    #[default]
    Random,
    /// Pseudo-random values, some of them NaN, infinite, -0.0 or large ([`Numbers::value_or_special`],
    /// [`Numbers::value_or_extreme`]).
    Special,
    /// Values that encode the parameter and the position. They differ from each other as far as the type has room.
    Positions,
    /// Floats that are small whole numbers, of which sums and products are exact.
    Whole,
    /// Pseudo-random values with dominant diagonals, for which factorisations of matrices exist.
    Diagonal,
    /// Pseudo-random floats, and integers that are 0 or 1.
    Indices,
}

impl Inputs {
    /// The word for it, as in `tilewright run --inputs WORD`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Special => "special",
            Self::Positions => "positions",
            Self::Whole => "whole",
            Self::Diagonal => "diagonal",
            Self::Indices => "indices",
        }
    }
}

/// Returns whether an index, or how often a loop runs, is read from memory, so that of most inputs it is out of bounds: those of
/// [`Inputs::Indices`] are made for such programs.
pub fn reads_indices(func: &PrimFunc) -> bool {
    let mut names: HashSet<Var> = HashSet::new();
    let mut found = false;
    func.body.walk(&mut |stmt| {
        let is_read = |expr: &Expr| expr.reads_memory() || expr.vars().iter().any(|var| names.contains(var));
        found |= match &stmt.kind {
            StmtKind::Store { indices, .. } => indices.iter().any(is_read),
            StmtKind::For(inner) => is_read(&inner.min) || is_read(&inner.extent),
            _ => false,
        };
        for expr in stmt.exprs() {
            expr.walk(&mut |part| found |= matches!(part, Expr::Load { indices, .. } if indices.iter().any(is_read)));
        }
        if let StmtKind::Let { var, value, .. } = &stmt.kind
            && is_read(value)
        {
            names.insert(var.clone());
        }
    });
    found
}

/// How the arguments of a run are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Draw {
    /// The seed of pseudo-random values.
    pub seed: u64,
    /// How the values of input tensors are chosen.
    pub inputs: Inputs,
}

impl Draw {
    /// Returns the arguments of a program, in order. Tensors that the program writes are undefined, unless `outputs_too`. Scalars that
    /// `bindings` lacks come from the seed.
    ///
    /// # Errors
    /// `input-shape`: a shape is not known or too large.
    pub fn arguments(
        self,
        program: &StageProgram<'_>,
        bindings: &Bindings,
        outputs_too: bool,
    ) -> Result<Vec<Argument>, Diagnostic> {
        let fault = |message: String| Diagnostic::error("input-shape", None, message);
        let mut arguments = Vec::new();
        for (param, part) in program.params().iter().zip(0u64..) {
            arguments.push(match param {
                Param::Buffer(buffer) => {
                    let extents = shape(&buffer.shape, bindings).map_err(fault)?;
                    let tensor = if program.writes(buffer) && !outputs_too {
                        Tensor::undefined(buffer.dtype, &extents).map_err(|error| error.to_string())
                    } else {
                        self.tensor(part, buffer.dtype, &extents)
                    };
                    Argument::Tensor(tensor.map_err(fault)?)
                }
                Param::Scalar(var) => {
                    let known = bindings.get(var).map(|&value| Scalar::Int(value));
                    Argument::Scalar(known.unwrap_or_else(|| self.scalar(part, var.dtype().scalar)))
                }
            });
        }
        Ok(arguments)
    }

    /// The scalar argument at a position.
    fn scalar(self, part: u64, ty: ScalarType) -> Scalar {
        let mut numbers = Numbers::new(self.seed, part);
        if self.inputs == Inputs::Whole && ty.is_float() {
            return numbers.whole();
        }
        numbers.argument(ty, self.seed, part)
    }

    /// The tensor at a position.
    fn tensor(self, part: u64, dtype: DataType, shape: &[u64]) -> Result<Tensor, String> {
        let (numbers, ty) = (Numbers::new(self.seed, part), dtype.scalar);
        let tensor = match self.inputs {
            Inputs::Whole if ty.is_float() => Tensor::from_lanes(dtype, shape, |at| numbers.after(at).whole()),
            Inputs::Diagonal if ty.is_float() => {
                let diagonal = Diagonal::of(dtype, shape);
                Tensor::from_lanes(dtype, shape, |at| diagonal.raised(at, numbers.after(at).value(ty), ty))
            }
            Inputs::Indices if ty.is_integer() => {
                Tensor::from_lanes(dtype, shape, |at| Scalar::Int(i128::from(numbers.after(at).next() >> 32 & 1)))
            }
            Inputs::Random | Inputs::Whole | Inputs::Diagonal | Inputs::Indices => {
                Tensor::from_lanes(dtype, shape, |at| numbers.after(at).value(ty))
            }
            Inputs::Special => {
                // One value may take two numbers of the stream, so the values follow from each other.
                let mut numbers = numbers;
                let is_integer = ty.is_integer();
                let value = |numbers: &mut Numbers| {
                    if is_integer { numbers.value_or_extreme(ty) } else { numbers.value_or_special(ty) }
                };
                Tensor::from_fn(dtype, shape, |_| value(&mut numbers))
            }
            Inputs::Positions => Tensor::from_lanes(dtype, shape, |at| position(ty, part, at)),
        };
        tensor.map_err(|error| error.to_string())
    }
}

/// Parameters whose values [`Inputs::Positions`] keeps apart: 1 to 15, and 0 for the 16th.
const PARAMETERS: u64 = 16;

/// The value that encodes a parameter and a position. Where the type has no room for so many values, they repeat.
fn position(ty: ScalarType, part: u64, at: usize) -> Scalar {
    let at = u64::try_from(at).unwrap_or(u64::MAX);
    let code = at.wrapping_mul(PARAMETERS).wrapping_add((part + 1) % PARAMETERS);
    match ty.class() {
        TypeClass::Bool => Scalar::Int(i128::from((at + part) % 2)),
        TypeClass::Int | TypeClass::UInt | TypeClass::Handle => {
            // The greatest value is one below a power of two, so the remainder keeps the parameter.
            let greatest = ty.integer_range().map_or(i128::from(u64::MAX), |(_, greatest)| greatest);
            Scalar::Int(i128::from(code) % (greatest + 1))
        }
        #[expect(clippy::cast_precision_loss, reason = "the remainder is exact in every float")]
        TypeClass::Float => Scalar::Float((code % whole_numbers(ty)) as f64 / PARAMETERS as f64),
    }
}

/// The power of two up to which a float type has every whole number.
fn whole_numbers(ty: ScalarType) -> u64 {
    #[expect(clippy::cast_precision_loss, reason = "at most 2^53 + 1, which is rounded where the type ends")]
    let is_exact = |number: u64| round_float(ty, number as f64).to_bits() == (number as f64).to_bits();
    let powers = (4..53).map(|bits| 1u64 << bits);
    powers.take_while(|power| is_exact(power - 1)).last().unwrap_or(PARAMETERS)
}

/// The square matrices on the last two axes of a tensor.
struct Diagonal {
    /// Rows of each matrix; 0 if the tensor has none.
    rows: usize,
}

impl Diagonal {
    fn of(dtype: DataType, shape: &[u64]) -> Self {
        let rows = match shape {
            [.., rows, columns] if rows == columns && dtype.lanes == 1 => usize::try_from(*rows).unwrap_or(0),
            _ => 0,
        };
        Self { rows }
    }

    /// The value for an element: one of the diagonal is larger than all others of its row or column together, each of which is at most 2.
    fn raised(&self, at: usize, value: Scalar, ty: ScalarType) -> Scalar {
        let is_diagonal = self.rows > 0 && at / self.rows % self.rows == at % self.rows;
        match value {
            Scalar::Float(value) if is_diagonal => {
                let least = f64::from(u32::try_from(self.rows).unwrap_or(u32::MAX)) * 2.0;
                Scalar::Float(round_float(ty, least + value.abs()))
            }
            Scalar::Float(_) | Scalar::Int(_) => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: Scalar) -> f64 {
        match value {
            Scalar::Float(value) => value,
            Scalar::Int(value) => f64::from(i32::try_from(value).unwrap()),
        }
    }

    fn values(inputs: Inputs, part: u64, ty: ScalarType, shape: &[u64]) -> Vec<f64> {
        let tensor = Draw { seed: 0, inputs }.tensor(part, ty.into(), shape).unwrap();
        (0..tensor.lane_count()).map(|lane| number(tensor.get(lane).unwrap())).collect()
    }

    #[test]
    fn positions_name_the_parameter_and_the_element() {
        assert_eq!(values(Inputs::Positions, 0, ScalarType::Float32, &[1, 2]), [0.0625, 1.0625]);
        assert_eq!(values(Inputs::Positions, 2, ScalarType::Int64, &[3]), [3.0, 19.0, 35.0]);
        assert_eq!(values(Inputs::Positions, 0, ScalarType::Bool, &[3]), [0.0, 1.0, 0.0]);
    }

    #[test]
    fn positions_differ_as_far_as_the_type_has_room() {
        for (ty, room) in [
            (ScalarType::Float16, 128),
            (ScalarType::BFloat16, 16),
            (ScalarType::Float32, 3000),
            (ScalarType::Int8, 8),
            (ScalarType::UInt8, 16),
        ] {
            let mut seen: Vec<f64> = Vec::new();
            for part in 0..3 {
                for value in values(Inputs::Positions, part, ty, &[room]) {
                    assert!(!seen.contains(&value), "{ty:?}: {value:?} twice");
                    seen.push(value);
                }
            }
        }
    }

    #[test]
    fn a_diagonal_exceeds_the_rest_of_its_row() {
        let size = 7;
        let matrix = values(Inputs::Diagonal, 1, ScalarType::Float32, &[2, 7, 7]);
        for (position, row) in matrix.chunks(size).enumerate() {
            let own = row[position % size];
            let rest: f64 = row.iter().map(|value| value.abs()).sum::<f64>() - own;
            assert!(own > rest, "row {position}: {row:?}");
        }
        let drawn = |inputs, shape: &[u64]| values(inputs, 1, ScalarType::Float32, shape);
        assert_eq!(drawn(Inputs::Diagonal, &[7, 6]), drawn(Inputs::Random, &[7, 6]));
    }

    #[test]
    fn whole_scalars_are_whole() {
        let scalar = |inputs| number(Draw { seed: 1, inputs }.scalar(3, ScalarType::Float32));
        assert!(scalar(Inputs::Whole).fract() == 0.0 && scalar(Inputs::Random).fract() != 0.0);
    }
}

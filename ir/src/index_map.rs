//! Index maps: functions from logical to physical indices.

use std::fmt;

use crate::buffer::{AxisSeparators, SeparatorError};
use crate::eval::{Bindings, EvalError};
use crate::expr::Expr;
use crate::var::Var;
use crate::visit::Substitution;

/// A map from the indices of a logical shape to the indices of a physical one (RFC 39, `IndexMap`).
///
/// The map carries its domain: logical index `i` ranges over `0..domain[i]`. It carries neither a physical shape,
/// which is a separate claim ([`crate::evidence::BufferClaim`]), nor the property of being injective, which is a
/// proof obligation.
///
/// ```
/// use tilewright_ir::{Expr, IndexMap, Var};
/// let [n, h, w, c] = ["n", "h", "w", "c"].map(Var::index);
/// let outputs = vec![
///     Expr::from(&n),
///     Expr::from(&c).floor_div(Expr::int(4)),
///     Expr::from(&h),
///     Expr::from(&w),
///     Expr::from(&c).floor_mod(Expr::int(4)),
/// ];
/// let domain = [16, 64, 64, 128].map(Expr::int).to_vec();
/// let map = IndexMap::new(vec![n, h, w, c], domain, outputs, vec![3])?;
/// assert_eq!(map.to_string(), "lambda n, h, w, c: [n, c // 4, h, AXIS_SEPARATOR, w, c % 4]");
/// assert_eq!(map.eval(&[11, 37, 23, 101], &Default::default()), Ok(vec![11, 25, 37, 23, 1]));
/// # Ok::<(), tilewright_ir::IndexMapError>(())
/// ```
#[derive(Clone, Debug)]
pub struct IndexMap {
    vars: Vec<Var>,
    domain: Vec<Expr>,
    outputs: Vec<Expr>,
    axis_separators: AxisSeparators,
}

/// The reason why the given parts are not an index map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexMapError {
    /// The numbers of variables and extents differ.
    #[error("the map takes {vars} indices, but the shape has {extents} axes")]
    Rank {
        /// The number of variables.
        vars: usize,
        /// The number of extents.
        extents: usize,
    },
    /// Two parameters are the same variable.
    #[error("parameter `{0}` appears twice")]
    Duplicate(String),
    /// An output is a vector, a float or a truth value.
    #[error("output {position} of the map, `{expr}`, is not a scalar integer")]
    Output {
        /// The position among the outputs, counted from 0.
        position: usize,
        /// The output as text.
        expr: String,
    },
    /// The separators do not fit the number of outputs.
    #[error(transparent)]
    Separators(#[from] SeparatorError),
}

impl IndexMap {
    /// Creates the map from `vars`, each in `0..domain[i]`, to `outputs`, with axis separators at `positions` (the
    /// number of outputs before each separator). Outputs may also use symbolic extents.
    ///
    /// # Errors
    /// The numbers of variables and extents differ, a variable appears twice, an output is not a scalar integer, or
    /// the separators do not fit the number of outputs.
    pub fn new(
        vars: Vec<Var>,
        domain: Vec<Expr>,
        outputs: Vec<Expr>,
        positions: Vec<usize>,
    ) -> Result<Self, IndexMapError> {
        if vars.len() != domain.len() {
            return Err(IndexMapError::Rank { vars: vars.len(), extents: domain.len() });
        }
        if let Some((_, var)) = vars.iter().enumerate().find(|(position, var)| vars[..*position].contains(var)) {
            return Err(IndexMapError::Duplicate(var.name().to_owned()));
        }
        let wrong = outputs.iter().position(|output| {
            let ty = output.dtype();
            !ty.scalar.is_integer() || !ty.is_scalar()
        });
        if let Some(position) = wrong {
            return Err(IndexMapError::Output { position, expr: outputs[position].to_string() });
        }
        let axis_separators = AxisSeparators::new(positions, outputs.len())?;
        Ok(Self { vars, domain, outputs, axis_separators })
    }

    /// Creates the identity map on a shape, without separators.
    pub fn identity(domain: Vec<Expr>) -> Self {
        let vars: Vec<_> = (0..domain.len()).map(|axis| Var::index(format!("i{axis}"))).collect();
        let outputs: Vec<_> = vars.iter().map(Expr::from).collect();
        let axis_separators = AxisSeparators::none(outputs.len());
        Self { vars, domain, outputs, axis_separators }
    }

    /// Returns the variables of the logical indices.
    pub fn vars(&self) -> &[Var] {
        &self.vars
    }

    /// Returns the logical shape, one extent per variable.
    pub fn domain(&self) -> &[Expr] {
        &self.domain
    }

    /// Returns the physical indices in terms of the variables.
    pub fn outputs(&self) -> &[Expr] {
        &self.outputs
    }

    /// Returns the separators between the outputs.
    pub fn axis_separators(&self) -> &AxisSeparators {
        &self.axis_separators
    }

    /// Returns the same map without separators.
    #[must_use]
    pub fn without_separators(&self) -> Self {
        Self { axis_separators: AxisSeparators::none(self.outputs.len()), ..self.clone() }
    }

    /// Substitutes `indices`, one per variable, into the outputs. The result is not simplified.
    pub fn apply(&self, indices: &[Expr]) -> Vec<Expr> {
        let substitution = Substitution::new(&self.vars, indices.iter().cloned());
        self.outputs.iter().map(|output| substitution.apply(output)).collect()
    }

    /// Returns the physical index of one logical index, computed over the integers; `symbols` binds the symbolic
    /// extents.
    ///
    /// # Errors
    /// An output has no value at this index; see [`Expr::eval_index`].
    pub fn eval(&self, index: &[i128], symbols: &Bindings) -> Result<Vec<i128>, EvalError> {
        self.outputs.iter().map(|output| output.eval_index_at(&self.vars, index, symbols)).collect()
    }
}

/// Prints a Python lambda, with `AXIS_SEPARATOR` between the outputs that it separates.
impl fmt::Display for IndexMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("lambda")?;
        for (position, var) in self.vars.iter().enumerate() {
            write!(f, "{}{var}", if position == 0 { " " } else { ", " })?;
        }
        f.write_str(": [")?;
        for (position, output) in self.outputs.iter().enumerate() {
            if position > 0 {
                f.write_str(", ")?;
            }
            if self.axis_separators.positions().contains(&position) {
                f.write_str("AXIS_SEPARATOR, ")?;
            }
            write!(f, "{output}")?;
        }
        f.write_str("]")
    }
}

//! Recipes: a shape, and what is done to its axes.

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::{Expr, Var};

use super::axes::{Axes, Generated, int};
use super::op::Op;
use crate::case::{smaller, without_one};
use crate::config::Config;
use crate::extents;

/// A map as a shape and operations on its axes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapRecipe {
    /// Extents of the logical indices.
    pub shape: Vec<i64>,
    /// What is done, in order.
    pub ops: Vec<Op>,
    /// Axes whose extent is a symbol; what stands in `shape` is then one of its values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub symbolic: Vec<usize>,
}

impl MapRecipe {
    /// A recipe of constant extents without a mistake: an injective map into its shape.
    ///
    /// # Errors
    /// Never for want of bytes.
    pub fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        let shape = extents::shape(u, config)?;
        let ops = Self::draw_ops(u, config)?;
        Ok(Self { shape, ops, symbolic: Vec::new() })
    }

    /// Operations without a mistake.
    ///
    /// # Errors
    /// Never for want of bytes.
    pub fn draw_ops(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Vec<Op>> {
        let n_ops = u.int_in_range(config.layout.operations.clone())?;
        (0..n_ops).map(|_| Op::draw(u, config)).collect()
    }

    /// A recipe of powers of two and of operations that move and mix bits, which linear algebra over bits can decide.
    ///
    /// # Errors
    /// Never for want of bytes.
    pub fn draw_bits(u: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let rank = u.int_in_range(1..=4)?;
        let shape = (0..rank).map(|_| Ok(1 << u.int_in_range(0..=4)?)).collect::<arbitrary::Result<_>>()?;
        let n_ops = u.int_in_range(1..=6)?;
        let ops = (0..n_ops).map(|_| Op::draw_bits(u)).collect::<arbitrary::Result<_>>()?;
        Ok(Self { shape, ops, symbolic: Vec::new() })
    }

    /// The map, and the physical shape that its operations ask for.
    pub fn build(&self) -> Option<Generated> {
        let vars: Vec<Var> = (0..self.shape.len()).map(|axis| Var::index(format!("x{axis}"))).collect();
        let mut symbols = Vec::new();
        let domain: Vec<Expr> = self
            .shape
            .iter()
            .enumerate()
            .map(|(axis, &extent)| {
                if !self.symbolic.contains(&axis) {
                    return int(extent);
                }
                let symbol = Var::index(format!("n{axis}"));
                symbols.push(symbol.clone());
                Expr::from(&symbol)
            })
            .collect();
        let mut axes = Axes::new(&vars, &domain);
        for op in &self.ops {
            op.apply(&mut axes);
        }
        axes.generated(vars, domain, symbols)
    }

    /// Whether no operation is a mistake.
    pub fn is_sound(&self) -> bool {
        !self.ops.iter().any(|op| op.is_mistake())
    }

    /// Without an operation, without an axis, without a symbol; with smaller extents and blocks.
    pub fn simpler(&self) -> Vec<Self> {
        let fewer = without_one(&self.ops).into_iter().map(|ops| Self { ops, ..self.clone() });
        let constant = without_one(&self.symbolic).into_iter().map(|symbolic| Self { symbolic, ..self.clone() });
        let axes = (0..self.shape.len()).rev().filter(|_| self.shape.len() > 1).map(|gone| self.without_axis(gone));
        let extents = self.shape.iter().enumerate().flat_map(|(axis, &extent)| {
            smaller(extent).into_iter().map(move |less| {
                let mut shape = self.shape.clone();
                shape[axis] = less;
                Self { shape, ..self.clone() }
            })
        });
        let blocks = self.ops.iter().enumerate().flat_map(|(at, op)| {
            op.simpler().into_iter().map(move |simpler| {
                let mut ops = self.ops.clone();
                ops[at] = simpler;
                Self { ops, ..self.clone() }
            })
        });
        fewer.chain(constant).chain(axes).chain(extents).chain(blocks).collect()
    }

    fn without_axis(&self, gone: usize) -> Self {
        let mut shape = self.shape.clone();
        shape.remove(gone);
        let symbolic = self.symbolic.iter().filter(|axis| **axis != gone);
        let symbolic = symbolic.map(|&axis| if axis > gone { axis - 1 } else { axis }).collect();
        Self { shape, symbolic, ops: self.ops.clone() }
    }

    /// What is in it, for the table of coverage.
    pub fn features(&self) -> Vec<String> {
        let mut found = vec![format!("rank:{}", self.shape.len())];
        if !self.symbolic.is_empty() {
            found.push("shape:symbolic".to_owned());
        }
        let mut put = |feature: String| {
            if !found.contains(&feature) {
                found.push(feature);
            }
        };
        for op in &self.ops {
            put(format!("op:{}", op.name()));
        }
        found
    }
}

//! Recipes of index maps: a shape and operations on its axes.

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::{Expr, Var};

use super::axes::{Axes, Generated, int};
use super::op::Op;
use crate::case::{smaller, without_one};
use crate::config::Config;
use crate::extents;

/// An index map as a shape and operations on its axes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapRecipe {
    /// The extents of the logical shape.
    pub shape: Vec<i64>,
    /// The operations, in order.
    pub ops: Vec<Op>,
    /// Axes with symbolic extents; `shape` contains an example value for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub symbolic: Vec<usize>,
}

impl MapRecipe {
    /// Draws a recipe with constant extents and without mistakes: an injective map into its shape.
    /// The shape is one of [`extents::shape`], the number of operations is from
    /// [`LayoutRanges::operations`](crate::config::LayoutRanges::operations).
    ///
    /// # Errors
    /// Never because there are too few bytes.
    pub fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        let shape = extents::shape(u, config)?;
        let ops = Self::draw_ops(u, config)?;
        Ok(Self { shape, ops, symbolic: Vec::new() })
    }

    /// Draws operations without mistakes.
    ///
    /// # Errors
    /// Never because there are too few bytes.
    pub fn draw_ops(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Vec<Op>> {
        let n_ops = u.int_in_range(config.layout.operations.clone())?;
        (0..n_ops).map(|_| Op::draw(u, config)).collect()
    }

    /// Draws a recipe of one to four extents from 1 to 16 that are powers of two, with one to six
    /// operations that move and mix bits. Linear algebra over bits can decide such maps.
    ///
    /// # Errors
    /// Never because there are too few bytes.
    pub fn draw_bits(u: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let rank = u.int_in_range(1..=4)?;
        let shape = (0..rank).map(|_| Ok(1 << u.int_in_range(0..=4)?)).collect::<arbitrary::Result<_>>()?;
        let n_ops = u.int_in_range(1..=6)?;
        let ops = (0..n_ops).map(|_| Op::draw_bits(u)).collect::<arbitrary::Result<_>>()?;
        Ok(Self { shape, ops, symbolic: Vec::new() })
    }

    /// The map and the physical shape that follows from its operations. `None` if the axes are no
    /// valid map.
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

    /// Without an operation, a symbol or an axis; with smaller extents; with simpler operations.
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

    /// Without an axis; the positions of symbols behind it move.
    fn without_axis(&self, gone: usize) -> Self {
        let mut shape = self.shape.clone();
        shape.remove(gone);
        let symbolic = self.symbolic.iter().filter(|axis| **axis != gone);
        let symbolic = symbolic.map(|&axis| if axis > gone { axis - 1 } else { axis }).collect();
        Self { shape, symbolic, ops: self.ops.clone() }
    }

    /// The features for the coverage table.
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

//! Index maps as sequences of layout operations on a shape: what reduction leaves out is an operation.

pub mod op;

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::{Expr, IndexMap};

use super::case::{Case, smaller, without_one};
use super::config::Config;
use super::extents;

pub use op::{Generated, Op, generated};

/// An index map: a shape, and what is done to its axes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapCase {
    /// Extents of the logical indices.
    pub shape: Vec<i64>,
    /// What is done, in order.
    pub ops: Vec<Op>,
}

impl MapCase {
    /// The map, and the physical shape that its operations ask for.
    pub fn build(&self) -> Option<Generated> {
        generated(&self.shape, &self.ops)
    }
}

impl Case for MapCase {
    fn draw(u: &mut Unstructured<'_>, config: &Config) -> arbitrary::Result<Self> {
        let shape = extents::shape(u, config)?;
        let n_ops = u.int_in_range(config.layout.operations.clone())?;
        let ops = (0..n_ops).map(|_| Op::draw(u, config)).collect::<arbitrary::Result<_>>()?;
        Ok(Self { shape, ops })
    }

    fn simpler(&self) -> Vec<Self> {
        let fewer = without_one(&self.ops).into_iter().map(|ops| Self { ops, ..self.clone() });
        let axes = without_one(&self.shape).into_iter().filter(|shape| !shape.is_empty());
        let axes = axes.map(|shape| Self { shape, ..self.clone() });
        let extents = self.shape.iter().enumerate().flat_map(|(axis, &extent)| {
            smaller(extent).into_iter().map(move |less| {
                let mut shape = self.shape.clone();
                shape[axis] = less;
                Self { shape, ..self.clone() }
            })
        });
        fewer.chain(axes).chain(extents).collect()
    }

    fn features(&self) -> Vec<String> {
        let mut found = vec![format!("rank:{}", self.shape.len())];
        for op in &self.ops {
            let feature = format!("op:{}", op.name());
            if !found.contains(&feature) {
                found.push(feature);
            }
        }
        found
    }

    fn text(&self) -> String {
        let Some(Generated { map, shape }) = self.build() else { return format!("{self:?}") };
        let shape: Vec<String> = shape.iter().map(Expr::to_string).collect();
        format!("{map} on {:?} into [{}]", self.shape, shape.join(", "))
    }
}

/// The extents of a map's domain, if they are constants.
pub fn domain(map: &IndexMap) -> Option<Vec<i128>> {
    map.domain().iter().map(Expr::as_const_int).collect()
}

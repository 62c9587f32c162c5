//! Memory of a function with the strides of a plain array.
//!
//! ```text
//! R: (4, 8), strides (8, 1)        ->        R: (4, 8)
//! ```
//!
//! TVM prints `strides=(1,)` for memory that it makes of one element.

use std::collections::HashMap;
use std::convert::Infallible;

use crate::block::{Block, BlockRegion};
use crate::buffer::Buffer;
use crate::func::PrimFunc;
use crate::stmt::AttrValue;
use crate::visit::Rewrite;

/// Returns the program in which memory that it allocates has no strides where these are the row-major ones of a constant shape. What the
/// function says of its parameters stays.
pub fn plain_arrays(func: &PrimFunc) -> PrimFunc {
    let is_param = |buffer: &Buffer| func.buffer_map.iter().any(|(_, param)| param == buffer);
    let strided = func.body.buffers().into_iter().filter(|buffer| is_row_major(buffer) && !is_param(buffer));
    let plain = |buffer: Buffer| (buffer.clone(), buffer.with(|info| info.strides = None));
    let plain: HashMap<Buffer, Buffer> = strided.map(plain).collect();
    if plain.is_empty() {
        return func.clone();
    }
    let Ok(body) = Plain(plain).stmt(&func.body);
    PrimFunc { body, ..func.clone() }
}

/// Buffers, and what takes their places.
struct Plain(HashMap<Buffer, Buffer>);

impl Plain {
    fn region(&self, region: &BlockRegion) -> BlockRegion {
        let buffer = self.0.get(&region.buffer).unwrap_or(&region.buffer).clone();
        BlockRegion { buffer, ranges: region.ranges.clone() }
    }
}

impl Rewrite for Plain {
    type Error = Infallible;

    fn buffer(&mut self, buffer: &Buffer) -> Result<Buffer, Infallible> {
        Ok(self.0.get(buffer).unwrap_or(buffer).clone())
    }

    fn attr_value(&mut self, value: &AttrValue) -> Result<AttrValue, Infallible> {
        let AttrValue::Block(block) = value else { return self.attr_value_children(value) };
        let regions = |regions: &Option<Vec<BlockRegion>>| {
            regions.as_ref().map(|regions| regions.iter().map(|region| self.region(region)).collect())
        };
        let (reads, writes) = (regions(&block.reads), regions(&block.writes));
        Ok(AttrValue::Block(Block { reads, writes, ..Block::clone(block) }.into()))
    }
}

/// Whether the strides of a buffer are constants, and those of a plain array of its shape, which is constant.
fn is_row_major(buffer: &Buffer) -> bool {
    let Some(strides) = &buffer.strides else { return false };
    let mut plain = Some(1i128);
    strides.iter().zip(&buffer.shape).rev().all(|(stride, extent)| {
        let is_same = plain.is_some() && stride.as_const_int() == plain;
        plain = plain.zip(extent.as_const_int()).and_then(|(plain, extent)| plain.checked_mul(extent));
        is_same
    })
}

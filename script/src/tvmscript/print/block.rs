//! Printing of blocks.

use tilewright_ir::{BinaryOp, Block, BlockRegion, Expr, Stmt};

use super::Printer;
use super::expr::quote;

impl Printer {
    /// Prints a block. One whose statement does not bind its axes any more is printed without what it says.
    pub(super) fn block(&mut self, block: &Block, below: &Stmt, last: bool) {
        let Some(parts) = block.parts(below) else { return self.stmt(below, last) };
        let word = self.dialect.block();
        let head = format!("with T.{word}({}):", quote(&block.name));
        self.line(&head);
        self.indent += 1;
        let outer = std::mem::replace(&mut self.is_block_memory, true);
        let start = self.text.len();
        // A value may not refer to the axes before it by their names: it is printed outside of their scope.
        let values: Vec<String> = parts.bindings.iter().map(|value| self.expr(value)).collect();
        let predicate = parts.predicate.map(|cond| self.expr(cond));
        for (axis, value) in block.axes.iter().zip(values) {
            let domain = if axis.min.as_const_int() == Some(0) {
                self.expr(&axis.extent)
            } else {
                format!("({}, {})", self.expr(&axis.min), self.end(&axis.min, &axis.extent))
            };
            let name = self.names.bind(&axis.var);
            self.line(&format!("{name} = T.axis.{}({domain}, {value})", axis.kind));
        }
        if let Some(cond) = predicate {
            self.line(&format!("T.where({cond})"));
        }
        for (word, regions) in [("reads", &block.reads), ("writes", &block.writes)] {
            if let Some(regions) = regions {
                let regions: Vec<String> = regions.iter().map(|region| self.region(region)).collect();
                self.line(&format!("T.{word}({})", regions.join(", ")));
            }
        }
        if !block.annotations.is_empty() {
            let line = format!("T.{word}_attr({})", self.dict(&block.annotations));
            self.line(&line);
        }
        self.inits.push(block.is_first().filter(|_| block.has_init));
        // A body without statements prints `pass` only where nothing else stands in the block.
        if self.text.len() == start {
            self.body(parts.body);
        } else {
            self.rest(parts.body);
        }
        self.inits.pop();
        for _ in &block.axes {
            self.names.unbind();
        }
        self.is_block_memory = outer;
        self.indent -= 1;
    }

    /// Prints the elements that a block accesses.
    fn region(&mut self, region: &BlockRegion) -> String {
        let mut ranges = Vec::new();
        for (min, extent) in &region.ranges {
            let is_one = extent.as_const_int() == Some(1);
            let min_text = self.expr(min);
            ranges.push(if is_one { min_text } else { format!("{min_text}:{}", self.end(min, extent)) });
        }
        let name = self.names.buffer(&region.buffer);
        if ranges.is_empty() { name } else { format!("{name}[{}]", ranges.join(", ")) }
    }

    /// Prints the end of a range, so that the reader finds its extent again.
    fn end(&mut self, min: &Expr, extent: &Expr) -> String {
        let sum = || Expr::binary(BinaryOp::Add, min.clone(), extent.clone());
        let end = match (min, extent) {
            (Expr::Int { value: 0, .. }, extent) => extent.clone(),
            (Expr::Int { value: a, .. }, Expr::Int { value: b, ty }) => Expr::int_of(a + b, *ty).unwrap_or_else(sum),
            _ => sum(),
        };
        self.expr(&end)
    }
}

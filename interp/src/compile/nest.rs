//! Innermost nests: loops that hold nothing but the next one are run as one, many iterations at a time.

use tilewright_ir::{Diagnostic, For, Scalar, Stmt, StmtKind};

use super::{Compiler, Level, Numbering, StreamOf};
use crate::code::{Code, Fast, NestLoop, Node, Reg};
use crate::independence::fits;
use crate::num::encode;
use crate::plan::{BLOCK, Source, plan};

/// Most loops of a nest.
pub(crate) const MAX_NEST: usize = 6;

impl<'a> Compiler<'_, 'a> {
    /// The plan of the nest that a loop is the outermost of, if it is one. The loop's body is translated already.
    pub(super) fn fast(&mut self, outer: &'a For, var: Reg, body: &[Node]) -> Result<Option<Fast>, Diagnostic> {
        if !self.setup.streams {
            return Ok(None);
        }
        let Some((loops, leaf)) = self.nest(outer, body) else { return Ok(None) };
        let depth = self.depth() + 1;
        let (mut vars, mut regs, mut inner) = (vec![&outer.var], vec![var], Vec::new());
        for (each, min, extent) in loops {
            let var = self.registers(1, depth)?;
            self.vars.insert(each.var.clone(), var);
            let min = encode(each.var.dtype().scalar, Scalar::Int(min));
            vars.push(&each.var);
            regs.push(var);
            inner.push(NestLoop { var, min, extent });
        }
        let (probe, probe_numbering, streams) = (Code::default(), Numbering::new(), Vec::new());
        self.stream_of = Some(StreamOf { vars, depth, probe, probe_numbering, streams });
        self.levels.push(Level::default());
        let result = self.stmt(leaf);
        let level = self.levels.pop().unwrap_or_default();
        let context = self.stream_of.take();
        result?;
        let Some(context) = context.filter(|_| level.nodes.is_empty()) else { return Ok(None) };
        let source = Source {
            code: &level.code,
            streams: &context.streams,
            accesses: &self.program.accesses,
            slot_of: &self.program.slot_of,
            vars: &regs,
        };
        let plan = plan(&source);
        Ok(plan.map(|plan| Fast { pre: level.pre, probe: context.probe, streams: context.streams, inner, plan }))
    }

    /// The loops of a nest but the outermost, with their first values and extents, and what stands in them. There are as
    /// many as leave about a block of iterations to the outermost one's.
    #[expect(clippy::type_complexity, reason = "a private helper with one caller")]
    fn nest(&self, outer: &'a For, body: &[Node]) -> Option<(Vec<(&'a For, i128, u64)>, &'a Stmt)> {
        let (mut loops, mut nodes, mut leaf) = (Vec::new(), body, &outer.body);
        let mut iterations: u64 = 1;
        loop {
            while let StmtKind::Attr { body, .. } = &leaf.kind {
                leaf = body;
            }
            match nodes {
                [Node::Code(_)] => return Some((loops, leaf)),
                [Node::Loop(next)] => {
                    let StmtKind::For(inner) = &leaf.kind else { return None };
                    let one = |(low, high): (i128, i128)| (low == high).then_some(low);
                    let min = one(self.ranges.interval(&inner.min)?)?;
                    let extent = one(self.ranges.interval(&inner.extent)?).filter(|&extent| extent > 0)?;
                    if !fits(inner.var.dtype().scalar, (min, min + extent - 1)) || loops.len() + 1 == MAX_NEST {
                        return None;
                    }
                    let extent = u64::try_from(extent).ok()?;
                    iterations = iterations.checked_mul(extent).filter(|&count| count < BLOCK as u64)?;
                    loops.push((&**inner, min, extent));
                    nodes = &next.body;
                    leaf = &inner.body;
                }
                _ => return None,
            }
        }
    }
}

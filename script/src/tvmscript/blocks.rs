//! Blocks of S-TIR.
//!
//! | notation | meaning |
//! |---|---|
//! | `with T.sblock("C"):`, `with T.block("C"):` | a block |
//! | `i = T.axis.spatial(128, x)`, `T.axis.reduce`, `T.axis.scan`, `T.axis.opaque` | an axis from 0, and its value |
//! | `i = T.axis.spatial((2, 130), x)` | an axis from 2 to 129 |
//! | `i, k = T.axis.remap("SR", [x, y])` | axes that are loops; S, R and O are the first letters of the kinds, T is scan |
//! | `T.where(x < 128)` | the condition under which an instance runs |
//! | `T.reads(A[i, 0:4])`, `T.writes(C[i])` | the elements that an instance accesses; lists are read too |
//! | `with T.init():` | runs at the first instance of a reduction |
//! | `W = T.match_buffer(A[i:i + 4], (4,))` | a part of a buffer: [`super::windows`] |
//! | `T.sblock_attr({...})`, `T.block_attr({...})` | hints |
//! | `with T.block([128], "C") as [i]:` and `T.bind(i, x)` | a block as release 0.8 printed it: [`super::heads`] |
//!
//! A block becomes an attribute of plain statements, as [`tilewright_ir::block`] says.

use std::sync::Arc;

use ruff_python_ast as ast;
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::visit::Substitution;
use tilewright_ir::{
    AttrValue, AxisKind, BinaryOp, Block, BlockAxis, BlockRegion, Expr, ForKind, Stmt, StmtKind, ThreadTag, Var,
};

use super::loops::extent_between;
use super::older::says_nothing;
use super::promote::Value;
use super::reader::{Binding, Reader, sequence, string};

/// A block whose statements are being read.
#[derive(Default)]
pub(super) struct OpenBlock {
    axes: Vec<(BlockAxis, Expr)>,
    predicate: Option<Expr>,
    reads: Option<Vec<BlockRegion>>,
    writes: Option<Vec<BlockRegion>>,
    annotations: Vec<(String, AttrValue)>,
    has_init: bool,
}

impl OpenBlock {
    /// What the block says; its statement is not needed for that.
    fn block(&self, name: &str) -> Block {
        Block {
            name: name.to_owned(),
            axes: self.axes.iter().map(|(axis, _)| axis.clone()).collect(),
            has_predicate: self.predicate.is_some(),
            has_init: self.has_init,
            reads: self.reads.clone(),
            writes: self.writes.clone(),
            annotations: self.annotations.clone(),
        }
    }
}

impl<'a> Reader<'a> {
    /// Returns whether a call opens a block.
    pub(super) fn opens_block(&self, call: &ast::ExprCall) -> bool {
        matches!(self.callee(&call.func), Some("block" | "sblock"))
    }

    /// Reads `with T.sblock("C"):`, or `with T.block([n], "C") as [i]:` as [`super::heads`] says. `None` if there is an error; the
    /// statements of the block are read in any case but that of a wrong head.
    pub(super) fn block_stmt(
        &mut self,
        call: &'a ast::ExprCall,
        target: Option<&'a ast::Expr>,
        body: &'a [ast::Stmt],
    ) -> Option<Stmt> {
        let callee = self.callee(&call.func).unwrap_or("sblock").to_owned();
        let axes = call.arguments.args.first().and_then(sequence);
        let params: &[&str] =
            if axes.is_some() { &["axes", "name", "exec_scope"] } else { &["name", "no_realize", "exec_scope"] };
        let args = self.bind_args(call, &callee, params, 0)?;
        let head = match (axes, target) {
            (Some(axes), target) => self.head(call, axes, target, body)?,
            (None, Some(target)) => {
                let help = "bind the axes inside of the block: `i = T.axis.spatial(n, x)`";
                return self.error("block", target.range(), "a block binds no names here", help);
            }
            (None, None) => Vec::new(),
        };
        let name = match args.get(usize::from(axes.is_some())) {
            None => "",
            Some(name) => {
                let Some(text) = string(name) else {
                    let help = "write `with T.sblock(\"C\"):` and bind the axes with `T.axis`";
                    return self.error("block", name.range(), "the name of a block is a string", help);
                };
                text
            }
        };
        let scope = self.names.len();
        self.blocks.push(OpenBlock::default());
        for (name, kind, (domain, value)) in head {
            self.bind_axis(name, kind, domain, value);
        }
        let (mut rest, mut is_read) = (Vec::new(), true);
        for stmt in body.iter().filter(|stmt| axes.is_none() || !self.is_bind(stmt)).collect::<Vec<_>>() {
            match self.block_part(stmt) {
                Some(read) => is_read &= read,
                None => rest.push(stmt),
            }
        }
        is_read &= self.check_inits(&rest).is_some();
        let below = self.stmts(&rest);
        self.names.truncate(scope);
        let mut open = self.blocks.pop()?;
        let n_regions = [&open.reads, &open.writes].map(|regions| regions.as_ref().map(Vec::len));
        if self.blocks.is_empty() && says_nothing(!open.axes.is_empty(), n_regions) {
            (open.reads, open.writes) = (None, None);
        }
        is_read.then(|| {
            let block = open.block(name);
            let bind = |body, (axis, value): (BlockAxis, Expr)| {
                Stmt::new(StmtKind::Let { var: axis.var, value, body: Arc::new(body) })
            };
            let values = Substitution::new(
                open.axes.iter().map(|(axis, _)| &axis.var),
                open.axes.iter().map(|(_, value)| value.clone()),
            );
            let predicate = open.predicate.map(|cond| values.apply(&cond));
            let bound = open.axes.into_iter().rev().fold(below, bind);
            Stmt::block(block, predicate.into_iter().fold(bound, |body, cond| Stmt::guarded(cond, body)))
        })
    }

    /// Reads `with T.init():`, which runs where all reduced axes have their least values.
    pub(super) fn init_stmt(&mut self, call: &'a ast::ExprCall, body: &'a [ast::Stmt]) -> Option<Stmt> {
        let first = match self.blocks.last_mut() {
            Some(open) if !open.has_init => {
                open.has_init = true;
                open.block("").is_first()
            }
            Some(_) => {
                return self.error("block", call.range(), "the block has an initialisation already", "join them");
            }
            None => {
                return self.outside_of_block("T.init", call.range());
            }
        };
        self.bind_args(call, "init", &[], 0)?;
        let body = self.block(body);
        Some(first.map_or(body.clone(), |first| Stmt::guarded(first, body)))
    }

    /// Reports what only the statements of a block say, not those of a loop in it.
    pub(super) fn outside_of_block<R>(&mut self, word: &str, range: TextRange) -> Option<R> {
        let help = "it belongs into a block, `with T.sblock(\"C\"):`, in front of what the block does";
        self.error("block", range, format!("`{word}` stands outside of a block"), help)
    }

    /// Reads what a block says of itself, and returns whether it has no error. `None` for any other statement.
    pub(super) fn block_part(&mut self, stmt: &'a ast::Stmt) -> Option<bool> {
        match stmt {
            ast::Stmt::Assign(assign) => {
                let ast::Expr::Call(call) = &*assign.value else { return None };
                let kind = self.axis_call(call)?;
                let [target] = &assign.targets[..] else { return None };
                let read = if kind == "remap" { self.remap(target, call) } else { self.axis(target, kind, call) };
                if read.is_none() {
                    self.bind_failed(target);
                }
                Some(read.is_some())
            }
            ast::Stmt::Expr(expr) => {
                let ast::Expr::Call(call) = &*expr.value else { return None };
                let word = self.callee(&call.func)?.to_owned();
                let open = self.blocks.last()?;
                let is_stated = match word.as_str() {
                    "where" => open.predicate.is_some(),
                    "reads" => open.reads.is_some(),
                    "writes" => open.writes.is_some(),
                    "sblock_attr" | "block_attr" => false,
                    _ => return None,
                };
                if is_stated {
                    let message = format!("`T.{word}` stands in this block already");
                    let failed: Option<()> = self.error("block", call.range(), message, "join the two");
                    return Some(failed.is_some());
                }
                Some(self.stated(&word, call).is_some())
            }
            _ => None,
        }
    }

    /// Reads `T.where`, `T.reads`, `T.writes` or `T.sblock_attr`.
    fn stated(&mut self, word: &str, call: &'a ast::ExprCall) -> Option<()> {
        match word {
            "where" => {
                let args = self.bind_args(call, "where", &["predicate"], 1)?;
                let cond = self.condition(args.get(0)?)?;
                self.opened(|open| open.predicate = Some(cond));
            }
            "reads" => {
                let regions = self.regions(call)?;
                self.opened(|open| open.reads = Some(regions));
            }
            "writes" => {
                let regions = self.regions(call)?;
                self.opened(|open| open.writes = Some(regions));
            }
            _ => {
                let found = self.annotations(call.arguments.args.first())?;
                self.opened(|open| open.annotations.extend(found));
            }
        }
        Some(())
    }

    /// Changes the innermost block.
    fn opened(&mut self, change: impl FnOnce(&mut OpenBlock)) {
        if let Some(open) = self.blocks.last_mut() {
            change(open);
        }
    }

    /// Returns the function of a call such as `T.axis.spatial(...)`.
    pub(super) fn axis_call<'e>(&self, call: &'e ast::ExprCall) -> Option<&'e str> {
        let ast::Expr::Attribute(attribute) = &*call.func else { return None };
        (self.callee(&attribute.value) == Some("axis")).then_some(attribute.attr.as_str())
    }

    /// Reads `i = T.axis.spatial(128, x)`.
    fn axis(&mut self, target: &'a ast::Expr, kind: &str, call: &'a ast::ExprCall) -> Option<()> {
        let Some(kind) = axis_kind(kind) else {
            let help = "the kinds are spatial, reduce, scan, opaque, and remap for several axes";
            return self.error("block", call.range(), format!("there is no axis of the kind `{kind}`"), help);
        };
        let args = self.bind_args(call, "axis", &["dom", "value", "dtype"], 2)?;
        let (ast::Expr::Name(name), domain, value) = (target, args.get(0)?, args.get(1)?) else {
            return self.error("block", target.range(), "an axis has one name", "`i = T.axis.spatial(n, x)`");
        };
        let value = self.value(value)?;
        let parts = match sequence(domain) {
            Some([only]) => {
                let help = "`(2, 130)`, or `128` without parentheses";
                return self.error("block", only.range(), "a domain is an extent, or a start and an end", help);
            }
            Some(parts) => parts,
            None => std::slice::from_ref(domain),
        };
        let (domain, value) = self.axis_domain(parts, value, domain.range())?;
        self.bind_axis(&name.id, kind, domain, value);
        Some(())
    }

    /// Reads the domain of an axis, an extent or a start and an end. Returns its start and its extent, and the value of the axis, of one
    /// type.
    pub(super) fn axis_domain(
        &mut self,
        parts: &'a [ast::Expr],
        value: Value,
        range: TextRange,
    ) -> Option<((Expr, Expr), Expr)> {
        let (min, extent, value) = match parts {
            [start, stop] => {
                let (start, stop) = (self.value(start), self.value(stop));
                let (start, stop) = self.unify(start?, stop?, range)?;
                let (start, value) = self.unify(start.into(), value, range)?;
                let extent = extent_between(&start, stop);
                (start, extent, value)
            }
            [extent] => {
                let extent = self.value(extent)?;
                let (extent, value) = self.unify(extent, value, range)?;
                (Expr::Int { value: 0, ty: value.dtype().scalar }, Some(extent), value)
            }
            _ => {
                let help = "`T.axis.spatial((2, 130), x)`";
                return self.error("block", range, "a domain is an extent, or a start and an end", help);
            }
        };
        match extent {
            Some(extent) => Some(((min, extent), value)),
            None => self.error("block", range, "the domain is too large", "an extent fits its type"),
        }
    }

    /// Reads `i, k = T.axis.remap("SR", [x, y])`: the domains are those of the loops.
    fn remap(&mut self, target: &'a ast::Expr, call: &'a ast::ExprCall) -> Option<()> {
        let args = self.bind_args(call, "remap", &["kinds", "bindings", "dtype"], 2)?;
        let kinds = args.get(0).and_then(string).unwrap_or_default();
        let loops = args.get(1).and_then(sequence).unwrap_or_default();
        let names = match target {
            ast::Expr::Tuple(names) => names.elts.as_slice(),
            other => std::slice::from_ref(other),
        };
        if kinds.chars().count() != loops.len() || names.len() != loops.len() {
            let help = "`i, k = T.axis.remap(\"SR\", [x, y])`: a letter, a loop and a name for each axis";
            return self.error("block", call.range(), "the axes of `T.axis.remap` do not fit together", help);
        }
        // All values are read before the first axis has its name.
        let mut found = Vec::new();
        for (letter, value) in kinds.chars().zip(loops) {
            let Some(kind) = axis_kind(letter.encode_utf8(&mut [0; 4])) else {
                return self.error("block", call.range(), format!("`{letter}` is no kind of an axis"), "S, R, T or O");
            };
            let read = self.expr(value)?;
            let range = match &read {
                Expr::Var(var) => self.ranges.iter().find(|(known, ..)| known == var).cloned(),
                _ => None,
            };
            let Some((_, min, extent)) = range else {
                let help = "state the domain: `i = T.axis.spatial(n, x)`";
                return self.error("block", value.range(), format!("`{read}` is no loop"), help);
            };
            found.push((kind, (min, extent), read));
        }
        for (name, (kind, domain, value)) in names.iter().zip(found) {
            let ast::Expr::Name(name) = name else {
                return self.error("block", name.range(), "an axis has a name", "`i, k = T.axis.remap(...)`");
            };
            self.bind_axis(&name.id, kind, domain, value);
        }
        Some(())
    }

    /// Adds an axis to the innermost block.
    fn bind_axis(&mut self, name: &str, kind: AxisKind, (min, extent): (Expr, Expr), value: Expr) {
        let var = Var::new(name, value.dtype());
        self.bind(name, Binding::Value(Expr::from(&var)));
        self.opened(|open| open.axes.push((BlockAxis { var, kind, min, extent }, value)));
    }

    /// Reads the elements that a block reads or writes: `T.reads(A[i, 0:4], B[i])`, or a list of them.
    fn regions(&mut self, call: &'a ast::ExprCall) -> Option<Vec<BlockRegion>> {
        if let Some(keyword) = call.arguments.keywords.first() {
            return self.error("block", keyword.range(), "regions have no names", "`T.reads(A[i, 0:4])`");
        }
        let args = match &call.arguments.args[..] {
            [only] => sequence(only).unwrap_or_else(|| std::slice::from_ref(only)),
            several => several,
        };
        let read: Vec<_> = args.iter().map(|arg| self.region(arg)).collect();
        read.into_iter().collect()
    }

    /// Reads `A[i, 0:4]`, or `A` for all elements; of a buffer or of a part of it.
    pub(super) fn region(&mut self, arg: &'a ast::Expr) -> Option<BlockRegion> {
        let (name, parts) = match arg {
            ast::Expr::Subscript(subscript) => match &*subscript.slice {
                ast::Expr::Tuple(parts) => (&*subscript.value, Some(parts.elts.as_slice())),
                one => (&*subscript.value, Some(std::slice::from_ref(one))),
            },
            other => (other, None),
        };
        let window = self.window_of(name)?;
        let ranges = match parts {
            None => window.extents.iter().map(whole).collect(),
            Some(parts) if parts.len() == window.extents.len() => {
                let read = parts.iter().zip(&window.extents).map(|(part, extent)| self.region_range(part, extent));
                read.collect::<Vec<_>>().into_iter().collect::<Option<Vec<_>>>()?
            }
            Some(parts) => {
                let message = format!(
                    "`{}` has {} axes, but {} ranges are given",
                    window.buffer,
                    window.extents.len(),
                    parts.len()
                );
                return self.error("rank", arg.range(), message, "give a range or an index for each axis");
            }
        };
        let (starts, extents): (Vec<Expr>, Vec<Expr>) = ranges.into_iter().unzip();
        let one = |start: &Expr| Expr::Int { value: 1, ty: start.dtype().scalar };
        let n_dropped = window.starts.len().saturating_sub(extents.len());
        let extents: Vec<Expr> = window.starts[..n_dropped].iter().map(one).chain(extents).collect();
        let starts = self.in_buffer(&window, starts, arg.range())?;
        Some(BlockRegion { buffer: window.buffer, ranges: starts.into_iter().zip(extents).collect() })
    }

    /// Reads one axis of a region: an index, `0:4`, or `:` for all of them.
    fn region_range(&mut self, part: &'a ast::Expr, extent: &Expr) -> Option<(Expr, Expr)> {
        let ast::Expr::Slice(slice) = part else {
            let index = self.expr(part)?;
            let one = Expr::Int { value: 1, ty: index.dtype().scalar };
            return Some((index, one));
        };
        if let Some(step) = &slice.step {
            return self.error("slice", step.range(), "a region has no steps", "write the range that contains them");
        }
        let (Some(lower), Some(upper)) = (&slice.lower, &slice.upper) else {
            return match (&slice.lower, &slice.upper) {
                (None, None) => Some(whole(extent)),
                _ => self.error("slice", slice.range(), "a range has both ends or none", "`0:4`, or `:` for all"),
            };
        };
        let (lower, upper) = (self.value(lower), self.value(upper));
        let (lower, upper) = self.unify(lower?, upper?, slice.range())?;
        match range_extent(&lower, upper) {
            Some(extent) => Some((lower, extent)),
            None => self.error("slice", slice.range(), "the range is too long", "its length fits its type"),
        }
    }

    /// Remembers the range of a loop, for axes that are loops.
    pub(super) fn remember_range(&mut self, var: &Var, min: &Expr, extent: &Expr) {
        self.ranges.push((var.clone(), min.clone(), extent.clone()));
    }

    /// Remembers a loop over threads of a group, for reductions across them.
    pub(super) fn remember_threads(&mut self, var: &Var, kind: ForKind, extent: &Expr) {
        if matches!(kind, ForKind::ThreadBinding(ThreadTag::Thread(_))) {
            self.threads.push((var.clone(), extent.clone()));
        }
    }
}

/// All indices of an axis.
fn whole(extent: &Expr) -> (Expr, Expr) {
    (Expr::Int { value: 0, ty: extent.dtype().scalar }, extent.clone())
}

/// The number of indices from `lower` to `upper - 1`: a constant if the two differ in a constant as they are written.
fn range_extent(lower: &Expr, upper: Expr) -> Option<Expr> {
    fn parts(expr: &Expr) -> (Option<&Expr>, i128) {
        match expr {
            Expr::Int { value, .. } => (None, *value),
            Expr::Binary(BinaryOp::Add, base, by) => by.as_const_int().map_or((Some(expr), 0), |by| (Some(base), by)),
            Expr::Binary(BinaryOp::Sub, base, by) => by.as_const_int().map_or((Some(expr), 0), |by| (Some(base), -by)),
            _ => (Some(expr), 0),
        }
    }
    let ((from, first), (to, last)) = (parts(lower), parts(&upper));
    if from == to { Expr::int_of(last - first, upper.dtype().scalar) } else { extent_between(lower, upper) }
}

/// Returns the kind of an axis by its name or its letter.
pub(super) fn axis_kind(name: &str) -> Option<AxisKind> {
    match name {
        "spatial" | "S" => Some(AxisKind::Spatial),
        "reduce" | "R" => Some(AxisKind::Reduce),
        "scan" | "T" => Some(AxisKind::Scan),
        "opaque" | "O" => Some(AxisKind::Opaque),
        _ => None,
    }
}

//! Finds blocks and loops in a program, and replaces them.

use std::convert::Infallible;
use std::sync::Arc;

use tilewright_algebra::Ranges;
use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{
    AttrValue, Block, BlockAxis, BlockParts, BlockRegion, Buffer, Diagnostic, Expr, For, ForKind, PrimFunc, Stmt,
    StmtKind, Var,
};

use super::fault;
use crate::passes::remap::{inside, symbol_ranges};

/// A block, and what is around it.
#[derive(Clone, Debug)]
pub(super) struct Found<'f> {
    pub(super) block: &'f Block,
    /// The statement that is the block.
    pub(super) stmt: &'f Stmt,
    pub(super) parts: BlockParts<'f>,
    /// The loops between the block around this one and this one, outermost first.
    pub(super) loops: Vec<&'f For>,
    /// The loops outside of the block around.
    pub(super) outer: Vec<&'f For>,
    /// The name of the block around.
    pub(super) parent: Option<&'f str>,
}

impl Found<'_> {
    /// What is known of variables where the block stands.
    pub(super) fn ranges(&self, func: &PrimFunc) -> Ranges {
        self.outer.iter().chain(&self.loops).fold(symbol_ranges(func), |ranges, run| inside(&ranges, run))
    }

    /// What is known of variables inside of the block, its axes among them.
    pub(super) fn inner_ranges(&self, func: &PrimFunc) -> Ranges {
        let ranges = self.ranges(func);
        self.block.axes.iter().fold(ranges, |ranges, axis| ranges.with_loop(&axis.var, &axis.min, &axis.extent))
    }

    /// The axes, each with its value.
    pub(super) fn axes(&self) -> impl Iterator<Item = (&BlockAxis, &Expr)> {
        self.block.axes.iter().zip(self.parts.bindings.iter().copied())
    }
}

/// The names of all blocks, in program order.
pub(super) fn block_names(stmt: &Stmt) -> Vec<String> {
    let mut names = Vec::new();
    stmt.walk(&mut |part| names.extend(Block::of(part).map(|(block, _)| block.name.clone())));
    names
}

/// Returns the only block of that name.
///
/// # Errors
/// There is none, or there are several, or it does not bind its axes.
pub(super) fn block_named<'f>(func: &'f PrimFunc, name: &str) -> Result<Found<'f>, Diagnostic> {
    let mut found = Vec::new();
    collect(&func.body, &mut Vec::new(), (0, None), &mut |one: Site<'f>| {
        if one.block.name == name {
            found.push(one);
        }
    });
    let (Some(one), 0) = (found.pop(), found.len()) else {
        let message = if block_names(&func.body).iter().any(|known| known == name) {
            format!("`{}` has several blocks `{name}`", func.name)
        } else {
            format!("`{}` has no block `{name}`", func.name)
        };
        let names = block_names(&func.body);
        let near = tilewright_script::nearest(name, names.iter().map(String::as_str)).filter(|near| near != &name);
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "write `with T.sblock(\"C\"):`".to_owned(),
            None => format!("its blocks are {}", names.join(", ")),
        };
        return Err(fault(message, help));
    };
    let Some(parts) = one.block.parts(one.below) else {
        return Err(fault(format!("block `{name}` does not bind its axes"), "bind them by `T.axis`"));
    };
    let (outer, loops) = one.loops.split_at(one.inside);
    let (outer, loops) = (outer.to_vec(), loops.to_vec());
    Ok(Found { block: one.block, stmt: one.stmt, parts, loops, outer, parent: one.parent })
}

/// A block on the way through a program.
struct Site<'f> {
    block: &'f Block,
    stmt: &'f Stmt,
    below: &'f Stmt,
    loops: Vec<&'f For>,
    /// The number of loops outside of the block around.
    inside: usize,
    parent: Option<&'f str>,
}

fn collect<'f>(
    stmt: &'f Stmt,
    loops: &mut Vec<&'f For>,
    (inside, parent): (usize, Option<&'f str>),
    found: &mut dyn FnMut(Site<'f>),
) {
    if let StmtKind::For(run) = &stmt.kind {
        loops.push(run);
        collect(&run.body, loops, (inside, parent), found);
        loops.pop();
        return;
    }
    let mut around = (inside, parent);
    if let Some((block, below)) = Block::of(stmt) {
        found(Site { block, stmt, below, loops: loops.clone(), inside, parent });
        around = (loops.len(), Some(&block.name));
    }
    for child in stmt.children() {
        collect(child, loops, around, found);
    }
}

/// A loop, and the loops around it.
#[derive(Clone, Debug)]
pub(super) struct FoundLoop<'f> {
    pub(super) run: &'f For,
    pub(super) outer: Vec<&'f For>,
}

impl FoundLoop<'_> {
    /// What is known of variables where the loop stands.
    pub(super) fn ranges(&self, func: &PrimFunc) -> Ranges {
        self.outer.iter().fold(symbol_ranges(func), |ranges, run| inside(&ranges, run))
    }
}

/// Returns the loop over a variable.
///
/// # Errors
/// It is gone: a step replaced it.
pub(super) fn loop_over<'f>(func: &'f PrimFunc, var: &Var) -> Result<FoundLoop<'f>, Diagnostic> {
    fn look<'f>(stmt: &'f Stmt, var: &Var, outer: &mut Vec<&'f For>) -> Option<FoundLoop<'f>> {
        if let StmtKind::For(run) = &stmt.kind {
            if run.var == *var {
                return Some(FoundLoop { run, outer: outer.clone() });
            }
            outer.push(run);
            let found = look(&run.body, var, outer);
            outer.pop();
            return found;
        }
        stmt.children().find_map(|child| look(child, var, outer))
    }
    look(&func.body, var, &mut Vec::new()).ok_or_else(|| {
        let help = "use the loops that the step returned, or ask again: `sch.get_loops(block)`";
        fault(format!("the loop `{var}` is gone: a step replaced it"), help)
    })
}

/// Whether a statement contains a block of that name.
pub(super) fn has_block(stmt: &Stmt, name: &str) -> bool {
    let mut found = false;
    stmt.walk(&mut |part| found |= Block::of(part).is_some_and(|(block, _)| block.name == name));
    found
}

/// Returns a block with its predicate and the values of its axes.
pub(super) fn realized(block: Block, predicate: Option<Expr>, values: Vec<Expr>, body: Stmt) -> Stmt {
    let block = Block { has_predicate: predicate.is_some(), ..block };
    let axes = block.axes.clone();
    let bind = |body, (axis, value): (BlockAxis, Expr)| {
        Stmt::new(StmtKind::Let { var: axis.var, value, body: Arc::new(body) })
    };
    let bound = axes.into_iter().zip(values).rev().fold(body, bind);
    Stmt::block(block, predicate.into_iter().fold(bound, |body, cond| Stmt::guarded(cond, body)))
}

/// Returns a block without predicate in loops of its own, one over each axis.
pub(super) fn in_own_loops(block: Block, body: Stmt) -> Stmt {
    let own = |(at, axis): (usize, &BlockAxis)| (Var::new(format!("ax{at}"), axis.var.dtype()), axis.extent.clone());
    let loops: Vec<(Var, Expr)> = block.axes.iter().enumerate().map(own).collect();
    let inner = realized(block, None, loops.iter().map(|(var, _)| Expr::from(var)).collect(), body);
    loops.into_iter().rev().fold(inner, |body, (var, extent)| Stmt::for_loop(&var, extent, ForKind::Serial, body))
}

/// Returns a block of that name that says nothing of what it reads and writes.
pub(super) fn unstated(name: &str, axes: Vec<BlockAxis>) -> Block {
    Block {
        name: name.to_owned(),
        axes,
        has_predicate: false,
        has_init: false,
        reads: Some(Vec::new()),
        writes: Some(Vec::new()),
        annotations: Vec::new(),
    }
}

/// Returns a statement with the blocks of that name replaced.
pub(super) fn with_block(
    stmt: &Stmt,
    name: &str,
    replaced: &mut dyn FnMut(&Block, &Stmt, BlockParts<'_>) -> Stmt,
) -> Stmt {
    let Ok(stmt) = WithBlock { name, replaced }.stmt(stmt);
    stmt
}

struct WithBlock<'a> {
    name: &'a str,
    replaced: &'a mut dyn FnMut(&Block, &Stmt, BlockParts<'_>) -> Stmt,
}

impl Rewrite for WithBlock<'_> {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        if let Some((block, below)) = Block::of(stmt)
            && block.name == self.name
            && let Some(parts) = block.parts(below)
        {
            return Ok((self.replaced)(block, stmt, parts).at(stmt.span));
        }
        flattened(self, stmt)
    }
}

/// A statement with its children rewritten; sequences in sequences are joined.
fn flattened<R: Rewrite<Error = Infallible>>(rewrite: &mut R, stmt: &Stmt) -> Result<Stmt, Infallible> {
    let rewritten = rewrite.stmt_children(stmt)?;
    Ok(match &rewritten.kind {
        StmtKind::Seq(parts) => Stmt::seq(parts.to_vec()).at(stmt.span),
        _ => rewritten,
    })
}

/// Adds a condition to the outermost blocks of a statement, or else to the statement itself.
pub(super) fn guarded(stmt: &Stmt, cond: &Expr) -> Stmt {
    if !only_blocks(stmt) {
        return Stmt::guarded(cond.clone(), stmt.clone());
    }
    let Ok(stmt) = Guard(cond).stmt(stmt);
    stmt
}

/// Whether everything that a statement does is in blocks.
fn only_blocks(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Attr { .. } if Block::of(stmt).is_some_and(|(block, below)| block.parts(below).is_some()) => true,
        StmtKind::For(run) => only_blocks(&run.body),
        StmtKind::Seq(parts) => parts.iter().all(only_blocks),
        StmtKind::Allocate { body, .. } | StmtKind::DeclBuffer { body, .. } | StmtKind::Attr { body, .. } => {
            only_blocks(body)
        }
        StmtKind::Let { .. } | StmtKind::If { .. } => false,
        StmtKind::Store { .. } | StmtKind::Evaluate(_) | StmtKind::Barrier | StmtKind::Assert { .. } => false,
    }
}

struct Guard<'a>(&'a Expr);

impl Rewrite for Guard<'_> {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let Some((block, below)) = Block::of(stmt) else { return self.stmt_children(stmt) };
        let Some(parts) = block.parts(below) else { return Ok(stmt.clone()) };
        let cond = match parts.predicate {
            Some(known) => known.clone().and(self.0.clone()),
            None => self.0.clone(),
        };
        let values = parts.bindings.iter().map(|&value| value.clone()).collect();
        Ok(realized(block.clone(), Some(cond), values, parts.body.clone()).at(stmt.span))
    }
}

/// Returns a statement with variables and buffers replaced, also in what blocks say of themselves.
pub(super) fn replaced(stmt: &Stmt, values: &Substitution, buffers: &[(Buffer, Buffer)]) -> Stmt {
    let Ok(stmt) = Replace { values, buffers }.stmt(stmt);
    stmt
}

struct Replace<'a> {
    values: &'a Substitution,
    buffers: &'a [(Buffer, Buffer)],
}

impl Replace<'_> {
    fn of(&self, buffer: &Buffer) -> Buffer {
        let found = self.buffers.iter().find(|(before, _)| before == buffer);
        found.map_or_else(|| buffer.clone(), |(_, after)| after.clone())
    }

    fn block(&self, block: &Block) -> Block {
        let apply = |expr: &Expr| self.values.apply(expr);
        let regions = |regions: &Vec<BlockRegion>| -> Vec<BlockRegion> {
            let region = |region: &BlockRegion| BlockRegion {
                buffer: self.of(&region.buffer),
                ranges: region.ranges.iter().map(|(min, extent)| (apply(min), apply(extent))).collect(),
            };
            regions.iter().map(region).collect()
        };
        let axis = |axis: &BlockAxis| BlockAxis { min: apply(&axis.min), extent: apply(&axis.extent), ..axis.clone() };
        Block {
            axes: block.axes.iter().map(axis).collect(),
            reads: block.reads.as_ref().map(regions),
            writes: block.writes.as_ref().map(regions),
            ..block.clone()
        }
    }
}

impl Rewrite for Replace<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Var(var) => Ok(self.values.get(var).unwrap_or(expr).clone()),
            _ => self.expr_children(expr),
        }
    }

    fn buffer(&mut self, buffer: &Buffer) -> Result<Buffer, Infallible> {
        Ok(self.of(buffer))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let StmtKind::Attr { node, key, value: AttrValue::Block(block), body } = &stmt.kind else {
            return flattened(self, stmt);
        };
        let value = AttrValue::Block(self.block(block).into());
        let body = Arc::new(self.stmt(body)?);
        Ok(Stmt { kind: StmtKind::Attr { node: node.clone(), key: key.clone(), value, body }, span: stmt.span })
    }
}

/// Returns the statements of the scope of a block, which is the block around it or the function, with others in front of and behind
/// the outermost statement that contains the block, and in the memory of a new buffer.
pub(super) fn with_neighbours(
    func: &PrimFunc,
    found: &Found<'_>,
    (front, behind): (Vec<Stmt>, Vec<Stmt>),
    memory: Option<&Buffer>,
) -> Stmt {
    let name = &found.block.name;
    let insert = |scope: &Stmt| {
        let body = inserted(scope, name, &(front.clone(), behind.clone()));
        match memory {
            Some(buffer) => Stmt::new(StmtKind::Allocate { buffer: buffer.clone(), body: Arc::new(body) }),
            None => body,
        }
    };
    let Some(parent) = found.parent else { return insert(&func.body) };
    with_block(&func.body, parent, &mut |block, _, parts| {
        if !has_block(parts.body, name) {
            return Stmt::seq(vec![realized_again(block, &parts, parts.body.clone())]);
        }
        realized_again(block, &parts, insert(parts.body))
    })
}

/// A block with its predicate and values, and another body.
pub(super) fn realized_again(block: &Block, parts: &BlockParts<'_>, body: Stmt) -> Stmt {
    let values = parts.bindings.iter().map(|&value| value.clone()).collect();
    realized(block.clone(), parts.predicate.cloned(), values, body)
}

fn inserted(stmt: &Stmt, name: &str, around: &(Vec<Stmt>, Vec<Stmt>)) -> Stmt {
    let deeper = |body: &Arc<Stmt>| Arc::new(inserted(body, name, around));
    let kind = match &stmt.kind {
        StmtKind::Seq(parts) => {
            let part = |part: &Stmt| if has_block(part, name) { inserted(part, name, around) } else { part.clone() };
            return Stmt::seq(parts.iter().map(part).collect()).at(stmt.span);
        }
        StmtKind::Allocate { buffer, body } => StmtKind::Allocate { buffer: buffer.clone(), body: deeper(body) },
        StmtKind::DeclBuffer { buffer, body } => StmtKind::DeclBuffer { buffer: buffer.clone(), body: deeper(body) },
        StmtKind::Let { var, value, body } => {
            StmtKind::Let { var: var.clone(), value: value.clone(), body: deeper(body) }
        }
        StmtKind::Attr { node, key, value, body } if Block::of(stmt).is_none() => {
            StmtKind::Attr { node: node.clone(), key: key.clone(), value: value.clone(), body: deeper(body) }
        }
        StmtKind::For(_) | StmtKind::If { .. } | StmtKind::Attr { .. } | StmtKind::Store { .. } => {
            return Stmt::seq([around.0.clone(), vec![stmt.clone()], around.1.clone()].concat());
        }
        StmtKind::Evaluate(_) | StmtKind::Barrier | StmtKind::Assert { .. } => return stmt.clone(),
    };
    Stmt { kind, span: stmt.span }
}

/// Returns a statement without a block, and without what only contained it.
pub(super) fn without_block(stmt: &Stmt, name: &str) -> Stmt {
    let empty = with_block(stmt, name, &mut |_, _, _| Stmt::seq(Vec::new()));
    pruned(&empty)
}

/// Returns a statement without loops and conditions that do nothing.
fn pruned(stmt: &Stmt) -> Stmt {
    let Ok(stmt) = Prune.stmt(stmt);
    stmt
}

struct Prune;

impl Rewrite for Prune {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let rewritten = flattened(self, stmt)?;
        let is_empty = |stmt: &Stmt| matches!(&stmt.kind, StmtKind::Seq(parts) if parts.is_empty());
        let mut children = rewritten.children().peekable();
        let does_nothing = children.peek().is_some() && children.all(is_empty);
        Ok(if does_nothing { Stmt::seq(Vec::new()) } else { rewritten })
    }
}

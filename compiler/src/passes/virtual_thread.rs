//! The rewriting of one loop over virtual threads, for [`super::inject_virtual_thread`].

use std::collections::HashSet;
use std::convert::Infallible;

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{
    AxisSeparators, Buffer, Diagnostic, Expr, For, ForKind, IndexMap, PrimFunc, Span, Stmt, StmtKind, Var, sabotage,
};

use super::remap::{Move, remap};
use super::schedule::{copied, has_own_memory};

/// Numbers of virtual threads below this one are written out.
const MOST_COPIES: i128 = 16;

/// A store after, and the store before that it is a copy of.
#[derive(Clone, Debug)]
pub(super) struct Copied {
    /// The position before.
    pub(super) before: usize,
    /// Loops before that are gone, and their values here.
    pub(super) values: Vec<(Var, Expr)>,
    /// Loops that the program before has not.
    pub(super) added: Vec<Var>,
    /// Whether it takes place once for all virtual threads.
    pub(super) is_once: bool,
}

/// The body of a function without the loop, and what its stores are.
pub(super) struct Interleaved {
    pub(super) body: Stmt,
    pub(super) stores: Vec<Copied>,
}

/// Interleaves the iterations of a loop.
///
/// # Errors
/// `virtual-thread`: the number of iterations is no constant, or a buffer that is allocated inside cannot have another axis.
pub(super) fn interleaved(func: &PrimFunc, inner: &For, span: Option<Span>) -> Result<Interleaved, Diagnostic> {
    let fault = |message: String, help: &str| Diagnostic::error("virtual-thread", span, message).with_help(help);
    let (Some(min), Some(count)) = (inner.min.as_const_int(), inner.extent.as_const_int()) else {
        let message =
            format!("the number of virtual threads `{}` is `{}`, which is no constant", inner.var, inner.extent);
        return Err(fault(message, "split the loop, so that the virtual threads are a constant number"));
    };
    let touched = Touched::of(inner);
    let moves = moves(func, inner, &touched, count.max(1)).map_err(|why| {
        fault(why, "copy what it holds to a buffer of its own, or run the pass before its views are declared")
    })?;
    // The new axis is indexed by the loop's variable, which has a value in each copy.
    let body = remap(&PrimFunc { body: inner.body.clone(), ..func.clone() }, &moves)?;
    let (in_front, n_inside) = (n_stores_before(func, inner), n_stores(&inner.body));
    let mut writer = Writer { inner, range: (min, count), touched, stores: Vec::new(), from: in_front };
    let body = if count > 0 { writer.stmt(&body) } else { Stmt::seq(Vec::new()) };
    let Ok(whole) = Around { var: &inner.var, body: &body }.stmt(&func.body);
    let same = |before: usize| Copied { before, values: Vec::new(), added: Vec::new(), is_once: false };
    let first = (0..in_front).map(same);
    let last = (in_front + n_inside..n_stores(&func.body)).map(same);
    let stores = first.chain(writer.stores).chain(last).collect();
    Ok(Interleaved { body: whole, stores })
}

/// The number of stores in a statement.
fn n_stores(stmt: &Stmt) -> usize {
    let mut count = 0;
    stmt.walk(&mut |part| count += usize::from(matches!(part.kind, StmtKind::Store { .. })));
    count
}

/// The number of stores in front of a loop.
fn n_stores_before(func: &PrimFunc, inner: &For) -> usize {
    let (mut count, mut is_met) = (0, false);
    func.body.walk(&mut |part| {
        is_met |= matches!(&part.kind, StmtKind::For(one) if one.var == inner.var);
        count += usize::from(!is_met && matches!(part.kind, StmtKind::Store { .. }));
    });
    count
}

/// What depends on the virtual thread: variables, and memory.
struct Touched {
    vars: HashSet<Var>,
    memory: HashSet<Var>,
}

impl Touched {
    fn of(inner: &For) -> Self {
        let mut found = Self { vars: HashSet::from([inner.var.clone()]), memory: HashSet::new() };
        loop {
            let known = found.vars.len() + found.memory.len();
            found.look(&inner.body, false);
            if found.vars.len() + found.memory.len() == known {
                return found;
            }
        }
    }

    /// Whether an expression depends on the virtual thread.
    fn depends(&self, expr: &Expr) -> bool {
        let mut found = false;
        expr.walk(&mut |part| {
            found |= match part {
                Expr::Var(var) => self.vars.contains(var),
                Expr::Load { buffer, .. } => self.memory.contains(&buffer.data),
                _ => false,
            };
        });
        found
    }

    /// Adds what a statement makes depend on the virtual thread. `is_inside`: whether the statement runs depends on it.
    fn look(&mut self, stmt: &Stmt, is_inside: bool) {
        let depends = is_inside || stmt.exprs().any(|expr| self.depends(expr));
        match &stmt.kind {
            StmtKind::Store { buffer, .. } if depends => {
                self.memory.insert(buffer.data.clone());
            }
            StmtKind::For(inner) if depends => {
                self.vars.insert(inner.var.clone());
            }
            StmtKind::Let { var, .. } if depends => {
                self.vars.insert(var.clone());
            }
            StmtKind::Store { .. } | StmtKind::For(_) | StmtKind::Let { .. } | StmtKind::Seq(_) => {}
            StmtKind::Allocate { .. } | StmtKind::DeclBuffer { .. } | StmtKind::If { .. } => {}
            StmtKind::Evaluate(_) | StmtKind::Attr { .. } | StmtKind::Barrier | StmtKind::Assert { .. } => {}
        }
        stmt.children().for_each(|child| self.look(child, depends));
    }
}

/// The buffers that get an axis.
fn moves(func: &PrimFunc, inner: &For, touched: &Touched, count: i128) -> Result<Vec<Move>, String> {
    let mut found = Vec::new();
    let mut wrong = None;
    inner.body.walk(&mut |stmt| {
        let StmtKind::Allocate { buffer, .. } = &stmt.kind else { return };
        if !touched.memory.contains(&buffer.data) || wrong.is_some() {
            return;
        }
        match expanded(func, inner, buffer, touched, count) {
            Ok(one) => found.push(one),
            Err(why) => wrong = Some(why),
        }
    });
    wrong.map_or(Ok(found), Err)
}

/// A buffer with an axis for the virtual threads in front.
fn expanded(func: &PrimFunc, inner: &For, buffer: &Buffer, touched: &Touched, count: i128) -> Result<Move, String> {
    let why = |why: &str| format!("`{buffer}` is allocated in each virtual thread, and {why}");
    has_own_memory(func, buffer).map_err(|fault| why(&fault.message))?;
    if buffer.scope.is_texture() {
        return Err(why("is a texture"));
    }
    if buffer.shape.iter().any(|extent| touched.depends(extent)) {
        return Err(why("its shape depends on the virtual thread"));
    }
    let ty = inner.var.dtype().scalar;
    let (Some(min), Some(count)) = (inner.min.as_const_int(), Expr::int_of(count, ty)) else {
        return Err(why("the number of virtual threads is no constant"));
    };
    let after = buffer.with(|info| {
        info.shape.insert(0, count);
        info.axis_separators = AxisSeparators::none(info.shape.len());
    });
    let vars: Vec<Var> = buffer.shape.iter().map(|extent| Var::new("i", extent.dtype())).collect();
    let number = Expr::from(&inner.var);
    let number = match Expr::int_of(min, ty) {
        Some(min) if min.as_const_int() != Some(0) => number - min,
        _ => number,
    };
    let number = if sabotage::on("virtual-threads-share") { number.clone() - number } else { number };
    let outputs = std::iter::once(number).chain(vars.iter().map(Expr::from)).collect();
    let map =
        IndexMap::new(vars, buffer.shape.clone(), outputs, Vec::new()).map_err(|error| why(&error.to_string()))?;
    Ok(Move { before: buffer.clone(), after, map })
}

/// Writes the statements of all virtual threads.
struct Writer<'a> {
    inner: &'a For,
    /// The first virtual thread, and their number.
    range: (i128, i128),
    touched: Touched,
    /// What each store that was written is.
    stores: Vec<Copied>,
    /// The number of the next store of the program before.
    from: usize,
}

impl Writer<'_> {
    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        let depends = |this: &Self| stmt.exprs().any(|expr| this.touched.depends(expr));
        match &stmt.kind {
            StmtKind::Store { buffer, .. } if depends(self) || self.touched.memory.contains(&buffer.data) => {
                self.each(stmt)
            }
            StmtKind::Store { .. } => {
                let first = self.value(self.range.0);
                self.stores.push(Copied {
                    before: self.from,
                    values: vec![(self.inner.var.clone(), first)],
                    added: Vec::new(),
                    is_once: true,
                });
                self.from += 1;
                stmt.clone()
            }
            StmtKind::For(_) | StmtKind::If { .. } | StmtKind::Let { .. } if depends(self) => self.each(stmt),
            StmtKind::Evaluate(_) | StmtKind::Assert { .. } if depends(self) => self.each(stmt),
            StmtKind::For(inner) => {
                let body = self.stmt(&inner.body);
                Stmt::new(StmtKind::For(For { body, ..For::clone(inner) }.into())).at(stmt.span)
            }
            StmtKind::Seq(stmts) => Stmt::seq(stmts.iter().map(|part| self.stmt(part)).collect()).at(stmt.span),
            StmtKind::Evaluate(_) | StmtKind::Assert { .. } => stmt.clone(),
            _ => {
                let Ok(rewritten) = Children(self).stmt_children(stmt);
                rewritten
            }
        }
    }

    /// The number of a virtual thread.
    fn value(&self, number: i128) -> Expr {
        Expr::int_of(number, self.inner.var.dtype().scalar).unwrap_or_else(|| self.inner.min.clone())
    }

    /// A statement once for each virtual thread: copies of it, or a loop.
    fn each(&mut self, stmt: &Stmt) -> Stmt {
        let n_inside = n_stores(stmt);
        let (min, count) = self.range;
        let mut has_loop = false;
        stmt.walk(&mut |part| has_loop |= matches!(part.kind, StmtKind::For(_)));
        let var = &self.inner.var;
        let copies = self.from..self.from + n_inside;
        self.from += n_inside;
        if has_loop || count >= MOST_COPIES {
            let fresh = Var::new(var.name(), var.dtype());
            let there = |before: usize| Copied {
                before,
                values: vec![(var.clone(), Expr::from(&fresh))],
                added: vec![fresh.clone()],
                is_once: false,
            };
            self.stores.extend(copies.map(there));
            let body = copied(stmt, &Substitution::new([var], [Expr::from(&fresh)]));
            let (min, extent) = (self.inner.min.clone(), self.inner.extent.clone());
            let inner = For { var: fresh, min, extent, kind: ForKind::Serial, annotations: Vec::new(), body };
            return Stmt::new(StmtKind::For(inner.into())).at(stmt.span);
        }
        let count = if sabotage::on("virtual-threads-drop-last") { count - 1 } else { count };
        let written = (min..min + count).map(|number| {
            let value = self.value(number);
            let there = |before: usize| Copied {
                before,
                values: vec![(var.clone(), value.clone())],
                added: Vec::new(),
                is_once: false,
            };
            self.stores.extend(copies.clone().map(there));
            copied(stmt, &Substitution::new([var], [value]))
        });
        let written: Vec<Stmt> = written.collect();
        Stmt::seq(written).at(stmt.span)
    }
}

/// Writes what is inside of a statement.
struct Children<'w, 'a>(&'w mut Writer<'a>);

impl Rewrite for Children<'_, '_> {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        Ok(self.0.stmt(stmt))
    }
}

/// Puts the statements in the place of the loop.
struct Around<'a> {
    var: &'a Var,
    body: &'a Stmt,
}

impl Rewrite for Around<'_> {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        match &stmt.kind {
            StmtKind::For(inner) if inner.var == *self.var => Ok(self.body.clone()),
            StmtKind::Seq(stmts) => {
                let parts = stmts.iter().map(|part| self.stmt(part)).collect::<Result<Vec<_>, _>>()?;
                Ok(Stmt::seq(parts).at(stmt.span))
            }
            _ => self.stmt_children(stmt),
        }
    }
}

//! Finds loops by name, and replaces them.

use std::convert::Infallible;

use tilewright_algebra::Ranges;
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{Diagnostic, For, ForKind, PrimFunc, Stmt, StmtKind, Var};

use super::super::remap::{inside, symbol_ranges};
use super::buffers::stores_to;
use super::{fault, known_names};

/// A loop, and the loops around it.
#[derive(Clone, Debug)]
pub(in crate::passes) struct Found<'f> {
    pub(in crate::passes) inner: &'f For,
    /// The loops around it, outermost first.
    pub(in crate::passes) outer: Vec<&'f For>,
}

impl Found<'_> {
    /// What is known of variables where the loop stands.
    pub(in crate::passes) fn ranges(&self, func: &PrimFunc) -> Ranges {
        self.outer.iter().fold(symbol_ranges(func), |ranges, outer| inside(&ranges, outer))
    }
}

/// Returns all loops of a function, outer ones before those inside.
pub(in crate::passes) fn all_loops(func: &PrimFunc) -> Vec<Found<'_>> {
    let mut all = Vec::new();
    collect(&func.body, &mut Vec::new(), &mut all);
    all
}

/// Returns the loops that a text names: `i`, or `C.i` for those around stores to `C`.
///
/// # Errors
/// There is none.
pub(in crate::passes) fn loops_named<'f>(func: &'f PrimFunc, text: &str) -> Result<Vec<Found<'f>>, Diagnostic> {
    let all = all_loops(func);
    let is_named = |found: &&Found<'_>| found.inner.var.name() == text;
    let mut named: Vec<Found<'f>> = all.iter().filter(is_named).cloned().collect();
    if let (true, Some((buffer, name))) = (named.is_empty(), text.rsplit_once('.')) {
        let around = |found: &&Found<'_>| {
            found.inner.var.name() == name && stores_to(&found.inner.body, &|stored| stored.name == buffer)
        };
        let candidates: Vec<Found<'f>> = all.iter().filter(around).cloned().collect();
        // Where loops of one name are nested, the inner one is nearer to the stores.
        let is_outer = |found: &&Found<'_>| {
            candidates.iter().any(|other| other.outer.iter().any(|run| run.var == found.inner.var))
        };
        named = candidates.iter().filter(|found| !is_outer(found)).cloned().collect();
    }
    if named.is_empty() {
        let mut names: Vec<&str> = all.iter().map(|found| found.inner.var.name()).collect();
        names.sort_unstable();
        names.dedup();
        let help = known_names("loops", text, &names);
        return Err(fault(format!("`{}` has no loop `{text}`", func.name), help));
    }
    Ok(named)
}

/// Returns the only loop that a text names.
///
/// # Errors
/// There is none, or there are several.
pub(in crate::passes) fn loop_named<'f>(func: &'f PrimFunc, text: &str) -> Result<Found<'f>, Diagnostic> {
    let mut named = loops_named(func, text)?;
    if let (Some(only), 0) = (named.pop(), named.len()) {
        return Ok(only);
    }
    let help = format!("name the buffer that is stored to inside, such as `C.{text}`, or give the loops other names");
    Err(fault(format!("`{}` has several loops `{text}`", func.name), help))
}

/// Checks that a loop runs its iterations one after the other.
///
/// # Errors
/// The loop is parallel, vectorized or bound to threads.
pub(in crate::passes) fn check_in_order(inner: &For, primitive: &str) -> Result<(), Diagnostic> {
    if matches!(inner.kind, ForKind::Serial | ForKind::Unrolled) {
        return Ok(());
    }
    let message = format!("`{primitive}` takes a serial loop, and `{}` runs its iterations at once", inner.var);
    Err(fault(message, "change the loop before it is made parallel, vectorized or bound to threads"))
}

fn collect<'f>(stmt: &'f Stmt, outer: &mut Vec<&'f For>, found: &mut Vec<Found<'f>>) {
    if let StmtKind::For(inner) = &stmt.kind {
        found.push(Found { inner, outer: outer.clone() });
        outer.push(inner);
        collect(&inner.body, outer, found);
        outer.pop();
        return;
    }
    for child in stmt.children() {
        collect(child, outer, found);
    }
}

/// Returns a statement with the loop over a variable replaced.
pub(in crate::passes) fn with_loop(stmt: &Stmt, var: &Var, replaced: &Stmt) -> Stmt {
    let Ok(stmt) = Replace { var, replaced }.stmt(stmt);
    stmt
}

struct Replace<'a> {
    var: &'a Var,
    replaced: &'a Stmt,
}

impl Rewrite for Replace<'_> {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        match &stmt.kind {
            StmtKind::For(inner) if inner.var == *self.var => Ok(self.replaced.clone().at(stmt.span)),
            // Copies of one loop stand one after the other in the sequence around it.
            StmtKind::Seq(stmts) => {
                let parts = stmts.iter().map(|part| self.stmt(part)).collect::<Result<Vec<_>, _>>()?;
                Ok(Stmt::seq(parts).at(stmt.span))
            }
            _ => self.stmt_children(stmt),
        }
    }
}

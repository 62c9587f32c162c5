//! The rewriting: a store of a vector becomes a loop over its lanes, a buffer of vectors one of elements.

use std::collections::HashMap;
use std::sync::Arc;

use tilewright_ir::visit::{Rewrite, Substitution};
use tilewright_ir::{Buffer, Expr, ForKind, PrimFunc, Scope, SharedExpr, Stmt, StmtKind, Var, sabotage};

use super::truths::{has_truths, with_truths};
use super::views::{Image, images};
use crate::access::ramp_at;
use crate::reorder::{is_kept, is_small};

/// A program without vectors that means what another one means, if no lane sees what a lane in front of it wrote.
#[derive(Clone, Debug)]
pub struct Scalarized {
    /// The program.
    pub func: PrimFunc,
    /// For each store of a vector, in program order: the variable of the loop over its lanes. `None` if the values are kept in
    /// memory of their own until all of them are read.
    pub(crate) lanes: Vec<Option<Var>>,
}

/// Whether a function has another form: it has a buffer of vectors, stores a vector, or keeps truth values as integers.
pub fn has_other_form(func: &PrimFunc) -> bool {
    has_vectors(func) || has_truths(func)
}

fn has_vectors(func: &PrimFunc) -> bool {
    let mut found = func.buffers().iter().any(|buffer| !buffer.dtype.is_scalar());
    func.body.walk(&mut |stmt| {
        found |= matches!(&stmt.kind, StmtKind::Store { value, .. } if !value.dtype().is_scalar());
    });
    found
}

/// The program without vectors, and with `bool` for integers that stand for truth values. The stores of vectors at the positions in `buffered`, counted in program order, keep the values of
/// their lanes in memory of their own until all of them are read.
///
/// # Errors
/// What has no such form: textures, whose texels are written as a whole, and requests for other layouts.
pub fn scalarize(func: &PrimFunc, buffered: &[usize]) -> Result<Scalarized, String> {
    let func = &with_truths(func);
    let images = images(func)?;
    let mut rewriter = Rewriter { images, buffered, values: Substitution::default(), lane: None, lanes: Vec::new() };
    let body = rewriter.stmt(&func.body)?;
    let mut func = PrimFunc { body, ..func.clone() };
    for (_, buffer) in &mut func.buffer_map {
        *buffer = rewriter.buffer(buffer)?;
    }
    Ok(Scalarized { func, lanes: rewriter.lanes })
}

struct Rewriter<'a> {
    images: HashMap<Buffer, Image>,
    buffered: &'a [usize],
    /// The values of names for vectors.
    values: Substitution,
    /// The lane whose value is taken of vectors.
    lane: Option<Expr>,
    lanes: Vec<Option<Var>>,
}

impl Rewriter<'_> {
    /// One lane of an expression, or a scalar.
    fn at(&mut self, lane: &Expr, expr: &Expr) -> Result<Expr, String> {
        let outer = self.lane.replace(lane.clone());
        let found = self.expr(&self.values.apply(expr));
        self.lane = outer;
        found
    }

    /// An access to an element, by an index without vectors.
    fn access(&self, buffer: &Buffer, mut index: Vec<Expr>) -> Result<(Buffer, Vec<Expr>), String> {
        let Some(image) = self.images.get(buffer) else { return Ok((buffer.clone(), index)) };
        if !buffer.dtype.is_scalar() {
            index.push(self.lane.clone().ok_or("a vector is read where no lane is known")?);
        }
        image.access(index).ok_or_else(|| format!("`{buffer}` is accessed with another number of indices"))
    }

    fn store(&mut self, stmt: &Stmt, buffer: &Buffer, indices: &[Expr], value: Expr) -> Result<Stmt, String> {
        let index = indices.iter().map(|index| self.expr(&self.values.apply(index))).collect::<Result<_, _>>()?;
        let (buffer, index) = self.access(buffer, index)?;
        Ok(Stmt::store(&buffer, index, value).at(stmt.span))
    }

    /// The loop over the lanes of a store.
    fn vector(&mut self, stmt: &Stmt, (buffer, indices, value): (&Buffer, &[Expr], &Expr)) -> Result<Stmt, String> {
        let (position, count) = (self.lanes.len(), Expr::int(value.dtype().lanes.into()));
        let lane = Var::index("lane");
        if self.buffered.contains(&position) {
            self.lanes.push(None);
            return self.kept(stmt, (buffer, indices, value), (&lane, count));
        }
        self.lanes.push(Some(lane.clone()));
        let value = self.at(&Expr::from(&lane), value)?;
        let one = self.at_lane(&lane, |this| this.store(stmt, buffer, indices, value))?;
        Ok(Stmt::for_loop(&lane, count, ForKind::Serial, one).at(stmt.span))
    }

    /// The same with all lanes read before one is written.
    fn kept(
        &mut self,
        stmt: &Stmt,
        (buffer, indices, value): (&Buffer, &[Expr], &Expr),
        (lane, count): (&Var, Expr),
    ) -> Result<Stmt, String> {
        let mut reads = false;
        for index in indices {
            index.walk(&mut |part| reads |= matches!(part, Expr::Load { buffer: other, .. } if other.aliases(buffer)));
        }
        if reads {
            return Err(format!("`{buffer}` is written, and decides which of its elements are"));
        }
        let own = Buffer::compact("lanes", value.dtype().with_lanes(1), vec![count.clone()]);
        let own = own.with(|info| info.scope = Scope::Local);
        let value = self.at(&Expr::from(lane), value)?;
        let read = Stmt::store(&own, vec![Expr::from(lane)], value).at(stmt.span);
        let second = Var::index("lane");
        let value = Expr::load(&own, vec![Expr::from(&second)]);
        let write = self.at_lane(&second, |this| this.store(stmt, buffer, indices, value))?;
        let both = [(lane, read), (&second, write)]
            .map(|(lane, body)| Stmt::for_loop(lane, count.clone(), ForKind::Serial, body).at(stmt.span));
        Ok(Stmt::new(StmtKind::Allocate { buffer: own, body: Arc::new(Stmt::seq(both.to_vec())) }).at(stmt.span))
    }

    fn at_lane<T>(&mut self, lane: &Var, run: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.lane.replace(Expr::from(lane));
        let found = run(self);
        self.lane = outer;
        found
    }

    /// A name for a vector is replaced by the value.
    fn named(&mut self, var: &Var, value: &Expr, body: &Arc<Stmt>) -> Result<Stmt, String> {
        let value = self.values.apply(value);
        if !is_kept(var, &value, body) {
            return Err(format!("`{var}` is a vector, and not used in any case, or not before the memory is written"));
        }
        if !is_small(&value) {
            return Err(format!("the value of `{var}` is too long"));
        }
        self.values.insert(var, value);
        self.stmt(body)
    }
}

impl Rewrite for Rewriter<'_> {
    type Error = String;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, String> {
        match expr {
            Expr::Ramp { base, stride, .. } => {
                let lane = self.lane.clone().ok_or("a vector stands where no lane is known")?;
                let (base, stride) = (self.expr(base)?, self.expr(stride)?);
                let stride = if sabotage::on("scalarize-unit-stride") { Expr::int(1) } else { stride };
                Ok(ramp_at(&base, &stride, &lane))
            }
            Expr::Broadcast { value, .. } => self.expr(value),
            Expr::Cast(ty, value) => Ok(Expr::Cast(ty.with_lanes(1), SharedExpr::new(self.expr(value)?))),
            Expr::Load { buffer, indices } => {
                let indices = self.exprs(indices)?;
                let (buffer, indices) = self.access(buffer, indices)?;
                Ok(Expr::load(&buffer, indices))
            }
            Expr::Var(var) if !var.dtype().is_scalar() => Err(format!("`{var}` is a vector without a value")),
            _ => self.expr_children(expr),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, String> {
        match &stmt.kind {
            StmtKind::Store { buffer, indices, value } if !value.dtype().is_scalar() => {
                self.vector(stmt, (buffer, indices, value))
            }
            StmtKind::Store { buffer, indices, value } => {
                let value = self.expr(value)?;
                self.store(stmt, buffer, indices, value)
            }
            StmtKind::Let { var, value, body } if !value.dtype().is_scalar() => self.named(var, value, body),
            StmtKind::Evaluate(value) if !value.dtype().is_scalar() => {
                Err(format!("`{value}` is a vector that is evaluated and discarded"))
            }
            StmtKind::DeclBuffer { buffer, body } if self.images.get(buffer).is_some_and(Image::is_elsewhere) => {
                self.stmt(body)
            }
            _ => self.stmt_children(stmt),
        }
    }

    fn buffer(&mut self, buffer: &Buffer) -> Result<Buffer, String> {
        Ok(self.images.get(buffer).map_or_else(|| buffer.clone(), |image| image.buffer().clone()))
    }
}

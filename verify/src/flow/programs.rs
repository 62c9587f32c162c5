//! Two programs that are compared by the values that they leave: each with a read of every element of every parameter in the end.

use std::convert::Infallible;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{Buffer, Evidence, Expr, PrimFunc, Sources, UnaryOp, Var};

use crate::claims::Relation;
use crate::lockstep::{Read, loads};
use crate::path::{Path, Step};
use crate::reorder::{Program, Statement, all, any, as_before, is_partial, program};

/// A program, and the reads behind its stores.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The stores, and then one store for each parameter that either program writes, which reads it and writes what nobody reads.
    pub program: Program,
    /// The number of stores of the program itself.
    pub n_stores: usize,
    /// The buffers that the program writes.
    pub written: Vec<Buffer>,
    /// The buffers of its parameters.
    pub params: Vec<Buffer>,
}

impl Observed {
    /// The indices of the reads in the end.
    pub fn index(&self) -> Vec<Var> {
        self.program.statements[self.n_stores..].iter().flat_map(Statement::loops).collect()
    }

    /// Whether the program writes the memory of a buffer.
    pub fn writes(&self, buffer: &Buffer) -> bool {
        self.written.contains(buffer)
    }

    /// The loads by which a store reads what the program writes, in the order of the text.
    pub fn reads(&self, statement: &Statement) -> Vec<Expr> {
        self.reads_where(statement).into_iter().map(|read| read.load).collect()
    }

    /// The same with the conditions under which each load is made.
    pub(crate) fn reads_where(&self, statement: &Statement) -> Vec<Read> {
        let mut found = loads(std::slice::from_ref(&statement.value));
        found.retain(|read| matches!(&read.load, Expr::Load { buffer, .. } if self.writes(buffer)));
        found
    }

    /// The condition that an instance of a store reads what memory held at the call, if its values come from these sources. Conditions
    /// that may have no value count as false.
    pub fn finds(&self, statement: &Statement, sources: &Sources) -> Expr {
        let reads = self.reads_where(statement);
        any(reads.iter().zip(sources).filter_map(|(read, pieces)| {
            let first = pieces.iter().position(|piece| piece.store.is_none())?;
            let earlier = pieces[..first].iter().flat_map(|piece| &piece.when).map(|when| (when, false));
            let choices = read.unmet(&[]).map(|(cond, holds)| (cond, *holds)).chain(earlier);
            let conditions: Vec<Expr> = choices
                .map(|(cond, holds)| if holds { cond.clone() } else { Expr::unary(UnaryOp::Not, cond.clone()) })
                .chain(pieces[first].when.clone())
                .collect();
            (!conditions.iter().any(is_partial)).then(|| all(conditions))
        }))
    }

    /// A load is of memory that holds something, and no memory that changes decides which element it is.
    fn can_be_read(&self, load: &Expr) -> Result<(), String> {
        let Expr::Load { buffer, indices } = load else { return Ok(()) };
        if !self.writes(buffer) && !self.params.contains(buffer) {
            return Err(format!("`{load}` is read, and `{buffer}` is never written"));
        }
        match indices.iter().find_map(|index| self.written_in(index)) {
            Some(inner) => Err(format!("`{inner}` is written, and decides which element is accessed")),
            None => Ok(()),
        }
    }

    /// A load in an expression that reads what the program writes.
    fn written_in(&self, expr: &Expr) -> Option<Expr> {
        let reads = |read: &Read| matches!(&read.load, Expr::Load { buffer, .. } if self.writes(buffer));
        loads(std::slice::from_ref(expr)).into_iter().find(reads).map(|read| read.load)
    }

    /// Takes a parameter for one that is written.
    fn may_change(&mut self, func: &PrimFunc, buffer: &Buffer) -> Result<(), String> {
        seen_once(func, buffer)?;
        self.written.push(buffer.clone());
        for statement in &self.program.statements {
            let steps = statement.path.steps.iter().flat_map(Step::exprs);
            if let Some(load) = steps.chain(&statement.indices).find_map(|expr| self.written_in(expr)) {
                return Err(format!(
                    "`{load}` is written by one of the programs, and decides what runs or is accessed"
                ));
            }
        }
        Ok(())
    }

    /// An expression with other loads in the place of those by which it reads what the program writes, in the order of the text
    /// ([`Observed::reads`]).
    pub fn with_loads(&self, expr: &Expr, loads: Vec<Expr>) -> Expr {
        let mut put = Put { observed: self, loads: loads.into_iter() };
        put.expr(expr).unwrap_or_else(|never| match never {})
    }

    /// The number of loops around the allocation of a buffer.
    pub(crate) fn loops_around(&self, buffer: &Buffer) -> usize {
        let found = self.program.allocated.iter().find(|(other, _)| other.aliases(buffer));
        found.map_or(0, |(_, loops)| *loops)
    }
}

/// Both programs, with the parameters in the order of the program before. That both accept the same calls is not looked at.
///
/// # Errors
/// The programs are not of the kind that is compared: values decide what runs or where it is kept, or memory is seen in two ways.
pub fn programs(before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> Result<[Observed; 2], String> {
    let (first, second) = (stores(before)?, stores(after)?);
    let relation = Relation::new(evidence);
    let buffers = |func: &PrimFunc| -> Vec<Buffer> {
        func.params.iter().filter_map(|param| func.param_buffer(param)).cloned().collect()
    };
    let (old, new) = (buffers(before), buffers(after));
    if old.len() != new.len() {
        return Err("the parameters differ in number".into());
    }
    let (mut first, mut second) = (first, second);
    second.program = as_before(&first.program, second.program, &relation)?;
    for (old, new) in old.iter().zip(&new) {
        // A parameter that one program writes may hold nothing when the other one reads it.
        match (first.writes(old), second.writes(new)) {
            (true, false) => second.may_change(after, new)?,
            (false, true) => first.may_change(before, old)?,
            _ => {}
        }
    }
    for (old, new) in old.iter().zip(&new) {
        if !relation.relates(old, new) || old.dtype != new.dtype || !old.dtype.is_scalar() {
            return Err(format!("nothing is claimed of how `{old}` became `{new}`"));
        }
        if !first.writes(old) && !second.writes(new) {
            continue;
        }
        let index: Vec<Var> =
            old.shape.iter().enumerate().map(|(axis, extent)| Var::new(format!("x{axis}"), extent.dtype())).collect();
        let at: Vec<Expr> = index.iter().map(Expr::from).collect();
        let image = relation.image(old, new, &at).unwrap_or_default();
        observe(&mut first, before, (&index, old), (old, at));
        observe(&mut second, after, (&index, old), (new, image));
    }
    Ok([first, second])
}

/// The stores of a program, if each part of memory that it writes is seen in one way.
fn stores(func: &PrimFunc) -> Result<Observed, String> {
    let program = program(func)?;
    let n_stores = program.statements.len();
    let mut written: Vec<Buffer> = Vec::new();
    for statement in &program.statements {
        let buffer = &statement.buffer;
        seen_once(func, buffer)?;
        if !statement.value.dtype().is_scalar() || statement.indices.iter().any(|index| !index.dtype().is_scalar()) {
            return Err(format!("`{}` stores a vector", statement.subject));
        }
        if !written.contains(buffer) {
            written.push(buffer.clone());
        }
    }
    let params = func.buffer_map.iter().map(|(_, buffer)| buffer.clone()).collect();
    let found = Observed { program, n_stores, written, params };
    for statement in &found.program.statements {
        for read in loads(&[statement.indices.as_slice(), std::slice::from_ref(&statement.value)].concat()) {
            found.can_be_read(&read.load)?;
        }
        if let Some(load) = statement.indices.iter().find_map(|index| found.written_in(index)) {
            return Err(format!("`{load}` is written, and decides which element is accessed"));
        }
    }
    Ok(found)
}

/// Puts loads in the place of others.
struct Put<'a, I> {
    observed: &'a Observed,
    loads: I,
}

impl<I: Iterator<Item = Expr>> Rewrite for Put<'_, I> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Load { buffer, .. } if self.observed.writes(buffer) => {
                Ok(self.loads.next().unwrap_or_else(|| expr.clone()))
            }
            _ => self.expr_children(expr),
        }
    }
}

/// No other buffer shows the memory of this one, and each element is there once.
fn seen_once(func: &PrimFunc, buffer: &Buffer) -> Result<(), String> {
    let buffers = func.buffers();
    let other = buffers.iter().find(|other| other.aliases(buffer) && *other != buffer);
    if let Some(other) = other.filter(|other| other.dtype.scalar != buffer.dtype.scalar) {
        let (own, seen) = (buffer.dtype, other.dtype);
        return Err(format!("the memory of `{buffer}` is written, and holds {own}, which `{other}` sees as {seen}"));
    }
    if buffer.strides.is_some() || other.is_some() {
        return Err(format!("the memory of `{buffer}` is written, and seen in more than one way"));
    }
    Ok(())
}

/// Adds the read of each element of a parameter behind everything else. The indices are those of the buffer before.
fn observe(observed: &mut Observed, func: &PrimFunc, index: (&[Var], &Buffer), (buffer, at): (&Buffer, Vec<Expr>)) {
    let (vars, old) = index;
    let mut path = Path::of(func);
    for cond in &observed.program.asserted {
        path.steps.push(Step::Guard(cond.clone(), true));
    }
    for (var, extent) in vars.iter().zip(&old.shape) {
        path.steps.push(Step::Loop(var.clone(), Expr::int(0), extent.clone()));
    }
    let last = observed.program.statements.iter().map(|statement| statement.place[0] + 1).max().unwrap_or(0);
    let mut place = vec![0; vars.len() + 1];
    place[0] = last;
    observed.program.statements.push(Statement {
        path,
        place,
        buffer: Buffer::compact("result", old.dtype, old.shape.clone()),
        indices: vars.iter().map(Expr::from).collect(),
        value: Expr::load(buffer, at),
        subject: format!("what `{old}` holds in the end"),
        span: None,
    });
}

//! Runs a program on terms instead of numbers.
//!
//! Loops have constant extents, and every index is a constant, so that a run visits the elements that an execution visits.
//! What depends on the values in memory becomes a choice between terms. What could trap ends the run: the answer is unknown
//! then.

use std::collections::{HashMap, HashSet};

use tilewright_ir::{
    BinaryOp, Bindings, Buffer, Expr, For, PrimFunc, Scalar, ScalarType, Stmt, StmtKind, UnaryOp, Var, sabotage,
};

use super::terms::{Id, Made, Node, Terms};

/// Statements and operations that a run may have.
const MOST_STEPS: u64 = 1 << 25;

/// Elements of memory that a run may have.
const MOST_CELLS: i128 = 1 << 23;

/// The memory of one allocation: a term for each lane of each element.
struct Memory {
    cells: Vec<Id>,
    /// The buffer by which it was made.
    of: Buffer,
}

/// A run.
pub(super) struct Machine<'t> {
    pub(super) terms: &'t mut Terms,
    memory: HashMap<Var, Memory>,
    vars: HashMap<Var, Id>,
    /// The conditions on values under which the statement runs.
    conds: Vec<Id>,
    /// When an assertion fails.
    pub(super) failures: Vec<Id>,
    /// Under which conditions on values something is read that a parameter held at the call, and need not have held.
    pub(super) finds: HashSet<Vec<Id>>,
    pub(super) steps: u64,
}

/// The constant extents of a buffer.
pub(super) fn extents(buffer: &Buffer) -> Result<Vec<i128>, String> {
    let of = |extent: &Expr| extent.eval_index(&Bindings::default()).ok().filter(|extent| *extent >= 0);
    let found: Option<Vec<i128>> = buffer.shape.iter().map(of).collect();
    found.ok_or_else(|| format!("the shape of `{buffer}` is no constant"))
}

/// The position of an element in the memory of its buffer, in elements.
pub(super) fn position(buffer: &Buffer, index: &[i128]) -> Result<i128, String> {
    let extents = extents(buffer)?;
    let inside =
        index.len() == extents.len() && index.iter().zip(&extents).all(|(at, extent)| (0..*extent).contains(at));
    if !inside {
        return Err(format!("`{buffer}` is accessed at {index:?}, out of bounds"));
    }
    let constant = |expr: &Expr| expr.eval_index(&Bindings::default()).map_err(|_| format!("`{expr}` is no constant"));
    let offset = constant(&buffer.elem_offset)?;
    let place = if let Some(strides) = &buffer.strides {
        let stride = |expr: &Expr| constant(expr).ok();
        let mut digits = index.iter().zip(strides);
        digits.try_fold(0i128, |place, (at, by)| place.checked_add(at.checked_mul(stride(by)?)?))
    } else {
        let mut digits = index.iter().zip(&extents);
        digits.try_fold(0i128, |place, (at, extent)| place.checked_mul(*extent)?.checked_add(*at))
    };
    let place = place.and_then(|place| place.checked_add(offset));
    place.filter(|place| *place >= 0).ok_or_else(|| format!("`{buffer}` is not in its memory"))
}

/// The number of elements that the memory of a buffer must have.
fn room(buffer: &Buffer) -> Result<i128, String> {
    let extents = extents(buffer)?;
    let count = extents.iter().try_fold(1i128, |count, extent| count.checked_mul(*extent));
    if count == Some(0) {
        return Ok(0);
    }
    let most = MOST_CELLS / i128::from(buffer.dtype.lanes);
    let last: Vec<i128> = extents.iter().map(|extent| extent - 1).collect();
    let end = position(buffer, &last)?;
    // With a stride of 0 there are more elements than places.
    if count.is_none_or(|count| count > most) || end >= most {
        return Err(format!("`{buffer}` has more than {MOST_CELLS} elements"));
    }
    Ok(end + 1)
}

/// Checks that the runs of two functions can end within [`MOST_STEPS`], as far as constant loops tell: to find out by running takes
/// as long as a proof.
pub(super) fn may_end(before: &PrimFunc, after: &PrimFunc) -> Result<(), String> {
    let least = least_steps(&before.body).saturating_add(least_steps(&after.body));
    if least > MOST_STEPS {
        Err(format!("the programs run {least} steps or more, and at most {MOST_STEPS} are run"))
    } else {
        Ok(())
    }
}

/// Steps that a statement takes in any case.
fn least_steps(stmt: &Stmt) -> u64 {
    let evaluated = |exprs: &[&Expr]| {
        let mut count = 0;
        for expr in exprs {
            evaluated_in_any_case(expr, &mut count);
        }
        count
    };
    let inside = match &stmt.kind {
        StmtKind::For(inner) => {
            let extent = inner.extent.as_const_int().and_then(|extent| u64::try_from(extent).ok()).unwrap_or(0);
            extent.saturating_mul(least_steps(&inner.body))
        }
        StmtKind::Store { indices, value, .. } => evaluated(&indices.iter().chain([value]).collect::<Vec<_>>()),
        StmtKind::Let { body, .. }
        | StmtKind::Allocate { body, .. }
        | StmtKind::DeclBuffer { body, .. }
        | StmtKind::Attr { body, .. } => least_steps(body),
        StmtKind::Seq(stmts) => stmts.iter().map(least_steps).fold(0, u64::saturating_add),
        StmtKind::If { .. } | StmtKind::Evaluate(_) | StmtKind::Barrier | StmtKind::Assert { .. } => 0,
    };
    inside.saturating_add(1)
}

/// Adds the parts of an expression that are evaluated in any case, as long as a run may have so many steps.
fn evaluated_in_any_case(expr: &Expr, count: &mut u64) {
    *count += 1;
    if *count > MOST_STEPS {
        return;
    }
    match expr {
        Expr::IfThenElse(cond, ..) => evaluated_in_any_case(cond, count),
        _ => expr.children().for_each(|child| evaluated_in_any_case(child, count)),
    }
}

impl<'t> Machine<'t> {
    pub(super) fn new(terms: &'t mut Terms) -> Self {
        Self {
            terms,
            memory: HashMap::new(),
            vars: HashMap::new(),
            conds: Vec::new(),
            failures: Vec::new(),
            finds: HashSet::new(),
            steps: 0,
        }
    }

    /// Makes the memory of a buffer, undefined.
    pub(super) fn allocate(&mut self, buffer: &Buffer) -> Result<(), String> {
        let cells =
            usize::try_from(room(buffer)? * i128::from(buffer.dtype.lanes)).map_err(|error| error.to_string())?;
        self.step(cells as u64)?;
        let nothing = self.terms.add(Node::Undefined)?;
        self.memory.insert(buffer.data.clone(), Memory { cells: vec![nothing; cells], of: buffer.clone() });
        Ok(())
    }

    pub(super) fn bind(&mut self, var: &Var, value: Id) {
        self.vars.insert(var.clone(), value);
    }

    /// The cell of one lane of an element.
    pub(super) fn cell(&mut self, buffer: &Buffer, index: &[i128], lane: u16) -> Result<&mut Id, String> {
        let place = position(buffer, index)? * i128::from(buffer.dtype.lanes) + i128::from(lane);
        let memory = self.memory.get_mut(&buffer.data).ok_or_else(|| format!("`{buffer}` has no memory"))?;
        let is_linear = |buffer: &Buffer| buffer.axis_separators.groups().len() <= 1 && !buffer.scope.is_texture();
        let same_type = memory.of.dtype.scalar == buffer.dtype.scalar;
        if memory.of != *buffer && !(same_type && is_linear(&memory.of) && is_linear(buffer)) {
            return Err(format!("`{buffer}` is another view of the memory of `{}`", memory.of));
        }
        let place = usize::try_from(place).ok().filter(|place| *place < memory.cells.len());
        let place = place.ok_or_else(|| format!("`{buffer}` leaves its memory"))?;
        Ok(&mut memory.cells[place])
    }

    fn step(&mut self, count: u64) -> Result<(), String> {
        self.steps += count;
        if self.steps > MOST_STEPS { Err(format!("the programs run more than {MOST_STEPS} steps")) } else { Ok(()) }
    }

    /// Runs the body of a function.
    pub(super) fn run(&mut self, func: &PrimFunc) -> Result<(), String> {
        self.stmt(&func.body)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), String> {
        self.step(1)?;
        match &stmt.kind {
            StmtKind::For(inner) => self.each(inner),
            StmtKind::Store { buffer, indices, value } => self.store(buffer, indices, value),
            StmtKind::Allocate { buffer, body } => {
                self.allocate(buffer)?;
                self.stmt(body)
            }
            StmtKind::DeclBuffer { body, .. } | StmtKind::Attr { body, .. } => self.stmt(body),
            StmtKind::If { cond, then_body, else_body } => {
                let cond = self.eval(cond, 0)?;
                self.branch(cond, then_body)?;
                let not = self.terms.unary(UnaryOp::Not, ScalarType::Bool, cond)?;
                else_body.as_ref().map_or(Ok(()), |body| self.branch(not, body))
            }
            StmtKind::Let { var, value, body } => {
                if !value.dtype().is_scalar() {
                    return Err(format!("`{var}` is a vector"));
                }
                let value = self.eval(value, 0)?;
                self.bind(var, value);
                self.stmt(body)
            }
            StmtKind::Seq(stmts) => stmts.iter().try_for_each(|stmt| self.stmt(stmt)),
            StmtKind::Barrier => Err("threads wait for each other at a barrier".into()),
            StmtKind::Evaluate(expr) => (0..expr.dtype().lanes).try_for_each(|lane| self.eval(expr, lane).map(drop)),
            StmtKind::Assert { cond, .. } => {
                let cond = self.eval(cond, 0)?;
                let mut failure = self.terms.unary(UnaryOp::Not, ScalarType::Bool, cond)?;
                for outer in self.conds.clone() {
                    failure = self.terms.binary(BinaryOp::And, ScalarType::Bool, outer, failure)?;
                }
                if self.terms.as_int(failure) != Some(0) {
                    self.failures.push(failure);
                }
                Ok(())
            }
        }
    }

    fn branch(&mut self, cond: Id, body: &Stmt) -> Result<(), String> {
        match self.terms.as_int(cond) {
            Some(0) => Ok(()),
            Some(_) => self.stmt(body),
            None => {
                let depth = self.conds.len();
                self.suppose(cond);
                let done = self.stmt(body);
                self.conds.truncate(depth);
                done
            }
        }
    }

    /// Adds the parts of a condition, each of them once: a condition may be long, and share its parts.
    fn suppose(&mut self, cond: Id) {
        let (mut rest, mut seen) = (vec![cond], HashSet::new());
        while let Some(cond) = rest.pop() {
            match *self.terms.node(cond) {
                _ if !seen.insert(cond) => {}
                Node::Binary(BinaryOp::And, _, a, b) => rest.extend([b, a]),
                _ => self.conds.push(cond),
            }
        }
    }

    /// A value where the conditions hold. A choice inside another one appears when the outer one is taken.
    fn supposed(&mut self, mut value: Id) -> Made {
        loop {
            self.step(self.conds.len() as u64)?;
            let taken = self.conds.iter().map(|cond| self.terms.under(value, *cond)).find(|taken| *taken != value);
            match taken {
                Some(taken) => value = taken,
                None => return Ok(value),
            }
        }
    }

    fn each(&mut self, inner: &For) -> Result<(), String> {
        let (min, extent) = (self.index(&inner.min, 0)?, self.index(&inner.extent, 0)?);
        for value in min..min.saturating_add(extent.max(0)) {
            let value = self.terms.int(inner.var.dtype().scalar, value)?;
            self.bind(&inner.var, value);
            self.stmt(&inner.body)?;
        }
        Ok(())
    }

    fn store(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr) -> Result<(), String> {
        // All lanes are read before one is written, those of the indices too.
        let lane = |lane| Ok((self.element(buffer, indices, lane)?, self.eval(value, lane)?));
        let lanes = (0..value.dtype().lanes).map(lane).collect::<Result<Vec<_>, String>>()?;
        for ((index, own), mut value) in lanes {
            self.step(self.conds.len() as u64)?;
            let old = *self.cell(buffer, &index, own)?;
            let conds = if sabotage::on("execution-ignores-conditions") { Vec::new() } else { self.conds.clone() };
            for cond in conds.into_iter().rev() {
                value = self.terms.choose(cond, value, old)?;
            }
            *self.cell(buffer, &index, own)? = value;
        }
        Ok(())
    }

    /// The index, and the lane inside the element, of one lane of an access.
    fn element(&mut self, buffer: &Buffer, indices: &[Expr], lane: u16) -> Result<(Vec<i128>, u16), String> {
        let own = buffer.dtype.lanes;
        let index = indices.iter().map(|index| self.index(index, lane / own)).collect::<Result<_, _>>()?;
        Ok((index, lane % own))
    }

    /// A lane of an integer that is a constant.
    fn index(&mut self, expr: &Expr, lane: u16) -> Result<i128, String> {
        let lane = if expr.dtype().lanes == 1 { 0 } else { lane };
        let id = self.eval(expr, lane)?;
        self.terms.as_int(id).ok_or_else(|| format!("`{expr}` depends on what memory holds"))
    }

    /// The value of one lane of an expression.
    fn eval(&mut self, expr: &Expr, lane: u16) -> Made {
        self.step(1)?;
        let ty = expr.dtype().scalar;
        match expr {
            Expr::Int { value, .. } => self.terms.int(ty, *value),
            Expr::Float { value, .. } => self.terms.constant(ty, Scalar::Float(*value)),
            Expr::Var(var) => self.vars.get(var).copied().ok_or_else(|| format!("`{var}` has no value")),
            Expr::Binary(op, a, b) => {
                let of = a.dtype().scalar;
                let (a, b) = (self.part(a, lane)?, self.part(b, lane)?);
                self.terms.binary(*op, of, a, b)
            }
            Expr::Unary(op, a) => {
                let a = self.part(a, lane)?;
                self.terms.unary(*op, ty, a)
            }
            Expr::Call(function, args) => {
                let of = args.first().map_or(ty, |arg| arg.dtype().scalar);
                let args = args.iter().map(|arg| self.part(arg, lane)).collect::<Result<_, _>>()?;
                self.terms.call(*function, of, args)
            }
            Expr::Select(cond, a, b) => {
                let (cond, a, b) = (self.part(cond, lane)?, self.part(a, lane)?, self.part(b, lane)?);
                self.terms.choose(cond, a, b)
            }
            Expr::IfThenElse(cond, a, b) => {
                let cond = self.part(cond, lane)?;
                match self.terms.as_int(cond) {
                    Some(0) => self.part(b, lane),
                    Some(_) => self.part(a, lane),
                    None => {
                        let not = self.terms.unary(UnaryOp::Not, ScalarType::Bool, cond)?;
                        let (a, b) = (self.part_where(cond, a, lane)?, self.part_where(not, b, lane)?);
                        self.terms.choose(cond, a, b)
                    }
                }
            }
            Expr::Cast(_, value) => {
                let from = value.dtype().scalar;
                let value = self.part(value, lane)?;
                self.terms.cast(from, ty, value)
            }
            Expr::Ramp { base, stride, .. } => {
                let (base, stride) = (self.eval(base, 0)?, self.eval(stride, 0)?);
                let at = self.terms.int(ty, lane.into())?;
                let step = self.terms.binary(BinaryOp::Mul, ty, at, stride)?;
                self.terms.binary(BinaryOp::Add, ty, base, step)
            }
            Expr::Broadcast { value, .. } => self.part(value, lane % value.dtype().lanes),
            Expr::Load { buffer, indices } => {
                let (index, own) = self.element(buffer, indices, lane)?;
                let value = *self.cell(buffer, &index, own)?;
                let value = self.supposed(value)?;
                if self.terms.is_undefined(value) {
                    return Err(format!("`{expr}` may never have been written"));
                }
                self.find(value)?;
                Ok(value)
            }
        }
    }

    /// Notes when a value that is read is what a parameter held at the call.
    fn find(&mut self, value: Id) -> Result<(), String> {
        let mut rest = vec![(value, self.conds.clone())];
        while let Some((value, mut conds)) = rest.pop() {
            if !self.terms.is_found(value) {
                continue;
            }
            self.step(1 + conds.len() as u64)?;
            if let Node::Choose(cond, a, b) = *self.terms.node(value) {
                let not = self.terms.unary(UnaryOp::Not, ScalarType::Bool, cond)?;
                let where_it = |cond| conds.iter().copied().chain([cond]).collect();
                rest.extend([(a, where_it(cond)), (b, where_it(not))]);
            } else {
                conds.sort_unstable();
                conds.dedup();
                self.finds.insert(conds);
            }
        }
        Ok(())
    }

    /// A lane of an operand that is evaluated where a condition holds.
    fn part_where(&mut self, cond: Id, expr: &Expr, lane: u16) -> Made {
        let depth = self.conds.len();
        if self.terms.as_int(cond).is_none() {
            self.suppose(cond);
        }
        let value = self.part(expr, lane);
        self.conds.truncate(depth);
        value
    }

    /// A lane of an operand, which may have one lane only.
    fn part(&mut self, expr: &Expr, lane: u16) -> Made {
        self.eval(expr, if expr.dtype().lanes == 1 { 0 } else { lane })
    }
}

//! A program with its names resolved, so that it runs fast: variables are slots, and accesses are places in numbered memories.
//!
//! ```text
//! for i in range(3):                  For, slot 0
//!     B[i * 2 + 1] = A[i] + 1             Store to memory 1 at slot 0 * 2 + 1; the index is known, the value is not
//! ```
//!
//! A value is *known* if it is an integer that is made of constants, loop variables and names for such integers: nothing that a
//! parameter holds has an influence on it.

use std::collections::HashMap;

use tilewright_ir::scalar::{cast, wrap_int};
use tilewright_ir::{
    BinaryOp, Bindings, Buffer, Expr, MathFn, PrimFunc, Scalar, ScalarType, Stmt, StmtKind, UnaryOp, Var,
};

/// Elements of memory that a buffer may have.
const MOST_CELLS: i64 = 1 << 23;

/// Operations and statements that a program may have, where each use of a shared expression counts.
const MOST_NODES: usize = 1 << 20;

/// The number of iterations that is supposed of a loop whose extent is no constant, to estimate how long it runs.
const SUPPOSED_EXTENT: u64 = 8;

/// A program.
pub(super) struct Code {
    /// How many places each memory has: one for each lane of each element. The first memories are those of the parameters, in their
    /// order.
    pub(super) rooms: Vec<usize>,
    /// The slots of the integers of the call, with the position of the parameter.
    pub(super) integers: Vec<(usize, u64)>,
    pub(super) n_slots: usize,
    pub(super) body: Action,
}

/// A statement.
pub(super) struct Action {
    pub(super) kind: ActionKind,
    /// Steps that it takes in any case.
    pub(super) least: u64,
    /// About how many steps it takes if all branches are taken.
    pub(super) about: u64,
}

pub(super) enum ActionKind {
    For { slot: usize, min: Value, extent: Value, body: Box<Action> },
    Store { access: Access, value: Value },
    Allocate { memory: usize, body: Box<Action> },
    If { cond: Value, then_body: Box<Action>, else_body: Option<Box<Action>> },
    Let { slot: usize, value: Value, body: Box<Action> },
    Seq(Vec<Action>),
    Evaluate(Value),
    Assert(Value),
}

/// An expression.
pub(super) struct Value {
    pub(super) expr: Expr,
    pub(super) kind: ValueKind,
    pub(super) ty: ScalarType,
    pub(super) lanes: u16,
    pub(super) is_known: bool,
    /// Steps that one lane takes in any case, and if both operands of each choice are evaluated.
    steps: [u64; 2],
}

pub(super) enum ValueKind {
    Int(i128),
    Float(f64),
    Slot(usize),
    Binary(BinaryOp, Box<[Value; 2]>),
    Unary(UnaryOp, Box<Value>),
    Call(MathFn, Vec<Value>),
    Select(Box<[Value; 3]>),
    IfThenElse(Box<[Value; 3]>),
    Cast(Box<Value>),
    Ramp(Box<[Value; 2]>),
    Broadcast(Box<Value>),
    Load(Access),
}

/// An element of a buffer.
pub(super) struct Access {
    pub(super) buffer: Buffer,
    pub(super) memory: usize,
    /// The places of the memory.
    room: usize,
    /// The lanes of an element.
    lanes: u16,
    indices: Vec<Value>,
    layout: Layout,
}

/// The elements of a buffer in its memory.
pub(super) struct Layout {
    pub(super) extents: Vec<i64>,
    strides: Vec<i64>,
    offset: i64,
}

impl Layout {
    /// The layout of a buffer whose shape, strides and offset are constants.
    pub(super) fn of(buffer: &Buffer) -> Result<Self, String> {
        let constant = |expr: &Expr| {
            let value = expr.eval_index(&Bindings::default()).ok().and_then(|value| i64::try_from(value).ok());
            value.ok_or_else(|| format!("`{expr}` in the shape of `{buffer}` is no constant"))
        };
        let extents: Vec<i64> = buffer.shape.iter().map(constant).collect::<Result<_, _>>()?;
        if extents.iter().any(|extent| *extent < 0) {
            return Err(format!("an extent of `{buffer}` is negative"));
        }
        let strides = match &buffer.strides {
            Some(strides) => strides.iter().map(constant).collect::<Result<_, _>>()?,
            None => row_major(&extents).ok_or_else(|| format!("`{buffer}` is too large"))?,
        };
        if strides.len() != extents.len() {
            return Err(format!("`{buffer}` has {} strides", strides.len()));
        }
        Ok(Self { extents, strides, offset: constant(&buffer.elem_offset)? })
    }

    /// Adds the index of one axis to a position; `None` if it is out of bounds.
    fn advance(&self, position: i64, axis: usize, at: i128) -> Option<i64> {
        let at = i64::try_from(at).ok().filter(|at| (0..self.extents[axis]).contains(at))?;
        position.checked_add(at.checked_mul(self.strides[axis])?)
    }

    /// The position of an element, in elements; `None` if it has none.
    pub(super) fn position(&self, index: &[i128]) -> Option<i64> {
        let mut axes = index.iter().enumerate();
        let position = axes.try_fold(self.offset, |position, (axis, at)| self.advance(position, axis, *at))?;
        (index.len() == self.extents.len() && position >= 0).then_some(position)
    }
}

fn row_major(extents: &[i64]) -> Option<Vec<i64>> {
    let mut strides = vec![1i64; extents.len()];
    for axis in (1..extents.len()).rev() {
        strides[axis - 1] = strides[axis].checked_mul(extents[axis])?;
    }
    Some(strides)
}

/// The number of places that the memory of a buffer has, one for each lane of each element.
fn room(buffer: &Buffer) -> Result<usize, String> {
    let layout = Layout::of(buffer)?;
    let lanes = i64::from(buffer.dtype.lanes);
    let count = layout.extents.iter().try_fold(1i64, |count, extent| count.checked_mul(*extent));
    let last: Vec<i128> = layout.extents.iter().map(|extent| i128::from(*extent) - 1).collect();
    let end = match count {
        Some(0) => 0,
        _ => layout.position(&last).map_or(i64::MAX, |last| last.saturating_add(1)),
    };
    // With a stride of 0 there are more elements than places.
    let most = MOST_CELLS / lanes;
    match count {
        Some(count) if count <= most && end <= most => usize::try_from(end * lanes).map_err(|error| error.to_string()),
        Some(count) => {
            Err(format!("`{buffer}` has {count} elements of {lanes} lanes, and at most {MOST_CELLS} are kept"))
        }
        None => Err(format!("`{buffer}` has more than {MOST_CELLS} elements")),
    }
}

impl Access {
    /// The place of one lane of the access, where `index` gives a lane of an index.
    pub(super) fn place(
        &self,
        lane: u16,
        mut index: impl FnMut(&Value, u16) -> Result<i128, String>,
    ) -> Result<usize, String> {
        let (lane, own) = (usize::from(lane), usize::from(self.lanes));
        let (element, rest) = if own == 1 { (lane, 0) } else { (lane / own, lane % own) };
        let element = u16::try_from(element).map_err(|error| error.to_string())?;
        let mut position = self.layout.offset;
        for (axis, value) in self.indices.iter().enumerate() {
            let at = index(value, element)?;
            let next = self.layout.advance(position, axis, at);
            position =
                next.ok_or_else(|| format!("`{}` is accessed at {at} of axis {axis}, out of bounds", self.buffer))?;
        }
        let place = usize::try_from(position).ok().and_then(|position| position.checked_mul(own)?.checked_add(rest));
        let place = place.filter(|place| *place < self.room);
        place.ok_or_else(|| format!("`{}` leaves its memory", self.buffer))
    }
}

impl Value {
    /// One lane of a value that is known, where `slots` has the values of the known variables.
    pub(super) fn int(&self, lane: u16, slots: &[i128]) -> Result<i128, String> {
        let lane = if self.lanes == 1 { 0 } else { lane };
        match &self.kind {
            ValueKind::Int(value) => Ok(*value),
            ValueKind::Slot(slot) => Ok(slots[*slot]),
            ValueKind::Binary(op, parts) => {
                let [a, b] = &**parts;
                operation(*op, a.ty, a.int(lane, slots)?, b.int(lane, slots)?)
            }
            ValueKind::Unary(op, a) => as_int(op.eval(self.ty, Scalar::Int(a.int(lane, slots)?))),
            ValueKind::Select(parts) => {
                let [cond, a, b] = &**parts;
                let (cond, a, b) = (cond.int(lane, slots)?, a.int(lane, slots)?, b.int(lane, slots)?);
                Ok(if cond == 0 { b } else { a })
            }
            ValueKind::IfThenElse(parts) => {
                let [cond, a, b] = &**parts;
                if cond.int(lane, slots)? == 0 { b.int(lane, slots) } else { a.int(lane, slots) }
            }
            ValueKind::Cast(a) => {
                let value = cast(a.ty, self.ty, Scalar::Int(a.int(lane, slots)?)).as_int();
                value.ok_or_else(|| self.depends())
            }
            ValueKind::Ramp(parts) => {
                let [base, stride] = &**parts;
                let step = operation(BinaryOp::Mul, self.ty, lane.into(), stride.int(0, slots)?)?;
                operation(BinaryOp::Add, self.ty, base.int(0, slots)?, step)
            }
            ValueKind::Broadcast(value) => value.int(lane % value.lanes, slots),
            ValueKind::Float(_) | ValueKind::Call(..) | ValueKind::Load(_) => Err(self.depends()),
        }
    }

    /// Says that the value is not known.
    pub(super) fn depends(&self) -> String {
        format!("`{}` depends on what memory holds", self.expr)
    }
}

/// An operation on integers of type `ty`. Most of a run in parts is spent on indices, so that the frequent cases come first.
pub(super) fn operation(op: BinaryOp, ty: ScalarType, a: i128, b: i128) -> Result<i128, String> {
    Ok(match (op, i64::try_from(a), i64::try_from(b)) {
        (BinaryOp::Add, Ok(_), Ok(_)) => wrapped(ty, a + b),
        (BinaryOp::Sub, Ok(_), Ok(_)) => wrapped(ty, a - b),
        (BinaryOp::Mul, Ok(_), Ok(_)) => wrapped(ty, a * b),
        (BinaryOp::FloorDiv, Ok(a), Ok(b)) if b > 0 => a.div_euclid(b).into(),
        (BinaryOp::FloorMod, Ok(a), Ok(b)) if b > 0 => a.rem_euclid(b).into(),
        (BinaryOp::Lt, ..) => i128::from(a < b),
        (BinaryOp::Le, ..) => i128::from(a <= b),
        (BinaryOp::And, ..) => i128::from(a != 0 && b != 0),
        (op, ..) => return as_int(op.eval(ty, Scalar::Int(a), Scalar::Int(b))),
    })
}

/// [`wrap_int`], which divides.
fn wrapped(ty: ScalarType, value: i128) -> i128 {
    let is_small = ty == ScalarType::Int32 && i32::try_from(value).is_ok();
    if is_small { value } else { wrap_int(ty, value) }
}

fn as_int(value: Result<Scalar, tilewright_ir::ScalarError>) -> Result<i128, String> {
    let value = value.map_err(|error| error.to_string())?;
    value.as_int().ok_or_else(|| "an operation on integers has no integer value".into())
}

impl Code {
    /// Resolves the names of a function.
    pub(super) fn of(func: &PrimFunc) -> Result<Self, String> {
        let mut resolver = Resolver::default();
        for buffer in func.params.iter().filter_map(|param| func.param_buffer(param)) {
            resolver.allocate(buffer)?;
        }
        let mut integers = Vec::new();
        for (number, param) in (0u64..).zip(&func.params) {
            if func.param_buffer(param).is_none() {
                integers.push((resolver.slot(param, false), number));
            }
        }
        let body = resolver.stmt(&func.body)?;
        let Resolver { rooms, n_slots, .. } = resolver;
        Ok(Self { rooms, integers, n_slots, body })
    }
}

/// Ends the scope of a name.
fn restore<T>(names: &mut HashMap<Var, T>, name: &Var, outer: Option<T>) {
    match outer {
        Some(outer) => names.insert(name.clone(), outer),
        None => names.remove(name),
    };
}

/// What is known of the names in scope.
#[derive(Default)]
struct Resolver {
    /// The slot of a variable, and whether its value is known.
    vars: HashMap<Var, (usize, bool)>,
    /// The memory behind a data variable.
    of_data: HashMap<Var, usize>,
    /// The buffer by which each memory is made.
    memories: Vec<Buffer>,
    rooms: Vec<usize>,
    n_slots: usize,
    n_nodes: usize,
}

impl Resolver {
    fn allocate(&mut self, buffer: &Buffer) -> Result<usize, String> {
        self.rooms.push(room(buffer)?);
        self.memories.push(buffer.clone());
        self.of_data.insert(buffer.data.clone(), self.memories.len() - 1);
        Ok(self.memories.len() - 1)
    }

    fn slot(&mut self, var: &Var, is_known: bool) -> usize {
        self.vars.insert(var.clone(), (self.n_slots, is_known));
        self.n_slots += 1;
        self.n_slots - 1
    }

    /// The slot of a variable, and the statement in which it has a value.
    fn scope(&mut self, var: &Var, is_known: bool, body: &Stmt) -> Result<(usize, Box<Action>), String> {
        let outer = self.vars.get(var).copied();
        let slot = self.slot(var, is_known);
        let body = Box::new(self.stmt(body)?);
        restore(&mut self.vars, var, outer);
        Ok((slot, body))
    }

    fn count(&mut self) -> Result<(), String> {
        self.n_nodes += 1;
        if self.n_nodes > MOST_NODES { Err(format!("a program has more than {MOST_NODES} operations")) } else { Ok(()) }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Action, String> {
        self.count()?;
        let kind = match &stmt.kind {
            StmtKind::For(inner) => {
                let (min, extent) = (self.value(&inner.min)?, self.value(&inner.extent)?);
                let (slot, body) = self.scope(&inner.var, true, &inner.body)?;
                ActionKind::For { slot, min, extent, body }
            }
            StmtKind::Store { buffer, indices, value } => {
                ActionKind::Store { access: self.access(buffer, indices)?, value: self.value(value)? }
            }
            StmtKind::Allocate { buffer, body } => {
                let outer = self.of_data.get(&buffer.data).copied();
                let memory = self.allocate(buffer)?;
                let body = Box::new(self.stmt(body)?);
                restore(&mut self.of_data, &buffer.data, outer);
                ActionKind::Allocate { memory, body }
            }
            StmtKind::DeclBuffer { body, .. } | StmtKind::Attr { body, .. } => return self.stmt(body),
            StmtKind::If { cond, then_body, else_body } => ActionKind::If {
                cond: self.value(cond)?,
                then_body: Box::new(self.stmt(then_body)?),
                else_body: else_body.as_ref().map(|body| self.stmt(body).map(Box::new)).transpose()?,
            },
            StmtKind::Let { var, value, body } => {
                if !value.dtype().is_scalar() {
                    return Err(format!("`{var}` is a vector"));
                }
                let value = self.value(value)?;
                let (slot, body) = self.scope(var, value.is_known, body)?;
                ActionKind::Let { slot, value, body }
            }
            StmtKind::Seq(stmts) => {
                ActionKind::Seq(stmts.iter().map(|stmt| self.stmt(stmt)).collect::<Result<_, _>>()?)
            }
            StmtKind::Barrier => return Err("threads wait for each other at a barrier".into()),
            StmtKind::Evaluate(expr) => ActionKind::Evaluate(self.value(expr)?),
            StmtKind::Assert { cond, .. } => ActionKind::Assert(self.value(cond)?),
        };
        let [least, about] = steps(&kind, &self.rooms);
        Ok(Action { kind, least, about })
    }

    fn access(&mut self, buffer: &Buffer, indices: &[Expr]) -> Result<Access, String> {
        let memory = *self.of_data.get(&buffer.data).ok_or_else(|| format!("`{buffer}` has no memory"))?;
        let of = &self.memories[memory];
        let is_linear = |buffer: &Buffer| buffer.axis_separators.groups().len() <= 1 && !buffer.scope.is_texture();
        let same_type = of.dtype.scalar == buffer.dtype.scalar;
        if of != buffer && !(same_type && is_linear(of) && is_linear(buffer)) {
            return Err(format!("`{buffer}` is another view of the memory of `{of}`"));
        }
        let layout = Layout::of(buffer)?;
        if layout.extents.len() != indices.len() {
            return Err(format!("`{buffer}` is accessed by {} indices", indices.len()));
        }
        let indices = indices.iter().map(|index| self.value(index)).collect::<Result<_, _>>()?;
        let (room, lanes) = (self.rooms[memory], buffer.dtype.lanes);
        Ok(Access { buffer: buffer.clone(), memory, room, lanes, indices, layout })
    }

    fn value(&mut self, expr: &Expr) -> Result<Value, String> {
        self.count()?;
        let mut part = |expr: &Expr| self.value(expr);
        let kind = match expr {
            Expr::Int { value, .. } => ValueKind::Int(*value),
            Expr::Float { value, .. } => ValueKind::Float(*value),
            Expr::Var(var) => {
                let (slot, is_known) = *self.vars.get(var).ok_or_else(|| format!("`{var}` has no value"))?;
                return Ok(Value::new(expr, ValueKind::Slot(slot), is_known));
            }
            Expr::Binary(op, a, b) => ValueKind::Binary(*op, Box::new([part(a)?, part(b)?])),
            Expr::Unary(op, a) => ValueKind::Unary(*op, Box::new(part(a)?)),
            Expr::Call(function, args) => ValueKind::Call(*function, args.iter().map(part).collect::<Result<_, _>>()?),
            Expr::Select(cond, a, b) => ValueKind::Select(Box::new([part(cond)?, part(a)?, part(b)?])),
            Expr::IfThenElse(cond, a, b) => ValueKind::IfThenElse(Box::new([part(cond)?, part(a)?, part(b)?])),
            Expr::Cast(_, value) => ValueKind::Cast(Box::new(part(value)?)),
            Expr::Ramp { base, stride, .. } => ValueKind::Ramp(Box::new([part(base)?, part(stride)?])),
            Expr::Broadcast { value, .. } => ValueKind::Broadcast(Box::new(part(value)?)),
            Expr::Load { buffer, indices } => ValueKind::Load(self.access(buffer, indices)?),
        };
        let is_known =
            !expr.dtype().scalar.is_float() && kind.is_of_integers() && kind.parts().iter().all(|part| part.is_known);
        Ok(Value::new(expr, kind, is_known))
    }
}

impl Value {
    fn new(expr: &Expr, kind: ValueKind, is_known: bool) -> Self {
        let dtype = expr.dtype();
        let of = |which: usize| {
            let parts = kind.parts();
            // Of a choice, one operand is evaluated at least.
            let n_parts = if which == 0 && matches!(kind, ValueKind::IfThenElse(_)) { 1 } else { parts.len() };
            parts[..n_parts].iter().fold(1, |sum: u64, part| sum.saturating_add(part.steps[which]))
        };
        let steps = if is_known { [0; 2] } else { [of(0), of(1)] };
        Self { expr: expr.clone(), ty: dtype.scalar, lanes: dtype.lanes, is_known, steps, kind }
    }
}

impl ValueKind {
    /// The operands, the indices of a load among them.
    fn parts(&self) -> &[Value] {
        match self {
            Self::Int(_) | Self::Float(_) | Self::Slot(_) => &[],
            Self::Binary(_, parts) | Self::Ramp(parts) => &**parts,
            Self::Select(parts) | Self::IfThenElse(parts) => &**parts,
            Self::Unary(_, a) | Self::Cast(a) | Self::Broadcast(a) => std::slice::from_ref(a),
            Self::Call(_, args) => args,
            Self::Load(access) => &access.indices,
        }
    }

    /// Whether it is an integer if its operands are known.
    fn is_of_integers(&self) -> bool {
        match self {
            Self::Float(_) | Self::Call(..) | Self::Load(_) => false,
            Self::Int(_) | Self::Slot(_) | Self::Binary(..) | Self::Unary(..) => true,
            Self::Select(_) | Self::IfThenElse(_) | Self::Ramp(_) | Self::Broadcast(_) => true,
            Self::Cast(_) => true,
        }
    }
}

/// Steps that a statement takes in any case, and about how many if all branches are taken.
fn steps(kind: &ActionKind, rooms: &[usize]) -> [u64; 2] {
    [0, 1].map(|which| {
        let of = |action: &Action| if which == 0 { action.least } else { action.about };
        let inside = match kind {
            ActionKind::For { extent, body, .. } => {
                let constant = extent.expr.as_const_int().map(|extent| u64::try_from(extent).unwrap_or(0));
                constant.unwrap_or([0, SUPPOSED_EXTENT][which]).saturating_mul(of(body))
            }
            ActionKind::Store { access, value } => {
                let index = access.indices.iter().fold(0, |sum: u64, index| sum.saturating_add(index.steps[which]));
                index.saturating_add(value.steps[which]).saturating_mul(u64::from(value.lanes))
            }
            ActionKind::Allocate { memory, body } => of(body).saturating_add(rooms[*memory] as u64),
            ActionKind::If { cond, then_body, else_body } if which == 1 => {
                let branches = of(then_body).saturating_add(else_body.as_ref().map_or(0, |body| of(body)));
                branches.saturating_add(cond.steps[which])
            }
            ActionKind::If { cond: value, .. } | ActionKind::Assert(value) => value.steps[which],
            ActionKind::Let { value, body, .. } => value.steps[which].saturating_add(of(body)),
            ActionKind::Seq(actions) => actions.iter().map(of).fold(0, u64::saturating_add),
            ActionKind::Evaluate(value) => value.steps[which].saturating_mul(u64::from(value.lanes)),
        };
        inside.saturating_add(1)
    })
}

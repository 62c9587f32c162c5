//! Runs a program on terms instead of numbers.
//!
//! Loops have constant extents, and every index is a constant, so that a run visits the elements that an execution visits.
//! What depends on the values in memory becomes a choice between terms. What could trap ends the run: the answer is unknown
//! then.

use std::collections::HashSet;

use tilewright_ir::{BinaryOp, Scalar, ScalarType, UnaryOp, sabotage};

use super::code::{Access, Action, ActionKind, Code, Value, ValueKind};
use super::terms::{Id, Made, Node, Terms};

/// Statements and operations that the runs of two programs with the same terms may have.
pub(super) const MOST_STEPS: u64 = 1 << 25;

/// The number of the inputs that are integers.
const INTEGERS: u32 = u32::MAX;

/// A place that holds what the caller gave, of which nothing was read so far.
const GIVEN: Id = Id::MAX;

/// In the place of the number of an element: the place is padding, and holds nothing.
pub(super) const PADDING: u32 = u32::MAX;

/// A run.
pub(super) struct Machine<'a> {
    pub(super) terms: &'a mut Terms,
    /// For each parameter, which lane of which element each place of its memory holds at the call.
    given: &'a [Vec<u32>],
    /// What was never written.
    nothing: Id,
    /// The term in each place of each memory.
    memory: Vec<Vec<Id>>,
    /// The values of the known variables, and of the others.
    known: Vec<i128>,
    others: Vec<Id>,
    /// The conditions on values under which the statement runs.
    conds: Vec<Id>,
    /// When an assertion fails.
    pub(super) failures: Vec<Id>,
    /// Under which conditions on values something is read that a parameter held at the call, and need not have held.
    pub(super) finds: HashSet<Vec<Id>>,
    pub(super) steps: u64,
}

impl<'a> Machine<'a> {
    /// A run that begins with what the caller gave; `steps` were made before.
    pub(super) fn new(terms: &'a mut Terms, code: &'a Code, given: &'a [Vec<u32>], steps: u64) -> Result<Self, String> {
        let nothing = terms.add(Node::Undefined)?;
        let first = |memory| if memory < given.len() { GIVEN } else { nothing };
        let memory = code.rooms.iter().enumerate().map(|(memory, room)| vec![first(memory); *room]).collect();
        let mut others = vec![nothing; code.n_slots];
        for (slot, number) in &code.integers {
            others[*slot] = terms.add(Node::Input(INTEGERS, *number))?;
        }
        let (known, conds, failures, finds) = (vec![0; code.n_slots], Vec::new(), Vec::new(), HashSet::new());
        Ok(Self { terms, given, nothing, memory, known, others, conds, failures, finds, steps })
    }

    /// Gives a known variable its value.
    pub(super) fn bind(&mut self, slot: usize, value: i128) {
        self.known[slot] = value;
    }

    /// Makes the memory of an allocation, undefined.
    pub(super) fn allocate(&mut self, memory: usize) -> Result<(), String> {
        self.step(self.memory[memory].len() as u64)?;
        self.memory[memory].fill(self.nothing);
        Ok(())
    }

    /// What a place holds.
    pub(super) fn held(&mut self, memory: usize, place: usize) -> Made {
        let held = self.memory[memory][place];
        if held != GIVEN {
            return Ok(held);
        }
        let held = match self.given[memory][place] {
            PADDING => self.nothing,
            element => {
                let number = u32::try_from(memory).map_err(|error| error.to_string())?;
                self.terms.add(Node::Input(number, element.into()))?
            }
        };
        self.memory[memory][place] = held;
        Ok(held)
    }

    fn step(&mut self, count: u64) -> Result<(), String> {
        self.steps += count;
        if self.steps > MOST_STEPS { Err(format!("the programs run more than {MOST_STEPS} steps")) } else { Ok(()) }
    }

    /// Runs a statement.
    pub(super) fn run(&mut self, action: &Action) -> Result<(), String> {
        self.step(1)?;
        match &action.kind {
            ActionKind::For { slot, min, extent, body } => {
                let (min, extent) = (self.index(min, 0)?, self.index(extent, 0)?);
                for value in min..min.saturating_add(extent.max(0)) {
                    self.bind(*slot, value);
                    self.run(body)?;
                }
                Ok(())
            }
            ActionKind::Store { access, value } => self.store(access, value),
            ActionKind::Allocate { memory, body } => {
                self.allocate(*memory)?;
                self.run(body)
            }
            ActionKind::If { cond, then_body, else_body } => {
                let cond = self.eval(cond, 0)?;
                self.branch(cond, then_body)?;
                let Some(else_body) = else_body else { return Ok(()) };
                let not = self.terms.unary(UnaryOp::Not, ScalarType::Bool, cond)?;
                self.branch(not, else_body)
            }
            ActionKind::Let { slot, value, body } => {
                if value.is_known {
                    self.known[*slot] = value.int(0, &self.known)?;
                } else {
                    self.others[*slot] = self.eval(value, 0)?;
                }
                self.run(body)
            }
            ActionKind::Seq(actions) => actions.iter().try_for_each(|action| self.run(action)),
            ActionKind::Evaluate(value) => (0..value.lanes).try_for_each(|lane| self.eval(value, lane).map(drop)),
            ActionKind::Assert(cond) => {
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

    fn branch(&mut self, cond: Id, body: &Action) -> Result<(), String> {
        match self.terms.as_int(cond) {
            Some(0) => Ok(()),
            Some(_) => self.run(body),
            None => {
                let depth = self.conds.len();
                self.suppose(cond);
                let done = self.run(body);
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

    fn store(&mut self, access: &Access, value: &Value) -> Result<(), String> {
        // All lanes are read before one is written, those of the indices too.
        let mut lane = |lane| Ok((self.place(access, lane)?, self.eval(value, lane)?));
        if value.lanes == 1 {
            let (place, value) = lane(0)?;
            return self.write(access.memory, place, value);
        }
        let lanes = (0..value.lanes).map(lane).collect::<Result<Vec<_>, String>>()?;
        lanes.into_iter().try_for_each(|(place, value)| self.write(access.memory, place, value))
    }

    fn write(&mut self, memory: usize, place: usize, mut value: Id) -> Result<(), String> {
        if !self.conds.is_empty() && !sabotage::on("execution-ignores-conditions") {
            self.step(self.conds.len() as u64)?;
            let old = self.held(memory, place)?;
            for cond in self.conds.clone().into_iter().rev() {
                value = self.terms.choose(cond, value, old)?;
            }
        }
        self.memory[memory][place] = value;
        Ok(())
    }

    /// The place of one lane of an access.
    fn place(&mut self, access: &Access, lane: u16) -> Result<usize, String> {
        access.place(lane, |index, lane| self.index(index, lane))
    }

    /// A lane of an integer that is a constant.
    fn index(&mut self, value: &Value, lane: u16) -> Result<i128, String> {
        if value.is_known {
            return value.int(lane, &self.known);
        }
        let id = self.part(value, lane)?;
        self.terms.as_int(id).ok_or_else(|| value.depends())
    }

    /// The value of one lane of an expression.
    fn eval(&mut self, value: &Value, lane: u16) -> Made {
        let ty = value.ty;
        if value.is_known {
            return self.terms.int(ty, value.int(lane, &self.known)?);
        }
        self.step(1)?;
        match &value.kind {
            ValueKind::Int(value) => self.terms.int(ty, *value),
            ValueKind::Float(value) => self.terms.constant(ty, Scalar::Float(*value)),
            ValueKind::Slot(slot) => Ok(self.others[*slot]),
            ValueKind::Binary(op, parts) => {
                let [a, b] = &**parts;
                let (x, y) = (self.part(a, lane)?, self.part(b, lane)?);
                self.terms.binary(*op, a.ty, x, y)
            }
            ValueKind::Unary(op, a) => {
                let a = self.part(a, lane)?;
                self.terms.unary(*op, ty, a)
            }
            ValueKind::Call(function, args) => {
                let of = args.first().map_or(ty, |arg| arg.ty);
                let args = args.iter().map(|arg| self.part(arg, lane)).collect::<Result<_, _>>()?;
                self.terms.call(*function, of, args)
            }
            ValueKind::Select(parts) => {
                let [cond, a, b] = &**parts;
                let (cond, a, b) = (self.part(cond, lane)?, self.part(a, lane)?, self.part(b, lane)?);
                self.terms.choose(cond, a, b)
            }
            ValueKind::IfThenElse(parts) => {
                let [cond, a, b] = &**parts;
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
            ValueKind::Cast(a) => {
                let x = self.part(a, lane)?;
                self.terms.cast(a.ty, ty, x)
            }
            ValueKind::Ramp(parts) => {
                let [base, stride] = &**parts;
                let (base, stride) = (self.eval(base, 0)?, self.eval(stride, 0)?);
                let at = self.terms.int(ty, lane.into())?;
                let step = self.terms.binary(BinaryOp::Mul, ty, at, stride)?;
                self.terms.binary(BinaryOp::Add, ty, base, step)
            }
            ValueKind::Broadcast(value) => self.part(value, lane % value.lanes),
            ValueKind::Load(access) => self.load(access, lane, value),
        }
    }

    fn load(&mut self, access: &Access, lane: u16, value: &Value) -> Made {
        let place = self.place(access, lane)?;
        let held = self.held(access.memory, place)?;
        let held = self.supposed(held)?;
        if self.terms.is_undefined(held) {
            return Err(format!("`{}` may never have been written", value.expr));
        }
        self.find(held)?;
        Ok(held)
    }

    /// Notes when a value that is read is what a parameter held at the call.
    fn find(&mut self, value: Id) -> Result<(), String> {
        let mut rest = vec![(value, self.conds.clone())];
        if sabotage::on("execution-finds-nothing") {
            rest.clear();
        }
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
    fn part_where(&mut self, cond: Id, value: &Value, lane: u16) -> Made {
        let depth = self.conds.len();
        if self.terms.as_int(cond).is_none() {
            self.suppose(cond);
        }
        let value = self.part(value, lane);
        self.conds.truncate(depth);
        value
    }

    /// A lane of an operand, which may have one lane only.
    fn part(&mut self, value: &Value, lane: u16) -> Made {
        let is_first = value.lanes == 1 || sabotage::on("execution-takes-first-lane");
        self.eval(value, if is_first { 0 } else { lane })
    }
}

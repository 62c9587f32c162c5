//! Which parts of a run the values of an element depend on, found by a run that computes nothing but indices.
//!
//! ```text
//! for i in range(2):                     unit 0: i = 0, all j          depends on nothing
//!     for j in range(1000):              unit 1: i = 1, all j          depends on nothing
//!         T[i] = T[i] + A[i, j]
//! for i in range(2):                     unit 2: all i                 depends on units 0 and 1
//!     B[i] = T[i]
//! ```
//!
//! A unit is a statement in one iteration of the loops around it; the units of a run come one after the other. A unit depends on those
//! that wrote last what it reads. A store under a condition that is not known reads what it may replace. Hence a run of
//! some units alone, with all that they depend on, gives each of them what the whole run gives it: between the last writer of a
//! place and a reader of it, no unit of the whole run writes the place.

use tilewright_ir::sabotage;

use super::code::{Access, Action, ActionKind, Code, Value, ValueKind};

/// Steps that both programs may run.
pub(super) const MOST_TRACED: u64 = 1 << 31;

/// Units of a run, and dependences between them.
const MOST_UNITS: usize = 1 << 23;
const MOST_DEPENDENCES: usize = 1 << 26;

/// In the place of the number of a unit: none.
pub(super) const NONE: u32 = u32::MAX;

/// A statement in one iteration of the loops around it, or the begin of an allocation.
#[derive(Clone, Copy)]
pub(super) enum Task<'a> {
    Run(&'a Action),
    Allocate(usize),
}

/// A unit of a run.
pub(super) struct Unit<'a> {
    pub(super) task: Task<'a>,
    /// Where its variables and its dependences end; they begin where those of the unit before end.
    vars: usize,
    sources: usize,
    pub(super) steps: u64,
    /// Whether it has an assertion that is not known to hold.
    pub(super) asserts: bool,
}

/// The units of a run.
pub(super) struct Trace<'a> {
    pub(super) units: Vec<Unit<'a>>,
    /// The known variables around the statements of the units, each a slot and a value.
    vars: Vec<(u32, i64)>,
    sources: Vec<u32>,
    /// The unit that wrote each place of each memory last.
    pub(super) writers: Vec<Vec<u32>>,
}

impl<'a> Trace<'a> {
    /// The units of a run, none of which takes many more steps than `size` if its statement has parts.
    pub(super) fn of(code: &'a Code, size: u64) -> Result<Self, String> {
        let writers = code.rooms.iter().map(|room| vec![NONE; *room]).collect();
        let trace = Self { units: Vec::new(), vars: Vec::new(), sources: Vec::new(), writers };
        let (known, scope) = (vec![0; code.n_slots], Vec::new());
        let mut tracer =
            Tracer { trace, known, scope, seen: Vec::new(), size, steps: 0, is_sure: true, asserts: false };
        tracer.outline(&code.body)?;
        Ok(tracer.trace)
    }

    /// The run as one unit.
    pub(super) fn whole(code: &'a Code) -> Self {
        let unit = Unit { task: Task::Run(&code.body), vars: 0, sources: 0, steps: code.body.about, asserts: true };
        let writers = code.rooms.iter().map(|room| vec![0; *room]).collect();
        Self { units: vec![unit], vars: Vec::new(), sources: Vec::new(), writers }
    }

    fn before(&self, unit: u32) -> (usize, usize) {
        let before = (unit as usize).checked_sub(1).map(|before| &self.units[before]);
        before.map_or((0, 0), |before| (before.vars, before.sources))
    }

    /// The known variables around the statement of a unit.
    pub(super) fn vars(&self, unit: u32) -> &[(u32, i64)] {
        &self.vars[self.before(unit).0..self.units[unit as usize].vars]
    }

    /// The units that a unit depends on.
    pub(super) fn sources(&self, unit: u32) -> &[u32] {
        &self.sources[self.before(unit).1..self.units[unit as usize].sources]
    }
}

struct Tracer<'a> {
    trace: Trace<'a>,
    /// The values of the known variables.
    known: Vec<i128>,
    /// The slots of those around the statement.
    scope: Vec<usize>,
    /// For each unit, the last one that depends on it.
    seen: Vec<u32>,
    size: u64,
    steps: u64,
    /// Whether the statement takes place whatever memory holds.
    is_sure: bool,
    asserts: bool,
}

impl<'a> Tracer<'a> {
    /// Divides a statement into units.
    fn outline(&mut self, action: &'a Action) -> Result<(), String> {
        if action.about <= self.size {
            return self.unit(action);
        }
        self.step(1)?;
        match &action.kind {
            ActionKind::For { slot, min, extent, body } if min.is_known && extent.is_known => {
                self.scope.push(*slot);
                for value in self.range(min, extent)? {
                    self.known[*slot] = value;
                    self.outline(body)?;
                }
                self.scope.pop();
                Ok(())
            }
            ActionKind::Seq(actions) => actions.iter().try_for_each(|action| self.outline(action)),
            ActionKind::Allocate { memory, body } => {
                self.allocation(*memory)?;
                self.outline(body)
            }
            ActionKind::Let { slot, value, body } if value.is_known => {
                self.known[*slot] = value.int(0, &self.known)?;
                self.scope.push(*slot);
                self.outline(body)?;
                self.scope.pop();
                Ok(())
            }
            ActionKind::If { cond, then_body, else_body } if cond.is_known => {
                let body = if cond.int(0, &self.known)? == 0 { else_body.as_ref() } else { Some(then_body) };
                body.map_or(Ok(()), |body| self.outline(body))
            }
            ActionKind::For { .. } | ActionKind::Let { .. } | ActionKind::If { .. } => self.unit(action),
            ActionKind::Store { .. } | ActionKind::Evaluate(_) | ActionKind::Assert(_) => self.unit(action),
        }
    }

    /// One unit.
    fn unit(&mut self, action: &'a Action) -> Result<(), String> {
        let begin = self.steps;
        self.asserts = false;
        self.stmt(action)?;
        self.end(Task::Run(action), self.steps - begin)
    }

    /// The begin of an allocation, which leaves all of it undefined.
    fn allocation(&mut self, memory: usize) -> Result<(), String> {
        let (number, room) = (self.number(), self.trace.writers[memory].len() as u64);
        self.step(room)?;
        self.trace.writers[memory].fill(number);
        self.asserts = false;
        self.end(Task::Allocate(memory), room)
    }

    fn end(&mut self, task: Task<'a>, steps: u64) -> Result<(), String> {
        for slot in &self.scope {
            let value = i64::try_from(self.known[*slot]).map_err(|error| error.to_string())?;
            let slot = u32::try_from(*slot).map_err(|error| error.to_string())?;
            self.trace.vars.push((slot, value));
        }
        let (vars, sources, asserts) = (self.trace.vars.len(), self.trace.sources.len(), self.asserts);
        if self.trace.units.len() >= MOST_UNITS || sources > MOST_DEPENDENCES || vars > MOST_DEPENDENCES {
            return Err(format!(
                "the programs have more than {MOST_UNITS} parts, or more than {MOST_DEPENDENCES} dependences"
            ));
        }
        self.trace.units.push(Unit { task, vars, sources, steps, asserts });
        self.seen.push(NONE);
        Ok(())
    }

    /// The number of the unit that is being made.
    fn number(&self) -> u32 {
        u32::try_from(self.trace.units.len()).unwrap_or(NONE)
    }

    fn step(&mut self, count: u64) -> Result<(), String> {
        self.steps += count;
        if self.steps > MOST_TRACED { Err(format!("the programs run more than {MOST_TRACED} steps")) } else { Ok(()) }
    }

    fn range(&self, min: &Value, extent: &Value) -> Result<std::ops::Range<i128>, String> {
        let (min, extent) = (self.index(min, 0)?, self.index(extent, 0)?);
        Ok(min..min.saturating_add(extent.max(0)))
    }

    /// A statement of a unit.
    fn stmt(&mut self, action: &Action) -> Result<(), String> {
        self.step(1)?;
        match &action.kind {
            ActionKind::For { slot, min, extent, body } => {
                for value in self.range(min, extent)? {
                    self.known[*slot] = value;
                    self.stmt(body)?;
                }
                Ok(())
            }
            ActionKind::Store { access, value } => {
                for lane in 0..value.lanes {
                    self.value(value, lane)?;
                }
                (0..value.lanes).try_for_each(|lane| self.write(access, lane))
            }
            ActionKind::Allocate { memory, body } => {
                let number = self.number();
                self.step(self.trace.writers[*memory].len() as u64)?;
                self.trace.writers[*memory].fill(number);
                self.stmt(body)
            }
            ActionKind::If { cond, then_body, else_body } => {
                self.value(cond, 0)?;
                let holds = if cond.is_known { Some(cond.int(0, &self.known)? != 0) } else { None };
                self.branches(holds, |tracer, is_first| match (is_first, else_body) {
                    (true, _) => tracer.stmt(then_body),
                    (false, Some(body)) => tracer.stmt(body),
                    (false, None) => Ok(()),
                })
            }
            ActionKind::Let { slot, value, body } => {
                self.value(value, 0)?;
                if value.is_known {
                    self.known[*slot] = value.int(0, &self.known)?;
                }
                self.stmt(body)
            }
            ActionKind::Seq(actions) => actions.iter().try_for_each(|action| self.stmt(action)),
            ActionKind::Evaluate(value) => (0..value.lanes).try_for_each(|lane| self.value(value, lane)),
            ActionKind::Assert(cond) => {
                self.value(cond, 0)?;
                self.asserts |= !cond.is_known || cond.int(0, &self.known)? == 0;
                Ok(())
            }
        }
    }

    /// Visits the branches that may be taken, the first one where a condition holds.
    fn branches(
        &mut self,
        holds: Option<bool>,
        mut visit: impl FnMut(&mut Self, bool) -> Result<(), String>,
    ) -> Result<(), String> {
        if let Some(holds) = holds {
            return visit(self, holds);
        }
        let is_sure = std::mem::replace(&mut self.is_sure, false);
        let done = visit(self, true);
        let done = if sabotage::on("trace-forgets-else") { done } else { done.and_then(|()| visit(self, false)) };
        self.is_sure = is_sure;
        done
    }

    /// What one lane of a value reads.
    fn value(&mut self, value: &Value, lane: u16) -> Result<(), String> {
        if value.is_known {
            return Ok(());
        }
        self.step(1)?;
        let lane = if value.lanes == 1 { 0 } else { lane };
        match &value.kind {
            ValueKind::Int(_) | ValueKind::Float(_) | ValueKind::Slot(_) => Ok(()),
            ValueKind::Binary(_, parts) => parts.iter().try_for_each(|part| self.value(part, lane)),
            ValueKind::Select(parts) => parts.iter().try_for_each(|part| self.value(part, lane)),
            ValueKind::Ramp(parts) => parts.iter().try_for_each(|part| self.value(part, 0)),
            ValueKind::Unary(_, a) | ValueKind::Cast(a) => self.value(a, lane),
            ValueKind::Call(_, args) => args.iter().try_for_each(|arg| self.value(arg, lane)),
            ValueKind::Broadcast(value) => self.value(value, lane % value.lanes),
            ValueKind::IfThenElse(parts) => {
                let [cond, a, b] = &**parts;
                self.value(cond, lane)?;
                let holds = if cond.is_known { Some(cond.int(lane, &self.known)? != 0) } else { None };
                self.branches(holds, |tracer, is_first| tracer.value(if is_first { a } else { b }, lane))
            }
            ValueKind::Load(access) => {
                let place = self.place(access, lane)?;
                self.read(access.memory, place);
                Ok(())
            }
        }
    }

    /// An index, which has to be known.
    fn index(&self, value: &Value, lane: u16) -> Result<i128, String> {
        if value.is_known { value.int(lane, &self.known) } else { Err(value.depends()) }
    }

    fn place(&self, access: &Access, lane: u16) -> Result<usize, String> {
        access.place(lane, |index, lane| self.index(index, lane))
    }

    /// The unit depends on what wrote a place last.
    fn read(&mut self, memory: usize, place: usize) {
        let (writer, number) = (self.trace.writers[memory][place], self.number());
        if writer == NONE || writer == number || (writer + 1 == number && sabotage::on("trace-forgets-last-unit")) {
            return;
        }
        let seen = &mut self.seen[writer as usize];
        if *seen != number {
            *seen = number;
            self.trace.sources.push(writer);
        }
    }

    fn write(&mut self, access: &Access, lane: u16) -> Result<(), String> {
        let place = self.place(access, lane)?;
        if !self.is_sure && !sabotage::on("trace-forgets-kept-values") {
            self.read(access.memory, place);
        }
        self.trace.writers[access.memory][place] = self.number();
        Ok(())
    }
}

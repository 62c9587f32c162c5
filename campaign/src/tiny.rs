//! Tiny programs with loops whose iterations run at once, all of whose interleavings can be tried.
//!
//! ```text
//! for i in T.parallel(2):         A[i]: 1 2 3 4
//!     A[(i + 1) % 4] = A[i] * 2 + 1
//! ```
//!
//! [`Tiny::events`] lists the reads and writes of a program with what is known of their order; [`outcomes`] runs them in
//! every order that this allows. Both are written from the definition of the language and share no code with the
//! interpreter.

use std::collections::BTreeSet;

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};
use tilewright_ir::{
    AttrValue, Buffer, DataType, Expr, ForKind, FuncAttrs, PrimFunc, ScalarType, Stmt, StmtKind, ThreadTag, Var,
};

use crate::case::{Case, without_one};
use crate::config::Config;

/// Elements of the only buffer.
pub const CELLS: usize = 4;

/// The most reads and writes of a program.
const EVENTS: usize = 16;

/// How the iterations of a loop run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// In order.
    Serial,
    /// At once.
    Parallel,
    /// As groups of a launch.
    Block,
    /// As threads of a launch.
    Thread,
}

/// An index: variables with coefficients, innermost first, and a constant; modulo the number of elements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The coefficients of the innermost loop and of the one around it.
    pub factors: [u8; 2],
    /// The constant.
    pub offset: u8,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Part {
    /// `A[to] = A[from] * 2 + add`, or `A[to] = add` without `from`.
    Store {
        /// The element written.
        to: Place,
        /// The element read.
        from: Option<Place>,
        /// What is added.
        add: u8,
    },
    /// The threads of the group wait for each other. Drawn inside of threads only.
    Barrier,
    /// Statements under a condition that all iterations agree on. Drawn inside of threads only.
    When {
        /// Whether the condition holds.
        holds: bool,
        /// The body.
        body: Vec<Part>,
    },
    /// A loop.
    Loop {
        /// How its iterations run.
        kind: Kind,
        /// Number of iterations.
        extent: u8,
        /// The body.
        body: Vec<Part>,
    },
}

/// A case: statements in a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tiny(pub Vec<Part>);

/// A loop around an event: the number of its execution, how it runs, and the value of its variable.
type Around = (usize, Kind, i64);

/// A read or a write.
#[derive(Clone, Debug)]
pub struct Event {
    /// The element.
    pub cell: usize,
    /// For a write, what is added to twice the value that was read, and the read that it belongs to.
    pub write: Option<(i64, Option<usize>)>,
    /// The loops around it, outermost first.
    around: Vec<Around>,
    /// The barriers that its group has passed before it.
    epoch: usize,
}

/// The events of a program so far.
#[derive(Default)]
struct Found {
    events: Vec<Event>,
    /// Number of loop executions.
    executions: usize,
    /// Barriers that the group has passed.
    epoch: usize,
}

impl Found {
    fn add(&mut self, cell: usize, write: Option<(i64, Option<usize>)>, around: &[Around]) -> usize {
        self.events.push(Event { cell, write, around: around.to_vec(), epoch: self.epoch });
        self.events.len() - 1
    }

    /// Puts the events from one on into the order of their epochs: no thread is ahead of another one by a barrier.
    fn sort_from(&mut self, first: usize) {
        let mut order: Vec<usize> = (first..self.events.len()).collect();
        order.sort_by_key(|at| self.events[*at].epoch);
        let place = |old: usize| order.iter().position(|at| *at == old).map_or(old, |new| first + new);
        let moved =
            |event: &Event| Event { write: event.write.map(|(add, read)| (add, read.map(place))), ..event.clone() };
        let sorted: Vec<Event> = order.iter().map(|at| moved(&self.events[*at])).collect();
        self.events.splice(first.., sorted);
    }
}

impl Place {
    /// Draws an index.
    fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let factors = [u.int_in_range(0..=3)?, u.int_in_range(0..=3)?];
        Ok(Self { factors, offset: u.int_in_range(0..=3)? })
    }

    /// The element for the values of the loops around.
    fn cell(&self, values: &[i64]) -> usize {
        let inner = values.iter().rev().zip(self.factors).map(|(value, factor)| value * i64::from(factor)).sum::<i64>();
        usize::try_from((inner + i64::from(self.offset)).rem_euclid(4)).unwrap_or(0)
    }

    /// The index as an expression.
    fn expr(&self, vars: &[Var]) -> Expr {
        let mut sum = Expr::int(i64::from(self.offset));
        for (var, factor) in vars.iter().rev().zip(self.factors) {
            sum = sum + Expr::from(var) * Expr::int(i64::from(factor));
        }
        sum.floor_mod(Expr::int(4))
    }
}

impl Part {
    /// Draws a statement inside `depth` loops.
    fn draw(u: &mut Unstructured<'_>, depth: usize, launched: &[Kind]) -> arbitrary::Result<Self> {
        if launched.contains(&Kind::Thread) && u.ratio(1, 4)? {
            return Ok(Self::Barrier);
        }
        if launched.contains(&Kind::Thread) && depth < 3 && u.ratio(1, 8)? {
            let holds = u.arbitrary()?;
            let body = (0..u.int_in_range(1..=2)?).map(|_| Self::draw(u, depth + 1, launched));
            return Ok(Self::When { holds, body: body.collect::<arbitrary::Result<_>>()? });
        }
        if depth > 0 && (depth >= 3 || u.ratio(1, 2)?) {
            let from = if u.ratio(2, 3)? { Some(Place::draw(u)?) } else { None };
            return Ok(Self::Store { to: Place::draw(u)?, from, add: u.int_in_range(0..=3)? });
        }
        // A thread may not be inside a thread of the same axis, and a group not inside a thread.
        let mut kinds = vec![Kind::Serial, Kind::Parallel, Kind::Thread, Kind::Block];
        if launched.contains(&Kind::Thread) {
            kinds.retain(|kind| *kind == Kind::Serial);
        }
        if launched.contains(&Kind::Block) {
            kinds.retain(|kind| matches!(kind, Kind::Serial | Kind::Thread));
        }
        let kind = *u.choose(&kinds)?;
        let inside = [launched, &[kind]].concat();
        // In a group by itself the threads are entered again by each loop over them.
        let (extent, most) = match kind {
            Kind::Block => (u.int_in_range(1..=2)?, 3),
            Kind::Thread => (2, 3),
            // A loop around a barrier need not have an iteration.
            Kind::Serial if u.ratio(1, 6)? => (u.int_in_range(0..=1)?, 2),
            Kind::Serial | Kind::Parallel => (u.int_in_range(2..=3)?, 2),
        };
        let count = u.int_in_range(1..=most)?;
        let body = (0..count).map(|_| Self::draw(u, depth + 1, &inside)).collect::<arbitrary::Result<_>>()?;
        Ok(Self::Loop { kind, extent, body })
    }

    /// The statement inside the loops over `vars`, which reads one buffer and writes another one or the same.
    fn stmt(&self, buffers: [&Buffer; 2], vars: &mut Vec<Var>) -> Stmt {
        match self {
            Self::Store { to, from, add } => {
                let add = Expr::int(i64::from(*add));
                let value = match from {
                    Some(from) => Expr::load(buffers[0], vec![from.expr(vars)]) * Expr::int(2) + add,
                    None => add,
                };
                Stmt::store(buffers[1], vec![to.expr(vars)], value)
            }
            Self::Barrier => Stmt::new(StmtKind::Barrier),
            Self::When { holds, body } => {
                let body = body.iter().map(|part| part.stmt(buffers, vars)).collect();
                Stmt::guarded(Expr::bool(*holds), Stmt::seq(body))
            }
            Self::Loop { kind, extent, body } => {
                let var = Var::index(format!("i{}", vars.len()));
                vars.push(var.clone());
                let body = Stmt::seq(body.iter().map(|part| part.stmt(buffers, vars)).collect());
                vars.pop();
                let kind = match kind {
                    Kind::Serial => ForKind::Serial,
                    Kind::Parallel => ForKind::Parallel,
                    Kind::Block => ForKind::ThreadBinding(ThreadTag::Block(0)),
                    Kind::Thread => ForKind::ThreadBinding(ThreadTag::Thread(0)),
                };
                Stmt::for_loop(&var, Expr::int(i64::from(*extent)), kind, body)
            }
        }
    }

    /// Adds the events of the statement in program order; those of a group, barrier by barrier.
    fn events(&self, around: &mut Vec<Around>, found: &mut Found) {
        let values: Vec<i64> = around.iter().map(|(_, _, value)| *value).collect();
        match self {
            Self::Store { to, from, add } => {
                let read = from.as_ref().map(|from| found.add(from.cell(&values), None, around));
                found.add(to.cell(&values), Some((i64::from(*add), read)), around);
            }
            Self::Barrier => found.epoch += 1,
            Self::When { holds, body } => {
                for part in body.iter().filter(|_| *holds) {
                    part.events(around, found);
                }
            }
            Self::Loop { kind, extent, body } => {
                found.executions += 1;
                let (execution, first, epoch) = (found.executions, found.events.len(), found.epoch);
                for value in 0..i64::from(*extent) {
                    // Each thread passes the same barriers. Groups have barriers of their own.
                    match kind {
                        Kind::Thread => found.epoch = epoch,
                        Kind::Block => found.epoch = 0,
                        Kind::Serial | Kind::Parallel => {}
                    }
                    around.push((execution, *kind, value));
                    for part in body {
                        part.events(around, found);
                    }
                    around.pop();
                }
                if *kind == Kind::Thread {
                    found.sort_from(first);
                }
            }
        }
    }

    /// The statement with one statement less in each body, or with two iterations.
    fn trimmed(&self) -> Self {
        match self {
            Self::Store { .. } | Self::Barrier => self.clone(),
            Self::When { holds, body } => {
                let most = body.len().saturating_sub(1).max(1);
                Self::When { holds: *holds, body: body.iter().take(most).map(Self::trimmed).collect() }
            }
            Self::Loop { kind, extent, body } => {
                let body: Vec<Self> =
                    body.iter().take(body.len().saturating_sub(1).max(1)).map(Self::trimmed).collect();
                Self::Loop { kind: *kind, extent: 2.min(*extent), body }
            }
        }
    }

    /// Simpler statements.
    fn simpler(&self) -> Vec<Self> {
        match self {
            Self::Store { to, from, add } => {
                let zero = Place { factors: [0, 0], offset: 0 };
                let mut found = Vec::new();
                if from.is_some() {
                    found.push(Self::Store { to: to.clone(), from: None, add: *add });
                }
                if *add > 0 {
                    found.push(Self::Store { to: to.clone(), from: from.clone(), add: 0 });
                }
                if *to != zero {
                    found.push(Self::Store { to: zero, from: from.clone(), add: *add });
                }
                found
            }
            Self::Barrier => Vec::new(),
            Self::When { holds, body } => {
                let fewer = without_one(body).into_iter().filter(|body| !body.is_empty());
                let mut found: Vec<Self> = fewer.map(|body| Self::When { holds: *holds, body }).collect();
                for (at, part) in body.iter().enumerate() {
                    found.extend(part.simpler().into_iter().map(|part| {
                        let mut body = body.clone();
                        body[at] = part;
                        Self::When { holds: *holds, body }
                    }));
                }
                found
            }
            Self::Loop { kind, extent, body } => {
                let of = |kind, extent, body| Self::Loop { kind, extent, body };
                let mut found: Vec<Self> = without_one(body)
                    .into_iter()
                    .filter(|body| !body.is_empty())
                    .map(|body| of(*kind, *extent, body))
                    .collect();
                if *extent > 2 {
                    found.push(of(*kind, 2, body.clone()));
                }
                if *kind == Kind::Parallel {
                    found.push(of(Kind::Serial, *extent, body.clone()));
                }
                for (at, part) in body.iter().enumerate() {
                    found.extend(part.simpler().into_iter().map(|part| {
                        let mut body = body.clone();
                        body[at] = part;
                        of(*kind, *extent, body)
                    }));
                }
                found
            }
        }
    }
}

/// A group whose threads are entered twice and read and write elements of their own or common ones: what a thread reads in the first loop,
/// another thread or the same one may write in the second.
fn entered_twice(u: &mut Unstructured<'_>) -> arbitrary::Result<Part> {
    let mut place = || Ok(Place { factors: [u.int_in_range(0..=1)?, 0], offset: u.int_in_range(0..=3)? });
    let (read, other, first, second) = (place()?, place()?, place()?, place()?);
    let store = |to, from, add| Part::Store { to, from, add };
    let is_copied = u.arbitrary()?;
    let bodies = [store(first, Some(read), 1), store(second, Some(other).filter(|_| is_copied), 2)];
    let around = |kind, extent, body| Part::Loop { kind, extent, body };
    let threads = bodies.map(|body| around(Kind::Thread, 2, vec![body])).to_vec();
    Ok(around(Kind::Block, 1, threads))
}

impl Case for Tiny {
    fn draw(u: &mut Unstructured<'_>, _: &Config) -> arbitrary::Result<Self> {
        let count = u.int_in_range(1..=2)?;
        let mut parts: Vec<Part> = (0..count).map(|_| Part::draw(u, 0, &[])).collect::<arbitrary::Result<_>>()?;
        // Too many events have too many orders.
        while !Self::is_small(&Self(parts.clone()).events()) {
            let fewer: Vec<Part> = parts.iter().map(Part::trimmed).collect();
            if fewer == parts {
                parts.pop();
            } else {
                parts = fewer;
            }
        }
        // One program in eight. None if the bytes are used up.
        if !u.ratio(7, 8)? {
            parts = vec![entered_twice(u)?];
        }
        Ok(Self(parts))
    }

    fn simpler(&self) -> Vec<Self> {
        let mut found: Vec<Self> = without_one(&self.0).into_iter().map(Self).collect();
        found.retain(|case| !case.0.is_empty());
        for (at, part) in self.0.iter().enumerate() {
            found.extend(part.simpler().into_iter().map(|part| {
                let mut parts = self.0.clone();
                parts[at] = part;
                Self(parts)
            }));
        }
        found
    }

    fn features(&self) -> Vec<String> {
        let mut found = BTreeSet::new();
        for event in self.events() {
            found.extend((event.epoch > 0).then(|| "barrier".to_owned()));
            found.extend(event.around.iter().map(|(_, kind, _)| format!("loop:{kind:?}").to_lowercase()));
        }
        found.into_iter().collect()
    }

    fn text(&self) -> String {
        tilewright_script::print_func(&self.func())
    }
}

impl Tiny {
    /// The program.
    pub fn func(&self) -> PrimFunc {
        self.func_of(&["A"])
    }

    /// The program as a step of a network: it reads `A` and writes `B`.
    pub fn step(&self) -> PrimFunc {
        self.func_of(&["A", "B"])
    }

    /// The program with these buffers: it reads the first and writes the last.
    fn func_of(&self, names: &[&str]) -> PrimFunc {
        let buffer = |name: &&str| Buffer::compact(*name, DataType::from(ScalarType::Int32), vec![Expr::int(4)]);
        let buffers: Vec<Buffer> = names.iter().map(buffer).collect();
        let params: Vec<Var> = names.iter().map(|name| Var::new(*name, DataType::HANDLE)).collect();
        let mut attrs = FuncAttrs::default();
        attrs.other.push(("global_symbol".to_owned(), AttrValue::Str("main".to_owned())));
        let ends = [&buffers[0], &buffers[buffers.len() - 1]];
        let body = Stmt::seq(self.0.iter().map(|part| part.stmt(ends, &mut Vec::new())).collect());
        let buffer_map = params.iter().cloned().zip(buffers).collect();
        PrimFunc { name: "main".into(), params, buffer_map, attrs, body }
    }

    /// All reads and writes in program order.
    pub fn events(&self) -> Vec<Event> {
        let mut found = Found::default();
        for part in &self.0 {
            part.events(&mut Vec::new(), &mut found);
        }
        found.events
    }

    /// Whether there are few enough events for all orders to be tried.
    pub fn is_small(events: &[Event]) -> bool {
        events.len() <= EVENTS
    }
}

/// Whether two events may happen in either order: in two iterations of one execution of a loop that is not serial, and not on two sides of
/// a barrier of one group.
pub fn may_swap(a: &Event, b: &Event) -> bool {
    let differ = a.around.iter().zip(&b.around).find(|(one, other)| one != other);
    match differ {
        Some((one, other)) if one.0 == other.0 => match one.1 {
            Kind::Serial => false,
            Kind::Parallel | Kind::Block => true,
            Kind::Thread => a.epoch == b.epoch,
        },
        Some(_) | None => false,
    }
}

/// Whether the second of two events may happen before the first, if the iterations of each loop may run in any order.
pub fn may_come_first(a: &Event, b: &Event) -> bool {
    let differ = a.around.iter().zip(&b.around).find(|(one, other)| one != other);
    matches!(differ, Some((one, other)) if one.0 == other.0)
}

/// Two events of one element that may happen in either order, one of them a write.
pub fn conflict(events: &[Event]) -> Option<(usize, usize)> {
    (0..events.len()).flat_map(|a| (0..a).map(move |b| (b, a))).find(|&(a, b)| {
        let (one, other) = (&events[a], &events[b]);
        one.cell == other.cell && (one.write.is_some() || other.write.is_some()) && may_swap(one, other)
    })
}

/// The contents of the buffer after the events in every order; `None` if there are too many orders.
pub fn outcomes(events: &[Event], start: [i64; CELLS]) -> Option<BTreeSet<[i64; CELLS]>> {
    /// The most states that are visited.
    const STATES: usize = 30_000;
    let before: Vec<u32> = (0..events.len())
        .map(|at| {
            (0..at).filter(|&other| !may_swap(&events[other], &events[at])).fold(0, |set, other| set | (1 << other))
        })
        .collect();
    // A state is which events have happened, the contents, and the values that were read.
    type State = (u32, [i64; CELLS], Vec<i64>);
    let mut seen: BTreeSet<State> = BTreeSet::new();
    let mut open: Vec<State> = vec![(0, start, vec![0; events.len()])];
    let mut found = BTreeSet::new();
    while let Some((done, cells, read)) = open.pop() {
        if done.count_ones() as usize == events.len() {
            found.insert(cells);
        }
        for (at, event) in events.iter().enumerate() {
            if done & (1 << at) != 0 || before[at] & !done != 0 {
                continue;
            }
            let (mut cells, mut read) = (cells, read.clone());
            match event.write {
                None => read[at] = cells[event.cell],
                Some((add, from)) => {
                    cells[event.cell] = from.map_or(0, |from| read[from].wrapping_mul(2)).wrapping_add(add);
                    if let Some(from) = from {
                        read[from] = 0;
                    }
                }
            }
            let next = (done | (1 << at), cells, read);
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
        if seen.len() > STATES {
            return None;
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(factor: u8, offset: u8) -> Place {
        Place { factors: [factor, 0], offset }
    }

    fn program(kind: Kind, to: Place, from: Place) -> Vec<Event> {
        let body = vec![Part::Store { to, from: Some(from), add: 1 }];
        Tiny(vec![Part::Loop { kind, extent: 3, body }]).events()
    }

    #[test]
    fn orders_that_matter_are_conflicts_and_others_are_not() {
        let apart = program(Kind::Parallel, place(1, 0), place(1, 0));
        assert_eq!(conflict(&apart), None);
        assert_eq!(outcomes(&apart, [1, 2, 3, 4]), Some(BTreeSet::from([[3, 5, 7, 4]])));
        let shifted = program(Kind::Parallel, place(1, 1), place(1, 0));
        assert!(conflict(&shifted).is_some());
        assert!(outcomes(&shifted, [1, 2, 3, 4]).unwrap().len() > 1);
        assert_eq!(conflict(&program(Kind::Serial, place(1, 1), place(1, 0))), None);
    }

    #[test]
    fn a_barrier_orders_what_the_threads_of_a_group_do() {
        let write = Part::Store { to: place(1, 0), from: None, add: 7 };
        let read = Part::Store { to: place(1, 2), from: Some(place(3, 1)), add: 0 };
        let of = |body: Vec<Part>| Tiny(vec![Part::Loop { kind: Kind::Thread, extent: 2, body }]).events();
        assert!(conflict(&of(vec![write.clone(), read.clone()])).is_some());
        let ordered = of(vec![write.clone(), Part::Barrier, read.clone()]);
        assert_eq!(conflict(&ordered), None);
        // Thread 0 reads A[1] and thread 1 reads A[0], which the other one wrote.
        assert_eq!(outcomes(&ordered, [1, 2, 3, 4]), Some(BTreeSet::from([[7, 7, 14, 14]])));
        // Factors are those of the innermost loop first, which is the serial one here.
        let thread = |factor, offset| Place { factors: [0, factor], offset };
        let round = |last: Vec<Part>| {
            let write = Part::Store { to: thread(1, 0), from: None, add: 7 };
            let read = Part::Store { to: thread(1, 2), from: Some(thread(3, 1)), add: 0 };
            let body = [vec![write, Part::Barrier, read], last].concat();
            of(vec![Part::Loop { kind: Kind::Serial, extent: 2, body }])
        };
        assert!(conflict(&round(Vec::new())).is_some(), "the next round writes what this one reads");
        assert_eq!(conflict(&round(vec![Part::Barrier])), None);
    }
}

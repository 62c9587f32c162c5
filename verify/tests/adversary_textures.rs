//! Every number of a right lowering to textures, changed: where running both programs shows a difference, the judge has
//! not proved them equal.
//!
//! The programs are run by a small interpreter that is written here for the test: it shares nothing with the judge.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test may fail, and says what it did")]

mod common;
mod texture_programs;

use std::collections::HashMap;
use std::convert::Infallible;

use common::judge;
use texture_programs::*;
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{Bindings, Buffer, Evidence, Expr, PrimFunc, Stmt, StmtKind, Var};
use tilewright_verify::Judge;

/// What a run came to: the elements of the output, or why there is none.
type Outcome = Result<HashMap<Vec<i128>, u64>, String>;

/// Memory by name of the buffer's data; values are bits of a made-up kind.
struct Machine {
    memory: HashMap<(Var, Vec<i128>), u64>,
    input: Var,
}

impl Machine {
    fn run(func: &PrimFunc) -> Outcome {
        let [(_, input), (_, output)] = func.buffer_map.as_slice() else { panic!("two buffers") };
        let mut machine = Self { memory: HashMap::new(), input: input.data.clone() };
        machine.stmt(&func.body, &mut Bindings::new())?;
        let output = |((data, index), value)| (data == output.data).then_some((index, value));
        Ok(machine.memory.into_iter().filter_map(output).collect())
    }

    fn stmt(&mut self, stmt: &Stmt, at: &mut Bindings) -> Result<(), String> {
        match &stmt.kind {
            StmtKind::For(inner) => {
                let (min, extent) = (int_of(&inner.min, at)?, int_of(&inner.extent, at)?);
                for value in min..min + extent {
                    at.insert(inner.var.clone(), value);
                    self.stmt(&inner.body, at)?;
                }
                Ok(())
            }
            StmtKind::If { cond, then_body, else_body: None } => {
                if int_of(cond, at)? != 0 {
                    self.stmt(then_body, at)
                } else {
                    Ok(())
                }
            }
            StmtKind::Allocate { body, .. } => self.stmt(body, at),
            StmtKind::Seq(stmts) => stmts.iter().try_for_each(|stmt| self.stmt(stmt, at)),
            StmtKind::Store { buffer, indices, value } => {
                let lanes = value.dtype().lanes;
                let written: Result<Vec<_>, String> = (0..lanes)
                    .map(|lane| Ok((place(buffer, indices, lane, at)?, self.value(value, lane, at)?)))
                    .collect();
                for (index, value) in written? {
                    self.memory.insert((buffer.data.clone(), index), value);
                }
                Ok(())
            }
            other => panic!("{other:?}"),
        }
    }

    /// One lane of a float.
    fn value(&self, expr: &Expr, lane: u16, at: &Bindings) -> Result<u64, String> {
        match expr {
            Expr::Float { value, .. } => Ok(value.to_bits()),
            Expr::Broadcast { value, .. } => self.value(value, 0, at),
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.value(a, lane, at)?, self.value(b, lane, at)?);
                Ok(mixed(&format!("{op:?} {a} {b}")))
            }
            Expr::IfThenElse(cond, a, b) => {
                let chosen = if lane_int(cond, lane, at)? != 0 { a } else { b };
                self.value(chosen, lane, at)
            }
            Expr::Load { buffer, indices } => {
                let index = place(buffer, indices, lane, at)?;
                if buffer.data == self.input {
                    return Ok(mixed(&format!("input {index:?}")));
                }
                let key = (buffer.data.clone(), index);
                self.memory.get(&key).copied().ok_or_else(|| format!("{buffer}{:?} holds nothing", key.1))
            }
            other => panic!("{other}"),
        }
    }
}

fn mixed(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn int_of(expr: &Expr, at: &Bindings) -> Result<i128, String> {
    expr.eval_index(at).map_err(|error| error.to_string())
}

/// One lane of an integer.
fn lane_int(expr: &Expr, lane: u16, at: &Bindings) -> Result<i128, String> {
    match expr {
        Expr::Ramp { base, stride, .. } => Ok(int_of(base, at)? + i128::from(lane) * int_of(stride, at)?),
        Expr::Broadcast { value, .. } => int_of(value, at),
        Expr::Binary(op, a, b) if !expr.dtype().is_scalar() => {
            let (x, y) = (lane_int(a, lane, at)?, lane_int(b, lane, at)?);
            op.eval_exact(x, y, a.dtype().scalar).map_err(|error| error.to_string())
        }
        _ => int_of(expr, at),
    }
}

/// Where an access goes; an error outside of the buffer.
fn place(buffer: &Buffer, indices: &[Expr], lane: u16, at: &Bindings) -> Result<Vec<i128>, String> {
    let index = indices.iter().map(|index| lane_int(index, lane, at)).collect::<Result<Vec<_>, _>>()?;
    let shape = buffer.const_shape().unwrap();
    let inside = index.iter().zip(&shape).all(|(index, extent)| (0..*extent).contains(index));
    if inside { Ok(index) } else { Err(format!("{buffer}{index:?} lies outside")) }
}

/// Changes the numbers at some places, counted from 0.
struct Change<'a> {
    seen: usize,
    changes: &'a [(usize, i128)],
}

impl Rewrite for Change<'_> {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match expr {
            Expr::Int { value, ty } => {
                let change = self.changes.iter().find(|(place, _)| *place == self.seen);
                self.seen += 1;
                Ok(Expr::Int { value: change.map_or(*value, |(_, new)| *new), ty: *ty })
            }
            _ => self.expr_children(expr),
        }
    }
}

/// The numbers of a program.
fn numbers(body: &Stmt) -> Vec<i128> {
    struct Collect(Vec<i128>);
    impl Rewrite for Collect {
        type Error = Infallible;
        fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
            self.0.extend(expr.as_const_int());
            self.expr_children(expr)
        }
    }
    let mut collect = Collect(Vec::new());
    let Ok(_) = collect.stmt(body);
    collect.0
}

struct Tally {
    wrong: usize,
    refuted: usize,
    harmless: usize,
}

/// Judges the program after with these changes, and runs it.
fn attack(judge: &Judge, programs: &(PrimFunc, PrimFunc, Evidence), changes: &[(usize, i128)], tally: &mut Tally) {
    let (before, after, evidence) = programs;
    let Ok(body) = Change { seen: 0, changes }.stmt(&after.body);
    let broken = PrimFunc { body, ..after.clone() };
    if tilewright_ir::validate(&broken).is_err() {
        return;
    }
    let right = Machine::run(before).unwrap();
    let outcome = Machine::run(&broken);
    let same = outcome.as_ref().is_ok_and(|found| *found == right);
    let reports = judge.check_pass(before, &broken, evidence);
    let proved = reports.iter().all(|report| report.verdict.is_proved());
    let refuted = reports.iter().any(|report| common::pair::difference_in(report).is_some());
    assert!(same || !proved, "proved, but {changes:?} make {outcome:?}");
    if same {
        tally.harmless += 1;
    } else {
        tally.wrong += 1;
        tally.refuted += usize::from(refuted);
    }
}

#[test]
fn every_number_changed_is_seen() {
    let judge = judge();
    let mut tally = Tally { wrong: 0, refuted: 0, harmless: 0 };
    for lowering in [right(), right_c1()] {
        let programs = small(&lowering).programs();
        let numbers = numbers(&programs.1.body);
        for (place, value) in numbers.iter().enumerate() {
            for new in [value + 1, value - 1, value * 2, 0, 4] {
                if new != *value {
                    attack(&judge, &programs, &[(place, new)], &mut tally);
                }
            }
        }
    }
    let Tally { wrong, refuted, harmless } = tally;
    eprintln!("{wrong} wrong programs, {refuted} refuted, {harmless} that mean the same");
    assert!(wrong > 100, "{wrong}");
    assert!(refuted * 10 >= wrong * 9, "{refuted} of {wrong}");
}

#[test]
fn two_numbers_changed_at_once_are_seen() {
    let judge = judge();
    let mut tally = Tally { wrong: 0, refuted: 0, harmless: 0 };
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap() % below
    };
    for lowering in [right(), separated_c1()] {
        let programs = small(&lowering).programs();
        let numbers = numbers(&programs.1.body);
        for _ in 0..150 {
            let mut change = || {
                let place = next(numbers.len());
                let other = numbers[next(numbers.len())];
                (place, if next(2) == 0 { other } else { numbers[place] + 1 })
            };
            let changes = [change(), change()];
            attack(&judge, &programs, &changes, &mut tally);
        }
    }
    let Tally { wrong, refuted, harmless } = tally;
    eprintln!("{wrong} wrong programs, {refuted} refuted, {harmless} that mean the same");
    assert!(wrong > 100, "{wrong}");
}

#[test]
fn the_oracle_finds_the_right_programs_equal() {
    for lowering in [right(), right_c1()] {
        let (before, after, _) = lowering.programs();
        let (before, after) = (Machine::run(&before).unwrap(), Machine::run(&after).unwrap());
        assert_eq!(before.len(), 6 * 7 * 18);
        assert_eq!(before, after);
    }
    let lanes = "def main(C: T.Buffer((4,), \"bool\")):\n    C[0:4] = T.Ramp(2, 1, 4) < T.Broadcast(4, 4)\n";
    let StmtKind::Store { value, .. } = common::program(lanes).body.kind else { panic!() };
    assert_eq!(lane_int(&value, 2, &Bindings::new()), Ok(0));
}

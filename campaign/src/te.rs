//! TE programs with random schedules, as text.
//!
//! ```text
//! A = te.placeholder((5, 7), dtype="int32", name="A")
//! r0 = te.reduce_axis((0, 7), name="r0")
//! T0 = te.compute((5,), lambda i0: te.sum(A[i0, r0], axis=r0), name="T0")
//! s = te.create_schedule(T0.op)
//! a0 = s[T0].op.axis[0]
//! b0, b1 = s[T0].split(a0, 3)
//! ```
//!
//! A case is a list of stages, each with the steps of its schedule. Steps name loops by position, modulo their number, so
//! that every list of steps is a schedule; what the builder refuses counts as an invalid case.

use std::fmt::Write as _;

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};

use crate::case::{Case, without_one};
use crate::config::Config;

/// The value of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// An element plus a constant.
    Add,
    /// An element of the reversed first axis.
    Reversed,
    /// An element, or a constant beyond a bound.
    Choice,
    /// A sum over the last axis.
    Sum,
    /// A maximum over the last axis.
    Max,
    /// A minimum over all axes but the first, in a window that does not begin at 0.
    Window,
}

/// A step of a schedule. Loops are positions in the order of the nest, modulo its length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Splits a loop by a factor.
    Split(usize, i64),
    /// Splits a loop into a number of parts.
    Parts(usize, i64),
    /// Fuses a loop with the one inside it.
    Fuse(usize),
    /// Exchanges two loops.
    Swap(usize, usize),
    /// Tiles a loop and the one inside it.
    Tile(usize, i64, i64),
    /// Runs the iterations of a loop at once.
    Parallel(usize),
    /// Makes the innermost loop a vector.
    Vectorize,
    /// Unrolls a loop.
    Unroll(usize),
    /// Binds a loop to groups or threads.
    Bind(usize, bool),
    /// Computes the tensor in a loop of the stage that reads it, with its own loops as the other steps leave them. The last
    /// stage is read by none, and stays.
    ComputeAt(usize),
}

/// A stage: what it computes from the tensor before it, and its schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// The value.
    pub work: Work,
    /// The schedule.
    pub steps: Vec<Step>,
}

/// A case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheduled {
    /// The shape of the input.
    pub shape: Vec<i64>,
    /// The stages.
    pub stages: Vec<Stage>,
    /// Seed of the input, and of a mistake in the program that was lowered.
    pub seed: u64,
}

/// A loop of a nest under construction.
#[derive(Clone)]
struct Loop {
    name: String,
    reduced: bool,
    /// Whether it has a kind already.
    marked: bool,
}

/// The text under construction.
struct Writer {
    text: String,
    /// Number of loops named so far.
    named: usize,
}

impl Work {
    /// Whether it reduces the last axis.
    fn reduces(self) -> bool {
        matches!(self, Self::Sum | Self::Max | Self::Window)
    }
}

impl Step {
    /// Draws a step.
    fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let at = usize::from(u.int_in_range(0..=5u8)?);
        let factor = u.int_in_range(2..=6)?;
        Ok(match u.int_in_range(0..=14)? {
            0..=2 => Self::Split(at, factor),
            3 => Self::Parts(at, factor),
            4 | 5 => Self::Fuse(at),
            6 | 7 => Self::Swap(at, usize::from(u.int_in_range(0..=5u8)?)),
            8 => Self::Tile(at, factor, u.int_in_range(2..=4)?),
            9 => Self::Parallel(at),
            10 => Self::Vectorize,
            11 => Self::Unroll(at),
            12 | 13 => Self::ComputeAt(at),
            _ => Self::Bind(at, u.arbitrary()?),
        })
    }

    /// The name of the step, for coverage.
    fn name(&self) -> &'static str {
        match self {
            Self::Split(..) => "split",
            Self::Parts(..) => "split into parts",
            Self::Fuse(_) => "fuse",
            Self::Swap(..) => "reorder",
            Self::Tile(..) => "tile",
            Self::Parallel(_) => "parallel",
            Self::Vectorize => "vectorize",
            Self::Unroll(_) => "unroll",
            Self::Bind(..) => "bind",
            Self::ComputeAt(_) => "compute_at",
        }
    }
}

impl Writer {
    /// A new name of a loop.
    fn fresh(&mut self) -> String {
        self.named += 1;
        format!("x{}", self.named)
    }

    /// Writes a line.
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Writes a step. One that does not fit the loops is left out.
    fn step(&mut self, tensor: &str, step: &Step, loops: &mut Vec<Loop>) {
        let count = loops.len().max(1);
        let inner_of = |at: usize| at % count + 1;
        let is_free = |one: &Loop| !one.marked;
        match step {
            Step::Split(at, factor) | Step::Parts(at, factor) => {
                let at = at % count;
                if !is_free(&loops[at]) || count > 7 {
                    return;
                }
                let (outer, inner, old) = (self.fresh(), self.fresh(), loops[at].clone());
                let by = if matches!(step, Step::Parts(..)) { "nparts=" } else { "" };
                self.line(&format!("{outer}, {inner} = s[{tensor}].split({}, {by}{factor})", old.name));
                let new = [outer, inner].map(|name| Loop { name, ..old.clone() });
                loops.splice(at..=at, new);
            }
            Step::Fuse(at) => {
                let (at, next) = (at % count, inner_of(*at));
                if next >= count || loops[at].reduced != loops[next].reduced || loops[at].marked || loops[next].marked {
                    return;
                }
                let (fused, old) = (self.fresh(), loops[at].clone());
                self.line(&format!("{fused} = s[{tensor}].fuse({}, {})", old.name, loops[next].name));
                loops.splice(at..=next, [Loop { name: fused, ..old }]);
            }
            Step::Swap(a, b) => {
                loops.swap(a % count, b % count);
                let names: Vec<&str> = loops.iter().map(|one| one.name.as_str()).collect();
                let line = format!("s[{tensor}].reorder({})", names.join(", "));
                self.line(&line);
            }
            Step::Tile(at, outer, inner) => {
                let (at, next) = (at % count, inner_of(*at));
                if next >= count || [at, next].iter().any(|at| loops[*at].reduced || loops[*at].marked) || count > 6 {
                    return;
                }
                let names: Vec<String> = (0..4).map(|_| self.fresh()).collect();
                let (x, y) = (&loops[at].name, &loops[next].name);
                let line = format!("{} = s[{tensor}].tile({x}, {y}, {outer}, {inner})", names.join(", "));
                self.line(&line);
                let new = names.into_iter().map(|name| Loop { name, reduced: false, marked: false });
                loops.splice(at..=next, new.collect::<Vec<_>>());
            }
            Step::Parallel(at) | Step::Unroll(at) | Step::Bind(at, _) => {
                let at = at % count;
                let is_serial = matches!(step, Step::Unroll(_));
                if loops[at].marked || (loops[at].reduced && !is_serial) {
                    return;
                }
                let name = &loops[at].name;
                let line = match step {
                    Step::Parallel(_) => format!("s[{tensor}].parallel({name})"),
                    Step::Bind(_, true) => format!("s[{tensor}].bind({name}, te.thread_axis(\"blockIdx.x\"))"),
                    Step::Bind(..) => format!("s[{tensor}].bind({name}, te.thread_axis(\"threadIdx.x\"))"),
                    _ => format!("s[{tensor}].unroll({name})"),
                };
                self.line(&line);
                loops[at].marked = true;
            }
            // Where the tensor is computed is said once all loops of its reader are known.
            Step::ComputeAt(_) => {}
            Step::Vectorize => {
                if let Some(last) = loops.last_mut().filter(|last| !last.marked && !last.reduced) {
                    last.marked = true;
                    let line = format!("s[{tensor}].vectorize({})", last.name);
                    self.line(&line);
                }
            }
        }
    }
}

impl Scheduled {
    /// The program as TE text.
    pub fn source(&self) -> String {
        let mut writer = Writer { text: String::new(), named: 0 };
        let list = |shape: &[i64]| {
            let extents: Vec<String> = shape.iter().map(i64::to_string).collect();
            extents.join(", ") + ","
        };
        writer.line("import tvm\nfrom tvm import te\n");
        writer.line(&format!("A = te.placeholder(({}), dtype=\"int32\", name=\"A\")", list(&self.shape)));
        let (mut shape, mut last) = (self.shape.clone(), "A".to_owned());
        let mut nests = Vec::new();
        for (number, stage) in self.stages.iter().enumerate() {
            let (work, tensor) = (stage.work, format!("T{number}"));
            // A reduction needs an axis that is left.
            let work = if work.reduces() && shape.len() < 2 { Work::Add } else { work };
            let (extent, own) = (shape.last().copied().unwrap_or(1), shape.len() - usize::from(work.reduces()));
            let vars: Vec<String> = (0..own).map(|axis| format!("i{axis}")).collect();
            let mut index = vars.join(", ");
            let first = shape.first().copied().unwrap_or(1);
            let begin = if work == Work::Window { (extent - 1).min(2) } else { 0 };
            if work.reduces() {
                writer.line(&format!("r{number} = te.reduce_axis(({begin}, {extent}), name=\"r{number}\")"));
                let _ = write!(index, ", r{number}");
            }
            let value = match work {
                Work::Add => format!("{last}[{index}] + {}", number + 1),
                Work::Reversed => format!("{last}[{}]", index.replacen("i0", &format!("{} - i0", first - 1), 1)),
                Work::Choice => format!("te.if_then_else(i0 < {}, {last}[{index}], 7)", first / 2),
                Work::Sum => format!("te.sum({last}[{index}] * 3, axis=r{number})"),
                Work::Max => format!("te.max({last}[{index}], axis=r{number})"),
                Work::Window => format!("te.min({last}[{index}], axis=r{number})"),
            };
            shape.truncate(own);
            let line = format!(
                "{tensor} = te.compute(({}), lambda {}: {value}, name=\"{tensor}\")",
                list(&shape),
                vars.join(", ")
            );
            writer.line(&line);
            nests.push((tensor.clone(), own, work.reduces(), &stage.steps));
            last = tensor;
        }
        writer.line(&format!("s = te.create_schedule({last}.op)"));
        let mut scheduled: Vec<(String, Vec<Loop>, Option<usize>)> = Vec::new();
        for (tensor, own, reduces, steps) in nests {
            let mut loops = Vec::new();
            for axis in 0..own + usize::from(reduces) {
                let (name, reduced) = (writer.fresh(), axis == own);
                let place = if reduced { "reduce_axis[0]".to_owned() } else { format!("axis[{axis}]") };
                writer.line(&format!("{name} = s[{tensor}].op.{place}"));
                loops.push(Loop { name, reduced, marked: false });
            }
            for step in steps {
                writer.step(&tensor, step, &mut loops);
            }
            let place = |step: &Step| if let Step::ComputeAt(at) = step { Some(*at) } else { None };
            scheduled.push((tensor, loops, steps.iter().find_map(place)));
        }
        for pair in scheduled.windows(2) {
            if let [(tensor, _, Some(at)), (reader, loops, _)] = pair {
                let run = &loops[at % loops.len().max(1)].name;
                writer.line(&format!("s[{tensor}].compute_at(s[{reader}], {run})"));
            }
        }
        writer.text
    }
}

impl Case for Scheduled {
    /// Draws one to three axes of up to 11 elements and one or two stages with up to five steps each.
    fn draw(u: &mut Unstructured<'_>, _: &Config) -> arbitrary::Result<Self> {
        let rank = u.int_in_range(1..=3)?;
        let shape = (0..rank).map(|_| u.int_in_range(1..=11)).collect::<arbitrary::Result<_>>()?;
        let count = u.int_in_range(1..=2)?;
        let mut stages = Vec::new();
        for _ in 0..count {
            let all = [Work::Sum, Work::Add, Work::Max, Work::Reversed, Work::Window, Work::Choice];
            let work = *u.choose(&all)?;
            let n_steps = u.int_in_range(0..=5)?;
            let steps = (0..n_steps).map(|_| Step::draw(u)).collect::<arbitrary::Result<_>>()?;
            stages.push(Stage { work, steps });
        }
        Ok(Self { shape, stages, seed: u64::from(u.arbitrary::<u16>()?) })
    }

    fn simpler(&self) -> Vec<Self> {
        let mut found = Vec::new();
        if self.stages.len() > 1 {
            found.extend(without_one(&self.stages).into_iter().map(|stages| Self { stages, ..self.clone() }));
        }
        for at in 0..self.stages.len() {
            found.extend(without_one(&self.stages[at].steps).into_iter().map(|steps| {
                let mut case = self.clone();
                case.stages[at].steps = steps;
                case
            }));
            if !matches!(self.stages[at].work, Work::Add | Work::Sum) {
                let mut case = self.clone();
                case.stages[at].work = if self.stages[at].work.reduces() { Work::Sum } else { Work::Add };
                found.push(case);
            }
        }
        found.extend(
            without_one(&self.shape)
                .into_iter()
                .filter(|shape| !shape.is_empty())
                .map(|shape| Self { shape, ..self.clone() }),
        );
        for axis in 0..self.shape.len() {
            found.extend(crate::case::smaller(self.shape[axis]).into_iter().map(|extent| {
                let mut case = self.clone();
                case.shape[axis] = extent;
                case
            }));
        }
        found
    }

    fn features(&self) -> Vec<String> {
        let mut found: Vec<String> = self.stages.iter().map(|stage| format!("work:{:?}", stage.work)).collect();
        found.extend(self.stages.iter().flat_map(|stage| &stage.steps).map(|step| format!("step:{}", step.name())));
        found.sort_unstable();
        found.dedup();
        found
    }

    fn text(&self) -> String {
        self.source()
    }
}

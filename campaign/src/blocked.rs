//! Programs with one block of S-TIR, and what is true of its claims.
//!
//! ```text
//! for x0 in T.serial(0, 3):
//!     for x1 in T.serial(1, 5):
//!         with T.sblock("C"):
//!             s = T.axis.spatial((0, 3), x0)
//!             r = T.axis.reduce((0, 4), x1 - 1)
//!             T.where(x0 * 4 + x1 < 11)
//!             T.reads(A[s + r + 2048:s + r + 2049])
//!             T.writes(C[s + 2048:s + 2049])
//!             with T.init():
//!                 C[s + 2048] = 7
//!             C[s + 2048] = C[s + 2048] * 3 + A[s + r + 2048]
//! ```
//!
//! [`Blocked::truth`] looks at every iteration, from the definition of the claims; it shares no code with the judge.

use std::collections::{BTreeMap, BTreeSet};

use arbitrary::Unstructured;
use serde::{Deserialize, Serialize};

use crate::case::{Case, smaller};
use crate::config::Config;

/// Elements of each buffer; the middle one is that of index 0.
pub const CELLS: i64 = 4096;

/// A sum of loop variables with coefficients, and a constant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sum {
    /// A coefficient for each loop, outermost first.
    pub factors: Vec<i64>,
    /// The constant.
    pub offset: i64,
}

/// An axis of the block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// The value.
    pub value: Sum,
    /// The least value of the domain.
    pub min: i64,
    /// The number of values of the domain.
    pub extent: i64,
}

/// A case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Blocked {
    /// The first value and the number of iterations of each loop.
    pub loops: Vec<(i64, i64)>,
    /// The axis that says which element is computed.
    pub spatial: Axis,
    /// The axis over which it is summed.
    pub reduce: Option<Axis>,
    /// A sum that has to be less than a bound.
    pub predicate: Option<(Sum, i64)>,
    /// Whether the block has an initialisation.
    pub has_init: bool,
    /// The stated range of reads (`T.reads`): its start relative to `s + r`, and its length. `None` if none is stated.
    pub reads: Option<(i64, i64)>,
    /// The stated range of writes (`T.writes`): its start relative to `s`, and its length. `None` if none is stated.
    pub writes: Option<(i64, i64)>,
}

/// Which claims of a block hold, and the result of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each of them is one claim")]
pub struct Truth {
    /// Each value of the axis lies in its domain: the spatial one, the reduced one.
    pub domains: [bool; 2],
    /// Whether all reads, and all writes, lie in the stated ranges.
    pub regions: [bool; 2],
    /// Whether the writes of the initialisation lie in the stated range.
    pub initialised: bool,
    /// The element that is updated is in a stated range.
    pub updated: bool,
    /// In each round, an instance runs once.
    pub once: bool,
    /// In each round, all values of the reduced axis occur.
    pub all: bool,
    /// In each round, the initialisation comes first.
    pub init: bool,
    /// The elements of `C` in the end, if that of `A` at place `p` is `p` and those of `C` were 1.
    pub result: Vec<i64>,
}

impl Sum {
    fn draw(u: &mut Unstructured<'_>, n_loops: usize, extents: &[(i64, i64)]) -> arbitrary::Result<Self> {
        let mut factors = vec![0; n_loops];
        // Mostly a mixed-radix number of some loops, so that many claims are true.
        let mut weight = 1;
        for at in (0..n_loops).rev() {
            if u.ratio(1, 2)? {
                factors[at] = if u.ratio(1, 8)? { u.int_in_range(-2..=4)? } else { weight };
                weight *= extents[at].1;
            }
        }
        let starts: i64 = factors.iter().zip(extents).map(|(factor, (min, _))| factor * min).sum();
        let offset = if u.ratio(1, 6)? { u.int_in_range(-2..=3)? } else { -starts };
        Ok(Self { factors, offset })
    }

    /// The value in an iteration.
    fn at(&self, values: &[i64]) -> i64 {
        self.factors.iter().zip(values).map(|(factor, value)| factor * value).sum::<i64>() + self.offset
    }

    fn text(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        for (at, factor) in self.factors.iter().enumerate().filter(|(_, factor)| **factor != 0) {
            parts.push(if *factor == 1 { format!("x{at}") } else { format!("x{at} * ({factor})") });
        }
        if self.offset != 0 || parts.is_empty() {
            parts.push(format!("({})", self.offset));
        }
        parts.join(" + ")
    }

    /// The values from the least to the greatest one: what a domain usually is.
    fn range(&self, loops: &[(i64, i64)]) -> (i64, i64) {
        let (mut low, mut high) = (self.offset, self.offset);
        for (factor, (min, extent)) in self.factors.iter().zip(loops) {
            let ends = [factor * min, factor * (min + extent - 1)];
            low += ends[0].min(ends[1]);
            high += ends[0].max(ends[1]);
        }
        (low, high - low + 1)
    }
}

impl Axis {
    fn draw(u: &mut Unstructured<'_>, loops: &[(i64, i64)]) -> arbitrary::Result<Self> {
        let value = Sum::draw(u, loops.len(), loops)?;
        let (mut min, mut extent) = value.range(loops);
        if u.ratio(1, 4)? {
            min += u.int_in_range(-1..=1)?;
        }
        if u.ratio(1, 4)? {
            extent = (extent + u.int_in_range(-1..=1)?).max(1);
        }
        Ok(Self { value, min, extent })
    }

    fn contains(&self, value: i64) -> bool {
        (self.min..self.min + self.extent).contains(&value)
    }

    fn text(&self, name: &str, kind: &str) -> String {
        format!("{name} = T.axis.{kind}(({}, {}), {})", self.min, self.min + self.extent, self.value.text())
    }
}

/// An instance of the block: the values of the loops, and of the axes.
type Instance = (Vec<i64>, i64, i64);

impl Blocked {
    /// The instances that run, in order.
    fn instances(&self) -> Vec<Instance> {
        let mut iterations: Vec<Vec<i64>> = vec![Vec::new()];
        for (min, extent) in &self.loops {
            let longer = |values: &Vec<i64>| {
                (*min..min + extent).map(|value| [values.as_slice(), &[value]].concat()).collect::<Vec<_>>()
            };
            iterations = iterations.iter().flat_map(longer).collect();
        }
        let runs = |values: &Vec<i64>| self.predicate.as_ref().is_none_or(|(sum, bound)| sum.at(values) < *bound);
        let reduced = |values: &[i64]| self.reduce.as_ref().map_or(0, |axis| axis.value.at(values));
        let instance = |values: Vec<i64>| (values.clone(), self.spatial.value.at(&values), reduced(&values));
        iterations.into_iter().filter(runs).map(instance).collect()
    }

    /// The number of loops outside of a round.
    fn outside(&self) -> usize {
        let first = self.reduce.as_ref().and_then(|axis| axis.value.factors.iter().position(|factor| *factor != 0));
        first.unwrap_or(self.loops.len())
    }

    /// Looks at every instance.
    pub fn truth(&self) -> Truth {
        let instances = self.instances();
        let inside = |range: Option<(i64, i64)>, at: i64| range.is_none_or(|(from, n)| (from..from + n).contains(&at));
        let first = self.reduce.as_ref().map_or(0, |axis| axis.min);
        let mut rounds: BTreeMap<&[i64], Vec<&Instance>> = BTreeMap::new();
        for instance in &instances {
            rounds.entry(&instance.0[..self.outside()]).or_default().push(instance);
        }
        let mut truth = Truth { once: true, all: true, init: true, ..Truth::default() };
        truth.domains = [
            instances.iter().all(|(_, s, _)| self.spatial.contains(*s)),
            instances.iter().all(|(_, _, r)| self.reduce.as_ref().is_none_or(|axis| axis.contains(*r))),
        ];
        truth.regions =
            [inside(self.reads, 0), inside(self.writes, 0)].map(|is_inside| is_inside || instances.is_empty());
        truth.initialised = truth.regions[1] || !instances.iter().any(|(_, _, r)| self.reduce.is_none() || *r == first);
        truth.updated = truth.regions[1] || !self.has_init;
        for round in rounds.values() {
            let different: BTreeSet<(i64, i64)> = round.iter().map(|(_, s, r)| (*s, *r)).collect();
            truth.once &= different.len() == round.len();
            let all = |s: i64| {
                let axis = self.reduce.as_ref();
                axis.is_none_or(|axis| (axis.min..axis.min + axis.extent).all(|r| different.contains(&(s, r))))
            };
            truth.all &= round.iter().all(|(_, s, _)| all(*s));
            let mut begun = BTreeSet::new();
            for (_, s, r) in round {
                truth.init &= !(begun.contains(s) && *r == first);
                begun.insert(*s);
            }
        }
        truth.result = vec![1; usize::try_from(CELLS).unwrap_or(0)];
        for (_, s, r) in &instances {
            let Ok(at) = usize::try_from(s + CELLS / 2) else { continue };
            let Some(cell) = truth.result.get_mut(at) else { continue };
            if self.has_init && (self.reduce.is_none() || *r == first) {
                *cell = 7;
            }
            let sum = cell.wrapping_mul(3) + s + r + CELLS / 2;
            // The elements are 32 bits wide.
            *cell = i64::from(u32::try_from(sum.rem_euclid(1 << 32)).unwrap_or(0).cast_signed());
        }
        truth
    }
}

impl Case for Blocked {
    fn draw(u: &mut Unstructured<'_>, _: &Config) -> arbitrary::Result<Self> {
        let n_loops = u.int_in_range(1..=4)?;
        let mut loops = Vec::new();
        for _ in 0..n_loops {
            let min = if u.ratio(1, 4)? { u.int_in_range(-1..=2)? } else { 0 };
            loops.push((min, u.int_in_range(1..=4)?));
        }
        let spatial = Axis::draw(u, &loops)?;
        let reduce = if u.ratio(3, 4)? { Some(Axis::draw(u, &loops)?) } else { None };
        let predicate = if u.ratio(1, 3)? {
            // Mostly a bound of an axis.
            let sum = match (&reduce, u.int_in_range(0..=2)?) {
                (Some(axis), 0) => axis.value.clone(),
                (_, 1) => Sum::draw(u, loops.len(), &loops)?,
                _ => spatial.value.clone(),
            };
            let (low, extent) = sum.range(&loops);
            Some((sum, low + u.int_in_range(1..=extent.max(1))?))
        } else {
            None
        };
        let mut range = || -> arbitrary::Result<Option<(i64, i64)>> {
            Ok(if u.ratio(1, 2)? { Some((u.int_in_range(-1..=0)?, u.int_in_range(1..=2)?)) } else { None })
        };
        let (reads, writes) = (range()?, range()?);
        let has_init = u.ratio(1, 2)?;
        Ok(Self { loops, spatial, reduce, predicate, has_init, reads, writes })
    }

    fn simpler(&self) -> Vec<Self> {
        let mut found = Vec::new();
        let mut add = |change: &dyn Fn(&mut Self)| {
            let mut case = self.clone();
            change(&mut case);
            if case != *self {
                found.push(case);
            }
        };
        add(&|case| case.predicate = None);
        add(&|case| case.reads = None);
        add(&|case| case.writes = None);
        add(&|case| case.has_init = false);
        add(&|case| case.reduce = None);
        for at in 0..self.loops.len() {
            for less in smaller(self.loops[at].1) {
                add(&|case| case.loops[at].1 = less);
            }
            add(&|case| case.loops[at].0 = 0);
            add(&|case| case.spatial.value.factors[at] = 0);
            add(&|case| case.reduce.iter_mut().for_each(|axis| axis.value.factors[at] = 0));
        }
        found
    }

    fn features(&self) -> Vec<String> {
        let parts = [
            (self.reduce.is_some(), "block:reduce"),
            (self.predicate.is_some(), "block:where"),
            (self.has_init, "block:init"),
            (self.reads.is_some(), "block:reads"),
            (self.writes.is_some(), "block:writes"),
        ];
        parts.into_iter().filter(|(is_there, _)| *is_there).map(|(_, name)| name.to_owned()).collect()
    }

    fn text(&self) -> String {
        let mut text = format!(
            "@T.prim_func\ndef main(A: T.Buffer(({CELLS},), \"int32\"), C: T.Buffer(({CELLS},), \"int32\")):\n"
        );
        let mut depth = 1;
        let mut line = |depth: usize, line: &str| text.extend(["    ".repeat(depth).as_str(), line, "\n"]);
        for (at, (min, extent)) in self.loops.iter().enumerate() {
            line(depth, &format!("for x{at} in T.serial({min}, {}):", min + extent));
            depth += 1;
        }
        line(depth, "with T.sblock(\"C\"):");
        depth += 1;
        let middle = CELLS / 2;
        line(depth, &self.spatial.text("s", "spatial"));
        let source = if let Some(axis) = &self.reduce {
            line(depth, &axis.text("r", "reduce"));
            format!("s + r + {middle}")
        } else {
            format!("s + {middle}")
        };
        if let Some((sum, bound)) = &self.predicate {
            line(depth, &format!("T.where({} < {bound})", sum.text()));
        }
        let target = format!("s + {middle}");
        for (word, buffer, at, range) in [("reads", "A", &source, self.reads), ("writes", "C", &target, self.writes)] {
            if let Some((from, n)) = range {
                let is_update = self.has_init && self.writes.is_some();
                let own = if word == "reads" && !is_update { format!(", C[{target}]") } else { String::new() };
                line(depth, &format!("T.{word}({buffer}[{at} + ({from}):{at} + ({})]{own})", from + n));
            }
        }
        if self.has_init {
            line(depth, "with T.init():");
            line(depth + 1, &format!("C[{target}] = 7"));
        }
        line(depth, &format!("C[{target}] = C[{target}] * 3 + A[{source}]"));
        text
    }
}

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
//! A reader may stand in the loops as well; then the block computes memory of the function, in rounds:
//!
//! ```text
//! P = T.alloc_buffer((4096,), "int32")
//! for x0 in T.serial(0, 3):
//!     for x1 in T.serial(0, 5):
//!         with T.sblock("C"):                             as above, of P
//!     for y in T.serial(0, 4):
//!         D[x0 * 4 + y + 2048] = P[x0 * 4 + y + 2048]
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

/// Statements that read what the block computes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reader {
    /// The number of loops that are around the reader as well.
    pub depth: usize,
    /// The first element that is read in an iteration of these loops.
    pub from: Sum,
    /// The number of elements.
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
    /// Whether the axis over which it is summed is scanned.
    #[serde(default)]
    pub is_scan: bool,
    /// A loop whose iterations run at once.
    #[serde(default)]
    pub parallel: Option<usize>,
    /// A reader. Without one the block computes the elements of a parameter.
    #[serde(default)]
    pub reader: Option<Reader>,
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
    /// An instance runs once in each iteration of the loops that contain another statement, too.
    pub once_alone: bool,
    /// In each round, all values of the reduced axis occur.
    pub all: bool,
    /// Each instance of the domain runs, or is read nowhere.
    pub whole: bool,
    /// In each round, the instances of an element run in the order of the scanned axis, and not at once.
    pub upwards: bool,
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

impl Reader {
    /// Mostly what the block computes in an iteration of the common loops, or a part of it.
    fn draw(u: &mut Unstructured<'_>, spatial: &Axis, loops: &[(i64, i64)]) -> arbitrary::Result<Self> {
        let depth = u.int_in_range(0..=loops.len())?;
        let (outer, inner) = spatial.value.factors.split_at(depth);
        let rest = Sum { factors: inner.to_vec(), offset: spatial.value.offset };
        let (low, extent) = rest.range(&loops[depth..]);
        let offset = low + if u.ratio(1, 3)? { u.int_in_range(-1..=1)? } else { 0 };
        let extent = (extent - if u.ratio(1, 2)? { u.int_in_range(-1..=1)? } else { 0 }).max(1);
        Ok(Self { depth, from: Sum { factors: outer.to_vec(), offset }, extent })
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
    /// The iterations of the first loops, in order.
    fn iterations(&self, n_loops: usize) -> Vec<Vec<i64>> {
        let mut iterations: Vec<Vec<i64>> = vec![Vec::new()];
        for (min, extent) in &self.loops[..n_loops] {
            let longer = |values: &Vec<i64>| {
                (*min..min + extent).map(|value| [values.as_slice(), &[value]].concat()).collect::<Vec<_>>()
            };
            iterations = iterations.iter().flat_map(longer).collect();
        }
        iterations
    }

    /// The value of the reduced axis with which an element is initialised; `None` if there is no such axis.
    fn initial(&self) -> Option<i64> {
        self.reduce.as_ref().filter(|_| !self.is_scan).map(|axis| axis.min)
    }

    /// The instances that run, in order.
    fn instances(&self) -> Vec<Instance> {
        let runs = |values: &Vec<i64>| self.predicate.as_ref().is_none_or(|(sum, bound)| sum.at(values) < *bound);
        let reduced = |values: &[i64]| self.reduce.as_ref().map_or(0, |axis| axis.value.at(values));
        let instance = |values: Vec<i64>| (values.clone(), self.spatial.value.at(&values), reduced(&values));
        self.iterations(self.loops.len()).into_iter().filter(runs).map(instance).collect()
    }

    /// The number of loops outside of a round.
    fn outside(&self) -> usize {
        let first = self.reduce.as_ref().and_then(|axis| axis.value.factors.iter().position(|factor| *factor != 0));
        first.unwrap_or(self.loops.len())
    }

    /// The instances in each iteration of the first `n_loops` loops.
    fn rounds(instances: &[Instance], n_loops: usize) -> BTreeMap<&[i64], Vec<&Instance>> {
        let mut rounds: BTreeMap<&[i64], Vec<&Instance>> = BTreeMap::new();
        for instance in instances {
            rounds.entry(&instance.0[..n_loops]).or_default().push(instance);
        }
        rounds
    }

    /// Whether all instances are different in each iteration of the first `n_loops` loops.
    fn is_once(instances: &[Instance], n_loops: usize) -> bool {
        let is_once = |round: &Vec<&Instance>| {
            let different: BTreeSet<(i64, i64)> = round.iter().map(|(_, s, r)| (*s, *r)).collect();
            different.len() == round.len()
        };
        Self::rounds(instances, n_loops).values().all(is_once)
    }

    /// Whether each instance of the domain runs, or, if there is a reader, each that it reads, in its iteration of the common loops.
    fn is_whole(&self, instances: &[Instance]) -> bool {
        let found: BTreeSet<(i64, i64)> = instances.iter().map(|(_, s, r)| (*s, *r)).collect();
        let values = |axis: &Axis| axis.min..axis.min + axis.extent;
        let reduced = || self.reduce.as_ref().map_or(0..1, values);
        if values(&self.spatial).all(|s| reduced().all(|r| found.contains(&(s, r)))) {
            return true;
        }
        let Some(reader) = &self.reader else { return false };
        self.iterations(reader.depth).iter().all(|common| {
            let found: BTreeSet<(i64, i64)> =
                instances.iter().filter(|one| one.0.starts_with(common)).map(|(_, s, r)| (*s, *r)).collect();
            let first = reader.from.at(common);
            let mut needed = (first..first + reader.extent).filter(|s| self.spatial.contains(*s));
            needed.all(|s| reduced().all(|r| found.contains(&(s, r))))
        })
    }

    /// Whether the instances of an element in a round run in the order of the scanned axis.
    fn is_upwards(&self, round: &[&Instance], n_outside: usize) -> bool {
        let pairs = |at: usize| round[at + 1..].iter().map(move |second| (round[at], second));
        let mut all = (0..round.len()).flat_map(pairs).filter(|(one, two)| one.1 == two.1);
        let is_at_once = |one: &Instance, two: &Instance| {
            let at = self.parallel.filter(|at| *at >= n_outside);
            at.is_some_and(|at| one.0[..at] == two.0[..at] && one.0[at] != two.0[at])
        };
        all.all(|(one, two)| if is_at_once(one, two) { one.2 == two.2 } else { one.2 <= two.2 })
    }

    /// Looks at every instance.
    pub fn truth(&self) -> Truth {
        let instances = self.instances();
        let inside = |range: Option<(i64, i64)>, at: i64| range.is_none_or(|(from, n)| (from..from + n).contains(&at));
        let first = self.initial();
        let outside = self.outside();
        let mut truth = Truth { all: true, init: true, upwards: true, ..Truth::default() };
        truth.domains = [
            instances.iter().all(|(_, s, _)| self.spatial.contains(*s)),
            instances.iter().all(|(_, _, r)| self.reduce.as_ref().is_none_or(|axis| axis.contains(*r))),
        ];
        truth.regions =
            [inside(self.reads, 0), inside(self.writes, 0)].map(|is_inside| is_inside || instances.is_empty());
        truth.initialised =
            truth.regions[1] || !instances.iter().any(|(_, _, r)| first.is_none_or(|first| *r == first));
        truth.updated = truth.regions[1] || !self.has_init;
        let alone = self.reader.as_ref().map_or(0, |reader| reader.depth);
        truth.once = Self::is_once(&instances, outside);
        truth.once_alone = Self::is_once(&instances, outside.min(alone));
        truth.whole = self.is_whole(&instances);
        for round in Self::rounds(&instances, outside).values() {
            let different: BTreeSet<(i64, i64)> = round.iter().map(|(_, s, r)| (*s, *r)).collect();
            let all = |s: i64| {
                let axis = self.reduce.as_ref();
                axis.is_none_or(|axis| (axis.min..axis.min + axis.extent).all(|r| different.contains(&(s, r))))
            };
            truth.all &= round.iter().all(|(_, s, _)| all(*s));
            truth.upwards &= !self.is_scan || self.is_upwards(round, outside);
            let mut begun = BTreeSet::new();
            for (_, s, r) in round {
                truth.init &= !(begun.contains(s) && first.is_some_and(|first| *r == first));
                begun.insert(*s);
            }
        }
        truth.result = vec![1; usize::try_from(CELLS).unwrap_or(0)];
        for (_, s, r) in &instances {
            let Ok(at) = usize::try_from(s + CELLS / 2) else { continue };
            let Some(cell) = truth.result.get_mut(at) else { continue };
            if self.has_init && first.is_none_or(|first| *r == first) {
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
        let is_scan = reduce.is_some() && u.ratio(1, 4)?;
        let parallel = if u.ratio(1, 4)? { Some(u.int_in_range(0..=loops.len() - 1)?) } else { None };
        let reader = if u.ratio(1, 3)? { Some(Reader::draw(u, &spatial, &loops)?) } else { None };
        Ok(Self { loops, spatial, reduce, predicate, has_init, reads, writes, is_scan, parallel, reader })
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
        add(&|case| (case.reduce, case.is_scan) = (None, false));
        add(&|case| case.is_scan = false);
        add(&|case| case.parallel = None);
        add(&|case| case.reader = None);
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
            (self.is_scan, "block:scan"),
            (self.parallel.is_some(), "block:parallel"),
            (self.reader.is_some(), "block:reader"),
        ];
        parts.into_iter().filter(|(is_there, _)| *is_there).map(|(_, name)| name.to_owned()).collect()
    }

    fn text(&self) -> String {
        let out = if self.reader.is_some() { "D" } else { "C" };
        let mut text = format!(
            "@T.prim_func\ndef main(A: T.Buffer(({CELLS},), \"int32\"), {out}: T.Buffer(({CELLS},), \"int32\")):\n"
        );
        let mut depth = 1;
        let mut line = |depth: usize, line: &str| text.extend(["    ".repeat(depth).as_str(), line, "\n"]);
        if self.reader.is_some() {
            line(depth, &format!("C = T.alloc_buffer(({CELLS},), \"int32\")"));
        }
        for (at, (min, extent)) in self.loops.iter().enumerate() {
            let kind = if self.parallel == Some(at) { "parallel" } else { "serial" };
            line(depth, &format!("for x{at} in T.{kind}({min}, {}):", min + extent));
            depth += 1;
        }
        line(depth, "with T.sblock(\"C\"):");
        depth += 1;
        let middle = CELLS / 2;
        line(depth, &self.spatial.text("s", "spatial"));
        let source = if let Some(axis) = &self.reduce {
            line(depth, &axis.text("r", if self.is_scan { "scan" } else { "reduce" }));
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
        if let Some(reader) = &self.reader {
            let depth = reader.depth + 1;
            line(depth, &format!("for y in T.serial(0, {}):", reader.extent));
            line(depth + 1, &format!("D[{0} + y + {middle}] = C[{0} + y + {middle}]", reader.from.text()));
        }
        text
    }
}

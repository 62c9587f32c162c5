//! Obligation race: iterations that run at once never touch the same element unless all of them read it.
//!
//! The statement, for each loop whose iterations run at once (`T.parallel`, `T.vectorized`, thread bindings) and each two
//! accesses inside it to one memory, at least one of them a write: take two iterations of the loop. Whatever is outside the
//! loop is the same for both: outer loops, bound names, parameters. Whatever is inside may differ. If both accesses touch the
//! same element, the two iterations are one.
//!
//! ```text
//! for j in T.serial(-1, 1):            j has one value, which may be -1; so both iterations of i may write B[0]: a race
//!     for i in T.parallel(8):
//!         B[T.if_then_else(j >= 1, i, 0)] = A[i]
//! ```
//!
//! A barrier separates the accesses of the threads of a group. There, the statement is about the phases that meet without a barrier
//! between them (`intervals`), and each group has the obligation *barrier*: all of its threads get to each barrier, equally often,
//! because no condition and no extent around a barrier depends on a thread or on memory.
//!
//! Memory of a thread that is allocated outside of the loops over threads has a report of its own (`owned`).
//!
//! Memory that is allocated inside the loop belongs to one iteration. Elements of one buffer without strides are the same if
//! their indices are; those of views that share memory are compared by their position in it.

mod intervals;
mod owned;
mod points;

use std::collections::{HashMap, HashSet};

use rayon::prelude::*;
use tilewright_ir::phases::{group_loop, group_of};
use tilewright_ir::{Buffer, Expr, ForKind, PrimFunc, Stmt, StmtKind, ThreadTag, Var, sabotage};

use self::intervals::meetings;
pub use self::owned::OWN_MEMORY;
use crate::access::{Access, accesses};
use crate::door::{All, inspected};
use crate::judge::{Decision, Judge, Report, Side, method_of, unsupported};
use crate::lanes::{one_to_one, renamed};
use crate::method::Method;
use crate::obligation::Obligation;
use crate::path::{Path, Step, each_statement_in, sites_in};
use crate::reason::Reason;
use crate::record;
use crate::steps::Steps;
use crate::term::Term;
use crate::translate::Names;
use crate::verdict::Verdict;
use crate::words::describe;

/// Iterations that are tried before anything else: fewer than a proof costs.
const FEW: usize = 1 << 10;

/// Iterations that are tried where no proof is found.
const MANY: usize = 1 << 20;

impl Judge {
    /// Decides `race` for each outermost loop of a function whose iterations run at once: one report for each.
    pub fn check_races(&self, func: &PrimFunc) -> Vec<Report> {
        let mut nests = Vec::new();
        outermost(&func.body, &mut Path::of(func), &mut nests);
        let check = |(path, nest): &(Path, &Stmt)| {
            let subject = format!("iterations of `{}` that run at once", describe(nest));
            let report = Self::report(Obligation::Race, subject, || decide_nest(self, path, nest));
            report.placed(Side::Before, nest.span)
        };
        let mut reports: Vec<Report> = self.in_parallel(|| nests.par_iter().map(check).collect());
        for (_, nest) in nests.iter().flat_map(|(path, nest)| groups_in(nest, path)) {
            let subject = format!("threads of `{}` at barriers", describe(nest));
            let report = Self::report(Obligation::Barrier, subject, || decide_barriers(nest));
            reports.push(report.placed(Side::Before, nest.span));
        }
        reports.extend(self.check_memory_of_threads(func));
        reports
    }
}

impl Judge {
    /// Decides `race` for each memory in the scope `local` that is allocated outside of loops over groups or threads below it: no two of them
    /// touch one element. [`Judge::check_races`] has these reports, too; their subjects end with [`OWN_MEMORY`].
    pub fn check_memory_of_threads(&self, func: &PrimFunc) -> Vec<Report> {
        owned::reports(self, func)
    }
}

/// Whether iterations of a loop of this kind may run at the same time.
fn is_concurrent(kind: ForKind) -> bool {
    kind.is_concurrent() && !(kind == ForKind::Parallel && sabotage::on("race-ignores-parallel"))
}

/// The outermost loops whose iterations run at once, each with the path to it.
fn outermost<'a>(stmt: &'a Stmt, path: &mut Path, found: &mut Vec<(Path, &'a Stmt)>) {
    let depth = path.steps.len();
    match &stmt.kind {
        StmtKind::For(inner) if is_concurrent(inner.kind) => found.push((path.clone(), stmt)),
        StmtKind::For(inner) => {
            path.enter(inner);
            outermost(&inner.body, path, found);
        }
        StmtKind::Let { var, value, body } => {
            path.steps.push(Step::Let(var.clone(), value.clone()));
            outermost(body, path, found);
        }
        StmtKind::If { cond, then_body, else_body } => {
            for (body, holds) in [(Some(then_body), true), (else_body.as_ref(), false)] {
                path.steps.truncate(depth);
                path.steps.push(Step::Guard(cond.clone(), holds));
                if let Some(body) = body {
                    outermost(body, path, found);
                }
            }
        }
        StmtKind::Seq(stmts) => {
            for stmt in stmts.iter() {
                outermost(stmt, path, found);
                if let StmtKind::Assert { cond, .. } = &stmt.kind {
                    path.steps.push(Step::Guard(cond.clone(), true));
                }
            }
        }
        StmtKind::Allocate { body, .. } | StmtKind::DeclBuffer { body, .. } | StmtKind::Attr { body, .. } => {
            outermost(body, path, found);
        }
        StmtKind::Store { .. } | StmtKind::Evaluate(_) | StmtKind::Barrier | StmtKind::Assert { .. } => {}
    }
    path.steps.truncate(depth);
}

/// An access inside a nest.
struct Touch {
    access: Access,
    writes: bool,
}

/// Every access in a statement, the write of a store last.
fn touches(stmt: &Stmt, path: &Path) -> Vec<Touch> {
    let mut found = Vec::new();
    for site in sites_in(stmt, path) {
        let all = accesses(&site);
        let stores = matches!(site.stmt.kind, StmtKind::Store { .. });
        let last = all.len();
        found.extend(
            all.into_iter().enumerate().map(|(place, access)| Touch { access, writes: stores && place + 1 == last }),
        );
    }
    found
}

/// The memory that is allocated inside each concurrent loop of a statement, by the variable of the loop.
fn private_memory(stmt: &Stmt) -> HashMap<Var, HashSet<Var>> {
    let mut found: HashMap<Var, HashSet<Var>> = HashMap::new();
    stmt.walk(&mut |part| {
        if let StmtKind::For(inner) = &part.kind
            && is_concurrent(inner.kind)
        {
            let own = found.entry(inner.var.clone()).or_default();
            inner.body.walk(&mut |part| {
                if let StmtKind::Allocate { buffer, .. } = &part.kind {
                    own.insert(buffer.data.clone());
                }
            });
        }
    });
    found
}

/// Two accesses to one memory in iterations of one loop, at least one of them a write.
struct Pair<'a> {
    one: &'a Access,
    two: &'a Access,
    /// The place of the loop among the steps of both paths, which agree up to it.
    depth: usize,
    /// Whether the nest writes memory that one of the accesses reads on its way: then equal loads may differ in value.
    is_unstable: bool,
}

/// Whether all threads of a group get to each barrier equally often.
fn decide_barriers(group: &Stmt) -> Decision {
    match group_of(group) {
        Ok(_) => (inspected(), Method::Inspection("no thread and no memory decides who gets to a barrier")),
        Err(fault) => unsupported(fault.message),
    }
}

/// The groups of threads with barriers or shared memory in a statement, each with the path to it.
fn groups_in<'a>(stmt: &'a Stmt, path: &Path) -> Vec<(Path, &'a Stmt)> {
    let mut found: Vec<(Path, &Stmt)> = Vec::new();
    each_statement_in(stmt, path, &mut |part, path| {
        let Some(inner) = group_loop(part) else { return };
        // A loop over threads inside of a group belongs to the group.
        if !found.iter().any(|(_, group)| thread_loops(group).contains(&inner.var)) {
            found.push((path.clone(), part));
        }
    });
    found
}

/// Decides all pairs of a nest.
fn decide_nest(judge: &Judge, path: &Path, nest: &Stmt) -> Decision {
    let mut done = Done::default();
    let groups = groups_in(nest, path);
    let all = touches(nest, path);
    let mut private = private_memory(nest);
    // The threads of groups meet from barrier to barrier, all other iterations at any time.
    for (_, group) in &groups {
        let threads = thread_loops(group);
        private.retain(|var, _| !threads.contains(var));
    }
    let written: Vec<Buffer> =
        all.iter().filter(|touch| touch.writes).map(|touch| touch.access.buffer.clone()).collect();
    if let Some(open) = done.decide(judge, &pairs(&all, &private, 0, &written), true) {
        return open;
    }
    for (path, group) in &groups {
        let meetings = match meetings(group) {
            Ok(meetings) => meetings,
            Err(fault) => return unsupported(fault.message),
        };
        for meeting in meetings {
            let all = touches(&meeting.both, path);
            let n_first = meeting.first.as_ref().map_or(0, |first| touches(first, path).len());
            // Phases that are not in this meeting may write in between.
            let pairs = pairs(&all, &private_memory(&meeting.both), n_first, &written);
            if let Some(open) = done.decide(judge, &pairs, meeting.is_exact) {
                return open;
            }
        }
    }
    done.decision()
}

/// The variables of the loops over threads in a group.
fn thread_loops(group: &Stmt) -> Vec<Var> {
    let mut found = Vec::new();
    group.walk(&mut |part| {
        if let StmtKind::For(inner) = &part.kind
            && matches!(inner.kind, ForKind::ThreadBinding(ThreadTag::Thread(_)))
        {
            found.push(inner.var.clone());
        }
    });
    found
}

/// What is decided so far of a nest.
#[derive(Default)]
struct Done {
    methods: Vec<Method>,
    all: All,
}

impl Done {
    /// Decides pairs, up to one that is not proved. Without `is_exact`, a race is no refutation.
    fn decide(&mut self, judge: &Judge, pairs: &[Pair<'_>], is_exact: bool) -> Option<Decision> {
        for pair in pairs {
            match pair.decide(judge) {
                (Verdict::Proved(grounds), method) => {
                    self.all.add(grounds);
                    if !self.methods.contains(&method) {
                        self.methods.push(method);
                    }
                }
                (Verdict::Refuted(_), _) if !is_exact => {
                    let text = format!("{}, if no barrier separates them", pair.open_question());
                    return Some((Verdict::Unknown(Reason::undecided(text)), Method::Nothing));
                }
                open => return Some(open),
            }
        }
        None
    }

    fn decision(mut self) -> Decision {
        let method = match self.methods.len() {
            0 => Method::Inspection("no element that is written is shared"),
            1 => self.methods.remove(0),
            _ => Method::Each(self.methods),
        };
        (self.all.proved(), method)
    }
}

/// What has to be shown apart, each pair once: of the first `n_first` accesses with the others, or of all with all if it is 0.
/// Memory in `written` may change between the two.
fn pairs<'a>(
    touches: &'a [Touch],
    private: &HashMap<Var, HashSet<Var>>,
    n_first: usize,
    written: &[Buffer],
) -> Vec<Pair<'a>> {
    let reads_written = |access: &Access| reads(access, |buffer| written.iter().any(|other| other.aliases(buffer)));
    // The first access that is the same as each one. Equal accesses, such as loads in one statement, need no pairs of their own.
    let firsts: Vec<usize> = (0..touches.len())
        .map(|place| (0..place).find(|&first| is_same(&touches[first].access, &touches[place].access)).unwrap_or(place))
        .collect();
    let (mut found, mut known) = (Vec::new(), HashSet::new());
    for (place, touch) in touches.iter().enumerate().skip(n_first) {
        for (other_place, other) in touches[..if n_first == 0 { place + 1 } else { n_first }].iter().enumerate() {
            let (one, two) = (&other.access, &touch.access);
            if !(touch.writes || other.writes) || !one.buffer.aliases(&two.buffer) {
                continue;
            }
            let is_unstable = reads_written(one) || reads_written(two);
            let shared = one.path.steps.iter().zip(two.path.steps.iter()).take_while(|(a, b)| a == b);
            for (depth, (step, _)) in shared.enumerate() {
                let Step::Loop(var, ..) = step else { continue };
                let Some(own) = private.get(var) else { continue };
                if !own.contains(&two.buffer.data) && known.insert((firsts[other_place], firsts[place], depth)) {
                    found.push(Pair { one, two, depth, is_unstable });
                }
            }
        }
    }
    found
}

/// Whether the indices of an access, or the conditions on its way, read a buffer that is meant.
fn reads(access: &Access, is_meant: impl Fn(&Buffer) -> bool) -> bool {
    let mut found = false;
    let mut look =
        |expr: &Expr| expr.walk(&mut |part| found |= matches!(part, Expr::Load { buffer, .. } if is_meant(buffer)));
    access.indices.iter().for_each(&mut look);
    access.path.exprs().for_each(&mut look);
    found
}

/// The variables that are bound on the way to an access, from the step `depth` on.
fn bound_from(access: &Access, depth: usize) -> Vec<Var> {
    let bound = access.path.steps.iter().skip(depth).filter_map(|step| match step {
        Step::Loop(var, ..) | Step::Let(var, _) => Some(var.clone()),
        Step::Guard(..) => None,
    });
    bound.collect()
}

/// Whether the place of a buffer in its memory depends on one of these variables.
fn is_placed_by(buffer: &Buffer, vars: &[Var]) -> bool {
    let strides = buffer.strides.iter().flatten();
    let mut layout = buffer.shape.iter().chain(strides).chain([&buffer.elem_offset]);
    layout.any(|part| part.vars().iter().any(|var| vars.contains(var)))
}

/// Whether two accesses are to the same element, in the same way.
fn is_same(one: &Access, two: &Access) -> bool {
    one.buffer == two.buffer && one.indices == two.indices && one.path == two.path
}

impl Pair<'_> {
    /// Whether elements are the same exactly if their indices are.
    fn has_own_indices(&self) -> bool {
        self.one.buffer == self.two.buffer && self.one.buffer.strides.is_none() && !self.moves(&self.one.buffer)
    }

    /// Whether the two iterations may see a buffer at different places: its layout depends on the loop or on what is inside of it.
    fn moves(&self, buffer: &Buffer) -> bool {
        let inside = [bound_from(self.one, self.depth), bound_from(self.two, self.depth)].concat();
        is_placed_by(buffer, &inside)
    }

    /// Whether an index or a condition reads a buffer that the two iterations may see at different places: its elements are then no
    /// function of their indices.
    fn reads_moved(&self) -> bool {
        [self.one, self.two].into_iter().any(|access| reads(access, |buffer| self.moves(buffer)))
    }

    /// The loop whose iterations run at once.
    fn var(&self) -> Option<&Var> {
        self.one.path.steps.iter().nth(self.depth).and_then(|step| match step {
            Step::Loop(var, ..) => Some(var),
            Step::Let(..) | Step::Guard(..) => None,
        })
    }

    fn decide(&self, judge: &Judge) -> Decision {
        if self.reads_moved() {
            let why = "an index or a condition reads a view whose place depends on the iteration";
            return unsupported(format!("{}: {why}", self.open_question()));
        }
        // Points are no proof for all extents, and a map that was decided before is decided faster than points are tried.
        let by_map = || record::attempt(|| self.by_map(judge));
        let is_symbolic = !self.one.path.symbols.is_empty();
        if let Some(decision) = is_symbolic.then(by_map).flatten() {
            return decision;
        }
        // Points are no statements for a certificate.
        let early = if judge.is_recording() { None } else { points::tried(self, FEW) };
        if let Some(decision) = early {
            return decision;
        }
        let by_map = if is_symbolic { None } else { by_map() };
        by_map
            .or_else(|| record::attempt(|| self.by_proof(judge)))
            .or_else(|| points::tried(self, MANY))
            .unwrap_or_else(|| (Verdict::Unknown(Reason::undecided(self.open_question())), Method::Nothing))
    }

    fn open_question(&self) -> String {
        let (one, two) = (&self.one.text, &self.two.text);
        let over = self.var().map_or("a loop", Var::name);
        if self.one.path == self.two.path && self.one.indices == self.two.indices {
            return format!("whether two iterations of `{over}` touch the same element with `{one}` is not decided");
        }
        format!("whether two iterations of `{over}` touch the same element, with `{one}` and `{two}`, is not decided")
    }

    /// One access: the map from the loop and those inside it to the indices is injective.
    fn by_map(&self, judge: &Judge) -> Option<Decision> {
        let is_one = self.one.indices == self.two.indices && self.one.path == self.two.path;
        if !is_one || !self.has_own_indices() {
            return None;
        }
        let used: Vec<Var> = self.one.indices.iter().flat_map(Expr::vars).collect();
        let (mut outside, mut loops) = (Vec::new(), Vec::new());
        for (place, step) in self.one.path.steps.iter().enumerate() {
            match step {
                Step::Loop(var, ..) | Step::Let(var, _) if place < self.depth => outside.push(var.clone()),
                Step::Loop(var, min, extent) if place == self.depth || used.contains(var) => {
                    loops.push((var.clone(), min.clone(), extent.clone()));
                }
                Step::Loop(..) | Step::Let(..) | Step::Guard(..) => {}
            }
        }
        let (verdict, method) =
            one_to_one(judge, (&self.one.path, &outside), &loops, &self.one.indices, &self.one.buffer.shape);
        verdict.is_proved().then(|| (verdict, Method::IndexMaps(vec![method])))
    }

    /// If both touch the same element, under the conditions on their ways, the iterations are one.
    fn by_proof(&self, judge: &Judge) -> Option<Decision> {
        let var = self.var()?;
        let mut names = Names::default();
        let mut question = judge.question(&mut names, &self.one.path.symbols);
        let split = |path: &Path| {
            let (outer, inner): (Vec<_>, Vec<_>) =
                path.steps.iter().cloned().enumerate().partition(|(place, _)| *place < self.depth);
            let steps = |part: Vec<(usize, Step)>| part.into_iter().map(|(_, step)| step).collect::<Steps>();
            (
                Path { steps: steps(outer), ..path.clone() },
                Path { steps: steps(inner), constant: path.constant.clone(), ..Path::default() },
            )
        };
        let (outer, one) = split(&self.one.path);
        let (two, renames) = renamed(&split(&self.two.path).1);
        for path in [&outer, &one, &two] {
            path.assume(&mut question, &mut names);
        }
        names.next_statement();
        let first = self.coordinates(self.one, &mut names, Expr::clone)?;
        if self.is_unstable {
            names.next_statement();
        }
        let second = self.coordinates(self.two, &mut names, |expr| renames.apply(expr))?;
        names.assume_types(&mut question);
        let pairs: Vec<(Term, Term)> = first.into_iter().zip(second).collect();
        question.assume_equal(&pairs, "both touch this element");
        let iteration = Expr::from(var);
        let goal = names.term(&iteration).equals(names.term(&renames.apply(&iteration)));
        let from = question.steps().len();
        let grounds = question.settle(&goal).ok()?;
        question.keep_proof("race");
        Some((Verdict::Proved(grounds), method_of(&question, from)))
    }

    /// What is equal for two accesses exactly if they touch the same element: the indices, or the position in memory.
    /// `None` if the memory has several axes, or elements of different sizes.
    fn coordinates(&self, access: &Access, names: &mut Names, apply: impl Fn(&Expr) -> Expr) -> Option<Vec<Term>> {
        let indices: Vec<Term> = access.indices.iter().map(|index| names.term(&apply(index))).collect();
        if self.has_own_indices() {
            return Some(indices);
        }
        if self.one.buffer.dtype.bytes() != self.two.buffer.dtype.bytes() || !is_linear(&access.buffer) {
            return None;
        }
        let buffer = &access.buffer;
        // The layout may depend on the iteration, too.
        let offset = names.term(&apply(&buffer.elem_offset));
        let position = if let Some(strides) = &buffer.strides {
            indices.iter().zip(strides).fold(offset, |sum, (index, stride)| sum + index * names.term(&apply(stride)))
        } else {
            let row_major = indices.iter().zip(&buffer.shape);
            offset + row_major.fold(Term::int(0), |sum, (index, extent)| sum * names.term(&apply(extent)) + index)
        };
        Some(vec![position])
    }
}

/// Whether the memory of a buffer has one axis, so that an element has a position in it.
fn is_linear(buffer: &Buffer) -> bool {
    buffer.axis_separators.groups().len() <= 1 && !buffer.scope.is_texture()
}

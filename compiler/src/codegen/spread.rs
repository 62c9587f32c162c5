//! Which serial loops at the head of a nest run as work-items: those whose iterations the judge proves independent.
//!
//! `independent` decides that for constant extents, by the digits of an index. Where it does not, the loops are marked parallel and
//! the judge is asked whether they race, for all extents:
//!
//! ```text
//! for i in range(n):                  for i in T.parallel(n):
//!     for j in range(m):       ->         for j in T.parallel(m):      race: proved, so n * m work-items
//!         B[i * m + j] = A[j * n + i]         B[i * m + j] = A[j * n + i]
//! ```
//!
//! A loop that is not proved to be independent stays serial. If the whole nest runs as one work-item, the notes of the kernel say why.

use std::collections::BTreeSet;
use std::sync::Arc;

use tilewright_ir::{Expr, For, ForKind, Interval, PrimFunc, ScalarType, Stmt, StmtKind, Var};
use tilewright_verify::{Judge, Report};

use super::independent::{leading_loops, separates};
use super::launch::bound_loops;
use super::range::{Ranges, constant, type_range};

/// A function whose independent leading loops are parallel.
pub(super) struct Spread {
    pub(super) func: PrimFunc,
    /// The proved reports on the loops that were marked (obligation *race*).
    pub(super) reports: Vec<Report>,
    /// The nests that run as one work-item, with the reasons.
    pub(super) notes: BTreeSet<String>,
}

/// The scalars that a kernel may take, and their ranges.
pub(super) struct Scalars {
    /// Symbolic extents first; then scalar parameters, `false`.
    pub(super) all: Vec<(Var, bool)>,
}

impl Scalars {
    /// Those of a function.
    pub(super) fn of(func: &PrimFunc) -> Self {
        let symbols = func.symbols();
        let params = func.params.iter().filter(|param| param.dtype().scalar != ScalarType::Handle);
        let others = params.filter(|param| !symbols.contains(param)).cloned().map(|var| (var, false));
        Self { all: symbols.iter().cloned().map(|var| (var, true)).chain(others).collect() }
    }

    /// Their names.
    pub(super) fn names(&self) -> BTreeSet<Var> {
        self.all.iter().map(|(var, _)| var.clone()).collect()
    }

    /// Their ranges: a symbolic extent is at least 1.
    pub(super) fn ranges(&self) -> Ranges {
        let mut ranges = Ranges::default();
        for (var, is_symbol) in &self.all {
            let range = type_range(var.dtype().scalar);
            ranges.insert(var, if *is_symbol { Interval { low: 1, ..range } } else { range });
        }
        ranges
    }
}

/// The leading loops of a nest whose extents are known at the launch, and how many of them run as work-items: those that are
/// parallel because the program says so, and serial ones as far as [`separates`] shows that no two work-items touch the same element.
pub(super) fn work_items<'a>(nest: &'a Stmt, known: &BTreeSet<Var>, ranges: &Ranges) -> (Vec<&'a For>, usize) {
    let mut loops = leading_loops(nest);
    let fixed = |expr: &Expr| !expr.reads_memory() && expr.vars().iter().all(|var| known.contains(var));
    let first_open = loops.iter().position(|inner| !fixed(&inner.extent) || !fixed(&inner.min));
    loops.truncate(first_open.unwrap_or(loops.len()));
    let parallel = loops.iter().take_while(|inner| inner.kind == ForKind::Parallel).count();
    let vars: Vec<_> = loops.iter().map(|inner| inner.var.clone()).collect();
    let independent = |count: &usize| separates(&vars[..*count], nest, ranges);
    let count = (parallel + 1..=loops.len()).rev().find(independent).unwrap_or(parallel);
    (loops, count)
}

impl Spread {
    /// Asks the judge about the leading loops of each nest at the root that [`work_items`] leaves serial.
    pub(super) fn judged(judge: &Judge, func: &PrimFunc) -> Self {
        let scalars = Scalars::of(func);
        let mut search = Search {
            judge,
            func,
            known: scalars.names(),
            ranges: scalars.ranges(),
            reports: Vec::new(),
            notes: BTreeSet::new(),
        };
        let body = search.root(&func.body, &|body| body);
        Self { func: PrimFunc { body, ..func.clone() }, reports: search.reports, notes: search.notes }
    }
}

/// The walk over the nests of a function.
struct Search<'a> {
    judge: &'a Judge,
    func: &'a PrimFunc,
    known: BTreeSet<Var>,
    ranges: Ranges,
    reports: Vec<Report>,
    notes: BTreeSet<String>,
}

impl Search<'_> {
    /// The statements at the root with their nests marked. `around` puts a statement where this one stands.
    fn root(&mut self, stmt: &Stmt, around: &dyn Fn(Stmt) -> Stmt) -> Stmt {
        match &stmt.kind {
            StmtKind::Seq(stmts) => {
                // Assertions before a nest hold in it; what memory held then may have changed.
                let mut asserts = Vec::new();
                let mut done = Vec::with_capacity(stmts.len());
                for stmt in stmts.iter() {
                    let before = asserts.clone();
                    let inside = |nest: Stmt| around(Stmt::seq(before.iter().cloned().chain([nest]).collect()));
                    done.push(self.root(stmt, &inside));
                    if matches!(&stmt.kind, StmtKind::Assert { cond, .. } if !cond.reads_memory()) {
                        asserts.push(stmt.clone());
                    }
                }
                Stmt { kind: StmtKind::Seq(done.into()), span: stmt.span }
            }
            StmtKind::Allocate { body, .. }
            | StmtKind::DeclBuffer { body, .. }
            | StmtKind::Attr { body, .. }
            | StmtKind::Let { body, .. } => {
                let marked = self.root(body, &|body| around(with_body(stmt, body)));
                with_body(stmt, marked)
            }
            StmtKind::For(outermost) => self.nest(outermost, stmt, around),
            StmtKind::Store { .. }
            | StmtKind::If { .. }
            | StmtKind::Evaluate(_)
            | StmtKind::Barrier
            | StmtKind::Assert { .. } => stmt.clone(),
        }
    }

    /// A nest with as many leading loops parallel as are proved to be independent.
    fn nest(&mut self, outermost: &For, nest: &Stmt, around: &dyn Fn(Stmt) -> Stmt) -> Stmt {
        if !bound_loops(nest).is_empty() {
            return nest.clone();
        }
        let (loops, found) = work_items(nest, &self.known, &self.ranges);
        let most = loops
            .iter()
            .take_while(|inner| constant(&inner.extent) == Some(1) || tells_apart(&inner.var, nest))
            .count();
        let mut reason = why_serial(&loops);
        for count in (found + 1..=most).rev() {
            let marked = parallel(nest, count);
            let body = around(marked.clone());
            let alone = PrimFunc { body, ..self.func.clone() };
            let races = self.judge.check_races(&alone);
            match races.iter().find(|report| !report.verdict.is_proved()) {
                None => {
                    self.reports.extend(races);
                    return marked;
                }
                Some(open) => reason = format!("the race between its iterations is {}", open.verdict),
            }
        }
        if found == 0 {
            self.notes.insert(format!("the nest of `{}` runs as one work-item: {reason}", outermost.var));
        }
        nest.clone()
    }
}

/// Why no leading loop is a candidate; `loops` are those whose extents are known at the launch.
fn why_serial(loops: &[&For]) -> String {
    match loops.first() {
        Some(first) => format!("where it writes does not depend on `{}`", first.var),
        None => "the extent of its first loop is not known at the launch".to_owned(),
    }
}

/// A nest whose first `count` loops are parallel.
fn parallel(nest: &Stmt, count: usize) -> Stmt {
    match &nest.kind {
        StmtKind::For(inner) if count > 0 => {
            let body = parallel(&inner.body, count - 1);
            let kind = StmtKind::For(Arc::new(For { kind: ForKind::Parallel, body, ..(**inner).clone() }));
            Stmt { kind, span: nest.span }
        }
        StmtKind::Attr { body, .. } | StmtKind::DeclBuffer { body, .. } => with_body(nest, parallel(body, count)),
        // `leading_loops` looks through nothing else.
        StmtKind::For(_)
        | StmtKind::Store { .. }
        | StmtKind::Allocate { .. }
        | StmtKind::If { .. }
        | StmtKind::Let { .. }
        | StmtKind::Seq(_)
        | StmtKind::Evaluate(_)
        | StmtKind::Barrier
        | StmtKind::Assert { .. } => nest.clone(),
    }
}

/// A statement around another body; one without a body of its own stays as it is.
fn with_body(stmt: &Stmt, new: Stmt) -> Stmt {
    let mut kind = stmt.kind.clone();
    if let StmtKind::Allocate { body, .. }
    | StmtKind::DeclBuffer { body, .. }
    | StmtKind::Attr { body, .. }
    | StmtKind::Let { body, .. } = &mut kind
    {
        *body = Arc::new(new);
    }
    Stmt { kind, span: stmt.span }
}

/// Whether each index that a nest stores to depends on a loop variable, itself or through bound names and inner loops. If one does not,
/// its iterations write the same element. Memory of the nest itself does not count.
fn tells_apart(var: &Var, nest: &Stmt) -> bool {
    let mut dependent: BTreeSet<Var> = [var.clone()].into();
    let mut own = BTreeSet::new();
    let mut all = true;
    // A walk meets a name before the statements that use it.
    nest.walk(&mut |stmt| {
        let depends = |expr: &Expr, on: &BTreeSet<Var>| expr.vars().iter().any(|var| on.contains(var));
        match &stmt.kind {
            StmtKind::Let { var, value, .. } if depends(value, &dependent) => {
                dependent.insert(var.clone());
            }
            StmtKind::For(inner) if depends(&inner.min, &dependent) || depends(&inner.extent, &dependent) => {
                dependent.insert(inner.var.clone());
            }
            StmtKind::Allocate { buffer, .. } => {
                own.insert(buffer.data.clone());
            }
            StmtKind::Store { buffer, indices, .. } if !own.contains(&buffer.data) => {
                all &= indices.iter().any(|index| depends(index, &dependent));
            }
            StmtKind::Let { .. }
            | StmtKind::For(_)
            | StmtKind::Store { .. }
            | StmtKind::DeclBuffer { .. }
            | StmtKind::Attr { .. }
            | StmtKind::If { .. }
            | StmtKind::Seq(_)
            | StmtKind::Evaluate(_)
            | StmtKind::Barrier
            | StmtKind::Assert { .. } => {}
        }
    });
    all
}

//! Obligations of a single program: every access lies in its buffer, and no index leaves its type.

mod inside;

use rayon::prelude::*;
use tilewright_ir::sabotage;
use tilewright_ir::{
    BinaryOp, Bindings, Buffer, Expr, For, MAX_SYMBOLIC_ELEMENTS, PrimFunc, SharedExpr, Stmt, StmtKind, Var,
};

use crate::claims::not_well_formed;
use crate::concrete::tuple;
use crate::door::All;
use crate::iterations::{Seen, mixes_bits};
use crate::judge::{Decision, Judge, Place, Report, Side, decide, on_the_way, unreached, unsupported, vacuity};
use crate::map::{assume_addressable, fits, is_operation};
use crate::method::Method;
use crate::obligation::Obligation;
use crate::path::{Path, Site, Step, settled_sites};
use crate::question::Question;
use crate::term::{Assignment, Value};
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};
use crate::words::describe;

/// Concrete iterations tried before Z3 is asked.
const TRIED: usize = 200;

/// What holds everywhere in a program: extents are positive, buffers are not too large.
pub(crate) struct Base<'j> {
    judge: &'j Judge,
    question: Question,
    names: Names,
    /// The path to the body of the program.
    start: Path,
    /// The symbolic shapes, each of which is assumed to be addressable.
    shapes: Vec<Vec<Expr>>,
}

impl<'j> Base<'j> {
    pub(crate) fn new(judge: &'j Judge, func: &PrimFunc, buffers: &[Buffer]) -> Self {
        let mut names = Names::default();
        let mut question = judge.question(&mut names, &func.extents());
        // Buffers of one shape have one premise, which is no stronger said twice.
        let mut shapes: Vec<Vec<Expr>> = Vec::new();
        for buffer in buffers {
            let is_symbolic = buffer.shape.iter().any(|extent| extent.as_const_int().is_none());
            if is_symbolic && !shapes.contains(&buffer.shape) {
                shapes.push(buffer.shape.clone());
                assume_addressable(&mut question, &mut names, &buffer.shape);
            }
        }
        Self { judge, question, names, start: unconditional(func), shapes }
    }

    /// The judge that decides about the program.
    pub(crate) fn judge(&self) -> &'j Judge {
        self.judge
    }

    /// Whether the premises about sizes hold for these values.
    fn admits(&self, bindings: &Bindings) -> bool {
        self.shapes.iter().all(|shape| {
            let size = shape.iter().try_fold(1i128, |size, extent| {
                size.checked_mul(extent.eval_index(bindings).ok().filter(|&extent| extent >= 0)?)
            });
            size.is_some_and(|size| size <= i128::from(MAX_SYMBOLIC_ELEMENTS))
        })
    }

    /// The reports about a program, if its premises can hold together. From premises that contradict each other everything
    /// follows, and nothing is proved: all that is not refuted is vacuous.
    pub(crate) fn grounded(&self, mut reports: Vec<Report>) -> Vec<Report> {
        if self.start.is_reached_where(|bindings| self.admits(bindings)) {
            return reports;
        }
        let (mut question, mut names) = (self.question.fork(), self.names.clone());
        self.start.assume(&mut question, &mut names);
        let Some(open) = vacuity(&question) else { return reports };
        // Where no call is possible, what was left open is about no call either.
        let is_vacuous = matches!(open.0, Verdict::Vacuous(_));
        let is_void = |report: &Report| match &report.verdict {
            Verdict::Proved(_) => true,
            Verdict::Unknown(reason) => is_vacuous && !reason.is_internal(),
            Verdict::Refuted(_) | Verdict::Vacuous(_) | Verdict::Skipped(_) => false,
        };
        for report in reports.iter_mut().filter(|report| is_void(report)) {
            (report.verdict, report.method) = open.clone();
            report.proof.clear();
        }
        reports
    }

    /// The same at the end of a path; a decision if nothing ever gets there.
    #[allow(clippy::result_large_err, reason = "a decision is the common case, and is not propagated")]
    pub(crate) fn at(&self, path: &Path) -> Result<(Question, Names), Decision> {
        let (mut question, mut names) = (self.question.fork(), self.names.clone());
        path.assume(&mut question, &mut names);
        if !path.is_reached_where(|bindings| self.admits(bindings))
            && let Some(vacuous) = unreached(&question)
        {
            return Err(vacuous);
        }
        names.next_statement();
        Ok((question, names))
    }
}

/// A read or a write of one element (of each lane's element, if the index is a vector).
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Which buffer.
    pub(crate) buffer: Buffer,
    /// The index, of one lane; [`Access::path`] says which lanes there are.
    pub(crate) indices: Vec<Expr>,
    /// The way to it, conditions inside the expression and the lane included.
    pub(crate) path: Path,
    /// As it is written.
    pub(crate) text: String,
}

impl Judge {
    /// Decides `bounds` for every access of a program, and `overflow` for the indices, extents and conditions of every
    /// statement; `lanes` of every vector access, `race` of iterations that run at once, `defined` of texels.
    pub fn check_program(&self, func: &PrimFunc) -> Vec<Report> {
        self.check_program_on(Side::Before, func)
    }

    /// Checks the program of one side; the accesses of the program after are also compared with those of the one before.
    pub(crate) fn check_program_on(&self, side: Side, func: &PrimFunc) -> Vec<Report> {
        let mut reports = self.check_views(func, &func.buffers());
        reports.extend(self.check_program_given(side, func, false));
        reports
    }

    /// What a program does with its buffers, wherever these lie ([`Judge::check_views`]). If each access is known to be inside of its
    /// buffer (`is_inside`), as far as the integers say, no operation of its index leaves its type, if none does at the elements that
    /// there are.
    pub(crate) fn check_program_given(&self, side: Side, func: &PrimFunc, is_inside: bool) -> Vec<Report> {
        if let Some(reason) = not_well_formed(func) {
            let reason = format!("the program is not well formed: {reason}");
            return vec![Self::report(Obligation::Bounds, func.name.clone(), || unsupported(reason))];
        }
        let mut sites = settled_sites(func);
        if sabotage::on("sites-backwards") {
            sites.reverse();
        }
        let base = Base::new(self, func, &func.buffers());
        let mut reports: Vec<Report> = self.in_parallel(|| {
            sites.par_iter().flat_map_iter(|site| self.check_site(site, (side, is_inside), &base)).collect()
        });
        reports.extend(self.check_lanes(func));
        reports.extend(
            self.check_races(func)
                .into_iter()
                .map(|report| Report { place: report.place.map(|place| Place { side, ..place }), ..report }),
        );
        reports.extend(self.check_texels(func));
        base.grounded(reports)
    }

    fn check_site(&self, site: &Site<'_>, (side, is_inside): (Side, bool), base: &Base<'_>) -> Vec<Report> {
        let mut reports = Vec::new();
        let statement = describe(site.stmt);
        for access in accesses(site) {
            let subject =
                if access.text == statement { statement.clone() } else { format!("{} in `{statement}`", access.text) };
            let report = Self::report(Obligation::Bounds, subject, || bounds(self, &access));
            reports.push(report.placed(side, site.stmt.span));
        }
        let parts = index_parts(site);
        if !parts.is_empty() {
            let decide = || if is_inside { inside::overflow(site, base) } else { overflow(&parts, base) };
            let report = Self::report(Obligation::Overflow, format!("indices of `{statement}`"), decide);
            reports.push(report.placed(side, site.stmt.span));
        }
        reports
    }
}

/// The path through everything that each call does: what is bound and asserted outside of loops and conditions. What is
/// asserted there is a premise about the call.
fn unconditional(func: &PrimFunc) -> Path {
    through(func, |_| false)
}

/// The path through what each call binds and asserts before it does anything else.
pub(crate) fn entry(func: &PrimFunc) -> Path {
    through(func, |stmt| match &stmt.kind {
        StmtKind::For(_) | StmtKind::If { .. } | StmtKind::Store { .. } | StmtKind::Barrier | StmtKind::Evaluate(_) => {
            true
        }
        StmtKind::Seq(_)
        | StmtKind::Allocate { .. }
        | StmtKind::DeclBuffer { .. }
        | StmtKind::Attr { .. }
        | StmtKind::Let { .. }
        | StmtKind::Assert { .. } => false,
    })
}

/// What is bound and asserted outside of loops and conditions, up to a statement at which the path ends.
fn through(func: &PrimFunc, is_end: impl Fn(&Stmt) -> bool) -> Path {
    let (mut path, mut rest) = (Path::of(func), vec![&func.body]);
    while let Some(stmt) = rest.pop().filter(|stmt| !is_end(stmt)) {
        match &stmt.kind {
            StmtKind::Seq(stmts) => rest.extend(stmts.iter().rev()),
            StmtKind::Allocate { body, .. } | StmtKind::DeclBuffer { body, .. } | StmtKind::Attr { body, .. } => {
                rest.push(body);
            }
            StmtKind::Let { var, value, body } => {
                path.steps.push(Step::Let(var.clone(), value.clone()));
                rest.push(body);
            }
            StmtKind::Assert { cond, .. } => path.steps.push(Step::Guard(cond.clone(), true)),
            StmtKind::For(_)
            | StmtKind::If { .. }
            | StmtKind::Store { .. }
            | StmtKind::Barrier
            | StmtKind::Evaluate(_) => {}
        }
    }
    path
}

/// Every access that a statement makes, reads before the write.
pub(crate) fn accesses(site: &Site<'_>) -> Vec<Access> {
    let mut found = Vec::new();
    for expr in site.stmt.exprs() {
        loads(expr, &site.path, &mut found);
    }
    if let StmtKind::Store { buffer, indices, .. } = &site.stmt.kind {
        add(buffer, indices, &site.path, describe(site.stmt), &mut found);
    }
    found
}

fn loads(expr: &Expr, path: &Path, found: &mut Vec<Access>) {
    if let Some((one, inner)) = chosen_by_lane(expr, path) {
        return loads(&one, &inner, found);
    }
    if let Expr::IfThenElse(cond, then, otherwise) = expr {
        loads(cond, path, found);
        for (branch, holds) in [(then, true), (otherwise, false)] {
            let mut inner = path.clone();
            inner.choose(cond, holds);
            loads(branch, &inner, found);
        }
        return;
    }
    for child in expr.children() {
        loads(child, path, found);
    }
    if let Expr::Load { buffer, indices } = expr {
        add(buffer, indices, path, expr.to_string(), found);
    }
}

/// One lane of a conditional that chooses for each lane, under a loop over the lanes; none if it is no such conditional.
pub(crate) fn chosen_by_lane(expr: &Expr, path: &Path) -> Option<(Expr, Path)> {
    let Expr::IfThenElse(cond, ..) = expr else { return None };
    let lanes = cond.dtype().lanes;
    // A buffer of vectors is read as a whole: its lanes have no expressions.
    if lanes == 1 || !lane_of(cond, &Expr::int(0)).dtype().is_scalar() {
        return None;
    }
    let lane = Var::index("lane");
    let mut path = path.clone();
    path.steps.push(Step::Loop(lane.clone(), Expr::int(0), Expr::int(lanes.into())));
    Some((lane_of(expr, &Expr::from(lane)), path))
}

fn add(buffer: &Buffer, indices: &[Expr], path: &Path, text: String, found: &mut Vec<Access>) {
    let (indices, path) = one_lane(indices, path);
    found.push(Access { buffer: buffer.clone(), indices, path, text });
}

/// A vector index as a scalar one under a loop over the lanes.
pub(crate) fn one_lane(indices: &[Expr], path: &Path) -> (Vec<Expr>, Path) {
    let lanes = indices.last().map_or(1, |index| index.dtype().lanes);
    if lanes == 1 {
        return (indices.to_vec(), path.clone());
    }
    let lane = Var::index("lane");
    let mut path = path.clone();
    path.steps.push(Step::Loop(lane.clone(), Expr::int(0), Expr::int(lanes.into())));
    (indices.iter().map(|index| lane_of(index, &Expr::from(&lane))).collect(), path)
}

/// The value of one lane of a vector expression.
pub(crate) fn lane_of(expr: &Expr, lane: &Expr) -> Expr {
    let recurse = |inner: &Expr| SharedExpr::new(lane_of(inner, lane));
    match expr {
        Expr::Ramp { base, stride, .. } => ramp_at(base, stride, lane),
        Expr::Broadcast { value, .. } => (**value).clone(),
        _ if expr.dtype().is_scalar() => expr.clone(),
        Expr::Binary(op, a, b) => Expr::Binary(*op, recurse(a), recurse(b)),
        Expr::Unary(op, a) => Expr::Unary(*op, recurse(a)),
        Expr::Call(function, args) => Expr::Call(*function, args.iter().map(|arg| lane_of(arg, lane)).collect()),
        Expr::Select(c, a, b) => Expr::Select(recurse(c), recurse(a), recurse(b)),
        Expr::IfThenElse(c, a, b) => Expr::IfThenElse(recurse(c), recurse(a), recurse(b)),
        Expr::Cast(ty, value) => Expr::Cast(ty.with_lanes(1), recurse(value)),
        Expr::Load { buffer, indices } if buffer.dtype.is_scalar() => {
            Expr::Load { buffer: buffer.clone(), indices: indices.iter().map(|index| lane_of(index, lane)).collect() }
        }
        Expr::Int { .. } | Expr::Float { .. } | Expr::Var(_) | Expr::Load { .. } => expr.clone(),
    }
}

/// `base + lane * stride` in the type of the base; the lane itself where that is what it comes to.
pub(crate) fn ramp_at(base: &Expr, stride: &Expr, lane: &Expr) -> Expr {
    let ty = base.dtype();
    let lane = if lane.dtype() == ty { lane.clone() } else { Expr::Cast(ty, SharedExpr::new(lane.clone())) };
    let step = if stride.as_const_int() == Some(1) { lane } else { lane * stride.clone() };
    if base.as_const_int() == Some(0) { step } else { base.clone() + step }
}

/// A counterexample on a way: at these values, this happens.
pub(crate) fn at_point(path: &Path, bindings: &Bindings, text: String) -> Counterexample {
    let (shape, assignments) = path.describe(bindings);
    Counterexample { shape, indices: Vec::new(), assignments, text }
}

/// The values that Z3's model gives to everything on a way; 0 or 1 where it does not care.
pub(crate) fn bindings_of(path: &Path, names: &mut Names, model: &Assignment) -> Bindings {
    let mut bindings = Bindings::new();
    for (vars, default) in [(&path.symbols, 1), (&path.scalars, 0), (&path.loops(), 0)] {
        for var in vars {
            let value = names.var(var).free_symbols().iter().next().and_then(|symbol| model.get(symbol));
            let value = if let Some(Value::Int(value)) = value { value } else { default };
            bindings.insert(var.clone(), value);
        }
    }
    for step in &path.steps {
        if let Step::Let(var, value) = step
            && let Ok(value) = value.eval_index(&bindings)
        {
            bindings.insert(var.clone(), value);
        }
    }
    bindings
}

/// That the access is outside, if it is. An index that reads memory may be anywhere: the others decide.
fn outside(access: &Access, bindings: &Bindings) -> Option<Counterexample> {
    let (mut index, mut inside) = (Vec::new(), true);
    for (at, extent) in access.indices.iter().zip(&access.buffer.shape) {
        let extent = extent.eval_index(bindings).ok()?;
        index.push(match at.eval_index(bindings) {
            Ok(at) => {
                inside &= (0..extent).contains(&at);
                at.to_string()
            }
            Err(tilewright_ir::EvalError::Scalar { source, expr }) => {
                return Some(at_point(&access.path, bindings, format!("{source} in `{expr}`")));
            }
            Err(_) if at.reads_memory() => "?".to_owned(),
            Err(_) => return None,
        });
    }
    let shape: Vec<_> = access.buffer.shape.iter().filter_map(|extent| extent.eval_index(bindings).ok()).collect();
    let index = match index.as_slice() {
        [only] => only.clone(),
        several => format!("({})", several.join(", ")),
    };
    let text = format!("`{}` is at {index}, outside {} of shape {}", access.text, access.buffer, tuple(&shape));
    (!inside).then(|| at_point(&access.path, bindings, text))
}

/// The access lies in its buffer.
pub(crate) fn bounds(judge: &Judge, access: &Access) -> Decision {
    if let Some(found) = access.path.samples(TRIED).iter().find_map(|bindings| outside(access, bindings)) {
        return (Verdict::Refuted(found), Method::Evaluation);
    }
    let look = |bindings: &Bindings| {
        // An extent that has no value here is any number.
        let mut asked = access.indices.iter().chain(&access.buffer.shape);
        if asked.any(|expr| expr.eval_index(bindings).is_err()) {
            return Seen::Unclear;
        }
        outside(access, bindings).map_or(Seen::Holds, Seen::Fails)
    };
    judge.proved_or_tried(&access.path, mixes_bits(&access.indices), look, || bounds_proved(judge, access))
}

/// The same by the facts about the way to it.
fn bounds_proved(judge: &Judge, access: &Access) -> Decision {
    let mut names = Names::default();
    let mut question = judge.question(&mut names, &access.path.symbols);
    access.path.assume(&mut question, &mut names);
    if !access.path.is_reached()
        && let Some(unreached) = unreached(&question)
    {
        return unreached;
    }
    names.next_statement();
    let from = question.steps().len();
    let mut all = All::default();
    let result = access.indices.iter().zip(&access.buffer.shape).try_for_each(|(index, extent)| {
        let (index, extent) = (names.term(index), names.term(extent));
        names.assume_types(&mut question);
        question.settle(&index.at_least(0).and(index.less(extent))).map(|grounds| all.add(grounds))
    });
    let result = result.map(|()| all.grounds());
    let decision = decide("bounds", result, &question, from, |model| {
        let bindings = bindings_of(&access.path, &mut names, model);
        access.path.admits(&bindings).then(|| outside(access, &bindings)).flatten()
    });
    on_the_way(&access.path, access.indices.iter().any(Expr::reads_memory), decision)
}

/// Adds the integer operations of an expression, innermost first, each with the way to it: a branch of a conditional is
/// evaluated under its condition. What was added at the beginning of the same way is not added again: there it was asked
/// under fewer conditions. An operation that occurs on two ways is asked on both.
fn add_parts(expr: &Expr, path: &Path, found: &mut Vec<(Expr, Path)>) {
    match expr {
        Expr::IfThenElse(cond, then, otherwise) if cond.dtype().is_scalar() => {
            add_parts(cond, path, found);
            for (branch, holds) in [(then, true), (otherwise, false)] {
                let mut inner = path.clone();
                inner.choose(cond, holds);
                add_parts(branch, &inner, found);
            }
        }
        _ => expr.children().for_each(|child| add_parts(child, path, found)),
    }
    let is_asked = |(part, way): &(Expr, Path)| part == expr && way.steps.is_beginning_of(&path.steps);
    if is_operation(expr) && !found.iter().any(is_asked) {
        found.push((expr.clone(), path.clone()));
    }
}

/// Index arithmetic of a statement, each with the way to it: indices, loop bounds, integer conditions.
fn index_parts(site: &Site<'_>) -> Vec<(Expr, Path)> {
    let mut found: Vec<(Expr, Path)> = Vec::new();
    for access in accesses(site) {
        inside::add_index(&access, &mut found);
    }
    add_other_parts(site, &mut found);
    found
}

/// Adds the integer arithmetic of a statement that stands in no index.
fn add_other_parts(site: &Site<'_>, found: &mut Vec<(Expr, Path)>) {
    let mut add = |expr: &Expr, path: &Path| add_parts(expr, path, found);
    for (cond, path) in site.stmt.exprs().flat_map(|expr| conditions(expr, &site.path)) {
        for part in without_loads(&cond) {
            add(part, &path);
        }
    }
    match &site.stmt.kind {
        StmtKind::For(inner) => {
            add(&inner.min, &site.path);
            add(&inner.extent, &site.path);
            if let (Some(last), Some(zero)) = (last_iteration(inner), Expr::int_of(0, inner.extent.dtype().scalar)) {
                let mut any = site.path.clone();
                any.steps.push(Step::Guard(zero.lt(inner.extent.clone()), true));
                add(&last, &any);
            }
        }
        StmtKind::If { cond, .. } | StmtKind::Assert { cond, .. } => {
            for part in without_loads(cond) {
                add(part, &site.path);
            }
        }
        StmtKind::Let { value, .. } | StmtKind::Evaluate(value) if !value.reads_memory() => add(value, &site.path),
        // Kernels compute where the elements of a view are. The extent of the first axis takes no part in that.
        StmtKind::DeclBuffer { buffer, .. } => {
            let distances = buffer.strides.as_deref().unwrap_or(buffer.shape.get(1..).unwrap_or_default());
            distances.iter().chain([&buffer.elem_offset]).for_each(|part| add(part, &site.path));
        }
        _ => {}
    }
}

/// The largest parts of a condition that read no memory. What is done with loaded values is no premise of anything, unless it is a
/// comparison of the values as they are.
fn without_loads(cond: &Expr) -> Vec<&Expr> {
    if cond.reads_memory() { cond.children().flat_map(without_loads).collect() } else { vec![cond] }
}

/// The last value of a loop variable, which has one if there is any iteration, in its type, where that is not the extent less 1 of the same type.
fn last_iteration(inner: &For) -> Option<Expr> {
    let ty = inner.var.dtype();
    if inner.min.as_const_int() == Some(0) && inner.extent.dtype() == ty {
        return None;
    }
    let end = Expr::binary(BinaryOp::Add, inner.min.clone(), inner.extent.clone());
    Some(Expr::Cast(ty, SharedExpr::new(Expr::binary(BinaryOp::Sub, end, Expr::int(1)))))
}

/// The scalar conditions of choices in an expression, each with the way to it. A `Select` evaluates both sides.
fn conditions(expr: &Expr, path: &Path) -> Vec<(Expr, Path)> {
    if let Some((one, inner)) = chosen_by_lane(expr, path) {
        return conditions(&one, &inner);
    }
    let (cond, branches, is_choice) = match expr {
        Expr::IfThenElse(cond, then, otherwise) => (cond, [(then, true), (otherwise, false)], true),
        Expr::Select(cond, then, otherwise) if cond.dtype().is_scalar() => {
            (cond, [(then, true), (otherwise, false)], false)
        }
        _ => return expr.children().flat_map(|child| conditions(child, path)).collect(),
    };
    let mut found = conditions(cond, path);
    found.push(((**cond).clone(), path.clone()));
    for (branch, holds) in branches {
        let mut inner = path.clone();
        if is_choice {
            inner.choose(cond, holds);
        }
        found.extend(conditions(branch, &inner));
    }
    found
}

/// No part of the index arithmetic leaves its type.
pub(crate) fn overflow(parts: &[(Expr, Path)], base: &Base<'_>) -> Decision {
    overflow_of(parts, base, None)
}

/// The same for the parts of the index of an access, which is inside of its buffer.
fn overflow_of(parts: &[(Expr, Path)], base: &Base<'_>, inside: Option<&Access>) -> Decision {
    let mut last = None;
    let mut method = Method::SameText;
    let mut all = All::default();
    // Parts that read memory come last: they often stay unknown, and what comes after a part that is not proved is not decided.
    let asks = |(part, path): &&(Expr, Path)| part.reads_memory() || path.asks_memory();
    let (loaded, plain): (Vec<_>, Vec<_>) = parts.iter().partition(asks);
    for (part, path) in plain.into_iter().chain(loaded) {
        let look = |bindings: &Bindings| match part.eval_index(bindings) {
            Ok(_) => too_large(part, path, bindings).map_or(Seen::Holds, Seen::Fails),
            Err(_) => Seen::Unclear,
        };
        let prove = || part_fits((part, path), base, inside, &mut last);
        match base.judge.proved_or_tried(path, mixes_bits([part]), look, prove) {
            (Verdict::Proved(grounds), how) => {
                all.add(grounds);
                method = if method.has_lemmas() { method } else { method.then(how) };
            }
            other => return other,
        }
    }
    (all.proved(), method)
}

/// One part by the facts about the way to it, of which the next one on the same way makes use.
fn part_fits<'p>(
    (part, path): (&Expr, &'p Path),
    base: &Base<'_>,
    inside: Option<&Access>,
    last: &mut Option<(Question, Names, &'p Path)>,
) -> Decision {
    let reusable = last.take().filter(|(_, _, known)| *known == path);
    let (mut question, mut names, _) = match reusable {
        Some(kept) => kept,
        None => match base.at(path) {
            Ok((mut question, mut names)) => {
                if let Some(access) = inside {
                    inside::assume(access, &mut question, &mut names);
                }
                (question, names, path)
            }
            Err(vacuous) => return vacuous,
        },
    };
    let from = question.steps().len();
    let goal = fits(part, &mut names);
    names.assume_types(&mut question);
    let result = question.settle(&goal);
    let decision = decide("overflow", result, &question, from, |model| {
        too_large(part, path, &bindings_of(path, &mut names, model))
    });
    let decision = on_the_way(path, part.reads_memory(), decision);
    if decision.0.is_proved() {
        *last = Some((question, names, path));
    }
    decision
}

fn too_large(part: &Expr, path: &Path, bindings: &Bindings) -> Option<Counterexample> {
    let value = match part.eval_index(bindings) {
        Ok(value) => value,
        Err(tilewright_ir::EvalError::Scalar { source, expr }) if path.admits(bindings) => {
            return Some(at_point(path, bindings, format!("{source} in `{expr}`")));
        }
        Err(_) => return None,
    };
    let (low, high) = part.dtype().scalar.integer_range()?;
    let text = format!("`{part}` is {value}, which does not fit {}", part.dtype());
    (path.admits(bindings) && !(low..=high).contains(&value)).then(|| at_point(path, bindings, text))
}

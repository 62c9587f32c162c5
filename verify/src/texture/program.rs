//! Obligations of a program with texels: nobody else writes a texel at the same time, and what is read was written.
//!
//! | id | here |
//! |---|---|
//! | texture | height and width are within the limits that the function states |
//! | race | iterations that run at once never write one texel, and no nest both reads and writes a texture |
//! | defined | every texel that is read of a texture that the function allocates was written by an earlier nest |

use std::collections::{HashMap, HashSet};

use tilewright_ir::sabotage;
use tilewright_ir::{Buffer, Expr, For, ForKind, PrimFunc, Stmt, StmtKind, TextureLimits, Var};

use super::cover::covers;
use super::vectors::is_texels;
use super::within;
use crate::access::{Access, accesses, at_point, describe};
use crate::concrete::{instances, tuple};
use crate::judge::{Decision, Judge, Report, decide, unsupported};
use crate::lanes::{one_to_one, renamed, values};
use crate::method::{Method, Points};
use crate::obligation::Obligation;
use crate::path::{Path, Step, sites_in};
use crate::record;
use crate::term::Prop;
use crate::translate::Names;
use crate::verdict::{Counterexample, Verdict};

/// Iterations of a nest that are looked at.
const LOOKED_AT: usize = 1 << 16;

/// An access of a texture.
struct Touch {
    /// Position of the nest among the statements of the function.
    nest: usize,
    /// The way to the nest.
    start: Path,
    access: Access,
    writes: bool,
    /// The loops around it that run at once.
    at_once: Vec<Var>,
}

impl Touch {
    /// Row and column, in terms of the loops.
    fn texel(&self) -> &[Expr] {
        &self.access.indices[..self.access.indices.len().min(2)]
    }

    /// Whether one index is one place for both: the buffers may be two views of one memory.
    fn sees_as(&self, other: &Self) -> bool {
        let (one, two) = (&self.access.buffer, &other.access.buffer);
        one == two || (is_texels(one) && is_texels(two) && one.shape == two.shape && one.dtype == two.dtype)
    }
}

/// A program and all accesses of its textures.
struct Texels<'a> {
    judge: &'a Judge,
    nests: Vec<&'a Stmt>,
    touches: Vec<Touch>,
}

impl Judge {
    /// Decides `race` and `defined` of the texel buffers of a program, and `texture` of their extents.
    /// `simulated` says that the program is held against another one, each access against one there: where it is not seen
    /// that a read is defined, it is as defined as that one.
    pub(crate) fn check_texels(&self, func: &PrimFunc, simulated: bool) -> Vec<Report> {
        let mut textures: Vec<Buffer> = Vec::new();
        for buffer in func.buffers().into_iter().filter(is_texels) {
            if !textures.iter().any(|other| other.aliases(&buffer)) {
                textures.push(buffer);
            }
        }
        if textures.is_empty() {
            return Vec::new();
        }
        let program = Texels::new(self, func);
        let limits = func.attrs.texture_limits.unwrap_or(TextureLimits::PROMISED);
        let mut reports = Vec::new();
        for texture in &textures {
            let subject = format!("height and width of {texture}");
            reports.push(Self::report(Obligation::Texture, subject, || within(texture, limits)));
            let touches: Vec<_> = program.touches.iter().filter(|touch| touch.access.buffer.aliases(texture)).collect();
            if touches.iter().any(|touch| touch.writes) {
                let subject = format!("texels of {texture} that are written");
                reports.push(Self::report(Obligation::Race, subject, || program.race(texture, &touches)));
            }
            if allocates(func, texture) && touches.iter().any(|touch| !touch.writes) {
                let subject = format!("texels of {texture} that are read were written by an earlier nest");
                let mut report = Self::report(Obligation::Defined, subject, || program.defined(texture, &touches));
                if simulated && matches!(report.verdict, Verdict::Unknown(_)) {
                    report.subject =
                        format!("texels of {texture} that are read: written, if they are in the program before");
                    report.verdict = Verdict::Proved;
                    report.method = Method::Inspection(
                        "premise: what the program before reads is defined; each access is one of it (simulation)",
                    );
                }
                reports.push(report);
            }
        }
        reports
    }
}

fn allocates(func: &PrimFunc, texture: &Buffer) -> bool {
    let mut found = false;
    func.body
        .walk(&mut |stmt| found |= matches!(&stmt.kind, StmtKind::Allocate { buffer, .. } if buffer.aliases(texture)));
    found
}

fn unknown(reason: impl Into<String>) -> Decision {
    unsupported(reason)
}

/// The loops in a statement whose iterations run at once.
fn concurrent(stmt: &Stmt) -> HashSet<Var> {
    let mut found = HashSet::new();
    stmt.walk(&mut |stmt| {
        if let StmtKind::For(inner) = &stmt.kind {
            let For { var, kind, .. } = &**inner;
            let in_order = *kind == ForKind::Parallel && sabotage::on("race-ignores-parallel");
            if !in_order && !matches!(kind, ForKind::Serial | ForKind::Unrolled) {
                found.insert(var.clone());
            }
        }
    });
    found
}

/// The statements that are launched one after the other, as kernels are, each with the way to it.
fn nests<'a>(stmt: &'a Stmt, path: &mut Path, found: &mut Vec<(Path, &'a Stmt)>) {
    match &stmt.kind {
        StmtKind::Seq(stmts) => stmts.iter().for_each(|stmt| nests(stmt, path, found)),
        StmtKind::Allocate { body, .. } | StmtKind::DeclBuffer { body, .. } | StmtKind::Attr { body, .. } => {
            nests(body, path, found);
        }
        StmtKind::Let { var, value, body } => {
            found.push((path.clone(), stmt));
            path.steps.push(Step::Let(var.clone(), value.clone()));
            nests(body, path, found);
        }
        StmtKind::Assert { cond, .. } => {
            found.push((path.clone(), stmt));
            path.steps.push(Step::Guard(cond.clone(), true));
        }
        StmtKind::For(_) | StmtKind::Store { .. } | StmtKind::If { .. } | StmtKind::Evaluate(_) => {
            found.push((path.clone(), stmt));
        }
    }
}

impl<'a> Texels<'a> {
    fn new(judge: &'a Judge, func: &'a PrimFunc) -> Self {
        let mut found = Vec::new();
        nests(&func.body, &mut Path::of(func), &mut found);
        let mut touches = Vec::new();
        for (nest, (start, stmt)) in found.iter().enumerate() {
            let concurrent = concurrent(stmt);
            // The body of a binding is a nest, or several, of its own.
            let binding = matches!(stmt.kind, StmtKind::Let { .. });
            for site in sites_in(stmt, start).into_iter().take(if binding { 1 } else { usize::MAX }) {
                let stores = matches!(site.stmt.kind, StmtKind::Store { .. });
                let all = accesses(&site);
                let last = all.len();
                for (place, access) in all.into_iter().enumerate() {
                    let loops = access.path.loops();
                    let at_once = loops.into_iter().filter(|var| concurrent.contains(var)).collect();
                    let writes = stores && place + 1 == last;
                    touches.push(Touch { nest, start: start.clone(), access, writes, at_once });
                }
            }
        }
        Self { judge, nests: found.into_iter().map(|(_, stmt)| stmt).collect(), touches }
    }

    /// Iterations that run at once never write one texel, and no nest both reads and writes.
    fn race(&self, texture: &Buffer, touches: &[&Touch]) -> Decision {
        let writes: Vec<_> = touches.iter().filter(|touch| touch.writes).copied().collect();
        for write in &writes {
            if let Some(read) = touches.iter().find(|touch| !touch.writes && touch.nest == write.nest) {
                let nest = describe(self.nests[write.nest]);
                let text = format!(
                    "the nest `{nest}` reads `{texture}` in `{}` and writes it in `{}`, but an image is read only or \
                     written only in a kernel",
                    read.access.text, write.access.text
                );
                return (Verdict::Refuted(Counterexample { text, ..Counterexample::default() }), Method::Structure);
            }
            if !is_texels(&write.access.buffer) {
                return unknown(format!("`{texture}` is written as `{}`, in another shape", write.access.buffer));
            }
        }
        let mut method = Method::Inspection("no iterations run at once");
        for (place, write) in writes.iter().enumerate() {
            for other in writes[..place].iter().filter(|other| other.nest == write.nest) {
                match self.two_apart(write, other) {
                    (Verdict::Proved, _) => {}
                    open => return open,
                }
            }
            if write.at_once.is_empty() {
                continue;
            }
            match self.apart(write) {
                (Verdict::Proved, how) => method = how,
                other => return other,
            }
        }
        (Verdict::Proved, method)
    }

    /// Two stores in one nest: iterations that run at once never write one texel, one with each.
    fn two_apart(&self, write: &Touch, other: &Touch) -> Decision {
        let (one, two) = (&other.access.text, &write.access.text);
        if write.at_once.is_empty() && other.at_once.is_empty() {
            return (Verdict::Proved, Method::Inspection("no iterations run at once"));
        }
        if write.at_once != other.at_once {
            return unknown(format!("`{one}` and `{two}` are written by iterations that run at once"));
        }
        if !write.sees_as(other) {
            return unknown(format!("`{one}` and `{two}` write one texture in two shapes at once"));
        }
        // Then it is one store twice, or there is more to see than that each is apart from itself.
        if write.texel() == other.texel() && write.access.path == other.access.path {
            return (Verdict::Proved, Method::Inspection("the same texel"));
        }
        self.apart_under_conditions(write, other)
    }

    /// Iterations that differ in a loop whose iterations run at once write different texels.
    fn apart(&self, write: &Touch) -> Decision {
        if let Some(found) = shared(write) {
            return (Verdict::Refuted(found), Method::Evaluation);
        }
        let used: Vec<Var> = write.texel().iter().flat_map(Expr::vars).collect();
        let loops: Vec<_> = loops(&write.access.path)
            .into_iter()
            .filter(|(var, ..)| write.at_once.contains(var) || used.contains(var))
            .collect();
        let by_map = || Some(one_to_one(self.judge, &loops, write.texel(), &write.access.buffer.shape));
        match record::attempt(by_map) {
            Some((Verdict::Proved, how)) => (Verdict::Proved, how),
            _ => self.apart_under_conditions(write, write),
        }
    }

    /// The same for what the conditions let through: iterations of two stores (or of one) with one texel agree in those loops.
    fn apart_under_conditions(&self, write: &Touch, second: &Touch) -> Decision {
        let path = &write.access.path;
        let (other, renames) = renamed(&second.access.path);
        let mut names = Names::default();
        let mut prover = self.judge.prover(&mut names, &path.symbols);
        path.assume(&mut prover, &mut names);
        other.assume(&mut prover, &mut names);
        names.next_statement();
        for var in path.loops().iter().take_while(|var| !write.at_once.contains(var)) {
            let var = Expr::from(var);
            let same = names.term(&var).equals(names.term(&renames.apply(&var)));
            prover.assume(&same, "iterations of the loops around run one after the other");
        }
        let mut digits = Vec::new();
        for (index, second) in write.texel().iter().zip(second.texel()) {
            let (one, two) = (names.term(index), names.term(&renames.apply(second)));
            let same = one.equals(&two);
            prover.assume(&same, "both write this texel");
            if let Some(fact) = prover.known(&same) {
                digits.extend(prover.digits_equal(&one, &two, &fact).unwrap_or_default());
            }
        }
        for fact in &digits {
            prover.keep(fact);
        }
        let pairs = write.at_once.iter().map(|var| {
            let var = Expr::from(var);
            names.term(&var).equals(names.term(&renames.apply(&var)))
        });
        let goal = Prop::all(pairs.collect::<Vec<_>>());
        let from = prover.context().steps().len();
        match prover.prove(&goal) {
            Ok(_) => decide("race", Ok(()), &prover, from, |_| None),
            Err(_) => unknown(format!(
                "that iterations which run at once write different texels with `{}` is not seen",
                write.access.text
            )),
        }
    }

    /// Every texel that is read was written by an earlier nest.
    fn defined(&self, texture: &Buffer, touches: &[&Touch]) -> Decision {
        let mut method = Method::SameText;
        for read in touches.iter().filter(|touch| !touch.writes) {
            let earlier: Vec<_> =
                touches.iter().filter(|touch| touch.writes && touch.nest < read.nest).copied().collect();
            if touches.iter().any(|touch| touch.writes && touch.nest == read.nest) {
                return unknown(format!("`{texture}` is read and written by one nest"));
            }
            if earlier.is_empty() {
                let text = format!("`{}` is read before anything writes `{texture}`", read.access.text);
                return match read.access.path.samples(1).first() {
                    Some(at) => (Verdict::Refuted(at_point(&read.access.path, at, text)), Method::Structure),
                    None => unknown(text),
                };
            }
            if earlier.iter().any(|write| !is_texels(&read.access.buffer) || !write.sees_as(read)) {
                return unknown(format!("`{texture}` is used in another shape than texels, or in several"));
            }
            let whole =
                earlier.iter().find_map(|write| record::attempt(|| covers(self.judge, &write.start, &write.access)));
            let decision = whole.unwrap_or_else(|| enumerated(read, &earlier));
            match decision {
                (Verdict::Proved, how) => method = how,
                other => return other,
            }
        }
        (Verdict::Proved, method)
    }
}

/// The loops of a way: variable, first value, extent.
fn loops(path: &Path) -> Vec<(Var, Expr, Expr)> {
    let of = |step: &Step| match step {
        Step::Loop(var, min, extent) => Some((var.clone(), min.clone(), extent.clone())),
        _ => None,
    };
    path.steps.iter().filter_map(of).collect()
}

/// Two iterations that run at once and write one texel, on some small shape: the outermost loop in which they differ is one
/// whose iterations run at once.
fn shared(write: &Touch) -> Option<Counterexample> {
    let path = &write.access.path;
    let all: Vec<Expr> = path.loops().iter().map(Expr::from).collect();
    let parts: Vec<usize> =
        (0..all.len()).filter(|&place| write.at_once.iter().any(|var| all[place] == Expr::from(var))).collect();
    let names: Vec<_> = write.at_once.iter().map(Var::name).collect();
    let who = |iteration: &[i128]| tuple(&parts.iter().map(|&place| iteration[place]).collect::<Vec<_>>());
    instances(&path.symbols).into_iter().find_map(|instance| {
        let mut seen: HashMap<(Vec<i128>, Vec<i128>), Vec<i128>> = HashMap::new();
        let found = path.each_iteration(&instance, LOOKED_AT, &mut |bindings| {
            let (texel, iteration) = (values(write.texel(), bindings)?, values(&all, bindings)?);
            parts.iter().find_map(|&part| {
                let first =
                    seen.entry((texel.clone(), iteration[..part].to_vec())).or_insert_with(|| iteration.clone());
                let text = || {
                    let (names, texel) = (names.join(", "), tuple(&texel));
                    let (one, two) = (who(first), who(&iteration));
                    format!("texel {texel} is written at ({names}) = {one} and at {two}, which run at once")
                };
                (first[part] != iteration[part]).then(|| at_point(path, bindings, text()))
            })
        });
        found.0
    })
}

/// Every element that is read is among those that the stores write, all of them evaluated.
fn enumerated(read: &Touch, writes: &[&Touch]) -> Decision {
    let path = &read.access.path;
    let open = || unknown(format!("that every texel that `{}` reads was written is not seen", read.access.text));
    let mut looked_at = 0;
    for instance in instances(&path.symbols) {
        let mut written = HashSet::new();
        let mut all = true;
        for write in writes {
            let (nowhere, complete) =
                write.access.path.each_iteration(&instance, LOOKED_AT, &mut |bindings| match values(
                    &write.access.indices,
                    bindings,
                ) {
                    Some(index) => {
                        written.insert(index);
                        None
                    }
                    None => Some(()),
                });
            all &= complete && nowhere.is_none();
        }
        let missing = path.each_iteration(&instance, LOOKED_AT, &mut |bindings| {
            looked_at += 1;
            let index = values(&read.access.indices, bindings);
            let unwritten = index.as_ref().is_none_or(|index| !written.contains(index));
            unwritten.then(|| (index, bindings.clone()))
        });
        match missing {
            (Some((Some(index), bindings)), _) if all => {
                let text = format!("`{}` reads {}, which nothing wrote before", read.access.text, tuple(&index));
                return (Verdict::Refuted(at_point(path, &bindings, text)), Method::Evaluation);
            }
            (None, true) if all => {}
            _ => return open(),
        }
    }
    if path.symbols.is_empty() { (Verdict::Proved, Method::Enumeration(Points::Reads(looked_at))) } else { open() }
}

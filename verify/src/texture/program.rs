//! Obligations of a program with texels: images are read or written in a kernel, not both, and what is read was written.
//!
//! | id | here |
//! |---|---|
//! | texture | height and width are within the limits that the function states |
//! | texture | no nest both reads and writes a texture |
//! | defined | every texel that is read of a texture that the function allocates was written by an earlier nest |

use std::collections::HashSet;

use tilewright_ir::{Buffer, PrimFunc, Stmt, StmtKind, TextureLimits};

use super::cover::covers;
use super::vectors::is_texels;
use super::within;
use crate::access::{Access, accesses, at_point};
use crate::concrete::{instances, tuple};
use crate::door::{All, everywhere, inspected};
use crate::judge::{Decision, Judge, Report, unsupported};
use crate::lanes::values;
use crate::method::{Method, Points};
use crate::obligation::Obligation;
use crate::path::{Path, Step, sites_in};
use crate::record;
use crate::verdict::{Counterexample, Verdict};
use crate::words::describe;

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
}

impl Touch {
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
    /// Decides `defined` of the texel buffers of a program, and `texture` of their extents and uses.
    pub(crate) fn check_texels(&self, func: &PrimFunc) -> Vec<Report> {
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
                let subject = format!("{texture} is read or written in a nest, not both");
                reports.push(Self::report(Obligation::Texture, subject, || program.one_way(texture, &touches)));
            }
            if allocates(func, texture) && touches.iter().any(|touch| !touch.writes) {
                let subject = format!("texels of {texture} that are read were written by an earlier nest");
                let report = Self::report(Obligation::Defined, subject, || program.defined(texture, &touches));
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
        StmtKind::For(_) | StmtKind::Store { .. } | StmtKind::If { .. } | StmtKind::Barrier | StmtKind::Evaluate(_) => {
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
            // The body of a binding is a nest, or several, of its own.
            let binding = matches!(stmt.kind, StmtKind::Let { .. });
            for site in sites_in(stmt, start).into_iter().take(if binding { 1 } else { usize::MAX }) {
                let stores = matches!(site.stmt.kind, StmtKind::Store { .. });
                let all = accesses(&site);
                let last = all.len();
                for (place, access) in all.into_iter().enumerate() {
                    let writes = stores && place + 1 == last;
                    touches.push(Touch { nest, start: start.clone(), access, writes });
                }
            }
        }
        Self { judge, nests: found.into_iter().map(|(_, stmt)| stmt).collect(), touches }
    }

    /// No nest both reads and writes the texture: an image is read only or written only in a kernel.
    fn one_way(&self, texture: &Buffer, touches: &[&Touch]) -> Decision {
        for write in touches.iter().filter(|touch| touch.writes) {
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
        (inspected(), Method::Inspection("no nest reads and writes it"))
    }

    /// Every texel that is read was written by an earlier nest.
    fn defined(&self, texture: &Buffer, touches: &[&Touch]) -> Decision {
        let mut method = Method::SameText;
        let mut all = All::default();
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
                (Verdict::Proved(grounds), how) => {
                    all.add(grounds);
                    method = how;
                }
                other => return other,
            }
        }
        (all.proved(), method)
    }
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
    if path.symbols.is_empty() {
        (everywhere(looked_at), Method::Enumeration(Points::Reads(looked_at)))
    } else {
        open()
    }
}

//! The loops that a schedule marks `unroll`: each becomes a step that the pass `unroll` applies, if its iterations can be written out.
//!
//! ```text
//! k = s[C].op.reduce_axis[0]           for k in T.unroll(3): C[i] += A[i, k]      schedule: unroll=C.k
//! s[C].unroll(k)
//! ```
//!
//! Other loops stay loops of the kind `unrolled`, which is a hint for the compiler of the kernel, and a note says why.

use tilewright_ir::{Diagnostic, For, ForKind, PrimFunc, ScheduleStep, Stmt, StmtKind};

/// Most copies of one statement.
const MOST_COPIES: i128 = 64;

/// The steps that write out the unrolled loops of a function, inner ones first, and notes about those that stay loops. `earlier` are the
/// steps that are applied before.
pub(super) fn steps(func: &PrimFunc, earlier: &[ScheduleStep]) -> (Vec<ScheduleStep>, Vec<Diagnostic>) {
    let mut found = Found { loops: Vec::new(), unrolled: Vec::new() };
    found.stmt(&func.body);
    let (mut steps, mut notes) = (Vec::new(), Vec::new());
    for run in &found.unrolled {
        match found.argument(run, earlier) {
            Ok(argument) => steps.push(ScheduleStep { primitive: "unroll".to_owned(), argument, span: None }),
            Err(why) => {
                let message = format!("the loop `{}` is not written out: {why}", run.inner.var);
                notes.push(Diagnostic::warning("unroll", None, message));
            }
        }
    }
    (steps, notes)
}

/// The loops of a function.
struct Found<'f> {
    /// All of them.
    loops: Vec<&'f For>,
    /// Those that are marked, inner ones first.
    unrolled: Vec<Unrolled<'f>>,
}

/// A loop that is marked.
struct Unrolled<'f> {
    inner: &'f For,
    /// The copies of the innermost body that it and the marked loops inside of it make.
    copies: i128,
}

impl<'f> Found<'f> {
    /// Collects the loops of a statement; returns the copies of a part of it that those inside make.
    fn stmt(&mut self, stmt: &'f Stmt) -> i128 {
        let StmtKind::For(inner) = &stmt.kind else {
            return stmt.children().map(|child| self.stmt(child)).max().unwrap_or(1);
        };
        self.loops.push(inner);
        let inside = self.stmt(&inner.body);
        if inner.kind != ForKind::Unrolled {
            return inside;
        }
        let copies = inner.extent.as_const_int().unwrap_or(i128::MAX).saturating_mul(inside);
        self.unrolled.push(Unrolled { inner, copies });
        if copies > MOST_COPIES { inside } else { copies }
    }

    /// The name of a loop for a step.
    ///
    /// # Errors
    /// Why it stays a loop.
    fn argument(&self, run: &Unrolled<'f>, earlier: &[ScheduleStep]) -> Result<String, String> {
        let inner = run.inner;
        if run.copies > MOST_COPIES {
            return Err(format!("its body would have {} copies, and at most {MOST_COPIES} are made", run.copies));
        }
        if has_threads(&inner.body) {
            return Err("there are loops inside that are bound to threads".into());
        }
        let stored = stored(inner);
        let moved = |step: &&ScheduleStep| {
            stored.iter().any(|name| step.argument == *name || step.argument.starts_with(&format!("{name}:")))
        };
        if let Some(step) = earlier.iter().find(moved) {
            return Err(format!("`{}={}` changes the loops first", step.primitive, step.argument));
        }
        let name = inner.var.name();
        let same: Vec<&For> = self.loops.iter().filter(|other| other.var.name() == name).copied().collect();
        if same.len() == 1 {
            return Ok(name.to_owned());
        }
        let is_only = |buffer: &&String| same.iter().filter(|other| self::stored(other).contains(*buffer)).count() == 1;
        let buffer = stored.iter().find(is_only).ok_or("other loops around the same stores have its name")?;
        Ok(format!("{buffer}.{name}"))
    }
}

/// The names of the buffers that a loop stores to.
fn stored(inner: &For) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    inner.body.walk(&mut |stmt| {
        if let StmtKind::Store { buffer, .. } = &stmt.kind
            && !found.contains(&buffer.name)
        {
            found.push(buffer.name.clone());
        }
    });
    found
}

fn has_threads(stmt: &Stmt) -> bool {
    let mut found = false;
    stmt.walk(&mut |part| {
        found |= matches!(&part.kind, StmtKind::For(inner) if matches!(inner.kind, ForKind::ThreadBinding(_)));
    });
    found
}

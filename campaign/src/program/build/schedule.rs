//! The schedule of a generated program: steps that apply one after the other, each to what the ones before made.

use tilewright_compiler::passes::pass_by_name;
use tilewright_ir::{PrimFunc, ScheduleStep, Stmt, StmtKind};

use super::super::recipe::{Primitive, Step};

/// A function with a schedule, and what its steps make of it.
pub(super) struct Scheduled {
    /// The function that asks for the steps.
    pub(super) func: PrimFunc,
    /// The function after the steps.
    pub(super) after: PrimFunc,
}

/// The function with those of the steps that apply. They are tried here, and applied by whoever runs the passes.
pub(super) fn with_steps(mut func: PrimFunc, steps: &[Step]) -> Scheduled {
    let mut now = func.clone();
    for step in steps {
        let Ok(pass) = pass_by_name(step.primitive.name()) else { continue };
        let arguments = arguments(&now, step);
        let from = step.place.checked_rem(arguments.len()).unwrap_or(0);
        let applied = arguments.iter().cycle().skip(from).take(arguments.len()).find_map(|argument| {
            let request = ScheduleStep { primitive: pass.name.to_owned(), argument: argument.clone(), span: None };
            now.attrs.schedule = vec![request.clone()];
            (pass.run)(&now).ok().map(|done| (request, done.func))
        });
        now.attrs.schedule.clear();
        if let Some((request, after)) = applied {
            func.attrs.schedule.push(request);
            now = after;
        }
    }
    Scheduled { func, after: now }
}

/// The arguments that a step of this primitive may have in a function.
fn arguments(func: &PrimFunc, step: &Step) -> Vec<String> {
    let (loops, buffers) = (loops(&func.body), allocated(&func.body));
    match step.primitive {
        Primitive::Split => loops.iter().map(|name| format!("{name}:{}", i64::from(step.amount) + 2)).collect(),
        Primitive::Unroll => loops,
        Primitive::Fuse => {
            let pairs = loops.iter().flat_map(|outer| loops.iter().map(move |inner| (outer, inner)));
            pairs.filter(|(outer, inner)| outer != inner).map(|(outer, inner)| format!("{outer}:{inner}")).collect()
        }
        Primitive::ComputeAt => {
            buffers.iter().flat_map(|buffer| loops.iter().map(move |name| format!("{buffer}:{name}"))).collect()
        }
        Primitive::ComputeInline | Primitive::DoubleBuffer => buffers,
        Primitive::Allreduce => sums(&func.body),
    }
}

/// The arguments that bind a loop around stores of integers to threads. Floats would be rounded in another order.
fn sums(body: &Stmt) -> Vec<String> {
    let floats = |run: &str| {
        let mut found = false;
        body.walk(&mut |part| {
            let StmtKind::Store { buffer, .. } = &part.kind else { return };
            found |= run.starts_with(&format!("{}.", buffer.name)) && !buffer.dtype.scalar.is_integer();
        });
        found
    };
    loops(body)
        .into_iter()
        .filter(|run| run.contains('.') && !floats(run))
        .map(|run| format!("{run}:threadIdx.x"))
        .collect()
}

/// The loops, each with the first buffer that is stored to inside.
fn loops(body: &Stmt) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    body.walk(&mut |stmt| {
        let StmtKind::For(inner) = &stmt.kind else { return };
        let mut stored = None;
        inner.body.walk(&mut |part| {
            if let StmtKind::Store { buffer, .. } = &part.kind
                && stored.is_none()
            {
                stored = Some(buffer.name.clone());
            }
        });
        let name = stored.map_or_else(|| inner.var.to_string(), |buffer| format!("{buffer}.{}", inner.var));
        if !found.contains(&name) {
            found.push(name);
        }
    });
    found
}

/// The buffers that are allocated.
fn allocated(body: &Stmt) -> Vec<String> {
    let mut found = Vec::new();
    body.walk(&mut |stmt| {
        if let StmtKind::Allocate { buffer, .. } = &stmt.kind {
            found.push(buffer.name.clone());
        }
    });
    found
}

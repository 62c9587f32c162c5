//! Reductions of blocks whose loops are bound to threads in the text of a program.
//!
//! ```text
//! for k in T.thread_binding(16, thread="threadIdx.x"):      # allreduce=B.k:threadIdx.x
//!     with T.sblock("B"):                                    for k in range(16):
//!         vi, vk = T.axis.remap("SR", [i, k])          ->        with T.sblock("B"):
//!         ...                                                        ...
//! ```

use std::convert::Infallible;

use tilewright_ir::visit::Rewrite;
use tilewright_ir::{For, ForKind, PrimFunc, ScheduleStep, Stmt, StmtKind, THREAD_ALLREDUCE, ThreadTag};

use super::loops::reduced_by;
use super::tree::block_names;

/// Returns the program in which each loop over threads that counts a reduced axis runs in order, and asks for the step `allreduce`, as after
/// [`bind`](super::BlockSchedule::bind). In a program with blocks such a loop is no race: TVM's `LowerCrossThreadReduction` lets the threads combine their
/// values, and that is what the step does.
pub(crate) fn reduced_in_order(func: &PrimFunc) -> PrimFunc {
    let mut loops = ReducedLoops { steps: Vec::new() };
    let Ok(body) = loops.stmt(&func.body);
    let mut after = PrimFunc { body, ..func.clone() };
    after.attrs.schedule.extend(loops.steps);
    after
}

/// Finds loops over threads that count a reduced axis.
struct ReducedLoops {
    steps: Vec<ScheduleStep>,
}

impl Rewrite for ReducedLoops {
    type Error = Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        let StmtKind::For(run) = &stmt.kind else { return self.stmt_children(stmt) };
        let ForKind::ThreadBinding(tag @ ThreadTag::Thread(_)) = run.kind else { return self.stmt_children(stmt) };
        // Another block in the loop would read a partial result.
        let is_alone = block_names(&run.body).len() == 1 && !run.body.has_attribute(THREAD_ALLREDUCE);
        let buffer = reduced_by(run).filter(|_| run.extent.as_const_int().is_some() && is_alone);
        let Some(buffer) = buffer else { return self.stmt_children(stmt) };
        let argument = format!("{buffer}.{}:{tag}", run.var);
        self.steps.push(ScheduleStep { primitive: "allreduce".to_owned(), argument, span: stmt.span });
        let body = self.stmt(&run.body)?;
        let run = For { kind: ForKind::Serial, body, ..For::clone(run) };
        Ok(Stmt::new(StmtKind::For(run.into())).at(stmt.span))
    }
}

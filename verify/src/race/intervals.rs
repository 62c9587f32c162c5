//! What the threads of a group may do at the same time: the intervals between barriers.
//!
//! Two threads of a group run at the same time what is not separated by a barrier:
//!
//! ```text
//! for tx in 8 (threadIdx.x):
//!     for k in n:
//!         S[tx] = A[k, tx]              P         P and P     in the same round
//!         barrier                                 Q and Q     in the same round
//!         acc[0] = acc[0] + S[7 - tx]   Q         Q and P     of the next round: no barrier is at the end of the loop
//! ```
//!
//! A meeting of two phases is written as a program without barriers, in which the phases stand one behind the other in the loops over
//! threads: a race in it is one between the two phases. The loops around both phases are shared, because all threads take them
//! in the same way, and other loops have any values. If a barrier is in each round of a loop, the second phase is one
//! round ahead; if not, it is any number of rounds ahead.

use std::sync::Arc;

use tilewright_ir::phases::{GroupStmt, Way, group_of};
use tilewright_ir::visit::Substitution;
use tilewright_ir::{Buffer, Diagnostic, Expr, For, Stmt, StmtKind, Var, sabotage};

/// Two phases that threads may run at the same time, as a statement without barriers.
pub(super) struct Meeting {
    /// Both phases, in the loops over threads.
    pub(super) both: Stmt,
    /// The first phase alone, which `both` begins with. `None` if the phase meets itself.
    pub(super) first: Option<Stmt>,
    /// Whether the two phases do meet in each iteration of `both`. If not, a race in it says nothing about the program.
    pub(super) is_exact: bool,
}

/// All meetings in a group; `nest` is its outermost loop over threads.
///
/// # Errors
/// Those of [`group_of`], and loops over threads or memory whose size is not the same in all phases.
pub(super) fn meetings(nest: &Stmt) -> Result<Vec<Meeting>, Diagnostic> {
    let group = group_of(nest)?;
    let mut walk = Walk::default();
    walk.part(&group);
    walk.places.iter().try_for_each(Place::check)?;
    Ok(walk.met.iter().map(|met| walk.meeting(met)).collect())
}

/// A statement of the group around a phase.
#[derive(Clone)]
enum Around {
    Loop(Arc<For>),
    Branch(Expr, bool),
}

/// A phase and where it is.
struct Place {
    around: Vec<Around>,
    /// The loops over threads and the memory of the thread.
    way: Vec<Way>,
    body: Stmt,
}

/// A phase that is reached without a barrier.
#[derive(Clone, Copy)]
struct Open {
    phase: usize,
    is_exact: bool,
}

/// The phases at the start and at the end of a part of the group, up to the first barrier from there.
#[derive(Default)]
struct Reach {
    starts: Vec<Open>,
    ends: Vec<Open>,
    /// Whether the part may be run without a barrier.
    passes: bool,
    has_barrier: bool,
}

/// The iterations in which two phases meet.
#[derive(Clone, Copy, PartialEq)]
enum Rounds {
    /// The same one of all shared loops.
    Same,
    /// Of the innermost shared loop, the second phase is in the next one.
    Next,
    /// Of the loop inside of the shared ones, any two.
    Any,
}

/// Two phases that meet.
struct Met {
    first: usize,
    second: usize,
    /// The number of statements around both that are in the same iteration.
    n_shared: usize,
    rounds: Rounds,
    is_exact: bool,
}

#[derive(Default)]
struct Walk {
    around: Vec<Around>,
    /// Values of names, which have names before them replaced.
    values: Substitution,
    places: Vec<Place>,
    met: Vec<Met>,
}

impl Walk {
    fn part(&mut self, part: &GroupStmt) -> Reach {
        match part {
            GroupStmt::Phase(phase) => {
                let mut values = self.values.clone();
                let mut way = Vec::new();
                for step in &phase.way {
                    match step {
                        Way::Let(var, value) => values.insert(var, values.apply(value)),
                        Way::Thread(_) | Way::Private(_) | Way::View(_) => way.push(step.clone()),
                    }
                }
                let own = self.places.len();
                self.places.push(Place { around: self.around.clone(), way, body: values.apply_stmt(&phase.body) });
                if !sabotage::on("intervals-forget-own-phase") {
                    self.meet((own, own), self.around.len(), Rounds::Same, true);
                }
                let open = vec![Open { phase: own, is_exact: true }];
                Reach { starts: open.clone(), ends: open, passes: true, has_barrier: false }
            }
            GroupStmt::Barrier(_) => Reach { has_barrier: true, ..Reach::default() },
            GroupStmt::Seq(parts) => self.sequence(parts),
            GroupStmt::Scope(head, bodies) => self.scope(head, bodies),
            GroupStmt::Private { body, .. } => self.part(body),
        }
    }

    fn sequence(&mut self, parts: &[GroupStmt]) -> Reach {
        let mut all = Reach { passes: true, ..Reach::default() };
        for part in parts {
            let next = self.part(part);
            for (end, start) in all.ends.iter().flat_map(|end| next.starts.iter().map(move |start| (*end, *start))) {
                let is_exact = end.is_exact && start.is_exact;
                self.meet((end.phase, start.phase), self.around.len(), Rounds::Same, is_exact);
            }
            if all.passes {
                all.starts.extend(skipping(&next.starts, all.has_barrier));
            }
            let is_kept = next.passes && !sabotage::on("intervals-drop-ends");
            all.ends = if is_kept { skipping(&all.ends, next.has_barrier).collect() } else { Vec::new() };
            all.ends.extend(next.ends);
            all.passes &= next.passes;
            all.has_barrier |= next.has_barrier;
        }
        all
    }

    fn scope(&mut self, head: &Stmt, bodies: &[GroupStmt]) -> Reach {
        match &head.kind {
            StmtKind::For(inner) => self.rounds(inner, bodies),
            StmtKind::If { cond, else_body, .. } => {
                let cond = self.values.apply(cond);
                let mut all = Reach {
                    passes: else_body.is_none() && !sabotage::on("intervals-always-branch"),
                    ..Reach::default()
                };
                for (body, holds) in bodies.iter().zip([true, false]) {
                    let found = self.within(Around::Branch(cond.clone(), holds), body);
                    all.starts.extend(found.starts);
                    all.ends.extend(found.ends);
                    all.passes |= found.passes;
                    all.has_barrier |= found.has_barrier;
                }
                all
            }
            StmtKind::Let { var, value, .. } => {
                let value = self.values.apply(value);
                self.values.insert(var, value);
                self.sequence(bodies)
            }
            StmtKind::Allocate { .. }
            | StmtKind::DeclBuffer { .. }
            | StmtKind::Attr { .. }
            | StmtKind::Seq(_)
            | StmtKind::Store { .. }
            | StmtKind::Evaluate(_)
            | StmtKind::Barrier
            | StmtKind::Assert { .. } => self.sequence(bodies),
        }
    }

    fn within(&mut self, around: Around, body: &GroupStmt) -> Reach {
        self.around.push(around);
        let found = self.part(body);
        self.around.pop();
        found
    }

    /// A loop around barriers: what ends a round meets what starts another one.
    fn rounds(&mut self, inner: &Arc<For>, bodies: &[GroupStmt]) -> Reach {
        let (min, extent) = (self.values.apply(&inner.min), self.values.apply(&inner.extent));
        let is_entered = extent.as_const_int().is_some_and(|extent| extent >= 1);
        let head = For { min, extent, body: Stmt::seq(Vec::new()), ..(**inner).clone() };
        let mut all = Reach { passes: true, ..Reach::default() };
        for body in bodies {
            all = self.within(Around::Loop(Arc::new(head.clone())), body);
        }
        let rounds = if all.passes { Rounds::Any } else { Rounds::Next };
        let pairs = all.ends.iter().flat_map(|end| all.starts.iter().map(move |start| (*end, *start)));
        for (end, start) in pairs.filter(|_| !sabotage::on("race-forgets-next-round")) {
            let is_exact = end.is_exact && start.is_exact && rounds == Rounds::Next;
            self.meet((end.phase, start.phase), self.around.len(), rounds, is_exact);
        }
        // From outside, it is not known which round is reached.
        let [starts, ends] = [&all.starts, &all.ends].map(|open| skipping(open, true).collect());
        Reach {
            starts,
            ends,
            passes: all.passes || !(is_entered || sabotage::on("intervals-always-enter")),
            has_barrier: all.has_barrier,
        }
    }

    fn meet(&mut self, (first, second): (usize, usize), n_shared: usize, rounds: Rounds, is_exact: bool) {
        self.met.push(Met { first, second, n_shared, rounds, is_exact });
    }

    /// The program in which two phases meet.
    fn meeting(&self, met: &Met) -> Meeting {
        let (one, two) = (&self.places[met.first], &self.places[met.second]);
        let is_alone = met.first == met.second && met.rounds == Rounds::Same;
        let n_way = one.way.iter().zip(&two.way).take_while(|(a, b)| is_same_step(a, b)).count();
        let mut shared = one.around[..met.n_shared].to_vec();
        let (mut n_shared, mut later) = (met.n_shared, two.inside(met.n_shared, n_way));
        if met.rounds == Rounds::Next
            && let Some(Around::Loop(inner)) = one.around.get(met.n_shared)
        {
            shared.push(Around::Loop(inner.clone()));
            n_shared += 1;
            let var = Expr::from(&inner.var);
            let one_more = Expr::Int { value: 1, ty: inner.var.dtype().scalar };
            let next = var.clone() + one_more;
            let is_there = next.clone().lt(inner.min.clone() + inner.extent.clone());
            let moved = Substitution::new([&inner.var], [next]).apply_stmt(&two.inside(n_shared, n_way));
            later = Stmt::guarded(is_there, moved);
        }
        let first = one.inside(n_shared, n_way);
        let around = |body: Stmt| nested(&shared, with_way(&one.way[..n_way], body));
        if is_alone {
            return Meeting { both: around(first), first: None, is_exact: met.is_exact };
        }
        let both = around(Stmt::new(StmtKind::Seq(vec![first.clone(), later].into())));
        Meeting { both, first: Some(around(first)), is_exact: met.is_exact }
    }
}

/// The same phases, reached past something; past a barrier that may be left out, they are not reached in each run.
fn skipping(open: &[Open], past_barrier: bool) -> impl Iterator<Item = Open> + '_ {
    open.iter().map(move |open| Open { is_exact: open.is_exact && !past_barrier, ..*open })
}

/// Whether two steps are one, on the ways to two phases.
fn is_same_step(one: &Way, two: &Way) -> bool {
    match (one, two) {
        (Way::Thread(one), Way::Thread(two)) => one.var == two.var,
        (Way::Private(one), Way::Private(two)) | (Way::View(one), Way::View(two)) => one == two,
        (Way::Let(one, _), Way::Let(two, _)) => one == two,
        (Way::Thread(_) | Way::Private(_) | Way::View(_) | Way::Let(..), _) => false,
    }
}

impl Place {
    /// The phase inside of the first statements around it and the first steps of its way.
    fn inside(&self, n_around: usize, n_way: usize) -> Stmt {
        nested(&self.around[n_around..], with_way(&self.way[n_way..], self.body.clone()))
    }

    /// Checks that the sizes of the group, and of all memory that the phase touches, are those of every other phase.
    fn check(&self) -> Result<(), Diagnostic> {
        let mut own: Vec<Var> = Vec::new();
        for around in &self.around {
            if let Around::Loop(inner) = around {
                own.push(inner.var.clone());
            }
        }
        let threads = self.way.iter().filter_map(|step| match step {
            Way::Thread(inner) => Some(inner),
            Way::Private(_) | Way::View(_) | Way::Let(..) => None,
        });
        let depends = |expr: &Expr, vars: &[Var]| expr.vars().iter().any(|var| vars.contains(var));
        for inner in threads {
            if depends(&inner.min, &own) || depends(&inner.extent, &own) {
                let message = format!("the threads of `{}` are not the same in each round of a loop", inner.var);
                return Err(Diagnostic::error("barrier-divergent", self.body.span, message));
            }
            own.push(inner.var.clone());
        }
        let fault = self.touched().into_iter().find(|buffer| {
            let strides = buffer.strides.iter().flatten();
            buffer.shape.iter().chain(strides).chain([&buffer.elem_offset]).any(|size| depends(size, &own))
        });
        fault.map_or(Ok(()), |buffer| {
            let message = format!("the size of `{buffer}` is not the same in all phases of a group");
            Err(Diagnostic::error("barrier-memory", self.body.span, message))
        })
    }

    /// The buffers that the phase accesses.
    fn touched(&self) -> Vec<Buffer> {
        let mut found = Vec::new();
        self.body.walk(&mut |stmt| {
            if let StmtKind::Store { buffer, .. } = &stmt.kind {
                found.push(buffer.clone());
            }
            for expr in stmt.exprs() {
                expr.walk(&mut |part| {
                    if let Expr::Load { buffer, .. } = part {
                        found.push(buffer.clone());
                    }
                });
            }
        });
        found
    }
}

/// A statement inside of statements of the group.
fn nested(around: &[Around], body: Stmt) -> Stmt {
    around.iter().rev().fold(body, |body, around| match around {
        Around::Loop(inner) => Stmt::new(StmtKind::For(Arc::new(For { body, ..(**inner).clone() }))),
        Around::Branch(cond, true) => Stmt::guarded(cond.clone(), body),
        Around::Branch(cond, false) => Stmt::new(StmtKind::If {
            cond: cond.clone(),
            then_body: Arc::new(Stmt::seq(Vec::new())),
            else_body: Some(Arc::new(body)),
        }),
    })
}

/// A statement inside of loops over threads and memory of the thread.
fn with_way(way: &[Way], body: Stmt) -> Stmt {
    way.iter().rev().fold(body, |body, step| match step {
        Way::Thread(inner) => Stmt::new(StmtKind::For(Arc::new(For { body, ..(**inner).clone() }))),
        Way::Private(buffer) => Stmt::new(StmtKind::Allocate { buffer: buffer.clone(), body: Arc::new(body) }),
        Way::View(buffer) => Stmt::new(StmtKind::DeclBuffer { buffer: buffer.clone(), body: Arc::new(body) }),
        Way::Let(var, value) => {
            Stmt::new(StmtKind::Let { var: var.clone(), value: value.clone(), body: Arc::new(body) })
        }
    })
}

//! When the memory that a function allocates is in use.
//!
//! ```text
//! t = alloc                          position 0
//! for i in range(5):                 1 .. 3
//!     u = alloc                      position 2
//!     u[i] = t[i]                    position 3
//! ```
//!
//! Statements are numbered in program order. Memory is in use from its first use to its last one. A use in a loop counts for all of the
//! loop, unless the memory is allocated in that loop: then it is new in each iteration. So `t` is used in 1 .. 3, and `u` at 3.

use std::collections::HashMap;

use tilewright_ir::{AttrValue, Buffer, Expr, For, PrimFunc, Stmt, StmtKind, Var};

/// Statements in which memory is used: the numbers of the first and the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::passes) struct Piece {
    pub(in crate::passes) begin: usize,
    pub(in crate::passes) end: usize,
}

/// An allocation, and when its memory is in use.
#[derive(Clone, Debug)]
pub(in crate::passes) struct Lifetime<'f> {
    /// The buffer that owns the memory.
    pub(in crate::passes) buffer: &'f Buffer,
    /// The innermost concurrent loop around the allocation, whose iterations have memory of their own.
    pub(in crate::passes) attach: Option<&'f Var>,
    /// The variables that are bound between that loop and the allocation.
    pub(in crate::passes) bound: Vec<&'f Var>,
    /// When the memory is used, in program order; a loop counts as a whole.
    pub(in crate::passes) pieces: Vec<Piece>,
}

impl Lifetime<'_> {
    /// From the first use to the last one. `None` if there is none.
    pub(in crate::passes) fn whole(&self) -> Option<Piece> {
        let begin = self.pieces.iter().map(|piece| piece.begin).min()?;
        let end = self.pieces.iter().map(|piece| piece.end).max()?;
        Some(Piece { begin, end })
    }
}

/// The allocations of a function in program order, and its statements by their numbers.
#[derive(Clone, Debug, Default)]
pub(in crate::passes) struct Lifetimes<'f> {
    pub(in crate::passes) allocations: Vec<Lifetime<'f>>,
    pub(in crate::passes) statements: Vec<&'f Stmt>,
    /// Data variables that attributes mention.
    pub(in crate::passes) mentioned: Vec<&'f Var>,
}

/// When the memory of each allocation is in use.
pub(in crate::passes) fn lifetimes(func: &PrimFunc) -> Lifetimes<'_> {
    let mut walk = Walk {
        found: Lifetimes::default(),
        loops: Vec::new(),
        around: Vec::new(),
        uses: HashMap::new(),
        depths: Vec::new(),
    };
    walk.stmt(&func.body);
    let Walk { mut found, loops, uses, depths, .. } = walk;
    for (allocation, depth) in found.allocations.iter_mut().zip(depths) {
        for used in uses.get(&allocation.buffer.data).into_iter().flatten() {
            let piece = used.loops.get(depth).map_or(used.piece, |outermost| loops[*outermost]);
            if allocation.pieces.last() != Some(&piece) {
                allocation.pieces.push(piece);
            }
        }
    }
    found
}

/// A use of memory, and the loops around it by number.
struct Use {
    piece: Piece,
    loops: Vec<usize>,
}

/// What stands around a statement.
enum Around<'f> {
    Loop(&'f For, usize),
    Let(&'f Var),
}

struct Walk<'f> {
    found: Lifetimes<'f>,
    /// The statements of each loop.
    loops: Vec<Piece>,
    around: Vec<Around<'f>>,
    uses: HashMap<&'f Var, Vec<Use>>,
    /// The number of loops around each allocation.
    depths: Vec<usize>,
}

impl<'f> Walk<'f> {
    fn stmt(&mut self, stmt: &'f Stmt) {
        let here = self.found.statements.len();
        self.found.statements.push(stmt);
        for expr in stmt.exprs() {
            for data in read(expr) {
                self.used(data, Piece { begin: here, end: here });
            }
        }
        match &stmt.kind {
            StmtKind::For(inner) => {
                let number = self.loops.len();
                self.loops.push(Piece { begin: here, end: here });
                self.inside(Around::Loop(inner, number), &inner.body);
                self.loops[number].end = self.last();
            }
            StmtKind::Store { buffer, .. } => self.used(&buffer.data, Piece { begin: here, end: here }),
            StmtKind::Allocate { buffer, body } => {
                self.allocated(buffer);
                self.stmt(body);
            }
            StmtKind::Let { var, value, body } => {
                self.inside(Around::Let(var), body);
                // The name stands for what was loaded, as long as it is known.
                for data in read(value) {
                    self.used(data, Piece { begin: here, end: self.last() });
                }
            }
            StmtKind::Attr { node, value, body, .. } => {
                self.found.mentioned.extend([node, value].into_iter().filter_map(mentioned));
                self.stmt(body);
            }
            StmtKind::DeclBuffer { .. } | StmtKind::If { .. } | StmtKind::Seq(_) => {
                stmt.children().for_each(|child| self.stmt(child));
            }
            StmtKind::Evaluate(_) | StmtKind::Barrier | StmtKind::Assert { .. } => {}
        }
    }

    fn inside(&mut self, around: Around<'f>, body: &'f Stmt) {
        self.around.push(around);
        self.stmt(body);
        self.around.pop();
    }

    /// The number of the statement that was looked at last.
    fn last(&self) -> usize {
        self.found.statements.len() - 1
    }

    fn used(&mut self, data: &'f Var, piece: Piece) {
        let number = |around: &Around<'_>| match around {
            Around::Loop(_, number) => Some(*number),
            Around::Let(_) => None,
        };
        let loops = self.around.iter().filter_map(number).collect();
        self.uses.entry(data).or_default().push(Use { piece, loops });
    }

    fn allocated(&mut self, buffer: &'f Buffer) {
        let is_concurrent =
            |around: &Around<'_>| matches!(around, Around::Loop(inner, _) if inner.kind.is_concurrent());
        let inner = self.around.iter().rposition(is_concurrent);
        let bound = self.around.iter().skip(inner.map_or(0, |inner| inner + 1)).map(Around::var).collect();
        let attach = inner.map(|inner| self.around[inner].var());
        let n_loops = self.around.iter().filter(|around| matches!(around, Around::Loop(..))).count();
        self.depths.push(n_loops);
        self.found.allocations.push(Lifetime { buffer, attach, bound, pieces: Vec::new() });
    }
}

impl<'f> Around<'f> {
    fn var(&self) -> &'f Var {
        match self {
            Self::Loop(inner, _) => &inner.var,
            Self::Let(var) => var,
        }
    }
}

/// The memory that an expression reads.
fn read(expr: &Expr) -> Vec<&Var> {
    let mut found = Vec::new();
    expr.walk(&mut |part| {
        if let Expr::Load { buffer, .. } = part {
            found.push(&buffer.data);
        }
    });
    found
}

/// The variable that an attribute is about.
fn mentioned(value: &AttrValue) -> Option<&Var> {
    match value {
        AttrValue::Var(var) | AttrValue::Expr(Expr::Var(var)) => Some(var),
        AttrValue::Bool(_) | AttrValue::Int(_) | AttrValue::Float(_) | AttrValue::Str(_) | AttrValue::Expr(_) => None,
        AttrValue::List(_) | AttrValue::Dict(_) | AttrValue::Block(_) => None,
    }
}

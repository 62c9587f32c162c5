//! Small random changes of a program: what a mistake in a compiler could do.

use tilewright::harness::inputs::Numbers;
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{BinaryOp, Buffer, Expr, For, PrimFunc, Stmt, StmtKind};

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    /// An index of an access is one larger.
    Index,
    /// The first iteration of a loop is missing, or there is one more in front.
    First,
    /// The last iteration of a loop is missing, or there is one more behind.
    Last,
    /// Another operator.
    Operator,
    /// A condition is left out.
    Guard,
    /// Two statements are exchanged.
    Order,
    /// Another constant.
    Constant,
    /// Another buffer is read.
    Buffer,
}

impl Change {
    pub(crate) const ALL: [Self; 8] =
        [Self::Index, Self::First, Self::Last, Self::Operator, Self::Guard, Self::Order, Self::Constant, Self::Buffer];

    /// What it does, for the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Index => "an index one off",
            Self::First => "a loop that begins one off",
            Self::Last => "a loop that ends one off",
            Self::Operator => "another operator",
            Self::Guard => "a condition left out",
            Self::Order => "two statements exchanged",
            Self::Constant => "another constant",
            Self::Buffer => "another buffer read",
        }
    }
}

/// A program with one change at a place that the numbers choose; `None` if nothing can be changed.
pub(crate) fn mutant(func: &PrimFunc, numbers: &mut Numbers) -> Option<(Change, PrimFunc)> {
    let mut count = Mutator { buffers: func.buffers(), target: None, seen: [0; Change::ALL.len()], delta: 0 };
    let _unchanged = count.stmt(&func.body);
    let possible: Vec<Change> = Change::ALL.into_iter().filter(|change| count.seen[*change as usize] > 0).collect();
    let mut below = |most: usize| usize::try_from(numbers.next() % u64::try_from(most).unwrap()).unwrap();
    let change = *possible.get(below(possible.len().max(1)))?;
    let target = Some((change, below(count.seen[change as usize])));
    let delta = if below(2) == 0 { 1 } else { -1 };
    let mut mutator = Mutator { target, seen: [0; Change::ALL.len()], delta, ..count };
    let Ok(body) = mutator.stmt(&func.body);
    Some((change, PrimFunc { body, ..func.clone() }))
}

/// Counts the places for each kind of change, and changes one of them.
struct Mutator {
    buffers: Vec<Buffer>,
    target: Option<(Change, usize)>,
    seen: [usize; Change::ALL.len()],
    /// 1 or -1.
    delta: i64,
}

impl Mutator {
    /// Whether the next place for this kind of change is the one to change.
    fn is_here(&mut self, change: Change) -> bool {
        let seen = &mut self.seen[change as usize];
        *seen += 1;
        self.target == Some((change, *seen - 1))
    }

    fn off_by_one(&self, expr: &Expr) -> Expr {
        expr.clone() + Expr::Int { value: self.delta.into(), ty: expr.dtype().scalar }
    }

    /// Indices, one of which may be one off. Vectors of indices stay as they are.
    fn indices(&mut self, indices: &[Expr]) -> Vec<Expr> {
        let one = |index: &Expr| {
            let is_off = index.dtype().is_scalar() && self.is_here(Change::Index);
            if is_off { self.off_by_one(index) } else { index.clone() }
        };
        indices.iter().map(one).collect()
    }

    /// Another buffer of the same type and rank.
    fn other(&self, buffer: &Buffer) -> Option<Buffer> {
        let fits = |other: &&Buffer| *other != buffer && other.dtype == buffer.dtype && other.rank() == buffer.rank();
        self.buffers.iter().find(fits).cloned()
    }
}

/// An operator that takes the same types.
fn other_operator(op: BinaryOp) -> Option<BinaryOp> {
    use BinaryOp as Op;
    match op {
        Op::Add => Some(Op::Sub),
        Op::Sub | Op::Mul => Some(Op::Add),
        Op::Div => Some(Op::Mul),
        Op::FloorDiv => Some(Op::FloorMod),
        Op::FloorMod => Some(Op::FloorDiv),
        Op::Min => Some(Op::Max),
        Op::Max => Some(Op::Min),
        Op::Eq => Some(Op::Ne),
        Op::Ne => Some(Op::Eq),
        Op::Lt => Some(Op::Le),
        Op::Le => Some(Op::Lt),
        Op::Gt => Some(Op::Ge),
        Op::Ge => Some(Op::Gt),
        Op::And => Some(Op::Or),
        Op::Or => Some(Op::And),
        Op::Shl => Some(Op::Shr),
        Op::TruncDiv | Op::TruncMod | Op::BitAnd | Op::BitOr | Op::BitXor | Op::Shr => None,
    }
}

impl Rewrite for Mutator {
    type Error = std::convert::Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Self::Error> {
        match expr {
            Expr::Int { value, ty } if ty.is_integer() && self.is_here(Change::Constant) => {
                Ok(Expr::Int { value: value + i128::from(self.delta), ty: *ty })
            }
            Expr::Float { value, ty } if self.is_here(Change::Constant) => {
                Ok(Expr::Float { value: value + if self.delta > 0 { 1.0 } else { -1.0 }, ty: *ty })
            }
            Expr::Binary(op, a, b) => match other_operator(*op) {
                Some(other) if self.is_here(Change::Operator) => {
                    Ok(Expr::binary(other, Expr::clone(a), Expr::clone(b)))
                }
                _ => self.expr_children(expr),
            },
            Expr::Load { buffer, indices } => {
                let found = self.other(buffer).filter(|_| self.is_here(Change::Buffer));
                let indices = self.indices(indices);
                let load = Expr::Load { buffer: found.unwrap_or_else(|| buffer.clone()), indices: indices.into() };
                self.expr_children(&load)
            }
            _ => self.expr_children(expr),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Self::Error> {
        let changed = match &stmt.kind {
            StmtKind::For(inner) if self.is_here(Change::First) => {
                let (min, extent) = (self.off_by_one(&inner.min), inner.extent.clone() - Expr::int(self.delta));
                Some(StmtKind::For(For { min, extent, ..For::clone(inner) }.into()))
            }
            StmtKind::For(inner) if self.is_here(Change::Last) => {
                Some(StmtKind::For(For { extent: self.off_by_one(&inner.extent), ..For::clone(inner) }.into()))
            }
            StmtKind::If { then_body, .. } if self.is_here(Change::Guard) => return self.stmt(then_body),
            StmtKind::Seq(stmts) if stmts.len() > 1 && self.is_here(Change::Order) => {
                let mut stmts = stmts.to_vec();
                let at = if self.delta > 0 { 0 } else { stmts.len() - 2 };
                stmts.swap(at, at + 1);
                Some(StmtKind::Seq(stmts.into()))
            }
            StmtKind::Store { buffer, indices, value } => {
                let indices = self.indices(indices);
                Some(StmtKind::Store { buffer: buffer.clone(), indices, value: value.clone() })
            }
            _ => None,
        };
        match changed {
            Some(kind) => self.stmt_children(&Stmt { kind, span: stmt.span }),
            None => self.stmt_children(stmt),
        }
    }
}

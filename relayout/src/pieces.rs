//! Pieces of the last loops of a move: a piece that lies inside of all bounds is moved as a whole, one that is cut element by element.

use std::sync::Arc;

use tilewright_ir::{Expr, ForKind, Stmt, StmtKind, Var};

use crate::device::{Body, Level};
use crate::program;
use crate::strategy::Bound;

/// One of the last loops of a strategy, cut into pieces.
pub(crate) struct Side {
    pub(crate) at: usize,
    /// Elements of a piece.
    size: u64,
    /// Whether the last piece ends where the loop does.
    is_exact: bool,
    /// Counts pieces. `None` if there is one.
    count: Option<Level>,
}

/// The last loops of a strategy in pieces, inside of the others.
pub(crate) struct Pieces<'a> {
    pub(crate) body: &'a Body<'a>,
    /// The values of the loops outside.
    pub(crate) outer: Vec<Expr>,
    pub(crate) sides: Vec<Side>,
}

impl Side {
    /// The loop at a position of the strategy in pieces of `size` elements.
    pub(crate) fn new(body: &Body<'_>, at: usize, (size, is_exact): (u64, bool), suffix: &str) -> Self {
        let extent = body.extent(at);
        let count = match extent.as_const_int() {
            Some(_) => body.sizes.constant(body.strategy.loops[at].extent.div_ceil(size)),
            None => (extent + body.sizes.constant(size - 1)).floor_div(body.sizes.constant(size)),
        };
        let count = (count.as_const_int() != Some(1)).then(|| (body.var(at, suffix), count));
        Self { at, size, is_exact, count }
    }

    /// The loop over pieces.
    pub(crate) fn level(&self) -> Option<Level> {
        self.count.clone()
    }

    /// Whether a piece is the whole loop.
    pub(crate) fn is_one(&self) -> bool {
        self.count.is_none()
    }

    /// The number of pieces, of a sample if the extent is symbolic.
    pub(crate) fn pieces(&self, body: &Body<'_>) -> u64 {
        body.strategy.loops[self.at].extent.div_ceil(self.size)
    }

    /// The value of the loop at a place in a piece.
    fn value(&self, body: &Body<'_>, within: Expr) -> Expr {
        match &self.count {
            None => within,
            Some((piece, _)) => body.times(piece, self.size) + within,
        }
    }
}

impl Pieces<'_> {
    /// The values of all loops at a place in a piece.
    pub(crate) fn at(&self, within: Vec<Expr>) -> Vec<Expr> {
        let inner = self.sides.iter().zip(within).map(|(side, within)| side.value(self.body, within));
        self.outer.iter().cloned().chain(inner).collect()
    }

    /// The statement that moves a whole piece where one is inside of all bounds, and what is done elsewhere.
    pub(crate) fn moved(&self, whole: Stmt) -> Stmt {
        let Body { strategy, sizes, .. } = *self.body;
        let first = self.outer.len();
        let is_inside = |bound: &Bound| bound.terms.iter().any(|(term, _)| *term >= first);
        let ends = self.ends();
        let cutting = strategy.bounds.iter().chain(&strategy.cuts).filter(|bound| is_inside(bound));
        let mut bounds: Vec<&Bound> = Vec::new();
        for bound in ends.iter().chain(cutting) {
            if !bounds.contains(&bound) {
                bounds.push(bound);
            }
        }
        let last = self.at(self.sides.iter().map(|side| sizes.constant(side.size - 1)).collect());
        let piece = match self.all(&bounds, &last) {
            None => whole,
            Some(cond) => {
                let each = self.each(&ends, |values| {
                    let both = (self.body.moved(values), self.body.filled(values));
                    Some(program::guarded((strategy, sizes), is_inside, values, both))
                });
                Stmt::new(StmtKind::If { cond, then_body: Arc::new(whole), else_body: each.map(Arc::new) })
            }
        };
        // Slots of a piece that an outer bound leaves out.
        let cuts = ends.iter().chain(strategy.cuts.iter().filter(|cut| is_inside(cut))).cloned().collect::<Vec<_>>();
        let spare = self.each(&cuts, |values| self.body.filled(values));
        program::guarded((strategy, sizes), |bound| !is_inside(bound), &self.outer, (piece, spare))
    }

    /// The ends of loops at which the last piece is ragged.
    fn ends(&self) -> Vec<Bound> {
        let ragged = self.sides.iter().filter(|side| !side.is_exact);
        let extent = |at: usize| self.body.strategy.loops[at].extent;
        ragged.map(|side| Bound { limit: extent(side.at), terms: vec![(side.at, 1)] }).collect()
    }

    /// Loops over the elements of a piece around a statement, where bounds hold.
    pub(crate) fn each(&self, bounds: &[Bound], store: impl Fn(&[Expr]) -> Option<Stmt>) -> Option<Stmt> {
        let vars: Vec<Var> = self.sides.iter().map(|side| self.body.var(side.at, "")).collect();
        let values = self.at(vars.iter().map(Expr::from).collect());
        let store = store(&values)?;
        let store = match self.all(&bounds.iter().collect::<Vec<_>>(), &values) {
            Some(condition) => Stmt::guarded(condition, store),
            None => store,
        };
        let around = |body, (side, var): (&Side, &Var)| self.body.around(var, side.size, ForKind::Serial, body);
        Some(self.sides.iter().zip(&vars).rev().fold(store, around))
    }

    /// That bounds hold for values of all loops. `None` if there are none.
    fn all(&self, bounds: &[&Bound], values: &[Expr]) -> Option<Expr> {
        let Body { strategy, sizes, .. } = *self.body;
        let holds = bounds.iter().map(|bound| program::holds(bound, &strategy.loops, values, sizes));
        holds.reduce(Expr::and)
    }
}

//! Conditions on a texel, some of all its lanes and some of one: gathered by `lower_texture`, the right program is proved, and
//! each broken twin is refuted.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::convert::Infallible;

use tilewright::passes::{Rewritten, lower_texture};
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{BinaryOp, Expr, PrimFunc, SharedExpr, Stmt, StmtKind};
use tilewright_verify::{Config, Judge, ReasonKind, Report, Verdict};

/// A copy of 18 channels into texels, under conditions that are written in some way.
fn program(conditions: &[&str]) -> PrimFunc {
    let mut text = "from tvm.script import tir as T

@T.prim_func
def main(X: T.Buffer((3, 7, 18), \"int8\"), Y: T.Buffer((3, 7, 18), \"int8\")):
    Xt = T.alloc_buffer((3, 7, 5, 4), \"int8\", scope=\"texture:nhwc\")
    for a, b, k, e in T.grid(4, 7, 5, 4):
"
    .to_owned();
    let mut indent = "        ".to_owned();
    for condition in conditions {
        text += &[&indent, "if ", condition, ":\n"].concat();
        indent += "    ";
    }
    text += &indent;
    text += "Xt[a, b, k, e] = X[a, b, k * 4 + e]
    for a, b, c in T.grid(3, 7, 18):
        Y[a, b, c] = Xt[a, b, c // 4, c % 4]
";
    tilewright_script::read_module(&text).unwrap().funcs.remove(0)
}

const WAYS: [&[&str]; 4] = [
    &["a < 3 and k * 4 + e < 18"],
    &["k * 4 + e < 18 and a < 3"],
    &["k * 4 + e < 18", "a < 3"],
    &["a < 3", "k * 4 + e < 18"],
];

/// What is done to the program after.
#[derive(Clone, Copy, Debug)]
enum Change {
    Nothing,
    /// A bound becomes another number.
    Bound(i128, i128),
    /// The condition of all lanes is gone.
    Unguarded,
    /// The lanes without a value are loaded too.
    Unchosen,
}

impl Rewrite for Change {
    type Error = Infallible;

    fn expr(&mut self, expr: &Expr) -> Result<Expr, Infallible> {
        match (*self, expr) {
            (Self::Bound(from, to), Expr::Binary(BinaryOp::Lt, a, b)) => {
                let bound = |value: &Expr| value.as_const_int() == Some(from);
                let changed = || Expr::int(i64::try_from(to).unwrap());
                let b = match &**b {
                    Expr::Broadcast { value, lanes } if bound(value) => {
                        Expr::Broadcast { value: SharedExpr::new(changed()), lanes: *lanes }
                    }
                    b if bound(b) => changed(),
                    b => b.clone(),
                };
                Ok(Expr::binary(BinaryOp::Lt, (**a).clone(), b))
            }
            (Self::Unchosen, Expr::IfThenElse(_, value, _)) => Ok((**value).clone()),
            _ => self.expr_children(expr),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Infallible> {
        match (&*self, &stmt.kind) {
            (Self::Unguarded, StmtKind::If { then_body, .. }) => Ok((**then_body).clone()),
            _ => self.stmt_children(stmt),
        }
    }
}

/// The worst verdict on the pass, its result changed.
fn verdict(conditions: &[&str], mut change: Change) -> Verdict {
    let before = program(conditions);
    let Rewritten { mut func, evidence, .. } = lower_texture(&before).unwrap();
    let Ok(body) = change.stmt(&func.body);
    func.body = body;
    tilewright_ir::validate(&func).unwrap();
    let reports =
        Judge::new(Config::default(), tilewright_search::strategies()).unwrap().check_pass(&before, &func, &evidence);
    for report in reports.iter().filter(|report| !report.verdict.is_proved()) {
        eprintln!("{:11} {:50} {}", report.obligation, report.subject, report.verdict);
    }
    let differs = |report: &&Report| report.verdict.reason().is_some_and(|reason| reason.kind() == ReasonKind::Differs);
    let open = reports.iter().find(|report| !report.verdict.is_proved());
    reports.iter().find(differs).or(open).unwrap_or(&reports[0]).verdict.clone()
}

#[test]
fn conditions_are_gathered_in_whatever_order_they_are_written() {
    for conditions in WAYS {
        assert!(verdict(conditions, Change::Nothing).is_proved(), "{conditions:?}");
    }
}

#[test]
fn a_condition_that_became_another_one_is_seen() {
    let changes = [
        Change::Bound(18, 19),
        Change::Bound(18, 17),
        Change::Bound(3, 2),
        Change::Bound(3, 4),
        Change::Unguarded,
        Change::Unchosen,
    ];
    for conditions in WAYS {
        for change in changes {
            let found = verdict(conditions, change);
            let differs = found.reason().is_some_and(|reason| reason.kind() == ReasonKind::Differs);
            assert!(differs, "{conditions:?} {change:?}: {found}");
        }
    }
}

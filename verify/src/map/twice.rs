//! Two deciders: what a cheap method proves of a map is put to Z3 as well.
//!
//! Injectivity and bounds of the maps of every pass are decided twice, because on these two everything else rests. Z3 gets a
//! small budget; if it gives no answer within it, the cheap proof stands and the report says so.
//!
//! ```text
//! enumeration of 15 points, and z3 (2 goals)
//! enumeration of 4096 points; beyond z3's budget for a second decision
//! ```
//!
//! If the two disagree, that is an internal error and never *proved*.

use super::case::{Case, contradiction, with_budget};
use super::{bounds, injective};
use crate::judge::Decision;
use crate::method::Method;
use crate::obligation::Obligation;
use crate::verdict::Verdict;

/// Z3's resource count for a second decision: a few milliseconds.
pub(crate) const BUDGET: u32 = 300_000;

/// The decision of a case, and Z3's where it took no part in a proof of bounds or injectivity.
pub(super) fn confirmed(case: &Case<'_>, decision: Decision) -> Decision {
    let by_z3 = match case.obligation {
        Obligation::Bounds => bounds::by_z3,
        Obligation::Injective => injective::by_z3,
        _ => return decision,
    };
    let (Verdict::Proved(grounds), method) = decision else { return decision };
    // Lemmas were shown by Z3, too.
    if method.asks_solver() || method.has_lemmas() {
        return (Verdict::Proved(grounds), method);
    }
    match with_budget(case, BUDGET, by_z3) {
        Some((Verdict::Refuted(_), other)) => contradiction(method, other),
        Some((Verdict::Unknown(reason), other)) if reason.is_internal() => (Verdict::Unknown(reason), other),
        Some((Verdict::Proved(more), other)) => {
            (Verdict::Proved(grounds.and(more)), Method::Twice(Box::new(method), Some(Box::new(other))))
        }
        _ => (Verdict::Proved(grounds), Method::Twice(Box::new(method), None)),
    }
}

#[cfg(test)]
mod tests {
    use tilewright_ir::{Expr, IndexMap, Var};

    use super::super::case::Shared;
    use super::*;
    use crate::door;
    use crate::judge::{Config, Judge};
    use crate::map::MapClaim;

    /// What becomes of a proof of `lambda i: [i * 5 % 17]` on `(17)` into `(room)`.
    fn of(room: i64, obligation: Obligation) -> Decision {
        let i = Var::index("i");
        let output = (Expr::from(&i) * Expr::int(5)).floor_mod(Expr::int(17));
        let map = IndexMap::new(vec![i], vec![Expr::int(17)], vec![output], vec![]).unwrap();
        let shape = [Expr::int(room)];
        let claim = MapClaim::new(&map, &shape);
        let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
        let shared = Shared::new(claim);
        let case = Case { judge: &judge, claim, obligation, loops: bounds::OBLIGATION.1, shared: &shared };
        confirmed(&case, (door::inspected(), Method::Inspection("said")))
    }

    #[test]
    fn both_deciders_are_named() {
        for obligation in [Obligation::Bounds, Obligation::Injective] {
            let (verdict, method) = of(17, obligation);
            assert!(verdict.is_proved() && method.asks_solver(), "{method}");
            assert!(method.to_string().starts_with("said, and z3"), "{method}");
        }
        let (_, other) = of(17, Obligation::Overflow);
        assert_eq!(other.to_string(), "said");
    }

    #[test]
    fn a_false_proof_is_an_internal_error() {
        let (verdict, _) = of(16, Obligation::Bounds);
        assert!(verdict.reason().is_some_and(crate::Reason::is_internal), "{verdict}");
    }
}

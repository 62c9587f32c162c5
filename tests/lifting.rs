//! Claims about definitions: wrong ones prove nothing, whatever they say.
//!
//! For each pair of `tests/equivalence/reductions.txt` and `sums.txt` the claim that proves it is bent in every way: each obligation is violated by
//! itself. A bent claim proves neither the pair nor a broken twin, and the right claim proves no twin.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

#[path = "equivalence/pairs.rs"]
mod pairs;

use std::time::Duration;

use pairs::{Case, cases, is_proved, program, read};
use tilewright::pipeline::pair;
use tilewright_ir::{BinaryOp, Comparison, Definition, Evidence, Expr, Lifting, PrimFunc, ReduceOp, StageBody};
use tilewright_verify::definitions::with_kept;
use tilewright_verify::{Config, Judge, Side};

/// The claim that proves a pair, with the function after in terms of the one before.
fn claimed(before: &PrimFunc, after: &PrimFunc) -> (PrimFunc, Evidence, Lifting) {
    let (after, evidence) = pair::definitions_claim(before, after, true).unwrap();
    let Comparison::Definitions(claim) = evidence.comparison.clone() else { panic!("no definitions") };
    (after, evidence, *claim)
}

/// A judge that gives up early: what is wrong need not be refuted.
fn judge() -> Judge {
    let budget = Config { timeout: Duration::from_secs(1), rlimit: 400_000, ..Config::default() };
    Judge::new(budget, tilewright_search::strategies()).unwrap()
}

/// Whether the definitions of a claim are proved equal, whatever the programs compute.
fn are_equal(judge: &Judge, (before, after): (&PrimFunc, &PrimFunc), evidence: &Evidence, claim: &Lifting) -> bool {
    let evidence = with_kept(evidence, [&claim.before.kept, &claim.after.kept]);
    let definitions = [&claim.before.definition, &claim.after.definition];
    is_proved(&judge.check_definitions((before, after), definitions, &evidence, &claim.matching))
}

fn proves(judge: &Judge, (before, after): (&PrimFunc, &PrimFunc), evidence: &Evidence, claim: &Lifting) -> bool {
    let comparison = Comparison::Definitions(Box::new(claim.clone()));
    is_proved(&judge.check_pass(before, after, &Evidence { comparison, ..evidence.clone() }))
}

/// A name for what was bent, and the claim.
type Bent = (String, Lifting);

/// The claim with another matching of tensors and summands.
fn matchings(claim: &Lifting) -> Vec<Bent> {
    let mut found: Vec<Bent> = Vec::new();
    let mut add = |what: &str, change: &dyn Fn(&mut Lifting)| {
        let mut other = claim.clone();
        change(&mut other);
        found.push((what.to_owned(), other));
    };
    let pairs = &claim.matching.pairs;
    add("no tensor is compared", &|other| other.matching.pairs.clear());
    for (place, pair) in pairs.iter().enumerate() {
        add("a tensor is not compared", &|other| drop(other.matching.pairs.remove(place)));
        if pair.op.is_some() {
            add("no operator", &|other| other.matching.pairs[place].op = None);
            let wrong = if pair.op == Some(ReduceOp::Prod) { ReduceOp::Min } else { ReduceOp::Prod };
            add("another operator", &|other| other.matching.pairs[place].op = Some(wrong));
        }
        if pair.element.is_some() {
            add("another element", &|other| {
                let value = &mut other.matching.pairs[place].element.as_mut().unwrap()[0];
                *value = value.clone() + Expr::int(1);
            });
        }
        add("a name twice", &|other| {
            let var = other.matching.pairs[place].index[0].clone();
            if let Some(loops) = other.matching.pairs[place].loops[1].iter_mut().find(|loops| !loops.is_empty()) {
                loops[0] = var;
            } else {
                other.matching.pairs[place].index.clear();
            }
        });
        for (store, origins) in pair.summands.stores.iter().enumerate() {
            add("a summand less", &|other| drop(other.matching.pairs[place].summands.stores.remove(store)));
            for (piece, origin) in origins.iter().enumerate() {
                for at in 0..origin.forward.len() {
                    add("another iteration before", &|other| {
                        let origin = &mut other.matching.pairs[place].summands.stores[store][piece];
                        origin.forward[at] = origin.forward[at].clone() + Expr::int(1);
                    });
                }
                for at in 0..origin.back.len() {
                    add("another iteration after", &|other| {
                        let origin = &mut other.matching.pairs[place].summands.stores[store][piece];
                        origin.back[at] = origin.back[at].clone() + Expr::int(1);
                    });
                }
                add("a summand that there is not", &|other| {
                    other.matching.pairs[place].summands.stores[store][piece].before += 7;
                });
                add("a summand of no iteration", &|other| {
                    other.matching.pairs[place].summands.stores[store][piece].when = Some(Expr::bool(false));
                });
            }
        }
    }
    found
}

/// The claim with other definitions.
fn definitions(claim: &Lifting) -> Vec<Bent> {
    let mut found = Vec::new();
    for side in 0..2 {
        let definition = if side == 0 { &claim.before.definition } else { &claim.after.definition };
        for stage in 0..definition.stages.len() {
            for (what, change) in CHANGES {
                let mut other = claim.clone();
                let lifted = if side == 0 { &mut other.before } else { &mut other.after };
                if change(&mut lifted.definition, stage) {
                    found.push((format!("{what} of stage {stage} on side {side}"), other));
                }
            }
        }
        let mut other = claim.clone();
        let lifted = if side == 0 { &mut other.before } else { &mut other.after };
        if lifted.kept.pop().is_some() {
            found.push((format!("what the call found, on side {side}"), other));
        }
    }
    found
}

/// A change of a stage; false if there is no place for it.
type Change = fn(&mut Definition, usize) -> bool;

const CHANGES: [(&str, Change); 4] = [
    ("the condition", |definition, stage| match &mut definition.stages[stage].body {
        StageBody::Reduce { condition, .. } => condition.take().is_some(),
        StageBody::Elementwise(_) => false,
    }),
    ("the start", |definition, stage| match &mut definition.stages[stage].body {
        StageBody::Reduce { init, source, .. } => {
            let ty = source.dtype().scalar;
            let one = if ty.is_float() { Expr::float_of(1.5, ty) } else { Expr::Int { value: 5, ty } };
            *init = Some(one);
            true
        }
        StageBody::Elementwise(_) => false,
    }),
    ("the operator", |definition, stage| match &mut definition.stages[stage].body {
        StageBody::Reduce { op, .. } => {
            *op = if *op == ReduceOp::Min { ReduceOp::Max } else { ReduceOp::Min };
            true
        }
        StageBody::Elementwise(_) => false,
    }),
    ("the value", |definition, stage| {
        match &mut definition.stages[stage].body {
            StageBody::Reduce { source: value, .. } | StageBody::Elementwise(value) => {
                *value = Expr::binary(BinaryOp::Add, value.clone(), value.clone());
            }
        }
        true
    }),
];

#[test]
fn a_bent_claim_proves_nothing() {
    let judge = judge();
    let mut tried = 0;
    for Case { name, before, variants, .. } in cases("reductions").into_iter().chain(cases("sums")) {
        let (before, variant) = (read(&before), &variants[0]);
        let (after, evidence, claim) = claimed(&before, &read(&variant.after()));
        assert!(proves(&judge, (&before, &after), &evidence, &claim), "{name} is not proved");
        for (what, bent) in matchings(&claim) {
            tried += 1;
            let is_proved = are_equal(&judge, (&before, &after), &evidence, &bent);
            assert!(!is_proved, "{name}: {what} is wrong, and it is proved");
        }
        for (what, bent) in definitions(&claim) {
            tried += 1;
            assert!(!proves(&judge, (&before, &after), &evidence, &bent), "{name}: {what} is wrong, and it is proved");
        }
    }
    assert!(tried > 200, "{tried} claims");
}

#[test]
fn a_claim_that_proves_a_pair_proves_no_twin() {
    let judge = judge();
    let mut tried = 0;
    for Case { before, variants, .. } in cases("reductions") {
        let before = read(&before);
        for (name, twin) in variants[0].twins() {
            let Some((after, evidence)) = pair::definitions_claim(&before, &read(&twin), true) else { continue };
            let Comparison::Definitions(own) = evidence.comparison.clone() else { panic!("no definitions") };
            for (what, bent) in [vec![(String::new(), (*own).clone())], matchings(&own)].concat() {
                tried += 1;
                let is_proved = are_equal(&judge, (&before, &after), &evidence, &bent);
                assert!(!is_proved, "{name} is proved {what}");
            }
        }
    }
    assert!(tried > 100, "{tried} claims");
}

#[test]
fn floats_in_another_order_need_the_premise() {
    let params = "a: (n, m), c: (n,)";
    let sum = |index: &str| {
        format!(
            "for i in range(n):\n    C[i] = T.float32(0)\n    for k in range(m):\n        C[i] = C[i] + A[i, {index}]"
        )
    };
    let before = read(&program(params, &sum("k")));
    for (index, is_same) in [("k", true), ("m - 1 - k", false)] {
        let (after, evidence, mut claim) = claimed(&before, &read(&program(params, &sum(index))));
        assert!(proves(&judge(), (&before, &after), &evidence, &claim), "{index}");
        claim.matching.reassociate = false;
        assert_eq!(proves(&judge(), (&before, &after), &evidence, &claim), is_same, "{index}");
    }
}

#[test]
fn what_is_no_reduction_is_not_lifted() {
    let prefix = "C[0] = A[0]\nfor i in range(1, n):\n    C[i] = C[i - 1] * A[i] + C[i - 1]";
    let func = read(&program("a: (n,), c: (n,)", prefix));
    let why = tilewright_compiler::lift::lift(&func, &[func.buffer_map[1].1.clone()], Side::Before).unwrap_err();
    assert!(why.contains("more than once") || why.contains("recurrence"), "{why}");
}

#[test]
fn what_only_one_program_asks_of_its_caller_is_not_overlooked() {
    let params = "a: (n, m) int32, c: (n,) int32, x: T.int32";
    let sum = |start: &str, index: &str, value: &str| {
        format!("{start}for i in range(n):\n    C[i] = 0\n    for k in range(m):\n        C[i] = C[i] + {value}")
            .replace('@', index)
    };
    let before = read(&program(params, &sum("", "k", "A[i, @]")));
    let looked = "t = T.alloc_buffer((1,), \"int32\")\nfor i in range(n):\n    t[0] = C[i]\n";
    for (start, value, is_equal) in [
        ("", "A[i, @]", true),
        ("assert x >= 2, \"\"\n", "A[i, @]", false),
        (looked, "A[i, @]", false),
        ("", "T.if_then_else(i // x > 3, A[i, @], A[i, @])", false),
        ("", "T.if_then_else(i // 2 > 3, A[i, @], A[i, @])", true),
        ("", "A[i, @] + 0 * (i // x)", false),
    ] {
        let after = read(&program(params, &sum(start, "m - 1 - k", value)));
        let found = pair::definitions_claim(&before, &after, false);
        let is_proved =
            found.is_some_and(|(after, evidence)| is_proved(&judge().check_pass(&before, &after, &evidence)));
        assert_eq!(is_proved, is_equal, "{start}{value}");
    }
}

#[test]
fn a_stage_that_may_trap_is_not_read_under_a_condition_only() {
    let params = "a: (n, m) int32, c: (n,) int32";
    let sum = |start: &str, index: &str, value: &str| {
        let value = format!("T.if_then_else(A[i, @] != 0, {value}, 0)").replace('@', index);
        format!("{start}for i in range(n):\n    C[i] = 0\n    for k in range(m):\n        C[i] = C[i] + {value}")
    };
    let stage = |value: &str| {
        format!(
            "t = T.alloc_buffer((n, m), \"int32\")\nfor i in range(n):\n    for j in range(m):\n        t[i, j] = {value}\n"
        )
    };
    for (value, is_equal) in [("5 // A[i, @]", false), ("5 * A[i, @]", true)] {
        let before = read(&program(params, &sum("", "k", value)));
        let after = read(&program(params, &sum(&stage(&value.replace('@', "j")), "m - 1 - k", "t[i, @]")));
        let found = pair::definitions_claim(&before, &after, false);
        let is_proved =
            found.is_some_and(|(after, evidence)| is_proved(&judge().check_pass(&before, &after, &evidence)));
        assert_eq!(is_proved, is_equal, "{value}");
    }
}

#[test]
fn a_select_may_trap_on_the_side_that_is_not_chosen() {
    let params = "a: (n, m) int32, c: (n,) int32, x: T.int32";
    let sum = |index: &str, value: &str| {
        format!("for i in range(n):\n    C[i] = 0\n    for k in range(m):\n        C[i] = C[i] + {value}")
            .replace('@', index)
    };
    let before = |value: &str| read(&program(params, &sum("k", &format!("T.if_then_else(x != 0, {value}, 0)"))));
    for (choice, value, is_equal) in [
        ("if_then_else", "A[i, @] // x", true),
        ("Select", "A[i, @] // x", false),
        ("Select", "T.if_then_else(x > 3, A[i, @] % x, 1)", false),
        ("Select", "A[i, @] >> x", false),
        ("Select", "A[i, @] // 5", true),
        ("Select", "A[i, @] * x", true),
    ] {
        let after = read(&program(params, &sum("m - 1 - k", &format!("T.{choice}(x != 0, {value}, 0)"))));
        let before = before(value);
        let found = pair::definitions_claim(&before, &after, false);
        let is_proved =
            found.is_some_and(|(after, evidence)| is_proved(&judge().check_pass(&before, &after, &evidence)));
        assert_eq!(is_proved, is_equal, "{choice} {value}");
    }
}

//! Wrong correspondences: of programs that differ, no correspondence proves anything; of equal programs, a wrong one leaves it
//! open. The worst that a search for correspondences can cause is *unknown*.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use std::collections::HashSet;

use common::pair::{Pair as Programs, shown};
use common::{judge, program};
use tilewright_ir::{Buffer, BufferChange, BufferClaim, Evidence, IndexMap, PrimFunc};
use tilewright_verify::correspondence::{Correspondence, LoadPair, Pair, Row, Value};
use tilewright_verify::judge::Side;
use tilewright_verify::{Judge, Obligation, Report, correspondence};

fn is_proved(reports: &[Report]) -> bool {
    !reports.is_empty() && reports.iter().all(|report| report.verdict.is_proved())
}

/// All correspondences that differ from this one in one place.
fn variants(along: &Correspondence) -> Vec<Correspondence> {
    rows(&along.body).into_iter().map(|body| Correspondence { body }).collect()
}

/// Each list with one element replaced by each of its variants.
fn one_changed<T: Clone>(list: &[T], vary: impl Fn(&T) -> Vec<T>) -> Vec<Vec<T>> {
    let at = |position: usize| {
        vary(&list[position]).into_iter().map(move |new| {
            let mut list = list.to_vec();
            list[position] = new;
            list
        })
    };
    (0..list.len()).flat_map(at).collect()
}

/// Each list with an element removed, repeated, or exchanged with its neighbour.
fn moved<T: Clone>(list: &[T]) -> Vec<Vec<T>> {
    let mut found = Vec::new();
    for position in 0..list.len() {
        let mut without = list.to_vec();
        let element = without.remove(position);
        found.push(without);
        let mut twice = list.to_vec();
        twice.insert(position, element);
        found.push(twice);
        if position > 0 {
            let mut exchanged = list.to_vec();
            exchanged.swap(position - 1, position);
            found.push(exchanged);
        }
    }
    found
}

fn rows(list: &[Row]) -> Vec<Vec<Row>> {
    let mut found = moved(list);
    found.push(Vec::new());
    for position in 0..=list.len() {
        let mut longer = list.to_vec();
        longer.insert(position, Row::Dropped);
        found.push(longer);
    }
    found.extend(one_changed(list, |row| match row {
        Row::Dropped => vec![Row::Pair(Pair::Unknown), Row::Pair(Pair::CondBefore(Vec::new()))],
        Row::Pair(pair) => {
            let joined = [0, 1, 2].map(|count| Row::Joined(count, pair.clone()));
            [Row::Dropped].into_iter().chain(joined).chain(pairs(pair).into_iter().map(Row::Pair)).collect()
        }
        Row::Joined(count, pair) => {
            let counts = [0, count - 1, count + 1].map(|count| Row::Joined(count, pair.clone()));
            let inner = pairs(pair).into_iter().map(|pair| Row::Joined(*count, pair));
            [Row::Dropped, Row::Pair(pair.clone())].into_iter().chain(counts).chain(inner).collect()
        }
    }));
    found
}

/// Other ways for two statements to correspond: of another kind, with the same parts, or of the same kind with a part changed.
fn pairs(pair: &Pair) -> Vec<Pair> {
    let inner =
        |list: &Vec<Row>, build: &dyn Fn(Vec<Row>) -> Pair| rows(list).into_iter().map(build).collect::<Vec<_>>();
    let around = vec![Row::Pair(pair.clone())];
    let mut found = vec![
        Pair::CondBefore(around.clone()),
        Pair::CondAfter(around),
        Pair::SharedFirst(Box::new(pair.clone())),
        Pair::Unfolded(Side::Before, Box::new(pair.clone())),
        Pair::Unfolded(Side::After, Box::new(pair.clone())),
        Pair::Unknown,
        Pair::Barrier,
    ];
    match pair {
        Pair::Loop { min, extent, body } => {
            found.push(Pair::Lanes(body.clone()));
            found.push(Pair::Loop { min: extent.clone(), extent: min.clone(), body: body.clone() });
            found.extend(inner(body, &|body| Pair::Loop { min: min.clone(), extent: extent.clone(), body }));
            found.extend(loads(extent).into_iter().map(|extent| Pair::Loop {
                min: min.clone(),
                extent,
                body: body.clone(),
            }));
        }
        Pair::Lanes(body) => {
            found.push(Pair::Loop { min: Vec::new(), extent: Vec::new(), body: body.clone() });
            found.extend(inner(body, &Pair::Lanes));
        }
        Pair::Store { index, value } => {
            let with = |value| Pair::Store { index: index.clone(), value };
            found.extend(values(value).into_iter().map(with));
            found.extend(loads(index).into_iter().map(|index| Pair::Store { index, value: value.clone() }));
        }
        Pair::If { cond, then, otherwise } => {
            found.extend([Pair::CondBefore(then.clone()), Pair::CondAfter(then.clone())]);
            found.push(Pair::Gathered { cond: cond.clone(), index: Vec::new(), body: then.clone() });
            found.push(Pair::If { cond: cond.clone(), then: otherwise.clone(), otherwise: then.clone() });
            let with = |cond| Pair::If { cond, then: then.clone(), otherwise: otherwise.clone() };
            found.extend(values(cond).into_iter().map(with));
            found.extend(inner(then, &|then| Pair::If { cond: cond.clone(), then, otherwise: otherwise.clone() }));
            found.extend(inner(otherwise, &|otherwise| Pair::If { cond: cond.clone(), then: then.clone(), otherwise }));
        }
        Pair::CondBefore(body) => {
            found.push(Pair::CondAfter(body.clone()));
            found.push(Pair::If { cond: Value::Whole(Vec::new()), then: body.clone(), otherwise: Vec::new() });
            found.push(Pair::Gathered { cond: Value::Whole(Vec::new()), index: Vec::new(), body: body.clone() });
            found.extend(inner(body, &Pair::CondBefore));
        }
        Pair::CondAfter(body) => {
            found.push(Pair::CondBefore(body.clone()));
            found.extend(inner(body, &Pair::CondAfter));
        }
        Pair::SharedFirst(pair) => {
            found.push((**pair).clone());
            found.extend(pairs(pair).into_iter().map(|pair| Pair::SharedFirst(Box::new(pair))));
        }
        Pair::Unfolded(side, pair) => {
            found.push((**pair).clone());
            found.extend(pairs(pair).into_iter().map(|pair| Pair::Unfolded(*side, Box::new(pair))));
        }
        Pair::Gathered { cond, index, body } => {
            found.push(Pair::CondBefore(body.clone()));
            found.extend(inner(body, &|body| Pair::Gathered { cond: cond.clone(), index: index.clone(), body }));
            let with = |cond| Pair::Gathered { cond, index: index.clone(), body: body.clone() };
            found.extend(values(cond).into_iter().map(with));
        }
        Pair::Allocate(body) => found.extend(inner(body, &Pair::Allocate)),
        Pair::Let { value, body } => {
            found.extend(inner(body, &|body| Pair::Let { value: value.clone(), body }));
            found.extend(values(value).into_iter().map(|value| Pair::Let { value, body: body.clone() }));
        }
        Pair::Effect(value) => found.extend(values(value).into_iter().map(Pair::Effect)),
        Pair::Unknown | Pair::Barrier => {}
    }
    found
}

fn values(value: &Value) -> Vec<Value> {
    let boxed = || Box::new(value.clone());
    let mut found = vec![
        Value::Whole(Vec::new()),
        Value::Whole(vec![LoadPair::Same; 4]),
        Value::Whole(vec![LoadPair::Moved(0, Vec::new()); 4]),
        Value::Load(Vec::new()),
        Value::Parts(Vec::new()),
        Value::Parts(vec![Value::Whole(Vec::new()); 2]),
        Value::Lanes(boxed()),
        Value::Turned(boxed()),
        Value::Restated(boxed()),
        Value::Reversed(boxed()),
        Value::Decided(true, boxed()),
        Value::Decided(false, boxed()),
        Value::Unknown,
    ];
    match value {
        Value::Whole(list) => found.extend(loads(list).into_iter().map(Value::Whole)),
        Value::Lanes(inner) => {
            found.push((**inner).clone());
            found.extend(values(inner).into_iter().map(|inner| Value::Lanes(Box::new(inner))));
        }
        Value::Turned(inner) => {
            found.push((**inner).clone());
            found.extend(values(inner).into_iter().map(|inner| Value::Turned(Box::new(inner))));
        }
        Value::Restated(inner) => {
            found.push((**inner).clone());
            found.extend(values(inner).into_iter().map(|inner| Value::Restated(Box::new(inner))));
        }
        Value::Reversed(inner) => {
            found.push((**inner).clone());
            found.extend(values(inner).into_iter().map(|inner| Value::Reversed(Box::new(inner))));
        }
        Value::Load(list) => found.extend(loads(list).into_iter().map(Value::Load)),
        Value::Parts(parts) => {
            found.extend(moved(parts).into_iter().map(Value::Parts));
            found.extend(one_changed(parts, values).into_iter().map(Value::Parts));
        }
        Value::Choice(parts) => {
            let [cond, then, otherwise] = (**parts).clone();
            found.push(Value::Choice(Box::new([cond.clone(), otherwise.clone(), then.clone()])));
            found.push(Value::Decided(true, Box::new(then)));
            found.push(Value::Decided(false, Box::new(otherwise)));
            let changed = one_changed(&**parts, values).into_iter();
            found.extend(changed.map(|parts| Value::Choice(Box::new(parts.try_into().unwrap()))));
        }
        Value::Decided(holds, inner) => {
            found.push((**inner).clone());
            found.push(Value::Decided(!holds, inner.clone()));
            found.extend(values(inner).into_iter().map(|inner| Value::Decided(*holds, Box::new(inner))));
        }
        Value::Unknown => {}
    }
    found
}

fn loads(list: &[LoadPair]) -> Vec<Vec<LoadPair>> {
    let mut found = moved(list);
    found.push(Vec::new());
    found.extend(one_changed(list, |pair| {
        let mut found = vec![LoadPair::Same, LoadPair::Unknown];
        let inner = if let LoadPair::Moved(_, inner) = pair { inner.clone() } else { Vec::new() };
        found.extend((0..4).map(|position| LoadPair::Moved(position, inner.clone())));
        found.push(LoadPair::Moved(usize::MAX, inner.clone()));
        if let LoadPair::Moved(position, _) = pair {
            found.extend(loads(&inner).into_iter().map(|inner| LoadPair::Moved(*position, inner)));
        }
        found
    }));
    found
}

/// A function of these buffers, each `(4096,)` of a type, with this body.
fn func(buffers: &str, body: &str) -> String {
    let params: Vec<String> = buffers
        .split_whitespace()
        .map(|name| {
            let ty = if name.starts_with(['I', 'J']) { "int32" } else { "float32" };
            format!("{name}: T.Buffer((4096,), \"{ty}\")")
        })
        .collect();
    format!("def main({}):\n    {}\n", params.join(", "), body.replace('\n', "\n    "))
}

/// Two bodies over the same buffers that do not do the same.
const DIFFERENT: &[(&str, &str, &str)] = &[
    // Statements in another order.
    (
        "A B C",
        "for i in range(24):\n    B[i] = A[i]\n    C[i] = B[i]",
        "for i in range(24):\n    C[i] = B[i]\n    B[i] = A[i]",
    ),
    // Loops exchanged, whose last iteration stays.
    ("A B", "for i, j in T.grid(4, 4):\n    B[0] = A[i * 4 + j]", "for j, i in T.grid(4, 4):\n    B[0] = A[i * 4 + j]"),
    // A statement dropped that is reached, alone and behind others.
    (
        "A B",
        "for i in range(24):\n    B[i] = A[i]\n    if i < 5:\n        B[i] = T.float32(0)",
        "for i in range(24):\n    B[i] = A[i]",
    ),
    ("A B", "B[0] = A[0]\nB[0] = A[1]", "B[0] = A[0]"),
    // A condition dropped around several statements that does not hold for the last iteration.
    (
        "A B C",
        "for i in range(24):\n    if i < 23:\n        B[i] = A[i]\n        C[i] = A[i + 1]",
        "for i in range(24):\n    B[i] = A[i]\n    C[i] = A[i + 1]",
    ),
    ("A B", "B[0] = A[0]", "B[0] = A[0]\nB[0] = A[1]"),
    // A condition dropped, added, negated, or another one.
    ("A B", "for i in range(24):\n    if i < 5:\n        B[i] = A[i]", "for i in range(24):\n    B[i] = A[i]"),
    ("A B", "for i in range(24):\n    B[i] = A[i]", "for i in range(24):\n    if i < 5:\n        B[i] = A[i]"),
    (
        "A B",
        "for i in range(24):\n    if i < 5:\n        B[i] = A[i]\n    else:\n        B[i] = A[0]",
        "for i in range(24):\n    if i < 5:\n        B[i] = A[0]\n    else:\n        B[i] = A[i]",
    ),
    (
        "A B I",
        "for i in range(24):\n    if I[i] < 5:\n        B[i] = A[i]",
        "for i in range(24):\n    if I[0] < 5:\n        B[i] = A[i]",
    ),
    // A branch on values as a choice with the wrong side, a wrong condition, or a side that traps where it is not chosen.
    (
        "A B C",
        "for i in range(24):\n    if A[i] > C[i]:\n        B[i] = A[i]\n    else:\n        B[i] = C[i]",
        "for i in range(24):\n    B[i] = T.Select(A[i] > C[i], C[i], A[i])",
    ),
    (
        "A B C",
        "for i in range(24):\n    B[i] = T.if_then_else(A[i] > C[i], A[i], C[i])",
        "for i in range(24):\n    if not A[i] > C[i]:\n        B[i] = A[i]\n    else:\n        B[i] = C[i]",
    ),
    (
        "I J",
        "for i in range(24):\n    if I[i] != 0:\n        J[i] = T.floordiv(8, I[i])\n    else:\n        J[i] = 0",
        "for i in range(24):\n    J[i] = T.Select(I[i] != 0, T.floordiv(8, I[i]), 0)",
    ),
    // Nested conditions on values joined by the other operator, or without one of them.
    (
        "A B C",
        "for i in range(24):\n    if A[i] > C[i]:\n        if C[i] > A[i + 1]:\n            B[i] = A[i]",
        "for i in range(24):\n    if A[i] > C[i] or C[i] > A[i + 1]:\n        B[i] = A[i]",
    ),
    (
        "A B C",
        "for i in range(24):\n    if A[i] > C[i]:\n        if C[i] > A[i + 1]:\n            B[i] = A[i]",
        "for i in range(24):\n    if A[i] > C[i] and A[i + 1] > C[i]:\n        B[i] = A[i]",
    ),
    // Operands exchanged where that makes another value.
    ("A B C", "for i in range(24):\n    B[i] = A[i] / C[i]", "for i in range(24):\n    B[i] = C[i] / A[i]"),
    ("A B C", "for i in range(24):\n    B[i] = A[i] * C[0]", "for i in range(24):\n    B[i] = C[i] * A[0]"),
    // Wrong loads: in a value, in an index, in the index of an index, in an integer that is compared as a whole.
    ("A B C", "for i in range(24):\n    B[i] = A[i] - C[i]", "for i in range(24):\n    B[i] = C[i] - A[i]"),
    (
        "A B I J",
        "for i in range(24):\n    if 0 <= I[i] and I[i] < 24 and 0 <= J[i] and J[i] < 24:\n        B[i] = A[I[i]] + A[J[i]]",
        "for i in range(24):\n    if 0 <= I[i] and I[i] < 24 and 0 <= J[i] and J[i] < 24:\n        B[i] = A[I[i]] + A[I[i]]",
    ),
    (
        "I J",
        "for i in range(24):\n    J[i] = I[i] * 2 + I[23 - i]",
        "for i in range(24):\n    J[i] = I[23 - i] * 2 + I[i]",
    ),
    (
        "A B I",
        "for i in range(24):\n    for j in range(I[0]):\n        B[i] = A[i] + B[i]",
        "for i in range(24):\n    for j in range(I[1]):\n        B[i] = A[i] + B[i]",
    ),
    // A choice exchanged, decided without reason, or of another condition.
    (
        "A B C",
        "for i in range(24):\n    B[i] = T.if_then_else(i < 5, A[i], C[i])",
        "for i in range(24):\n    B[i] = T.if_then_else(i < 5, C[i], A[i])",
    ),
    (
        "A B C",
        "for i in range(24):\n    B[i] = T.if_then_else(i < 5, A[i], C[i])",
        "for i in range(24):\n    B[i] = A[i]",
    ),
    ("A B C", "for i in range(24):\n    B[i] = T.Select(i < 5, A[i], C[i])", "for i in range(24):\n    B[i] = C[i]"),
    // What is read behind a condition.
    (
        "A B",
        "for i in range(25):\n    if i < 24:\n        B[i] = T.if_then_else(i < 23, A[i], T.float32(0))",
        "for i in range(25):\n    if i < 24:\n        B[i] = T.if_then_else(i < 24, A[i], T.float32(0))",
    ),
    // Loops of other extents, kinds and first values.
    ("A B", "for i in range(24):\n    B[i] = A[i]", "for i in range(23):\n    B[i] = A[i]"),
    ("A B", "for i in range(24):\n    B[0] = A[i]", "for i in T.parallel(24):\n    B[0] = A[i]"),
    ("A B", "for i in range(1, 24):\n    B[i] = A[i]", "for i in range(0, 23):\n    B[i] = A[i]"),
    // Lanes: shifted, dependent on one another, and gathered into memory that others read.
    (
        "A B",
        "for i in range(5):\n    for c in range(4):\n        B[i * 4 + c] = A[i * 4 + c]",
        "for i in range(5):\n    B[T.Ramp(i * 4, 1, 4)] = A[T.Ramp(i * 4 + 1, 1, 4)]",
    ),
    ("B", "for c in range(4):\n    B[c + 1] = B[c]", "B[T.Ramp(1, 1, 4)] = B[T.Ramp(0, 1, 4)]"),
    (
        "A B",
        "for i in range(6):\n    for c in range(4):\n        if i * 4 + c < 18:\n            B[i * 4 + c] = A[i * 4 + c]",
        "for i in range(6):\n    B[T.Ramp(i * 4, 1, 4)] = T.if_then_else(T.Broadcast(i * 4, 4) + T.Ramp(0, 1, 4) < T.Broadcast(18, 4), \
         A[T.Ramp(i * 4, 1, 4)], T.Broadcast(T.float32(0), 4))",
    ),
    // Names for what was read before and after a store.
    (
        "I J",
        "x: T.int32 = I[0]\nI[0] = 5\ny: T.int32 = I[0]\nJ[0] = x - y",
        "x: T.int32 = I[0]\nI[0] = 5\ny: T.int32 = I[0]\nJ[0] = y - x",
    ),
    ("I J", "x: T.int32 = I[0]\nJ[0] = x", "x: T.int32 = I[1]\nJ[0] = x"),
    // Other operators.
    ("A B C", "for i in range(24):\n    B[i] = A[i] + C[i]", "for i in range(24):\n    B[i] = A[i] * C[i]"),
    ("A B", "for i in range(24):\n    B[i] = T.exp(A[i])", "for i in range(24):\n    B[i] = T.sqrt(A[i])"),
    // Conditions that differ in one iteration of many.
    (
        "A B C",
        "for i in range(4096):\n    B[i] = T.if_then_else(i != 3000, A[i], C[i])",
        "for i in range(4096):\n    B[i] = T.if_then_else(i != 3001, A[i], C[i])",
    ),
    (
        "A B C",
        "for i in range(4096):\n    B[i] = T.if_then_else(i != 3000, A[i], C[i])",
        "for i in range(4096):\n    B[i] = A[i]",
    ),
    // What is read only behind a condition is read always, where nothing was stored.
    (
        "I J",
        "S = T.alloc_buffer((4096,), \"int32\")\nfor i in range(24):\n    S[i] = I[i]\n\
         for i in range(25):\n    J[i] = T.if_then_else(i < 24, S[i], 0)",
        "S = T.alloc_buffer((4096,), \"int32\")\nfor i in range(24):\n    S[i] = I[i]\n\
         for i in range(25):\n    J[i] = T.if_then_else(i < 24, S[i], S[i] * 0)",
    ),
    // More and fewer lanes than iterations.
    ("A B", "for c in range(5):\n    B[c] = A[c]", "B[T.Ramp(0, 1, 4)] = A[T.Ramp(0, 1, 4)]"),
    ("A B", "for c in range(3):\n    B[c] = A[c]", "B[T.Ramp(0, 1, 4)] = A[T.Ramp(0, 1, 4)]"),
    // Assertions.
    ("A B I", "assert I[0] < 5, \"small\"\nB[0] = A[0]", "assert I[1] < 5, \"small\"\nB[0] = A[0]"),
    ("A B I", "assert I[0] < 5, \"small\"\nB[0] = A[0]", "B[0] = A[0]"),
];

/// The programs of two bodies, the one after in terms of the one before.
fn programs((buffers, before, after): (&str, &str, &str)) -> (PrimFunc, PrimFunc) {
    let (before, after, _) = Programs::new(&func(buffers, before), &func(buffers, after)).programs();
    (before, after)
}

/// How many correspondences there are in a few steps from those that are found; panics if one proves that the programs do the
/// same.
fn none_proves(judge: &Judge, before: &PrimFunc, after: &PrimFunc, evidence: &Evidence) -> usize {
    let found = correspondence(before, after, evidence);
    let own = correspondence(before, before, &Evidence::default());
    let others = correspondence(after, after, &Evidence::default());
    let mut tried = HashSet::new();
    for along in [found, own, others] {
        for along in variants(&along).into_iter().chain([along]) {
            let text = format!("{along:#?}");
            if tried.insert(text.clone()) {
                let reports = judge.check_pass_along(before, after, evidence, &along);
                assert!(!is_proved(&reports), "{before:#?}\n{after:#?}\nproved along {text}");
            }
        }
    }
    tried.len()
}

#[test]
fn no_correspondence_proves_a_difference() {
    let judge = judge();
    let mut tried = 0;
    for different in DIFFERENT {
        let (before, after) = programs(*different);
        tried += none_proves(&judge, &before, &after, &Evidence::default());
    }
    assert!(tried > 2500, "{tried}");
}

/// Behind a condition on memory, no execution can be sampled: the goals alone show the difference.
#[test]
fn no_correspondence_proves_a_difference_that_no_sample_shows() {
    let judge = judge();
    let mut tried = 0;
    for (buffers, before, after) in DIFFERENT {
        let guarded = |body: &str| format!("if I0[0] < 5:\n    {}", body.replace('\n', "\n    "));
        let (before, after) = programs((&format!("{buffers} I0"), &guarded(before), &guarded(after)));
        tried += none_proves(&judge, &before, &after, &Evidence::default());
    }
    assert!(tried > 2500, "{tried}");
}

/// Lanes without a value that are written to memory of the caller.
#[test]
fn a_condition_is_gathered_in_own_textures_only() {
    let before = "for c in range(4):\n    if c < 3:\n        B[c] = A[c]";
    let after = "B[T.Ramp(0, 1, 4)] = T.if_then_else(T.Ramp(0, 1, 4) < T.Broadcast(3, 4), A[T.Ramp(0, 1, 4)], \
                 T.Broadcast(T.float32(0), 4))";
    let (before, after) = programs(("A B", before, after));
    let store = Pair::Store { index: Vec::new(), value: Value::Load(Vec::new()) };
    let (cond, index) = (Value::Whole(Vec::new()), Vec::new());
    let gathered = Pair::Gathered { cond, index, body: vec![Row::Pair(store)] };
    let along = Correspondence { body: vec![Row::Pair(Pair::Lanes(vec![Row::Pair(gathered)]))] };
    let reports = judge().check_pass_along(&before, &after, &Evidence::default(), &along);
    let open: Vec<_> = shown(reports).into_iter().filter(|report| !report.verdict.is_proved()).collect();
    assert!(
        open.iter().any(|report| report.verdict.to_string().contains("is no texture of this function")),
        "{open:#?}"
    );
}

/// The correspondence that is found for a program and itself, which proves it.
fn proved_along(judge: &Judge, buffers: &str, body: &str) -> (PrimFunc, Correspondence) {
    let func = program(&func(buffers, body));
    let found = correspondence(&func, &func, &Evidence::default());
    assert!(is_proved(&judge.check_pass_along(&func, &func, &Evidence::default(), &found)), "{body}\n{found:#?}");
    (func, found)
}

#[track_caller]
fn is_open(judge: &Judge, func: &PrimFunc, body: Vec<Row>) {
    let along = Correspondence { body };
    assert!(!is_proved(&judge.check_pass_along(func, func, &Evidence::default(), &along)), "{along:#?}");
}

#[test]
fn exchanged_statements_and_loops_fit_nothing() {
    let judge = judge();
    let two = "for i in range(24):\n    B[i] = A[i]\nfor i in range(24):\n    C[i] = A[i] + B[i]";
    let (func, found) = proved_along(&judge, "A B C", two);
    let [first, second] = found.body.try_into().unwrap();
    is_open(&judge, &func, vec![second.clone(), first.clone()]);
    is_open(&judge, &func, vec![first.clone(), first.clone()]);
    is_open(&judge, &func, vec![first.clone()]);
    is_open(&judge, &func, vec![Row::Dropped, first, second]);
    let nested = "for i in range(4):\n    for j in range(6):\n        B[i * 6 + j] = A[i * 6 + j]";
    let (func, found) = proved_along(&judge, "A B", nested);
    let Some(Row::Pair(Pair::Loop { body, .. })) = found.body.first() else { panic!("{found:#?}") };
    is_open(&judge, &func, body.clone());
}

#[test]
fn a_statement_that_is_reached_is_not_dropped() {
    let judge = judge();
    let (func, found) = proved_along(&judge, "A B", "for i in range(24):\n    B[i] = A[i]\nB[0] = A[1]");
    let [first, second] = found.body.try_into().unwrap();
    is_open(&judge, &func, vec![Row::Dropped, second]);
    is_open(&judge, &func, vec![first, Row::Dropped]);
    is_open(&judge, &func, vec![Row::Dropped, Row::Dropped]);
    is_open(&judge, &func, Vec::new());
}

#[test]
fn a_wrong_load_is_not_believed() {
    let judge = judge();
    let stored = |value| vec![Row::Pair(Pair::Store { index: Vec::new(), value })];
    let whole = |loads| stored(Value::Whole(loads));
    let moved = |position| LoadPair::Moved(position, Vec::new());
    let (func, _) = proved_along(&judge, "I J", "J[0] = I[1] * 2 + I[2]");
    let right = Correspondence { body: whole(vec![moved(0), moved(1)]) };
    assert!(is_proved(&judge.check_pass_along(&func, &func, &Evidence::default(), &right)));
    for wrong in
        [vec![moved(1), moved(0)], vec![moved(0), moved(0)], vec![moved(0)], vec![moved(2), moved(2)], Vec::new()]
    {
        is_open(&judge, &func, whole(wrong));
    }
}

#[test]
fn a_decision_that_is_wrong_is_not_believed() {
    let judge = judge();
    let (func, _) = proved_along(&judge, "A B C", "for i in range(24):\n    B[i] = T.if_then_else(i < 24, A[i], C[i])");
    let load = || Box::new(Value::Load(Vec::new()));
    for holds in [true, false] {
        let store = Pair::Store { index: Vec::new(), value: Value::Decided(holds, load()) };
        let body = vec![Row::Pair(store)];
        is_open(&judge, &func, vec![Row::Pair(Pair::Loop { min: Vec::new(), extent: Vec::new(), body })]);
    }
}

/// Two buffers that exchange their places: the text of a load stays, what it reads does not.
#[test]
fn a_load_of_the_same_text_reads_something_else_if_buffers_were_exchanged() {
    let body = "if I0[0] < 5:\n    for i in range(24):\n        B[i] = A[I[J[I1[i] % 24] % 24] % 24]";
    let before = program(&func("A B I J I1 I2 I0", body));
    let mut after = before.clone();
    let (x, y) = (after.buffer_map[4].1.clone(), after.buffer_map[5].1.clone());
    (after.buffer_map[4].1, after.buffer_map[5].1) = (y.clone(), x.clone());
    let claim = |before: &Buffer, after: &Buffer| BufferClaim {
        before: before.clone(),
        after: after.clone(),
        map: IndexMap::identity(before.shape.clone()),
        change: BufferChange::Rename,
        padded_axes: Vec::new(),
    };
    let evidence =
        Evidence { pass: "by hand".into(), buffers: vec![claim(&x, &y), claim(&y, &x)], ..Evidence::default() };
    let judge = judge();
    assert!(is_proved(&judge.check_pass(&before, &before, &Evidence::default())));
    let is_of_store = |report: &Report| report.subject == "B[i] = ..." && report.obligation == Obligation::Simulation;
    let own = correspondence(&before, &before, &Evidence::default());
    for along in variants(&own).into_iter().chain([own]) {
        let mut reports = judge.check_pass_along(&before, &after, &evidence, &along);
        reports.retain(is_of_store);
        assert!(reports.is_empty() || !is_proved(&reports), "{along:#?}");
    }
    none_proves(&judge, &before, &after, &evidence);
}

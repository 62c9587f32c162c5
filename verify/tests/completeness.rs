//! Right inputs that were once not proved, each with broken twins that must not be proved: conditions inside maps, shapes
//! without elements, ranges of symbols, and accesses guarded by conditions on loaded values.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::map::Mapped;
use common::{judge, program};
use tilewright_ir::{BufferChange, BufferClaim, Evidence, Expr, IndexMap, PrimFunc, Var};
use tilewright_verify::{Report, Verdict};

fn of<'r>(reports: &'r [Report], obligation: &str) -> &'r Report {
    reports.iter().find(|report| report.obligation.id() == obligation).unwrap()
}

/// Whether every obligation of a program is proved, after the program was compared with itself.
fn is_proved(func: &PrimFunc) -> bool {
    let reports = judge().check_program(func);
    for report in reports.iter().filter(|report| !report.verdict.is_proved()) {
        eprintln!("{} of {}: {}", report.obligation, report.subject, report.verdict);
    }
    assert!(!reports.is_empty());
    let itself = judge().check_pass(func, func, &Evidence::default());
    let same = itself.iter().all(|report| report.verdict.is_proved());
    let alone = reports.iter().all(|report| report.verdict.is_proved());
    assert_eq!(same, alone, "{}", func.name);
    alone
}

/// A program over `I: (n,) int32`, `A: (n,)` and `B: (n,)`, with this body inside `for i in range(n)`.
fn gather(element: &str, body: &str) -> PrimFunc {
    let lines: Vec<String> = body.lines().map(|line| format!("        {line}\n")).collect();
    let body = lines.concat();
    program(&format!(
        "def main(p: T.handle, a: T.handle, b: T.handle, n: T.int32):\n\
         \x20   I = T.match_buffer(p, (n,), \"{element}\")\n\
         \x20   A = T.match_buffer(a, (n,), \"float32\")\n\
         \x20   B = T.match_buffer(b, (n,), \"float32\")\n\
         \x20   for i in range(n):\n{body}"
    ))
}

#[test]
fn a_guarded_gather_is_in_bounds() {
    let body = "B[i] = T.if_then_else(0 <= I[i] and I[i] < n, A[I[i]], T.float32(0))";
    assert!(is_proved(&gather("int32", body)));
    assert!(is_proved(&gather(
        "int64",
        &body.replace("A[I[i]]", "A[T.int32(I[i])]").replace("I[i] < n", "I[i] < T.int64(n)")
    )));
}

#[test]
fn a_guarded_store_is_in_bounds() {
    assert!(is_proved(&gather("int32", "if I[i] >= 0 and I[i] < n:\n    A[i] = B[I[i]]")));
    assert!(is_proved(&gather("int32", "if not (I[i] < 0 or I[i] >= n):\n    A[i] = B[I[i]]")));
}

#[test]
fn an_assertion_about_a_loaded_value_bounds_it() {
    let asserted = "assert I[i] >= 0, \"low\"\nassert I[i] < n, \"high\"\nB[i] = A[I[i]]";
    assert!(is_proved(&gather("int32", asserted)));
    assert!(!is_proved(&gather("int32", "assert I[i] < n, \"high\"\nB[i] = A[I[i]]")));
}

#[test]
fn a_condition_on_other_loads_bounds_nothing() {
    for wrong in [
        // Another index, one bound only, or the wrong bound.
        "B[i] = T.if_then_else(0 <= I[0] and I[0] < n, A[I[i]], T.float32(0))",
        "B[i] = T.if_then_else(I[i] < n, A[I[i]], T.float32(0))",
        "B[i] = T.if_then_else(0 <= I[i], A[I[i]], T.float32(0))",
        "B[i] = T.if_then_else(0 <= I[i] and I[i] <= n, A[I[i]], T.float32(0))",
        // The branch in which the condition does not hold.
        "B[i] = T.if_then_else(0 <= I[i] and I[i] < n, T.float32(0), A[I[i]])",
        "B[i] = T.if_then_else(0 <= I[i] or I[i] < n, A[I[i]], T.float32(0))",
        // Both values are computed.
        "B[i] = T.Select(0 <= I[i] and I[i] < n, A[I[i]], T.float32(0))",
    ] {
        assert!(!is_proved(&gather("int32", wrong)), "{wrong}");
    }
}

#[test]
fn a_buffer_that_is_stored_to_is_no_premise() {
    let between = "if I[i] >= 0 and I[i] < n:\n    I[i] = n\n    A[i] = B[I[i]]";
    assert!(!is_proved(&gather("int32", between)));
    let elsewhere = "I[i] = n\nif I[i] >= 0 and I[i] < n:\n    I[n - 1 - i] = n\n    A[i] = B[I[i]]";
    assert!(!is_proved(&gather("int32", elsewhere)));
    let through_a_view = "J = T.decl_buffer((n,), \"int32\", data=I.data)\n\
                          if I[i] >= 0 and I[i] < n:\n    J[i] = n\n    A[i] = B[I[i]]";
    assert!(!is_proved(&gather("int32", through_a_view)));
}

#[test]
fn arithmetic_on_loaded_values_may_wrap() {
    // For I[i] = 100 the sum is -56, which is below 1.
    let wraps = |index: &str| {
        program(&format!(
            "def main(p: T.handle, a: T.handle, b: T.handle):\n\
             \x20   I = T.match_buffer(p, (8,), \"int8\")\n\
             \x20   A = T.match_buffer(a, (8,), \"float32\")\n\
             \x20   B = T.match_buffer(b, (8,), \"float32\")\n\
             \x20   for i in range(8):\n\
             \x20       B[i] = T.if_then_else(I[i] >= T.int8(0) and {index}, A[T.int32(I[i])], T.float32(0))\n"
        ))
    };
    assert!(is_proved(&wraps("I[i] < T.int8(8)")));
    assert!(!is_proved(&wraps("I[i] + T.int8(100) < T.int8(1)")));
}

#[test]
fn conditions_bound_the_branches_of_a_map() {
    let split = "lambda i: [if_then_else(i < n // 2, 2 * i, 2 * (i - n // 2) + 1)]";
    let constant = "lambda i: [if_then_else(i < 3, 2 * i, 2 * (i - 3) + 1)]";
    for (map, domain, shape) in [(split, "n", "n * 2 - n // 2 * 2"), (constant, "7", "8")] {
        for report in judge().check_map(Mapped::new(map, domain, shape).claim().padded(&[0])) {
            assert!(report.verdict.is_proved(), "{} of {}: {}", report.obligation, report.subject, report.verdict);
        }
    }
    // The second branch begins one too late, and the shape is one too small.
    let late = Mapped::new(&split.replace("+ 1", "+ 2"), "n", "n * 2 - n // 2 * 2");
    assert!(matches!(of(&judge().check_map(late.claim().padded(&[0])), "bounds").verdict, Verdict::Refuted(_)));
    let small = Mapped::new(split, "n", "n");
    assert!(matches!(of(&judge().check_map(small.claim().padded(&[0])), "bounds").verdict, Verdict::Refuted(_)));
}

#[test]
fn an_operation_fits_where_its_condition_holds() {
    let guarded = |limit: &str| {
        let map = format!("lambda i: [if_then_else(i < {limit}, i * 65536, i)]");
        let reports = judge().check_map(Mapped::new(&map, "n", "n * 65536").claim().padded(&[0]));
        of(&reports, "overflow").verdict.clone()
    };
    assert!(guarded("32768").is_proved());
    let claim = Mapped::new("lambda i: [if_then_else(i < 32769, i * 65536, i)]", "n", "n + 2147483649");
    assert!(!of(&judge().check_map(claim.claim().padded(&[0])), "overflow").verdict.is_proved());
}

#[test]
fn shapes_without_elements_are_refuted_and_no_internal_error() {
    for (map, shape) in [
        ("lambda i: [-8 * n]", "1 - n * 8"),
        ("lambda i: [i]", "1 - n * 8"),
        ("lambda i: [i]", "n - 5"),
        ("lambda i: [i]", "0"),
        ("lambda i: [i - n]", "0 - n"),
    ] {
        let reports = judge().check_map(Mapped::new(map, "n", shape).claim().padded(&[0]));
        assert!(
            matches!(of(&reports, "bounds").verdict, Verdict::Refuted(_)),
            "{map}: {}",
            of(&reports, "bounds").verdict
        );
        assert!(!reports.iter().any(Report::is_internal), "{map}");
    }
}

#[test]
fn a_symbol_has_the_values_of_its_type() {
    // An index beyond 2^31 needs an extent beyond 2^31, which an int32 cannot be.
    let shifted = Mapped::new("lambda i: [i // 2]", "n", "1073741824");
    let reports = judge().check_map(shifted.claim().padded(&[0]));
    assert!(of(&reports, "bounds").verdict.is_proved(), "{}", of(&reports, "bounds").verdict);
    let smaller = Mapped::new("lambda i: [i // 2]", "n", "1073741823");
    match &of(&judge().check_map(smaller.claim().padded(&[0])), "bounds").verdict {
        Verdict::Refuted(found) => assert_eq!(found.shape, [("n".to_owned(), 2_147_483_647)]),
        other => panic!("{other}"),
    }
}

/// A program over `A: (n,)`, `B: (n,)`, an integer `n` and an integer `m`, with this body; or with other names.
fn over_n(body: &str, rename: bool) -> PrimFunc {
    let text = format!(
        "def main(a: T.handle, b: T.handle, n: T.int32, m: T.int32):\n\
         \x20   A = T.match_buffer(a, (n,), \"float32\")\n\
         \x20   B = T.match_buffer(b, (n,), \"float32\")\n\
         {}\n",
        body.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
    );
    let names: &[(&str, &str)] = &[("n", "k"), ("m", "l"), ("i", "j"), ("A", "C"), ("B", "D")];
    program(&if rename { common::pair::with_words(&text, names) } else { text })
}

/// Bodies that cannot be followed: what they do depends on divisions by zero, on wrapping or on memory that changes.
const NOT_FOLLOWED: &[&str] = &[
    "for i in range(n):\n    if i > 0 and 6 // i >= 3:\n        B[i] = A[i]",
    "for i in range(n):\n    if m * m * m > 5:\n        B[i] = A[i]",
    "for i in range(n):\n    if i * 65536 * 65536 > m:\n        B[i] = A[i]",
    "for i in range(n):\n    if 5 // m > 1 or i < 5 % m:\n        B[i] = A[i]",
];

/// Whether each obligation that compares two programs is proved.
fn is_followed(before: &PrimFunc, after: &PrimFunc) -> bool {
    let reports = judge().check_pass(before, after, &Evidence::default());
    let of_both = |report: &&Report| ["simulation", "iteration"].contains(&report.obligation.id());
    let (mut some, mut all) = (false, true);
    for report in reports.iter().filter(of_both) {
        (some, all) = (true, all && report.verdict.is_proved());
    }
    some && all
}

#[test]
fn a_program_is_the_same_as_itself_whatever_it_is_called() {
    for body in NOT_FOLLOWED {
        let func = over_n(body, false);
        assert!(is_followed(&func, &func), "{body}");
        for renamed in [over_n(body, false), over_n(body, true)] {
            assert!(is_followed(&func, &renamed), "{body}");
        }
        // What is asked of the program alone stays open.
        let alone = judge().check_program(&func).iter().all(|report| report.verdict.is_proved());
        let both = judge().check_pass(&func, &func, &Evidence::default());
        assert_eq!(alone, both.iter().all(|report| report.verdict.is_proved()), "{body}");
    }
}

#[test]
fn a_program_that_differs_anywhere_is_not_the_same() {
    for body in NOT_FOLLOWED {
        let func = over_n(body, false);
        let differs = |right: &str, wrong: &str| {
            let other = body.replace(right, wrong);
            assert!(other != *body);
            let both = [other.as_str()].map(|body| [over_n(body, false), over_n(body, true)]).concat();
            assert!(both.iter().all(|other| !is_followed(&func, other)), "{body}\n{other}");
        };
        differs("B[i] = A[i]", "A[i] = B[i]");
        differs("= A[i]", "= A[n - 1 - i]");
        differs("= A[i]", "= A[i] + T.float32(1)");
        differs("= A[i]", "= -A[i]");
        differs("range(n)", "range(n - 1)");
        differs("range(n)", "T.parallel(n)");
        differs(">", "<");
    }
}

#[test]
fn integers_that_are_exchanged_are_no_renaming() {
    let body = "for i in range(n):\n    if m * m * m > 5:\n        B[i] = A[i]";
    let text = |names: &str| body.replace('m', names);
    let (func, other) = (over_n(body, false), over_n(&text("n"), false));
    assert!(!is_followed(&func, &other));
    let mut exchanged = over_n(body, false);
    exchanged.params.swap(2, 3);
    assert!(!is_followed(&func, &exchanged));
    let mut exchanged = over_n(body, false);
    exchanged.params.swap(0, 1);
    assert!(!is_followed(&func, &exchanged));
}

#[test]
fn a_claim_that_moves_something_makes_the_same_program_another_one() {
    let func = over_n(NOT_FOLLOWED[0], false);
    let (a, n) = (func.buffer_map[0].1.clone(), func.params[2].clone());
    let claim = |map: IndexMap| BufferClaim {
        before: a.clone(),
        after: a.clone(),
        map,
        change: BufferChange::Layout,
        padded_axes: Vec::new(),
    };
    let i = Var::index("i");
    let reversed = Expr::from(&n) - Expr::int(1) - Expr::from(&i);
    let reversed = IndexMap::new(vec![i], vec![Expr::from(&n)], vec![reversed], Vec::new()).unwrap();
    let evidence = Evidence { pass: "by hand".into(), buffers: vec![claim(reversed)], ..Evidence::default() };
    let reports = judge().check_pass(&func, &func, &evidence);
    assert!(reports.iter().any(|report| report.obligation.id() == "simulation" && !report.verdict.is_proved()));
}

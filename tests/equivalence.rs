//! Restructured programs are proved equal to what they were, and broken ones are refuted by a run.
//!
//! The pairs are in `tests/equivalence`. Of each pair, the program before is proved equal to itself and to the one after; each
//! change that breaks the program after is refuted, by an execution with stated extents.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

#[path = "equivalence/pairs.rs"]
mod pairs;

use pairs::{Case, cases, is_documented, is_proved, is_refuted, judge, open, program, read};
use tilewright::pipeline::findings::Way;
use tilewright::pipeline::pair;
use tilewright_compiler::reorder;
use tilewright_ir::{
    Buffer, BufferChange, BufferClaim, Comparison, Evidence, Expr, IndexMap, PrimFunc, Reordering, Var,
};
use tilewright_verify::{Config, Judge, Obligation, Premise, Report, Verdict};

/// Decides the pairs of a file; with `KIND` in the environment, those alone whose name contains it.
fn check(file: &str, least: usize) {
    let judge = judge();
    let pairs = cases(file);
    assert!(pairs.len() >= least, "{} pairs", pairs.len());
    let only = std::env::var("KIND").unwrap_or_default();
    let mut wrong = Vec::new();
    for Case { name, before, variants, .. } in pairs.iter().filter(|pair| pair.name.contains(&only)) {
        let func = read(before);
        let itself = pair::validate(&func, &read(before), &[], &judge).unwrap();
        if !is_proved(&itself.reports) {
            wrong.push(format!("{name}: not proved equal to itself: {}", open(&itself.reports).join("; ")));
        }
        for variant in variants {
            let judged = variant.validate(&func, &read(&variant.after()), &judge);
            if !is_proved(&judged.reports) {
                wrong.push(format!("{name}: not proved: {}", open(&judged.reports).join("; ")));
            }
            assert!(variant.wrong.len() >= 2, "{name} has fewer than two broken twins");
            for (twin, text) in variant.twins() {
                let judged = variant.validate(&func, &read(&text), &judge);
                if !is_refuted(&judged.reports) {
                    wrong.push(format!("{twin} is not refuted: {}", open(&judged.reports).join("; ")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn loops_in_another_order() {
    check("loops", 30);
}

#[test]
fn values_computed_in_another_way() {
    check("values", 21);
}

#[test]
fn values_kept_in_another_place() {
    check("storage", 19);
}

#[test]
fn vectors_for_loops_and_loops_for_vectors() {
    check("vectors", 15);
}

#[test]
fn vectors_whose_lanes_see_one_another_are_not_loops() {
    let judge = judge();
    let (mut tried, mut wrong) = (0, Vec::new());
    for Case { name, before, variants, .. } in cases("vectors_illegal") {
        let func = read(&before);
        let itself = pair::validate(&func, &read(&before), &[], &judge).unwrap();
        if !is_proved(&itself.reports) {
            wrong.push(format!("{name}: not proved equal to itself: {}", open(&itself.reports).join("; ")));
        }
        for variant in &variants {
            let after = read(&variant.after());
            let own = pair::validate(&after, &read(&variant.after()), &[], &judge).unwrap();
            let judged = variant.validate(&func, &after, &judge);
            tried += 1;
            if !is_refuted(&judged.reports) {
                wrong.push(format!("{} is not refuted: {}", variant.name, open(&judged.reports).join("; ")));
            }
            let is_alone = |report: &Report| matches!(report.obligation, Obligation::Lanes | Obligation::Bounds);
            if !own.reports.iter().all(|report| report.verdict.is_proved() || is_alone(report)) {
                wrong.push(format!("{}: not proved equal to itself: {}", variant.name, open(&own.reports).join("; ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried >= 30, "{tried} programs");
}

#[test]
fn branches_names_and_declarations_changed() {
    check("structural", 35);
}

#[test]
fn assertions_in_other_words() {
    check("assertions", 3);
}

#[test]
fn reductions_in_another_order_or_in_stages() {
    check("reductions", 14);
}

#[test]
fn sums_spread_over_stores_and_differences() {
    check("sums", 17);
}

#[test]
fn truth_values_in_another_form() {
    check("truths", 11);
}

#[test]
fn memory_that_decides_what_runs() {
    check("masks", 8);
}

#[test]
fn indices_that_are_read_from_memory() {
    check("gathers", 7);
}

#[test]
fn loops_as_long_as_memory_says() {
    check("lengths", 6);
}

#[test]
fn updates_in_another_order() {
    check("updates", 6);
}

#[test]
fn recurrences() {
    check("recurrences", 17);
}

#[test]
fn differences_of_large_sizes_and_particular_integers_are_found() {
    check("sizes", 4);
}

#[test]
fn reductions_are_proved_by_their_definitions() {
    let judge = judge();
    for Case { name, before, variants, .. } in cases("reductions").into_iter().chain(cases("sums")) {
        let judged = variants[0].validate(&read(&before), &read(&variants[0].after()), &judge);
        // Updates of integers may change their order without that.
        let is_exact = !variants[0].reassociate && judged.way == Some(Way::Loops);
        assert!(is_exact || judged.way == Some(Way::Definitions), "{name}: {:?}", judged.way);
        let is_premise = judged.premises.iter().any(|premise| matches!(premise, Premise::ReductionOrder(_)));
        assert_eq!(is_premise, variants[0].reassociate, "{name}: {:?}", judged.premises);
        // Without the premise, floats that are combined in another order are not the same.
        if variants[0].reassociate {
            let strict = pair::validate(&read(&before), &read(&variants[0].after()), &[], &judge).unwrap();
            assert!(!is_proved(&strict.reports), "{name}");
        }
    }
}

#[test]
fn the_page_counts_all_kinds() {
    let files = [
        "loops",
        "values",
        "storage",
        "structural",
        "reductions",
        "vectors",
        "assertions",
        "sums",
        "truths",
        "masks",
        "lengths",
        "updates",
        "recurrences",
        "gathers",
        "sizes",
    ];
    for file in files {
        let cases = cases(file);
        let symbolic = cases.iter().filter(|case| case.is_symbolic()).count();
        let twins: usize = cases.iter().flat_map(|case| &case.variants).map(|variant| variant.wrong.len()).sum();
        let row = format!("| {file} | {} | {symbolic} | {} | {twins} |", cases.len(), cases.len() - symbolic);
        assert!(is_documented(&row), "docs/EQUIVALENCE.md has no row `{row}`");
    }
}

#[test]
fn programs_of_constant_shape_are_followed_by_their_results_alone() {
    // In one part, and in as many as there can be.
    for part_steps in [Config::default().part_steps, 1] {
        let config = Config { part_steps, ..Config::default() };
        follow_results(&Judge::new(config, tilewright_search::strategies()).unwrap());
    }
}

fn follow_results(judge: &Judge) {
    let cases = cases("storage_constant");
    assert!(cases.len() >= 13, "{} pairs", cases.len());
    for Case { name, before, variants, .. } in &cases {
        let before = read(before);
        // The buffers of the parameters correspond by their position, with the same shapes.
        let evidence = |after: &PrimFunc| {
            let pairs = before.buffer_map.iter().zip(&after.buffer_map);
            let claim = |((_, x), (_, y)): (&(Var, Buffer), &(Var, Buffer))| BufferClaim {
                before: x.clone(),
                after: y.clone(),
                map: IndexMap::identity(x.shape.clone()),
                change: BufferChange::Rename,
                padded_axes: Vec::new(),
            };
            let buffers = pairs.map(claim).collect();
            Evidence { comparison: Comparison::Results, buffers, ..Evidence::default() }
        };
        for variant in variants {
            let after = read(&variant.after());
            let open = open(&judge.check_pass(&before, &after, &evidence(&after)));
            assert!(open.is_empty(), "{name}: {}", open.join("; "));
            for (twin, text) in variant.twins() {
                let wrong = read(&text);
                let reports = judge.check_pass(&before, &wrong, &evidence(&wrong));
                assert!(!is_proved(&reports), "{twin} is proved");
            }
        }
    }
}

/// The claims about one pair, bent: a value that is one too large, values of other loops, another store, iterations that are
/// claimed of nothing.
fn bent(claim: &Reordering) -> Vec<Reordering> {
    let mut found = Vec::new();
    let mut add = |change: &dyn Fn(&mut Reordering)| {
        let mut other = claim.clone();
        change(&mut other);
        found.push(other);
    };
    for store in 0..claim.stores.len() {
        for origin in 0..claim.stores[store].len() {
            let now = &claim.stores[store][origin];
            for place in 0..now.forward.len() {
                add(&|other| {
                    let value = &mut other.stores[store][origin].forward[place];
                    *value = value.clone() + Expr::int(1);
                });
                add(&|other| other.stores[store][origin].forward.rotate_left(place));
            }
            for place in 0..now.back.len() {
                add(&|other| other.stores[store][origin].back[place] = Expr::int(0));
            }
            add(&|other| other.stores[store][origin].before += 1);
            add(&|other| other.stores[store][origin].when = Some(Expr::bool(false)));
            add(&|other| drop(other.stores[store].remove(origin)));
            add(&|other| drop(other.stores.remove(store)));
        }
    }
    found
}

#[test]
fn no_claim_proves_a_broken_program() {
    let judge = judge();
    let mut tried = 0;
    for Case { before, variants, .. } in cases("loops") {
        let before = read(&before);
        let variant = &variants[0];
        let paired = |text: &str| pair::pair(&before, &read(text), &[]).unwrap();
        let (right, evidence) = paired(&variant.after());
        let claim = reorder::find(&before, &right, &evidence).unwrap_or_default();
        for (name, twin) in variant.twins() {
            let (wrong, evidence) = paired(&twin);
            let own = reorder::find(&before, &wrong, &evidence).unwrap_or_default();
            for reordering in [vec![claim.clone()], bent(&claim), bent(&own)].concat() {
                let evidence = Evidence { comparison: Comparison::Iterations(reordering), ..evidence.clone() };
                let reports = judge.check_pass(&before, &wrong, &evidence);
                tried += 1;
                assert!(!open(&reports).is_empty(), "{name} is proved by {evidence:?}");
            }
        }
    }
    assert!(tried > 1000, "{tried} claims");
}

/// The verdicts about two bodies over integers: `A` and `B` of `n` elements, `t` of one, and the parameter `x`.
fn integers(before: &str, after: &str) -> Vec<Report> {
    let text = |body: &str| {
        let head = "@T.prim_func\ndef main(a: T.handle, b: T.handle, x: T.int32):\n    n = T.int32()\n    \
                    A = T.match_buffer(a, (n,), \"int32\")\n    B = T.match_buffer(b, (n,), \"int32\")\n    \
                    t = T.alloc_buffer((1,), \"int32\")\n";
        let lines: Vec<String> = body.lines().map(|line| format!("    {line}\n")).collect();
        format!("{head}{}", lines.concat())
    };
    pair::validate(&read(&text(before)), &read(&text(after)), &[], &judge()).unwrap().reports
}

#[test]
fn conditions_that_wrap_are_no_premises() {
    let sum = |value: &str| {
        format!("for i in range(n):\n    B[i] = 0\n    for k in range(50):\n        B[i] = B[i] + {value}")
    };
    let reversed = sum("A[i] * (49 - k)");
    let chosen = |cond: &str| integers(&sum(&format!("T.Select({cond}, A[i] * k, 0)")), &reversed);
    assert!(open(&chosen("k * 100 >= 0")).is_empty());
    let wrapping = [
        "k * 100000000 >= 0",
        "x + 1 > x",
        "x + k >= x",
        "T.Cast(\"int8\", k * 5) == k * 5",
        "A[i] >= A[i] and x + 1 > x",
    ];
    for cond in wrapping {
        assert!(!open(&chosen(cond)).is_empty(), "{cond}");
    }
}

#[test]
fn a_program_that_is_wrong_by_itself_is_not_refuted_by_an_equal_one() {
    let before = "for i in range(n):\n    B[i] = A[1] + i";
    let after = "for i in range(n):\n    t[0] = A[1]\n    B[i] = t[0] + i";
    for (before, after) in [(before, after), (after, before)] {
        let refuted = |report: &Report| matches!(report.verdict, Verdict::Refuted(_));
        assert!(!integers(before, after).iter().any(refuted), "{before}\n---\n{after}");
    }
}

#[test]
fn a_parameter_that_is_written_first_may_hold_nothing() {
    let set = "for i in range(n):\n    B[i] = A[i]";
    let added = "for i in range(n):\n    B[i] = B[i] + A[i]";
    let looked = "for i in range(n):\n    t[0] = B[i]\n    B[i] = A[i]";
    let cached = "for i in range(n):\n    t[0] = B[i]\n    B[i] = t[0] + A[i]";
    let guarded = |body: &str, cond: &str| format!("if {cond}:\n    {}", body.replace('\n', "\n    "));
    let sometimes = guarded(added, "x > 0");
    let read = "t[0] = B[0]\n";
    for (before, after, is_equal) in [
        (set.to_owned(), set.to_owned(), true),
        (set.to_owned(), looked.to_owned(), false),
        (added.to_owned(), cached.to_owned(), true),
        (added.to_owned(), format!("{read}{cached}"), true),
        (sometimes.clone(), guarded(cached, "x > 0"), true),
        (sometimes.clone(), format!("{read}{sometimes}"), false),
        (sometimes.clone(), format!("{}\n{sometimes}", guarded("t[0] = B[0]", "x > 1")), true),
        (sometimes.clone(), format!("{}\n{sometimes}", guarded("t[0] = B[0]", "x >= 0")), false),
        // Only one of the programs writes the parameter, and neither does when it runs.
        (guarded("B[0] = x", "x < x"), format!("{read}{}", guarded("B[0] = x", "x < x")), false),
        (guarded("B[0] = x", "x < x"), read.to_owned(), false),
    ] {
        let reports = integers(&before, &after);
        let trapped = open(&reports);
        assert_eq!(trapped.is_empty(), is_equal, "{before}\n---\n{after}\n{trapped:#?}");
    }
}

#[test]
fn a_parameter_of_constant_size_that_is_written_first_may_hold_nothing() {
    let text = |body: &str| {
        let head = "@T.prim_func\ndef main(a: T.handle, b: T.handle):\n    A = T.match_buffer(a, (3,), \"int32\")\n    \
                    B = T.match_buffer(b, (3,), \"int32\")\n    t = T.alloc_buffer((3,), \"int32\")\n";
        let lines: Vec<String> = body.lines().map(|line| format!("    {line}\n")).collect();
        format!("{head}{}", lines.concat())
    };
    // What memory holds decides, so that only runs on terms can prove anything.
    let added = "for i in range(3):\n    if A[i] > 0:\n        B[i] = B[i] + A[i]";
    let cached = "for i in range(3):\n    if A[i] > 0:\n        t[i] = B[i]\n        B[i] = t[i] + A[i]";
    let always = "for i in range(3):\n    t[i] = B[i]\n    if A[i] > 0:\n        B[i] = t[i] + A[i]";
    let chosen = "for i in range(3):\n    B[i] = T.if_then_else(A[i] > 0, B[i], 0)";
    let taken =
        "for i in range(3):\n    if A[i] > 0:\n        t[i] = B[i]\n    else:\n        t[i] = 0\n    B[i] = t[i]";
    let both = "for i in range(3):\n    t[i] = B[i]\n    B[i] = T.if_then_else(A[i] > 0, t[i], 0)";
    for (before, after, is_equal) in [
        (added, cached, true),
        (added, always, false),
        // A caller of a program that reads it gives it.
        (always, added, true),
        (chosen, taken, true),
        (chosen, both, false),
        (both, chosen, true),
    ] {
        let reports = pair::validate(&read(&text(before)), &read(&text(after)), &[], &judge()).unwrap().reports;
        let left = open(&reports);
        assert_eq!(left.is_empty(), is_equal, "{before}\n---\n{after}\n{left:#?}");
    }
}

#[test]
fn memory_that_was_never_written_is_not_read_for_nothing() {
    let copy = "for i in range(n):\n    B[i] = A[i]";
    let back = "for i in range(n):\n    B[n - 1 - i] = A[n - 1 - i]";
    let set = "if x == 5:\n    t[0] = 1\n";
    assert_eq!(open(&integers(copy, back)), Vec::<String>::new());
    let guarded = format!("{set}for i in range(n):\n    if x == 5:\n        B[i] = t[0]");
    let hoisted = format!("{set}for i in range(n):\n    v: T.int32 = t[0]\n    if x == 5:\n        B[i] = v");
    let unused = "for i in range(n):\n    v: T.int32 = t[0]\n    B[n - 1 - i] = A[n - 1 - i]";
    let (one, indexed) = (format!("{set}B[0] = A[0] + x"), format!("{set}B[t[0] * 0] = A[0] + x"));
    let chosen = format!("{set}B[T.max(0, T.min(0, t[0]))] = A[0] + x");
    for (before, after) in
        [(copy, unused), (guarded.as_str(), hoisted.as_str()), (one.as_str(), &indexed), (one.as_str(), &chosen)]
    {
        assert_ne!(open(&integers(before, after)), Vec::<String>::new(), "{after}");
    }
}

#[test]
fn loops_that_never_run_have_no_last_iteration() {
    let body = "for i in range(-1, T.min(x, n)):\n    if 0 <= i:\n        B[i] = A[i]";
    assert_eq!(open(&integers(body, body)), Vec::<String>::new());
}

#[test]
fn a_condition_that_is_a_number_is_no_internal_error() {
    let before = "for i in range(n):\n    if T.Cast(\"bool\", x):\n        B[i] = A[i]";
    let after = "for i in range(n):\n    if x == 1:\n        B[n - 1 - i] = A[n - 1 - i]";
    let right = after.replace("x == 1", "x != 0");
    assert!(integers(before, after).iter().all(|report| !report.is_internal()));
    assert!(is_refuted(&integers(before, after)));
    assert_eq!(open(&integers(before, &right)), Vec::<String>::new());
}

#[test]
fn a_long_chain_of_names_ends_in_an_answer() {
    let chain = |index: &str| {
        let names: Vec<String> = (1..18).map(|i| format!("    v{i}: T.int32 = v{0} + v{0}\n", i - 1)).collect();
        format!("for i in range(n):\n    v0: T.int32 = A[{index}]\n{}    B[{index}] = v17", names.concat())
    };
    assert!(!integers(&chain("i"), &chain("n - 1 - i")).is_empty());
}

#[test]
fn a_choice_evaluates_both_sides() {
    let choice = |cond: &str, value: &str| format!("B[0] = T.Select({cond}, {value}, 1)");
    let branch = |cond: &str, value: &str| format!("if {cond}:\n    B[0] = {value}\nelse:\n    B[0] = 1");
    // A value before the first element, a division by zero, memory that was never written, memory that is overwritten.
    for (cond, value) in
        [("x > 0", "A[x - x % n - n]"), ("x != 0", "T.floordiv(8, x)"), ("x == 5", "t[0]"), ("B[0] > 3", "B[0]")]
    {
        assert_ne!(open(&integers(&branch(cond, value), &choice(cond, value))), Vec::<String>::new(), "{value}");
    }
    assert_eq!(open(&integers(&branch("A[0] > x", "A[0]"), &choice("A[0] > x", "A[0]"))), Vec::<String>::new());
    let nested = "if A[0] > 0:\n    if t[0] > 0:\n        B[0] = 1";
    assert_ne!(open(&integers(nested, "if A[0] > 0 and t[0] > 0:\n    B[0] = 1")), Vec::<String>::new());
    let nested = "if A[0] > 0:\n    if A[n - 1] > 0:\n        B[0] = 1";
    assert_eq!(open(&integers(nested, "if A[0] > 0 and A[n - 1] > 0:\n    B[0] = 1")), Vec::<String>::new());
}

#[test]
fn operands_are_exchanged_only_where_that_keeps_every_bit() {
    let params = "a: (n,), b: (n,), c: (n,)";
    let of = |value: &str| read(&program(params, &format!("for i in range(n):\n    C[i] = {value}")));
    let exchanged = |one: &str, other: &str| {
        let judged = pair::validate(&of(one), &of(other), &[], &judge()).unwrap();
        open(&judged.reports).is_empty()
    };
    assert!(exchanged("A[i] * B[i]", "B[i] * A[i]"));
    for call in ["T.max(X, Y)", "T.min(X, Y)", "X - Y", "X / Y"] {
        let of = |x: &str, y: &str| call.replace('X', x).replace('Y', y);
        assert!(!exchanged(&of("A[i]", "B[i]"), &of("B[i]", "A[i]")), "{call}");
    }
}

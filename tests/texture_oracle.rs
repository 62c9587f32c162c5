//! The judge against the interpreter on programs with textures and vectors: hostile ones written by hand, and random ones
//! with and without mistakes.
//!
//! What the judge proves must be so: a proved program runs without a trap, and two programs that are proved equal leave the
//! same and are defined alike.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::sync::Arc;

mod texels;

use texels::{Random, Run, changed, naively_vectorized, runs};
use tilewright::passes::{Rewritten, lower_texture, vectorize};
use tilewright_ir::visit::Rewrite;
use tilewright_ir::{
    BinaryOp, BufferChange, BufferClaim, Evidence, Expr, IndexMap, PrimFunc, Stmt, StmtKind, Var, validate,
};
use tilewright_verify::{Config, Judge, ReasonKind, Report, Verdict};

fn read(head: &str, body: &str) -> PrimFunc {
    let text = format!("from tvm.script import tir as T\n\n@T.prim_func\ndef main({head}):\n{body}");
    tilewright_script::read_module(&text).unwrap_or_else(|error| panic!("{error:?}\n{text}")).funcs.remove(0)
}

fn judge() -> Judge {
    Judge::new(Config::default(), tilewright_search::strategies()).unwrap()
}

fn open(reports: &[Report]) -> Vec<String> {
    let open = reports.iter().filter(|report| !report.verdict.is_proved());
    open.map(|report| format!("{} {}: {}", report.obligation, report.subject, report.verdict)).collect()
}

/// Each buffer of the first program is the one of the second with its name.
fn same_names(before: &PrimFunc, after: &PrimFunc) -> Evidence {
    let claim = |old: tilewright_ir::Buffer| {
        let new = after.buffers().into_iter().find(|new| new.name == old.name)?;
        let vars: Vec<Var> = (0..old.rank()).map(|axis| Var::index(format!("x{axis}"))).collect();
        let outputs = vars.iter().map(Expr::from).collect();
        let map = IndexMap::new(vars, old.shape.clone(), outputs, Vec::new()).unwrap();
        let change = BufferChange::Rename;
        Some(BufferClaim { before: old, after: new, map, change, padded_axes: Vec::new() })
    };
    Evidence {
        pass: "test".into(),
        buffers: before.buffers().into_iter().filter_map(claim).collect(),
        ..Evidence::default()
    }
}

fn pair(head: &str, before: &str, after: &str) -> (PrimFunc, PrimFunc, Vec<String>) {
    let (before, after) = (read(head, before), read(head, after));
    let evidence = same_names(&before, &after);
    let reports = judge().check_pass(&before, &after, &evidence);
    (before, after, open(&reports))
}

/// A program that traps, and is not proved.
#[track_caller]
fn traps(func: &PrimFunc) {
    assert!(matches!(runs(func, 1), Run::Trap(_)), "it runs");
    assert_ne!(open(&judge().check_program(func)), Vec::<String>::new());
}

/// A program that runs after one that runs too, and leaves the same; nothing about it is refuted.
#[track_caller]
fn not_refuted(func: &PrimFunc) {
    assert!(matches!(runs(func, 1), Run::Done(_)), "{:?}", runs(func, 1));
    let reports = judge().check_program(func);
    assert!(!reports.iter().any(|report| matches!(report.verdict, Verdict::Refuted(_))), "{:#?}", open(&reports));
}

/// A pair that is proved as it stands is not proved with one line changed, and the change can be seen in a run.
#[track_caller]
fn only_without(head: &str, before: &str, right: &str, line: &str, changed: &str) {
    let (old, new, found) = pair(head, before, right);
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(runs(&old, 1), runs(&new, 1));
    let wrong = right.replacen(line, changed, 1);
    assert_ne!(wrong, right);
    let (old, new, found) = pair(head, before, &wrong);
    assert!(matches!(runs(&old, 1), Run::Done(_)), "{:?}", runs(&old, 1));
    assert_ne!(runs(&old, 1), runs(&new, 1));
    assert_ne!(found, Vec::<String>::new(), "{changed} is proved");
}

const COPY: &str = "X: T.Buffer((4, 2, 4), \"int32\"), Y: T.Buffer((4, 2, 4), \"int32\")";

#[test]
fn a_texture_seen_in_two_shapes_is_not_taken_for_written() {
    let body = "    P = T.texture2d_alloca(height=4, width=2, dtype=\"int32\", scope=\"texture\")
    Q = T.decl_buffer((2, 4, 4), \"int32\", data=P.data, scope=\"texture\", axis_separators=[1, 2])
    for i, j in T.grid(2, 2):
        P[i, j, 0:4] = X[i, j, 0:4]
    for i, j in T.grid(2, 2):
        Y[i, j, 0:4] = ";
    not_refuted(&read(COPY, &format!("{body}P[i, j, 0:4]\n")));
    traps(&read(COPY, &format!("{body}Q[i, j, 0:4]\n")));
}

#[test]
fn two_shapes_of_a_texture_written_at_once_are_not_proved_apart() {
    let body = "    P = T.texture2d_alloca(height=4, width=2, dtype=\"int32\", scope=\"texture\")
    Q = T.decl_buffer((8, 1, 4), \"int32\", data=P.data, scope=\"texture\", axis_separators=[1, 2])
    for i in T.parallel(4):
        P[i, 0, 0:4] = X[i, 0, 0:4]
        P[i, 0, 0:4] = X[i, 1, 0:4]
    for i, j in T.grid(4, 2):
        Y[i, j, 0:4] = X[i, j, 0:4]
";
    not_refuted(&read(COPY, body));
    traps(&read(COPY, &body.replace("P[i, 0, 0:4] = X[i, 1", "Q[i, 0, 0:4] = X[i, 1")));
}

#[test]
fn two_stores_under_conditions_that_meet_in_one_texel_are_not_proved_apart() {
    let body = "    P = T.texture2d_alloca(height=1, width=9, dtype=\"int32\", scope=\"texture\")
    for i in T.parallel(4):
        for j in T.serial(2):
            if j == 0:
                P[0, i * 2 + j, 0:4] = X[i, j, 0:4]
            if j == 1:
                P[0, i * 2 + j, 0:4] = X[i, j, 0:4]
    for i, j in T.grid(4, 2):
        Y[i, j, 0:4] = P[0, i * 2 + j, 0:4]
";
    not_refuted(&read(COPY, body));
    let wrong = body
        .replacen("P[0, i * 2 + j, 0:4] = X", "P[0, i + j, 0:4] = X", 2)
        .replace("P[0, i * 2 + j, 0:4]\n", "X[i, j, 0:4]\n");
    traps(&read(COPY, &wrong));
}

#[test]
fn iterations_one_after_the_other_may_write_one_texel() {
    let body = "    P = T.texture2d_alloca(height=1, width=4, dtype=\"int32\", scope=\"texture\")
    for t in T.serial(2):
        for i in T.parallel(4):
            P[0, (i + t) % 4, 0:4] = X[i, t, 0:4]
    for i, j in T.grid(4, 2):
        Y[i, j, 0:4] = P[0, i, 0:4]
";
    not_refuted(&read(COPY, body));
    let wrong = body.replace("(i + t) % 4", "(i + t) // 2");
    traps(&read(COPY, &wrong));
}

#[test]
fn memory_that_is_allocated_anew_holds_nothing() {
    let body = "    P = T.texture2d_alloca(height=4, width=2, dtype=\"int32\", scope=\"texture\")
    for i, j in T.grid(4, 2):
        P[i, j, 0:4] = X[i, j, 0:4]
    for i, j in T.grid(4, 2):
        Y[i, j, 0:4] = P[i, j, 0:4]
";
    let right = read(COPY, body);
    not_refuted(&right);
    let mut wrong = right;
    let StmtKind::Allocate { buffer, body } = &wrong.body.kind else { panic!("{:?}", wrong.body) };
    let StmtKind::Seq(nests) = &body.kind else { panic!("{body:?}") };
    wrong.body = Stmt::seq(
        nests
            .iter()
            .map(|nest| Stmt::new(StmtKind::Allocate { buffer: buffer.clone(), body: Arc::new(nest.clone()) }))
            .collect(),
    );
    assert_ne!(open(&judge().check_program(&wrong)), Vec::<String>::new());
}

#[test]
fn a_condition_that_reads_is_not_asked_before_the_one_that_guards_it() {
    let head = "X: T.Buffer((4,), \"int32\"), Y: T.Buffer((4,), \"int32\")";
    let start = "    P = T.alloc_buffer((1, 4, 4), \"int32\", scope=\"texture\")
    A = T.alloc_buffer((4,), \"int32\")
    A[0] = X[0]
";
    let end = "    for i in T.serial(4):
        Y[i] = X[i]
";
    let before = format!(
        "{start}    for i in T.serial(4):
        for c in T.vectorized(4):
            if i * 4 + c < 4:
                if A[i] > -999:
                    P[0, i, c] = X[c]
{end}"
    );
    let right = format!(
        "{start}    for i in T.serial(4):
        P[0, i, 0:4] = T.if_then_else(T.Ramp(i * 4, 1, 4) < T.Broadcast(4, 4), \
         T.if_then_else(T.Broadcast(A[i], 4) > T.Broadcast(-999, 4), X[0:4], T.Broadcast(0, 4)), T.Broadcast(0, 4))
{end}"
    );
    let wrong = format!(
        "{start}    for i in T.serial(4):
        if A[i] > -999:
            P[0, i, 0:4] = T.if_then_else(T.Ramp(i * 4, 1, 4) < T.Broadcast(4, 4), X[0:4], T.Broadcast(0, 4))
{end}"
    );
    only_without(head, &before, &right, &right, &wrong);
}

#[test]
fn lanes_without_a_value_lie_where_the_map_says() {
    let head = "X: T.Buffer((2, 6), \"int32\"), Y: T.Buffer((2, 6), \"int32\")";
    // Behind the conditions k is 0, so that a column k + w would be the right one there.
    let before = "    P = T.alloc_buffer((1, 2, 2, 4), \"int32\", scope=\"texture:weight\")
    for k, w in T.grid(2, 2):
        for e in T.vectorized(4):
            if k * 4 + e < 6 and e > 1:
                P[0, k, w, e] = X[w, k * 4 + e]
    for b, d in T.grid(2, 6):
        if d < 6 and d % 4 > 1 and d < 4:
            Y[b, d] = P[0, d // 4, b, d % 4]
";
    let func = read(head, before);
    let Rewritten { func: right, evidence, .. } = lower_texture(&func).unwrap();
    assert_eq!(open(&judge().check_pass(&func, &right, &evidence)), Vec::<String>::new());
    assert_eq!(runs(&func, 1), runs(&right, 1));
    let mut wrong = right.clone();
    wrong.body = Stride.stmt(&right.body).unwrap();
    assert_ne!(runs(&func, 1), runs(&wrong, 1));
    assert_ne!(open(&judge().check_pass(&func, &wrong, &evidence)), Vec::<String>::new());
}

/// A store to column `k * 2 + w` goes to `k + w`.
struct Stride;

impl Rewrite for Stride {
    type Error = std::convert::Infallible;

    fn stmt(&mut self, stmt: &Stmt) -> Result<Stmt, Self::Error> {
        let StmtKind::Store { buffer, indices, value } = &stmt.kind else { return self.stmt_children(stmt) };
        let [row, Expr::Binary(BinaryOp::Add, blocks, column), lanes] = indices.as_slice() else {
            return Ok(stmt.clone());
        };
        let Expr::Binary(BinaryOp::Mul, k, _) = &**blocks else { return Ok(stmt.clone()) };
        let indices = vec![row.clone(), (**k).clone() + (**column).clone(), lanes.clone()];
        Ok(Stmt::store(buffer, indices, value.clone()))
    }
}

#[test]
fn nothing_is_read_that_was_not_read_before() {
    let head = "X: T.Buffer((4,), \"int32\"), Y: T.Buffer((4,), \"int32\")";
    let before = "    A = T.alloc_buffer((4,), \"int32\")
    A[0] = X[0]
    for i in T.serial(4):
        Y[i] = X[i]
";
    // Of a condition, of an index, of an extent: what stands there, the same in other words, and the same of what is read.
    for (place, right, same, read) in [
        ("        Y[i]", "        if i < 4:\n            Y[i]", "i < 4", "A[i] == A[i]"),
        ("Y[i]", "Y[i + 1 - 1]", "i + 1 - 1", "i + A[i] - A[i]"),
        ("T.serial(4)", "T.serial(4 + 1 - 1)", "4 + 1 - 1", "4 + A[1] - A[1]"),
    ] {
        only_without(head, before, &before.replace(place, right), same, read);
    }
}

#[test]
fn a_condition_that_always_holds_may_go_in_front_of_others() {
    let head = "X: T.Buffer((5,), \"int32\"), Y: T.Buffer((5,), \"int32\")";
    let before = "    for i in T.serial(5):
        Y[i] = T.if_then_else(i < 5, T.if_then_else(i < 3, X[i], 0), 7)
";
    let right = "    for i in T.serial(5):\n        Y[i] = T.if_then_else(i < 3, X[i], 0)\n";
    only_without(head, before, right, "i < 3", "i < 4");
    // The same where it does not always hold.
    let (old, new, found) = pair(head, &before.replace("i < 5", "i < 4"), right);
    assert_ne!(runs(&old, 1), runs(&new, 1));
    assert_ne!(found, Vec::<String>::new());
}

#[test]
fn an_index_that_is_read_is_compared_where_the_layout_puts_it() {
    let text = |map: &str| {
        format!(
            "    T.func_attr({{\"layout_transform_map\": {{X: [{map}]}}}})
    for i in T.serial(7):
        Y[i] = X[I[i] % 3, i % 5]
"
        )
    };
    let head = "X: T.Buffer((3, 5), \"int32\"), I: T.Buffer((7,), \"int32\"), Y: T.Buffer((7,), \"int32\")";
    for map in ["lambda a, b: [b, a]", "lambda a, b: [a, b // 2, b % 2]"] {
        let before = read(head, &text(map));
        let Rewritten { func: right, evidence, .. } = tilewright::passes::apply_buffer_transforms(&before).unwrap();
        let found = |after: &PrimFunc| open(&judge().check_pass(&before, after, &evidence));
        assert_eq!(found(&right), Vec::<String>::new(), "{map}");
        let mut n_wrong = 0;
        for wrong in
            (0..80).map(|seed| changed(&mut Random(seed), &right)).filter(|wrong| runs(wrong, 1) != runs(&right, 1))
        {
            assert_ne!(found(&wrong), Vec::<String>::new(), "{}", tilewright_script::print_func(&wrong));
            n_wrong += 1;
        }
        assert!(n_wrong > 10, "{map}: {n_wrong}");
    }
}

#[test]
fn parts_may_change_where_the_whole_does_not() {
    let head = "X: T.Buffer((5,), \"int32\"), Y: T.Buffer((5,), \"int32\")";
    let text = |value: &str| format!("    for i in T.serial(5):\n        Y[i] = {value}\n");
    for (old, same, other) in [
        ("X[i] // (i * 0 + 6) // 1", "X[i] // 6", "X[i] // 5"),
        ("T.Select(i < 8, T.if_then_else(0 <= i and i < 3, X[i], 0), 1)", "T.if_then_else(i < 3, X[i], 0)", "X[i]"),
        ("T.if_then_else(i < 8, T.if_then_else(i < 3, X[i], 0), 1)", "T.if_then_else(i < 3, X[i], 0)", "1"),
    ] {
        let refuted = |new: &str| {
            let (before, after) = (read(head, &text(old)), read(head, &text(new)));
            let evidence = same_names(&before, &after);
            let reports = judge().check_pass(&before, &after, &evidence);
            let same = runs(&before, 1) == runs(&after, 1);
            assert!(same || !open(&reports).is_empty(), "{new}");
            let differs =
                |verdict: &Verdict| verdict.reason().is_some_and(|reason| reason.kind() == ReasonKind::Differs);
            (same, reports.iter().any(|report| differs(&report.verdict)))
        };
        assert_eq!(
            (refuted(old), refuted(same), refuted(other)),
            ((true, false), (true, false), (false, true)),
            "{old}"
        );
    }
}

#[test]
fn a_value_that_wraps_is_no_fault_and_another_one_is() {
    let head = "Y: T.Buffer((3,), \"uint64\")";
    let text = |value: &str| format!("    for i in T.serial(3):\n        Y[i] = {value}\n");
    let before = text("T.Select(i <= i, T.uint64(1), T.uint64(1)) - T.uint64(5)");
    let found = |new: &str| pair(head, &before, &text(new)).2;
    assert_eq!(found("T.uint64(1) - T.uint64(5)"), Vec::<String>::new());
    assert_ne!(found("T.uint64(1) - T.uint64(4)"), Vec::<String>::new());
    assert_ne!(found("T.uint64(5) - T.uint64(1)"), Vec::<String>::new());
}

#[test]
fn an_access_outside_is_found_through_names_of_indices() {
    let head = "X: T.Buffer((3, 30), \"int32\"), Y: T.Buffer((90,), \"int32\")";
    let text = |by: &str| {
        format!(
            "    for i, j in T.grid(3, 30):\n        k: T.int32 = i\n        Y[k * 30 + (j + 4) % {by}] = X[k, j]\n"
        )
    };
    let judged = |by: &str| judge().check_program(&read(head, &text(by)));
    assert!(open(&judged("30")).is_empty());
    let wrong = judged("31");
    assert!(wrong.iter().any(|report| matches!(report.verdict, Verdict::Refuted(_))), "{:#?}", open(&wrong));
}

#[test]
fn a_side_without_a_value_is_no_contradiction_and_no_proof() {
    let head = "X: T.Buffer((3,), \"uint16\"), Y: T.Buffer((3,), \"uint16\")";
    let before = "    for i in T.serial(3):\n        Y[i] = X[i] | -T.Cast(\"uint16\", i)\n";
    let (_, _, same) = pair(head, before, before);
    assert_eq!(same, Vec::<String>::new());
    let (old, new, found) = pair(head, before, &before.replace("\"uint16\", i)", "\"uint16\", i - 1)"));
    assert_ne!(runs(&old, 1), runs(&new, 1));
    assert!(!found.is_empty() && found.iter().all(|line| !line.contains("internal")), "{found:#?}");
}

/// How often what happened.
#[derive(Default)]
struct Count(std::collections::BTreeMap<&'static str, usize>);

impl Count {
    fn add(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }
}

/// Holds the judge against runs: a program as it is rewritten, rightly and thoughtlessly, with changes before and after.
fn attack(judge: &Judge, random: &mut Random, text: &str, count: &mut Count) {
    let (head, body) = text.split_once('|').unwrap();
    // What is raced for elsewhere is no obligation of a program by itself.
    let text_of_textures = text.contains("texture");
    let func = read(head, body);
    if validate(&func).is_err() {
        return count.add("malformed");
    }
    let expected: Vec<Run> = (1..3).map(|seed| runs(&func, seed)).collect();
    let traps = expected.iter().find(|run| matches!(run, Run::Trap(_)));
    if let (Some(traps), Ok(Rewritten { func: after, .. })) = (traps, lower_texture(&naively_vectorized(&func)))
        && text_of_textures
        && validate(&after).is_ok()
        && open(&judge.check_program(&after)).is_empty()
    {
        let found: Vec<Run> = (1..3).map(|seed| runs(&after, seed)).collect();
        let wrong = found.iter().any(|run| matches!(run, Run::Trap(_)));
        assert!(!wrong, "{text}\n{}\n{traps:?} {found:?}", tilewright_script::print_func(&after));
    }
    if !expected.iter().all(|run| matches!(run, Run::Done(_))) {
        return count.add("traps before");
    }
    for round in 0..8 {
        let mutated = if round % 4 == 3 { changed(random, &func) } else { func.clone() };
        let lanes = match round % 2 {
            0 => naively_vectorized(&mutated),
            _ => vectorize(&mutated).unwrap().func,
        };
        let Ok(Rewritten { func: mut after, evidence, .. }) = lower_texture(&lanes) else {
            count.add("not lowered");
            continue;
        };
        if round > 1 {
            after = changed(random, &after);
        }
        if validate(&after).is_err() {
            count.add("malformed after");
            continue;
        }
        let same = (1..3).zip(&expected).all(|(seed, expected)| runs(&after, seed) == *expected);
        if same && round > 1 {
            count.add("changed, and the same");
            continue;
        }
        let reports = judge.check_pass(&func, &after, &evidence);
        let worst = Verdict::worst(reports.iter().map(|report| report.verdict.clone())).unwrap();
        count.add(match (same, &worst) {
            (true, Verdict::Proved(_)) => "right, proved",
            (true, Verdict::Refuted(_)) => "right, refuted",
            (true, _) => "right, open",
            (false, Verdict::Refuted(_)) => "wrong, refuted",
            (false, _) => "wrong, open",
        });
        let alone = judge.check_program(&after);
        let proved = text_of_textures && open(&alone).is_empty();
        // Races on a buffer are no obligation of a program by itself: they are watched for when it is run.
        let traps = matches!(runs(&after, 1), Run::Trap(why) if !why.contains("race on Y["));
        assert!(!(proved && traps), "{text}\n{} is proved by itself", tilewright_script::print_func(&after));
        let text = || format!("{text}\n{}", tilewright_script::print_func(&after));
        if same && matches!(worst, Verdict::Refuted(_)) {
            eprintln!("{}\n{:#?}", text(), open(&reports));
        }
        if !same && worst.is_proved() {
            for report in &reports {
                eprintln!("{} {}: {} {}", report.obligation, report.subject, report.verdict, report.method);
            }
        }
        assert!(same || !worst.is_proved(), "{}\n{:?}", text(), runs(&after, 1));
    }
}

fn attacked(programs: usize, program: impl Fn(&mut Random) -> String) -> Count {
    let times: usize = std::env::var("ORACLE_CASES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    let (judge, mut count) = (judge(), Count::default());
    for seed in 0..programs * times {
        let mut random = Random(seed as u64);
        let text = program(&mut random);
        attack(&judge, &mut random, &text, &mut count);
    }
    eprintln!("{:?}", count.0);
    count
}

#[test]
fn no_wrong_texture_program_is_proved() {
    let count = attacked(250, texels::texture_program);
    assert!(count.0["right, proved"] > 20 && count.0["wrong, refuted"] > 50, "{:?}", count.0);
}

#[test]
fn no_wrong_vector_program_is_proved() {
    let count = attacked(250, texels::vector_program);
    assert!(count.0["right, proved"] > 20 && count.0["wrong, refuted"] > 20, "{:?}", count.0);
}

#[test]
fn what_does_not_write_every_texel_is_not_taken_for_the_whole_for_any_shape() {
    let whole = [
        "for i, j in T.grid(n, m):\n        if i < n:\n            P[i, j, 0:4] = X[i, j, 0:4]",
        "for j, i in T.grid(m, n):\n        P[i, j, 0:4] = X[i, j, 0:4]",
        "for o, q, j in T.grid((n + 3) // 4, 4, m):\n        if o * 4 + q < n:\n            P[o * 4 + q, j, 0:4] = X[0, j, 0:4]",
    ];
    let part = [
        "for i, j in T.grid(n, m):\n        if i < n and j > 0:\n            P[i, j, 0:4] = X[i, j, 0:4]",
        "for i, j in T.grid(n, m):\n        if i < n - 1:\n            P[i, j, 0:4] = X[i, j, 0:4]",
        "for i in range(n):\n        for j in range(i + 1):\n            if j < m:\n                P[i, j, 0:4] = X[i, j, 0:4]",
        "for i, j in T.grid(n, m):\n        if i <= j:\n            P[i, j, 0:4] = X[i, j, 0:4]",
        "for i, j in T.grid(n, m):\n        if i < n or j < m - 1:\n            if X[i, 0, 0] > 0:\n                P[i, j, 0:4] = X[i, j, 0:4]",
        "for i, j in T.grid(n, m):\n        if n < 5:\n            P[i, j, 0:4] = X[i, j, 0:4]",
        "for i, j, t in T.grid(n, m, 1):\n        P[i, T.min(j, m - 1) // 2 + j // 2, 0:4] = X[i, j, 0:4]",
        "for o, q, j in T.grid(n // 4, 4, m):\n        P[o * 4 + q, j, 0:4] = X[0, j, 0:4]",
        "for o, q, j in T.grid((n + 3) // 4, 3, m):\n        if o * 4 + q < n:\n            P[o * 4 + q, j, 0:4] = X[0, j, 0:4]",
        "for i, j in T.grid(m, n):\n        if i < n and j < m:\n            P[i, j, 0:4] = X[i, j, 0:4]",
        "for i, j in T.grid(n, m):\n        P[(i * 2) % n, j, 0:4] = X[i, j, 0:4]",
        "for i, j in T.grid(n * m, 1):\n        P[i // n, i % n, 0:4] = X[0, 0, 0:4]",
    ];
    let text = |nest: &str| {
        format!(
            "from tvm.script import tir as T\n\n@T.prim_func\ndef main(x: T.handle, y: T.handle):\n    n = T.int32()\n    \
             m = T.int32()\n    X = T.match_buffer(x, (n, m, 4), \"int32\")\n    Y = T.match_buffer(y, (n, m, 4), \"int32\")\n    \
             P = T.texture2d_alloca(height=n, width=m, dtype=\"int32\", scope=\"texture\")\n    {nest}\n    \
             for a, b in T.grid(n, m):\n        Y[a, b, 0:4] = P[a, b, 0:4]\n"
        )
    };
    let judge = judge();
    let defined = |nest: &str| {
        let func = tilewright_script::read_module(&text(nest)).unwrap().funcs.remove(0);
        let reports = judge.check_program(&func);
        reports.into_iter().find(|report| report.obligation.id() == "defined").map(|report| report.verdict).unwrap()
    };
    for nest in whole {
        assert!(defined(nest).is_proved(), "{nest}: {}", defined(nest));
    }
    for nest in part {
        assert!(!defined(nest).is_proved(), "{nest} is taken for the whole");
    }
}

#[test]
fn a_name_of_what_wraps_is_not_taken_for_the_integers() {
    let head = "X: T.Buffer((3,), \"int32\"), Y: T.Buffer((3,), \"int32\")";
    let text = |value: &str| {
        format!("    for i in T.serial(3):\n        k: T.int32 = X[i] * 1073741824\n        Y[i] = {value}\n")
    };
    for (old, new) in [
        ("T.Select(k // 1073741824 == X[i], 1, 2)", "1"),
        ("T.if_then_else(k // 1073741824 == X[i], X[i], 2)", "X[i]"),
        ("k // 1073741824", "X[i]"),
    ] {
        let (before, after, found) = pair(head, &text(old), &text(new));
        assert_ne!(runs(&before, 1), runs(&after, 1), "{old}");
        assert_ne!(found, Vec::<String>::new(), "{old}");
        let (_, _, same) = pair(head, &text(old), &text(old));
        assert_eq!(same, Vec::<String>::new(), "{old}");
    }
}

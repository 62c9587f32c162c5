//! The primitives of a schedule: each step of each program is proved, and its broken twins are not.
//!
//! `tests/schedule/*.txt` has the programs, in the form that `equivalence/pairs.rs` describes. Behind `-- schedule` stand the steps, one
//! on each line. `wrong` has changes of the program that the last step makes, as it is printed; each is compared with the program before
//! that step in every way that `validate` knows.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

#[path = "equivalence/pairs.rs"]
mod pairs;

use pairs::{change, is_proved, is_refuted, judge, open, program, read};
use tilewright::passes::{Rewritten, pass_by_name};
use tilewright::pipeline::pair::{self, Given};
use tilewright::te::evaluate;
use tilewright_ir::{PrimFunc, ScheduleStep, validate};
use tilewright_script::print_func;
use tilewright_verify::Judge;

/// A program, the steps of its schedule, and changes that break the last of them.
struct Scheduled {
    name: String,
    before: String,
    steps: Vec<String>,
    wrong: Vec<(String, String)>,
}

fn scheduled(file: &str) -> Vec<Scheduled> {
    let path = format!("{}/tests/schedule/{file}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let lines = |part: &str| part.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let case = |text: &str| {
        let (head, rest) = text.split_once("\n-- before\n").unwrap();
        let (name, params) = head.split_once('\n').unwrap();
        let (body, rest) = rest.split_once("\n-- schedule\n").unwrap();
        let (steps, wrong) = rest.split_once("\n-- wrong\n").unwrap_or((rest, ""));
        let wrong = lines(wrong).iter().map(|line| change(line)).collect();
        Scheduled { name: name.to_owned(), before: program(params, body), steps: lines(steps), wrong }
    };
    text.split("\n== ").skip(1).map(case).collect()
}

impl Scheduled {
    /// The programs after each step, the one before all of them first.
    fn run(&self, judge: &Judge) -> Vec<PrimFunc> {
        let mut func = read(&self.before);
        func.attrs.schedule = self.steps.iter().map(|step| ScheduleStep::parse(step, None).unwrap()).collect();
        let mut programs = vec![func];
        for step in &self.steps {
            let before = programs.last().unwrap();
            let pass = pass_by_name(step.split_once('=').unwrap().0).unwrap();
            let Rewritten { func, evidence, .. } =
                (pass.run)(before).unwrap_or_else(|found| panic!("{}, {step}: {}", self.name, found[0]));
            validate(&func).unwrap_or_else(|found| panic!("{}, {step}: {found:?}\n{}", self.name, print_func(&func)));
            // The program before is the same as itself.
            let same = judge.check_pass(before, before, &tilewright_ir::Evidence::default());
            assert!(is_proved(&same), "{}, {step}: {:?}", self.name, open(&same));
            let reports = judge.check_pass(before, &func, &evidence);
            assert!(is_proved(&reports), "{}, {step}: {:#?}\n{}", self.name, open(&reports), print_func(&func));
            programs.push(func);
        }
        assert!(programs.last().unwrap().attrs.schedule.is_empty());
        programs
    }

    /// Checks that the broken twins of the last step are not proved; returns how many a run refuted.
    fn twins(&self, programs: &[PrimFunc], judge: &Judge) -> usize {
        let [.., before, after] = programs else { panic!("{} has no step", self.name) };
        let printed = print_func(after);
        let mut n_refuted = 0;
        // Threads combine floats in another order, so that without the premise nothing would be proved, right or wrong.
        let reassociate = self.steps.last().is_some_and(|step| step.starts_with("allreduce="));
        let given = Given { maps: &[], assumed: &[], reassociate };
        if reassociate {
            let right = pair::validate_given(before, &read(&printed), given, judge).unwrap();
            assert!(is_proved(&right.reports), "{}: {:?}", self.name, open(&right.reports));
        }
        for (old, new) in &self.wrong {
            assert!(printed.contains(old.as_str()), "{}: no `{old}` in\n{printed}", self.name);
            let twin = read(&printed.replacen(old.as_str(), new, 1));
            let judged = pair::validate_given(before, &twin, given, judge).unwrap();
            assert!(!is_proved(&judged.reports), "{}: `{new}` for `{old}` is proved", self.name);
            n_refuted += usize::from(is_refuted(&judged.reports));
        }
        n_refuted
    }
}

/// Proves all programs of a file, and none of their broken twins. At least `least` of the twins are refuted by a run.
fn check(file: &str, least: usize) {
    let (judge, cases) = (judge(), scheduled(file));
    assert!(cases.len() >= 3, "{file} has {} programs", cases.len());
    assert!(cases.iter().map(|case| case.wrong.len()).sum::<usize>() >= 2);
    let n_refuted: usize = cases.iter().map(|case| case.twins(&case.run(&judge), &judge)).sum();
    assert!(n_refuted >= least, "{file}: {n_refuted} twins are refuted by a run");
}

macro_rules! files {
    ($($name:ident: $file:literal, $least:literal;)*) => {$(
        #[test]
        fn $name() {
            check($file, $least);
        }
    )*};
}

files! {
    split_is_proved: "split", 1;
    fuse_is_proved: "fuse", 4;
    reorder_is_proved: "reorder", 4;
    loop_kind_is_proved: "loop_kind", 4;
    allreduce_is_proved: "allreduce", 3;
    unroll_is_proved: "unroll", 1;
    compute_at_is_proved: "compute_at", 1;
    compute_inline_is_proved: "compute_inline", 1;
    double_buffer_is_proved: "double_buffer", 1;
}

/// A function over two matrices with a loop of lanes.
fn lanes(kind: &str, body: &str) -> PrimFunc {
    let head = format!("for i in range(n):\n    for c in {kind}:\n        ");
    read(&program("a: (n, 9), b: (n, 9)", &(head + &body.replace('\n', "\n        "))))
}

#[test]
fn lanes_that_do_not_race_may_run_in_order() {
    let judge = judge();
    let bodies = [
        "B[i, c] = A[i, c]",
        "if c + i < 7:\n    B[i, c] = A[i, c]",
        "B[i, c] = A[i, c]\nA[i, c] = B[i, c] * T.float32(2)",
    ];
    for body in bodies {
        let before = lanes("T.vectorized(7)", body);
        let Rewritten { func, evidence, notes } = (pass_by_name("vectorize").unwrap().run)(&before).unwrap();
        assert!(print_func(&func).contains("T.grid(n, 7)") && notes.len() == 1, "{}", print_func(&func));
        let reports = judge.check_pass(&before, &func, &evidence);
        assert!(is_proved(&reports), "{body}: {:?}", open(&reports));
        assert!(reports.iter().any(|report| report.obligation == tilewright_verify::Obligation::Race));
        // A loop in order is no loop of lanes, and neither is one of threads.
        for (old, new) in [(&func, &before), (&lanes("T.parallel(7)", body), &func)] {
            assert!(!is_proved(&judge.check_pass(old, new, &evidence)), "{body}");
        }
    }
}

#[test]
fn lanes_that_race_are_not_what_a_loop_in_order_does() {
    let judge = judge();
    for body in
        ["B[i, 3] = A[i, c]", "B[i, c + 1] = B[i, c]", "B[i, c] = B[i, 2]", "A[i, c] = B[i, 6 - c]\nB[i, c] = A[i, c]"]
    {
        let before = lanes("T.vectorized(7)", body);
        let Rewritten { func, evidence, .. } = (pass_by_name("vectorize").unwrap().run)(&before).unwrap();
        assert!(!is_proved(&judge.check_pass(&before, &func, &evidence)), "{body}");
    }
}

/// A name, a program, and wrong changes of its text.
type Attached = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// TE programs in which a stage is computed in a loop of another one and has loops of its own, and changes that break the result.
const ATTACHED: [Attached; 5] = [
    (
        "tiles of tiles, with vectors",
        "A = te.placeholder((n + 2, m), name='A')
T = te.compute((n + 2, m), lambda i, j: A[i, j] * 2.0, name='T')
B = te.compute((n, m), lambda y, x: T[y, x] + T[y + 1, x] + T[y + 2, x], name='B')
s = te.create_schedule(B.op)
y, x = s[B].op.axis
yo, xo, yi, xi = s[B].tile(y, x, 7, 5)
i, j = s[T].op.axis
io, ii = s[T].split(i, factor=4)
jo, ji = s[T].split(j, factor=2)
s[T].reorder(io, jo, ii, ji)
s[T].vectorize(ji)
s[T].compute_at(s[B], xo)",
        &[
            ("i_outer * 4 + i_inner < 9", "i_outer * 4 + i_inner < 8"),
            ("j_outer * 2 + j_inner < 5", "j_outer * 2 + j_inner < 4"),
        ],
    ),
    (
        "a reduced loop outside of one over an axis, written out",
        "A = te.placeholder((n, 13), name='A')
k = te.reduce_axis((0, 13), name='k')
T = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name='T')
B = te.compute((n,), lambda y: T[y] * 3.0, name='B')
s = te.create_schedule(B.op)
yo, yi = s[B].split(B.op.axis[0], factor=7)
io, ii = s[T].split(T.op.axis[0], factor=4)
ko, ki = s[T].split(s[T].op.reduce_axis[0], factor=5)
s[T].reorder(io, ko, ii, ki)
s[T].unroll(ki)
s[T].compute_at(s[B], yo)",
        &[
            ("k_outer * 5 + 3 < 13", "k_outer * 5 + 3 < 14"),
            ("i_init_outer * 4 + i_init_inner < 7", "i_init_outer * 4 + i_init_inner < 6"),
        ],
    ),
    (
        "parts, and reduced loops in another order",
        "A = te.placeholder((n, 3, 5), dtype='int32', name='A')
k = te.reduce_axis((0, 3), name='k')
l = te.reduce_axis((0, 5), name='l')
T = te.compute((n,), lambda i: te.sum(A[i, k, l], axis=[k, l]), name='T')
B = te.compute((n,), lambda y: T[y] * 3, name='B')
s = te.create_schedule(B.op)
yo, yi = s[B].split(B.op.axis[0], factor=6)
io, ii = s[T].split(T.op.axis[0], nparts=4)
s[T].reorder(io, ii, s[T].op.reduce_axis[1], s[T].op.reduce_axis[0])
s[T].compute_at(s[B], yo)",
        &[("i_outer * 2 + i_inner < 6", "i_outer * 2 + i_inner < 5"), ("k, l]", "k, 0]")],
    ),
    (
        "fused loops in parts that run at once, and a stage in a loop of theirs",
        "A = te.placeholder((n + 6, 12), name='A')
Z = te.compute((n + 4, 12), lambda p, q: A[p, q] + A[p + 2, q], name='Z')
T = te.compute((n + 2, 12), lambda i, j: Z[i, j] + Z[i + 2, j], name='T')
B = te.compute((n, 12), lambda y, x: T[y, x] + T[y + 2, x], name='B')
s = te.create_schedule(B.op)
yo, yi = s[B].split(B.op.axis[0], factor=7)
f = s[T].fuse(T.op.axis[0], T.op.axis[1])
fo, fi = s[T].split(f, nparts=5)
s[T].parallel(fi)
s[T].compute_at(s[B], yo)
po, pi = s[Z].split(Z.op.axis[0], factor=3)
s[Z].compute_at(s[B], yo)",
        &[("(p_outer * 3 + p_inner) < n + 4", "(p_outer * 3 + p_inner) < n + 3"), ("T.parallel(22)", "T.parallel(21)")],
    ),
    (
        "a copy of an input, in a loop that is fused first",
        "A = te.placeholder((n, 9), name='A')
B = te.compute((n, 9), lambda y, x: A[y, 8 - x] + A[y, x], name='B')
s = te.create_schedule(B.op)
L = s.cache_read(A, 'local', [B])
yo, yi = s[B].split(B.op.axis[0], factor=4)
f = s[L].fuse(s[L].op.axis[0], s[L].op.axis[1])
fo, fi = s[L].split(f, factor=8)
s[L].compute_at(s[B], yo)",
        &[("* 8 + ", "* 7 + "), (" < 36", " < 35")],
    ),
];

/// TE programs that bind a loop of a reduction of integers to threads, and changes that break the result.
const ACROSS: [Attached; 3] = [
    (
        "a value for each thread",
        "A = te.placeholder((n, 12), dtype='int32', name='A')
k = te.reduce_axis((0, 12), name='k')
B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name='B')
s = te.create_schedule(B.op)
s[B].bind(B.op.axis[0], te.thread_axis('blockIdx.x'))
s[B].bind(s[B].op.reduce_axis[0], te.thread_axis('threadIdx.x'))",
        &[
            ("values[k] = A[i, k]", "values[k] = A[i, 11 - k] * 2"),
            ("for k_r in range(12)", "for k_r in range(11)"),
            ("all[0] + values[k_r]", "all[0] + values[k]"),
            ("if k == 0", "if k == 12"),
            ("T.tvm_storage_sync(\"shared\")", "T.evaluate(0)"),
        ],
    ),
    (
        "several values for each thread, and a remainder",
        "A = te.placeholder((n, 105), dtype='int32', name='A')
k = te.reduce_axis((0, 105), name='k')
B = te.compute((n,), lambda i: te.max(A[i, k], axis=k), name='B')
s = te.create_schedule(B.op)
s[B].bind(B.op.axis[0], te.thread_axis('blockIdx.x'))
ko, ki = s[B].split(s[B].op.reduce_axis[0], factor=14)
s[B].bind(ki, te.thread_axis('threadIdx.x'))",
        &[
            ("if k_outer * 14 + k_inner < 105", "if k_outer * 14 + k_inner < 104"),
            ("for k_outer in range(8)", "for k_outer in range(7)"),
            ("values[k_inner] = own[0]", "values[k_inner] = own[0] + 1"),
        ],
    ),
    (
        "the outer part of a split",
        "A = te.placeholder((n, m, 24), dtype='int32', name='A')
k = te.reduce_axis((0, 24), name='k')
B = te.compute((n, m), lambda i, j: te.sum(A[i, j, k] * A[i, j, 23 - k], axis=k), name='B')
s = te.create_schedule(B.op)
s[B].bind(B.op.axis[0], te.thread_axis('blockIdx.y'))
s[B].bind(B.op.axis[1], te.thread_axis('blockIdx.x'))
ko, ki = s[B].split(s[B].op.reduce_axis[0], factor=4)
s[B].bind(ko, te.thread_axis('threadIdx.x'))",
        &[("k_outer * 4 + k_inner]", "k_outer * 4]"), ("B[i, j] = all[0]", "B[i, j] = own[0]")],
    ),
];

#[test]
fn loops_of_reductions_are_bound_to_threads() {
    let judge = judge();
    let refuted = ACROSS.iter().map(|case| attached(&judge, case, true)).sum::<usize>();
    assert!(refuted >= 4, "{refuted} twins are refuted by a run");
}

#[test]
fn stages_with_loops_of_their_own_are_computed_where_they_are_read() {
    let judge = judge();
    let refuted = ATTACHED.iter().map(|case| attached(&judge, case, false)).sum::<usize>();
    assert!(refuted >= 6, "{refuted} twins are refuted by a run");
}

/// Proves each step of a TE program, and none of its broken twins; returns how many a run refuted. With `is_compared` the result itself
/// is proved in the way in which the twins are not.
fn attached(judge: &Judge, (name, text, wrong): &Attached, is_compared: bool) -> usize {
    let mut n_refuted = 0;
    let (args, sizes) = ("[A, B]", "import tvm\nfrom tvm import te\nn, m = te.var('n'), te.var('m')\n");
    let source = format!("{sizes}{text}\ntvm.lower(s, {args})\n");
    let program = tilewright_script::te::read(&source).unwrap_or_else(|found| panic!("{name}: {found:?}"));
    let lowered = evaluate(&program, None).unwrap_or_else(|found| panic!("{name}: {found:?}")).remove(0);
    assert!(is_proved(&judge.check_lowering(&lowered.definition, &lowered.func, &lowered.evidence)), "{name}");
    let mut func = lowered.func.clone();
    assert!(func.attrs.schedule.len() > usize::from(!is_compared), "{name}");
    while let Some(step) = func.attrs.schedule.first().cloned() {
        let pass = pass_by_name(&step.primitive).unwrap();
        let done = (pass.run)(&func).unwrap_or_else(|found| panic!("{name}, {step}: {}", found[0]));
        let reports = judge.check_pass(&func, &done.func, &done.evidence);
        assert!(is_proved(&reports), "{name}, {step}: {:#?}\n{}", open(&reports), print_func(&done.func));
        func = done.func;
    }
    let mut root = lowered.func.clone();
    root.attrs.schedule.clear();
    let printed = print_func(&func);
    if is_compared {
        let right = pair::validate(&root, &read(&printed), &[], judge).unwrap();
        assert!(is_proved(&right.reports), "{name}: {:?}", open(&right.reports));
    }
    for (old, new) in *wrong {
        assert!(printed.contains(old), "{name}: no `{old}` in\n{printed}");
        let twin = read(&printed.replacen(old, new, 1));
        let judged = pair::validate(&root, &twin, &[], judge).unwrap();
        assert!(!is_proved(&judged.reports), "{name}: `{new}` for `{old}` is proved");
        n_refuted += usize::from(is_refuted(&judged.reports));
    }
    n_refuted
}

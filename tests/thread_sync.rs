//! `thread_sync` on random programs whose threads share memory: what it makes has no races, means the program with a barrier everywhere,
//! and needs each of its barriers. And the trees of `lower_thread_allreduce` for several numbers of threads.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test may fail")]

use std::fmt::Write as _;

use tilewright::passes::{flatten_buffer, lower_thread_allreduce, thread_sync};
use tilewright::pipeline::pair::{Given, validate_given};
use tilewright_interp::{Argument, Arguments, Config, Observers, RunError, Tensor, TrapKind, fill, run};
use tilewright_ir::phases::{n_implicit_barriers, synchronized};
use tilewright_ir::{Evidence, PrimFunc, StmtKind, validate};
use tilewright_script::print_func;
use tilewright_verify::{Judge, Report};

const SYNC: &str = "T.tvm_storage_sync(\"shared\")";

fn read(text: &str) -> PrimFunc {
    tilewright_script::read_module(text).unwrap_or_else(|error| panic!("{error:?}\n{text}")).funcs.remove(0)
}

fn judge() -> Judge {
    Judge::new(tilewright_verify::Config::default(), tilewright_search::strategies()).unwrap()
}

fn open(reports: &[Report]) -> Vec<String> {
    let open = reports.iter().filter(|report| !report.verdict.is_proved());
    open.map(|report| format!("{} of {}: {}", report.obligation, report.subject, report.verdict)).collect()
}

/// Numbers from a seed (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

/// Statements of a thread of seven, at some depth.
fn statements(numbers: &mut Numbers, depth: usize, text: &mut String) {
    for _ in 0..=numbers.below(3) {
        let indent = "    ".repeat(depth + 3);
        let write = numbers.of(&["t", "6 - t", "(t + 1) % 7"]);
        let read = numbers.of(&["t", "t", "6 - t", "(t + 2) % 7", "3"]);
        let memory = numbers.of(&["S", "P"]);
        match numbers.below(if depth < 2 { 8 } else { 5 }) {
            0 | 1 => writeln!(text, "{indent}{memory}[{write}] = r[0] + A[i, t]").unwrap(),
            2 | 3 => writeln!(text, "{indent}r[0] = r[0] * 3 + {memory}[{read}]").unwrap(),
            4 => writeln!(text, "{indent}if t < 3:\n{indent}    {memory}[t + 2] = r[0]").unwrap(),
            5 | 6 => {
                writeln!(text, "{indent}for k{depth} in range(2):").unwrap();
                statements(numbers, depth + 1, text);
            }
            _ => {
                writeln!(text, "{indent}if i < 1:").unwrap();
                statements(numbers, depth + 1, text);
            }
        }
    }
}

fn program(seed: u64) -> String {
    let mut text = "@T.prim_func\ndef main(A: T.Buffer((2, 7), \"int32\"), B: T.Buffer((2, 7), \"int32\")):\n\
        \x20   for i in T.thread_binding(2, thread=\"blockIdx.x\"):\n\
        \x20       S = T.alloc_buffer((7,), \"int32\", scope=\"shared\")\n\
        \x20       P = T.alloc_buffer((7,), \"int32\", scope=\"shared\")\n\
        \x20       for t in T.thread_binding(7, thread=\"threadIdx.x\"):\n\
        \x20           r = T.alloc_buffer((1,), \"int32\", scope=\"local\")\n\
        \x20           r[0] = A[i, t]\n\
        \x20           S[t] = r[0]\n\
        \x20           P[6 - t] = r[0]\n"
        .to_owned();
    statements(&mut Numbers(seed), 0, &mut text);
    text.push_str("            B[i, t] = r[0]\n");
    text
}

/// What a function leaves, or the trap.
fn output(func: &PrimFunc, race: bool) -> Result<Vec<u8>, TrapKind> {
    let mut input = Tensor::undefined(func.buffer_map[0].1.dtype, &[2, 7]).unwrap();
    fill(&mut input, 3);
    let output = Tensor::undefined(func.buffer_map[1].1.dtype, &[2, 7]).unwrap();
    let mut args = Arguments::tensors([input, output]);
    let config = Config { observers: Observers { defined: true, race }, ..Config::default() };
    match run(validate(func).unwrap(), &mut args, &config) {
        Ok(_) => Ok(match &args.params[1] {
            Argument::Tensor(tensor) => tensor.bytes().to_vec(),
            Argument::Scalar(_) => Vec::new(),
        }),
        Err(RunError::Trap(trap)) => Err(trap.kind),
        Err(RunError::Input(error)) => panic!("{error:?}"),
    }
}

#[test]
fn random_programs_get_the_barriers_that_they_need() {
    let judge = judge();
    let (mut n_free, mut n_barriers, mut n_inserted) = (0, 0, 0);
    for seed in 0..60 {
        let text = program(seed);
        let before = synchronized(&read(&text));
        if !open(&judge.check_races(&before)).is_empty() {
            // Threads race in one statement.
            assert_eq!(output(&before, true), Err(TrapKind::Race), "{text}");
            continue;
        }
        n_free += 1;
        let rewritten = thread_sync(&read(&text)).unwrap();
        let (after, printed) = (&rewritten.func, print_func(&rewritten.func));
        assert_eq!(n_implicit_barriers(&after.body), 0);
        assert_eq!(open(&judge.check_pass(&before, after, &rewritten.evidence)), Vec::<String>::new(), "{printed}");
        assert_eq!(output(after, true), output(&before, false), "{printed}");
        n_inserted += n_implicit_barriers(&before.body);
        // Without any of them, threads race.
        for (at, _) in printed.match_indices(SYNC) {
            n_barriers += 1;
            let fewer = read(&format!("{}T.evaluate(0){}", &printed[..at], &printed[at + SYNC.len()..]));
            assert!(!open(&judge.check_races(&fewer)).is_empty(), "{printed}\nneeds no barrier at {at}");
            assert!(!open(&judge.check_pass(&before, &fewer, &rewritten.evidence)).is_empty(), "{printed}");
        }
    }
    println!("{n_free} programs, {n_barriers} of {n_inserted} barriers stay");
    assert!(n_free >= 20 && n_barriers >= 20 && n_barriers < n_inserted, "{n_free} {n_barriers} {n_inserted}");
}

#[test]
fn programs_that_differ_in_more_than_barriers_are_not_taken_for_equal() {
    let text = program(1);
    let before = synchronized(&read(&text));
    let rewritten = thread_sync(&read(&text)).unwrap();
    let printed = print_func(&rewritten.func);
    for (old, new) in
        [("S[t] = r[0]", "S[t] = r[0] + 1"), ("B[i, t] = r[0]", "B[i, t] = A[i, t]"), ("(2, 7)", "(2, 8)")]
    {
        assert!(printed.contains(old), "{printed}");
        let twin = read(&printed.replacen(old, new, 1));
        let reports = judge().check_pass(&before, &twin, &rewritten.evidence);
        assert!(!open(&reports).is_empty(), "{new}");
    }
}

#[test]
fn trees_of_threads_of_two_axes_in_flat_memory() {
    let judge = judge();
    for (rows, cols, threads) in [(4, 8, "x"), (3, 5, "x"), (4, 8, "y, x")] {
        // The result is an element of a view in the memory of the thread.
        let text = |size: u32, offset: u32| {
            format!(
                "@T.prim_func\ndef main(a: T.handle, b: T.handle):\n    n = T.int32()\n    \
                 A = T.match_buffer(a, (n, {rows}, {cols}), \"int32\")\n    B = T.match_buffer(b, (n, {rows}, {cols}), \"int32\")\n    \
                 for i in T.thread_binding(n, thread=\"blockIdx.x\"):\n        \
                 for y in T.thread_binding({rows}, thread=\"threadIdx.y\"):\n            \
                 for x in T.thread_binding({cols}, thread=\"threadIdx.x\"):\n                \
                 R = T.alloc_buffer(({size},), \"int32\", scope=\"local\")\n                \
                 V = T.decl_buffer((1,), \"int32\", data=R.data, elem_offset={offset}, scope=\"local\")\n                \
                 with T.attr(T.comm_reducer(lambda x, y: x + y, [T.int32(0)]), \"reduce_scope\", 0):\n                    \
                 T.tvm_thread_allreduce(T.uint32(1), A[i, y, x], T.bool(True), V[0], {threads})\n                \
                 B[i, y, x] = V[0]\n"
            )
        };
        let full = read(&text(1, 0));
        let rewritten = lower_thread_allreduce(&full).unwrap();
        let reports = judge.check_pass(&full, &rewritten.func, &rewritten.evidence);
        assert_eq!(open(&reports), Vec::<String>::new(), "{rows} {cols} {threads}");
        let flat = flatten_buffer(&read(&text(2, 1))).unwrap().func;
        let rewritten = lower_thread_allreduce(&flat).unwrap();
        let printed = print_func(&rewritten.func);
        let reports = judge.check_pass(&flat, &rewritten.func, &rewritten.evidence);
        assert_eq!(open(&reports), Vec::<String>::new(), "{rows} {cols} {threads}\n{printed}");
        for (old, new) in [("range(2)", "range(1)"), ("= 0\n", "= 1\n"), ("if x < 4:", "if x < 3:")] {
            assert!(printed.contains(old), "{printed}");
            let twin = read(&printed.replacen(old, new, 1));
            let reports = judge.check_pass(&flat, &twin, &rewritten.evidence);
            assert!(!open(&reports).is_empty(), "{new} for {old}\n{printed}");
        }
        rewritten.func.body.walk(&mut |stmt| {
            if let StmtKind::Allocate { buffer, .. } = &stmt.kind {
                assert_eq!(buffer.rank(), 1, "flat memory stays flat");
            }
        });
    }
}

#[test]
fn a_tree_for_each_number_of_threads() {
    let judge = judge();
    for count in [1u32, 2, 3, 5, 7, 8, 12, 19] {
        let text = format!(
            "@T.prim_func\ndef main(a: T.handle, b: T.handle):\n    n = T.int32()\n    \
             A = T.match_buffer(a, (n, {count}), \"int32\")\n    B = T.match_buffer(b, (n, {count}), \"int32\")\n    \
             for i in T.thread_binding(n, thread=\"blockIdx.x\"):\n        \
             for t in T.thread_binding({count}, thread=\"threadIdx.x\"):\n            \
             R = T.alloc_buffer((1,), \"int32\", scope=\"local\")\n            \
             with T.attr(T.comm_reducer(lambda x, y: x + y, [T.int32(0)]), \"reduce_scope\", 0):\n                \
             T.tvm_thread_allreduce(T.uint32(1), A[i, t], T.bool(True), R[0], t)\n            \
             B[i, t] = R[0]\n"
        );
        let before = read(&text);
        let rewritten = lower_thread_allreduce(&before).unwrap();
        let printed = print_func(&rewritten.func);
        let reports = judge.check_pass(&before, &rewritten.func, &rewritten.evidence);
        assert_eq!(open(&reports), Vec::<String>::new(), "{count}\n{printed}");
        // Without the evidence, the other memory is no proof of anything.
        if count > 1 {
            let guessed = judge.check_pass(&before, &rewritten.func, &Evidence::default());
            assert!(!open(&guessed).is_empty(), "{count}");
        }
        let mut n_barriers = 0;
        rewritten.func.body.walk(&mut |stmt| n_barriers += usize::from(matches!(stmt.kind, StmtKind::Barrier)));
        let rounds = usize::try_from(u32::BITS - (count - 1).leading_zeros()).unwrap();
        assert_eq!(n_barriers, rounds + 2, "{count}\n{printed}");
        // Memory that is seen through a view is the same memory. One thread alone has no tree.
        if count == 1 {
            continue;
        }
        let flat = flatten_buffer(&before).unwrap().func;
        let rewritten = lower_thread_allreduce(&flat).unwrap();
        let printed = print_func(&rewritten.func);
        let reports = judge.check_pass(&flat, &rewritten.func, &rewritten.evidence);
        assert_eq!(open(&reports), Vec::<String>::new(), "{count}\n{printed}");
        let (own, first) = (format!("A_flattened[i * {count} + t]"), format!("A_flattened[i * {count}]"));
        assert!(printed.contains(&own), "{printed}");
        let wrong = read(&printed.replacen(&own, &first, 1));
        assert!(!open(&judge.check_pass(&flat, &wrong, &rewritten.evidence)).is_empty(), "{count}");
        let given = Given { reassociate: true, ..Given::default() };
        let compared = validate_given(&flat, &wrong, given, &judge).unwrap();
        assert!(!open(&compared.reports).is_empty(), "{count}");
    }
}

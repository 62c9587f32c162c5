//! Barriers and shared memory: programs whose threads wait for each other are proved free of races, and broken ones are not; both
//! interpreters run them alike; a program with barriers is proved equal to one without.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use tilewright::pipeline::pair::validate;
use tilewright_interp::{
    Argument, Arguments, Config, Observers, Report, RunError, Tensor, TrapKind, fill, reference, run as fast,
};
use tilewright_ir::equal::funcs_equal;
use tilewright_ir::phases::{Barriers, has_groups, without_barriers};
use tilewright_ir::{Bindings, PrimFunc, Validated, validate as well_formed};
use tilewright_verify::{Judge, Obligation, Report as Decided, Verdict};

const REDUCTION: &str = include_str!("../examples/shared_reduction.tvm.py");
const TRANSPOSE: &str = include_str!("../examples/shared_transpose.tvm.py");
const PRODUCT: &str = include_str!("../examples/shared_product.tvm.py");

fn read(text: &str) -> PrimFunc {
    tilewright_script::read_module(text).unwrap_or_else(|error| panic!("{error:?}\n{text}")).funcs.remove(0)
}

fn judge() -> Judge {
    Judge::new(tilewright_verify::Config::default(), tilewright_search::strategies()).unwrap()
}

/// What is open of the obligations of a program.
fn open(reports: &[Decided]) -> Vec<String> {
    let open = reports.iter().filter(|report| !report.verdict.is_proved());
    open.map(|report| format!("{} of {}: {}", report.obligation, report.subject, report.verdict)).collect()
}

/// A text with a part replaced that it has.
#[track_caller]
fn with(text: &str, part: &str, by: &str) -> String {
    assert!(text.contains(part), "{part}\n{text}");
    text.replacen(part, by, 1)
}

const SYNC: &str = "T.tvm_storage_sync(\"shared\")";

/// The text without its barrier at this position.
fn without_sync(text: &str, position: usize) -> String {
    let at = text.match_indices(SYNC).nth(position).unwrap().0;
    format!("{}T.evaluate(0){}", &text[..at], &text[at + SYNC.len()..])
}

/// Arguments of a function whose symbolic extents all have this value; the last one is the output.
fn arguments(func: &PrimFunc, extents: &[i128]) -> Arguments {
    let bindings: Bindings = func.extents().into_iter().zip(extents.iter().copied()).collect();
    let mut found = Arguments::default();
    for (position, param) in func.params.iter().enumerate() {
        let buffer = func.param_buffer(param).unwrap();
        let shape: Vec<u64> =
            buffer.shape.iter().map(|extent| u64::try_from(extent.eval_index(&bindings).unwrap()).unwrap()).collect();
        let mut tensor = Tensor::undefined(buffer.dtype, &shape).unwrap();
        if position + 1 < func.params.len() {
            fill(&mut tensor, position as u64 + 1);
        }
        found.params.push(Argument::Tensor(tensor));
    }
    found
}

/// An interpreter.
type Engine = fn(Validated<'_>, &mut Arguments, &Config) -> Result<Report, RunError>;

/// The output of a run with either interpreter, which have to agree.
fn output(func: &PrimFunc, extents: &[i128]) -> Result<Vec<u8>, TrapKind> {
    let valid = well_formed(func).unwrap_or_else(|error| panic!("{error:?}"));
    let kind = |error: RunError| match error {
        RunError::Trap(trap) => trap.kind,
        RunError::Input(error) => panic!("{error:?}"),
    };
    let result = |engine: Engine, config: &Config| {
        let mut args = arguments(func, extents);
        let report = engine(valid, &mut args, config).map_err(kind)?;
        Ok((report.iterations, args.tensor(args.params.len() - 1).unwrap().bytes().to_vec()))
    };
    let expected = result(reference::run, &Config::default());
    for threads in [1, 3] {
        assert_eq!(result(fast, &Config { threads, ..Config::default() }), expected, "{threads} threads");
    }
    expected.map(|(_, bytes)| bytes)
}

/// How a run with the race check ends, if it does not end well.
fn watched(func: &PrimFunc, extents: &[i128]) -> Option<TrapKind> {
    // A race may show as a read of what is not written yet.
    let config = Config { observers: Observers { defined: false, race: true }, ..Config::default() };
    match fast(well_formed(func).unwrap(), &mut arguments(func, extents), &config) {
        Ok(_) => None,
        Err(RunError::Trap(trap)) => Some(trap.kind),
        Err(RunError::Input(error)) => panic!("{error:?}"),
    }
}

/// A program is proved, runs without a race, and is read as it is printed.
#[track_caller]
fn holds(text: &str, extents: &[i128]) -> PrimFunc {
    let func = read(text);
    assert_eq!(open(&judge().check_program(&func)), Vec::<String>::new(), "{text}");
    assert_eq!(watched(&func, extents), None, "{text}");
    assert!(output(&func, extents).is_ok());
    let printed = tilewright_script::print_func(&func);
    assert!(funcs_equal(&read(&printed), &func, true), "{printed}");
    let same = validate(&func, &read(text), &[], &judge()).unwrap();
    assert_eq!(open(&same.reports), Vec::<String>::new(), "{text}");
    func
}

/// A program is not proved, because of a race or of a barrier; a run meets the trap.
#[track_caller]
fn fails(text: &str, extents: &[i128], obligation: Obligation, trap: Option<TrapKind>) {
    let func = read(text);
    let reports = judge().check_program(&func);
    let found = reports.iter().any(|report| report.obligation == obligation && !report.verdict.is_proved());
    assert!(found, "{text}\n{:?}", open(&reports));
    assert_eq!(watched(&func, extents), trap, "{text}");
}

#[test]
fn a_tree_reduction_is_proved_and_its_broken_twins_are_not() {
    holds(REDUCTION, &[3]);
    for position in 0..2 {
        fails(&without_sync(REDUCTION, position), &[3], Obligation::Race, Some(TrapKind::Race));
    }
    // One more thread than a round has elements for.
    let wide = with(REDUCTION, "if t < T.shift_right(32, k):", "if t < T.shift_right(32, k) + 1 and t < 32:");
    fails(&wide, &[3], Obligation::Race, Some(TrapKind::Race));
    let divergent = with(
        REDUCTION,
        &format!("                {SYNC}"),
        &format!("                if t < 7:\n                    {SYNC}"),
    );
    let func = read(&divergent);
    assert_eq!(output(&func, &[3]), Err(TrapKind::Barrier));
    let open = judge().check_program(&func);
    let barrier = open.iter().find(|report| report.obligation == Obligation::Barrier).unwrap();
    assert!(matches!(barrier.verdict, Verdict::Unknown(_)), "{}", barrier.verdict);
}

#[test]
fn a_transpose_through_shared_memory_is_proved_and_its_broken_twins_are_not() {
    let func = holds(TRANSPOSE, &[19, 37]);
    let plain = with(TRANSPOSE, "S[ty, tx] = A[", "B[bx * 16 + tx, by * 16 + ty] = A[");
    let plain = with(&plain, "B[bx * 16 + ty, by * 16 + tx] = S[tx, ty]", "T.evaluate(0)");
    assert_eq!(output(&func, &[19, 37]), output(&read(&plain), &[19, 37]));
    fails(&without_sync(TRANSPOSE, 0), &[19, 37], Obligation::Race, Some(TrapKind::Race));
    let other = with(TRANSPOSE, "= S[tx, ty]", "= S[ty, tx]");
    assert_ne!(output(&read(&other), &[32, 32]), output(&read(&plain), &[32, 32]));
    let one_tile = with(TRANSPOSE, "S[ty, tx] = A", "S[ty, tx // 2] = A");
    fails(&one_tile, &[19, 37], Obligation::Race, Some(TrapKind::Race));
}

#[test]
fn a_product_in_shared_tiles_is_proved_and_its_broken_twins_are_not() {
    holds(PRODUCT, &[11, 13, 19]);
    // Without the first barrier, a tile is read before it is there; without the last, it is overwritten before all have read it.
    for position in 0..2 {
        fails(&without_sync(PRODUCT, position), &[11, 13, 19], Obligation::Race, Some(TrapKind::Race));
    }
    let transposed = with(PRODUCT, "TA[ty, tx] =", "TA[ty, tx // 2] =");
    fails(&transposed, &[11, 13, 19], Obligation::Race, Some(TrapKind::Race));
}

/// A function on 5 groups of 8 threads.
fn groups(body: &str) -> String {
    let indented = body.replace('\n', "\n            ");
    format!(
        "@T.prim_func\ndef f(A: T.Buffer((40,), \"int32\"), B: T.Buffer((40,), \"int32\")):\n    \
         for b in T.thread_binding(5, thread=\"blockIdx.x\"):\n        \
         for t in T.thread_binding(8, thread=\"threadIdx.x\"):\n            {indented}\n"
    )
}

#[test]
fn memory_of_threads_and_names_live_through_barriers() {
    let shared = "S = T.alloc_buffer((8,), \"int32\", scope=\"shared\")\n";
    for body in [
        // Shared memory that is allocated inside of the threads belongs to the group.
        format!("{shared}S[t] = A[b * 8 + t]\n{SYNC}\nB[b * 8 + t] = S[7 - t]"),
        format!(
            "own = T.alloc_buffer((3,), \"int32\", scope=\"local\")\n{shared}own[1] = A[b * 8 + t]\nS[t] = own[1] + 1\n{SYNC}\nB[b * 8 + t] = S[7 - t] + own[1]"
        ),
        // A value that was read before others write there.
        format!(
            "{shared}S[t] = A[b * 8 + t]\n{SYNC}\nother: T.int32 = S[7 - t]\n{SYNC}\nS[t] = 0\nB[b * 8 + t] = other"
        ),
        format!("{shared}u = t * 3 % 8\nS[u] = A[b * 8 + t]\n{SYNC}\nB[b * 8 + t] = S[(u + 3) % 8]"),
        // Views of the memory of a thread, in front of a barrier, across it and behind it.
        format!(
            "own = T.alloc_buffer((4,), \"int32\", scope=\"local\")\n{shared}V = T.decl_buffer((2,), \"int32\", data=own.data, elem_offset=2)\nV[1] = A[b * 8 + t]\nown[0] = 7\nS[t] = own[3] + 1\n{SYNC}\nW = T.decl_buffer((2, 2), \"int32\", data=own.data)\nB[b * 8 + t] = S[7 - t] + V[1] + W[0, 0]"
        ),
        format!(
            "own = T.alloc_buffer((2, 3), \"int32\", scope=\"local\")\n{shared}V = T.decl_buffer((3, 2), \"int32\", data=own.data, strides=[1, 3])\nV[2, 1] = A[b * 8 + t]\nS[t] = own[1, 2] + 1\n{SYNC}\nB[b * 8 + t] = S[7 - t] + V[2, 1]"
        ),
        // Two tiles in turn need one barrier in each round.
        format!(
            "D = T.alloc_buffer((2, 8), \"int32\", scope=\"shared\")\nB[b * 8 + t] = 0\nfor k in range(5):\n    D[k % 2, t] = A[b * 8 + t] * k\n    {SYNC}\n    B[b * 8 + t] = B[b * 8 + t] + D[k % 2, 7 - t]"
        ),
    ] {
        let func = holds(&groups(&body), &[]);
        assert!(has_groups(&func.body));
        assert!(!has_groups(&without_barriers(&func, Barriers::Dropped).unwrap().body));
    }
    let once = format!(
        "{shared}B[b * 8 + t] = 0\nfor k in range(5):\n    S[t] = A[b * 8 + t] * k\n    {SYNC}\n    B[b * 8 + t] = B[b * 8 + t] + S[7 - t]"
    );
    fails(&groups(&once), &[], Obligation::Race, Some(TrapKind::Race));
    // A view ends where it says, also inside of the memory.
    let view = |sizes: &str, at: &str| {
        format!(
            "own = T.alloc_buffer((4,), \"int32\", scope=\"local\")\n{shared}V = T.decl_buffer((2,), \"int32\", data=own.data{sizes})\nfor k in range(4):\n    own[k] = A[b * 8 + t]\nS[t] = own[3]\n{SYNC}\nB[b * 8 + t] = S[7 - t] + V[{at}]"
        )
    };
    holds(&groups(&view(", elem_offset=1", "1")), &[]);
    fails(&groups(&view(", elem_offset=1", "2")), &[], Obligation::Bounds, Some(TrapKind::OutOfBounds));
    for beyond in [", elem_offset=3", ", strides=[4]", ", elem_offset=A[0]"] {
        let Ok(module) = tilewright_script::read_module(&groups(&view(beyond, "0"))) else { continue };
        let reports = judge().check_program(&module.funcs[0]);
        assert!(!open(&reports).is_empty(), "{beyond}");
    }
    // The barrier in the loop is left out in some rounds, or in all.
    let rare = format!(
        "{shared}S[t] = 0\n{SYNC}\nfor k in range(5):\n    if k == 9:\n        {SYNC}\n    S[(t + k) % 8] = A[b * 8 + t]"
    );
    fails(&groups(&rare), &[], Obligation::Race, Some(TrapKind::Race));
    let never = format!("{shared}S[t] = A[b * 8 + t]\nfor k in range(b - 9):\n    {SYNC}\nB[b * 8 + t] = S[7 - t]");
    fails(&groups(&never), &[], Obligation::Race, Some(TrapKind::Race));
    let by_memory = format!("if A[0] == A[0]:\n    {SYNC}\nB[b * 8 + t] = A[b * 8 + t]");
    let func = read(&groups(&by_memory));
    assert!(output(&func, &[]).is_ok(), "all threads agree");
    assert!(!open(&judge().check_program(&func)).is_empty());
}

#[test]
fn a_program_with_barriers_is_compared_phase_by_phase() {
    let shared = "S = T.alloc_buffer((8,), \"int32\", scope=\"shared\")\n";
    let reversed = groups("B[b * 8 + t] = A[b * 8 + 7 - t]");
    let staged = groups(&format!("{shared}S[t] = A[b * 8 + t]\n{SYNC}\nB[b * 8 + t] = S[7 - t]"));
    let judged = |before: &str, after: &str| validate(&read(before), &read(after), &[], &judge()).unwrap().reports;
    assert_eq!(open(&judged(&reversed, &staged)), Vec::<String>::new());
    assert_eq!(open(&judged(&staged, &reversed)), Vec::<String>::new());
    let fewer = without_sync(&staged, 0);
    for (before, after) in [(&reversed, &fewer), (&staged, &fewer), (&fewer, &staged), (&fewer, &fewer)] {
        assert!(!open(&judged(before, after)).is_empty(), "{before}\n{after}");
    }
    let other = with(&staged, "S[7 - t]", "S[6 - t]");
    assert!(!open(&judged(&staged, &other)).is_empty());
    let moved = with(
        &staged,
        &format!("{SYNC}\n            B[b * 8 + t] = S[7 - t]"),
        &format!("B[b * 8 + t] = S[7 - t]\n            {SYNC}"),
    );
    assert!(!open(&judged(&staged, &moved)).is_empty());
}

#[test]
fn barriers_without_a_group_are_no_programs() {
    let faults = |text: &str| {
        let faults = tilewright_script::read_module(text).err().unwrap_or_default();
        faults.into_iter().map(|fault| fault.code).collect::<Vec<_>>()
    };
    let head = "@T.prim_func\ndef f(B: T.Buffer((8,), \"int32\")):\n    ";
    assert_eq!(faults(&format!("{head}for i in range(8):\n        B[i] = 0\n        {SYNC}")), ["barrier-place"]);
    let inside = format!(
        "{head}for t in T.thread_binding(8, thread=\"threadIdx.x\"):\n        for p in T.parallel(3):\n            {SYNC}"
    );
    assert_eq!(faults(&inside), ["barrier-place"]);
    for scope in ["global", "local", "warp", "sharde"] {
        let text = format!(
            "{head}for t in T.thread_binding(8, thread=\"threadIdx.x\"):\n        T.tvm_storage_sync(\"{scope}\")"
        );
        assert_eq!(faults(&text), ["barrier-scope"], "{scope}");
    }
}

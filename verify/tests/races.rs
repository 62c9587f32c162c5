//! Races: iterations that run at once have elements of their own, whatever is outside the loop; or they are not called safe.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use tilewright_verify::{Obligation, Verdict};

/// The worst verdict about races of a function with this signature and body.
fn race(signature: &str, body: &str) -> Verdict {
    let func = common::program(&format!("def main({signature}):\n    {}\n", body.replace('\n', "\n    ")));
    let reports = common::judge().check_program(&func);
    let races = reports.into_iter().filter(|report| report.obligation == Obligation::Race);
    Verdict::worst(races.map(|report| report.verdict)).unwrap()
}

/// A loop over three axes of symbolic extents that were fused, which stores at these indices.
fn fused_race(index: &str) -> Verdict {
    let head = "B: T.Buffer((4, \"n\", \"m\"), \"float32\")";
    race(head, &format!("n, m = T.int32(), T.int32()\nfor f in T.parallel(n * m * 4):\n    B[{index}] = T.float32(1)"))
}

#[test]
fn quotients_and_remainders_of_symbolic_extents_tell_a_number() {
    for index in [
        "f // (n * m), f % (n * m) // m, f % m",
        "f // (n * m), f % (n * m) // m, f % (n * m) % m",
        "f // m // n, f // m % n, f % m",
        "f // (n * m), f % (n * m) % n, f % (n * m) // n",
        "f % 4, f // 4 % n, f // (4 * n)",
    ] {
        let verdict = fused_race(index);
        assert!(verdict.is_proved(), "{index}: {verdict}");
    }
    for index in [
        "f // (n * m), 0, f % m",
        "f // (n * m), f // m % m % n, f % m",
        "f // (n * m), f % (n * m) // m, f % n % m",
        "f // n % 4, f % (n * m) // m, f % m",
        "f // (n * m) % 2, f % (n * m) // m, f % m",
        "f // (n * m), f % (n * m) // m // 2, f % m",
        "f % 4, f // 2 % n, f // (4 * n)",
    ] {
        let verdict = fused_race(index);
        assert!(matches!(verdict, Verdict::Refuted(_)), "{index}: {verdict}");
    }
}

const VECTORS: &str = "A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), \"float32\")";
const TABLE: &str = "I: T.Buffer((8,), \"int32\"), A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), \"float32\")";
const SCALAR: &str = "k: T.int32, A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), \"float32\")";
const PLANES: &str = "a: T.handle, b: T.handle";
const MATCHED: &str = "n = T.int32()\nm = T.int32()\nA = T.match_buffer(a, (n, m), \"float32\")\n\
                       B = T.match_buffer(b, (n, m), \"float32\")\n";

#[test]
fn iterations_with_elements_of_their_own_do_not_race() {
    for (signature, body) in [
        (VECTORS, "for i in T.parallel(8):\n    B[i] = A[i]"),
        (VECTORS, "for i in T.parallel(8):\n    B[i] = B[i] + A[i]"),
        (VECTORS, "for i in T.parallel(8):\n    B[7 - i] = A[i]"),
        (VECTORS, "for i in T.parallel(8):\n    B[i ^ 5] = A[i]"),
        (VECTORS, "for i in T.parallel(2):\n    for j in range(4):\n        B[i * 4 + j] = A[j]"),
        (VECTORS, "for i in T.parallel(4):\n    if i % 2 == 0:\n        B[i // 2] = A[i]"),
        (
            VECTORS,
            "for i in T.parallel(8):\n    k = T.allocate([4], \"float32\", \"local\")\n    k[0] = A[i]\n    B[i] = k[0]",
        ),
        // The outer loop runs one iteration after the other.
        (VECTORS, "for j in range(3):\n    for i in T.parallel(4):\n        B[i + j] = A[i]"),
        (VECTORS, "for j in T.serial(-1, 1):\n    for i in T.parallel(7):\n        B[i + j + 1] = A[i]"),
        // What is bound or read outside the loop is one value.
        (TABLE, "for j in range(3):\n    k = I[j]\n    for i in T.parallel(4):\n        B[(i + k) % 8] = A[i]"),
        (SCALAR, "for i in T.parallel(4):\n    B[(i + k) % 8] = A[i]"),
        // Two nests, one after the other.
        (VECTORS, "for i in T.parallel(8):\n    B[i] = A[i]\nfor i in T.parallel(8):\n    B[7 - i] = A[i]"),
        (PLANES, &format!("{MATCHED}for i in T.parallel(n):\n    for j in range(m):\n        B[i, j] = A[i, j]")),
        (PLANES, &format!("{MATCHED}for i in T.parallel(n):\n    for j in T.parallel(m):\n        B[i, j] = A[i, j]")),
    ] {
        let verdict = race(signature, body);
        assert!(verdict.is_proved(), "{body}\n{verdict}");
    }
}

#[test]
fn iterations_that_share_an_element_are_never_proved() {
    for (signature, body) in [
        (VECTORS, "for i in T.parallel(8):\n    B[i // 2] = A[i]"),
        (VECTORS, "for i in T.parallel(8):\n    B[0] = A[i]"),
        (VECTORS, "for i in T.parallel(7):\n    B[i + 1] = B[i] + A[i]"),
        (VECTORS, "for i in T.vectorized(7):\n    B[i] = B[i + 1]"),
        (VECTORS, "for i in T.parallel(2):\n    for j in range(4):\n        B[i * 3 + j] = A[j]"),
        (VECTORS, "for i in T.parallel(4):\n    if i % 2 == 0:\n        B[i // 3] = A[i]"),
        (VECTORS, "for i in T.parallel(8):\n    B[i] = A[i]\n    B[(i + 1) % 8] = A[i]"),
        (
            VECTORS,
            "k = T.allocate([4], \"float32\", \"local\")\nfor i in T.parallel(8):\n    k[0] = A[i]\n    B[i] = k[0]",
        ),
        // A loop from -1: its variable is no extent.
        (
            VECTORS,
            "for j in T.serial(-1, 1):\n    for i in T.parallel(8):\n        B[T.if_then_else(j >= 1, i, 0)] = A[i]",
        ),
        (VECTORS, "for j in T.serial(0, 2):\n    for i in T.parallel(8):\n        B[i * j] = A[i]"),
        (VECTORS, "for j in T.serial(0, 2):\n    for i in T.parallel(8):\n        B[T.min(i, j * 8)] = A[i]"),
        // A value that is read may be anything.
        (TABLE, "for i in T.parallel(8):\n    B[I[i]] = A[i]"),
        (TABLE, "for i in T.parallel(8):\n    B[T.min(i, I[0])] = A[i]"),
        (TABLE, "k = I[0]\nfor i in T.parallel(8):\n    B[T.if_then_else(k >= 1, i, 0)] = A[i]"),
        (TABLE, "for i in T.parallel(8):\n    k = I[i]\n    B[(i + k) % 8] = A[i]"),
        // The table is written in the nest: equal places do not hold equal values.
        (TABLE, "for i in T.parallel(8):\n    I[i] = i\n    B[I[0]] = A[i]"),
        // So may a scalar.
        (SCALAR, "for i in T.parallel(8):\n    B[T.if_then_else(k >= 1, i, 0)] = A[i]"),
        (SCALAR, "for i in T.parallel(8):\n    if k < 1:\n        B[i // 2] = A[i]"),
        (PLANES, &format!("{MATCHED}for i in T.parallel(n):\n    for j in range(m):\n        B[i // 2, j] = A[i, j]")),
        (PLANES, &format!("{MATCHED}for i in T.parallel(n):\n    for j in T.parallel(m):\n        B[i, 0] = A[i, j]")),
        (
            PLANES,
            &format!("{MATCHED}for i in T.parallel(n - 1):\n    for j in range(m):\n        B[i, j] = B[i + 1, j]"),
        ),
    ] {
        let verdict = race(signature, body);
        assert!(!verdict.is_proved(), "{body}");
    }
}

#[test]
fn an_extent_is_at_least_one_and_a_scalar_is_not() {
    let by = |signature: &str, guard: &str| {
        race(signature, &format!("for i in T.parallel(8):\n    B[T.if_then_else({guard}, i, 0)] = A[i]"))
    };
    let extent =
        "n: T.int32, c: T.Buffer((n,), \"int32\"), A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), \"float32\")";
    assert!(by(extent, "n >= 1").is_proved());
    assert!(!by(&extent.replace("(n,)", "(n + 1,)"), "n >= 1").is_proved());
}

#[test]
fn views_are_compared_by_their_place_in_memory() {
    let with =
        |view: &str, body: &str| race(VECTORS, &format!("V = T.decl_buffer({view}, \"float32\", data=B.data{body}"));
    let apart = ["(2, 4)", "(8,)"];
    assert!(
        with(apart[0], ")\nfor i in T.parallel(2):\n    for j in range(4):\n        V[i, j] = B[i * 4 + j]")
            .is_proved()
    );
    assert!(with(apart[1], ")\nfor i in T.parallel(4):\n    V[i + 4] = B[i]").is_proved());
    assert!(!with(apart[1], ")\nfor i in T.parallel(4):\n    V[i + 3] = B[i]").is_proved());
    assert!(
        !with(apart[0], ")\nfor i in T.parallel(2):\n    for j in range(4):\n        V[i, j] = B[i * 3 + j]")
            .is_proved()
    );
    // Elements of one view that overlap.
    for strides in ["1, 1", "0, 1"] {
        let body =
            format!(", strides=[{strides}])\nfor i in T.parallel(2):\n    for j in range(3):\n        V[i, j] = A[j]");
        assert!(!with("(2, 3)", &body).is_proved(), "{strides}");
    }
    let body = ", strides=[4, 1])\nfor i in T.parallel(2):\n    for j in range(3):\n        V[i, j] = A[j]";
    assert!(with("(2, 3)", body).is_proved());
}

const ROWS: &str = "A: T.Buffer((4, 8), \"float32\"), B: T.Buffer((4, 8), \"float32\")";

/// Memory in this scope that one launch over groups and threads writes and another one reads.
fn kept(scope: &str, [groups, threads]: [i64; 2], [store, load]: [&str; 2]) -> Verdict {
    let nest = |groups: i64, threads: i64, body: &str| {
        format!(
            "for b in T.thread_binding({groups}, thread=\"blockIdx.x\"):\n    \
             for t in T.thread_binding({threads}, thread=\"threadIdx.x\"):\n        {body}"
        )
    };
    let (first, second) =
        (nest(4, 8, &format!("C[{store}] = A[b, t]")), nest(groups, threads, &format!("B[b, t] = C[{load}]")));
    race(ROWS, &format!("C = T.alloc_buffer((4, 8), \"float32\", scope=\"{scope}\")\n{first}\n{second}"))
}

#[test]
fn memory_of_a_thread_is_used_by_no_other() {
    for (launch, accesses, is_own) in [
        ([4, 8], ["b, t", "b, t"], true),
        ([4, 8], ["3 - b, t", "3 - b, t"], true),
        ([4, 8], ["(b * 8 + t) // 8, t", "b, (b * 8 + t) % 8"], true),
        // Fewer threads.
        ([3, 5], ["b, t", "b, t"], true),
        ([3, 5], ["b, 7 - t", "b, 7 - t"], true),
        // Each is right as long as the memory belongs to all of them.
        ([4, 8], ["b, t", "b, 7 - t"], false),
        ([4, 8], ["b, t", "3 - b, t"], false),
        ([4, 8], ["b, t", "b, 0"], false),
        ([4, 8], ["b, t", "0, t"], false),
        ([4, 8], ["b, t", "b, t % 4 * 2"], false),
        ([3, 5], ["b, 7 - t", "b, t"], false),
        ([3, 5], ["b, t", "b + 1, t"], false),
    ] {
        let [global, local] = ["global", "local"].map(|scope| kept(scope, launch, accesses));
        assert!(global.is_proved(), "{launch:?} {accesses:?}: {global}");
        assert_eq!(local.is_proved(), is_own, "{launch:?} {accesses:?}: {local}");
        assert!(is_own || matches!(local, Verdict::Unknown(_)), "{launch:?} {accesses:?}: {local}");
    }
}

/// Programs that write `C`, memory of eight elements, and read it, and whether each thread keeps to elements of its own.
const IN_LOOPS: [(&str, &str, bool); 14] = [
    ("for t in x[8]:\n    C[t] = A[0, t]", "for t in x[8]:\n    B[0, t] = C[t]", true),
    // Statements outside of all loops over threads belong to the first thread.
    ("for t in x[8]:\n    C[t] = A[0, t]", "B[0, 0] = C[0]", true),
    ("for t in x[8]:\n    C[t] = A[0, t]", "B[0, 0] = C[1]", false),
    ("for t in x[8]:\n    C[7 - t] = A[0, t]", "B[0, 0] = C[0]", false),
    ("for t in x[8]:\n    C[t] = A[0, t]", "for i in range(8):\n    B[0, i] = C[i]", false),
    ("for t in x[8]:\n    C[t] = A[0, t]", "for t in y[8]:\n    B[0, t] = C[t]", false),
    // The first thread of a loop from 1 is the first thread of a loop from 0.
    ("for t in x[7]:\n    C[t + 1] = A[0, t]", "for t in x[1, 8]:\n    B[0, t] = C[t]", false),
    ("for t in x[1, 8]:\n    C[t] = A[0, t]", "for t in x[1, 8]:\n    B[0, t] = C[t]", true),
    // The first value may be another one in the second loop.
    (
        "for t in x[T.cast(A[0, 0], \"int32\"), 8]:\n    C[t] = A[0, t]",
        "for t in x[T.cast(A[0, 0], \"int32\"), 8]:\n    B[0, t] = C[t]",
        false,
    ),
    // Views whose place depends on the thread.
    (
        "for t in x[4]:\n    V = T.decl_buffer((2,), \"float32\", data=C.data, elem_offset=t * 2, scope=\"local\")\n    V[0] = A[0, t]",
        "for t in x[4]:\n    B[0, t] = C[t]",
        false,
    ),
    // Four elements for each of two threads.
    (
        "for k in range(4):\n    for t in x[2]:\n        C[k * 2 + t] = A[0, t]",
        "for t in x[2]:\n    for k in range(4):\n        B[k, t] = C[k * 2 + t]",
        true,
    ),
    (
        "for k in range(4):\n    for t in x[2]:\n        C[k * 2 + t] = A[0, t]",
        "for t in x[2]:\n    for k in range(4):\n        B[k, t] = C[t * 4 + k]",
        false,
    ),
    // The last elements of a thread are the first ones of the next.
    (
        "for t in x[2]:\n    for k in range(5):\n        C[t * 3 + k] = A[t, k]",
        "for t in x[2]:\n    B[0, t] = C[t * 3]",
        false,
    ),
    ("for k in range(8):\n    for t in x[k + 1]:\n        C[t] = A[0, t]", "for t in x[8]:\n    B[0, t] = C[t]", false),
];

#[test]
fn memory_of_a_thread_is_used_in_loops_over_threads_alone() {
    for (first, second, is_proved) in IN_LOOPS {
        let body = format!("C = T.alloc_buffer((8,), \"float32\", scope=\"local\")\n{first}\n{second}");
        let body = body.replace("y[8]:", "T.thread_binding(8, thread=\"threadIdx.y\"):");
        let body = body.replace("in x[", "in T.thread_binding(").replace("]:", ", thread=\"threadIdx.x\"):");
        let verdict = race(ROWS, &body);
        assert_eq!(verdict.is_proved(), is_proved, "{body}: {verdict}");
    }
}

#[test]
fn a_schedule_that_is_still_to_be_applied_is_no_excuse() {
    let body = |index: &str| {
        format!(
            "T.func_attr({{\"schedule\": [\"unroll=k\"]}})\nC = T.alloc_buffer((8,), \"float32\", scope=\"local\")\n\
             for t in T.thread_binding(8, thread=\"threadIdx.x\"):\n    C[t] = A[0, t]\n\
             for t in T.thread_binding(8, thread=\"threadIdx.x\"):\n    for k in range(1):\n        B[0, t] = C[{index}]"
        )
    };
    assert!(race(ROWS, &body("t")).is_proved());
    assert!(matches!(race(ROWS, &body("7 - t")), Verdict::Unknown(_)));
}

#[test]
fn a_loop_is_bound_to_threads_later_only_if_it_is_a_reduction() {
    let body = |store: &str| {
        format!(
            "T.func_attr({{\"schedule\": [\"allreduce=k:threadIdx.x\"]}})\nC = T.alloc_buffer((8,), \"float32\", scope=\"local\")\n\
             for t in T.thread_binding(8, thread=\"threadIdx.x\"):\n    C[t] = A[0, t]\n\
             B[0, 0] = T.float32(0)\nfor k in range(8):\n    {store}"
        )
    };
    assert!(race(ROWS, &body("B[0, 0] = B[0, 0] + C[k]")).is_proved());
    for wrong in ["B[0, k] = C[k]", "B[0, 0] = C[k]", "B[0, k] = B[0, k] + C[k]", "B[0, 0] = B[0, 0] + C[7 - k]"] {
        assert!(matches!(race(ROWS, &body(wrong)), Verdict::Unknown(_)), "{wrong}");
    }
}

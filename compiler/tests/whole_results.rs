//! Steps whose results are read: proved if every element that someone reads is written, and not proved of twins that leave one out.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use tilewright_compiler::flow::FINDERS;
use tilewright_ir::{
    Graph, GraphStep, GraphTensor, MemoryPlan, Pool, PoolPlace, PoolRules, PrimFunc, Region, Room, ScalarType, Scope,
    TensorRole, TextureLimits,
};
use tilewright_verify::{Config, Judge, Obligation, Report, Verdict};

fn function(text: &str) -> PrimFunc {
    let text = format!("from tvm.script import tir as T\n\n@T.prim_func\n{text}");
    let read = tilewright_script::read_module(&text).unwrap_or_else(|faults| panic!("{faults:?}\n{text}"));
    read.funcs.into_iter().next().unwrap()
}

fn tensor(name: &str, shape: &[u64], role: TensorRole, scope: Scope) -> GraphTensor {
    let dtype = ScalarType::Float32.into();
    GraphTensor { name: name.into(), shape: shape.into(), dtype, scope, axis_separators: vec![], view_of: None, role }
}

/// What is said of the results of `work x -> y` and `next y -> z`, where the caller takes `z`, and `y` if there is no function `next`.
fn decided(work: &str, y: &[u64], scope: Scope, next: Option<&str>) -> Vec<Report> {
    let taken = if next.is_some() { TensorRole::Intermediate } else { TensorRole::Output };
    let mut tensors = vec![tensor("x", &[60], TensorRole::Input, Scope::Global), tensor("y", y, taken, scope)];
    let mut steps = vec![GraphStep { name: "work".into(), reads: vec![0], writes: vec![1] }];
    if next.is_some() {
        tensors.push(tensor("z", &[60], TensorRole::Output, Scope::Global));
        steps.push(GraphStep { name: "next".into(), reads: vec![1], writes: vec![2] });
    }
    let graph = Graph { tensors, steps };
    let (work, next) = (function(work), next.filter(|text| !text.is_empty()).map(function));
    let functions = [Some(&work), next.as_ref()];
    let room = |tensor: &GraphTensor| tensor.room().unwrap();
    let pool = |tensor: &GraphTensor| Pool { scope: tensor.scope, dtype: tensor.dtype, room: room(tensor) };
    let place = |(pool, tensor): (usize, &GraphTensor)| {
        let region = match room(tensor) {
            Room::Bytes(size) => Region::Bytes { offset: 0, size },
            Room::Texels { width, height } => Region::Texels { x: 0, y: 0, width, height },
        };
        PoolPlace { pool, region }
    };
    let plan = MemoryPlan {
        pools: graph.tensors.iter().map(pool).collect(),
        places: graph.tensors.iter().enumerate().map(place).collect(),
    };
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    let rules = PoolRules::any_width(TextureLimits { width: 1 << 14, height: 1 << 14 });
    let reports = judge.check_plan_of(&graph, &plan, rules, &functions[..graph.steps.len()], &FINDERS);
    assert!(reports[..4].iter().all(|report| report.verdict.is_proved()), "{reports:?}");
    reports.into_iter().filter(|report| report.obligation == Obligation::Defined).collect()
}

/// The function `work` from 60 floats to a result `B` of some shape.
fn work(shape: &[u64], scope: &str, body: &str) -> String {
    let shape: Vec<String> = shape.iter().map(u64::to_string).collect();
    let scope = if scope.is_empty() { String::new() } else { format!(", scope=\"{scope}\"") };
    let lines: Vec<String> = body.lines().map(|line| format!("    {line}")).collect();
    let params = format!("A: T.Buffer((60,), \"float32\"), B: T.Buffer(({},), \"float32\"{scope})", shape.join(", "));
    format!("def work({params}):\n{}\n", lines.join("\n"))
}

/// The verdict on the result of a step that the caller takes. What a function reads of its result is not looked at.
fn verdict(shape: &[u64], scope: Scope, body: &str) -> Verdict {
    let reports = decided(&work(shape, if scope == Scope::Texture { "texture" } else { "" }, body), shape, scope, None);
    let mut about = reports.into_iter().filter(|report| report.subject.contains("all that is read"));
    let report = about.next().unwrap();
    assert!(about.next().is_none());
    let one = "1 of 1 steps write all that is read";
    assert_eq!(report.subject == one, report.verdict.is_proved(), "{report:?}");
    report.verdict
}

#[track_caller]
fn proved_of(shape: &[u64], body: &str) {
    let verdict = verdict(shape, Scope::Global, body);
    assert!(verdict.is_proved(), "{verdict}\n{body}");
}

#[track_caller]
fn refuted_of(shape: &[u64], body: &str, part: &str) {
    let verdict = verdict(shape, Scope::Global, body);
    assert!(matches!(verdict, Verdict::Refuted(_)) && verdict.to_string().contains(part), "{verdict}\n{body}");
}

#[track_caller]
fn unknown_of(shape: &[u64], body: &str, part: &str) {
    let verdict = verdict(shape, Scope::Global, body);
    assert!(matches!(verdict, Verdict::Unknown(_)) && verdict.to_string().contains(part), "{verdict}\n{body}");
}

/// More elements than are tried.
const LARGE: u64 = 1_000_000;

#[test]
fn one_store_of_all_elements_is_proved_whatever_the_loops_are() {
    for extent in [60, LARGE] {
        let proved = |body: &str| proved_of(&[extent], &body.replace('N', &extent.to_string()));
        proved("for i in range(N):\n    B[i] = A[i % 60]");
        proved("for i in range(N):\n    B[N - 1 - i] = A[i % 60]");
        // A loop that does not start at 0, in parts that do not divide the extent, of threads, of lanes.
        proved("for i in range(3, N + 3):\n    B[i - 3] = A[0]");
        proved("for o, i in T.grid(N // 32 + 1, 32):\n    if o * 32 + i < N:\n        B[o * 32 + i] = A[0]");
        proved(
            "for b in T.thread_binding(N // 20, thread=\"blockIdx.x\"):\n    \
             for t in T.thread_binding(20, thread=\"threadIdx.x\"):\n        B[b * 20 + t] = A[t]",
        );
        proved("for o in range(N // 4):\n    for i in T.vectorized(4):\n        B[o * 4 + i] = A[i]");
        proved("for o in range(N // 4):\n    B[o * 4:o * 4 + 4] = T.broadcast(A[0], 4)");
        // A sum that starts at 0, and one that starts in its first iteration.
        proved("for i in range(N):\n    B[i] = T.float32(0)\n    for k in range(60):\n        B[i] = B[i] + A[k]");
        proved("for i, k in T.grid(N, 60):\n    if k == 0:\n        B[i] = T.float32(0)\n    B[i] = B[i] + A[k]");
        proved("for i, k in T.grid(N, 60):\n    if k == 7:\n        B[i] = A[k]");
        // A name on the way.
        proved("for i in range(N):\n    j: T.int32 = N - 1 - i\n    B[j] = A[0]");
        // Every element twice.
        proved("for i in range(2 * N):\n    B[i // 2] = A[0]");
    }
}

#[test]
fn a_view_of_all_elements_may_be_written() {
    for extent in [60, LARGE] {
        let of = |parts: &str, body: &str| {
            let view = format!("V = T.decl_buffer(({parts}), \"float32\", data=B.data)\n");
            (view + body).replace('N', &extent.to_string())
        };
        proved_of(&[extent], &of("N // 20, 20", "for a, b in T.grid(N // 20, 20):\n    V[a, b] = A[b]"));
        // A part of the elements, and not all of the view.
        let part = of("N // 20, 19", "for a, b in T.grid(N // 20, 19):\n    V[a, b] = A[b]");
        let row = of("N // 20, 20", "for a, b in T.grid(N // 20 - 1, 20):\n    V[a, b] = A[b]");
        for body in [part, row] {
            let found = verdict(&[extent], Scope::Global, &body);
            assert!(!found.is_proved(), "{found}\n{body}");
        }
    }
}

#[test]
fn several_stores_may_share_the_elements() {
    for extent in [60, LARGE] {
        let proved = |body: &str| proved_of(&[extent], &body.replace('N', &extent.to_string()));
        proved("for i in range(N // 2):\n    B[i] = A[0]\nfor i in range(N // 2):\n    B[i + N // 2] = A[1]");
        proved("for i in range(N // 2):\n    B[i * 2] = A[0]\n    B[i * 2 + 1] = A[1]");
        proved("for i in range(N):\n    if i < N - 7:\n        B[i] = A[0]\n    else:\n        B[i] = T.float32(0)");
        proved("B[0] = A[0]\nfor i in range(N - 1):\n    B[i + 1] = B[i] + A[1]");
        proved("for i in range(N - 1):\n    B[i] = A[0]\nB[N - 1] = A[1]");
    }
    // The middle and the border of an image.
    let border = "for h, w in T.grid(M, 50):\n    if 1 <= h and h < M - 1 and 1 <= w and w < 49:\n        B[h, w] = A[w]\n\
                  for h, w in T.grid(M, 50):\n    if h < 1 or M - 1 <= h or w < 1 or 49 <= w:\n        B[h, w] = T.float32(0)";
    for rows in [40, 4000] {
        proved_of(&[rows, 50], &border.replace('M', &rows.to_string()));
    }
    // Transposed, and in tiles.
    proved_of(&[500, 400], "for i, j in T.grid(400, 500):\n    B[j, i] = A[0]");
    proved_of(&[512, 384], "for a, b, i, j in T.grid(16, 24, 32, 16):\n    B[a * 32 + i, b * 16 + j] = A[0]");
    proved_of(
        &[1, 3, 70, 90, 4],
        "for f, w in T.grid(210, 90):\n    for c in T.vectorized(4):\n        B[0, f // 70, f % 70, w, c] = A[c]",
    );
}

#[test]
fn an_element_that_is_left_out_refutes_and_of_many_it_is_never_proved() {
    let left = |first: u64, body: &str| {
        refuted_of(
            &[60],
            &body.replace('N', "60"),
            &format!("`work` writes no element {first} of `y`, and the caller takes it"),
        );
        unknown_of(&[LARGE], &body.replace('N', &LARGE.to_string()), "");
    };
    left(59, "for i in range(N - 1):\n    B[i] = A[i % 60]");
    left(0, "for i in range(N - 1):\n    B[i + 1] = A[i % 60]");
    left(1, "for i in range(N // 2):\n    B[i * 2] = A[0]");
    left(1, "for i in range(N):\n    B[i * 2 % N] = A[0]");
    left(30, "for i in range(N):\n    if i < 30:\n        B[i] = A[0]");
    left(30, "for i in range(N):\n    if i != 30:\n        B[i] = A[0]");
    left(32, "for o, i in T.grid(N // 32, 32):\n    if o * 32 + i < 32 or N < 0:\n        B[o * 32 + i] = A[0]");
    left(3, "for o in range(N // 4):\n    B[o * 4:o * 4 + 3] = T.broadcast(A[0], 3)");
    left(
        20,
        "for b in T.thread_binding(N // 20, thread=\"blockIdx.x\"):\n    \
              for t in T.thread_binding(20, thread=\"threadIdx.x\"):\n        if b == 0:\n            B[b * 20 + t] = A[t]",
    );
    left(0, "for i, k in T.grid(N, 60):\n    if k == 60:\n        B[i] = A[0]");
    left(29, "for i in range(29):\n    B[i] = A[0]\nfor i in range(30, N):\n    B[i] = A[1]");
    left(0, "for i in range(N):\n    if i < 0:\n        B[i] = A[0]");
}

#[test]
fn lanes_of_texels_are_elements() {
    let texture = |shape: &[u64], body: &str| verdict(shape, Scope::Texture, body);
    for rows in [3, 5000] {
        let store = |lanes: u64| {
            format!("for h, w in T.grid({rows}, 5):\n    for c in T.vectorized({lanes}):\n        B[h, w, c] = A[c]")
        };
        let whole = texture(&[rows, 5, 4], &store(4));
        assert!(whole.is_proved(), "{whole}");
        let part = texture(&[rows, 5, 4], &store(2));
        assert!(!part.is_proved(), "{part}");
        assert_eq!(matches!(part, Verdict::Refuted(_)), rows == 3, "{part}");
    }
}

#[test]
fn what_memory_decides_is_unknown() {
    for extent in [60, LARGE] {
        let unknown = |body: &str| unknown_of(&[extent], &body.replace('N', &extent.to_string()), "");
        unknown("for i in range(N):\n    if A[i % 60] < T.float32(0):\n        B[i] = A[i % 60]");
        unknown(
            "for i in range(N):\n    if A[0] < T.float32(0):\n        B[i] = A[1]\n    else:\n        if i < N - 1:\n            B[i] = A[2]",
        );
    }
    // A value that memory decides is a value.
    proved_of(&[60], "for i in range(60):\n    B[i] = T.if_then_else(A[i] < T.float32(0), T.float32(0), A[i])");
    // What is written without it is enough.
    proved_of(
        &[60],
        "for i in range(60):\n    B[i] = T.float32(0)\nfor i in range(60):\n    if A[i] < T.float32(0):\n        B[i] = A[i]",
    );
    // An index that memory decides may be any.
    let scatter = "def work(A: T.Buffer((60,), \"int32\"), B: T.Buffer((60,), \"float32\")):\n    for i in range(60):\n        B[A[i]] = T.float32(0)\n";
    let reports = decided(scatter, &[60], Scope::Global, None);
    assert!(matches!(reports[0].verdict, Verdict::Unknown(_)), "{reports:?}");
}

#[test]
fn a_result_of_another_size_than_its_parameter_is_unknown() {
    let body = work(&[59], "", "for i in range(59):\n    B[i] = A[i]");
    let reports = decided(&body, &[60], Scope::Global, None);
    assert!(matches!(reports[0].verdict, Verdict::Unknown(_)), "{reports:?}");
    // The same elements in another shape.
    let body = work(&[6, 10], "", "for i, j in T.grid(6, 10):\n    B[i, j] = A[i]");
    assert!(decided(&body, &[60], Scope::Global, None)[0].verdict.is_proved());
    // A shape that the call decides.
    let body = "def work(A: T.Buffer((60,), \"float32\"), b: T.handle):\n    n = T.int32()\n    \
                B = T.match_buffer(b, (n,), \"float32\")\n    for i in range(n):\n        B[i] = A[0]\n";
    assert!(decided(body, &[60], Scope::Global, None)[0].verdict.is_proved());
    let reports = decided(&body.replace("range(n)", "range(n - 1)"), &[60], Scope::Global, None);
    assert!(matches!(reports[0].verdict, Verdict::Unknown(_)), "{reports:?}");
}

/// The verdict on the result of `work`, which leaves out the last element and every one that a reader in `next` does not read.
fn read_by(next: &str) -> Verdict {
    let left = work(&[60], "", "for i in range(59):\n    B[i] = A[i]");
    let next = if next.is_empty() {
        String::new()
    } else {
        let lines: Vec<String> = next.lines().map(|line| format!("    {line}")).collect();
        format!("def next(Y: T.Buffer((60,), \"float32\"), Z: T.Buffer((60,), \"float32\")):\n{}\n", lines.join("\n"))
    };
    let reports = decided(&left, &[60], Scope::Global, Some(&next));
    let about = reports.iter().find(|report| report.subject.contains("of `y`"));
    // What is proved is in the row of all steps.
    about.or(reports.first()).unwrap().verdict.clone()
}

#[test]
fn elements_that_are_left_out_matter_to_those_who_read_them() {
    let proved = |next: &str| assert!(read_by(next).is_proved(), "{}\n{next}", read_by(next));
    let refuted = |next: &str| {
        let verdict = read_by(next);
        let text = "`work` writes no element 59 of `y`, and step 1 `next` reads it";
        assert!(matches!(verdict, Verdict::Refuted(_)) && verdict.to_string().contains(text), "{verdict}\n{next}");
    };
    let unknown = |next: &str| assert!(matches!(read_by(next), Verdict::Unknown(_)), "{}\n{next}", read_by(next));
    proved("for i in range(60):\n    Z[i] = Y[i // 2]");
    proved("for i in range(60):\n    Z[i] = T.if_then_else(i < 59, Y[i], T.float32(0))");
    refuted("for i in range(60):\n    Z[i] = Y[i]");
    refuted("for i in range(60):\n    Z[i] = T.if_then_else(i < 59, Y[T.min(i, 58)], Y[i])");
    refuted("for i in range(60):\n    Z[i] = T.Select(i < 59, Y[i], T.float32(0))");
    refuted("for i in range(15):\n    Z[i * 4:i * 4 + 4] = Y[i * 4:i * 4 + 4]");
    unknown("for i in range(60):\n    Z[i] = T.if_then_else(Y[0] < T.float32(0), Y[i], T.float32(0))");
    // The function of the reader is not known.
    unknown("");
}

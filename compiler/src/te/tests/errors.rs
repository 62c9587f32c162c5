//! Every fault of a program has a code and a place.

use super::{lower, scheduled};

/// The code of the error, and the text that it points at.
fn fault(source: &str) -> (&'static str, String) {
    let Err(errors) = lower(source) else { panic!("this is wrong, but was accepted:\n{source}") };
    let label = errors[0].labels.first().map(|label| label.span);
    let place = label.map_or("", |span| &source[span.start as usize..span.end as usize]);
    (errors[0].code, place.to_owned())
}

#[test]
fn impossible_schedules_are_errors_at_their_place() {
    let cases = [
        ("s[B].split(k, 0)", "split", "s[B].split(k, 0)"),
        ("s[B].split(k, -4)", "split", "s[B].split(k, -4)"),
        ("s[B].split(k)", "split", "s[B].split(k)"),
        ("s[B].split(k, 4)\ns[B].unroll(k)", "not-a-loop", "s[B].unroll(k)"),
        ("s[B].fuse(i, k)", "fuse", "s[B].fuse(i, k)"),
        ("s[B].fuse(j, i)", "fuse", "s[B].fuse(j, i)"),
        ("s[B].reorder(i, i)", "reorder", "i"),
        ("s[B].reorder(i, 3)", "type", "3"),
        ("s[B].vectorize(i)", "vectorize-inner", "s[B].vectorize(i)"),
        ("s[B].bind(i, te.thread_axis('vthread'))", "thread-axis", "'vthread'"),
        ("s[B].bind(i, 'blockIdx.x')", "type", "'blockIdx.x'"),
        ("s[B].parallel(i)\ns[B].unroll(i)", "loop-kind", "s[B].unroll(i)"),
        (
            "s[B].bind(i, te.thread_axis((0, 5), 'threadIdx.x'))",
            "thread-extent",
            "s[B].bind(i, te.thread_axis((0, 5), 'threadIdx.x'))",
        ),
        ("s[A].split(s[A].op.axis[0], 2)", "no-loops", "s[A].split(s[A].op.axis[0], 2)"),
        ("s[B].compute_at(s[B], i)", "compute-at", "s[B].compute_at(s[B], i)"),
        ("s[A].compute_at(s[B], i)", "compute-at", "s[A].compute_at(s[B], i)"),
        ("s[B].compute_at(B, i)", "type", "B"),
        ("s[A].double_buffer()", "double-buffer", "s[A].double_buffer()"),
        (
            "L = s.cache_read(A, 'local', [B])\ns[L].bind(s[L].split(s[L].op.axis[0], 2)[0], te.thread_axis('threadIdx.x'))\ns[L].compute_at(s[B], i)",
            "compute-at",
            "s[L].compute_at(s[B], i)",
        ),
        (
            "L = s.cache_read(A, 'local', [B])\ns[L].compute_at(s[B], i)\ns[B].split(i, 2)",
            "not-a-loop",
            "s[L].compute_at(s[B], i)",
        ),
        ("s[B].tensorize(i, None)", "unsupported-primitive", "s[B].tensorize(i, None)"),
        ("s.rfactor(B, i)", "rfactor", "s.rfactor(B, i)"),
        ("s.cache_read(A, 'nowhere', [B])", "scope", "'nowhere'"),
        ("s.cache_read(B, 'local', [A])", "cache-reader", "[A]"),
        ("s[B].split(k, 4)\ns.cache_write(B, 'local')", "cache-write", "s.cache_write(B, 'local')"),
        ("s[B].tile_layout('{2,1,0:T(8,0)}')", "tile-layout", "'{2,1,0:T(8,0)}'"),
        ("s[B].tile_layout('{1,0}')", "tile-layout", "'{1,0}'"),
        ("s[B].tile_layout('{2,1,0}', pad_value='x')", "type", "pad_value='x'"),
        ("s[B].tile_layout('{2,1,0:T(2)}', axis_separators=[4])", "axis-separators", "axis_separators=[4]"),
        ("s[B].tile_layout('{2,1,0}')\ns[B].tile_layout('{0,1,2}')", "tile-layout", "s[B].tile_layout('{0,1,2}')"),
        (
            "s[B].tile_layout('{2,1,0}')\ns[B].transform_layout(lambda *i: i)",
            "tile-layout",
            "s[B].transform_layout(lambda *i: i)",
        ),
        ("s[B].set_scope('local')", "scope", "te.compute(A.shape, lambda i, j, k: A[i, j, k] + 1)"),
        ("s[B].transform_layout(lambda i, j: [i, j])", "rank", "lambda i, j: [i, j]"),
        ("s[B].transform_layout(lambda i, j, k: i)", "type", "lambda i, j, k: i"),
        (
            "s[B].transform_layout(lambda i, j, k: [te.AXIS_SEPARATOR, i, j, k])",
            "index-map",
            "lambda i, j, k: [te.AXIS_SEPARATOR, i, j, k]",
        ),
        ("s[B].transform_layout(lambda i, j, k: [i, 'x'])", "type", "lambda i, j, k: [i, 'x']"),
        ("s[te.placeholder((2,))]", "no-stage", "s[te.placeholder((2,))]"),
        ("tvm.lower(s, [A])", "parameters", "tvm.lower(s, [A])"),
        ("tvm.lower(s, [B])", "parameters", "tvm.lower(s, [B])"),
        ("tvm.lower(s, [A, A, B])", "parameters", "[A, A, B]"),
        ("tvm.lower(s, [A, B], name='a b')", "name", "name='a b'"),
        ("tvm.lower(s, [A, B], name='is')", "name", "name='is'"),
    ];
    for (rest, code, place) in cases {
        assert_eq!(fault(&scheduled(rest)), (code, place.to_owned()), "{rest}");
    }
}

#[test]
fn one_thread_axis_is_bound_once_in_a_nest() {
    let rest = "s[B].bind(i, te.thread_axis('threadIdx.x'))\ns[B].bind(j, te.thread_axis('threadIdx.x'))";
    assert_eq!(fault(&scheduled(rest)).0, "thread-twice");
}

#[test]
fn reductions_are_neither_bound_nor_parallel_nor_nested() {
    let program = |body: &str, rest: &str| {
        format!(
            "A = te.placeholder((7, 9))\nr = te.reduce_axis((0, 9), name='r')\nB = te.compute((7,), lambda i: {body})\ns = te.create_schedule(B.op)\n{rest}"
        )
    };
    let sum = "te.sum(A[i, r], axis=r)";
    assert_eq!(fault(&program(sum, "s[B].bind(r, te.thread_axis('blockIdx.x'))")).0, "reduction-kind");
    assert_eq!(fault(&program(sum, "s[B].parallel(s[B].op.reduce_axis[0])")).0, "reduction-kind");
    assert_eq!(fault(&program(sum, "s[B].fuse(s[B].op.axis[0], r)")).0, "fuse");
    assert_eq!(fault(&program("te.sum(A[i, r], axis=r) + 1", "")).0, "reduction-inside");
    assert_eq!(fault(&program("A[i, r]", "")).0, "stray-axis");
    assert_eq!(fault(&program("te.sum(A[i, 0], axis=i)", "")).0, "type");
}

#[test]
fn names_calls_and_indices_are_checked() {
    let cases = [
        ("x = M", "unknown-name", "M"),
        ("x = te.nothing(1)", "unsupported", "te.nothing(1)"),
        ("import numpy as np\nx = np.zeros((2,))", "numpy", "np.zeros"),
        ("x = topi.nn.relu(1)", "topi", "topi.nn.relu(1)"),
        ("A = te.placeholder((2, 7))\nx = A[1]", "rank", "A[1]"),
        ("A = te.placeholder((2, 7))\nx = A[1, 0.5]", "type", "A[1, 0.5]"),
        ("A = te.placeholder((2, 0))", "extent", "(2, 0)"),
        ("A = te.placeholder((2, -1))", "extent", "(2, -1)"),
        ("A = te.placeholder((9000000000, 9000000000))", "size", "(9000000000, 9000000000)"),
        ("A = te.placeholder((2,), dtype='float33')", "dtype", "dtype='float33'"),
        ("A = te.placeholder((2,), 'float32', 'A', 3)", "argument", "3"),
        ("A = te.placeholder((2,), colour=3)", "argument", "colour=3"),
        ("x, y = (1, 2, 3)", "unpack", "x, y"),
        ("x = 1 // 0", "division-by-zero", "1 // 0"),
        ("x = 9223372036854775807 + 1", "overflow", "9223372036854775807 + 1"),
        ("B = te.compute((2,), lambda i: [i, i])", "several-results", "lambda i: [i, i]"),
        ("B = te.compute((2,), ...)", "type", "..."),
        ("s = te.create_schedule(te.placeholder((2,)).op)", "schedule-input", "te.placeholder((2,)).op"),
        ("tvm.driver.lower([])", "no-schedule", "[]"),
        ("x = 3", "no-schedule", ""),
    ];
    for (source, code, place) in cases {
        assert_eq!(fault(source), (code, place.to_owned()), "{source}");
    }
}

#[test]
fn a_schedule_of_very_many_stages_is_an_error() {
    let chain = |n: usize| {
        let stages = (1..=n).map(|i| format!("T{i} = te.compute((8,), lambda i: T{}[i] + 1, name='T{i}')\n", i - 1));
        let stages: String = stages.collect();
        format!(
            "import tvm\nfrom tvm import te\nT0 = te.placeholder((8,), name='T0')\n{stages}s = te.create_schedule(T{n}.op)\n"
        )
    };
    assert_eq!(fault(&chain(4001)).0, "nesting");
}

#[test]
fn hostile_programs_end_in_an_error() {
    let recursion = "def f(n):\n  return f(n + 1)\nx = f(0)\n";
    assert_eq!(fault(recursion).0, "recursion");
    let loops = "for a in range(100000):\n  for b in range(100000):\n    c = a * b\n";
    assert_eq!(fault(loops).0, "fuel");
    assert_eq!(fault("x = range(10000000000)").0, "fuel");
    assert_eq!(fault("x = [1] * 100000000").0, "fuel");
    let doubling = "x = te.var('x')\nfor i in range(64):\n  x = x + x\n";
    assert_eq!(fault(doubling).0, "expression-size");
    let chain = "x = te.var('x')\nfor i in range(100000):\n  x = x + 1\n";
    assert_eq!(fault(chain).0, "expression-size");
    let splits = "for t in range(1000):\n  k, q = s[B].split(k, 1)";
    assert_eq!(fault(&scheduled(splits)).0, "fuel");
    let huge = "A = te.placeholder((2147483647, 2))\nB = te.compute(A.shape, lambda i, j: A[i, j])\ns = te.create_schedule(B.op)\ns[B].fuse(*s[B].op.axis)";
    assert_eq!(fault(huge).0, "overflow");
}

/// Words and symbols of a text, blanks and line breaks included.
fn tokens(source: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut last_word = false;
    for c in source.chars() {
        let word = c.is_alphanumeric() || c == '_';
        match tokens.last_mut() {
            Some(token) if word && last_word => token.push(c),
            _ => tokens.push(c.to_string()),
        }
        last_word = word;
    }
    tokens
}

#[test]
fn broken_programs_end_in_an_error_or_a_program_and_never_panic() {
    let mut paths: Vec<_> = std::fs::read_dir("../examples").unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "py"));
    paths.sort();
    let all: Vec<Vec<String>> = paths.iter().map(|path| tokens(&std::fs::read_to_string(path).unwrap())).collect();
    let pool: Vec<String> = all.iter().flatten().filter(|token| !token.trim().is_empty()).cloned().collect();
    // A linear congruence is random enough, and the same on every run.
    let mut state = 0x2545_F491_u64;
    let mut next = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % bound
    };
    let (mut programs, mut errors) = (0, 0);
    for original in &all {
        for _ in 0..60 {
            let mut tokens = original.clone();
            for _ in 0..=next(3) {
                let at = next(tokens.len());
                match next(3) {
                    0 => drop(tokens.remove(at)),
                    1 => tokens[at].clone_from(&pool[next(pool.len())]),
                    _ => tokens.insert(at, pool[next(pool.len())].clone()),
                }
            }
            match lower(&tokens.concat()) {
                Ok(_) => programs += 1,
                Err(found) => {
                    assert!(!found.is_empty());
                    errors += 1;
                }
            }
        }
    }
    assert!(programs > 20 && errors > 100, "{programs} programs, {errors} errors");
}

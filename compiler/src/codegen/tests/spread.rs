//! Loops of symbolic extents as work-items: bound where the judge proves that their iterations are independent, and nowhere else.

use tilewright_ir::PrimFunc;

use super::support::kernels;
use crate::codegen::{Binding, Generated};

/// The kernels of a function with the buffers `A` and `B` of `sizes` elements, and the symbolic extents `n` and `m`.
fn of(sizes: [&str; 2], body: &str) -> Generated {
    let [a, b] = sizes;
    let body = format!("    {}\n", body.replace('\n', "\n    "));
    let text = format!(
        "@T.prim_func\ndef f(a: T.handle, b: T.handle, c: T.handle):\n    n, m = T.int32(), T.int32()\n    \
         C = T.match_buffer(c, (n, m), \"float32\")\n    A = T.match_buffer(a, ({a},), \"float32\")\n    \
         B = T.match_buffer(b, ({b},), \"float32\")\n{body}"
    );
    let func: PrimFunc = tilewright_script::read_module(&text).expect(&text).funcs.remove(0);
    kernels(&func)
}

/// How the last kernel is bound, its work-items in each dimension, and the notes.
fn bound(generated: &Generated) -> (Binding, String, String) {
    let kernel = generated.metadata.kernels.last().expect("a kernel");
    let global = serde_json::to_value(&kernel.global).expect("sizes").to_string().replace('"', "");
    (kernel.binding, global, generated.metadata.notes.join("\n"))
}

#[test]
fn independent_iterations_of_any_number_are_work_items() {
    let transpose = "for i in range(n):\n    for j in range(m):\n        B[i * m + j] = A[j * n + i]";
    let (binding, global, notes) = bound(&of(["m * n", "n * m"], transpose));
    assert_eq!((binding, &*global, &*notes), (Binding::Automatic, "[m,n,1]", ""));

    let sum = "for i in range(n):\n    B[i] = T.float32(0)\n    for k in range(m):\n        B[i] = B[i] + A[i * m + k]";
    let (binding, global, notes) = bound(&of(["n * m", "n"], sum));
    assert_eq!((binding, &*global, &*notes), (Binding::Automatic, "[n,1,1]", ""), "the sum itself is serial");

    let packed = "for i in range(n):\n    for j in range(m):\n        B[(i * ((m + 3) // 4) + j // 4) * 4 + j % 4] = A[i * m + j]";
    let (binding, global, notes) = bound(&of(["n * m", "n * ((m + 3) // 4) * 4"], packed));
    assert_eq!((binding, &*global, &*notes), (Binding::Automatic, "[m,n,1]", ""));
}

#[test]
fn iterations_that_are_not_independent_stay_serial_and_a_note_says_so() {
    let dependent = [
        ("for i in range(n):\n    for j in range(m):\n        B[i + j] = A[i * m + j]", ["n * m", "n + m"]),
        ("for i in range(n):\n    for j in range(m):\n        B[i * (m - 1) + j] = A[i * m + j]", ["n * m", "n * m"]),
        ("for i in range(n - 1):\n    B[i + 1] = B[i] + A[i]", ["n", "n"]),
        ("for i in range(n):\n    B[i % 3] = A[i]", ["n", "3"]),
        // The assertion does not hold any more where the nest runs.
        (
            "assert A[0] <= T.float32(1), \"x\"\nfor i in T.parallel(1):\n    A[0] = T.float32(2)\n\
             for i in range(n - 1):\n    if A[0] > T.float32(1):\n        B[i + 1] = B[i] + A[i]",
            ["n", "n"],
        ),
    ];
    for (body, sizes) in dependent {
        let (binding, global, notes) = bound(&of(sizes, body));
        assert_eq!((binding, &*global), (Binding::Single, "[1,1,1]"), "{body}");
        assert!(notes.contains("the nest of `i` runs as one work-item: the race"), "{body}: {notes}");
    }
    let (binding, _, notes) = bound(&of(["n", "n"], "for i in range(n):\n    B[0] = A[i]"));
    assert_eq!(binding, Binding::Single);
    assert_eq!(notes, "the nest of `i` runs as one work-item: where it writes does not depend on `i`");
    let (binding, _, notes) = bound(&of(["n", "n"], "for i in range(T.Cast(\"int32\", A[0])):\n    B[i] = A[i]"));
    assert_eq!(binding, Binding::Single);
    assert_eq!(notes, "the nest of `i` runs as one work-item: the extent of its first loop is not known at the launch");
}

//! What each primitive makes of the loops.

use tilewright_ir::Bindings;

use super::{claims, lower, lower_one, render, scheduled};

fn text(rest: &str) -> String {
    render(&lower_one(&scheduled(rest)))
}

#[test]
fn a_ragged_split_is_guarded_and_an_even_one_is_not() {
    assert!(text("s[B].split(k, 4)").contains("if k_outer * 4 + k_inner < 9"));
    assert!(!text("s[B].split(k, 3)").contains("if"));
    assert!(text("s[B].split(k, nparts=4)").contains("for k_outer < 4\n      for k_inner < 3\n"));
    assert!(!text("s[B].split(k, nparts=3)").contains("if"));
}

#[test]
fn kinds_and_names_of_loops_are_those_asked_for() {
    let rest = "f = s[B].fuse(i, j)\nfo, fi = s[B].split(f, 7)\ns[B].bind(fo, te.thread_axis('blockIdx.x'))\ns[B].bind(fi, te.thread_axis((0, 7), 'threadIdx.x'))\nko, ki = s[B].split(k, 3)\ns[B].unroll(ko)\ns[B].vectorize(ki)";
    let loops: Vec<_> = text(rest).lines().take(4).map(|line| line.trim().to_owned()).collect();
    let expected = [
        "for i_j_fused_outer < 2 blockIdx.x",
        "for i_j_fused_inner < 7 threadIdx.x",
        "for k_outer < 3 unrolled",
        "for k_inner < 3 vectorized",
    ];
    assert_eq!(loops, expected);
}

#[test]
fn a_reduction_starts_inside_the_loops_before_its_first_reduced_one() {
    let source = "
A = te.placeholder((7, 9), dtype='int32')
r = te.reduce_axis((2, 9), name='r')
B = te.compute((7,), lambda i: te.max(A[i, r], axis=r))
s = te.create_schedule(B.op)
";
    let expected = "for i < 7\n  B[i] = -2147483648\n  for r < 7\n    B[i] = max(B[i], A[i, r + 2])\n";
    assert_eq!(render(&lower_one(source)), expected);
    let reordered = format!("{source}s[B].reorder(r, s[B].op.axis[0])\n");
    let lowered = lower_one(&reordered);
    let expected = "for i < 7\n  B[i] = -2147483648\nfor r < 7\n  for i < 7\n    B[i] = max(B[i], A[i, r + 2])\n";
    assert_eq!(render(&lowered), expected);
    assert_eq!(claims::check(&lowered, &Bindings::new()), 7 + 49);
}

#[test]
fn a_written_cache_computes_and_the_tensor_copies() {
    let rest = "BL = s.cache_write(B, 'local')\ns[BL].split(s[BL].op.axis[2], 4)\ns[BL].transform_layout\n";
    let lowered = lower_one(&scheduled(&rest.replace("s[BL].transform_layout\n", "")));
    let text = render(&lowered);
    assert!(text.starts_with("allocate B_local[2, 7, 9] local\n"), "{text}");
    assert!(text.contains("B_local[i, j, k_outer * 4 + k_inner] = A[i, j, k_outer * 4 + k_inner] + 1.0"), "{text}");
    assert!(text.contains("B[i, j, k] = B_local[i, j, k]"), "{text}");
    assert_eq!(claims::check(&lowered, &Bindings::new()), 2 * 126);
}

#[test]
fn a_cache_of_a_cache_is_read_by_its_reader_only() {
    let source = "
A = te.placeholder((7, 9), name='A')
B = te.compute((7, 9), lambda i, j: A[i, j] + 1)
C = te.compute((7, 9), lambda i, j: A[i, j] * B[i, j])
s = te.create_schedule(C.op)
AA = s.cache_read(A, 'texture', [C])
AL = s.cache_read(AA, 'local', [C])
s[AL].transform_layout(lambda i, j: [j, i])
";
    let lowered = lower_one(source);
    let text = render(&lowered);
    assert!(text.contains("B[i, j] = A[i, j] + 1.0"), "{text}");
    assert!(text.contains("A_texture_local[i, j] = A_texture[i, j]") || text.contains("= A_texture["), "{text}");
    assert!(text.contains("C[i, j] = A_texture_local[i, j] * B[i, j]"), "{text}");
    assert_eq!(claims::check(&lowered, &Bindings::new()), 4 * 63);
}

#[test]
fn a_layout_after_a_split_leaves_the_loops_and_says_so() {
    let lowered = lower_one(&scheduled(
        "s[B].split(k, 4)\nr = s[B].transform_layout(lambda i, j, k: [k, j, i])\nassert_empty = len(r) == 0\n",
    ));
    assert!(render(&lowered).contains("k_outer"));
    assert_eq!(lowered.warnings[0].code, "loops-kept");
    assert_eq!(lowered.func.attrs.layout_transform_map.len(), 1);
    assert_eq!(claims::check(&lowered, &Bindings::new()), 126);
}

#[test]
fn extents_beyond_int32_are_indexed_by_int64() {
    let source = "
from tvm.te import AXIS_SEPARATOR
A = te.placeholder((2, 3000000000), 'int8')
B = te.compute(A.shape, lambda i, j: A[i, j] + 1)
s = te.create_schedule(B.op)
x = s[B].transform_layout(lambda i, j: [j // 4, i, AXIS_SEPARATOR, j % 4])
s[B].split(s[B].fuse(x[0], x[1]), 7)
";
    let lowered = lower_one(source);
    let tilewright_ir::StmtKind::For(outer) = &lowered.func.body.kind else { panic!("a loop") };
    assert_eq!(outer.extent.as_const_int(), Some(214_285_715));
    assert_eq!(outer.var.dtype().to_string(), "int64");
}

#[test]
fn a_map_without_inverse_is_recorded_for_the_judge_and_leaves_the_loops() {
    let lowered = lower_one(&scheduled("s[B].transform_layout(lambda i, j, k: [i, j, k // 2])"));
    assert!(render(&lowered).starts_with("for i < 2\n  for j < 7\n    for k < 9\n"));
    assert_eq!(lowered.warnings[0].code, "loops-kept");
    assert_eq!(lowered.func.attrs.layout_transform_map[0].1[0].to_string(), "lambda i, j, k: [i, j, k // 2]");
}

#[test]
fn parameters_follow_the_lower_call_and_else_the_definition() {
    let source = "
B = te.placeholder((2, 7), name='B')
A = te.placeholder((2, 7), name='A')
C = te.compute((2, 7), lambda i, j: A[i, j] - B[i, j])
s = te.create_schedule(C.op)
";
    let names = |source: &str| {
        let lowered = lower_one(source);
        let names: Vec<_> = lowered.func.buffer_map.iter().map(|(_, buffer)| buffer.name.clone()).collect();
        (lowered.func.name, names.join(" "))
    };
    assert_eq!(names(source), ("main".to_owned(), "B A C".to_owned()));
    let called = format!("{source}tvm.lower(s, [C, A, B], name='sub', simple_mode=True)\n");
    assert_eq!(names(&called), ("sub".to_owned(), "C A B".to_owned()));
}

#[test]
fn scalar_parameters_bind_extents_that_no_shape_has() {
    let source = "
n = te.var('n')
A = te.placeholder((7,), name='A')
r = te.reduce_axis((0, n), name='r')
B = te.compute((7,), lambda i: te.sum(A[i], axis=r))
s = te.create_schedule(B.op)
";
    let errors = lower(&format!("{source}tvm.lower(s, [A, B])\n")).unwrap_err();
    assert_eq!(errors[0].code, "unbound-extent");
    let lowered = lower_one(&format!("{source}tvm.lower(s, [n, A, B])\n"));
    assert_eq!(lowered.func.params[0].name(), "n");
    assert_eq!(lower_one(source).func.params.len(), 3, "without a call the extent is an argument");
}

#[test]
fn plain_python_around_the_schedule_is_run() {
    let source = "
def make(n, k=3):
    if n > 2 and k == 3:
        return [te.placeholder((n, i + 1)) for i in range(k) if i != 1]
    return None

total = 0
for i, t in enumerate(make(7)):
    total += t.shape[1] * (i + 1)
A = te.placeholder((7, total))
B = te.compute(A.shape, lambda i, j: A[i, j] if i < 3 or not j == 0 else -A(i, j))
s = te.create_schedule([B])
if __name__ == '__main__':
    print(tvm.lower(s, [A, B], simple_mode=True))
";
    let lowered = lower_one(source);
    assert_eq!(lowered.definition.params[0].const_shape(), Some(vec![7, 7]));
    assert!(render(&lowered).contains("if_then_else(i < 3 or not j == 0, A[i, j], -A[i, j])"), "{}", render(&lowered));
}

#[test]
fn types_are_promoted_as_te_promotes_them() {
    let source = |body: &str| {
        format!(
            "A = te.placeholder((7,), dtype='int8')\nF = te.placeholder((7,), dtype='float16')\nL = te.placeholder((7,), dtype='int64')\nB = te.compute((7,), lambda i: {body})\ns = te.create_schedule(B.op)\n"
        )
    };
    let ty = |body: &str| lower_one(&source(body)).definition.stages[0].buffer.dtype.to_string();
    assert_eq!(ty("A[i] + 1"), "int8");
    assert_eq!(ty("A[i] + L[i]"), "int64");
    assert_eq!(ty("A[i] * F[i]"), "float16");
    assert_eq!(ty("A[i] * 0.5"), "float32");
    assert_eq!(ty("A[i] < L[i]"), "bool");
    assert_eq!(ty("te.exp(F[i])"), "float16");
    assert_eq!(ty("A[i].astype('float64') / 2"), "float64");
    assert_eq!(ty("tvm.tir.const(1, 'uint8')"), "uint8");
    assert_eq!(ty("tvm.tir.if_then_else(i < 3, A[i], L[i])"), "int64");
    assert_eq!(lower(&source("A[i] + 1000")).unwrap_err()[0].code, "constant");
    assert_eq!(lower(&source("A[i] / 2")).unwrap_err()[0].code, "integer-division");
    assert_eq!(lower(&source("te.exp(A[i])")).unwrap_err()[0].code, "type");
}

#[test]
fn an_inlined_tensor_has_no_memory_and_stands_where_it_is_read() {
    let source = "
A = te.placeholder((7, 9), name='A')
B = te.compute((7, 9), lambda i, j: A[i, j] + 1, name='B')
C = te.compute((7, 9), lambda i, j: B[i, 8 - j] * B[6 - i, j], name='C')
D = te.compute((9, 7), lambda i, j: C[j, i], name='D')
s = te.create_schedule(D.op)
s[B].compute_inline()
s[C].compute_inline()
AL = s.cache_read(A, 'local', [D])
";
    let lowered = lower_one(source);
    let text = render(&lowered);
    assert!(text.contains("D[i, j] = (A_local[j, 8 - i] + 1.0) * (A_local[6 - j, i] + 1.0)"), "{text}");
    assert_eq!(lowered.definition.stages.len(), 1);
    assert_eq!(claims::check(&lowered, &Bindings::new()), 2 * 63);
    let fault = |rest: &str| lower(&format!("{source}{rest}\n")).unwrap_err()[0].code;
    assert_eq!(fault("s[D].compute_inline()"), "inline");
    assert_eq!(fault("s[A].compute_inline()"), "inline");
    assert_eq!(fault("s[B].split(s[B].op.axis[0], 2)"), "inlined");
}

#[test]
fn tensors_of_one_name_get_different_ones_in_the_program() {
    let source = "
A = te.placeholder((7,), name='T')
B = te.compute((7,), lambda i: te.compute((7,), lambda j: A[j] + 2)[i] * A[i], name='T')
s = te.create_schedule(B.op)
";
    let text = render(&lower_one(source));
    assert!(text.contains("compute[j] = T[j] + 2.0") && text.contains("T_1[i] = compute[i] * T[i]"), "{text}");
}

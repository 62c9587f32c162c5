# Four stages whose buffers share memory: `scaled` overwrites `rows`, and `out` is kept there when both are not read any more.
from tvm.script import tir as T


@T.prim_func
def normalise(a: T.handle, c: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 24), "float32")
    C = T.match_buffer(c, (n, 24), "float32")
    T.func_attr({"passes": ["storage_rewrite"]})
    for i in T.thread_binding(n, thread="blockIdx.x"):
        rows = T.alloc_buffer((24,), "float32", scope="local")
        scaled = T.alloc_buffer((24,), "float32", scope="local")
        sums = T.alloc_buffer((4, 5), "float32", scope="local")
        out = T.alloc_buffer((20,), "float32", scope="local")
        for j in range(24):
            rows[j] = A[i, j]
        for j in range(24):
            scaled[j] = rows[j] * T.float32(2)
        for j, k in T.grid(4, 5):
            sums[j, k] = scaled[j * 5 + k] + scaled[23 - j]
        for j in range(20):
            out[j] = sums[j % 4, j // 4]
        for j in range(24):
            C[i, j] = T.if_then_else(j < 20, out[j % 20], A[i, j])

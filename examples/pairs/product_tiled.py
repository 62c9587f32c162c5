from tvm.script import tir as T

@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    n = T.int32()
    m = T.int32()
    k = T.int32()
    A = T.match_buffer(a, (n, k), "float32")
    B = T.match_buffer(b, (k, m), "float32")
    C = T.match_buffer(c, (n, m), "float32")
    for i, j in T.grid(n, m):
        C[i, j] = T.float32(0)
    for it, lt, jt in T.grid((n + 7) // 8, (k + 3) // 4, (m + 15) // 16):
        for i, l, j in T.grid(8, 4, 16):
            if it * 8 + i < n and lt * 4 + l < k and jt * 16 + j < m:
                C[it * 8 + i, jt * 16 + j] = C[it * 8 + i, jt * 16 + j] + A[it * 8 + i, lt * 4 + l] * B[lt * 4 + l, jt * 16 + j]

# A loop that was split by a factor that need not divide its extent, with an unrolled loop inside.
from tvm.script import tir as T


@T.prim_func
def guarded_copy(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 3), "float32")
    B = T.match_buffer(b, (n, 3), "float32")
    for o, i in T.grid((n + 3) // 4, 4):
        if o * 4 + i < n:
            for c in T.unroll(3):
                B[o * 4 + i, c] = A[o * 4 + i, 2 - c] + T.float32(1)

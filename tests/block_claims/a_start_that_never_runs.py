# unproved B[
# The condition never holds, and another element is updated.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), n: T.int32):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi])
            T.writes(B[0:8])
            if vi < 0:
                B[vi] = T.float32(0)
            B[(vi + 1) % 8] = B[(vi + 1) % 8] + A[vi]

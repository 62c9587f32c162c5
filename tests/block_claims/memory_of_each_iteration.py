# unproved domain of block P
# Each iteration has memory of its own, and computes a part of it.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((4, 10), "float32"), B: T.Buffer((4, 10), "float32"), D: T.Buffer((4, 4), "float32")):
    for t in range(4):
        P = T.alloc_buffer((10,), "float32")
        for u in range(4):
            D[t, u] = T.float32(0)
            for i in range(3):
                with T.sblock("P"):
                    vi = T.axis.spatial(10, t * 3 + i)
                    T.where(t * 3 + i < 10)
                    P[vi] = A[t, vi]
        for i in range(10):
            with T.sblock("B"):
                vt = T.axis.spatial(4, t)
                vi = T.axis.spatial(10, i)
                B[vt, vi] = P[vi]

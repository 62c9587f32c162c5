# unproved domain of block P
# Memory changes between the conditions.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((10,), "float32"), G: T.Buffer((4,), "int32"), B: T.Buffer((4, 10), "float32")):
    P = T.alloc_buffer((10,), "float32")
    F = T.alloc_buffer((1,), "int32")
    F[0] = 0
    for t in range(4):
        if F[0] > 0:
            for i in range(10):
                with T.sblock("P"):
                    vi = T.axis.spatial(10, i)
                    P[vi] = A[vi]
        F[0] = G[t]
        if F[0] > 0:
            for i in range(10):
                with T.sblock("B"):
                    vt = T.axis.spatial(4, t)
                    vi = T.axis.spatial(10, i)
                    B[vt, vi] = P[vi]

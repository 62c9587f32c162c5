# unproved instances of block C
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32"), D: T.Buffer((8,), "float32")):
    for t in range(8):
        P = T.alloc_buffer((1,), "float32")
        for u in range(1):
            with T.sblock("P"):
                vi = T.axis.spatial((t, t + 1), t)
                P[0] = A[vi]
        for i in range(1):
            with T.sblock("C"):
                vi = T.axis.spatial(1, i)
                B[vi] = P[vi]

# unproved instances of block C
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8, 2), "float32"), B: T.Buffer((8,), "float32"), D: T.Buffer((2,), "float32")):
    P = T.alloc_buffer((8,), "float32")
    for r in range(2):
        for i in range(8):
            with T.sblock("P"):
                vi = T.axis.spatial(8, i)
                vo = T.axis.opaque(2, r)
                P[vi] = A[vi, vo]
        for i in range(8):
            with T.sblock("C"):
                vi = T.axis.spatial(8, i)
                B[vi] = P[vi]

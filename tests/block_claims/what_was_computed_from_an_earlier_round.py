# unproved instances of block P
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((2, 4), "float32"), B: T.Buffer((2, 4), "float32")):
    Q = T.alloc_buffer((4,), "float32")
    P = T.alloc_buffer((4,), "float32")
    for t in range(2):
        for i in range(4):
            with T.sblock("Q"):
                vt, vi = T.axis.remap("SS", [t, i])
                Q[vi] = A[vt, vi]
        for i in range(4):
            with T.sblock("P"):
                vi = T.axis.spatial(4, i)
                T.where(t == 0 or i < 2)
                P[vi] = Q[vi]
        for i in range(4):
            with T.sblock("B"):
                vt, vi = T.axis.remap("SS", [t, i])
                B[vt, vi] = P[vi]

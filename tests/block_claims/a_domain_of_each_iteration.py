# unproved domain of block P
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((4, 2), "float32")):
    P = T.alloc_buffer((8,), "float32")
    for i in range(8):
        P[i] = T.float32(0)
    for t in range(4):
        for i in range(2):
            with T.sblock("P"):
                vi = T.axis.spatial((t * 2, t * 2 + 2), t * 2 + i)
                T.where(i < 1)
                P[vi] = A[vi]
        for u in range(2):
            with T.sblock("B"):
                vt = T.axis.spatial(4, t)
                vu = T.axis.spatial(2, u)
                B[vt, vu] = P[T.max(vt * 2 - vu, 0)]

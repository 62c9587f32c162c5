# unproved domain of block P
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((40,), "float32"), B: T.Buffer((40,), "float32")):
    P = T.alloc_buffer((40,), "float32")
    S = T.alloc_buffer((20,), "float32")
    for i in range(40):
        P[i] = T.float32(0)
    for i in range(40):
        with T.sblock("P"):
            vi = T.axis.spatial(40, i)
            T.where(i < 20)
            P[vi] = A[vi]
            S[vi] = A[vi]
    for i in range(40):
        with T.sblock("B"):
            vi = T.axis.spatial(40, i)
            B[vi] = P[vi]

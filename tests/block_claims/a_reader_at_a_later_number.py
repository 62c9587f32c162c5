# unproved domain of block P
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    P = T.alloc_buffer((8,), "float32")
    F = T.alloc_buffer((1,), "int32")
    for i in range(8):
        P[i] = T.float32(0)
    F[0] = 3
    for i in range(8):
        if F[0] % 8 == i:
            with T.sblock("P"):
                vi = T.axis.spatial(8, i)
                P[vi] = A[vi]
    F[0] = 5
    B[0] = P[F[0] % 8]

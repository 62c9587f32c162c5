# unproved A[F
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((16,), "int32"), B: T.Buffer((8,), "int32")):
    F = T.alloc_buffer((1,), "int32")
    F[0] = 0
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            T.reads(A[F[0] % 16], F[0])
            T.writes(B[vi], F[0])
            F[0] = 9
            B[vi] = A[F[0] % 16]

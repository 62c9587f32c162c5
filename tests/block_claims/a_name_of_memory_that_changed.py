# unproved domain of block B
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    F = T.alloc_buffer((1,), "int32")
    F[0] = 0
    for i in range(8):
        x: T.int32 = F[0]
        F[0] = F[0] + 1
        if F[0] == x:
            with T.sblock("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]

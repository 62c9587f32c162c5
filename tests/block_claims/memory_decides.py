# unproved domain of block B
# The counter stops the block after four instances.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    F = T.alloc_buffer((1,), "int32")
    F[0] = 0
    for i in range(8):
        if F[0] < 4:
            with T.sblock("B"):
                vi = T.axis.spatial(8, i)
                T.reads(A[vi])
                T.writes(B[vi])
                B[vi] = A[vi]
        F[0] = F[0] + 1

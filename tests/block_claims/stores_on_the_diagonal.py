# unproved domain of block X
# The reader reads the first column.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    X = T.alloc_buffer((8, 8), "float32")
    for i, j in T.grid(8, 8):
        X[i, j] = T.float32(0)
    for i in range(4):
        with T.sblock("X"):
            vi = T.axis.spatial(8, i)
            X[vi, vi] = A[vi]
            X[vi, 0] = A[vi]
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            B[vi] = X[vi, 0]

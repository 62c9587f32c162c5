# unproved domain of block X
# Seven of eight instances do not run, and the reader needs what the second store of each writes.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    X = T.alloc_buffer((8, 2), "float32")
    for i, j in T.grid(8, 2):
        X[i, j] = T.float32(0)
    for i in range(1):
        with T.sblock("X"):
            vi = T.axis.spatial(8, i)
            X[vi, 0] = A[vi]
            X[vi, 1] = A[vi]
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            B[vi] = X[vi, 1]

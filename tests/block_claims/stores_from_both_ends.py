# unproved domain of block X
# The second store writes the elements in the other order.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    X = T.alloc_buffer((2, 8), "float32")
    for i, j in T.grid(8, 2):
        X[j, i] = T.float32(0)
    for i in range(1):
        with T.sblock("X"):
            vi = T.axis.spatial(8, i)
            X[0, vi] = A[vi]
            X[1, 7 - vi] = A[vi]
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            B[vi] = X[1, vi]

# unproved domain of block X
# The flag lets one instance run, and all are read.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    F = T.alloc_buffer((1,), "int32")
    F[0] = 0
    X = T.alloc_buffer((8,), "float32")
    for i in range(8):
        X[i] = T.float32(0)
    for i in range(8):
        if F[0] == 0:
            with T.sblock("X"):
                vi = T.axis.spatial(8, i)
                X[vi] = A[vi]
            F[0] = 1
    for i in range(8):
        with T.sblock("C"):
            vi = T.axis.spatial(8, i)
            B[vi] = X[vi]

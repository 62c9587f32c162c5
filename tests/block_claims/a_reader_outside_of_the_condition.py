# unproved domain of block P
# The reader runs where the block does not.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((10,), "float32"), B: T.Buffer((10,), "float32"), n: T.int32):
    P = T.alloc_buffer((10,), "float32")
    if n > 5:
        for i in range(10):
            with T.sblock("P"):
                vi = T.axis.spatial(10, i)
                P[vi] = A[vi]
    for i in range(10):
        with T.sblock("B"):
            vi = T.axis.spatial(10, i)
            B[vi] = P[vi]

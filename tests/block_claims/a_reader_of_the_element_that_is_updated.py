# unproved domain of block B
# The reader outside reads what each instance overwrites.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((10,), "float32"), B: T.Buffer((2,), "float32")):
    P = T.alloc_buffer((2,), "float32")
    P[1] = T.float32(0)
    for i in range(5):
        with T.sblock("B"):
            vi = T.axis.spatial(10, i)
            P[0] = A[vi]
    B[0] = P[0]
    B[1] = P[1]

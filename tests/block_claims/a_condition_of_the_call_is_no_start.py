# unproved B[vi]
# The condition does not hold in each call: then the element is an input.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((8, ), "float32"), B: T.Buffer((8,), "float32"), n: T.int32):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi])
            T.writes(B[vi])
            if n > 100:
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi]

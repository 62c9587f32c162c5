# unproved scanned axes of block B
# The loop behind the name counts down.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), D: T.Buffer((4,), "float32")):
    for t in range(4):
        D[t] = T.float32(1)
        x: T.int32 = 6 - t * 2
        for i in range(2):
            with T.sblock("B"):
                vi = T.axis.scan((x, x + 2), x + i)
                B[vi] = T.if_then_else(vi > 0, B[T.max(vi - 1, 0)], T.float32(0)) + A[vi]

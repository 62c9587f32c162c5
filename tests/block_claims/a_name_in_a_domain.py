# unproved block B
# The domain depends on a name inside of the loops.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32"), D: T.Buffer((4,), "float32")):
    for j in range(8):
        for t in range(2):
            D[t] = T.float32(1)
            x: T.int32 = t * 2
            for i in range(2):
                with T.sblock("B"):
                    vj = T.axis.spatial(8, j)
                    vk = T.axis.reduce((x, x + 2), x + i)
                    with T.init():
                        B[vj] = T.float32(0)
                    B[vj] = B[vj] + A[vj, vk]

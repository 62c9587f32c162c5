# proved
# The domain of the reduced axis depends on the other axis.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        for k in range(i + 1):
            with T.sblock("tri"):
                vi = T.axis.spatial(8, i)
                vk = T.axis.reduce((0, vi + 1), k)
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vk]

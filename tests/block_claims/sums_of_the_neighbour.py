# unproved instances of block B
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8, 4), "float32"), B: T.Buffer((9,), "float32"), D: T.Buffer((2,), "float32")):
    for r in range(2):
        D[r] = T.float32(1)
        for i, k in T.grid(8, 4):
            with T.sblock("B"):
                vi = T.axis.spatial(8, i)
                vk = T.axis.reduce(4, k)
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + B[vi + 1] * A[vi, vk]

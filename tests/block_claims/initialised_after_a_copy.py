# unproved instances of block B
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32"), D: T.Buffer((2,), "float32")):
    for r in range(2):
        D[r] = T.float32(1)
        for i, k in T.grid(8, 4):
            with T.sblock("B"):
                vi = T.axis.spatial(8, i)
                vk = T.axis.reduce(4, k)
                with T.init():
                    C[vi] = B[vi]
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]

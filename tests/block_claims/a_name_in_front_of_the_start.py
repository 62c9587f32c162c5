# unproved initialisation of block
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8, 4), "float32"), B: T.Buffer((2, 8), "float32"), F: T.Buffer((1,), "int32")):
    for i, k in T.grid(8, 4):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(4, k)
            x = vk % 2
            with T.init():
                B[x, vi] = T.float32(0)
            B[x, vi] = B[x, vi] + A[vi, vk]

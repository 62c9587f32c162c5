# unproved initialisation of block
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32"), S: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 4):
        with T.sblock("P"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(4, k)
            with T.init():
                B[vi] = T.float32(0)
                S[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
            S[7 - vi] = B[vi]

# unproved initialisation of block
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    for i, k in T.grid(8, 4):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(4, k)
            with T.init():
                for j in range(vk + 1):
                    B[vi, j] = T.float32(0)
            for j in range(vk + 1):
                B[vi, j] = B[vi, j] + A[vi, vk]

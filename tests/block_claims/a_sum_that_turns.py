# unproved initialisation of block X
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((2, 2), "float32"), B: T.Buffer((2,), "float32")):
    for i in range(2):
        B[i] = T.float32(0)
    for l0 in range(2):
        for l1 in range(2):
            with T.sblock("X"):
                vi = T.axis.spatial(2, (l0 + l1) % 2)
                vk = T.axis.reduce(2, l1)
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]

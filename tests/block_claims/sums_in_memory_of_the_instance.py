# unproved initialisation of block
# What is initialised is memory of one instance.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4,), "float32")):
    for i, k in T.grid(4, 4):
        with T.sblock("O"):
            vi, vk = T.axis.remap("SR", [i, k])
            P = T.alloc_buffer((1,), "float32")
            with T.init():
                P[0] = T.float32(0)
            P[0] = P[0] + A[vi, vk]
            B[vi] = P[0]

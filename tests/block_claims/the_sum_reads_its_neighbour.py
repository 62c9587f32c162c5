# unproved B[vi + 1]
# What is read beside the element that is updated is an input.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((8, 4), "float32"), B: T.Buffer((9,), "float32")):
    for i, k in T.grid(8, 4):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(4, k)
            T.reads(A[vi, vk])
            T.writes(B[vi:vi+2])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + B[vi + 1] * A[vi, vk]

# unproved B[vi]
# The initialisation reads the element before it is written.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32")):
    for i, k in T.grid(8, 4):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(4, k)
            T.reads(A[vi, vk])
            T.writes(B[vi])
            with T.init():
                B[vi] = B[vi] * T.float32(2)
            B[vi] = B[vi] + A[vi, vk]

# proved
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8, 4), "float32"), B: T.Buffer((2, 8,), "float32")):
    P = T.alloc_buffer((8,), "float32")
    for r in range(2):
        for i in range(8):
            with T.sblock("init"):
                vi = T.axis.spatial(8, i)
                P[vi] = T.float32(0)
        for i, k in T.grid(8, 4):
            with T.sblock("update"):
                vi = T.axis.spatial(8, i)
                vk = T.axis.reduce(4, k)
                P[vi] = P[vi] + A[vi, vk]
        for i in range(8):
            with T.sblock("B"):
                vr, vi = T.axis.remap("SS", [r, i])
                B[vr, vi] = P[vi]

# unproved instances of block P
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32")):
    for t in range(2):
        for k in range(4):
            for i in range(8):
                with T.sblock("P"):
                    vi = T.axis.spatial(8, i)
                    vk = T.axis.reduce(4, k)
                    with T.init():
                        B[vi] = T.float32(0)
                    B[vi] = B[vi] + A[vi, vk]
            for i in range(8):
                with T.sblock("X"):
                    vt = T.axis.spatial(2, t)
                    vk = T.axis.spatial(4, k)
                    vi = T.axis.spatial(8, i)
                    B[vi] = B[vi] + T.Cast("float32", vt)

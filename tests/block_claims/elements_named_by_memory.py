# unproved instances of block B
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8, 4), "float32"), B: T.Buffer((2, 8,), "float32"), D: T.Buffer((2,), "float32")):
    F = T.alloc_buffer((1,), "int32")
    for r in range(2):
        D[r] = T.float32(1)
        for i in range(8):
            for k in range(4):
                with T.sblock("B"):
                    vi = T.axis.spatial(8, i)
                    vk = T.axis.reduce(4, k)
                    with T.init():
                        F[0] = 0
                        B[F[0] % 2, vi] = T.float32(0)
                    F[0] = 1
                    B[F[0] % 2, vi] = B[F[0] % 2, vi] + A[vi, vk]

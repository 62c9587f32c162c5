# proved
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((34, 5), "float32"), B: T.Buffer((32,), "float32")):
    P = T.alloc_buffer((34,), "float32")
    for t in range(4):
        for a in range(10):
            with T.sblock("P_init"):
                vi = T.axis.spatial(34, t * 8 + a)
                P[vi] = T.float32(0)
            for k in range(5):
                with T.sblock("P_update"):
                    vi = T.axis.spatial(34, t * 8 + a)
                    vk = T.axis.reduce(5, k)
                    P[vi] = P[vi] + A[vi, vk]
        for b in range(8):
            with T.sblock("B"):
                vi = T.axis.spatial(32, t * 8 + b)
                B[vi] = P[vi] + P[vi + 1] + P[vi + 2]

# unproved instances of block P
from tvm.script import tir as T

@T.prim_func
def f(Q: T.Buffer((34,), "float32"), B: T.Buffer((32,), "float32")):
    P = T.alloc_buffer((34,), "float32")
    for t in range(4):
        for a in range(10):
            with T.sblock("P"):
                vi = T.axis.spatial(34, t * 8 + a)
                P[vi] = Q[vi] + T.float32(1)
        for a in range(10):
            with T.sblock("Q"):
                vi = T.axis.spatial(34, t * 8 + a)
                Q[vi] = P[vi]
        for b in range(8):
            with T.sblock("B"):
                vi = T.axis.spatial(32, t * 8 + b)
                B[vi] = P[vi] + P[vi + 1] + P[vi + 2]

# unproved instances of block P
from tvm.script import tir as T

@T.prim_func
def f(Q: T.Buffer((8,), "float32"), D: T.Buffer((2,), "float32")):
    P = T.alloc_buffer((8,), "float32")
    for r in range(2):
        X = T.alloc_buffer((8,), "float32")
        D[r] = T.float32(1)
        for i in range(8):
            X[i] = T.float32(0)
        for i in range(8):
            with T.sblock("P"):
                vi = T.axis.spatial(8, i)
                X[vi] = X[vi] + T.float32(1)
                P[vi] = Q[vi] + T.float32(1)
        for i in range(8):
            Q[i] = P[i]

# unproved instances of block
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    P = T.alloc_buffer((8,), "float32")
    for t in range(2):
        for i in range(8):
            with T.sblock("W"):
                vi = T.axis.spatial(8, i)
                P[vi] = A[vi]
        if t == 0:
            for i in range(8):
                with T.sblock("X"):
                    vi = T.axis.spatial(8, i)
                    P[vi] = P[vi] * T.float32(2)
        for i in range(8):
            with T.sblock("C"):
                vi = T.axis.spatial(8, i)
                B[vi] = P[vi]

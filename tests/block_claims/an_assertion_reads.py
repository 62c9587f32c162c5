# unproved domain of block P
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for o in range(4):
        P = T.alloc_buffer((8,), "int32")
        for i in range(2):
            with T.sblock("P"):
                vi = T.axis.spatial(8, o * 2 + i)
                P[vi] = A[vi]
        assert P[7 - o * 2] > -1000000, "x"
    for i in range(8):
        B[i] = A[i]

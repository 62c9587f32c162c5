# unproved instances of block B
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "int32"), D: T.Buffer((2,), "float32")):
    for i in range(8):
        B[i] = 0
    for r in range(2):
        D[r] = T.float32(1)
        for i in range(8):
            with T.sblock("B"):
                vi = T.axis.spatial(8, i)
                T.where(B[i] == r)
                B[vi] = r + 1

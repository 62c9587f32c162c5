# unproved instances of block
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((4,), "float32")):
    for t in range(2):
        for i in range(8):
            with T.sblock("P"):
                vi = T.axis.spatial(8, i)
                T.where(t == 0 or i == 0)
                B[vi // 2] = A[vi]
        for i in range(4):
            B[i] = B[i]

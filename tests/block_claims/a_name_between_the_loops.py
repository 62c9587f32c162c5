# proved
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for t in range(4):
        x: T.int32 = t * 2
        for i in range(2):
            with T.sblock("B"):
                vi = T.axis.spatial(8, x + i)
                B[vi] = A[vi]

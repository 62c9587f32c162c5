# proved
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8, 4), "float32")):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            T.reads(A[vi, 0:4])
            T.writes(B[vi, 0:4])
            S = T.alloc_buffer((4,), "float32")
            for j in range(4):
                with T.sblock("S"):
                    vj = T.axis.spatial(4, j)
                    S[vj] = A[vi, vj]
            for j in range(4):
                with T.sblock("C"):
                    vj = T.axis.spatial(4, j)
                    B[vi, vj] = S[3 - vj]

# unproved block P
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((2, 2, 4), "float32"), B: T.Buffer((2, 2, 4), "float32")):
    for b in range(2):
        P = T.alloc_buffer((4,), "float32")
        for t in range(2):
            for i in range(4):
                with T.sblock("P"):
                    vi = T.axis.spatial(4, i)
                    T.where(t == 0 or i < 2)
                    P[vi] = A[b, t, vi]
            for i in range(4):
                with T.sblock("B"):
                    vb, vt, vi = T.axis.remap("SSS", [b, t, i])
                    B[vb, vt, vi] = P[vi]

# proved
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((7,), "float32"), B: T.Buffer((3, 7), "float32")):
    P = T.alloc_buffer((7,), "float32")
    for t in range(3):
        if t == 0:
            for i in range(7):
                with T.sblock("P"):
                    vi = T.axis.spatial(7, i)
                    P[vi] = A[vi]
        for i in range(7):
            with T.sblock("B"):
                vt, vi = T.axis.remap("SS", [t, i])
                B[vt, vi] = P[vi]

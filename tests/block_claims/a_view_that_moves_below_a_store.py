# unproved domain of block P
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    P = T.alloc_buffer((16,), "float32")
    for t in range(2):
        V = T.decl_buffer((8,), "float32", data=P.data, elem_offset=t % 2 * 8)
        for i in range(8):
            with T.sblock("P"):
                vi = T.axis.spatial(8, i)
                T.where(t == 0 or i < 4)
                V[vi] = A[vi]
    for i in range(16):
        with T.sblock("C"):
            vi = T.axis.spatial(16, i)
            B[vi] = P[vi]

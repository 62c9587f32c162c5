# unproved instances of block C
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((8,), "float32"), D: T.Buffer((2,), "float32")):
    for t in range(2):
        D[t] = T.float32(0)
        V = T.decl_buffer((8,), "float32", data=A.data, elem_offset=t % 2 * 8)
        for i in range(8):
            with T.sblock("C"):
                vi = T.axis.spatial(8, i)
                B[vi] = V[vi]

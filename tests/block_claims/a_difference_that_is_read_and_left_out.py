# unproved domain of block C
from tvm.script import tir as T
@T.prim_func
def main(A: T.Buffer((16,), "float32"), D: T.Buffer((16,), "float32")):
    C = T.alloc_buffer((16,), "float32")
    for i in range(16):
        with T.block("C"):
            v = T.axis.spatial(16, i)
            T.where(i > 0)
            C[v] = A[v - 1] - A[v]
    for i in range(16):
        with T.block("D"):
            v = T.axis.spatial(16, i)
            D[v] = T.if_then_else(A[0] > T.float32(1e30), C[v], T.float32(0))

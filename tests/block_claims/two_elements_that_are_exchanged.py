# unproved instances of block B
# Each instance writes an element and the transposed one: the axes are indices of both, at different places.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"), D: T.Buffer((2,), "float32")):
    for t in range(2):
        D[t] = T.float32(1)
        for i, j in T.grid(4, 4):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.where(t == 0 or i < j)
                B[vi, vj] = A[vi, vj]
                B[vj, vi] = A[vi, vj]

# unproved domain of block P
from tvm.script import tir as T

@T.prim_func
def f(a: T.handle, b: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (n, m), "float32")
    for g in range(n * m):
        P = T.alloc_buffer((n, m), "float32")
        with T.sblock("P"):
            vi = T.axis.spatial(n, g // m)
            vj = T.axis.spatial(m, g % m)
            P[vi, vj] = A[vi, vj]
        with T.sblock("B"):
            vi = T.axis.spatial(n, g // m)
            vj = T.axis.spatial(m, g % m)
            B[vi, vj] = P[n - 1 - vi, vj]

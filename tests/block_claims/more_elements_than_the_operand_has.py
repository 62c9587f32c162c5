# unproved domain of block C
from tvm.script import tir as T
@T.prim_func
def main(a: T.handle, D: T.Buffer((1000000,), "float32")):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    C = T.alloc_buffer((n+n//20,), "float32")
    for i in range(n+n//20):
        with T.block("C"):
            vi = T.axis.spatial(n+n//20, i)
            T.where(i < n)
            T.reads(A[vi])
            T.writes(C[vi])
            C[vi] = A[vi]
    for i in range(1000000):
        with T.block("D"):
            vi = T.axis.spatial(1000000, i)
            T.reads(C[vi])
            T.writes(D[vi])
            D[vi] = T.if_then_else(vi < n+n//20, C[vi], T.float32(0))

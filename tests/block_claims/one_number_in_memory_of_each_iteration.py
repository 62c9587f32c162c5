# unproved domain
# Each iteration of `a` has memory of its own, and reads what other iterations computed.
from tvm.script import tir as T

@T.prim_func
def main(a_: T.handle, b_: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a_, (n, m), "float32")
    B = T.match_buffer(b_, (n, m), "float32")
    for a in T.serial(n):
        S = T.alloc_buffer((m, n), "float32")
        for b in T.serial(m):
            with T.sblock("B"):
                vi = T.axis.spatial(m, (a * m + b) // n)
                vj = T.axis.spatial(n, (a * m + b) % n)
                S[vi, vj] = A[0, 0]
        for c in T.serial(m):
            B[a, c] = S[c, 0]

# unproved domain of block R
from tvm.script import tir as T

# R goes on with a sum, but D[40, 1] is never written, and is read.
@T.prim_func
def main(A: T.Buffer((100,), "float32"), R: T.Buffer((64,), "float32"), E: T.Buffer((64, 2), "float32")):
    D = T.alloc_buffer((64, 2), "float32")
    for t, u in T.grid(64, 2):
        with T.block("R"):
            v, r = T.axis.remap("SR", [t, u])
            T.where(u * 64 + t < 100)
            with T.init():
                R[v] = T.float32(0)
            R[v] = R[v] + A[r * 64 + v]
            D[v, r] = A[r * 64 + v]
    for t, u in T.grid(64, 2):
        with T.block("E"):
            v, r = T.axis.remap("SS", [t, u])
            E[v, r] = T.if_then_else(A[0] > T.float32(1e30), D[v, r], T.float32(0))

# unproved domain of block R
from tvm.script import tir as T

# An instance from 17 on would read no element of A, and could run.
@T.prim_func
def main(A: T.Buffer((17,), "float32"), R: T.Buffer((64,), "float32")):
    for t in range(64):
        with T.block("R"):
            v = T.axis.spatial(64, t)
            T.where(t < 17)
            R[v] = T.if_then_else(v < 17, A[v], T.float32(0))

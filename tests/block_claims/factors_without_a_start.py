# unproved domain of block R
from tvm.script import tir as T

# The factors from 17 on have no value, and are never initialised.
@T.prim_func
def main(A: T.Buffer((17,), "float32"), R: T.Buffer((64,), "float32")):
    for t, u in T.grid(64, 2):
        with T.block("R"):
            v, r = T.axis.remap("SR", [t, u])
            T.where(u * 64 + t < 17)
            with T.init():
                R[v] = T.float32(0)
            R[v] = R[v] + A[r * 64 + v]

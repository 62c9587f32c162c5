# unproved reduced axes of block R
from tvm.script import tir as T

# A has values from 90 on, which the sum leaves out.
@T.prim_func
def main(A: T.Buffer((100,), "float32"), R: T.Buffer((64,), "float32")):
    for t, u in T.grid(64, 2):
        with T.block("R"):
            v, r = T.axis.remap("SR", [t, u])
            T.where(u * 64 + t < 90)
            with T.init():
                R[v] = T.float32(0)
            R[v] = R[v] + A[r * 64 + v]

# proved
from tvm.script import tir as T

# What `rfactor` gives: the factors from 36 on have no second value, which would be read outside of A.
@T.prim_func
def main(A: T.Buffer((100,), "float32"), R: T.Buffer((64,), "float32")):
    for t, u in T.grid(64, 2):
        with T.block("R"):
            v, r = T.axis.remap("SR", [t, u])
            T.where(u * 64 + t < 100)
            with T.init():
                R[v] = T.float32(0)
            R[v] = R[v] + A[r * 64 + v]

# unproved domain of block R
from tvm.script import tir as T

# Without reduced axes, nothing says that the others have fewer values.
@T.prim_func
def main(A: T.Buffer((17,), "float32"), R: T.Buffer((64,), "float32")):
    for t in range(64):
        with T.block("start"):
            v = T.axis.spatial(64, t)
            R[v] = T.float32(0)
    for t in range(64):
        with T.block("R"):
            v = T.axis.spatial(64, t)
            T.where(t < 17)
            R[v] = R[v] + A[v]

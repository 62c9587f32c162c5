# proved
from tvm.script import tir as T
@T.prim_func
def main(A: T.Buffer((10,4), "float32"), R: T.Buffer((10,), "float32")):
    for i0, i1, k in T.grid(2, 8, 4):
        with T.block("R"):
            v = T.axis.spatial(16, i0 * 8 + i1)
            r = T.axis.reduce(4, k)
            T.where(i0 * 8 + i1 < 10)
            with T.init():
                R[v] = T.float32(0)
            R[v] = R[v] + A[v, r]

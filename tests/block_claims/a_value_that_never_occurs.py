# unproved reduced axes of block C
from tvm.script import tir as T

# A has 11 columns, and no sum has a twelfth value.
@T.prim_func
def main(A: T.Buffer((13, 11), "float32"), C: T.Buffer((13,), "float32")):
    for i, k_0, k_1 in T.grid(13, 3, 4):
        with T.block("C"):
            v = T.axis.spatial(13, i)
            r = T.axis.reduce(12, k_0 * 4 + k_1)
            T.where(k_0 * 4 + k_1 < 11)
            with T.init():
                C[v] = T.float32(0)
            C[v] = C[v] + A[v, r]

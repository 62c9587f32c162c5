# proved
# Three loops make one number, whose parts are of other sizes.
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((750, 80), "float32"), B: T.Buffer((750, 80), "float32")):
    for a, b, c in T.grid(40, 30, 50):
        with T.sblock("B"):
            vi = T.axis.spatial(750, (a * 1500 + b * 50 + c) // 80)
            vj = T.axis.spatial(80, (a * 1500 + b * 50 + c) % 80)
            B[vi, vj] = A[vi, vj]

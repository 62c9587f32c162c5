# unproved domain of block B
# The instances that would write outside of D write to E.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((40,), "float32"), D: T.Buffer((20,), "float32"), E: T.Buffer((40, 2), "float32")):
    for i in range(40):
        with T.sblock("B"):
            vi = T.axis.spatial(40, i)
            T.where(i < 20)
            D[vi] = A[vi]
            for j in range(2):
                E[vi, j] = A[vi]

# unproved domain of block B
# Only the store below the condition would leave its buffer.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((40,), "float32"), D: T.Buffer((40,), "float32"), S: T.Buffer((20,), "float32")):
    for i in range(40):
        with T.sblock("B"):
            vi = T.axis.spatial(40, i)
            T.where(i < 20)
            D[vi] = A[vi]
            if vi < 20:
                S[vi] = A[vi]

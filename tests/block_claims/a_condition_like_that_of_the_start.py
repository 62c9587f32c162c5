# unproved domain of block I
# The condition of the inner block is that of the initialisation, and stands behind it.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((1,), "float32"), C: T.Buffer((4, 4), "float32")):
    for o in range(4):
        with T.sblock("O"):
            vo = T.axis.reduce(4, o)
            T.reads(A[0:4])
            T.writes(B[0], C[vo, 0:4])
            with T.init():
                B[0] = T.float32(0)
            B[0] = B[0] + A[vo]
            if vo == 0:
                for i in range(4):
                    with T.sblock("I"):
                        vi = T.axis.spatial(4, i)
                        C[vo, vi] = A[vi]

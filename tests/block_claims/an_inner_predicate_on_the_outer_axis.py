# unproved domain of block I
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for o in range(2):
        with T.sblock("O"):
            vo = T.axis.spatial(2, o)
            for i in range(4):
                with T.sblock("I"):
                    vi = T.axis.spatial(4, i)
                    T.where(vo == 0 or i < 2)
                    B[vo * 4 + vi] = A[vo * 4 + vi]

# unproved initialisation of block I
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((1,), "float32")):
    for o in range(4):
        with T.sblock("O"):
            vo = T.axis.reduce(4, o)
            for k in range(4):
                with T.sblock("I"):
                    vk = T.axis.reduce((vo * 4, vo * 4 + 4), vo * 4 + k)
                    with T.init():
                        B[0] = T.float32(0)
                    B[0] = B[0] + A[vk]

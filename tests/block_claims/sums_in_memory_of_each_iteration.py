# unproved reduced axes of block P
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for k in range(4):
        P = T.alloc_buffer((1,), "float32")
        P[0] = T.float32(0)
        with T.sblock("P"):
            vk = T.axis.reduce(4, k)
            with T.init():
                P[0] = T.float32(0)
            P[0] = P[0] + A[vk]
        B[k] = P[0]

# unproved reduced axes of block P
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((4, 8), "float32"), B: T.Buffer((8, 4), "float32")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        for k in range(4):
            P = T.alloc_buffer((1,), "float32", scope="local")
            with T.sblock("P"):
                vk = T.axis.reduce(4, k)
                with T.init():
                    P[0] = T.float32(0)
                P[0] = P[0] + A[vk, t]
            B[t, k] = T.float32(1)

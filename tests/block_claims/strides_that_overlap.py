# unproved initialisation of block
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((4, 4, 4), "float32"), B: T.Buffer((8,), "float32")):
    V = T.decl_buffer((4, 4), "float32", data=B.data, strides=(1, 1))
    for i, j, k in T.grid(4, 4, 4):
        with T.sblock("P"):
            vi = T.axis.spatial(4, i)
            vj = T.axis.spatial(4, j)
            vk = T.axis.reduce(4, k)
            with T.init():
                V[vi, vj] = T.float32(0)
            V[vi, vj] = V[vi, vj] + A[vi, vj, vk]

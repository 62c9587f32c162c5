# proved
# What TVM's LowerInitBlock makes of an initialisation: the element that is updated is no input.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((8, 4, 3), "float32"), B: T.Buffer((8, 2), "float32")):
    for i, k, l in T.grid(8, 4, 3):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            vk = T.axis.reduce(4, k)
            vl = T.axis.reduce(3, l)
            T.reads(A[vi, vk, vl])
            T.writes(B[vi, 0:2])
            if vk == 0 and vl == 0:
                for u in range(2):
                    B[vi, u] = T.float32(0)
            for u in range(2):
                B[vi, u] = B[vi, u] + A[vi, vk, vl]

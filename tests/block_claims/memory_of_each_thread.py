# proved
from tvm.script import tir as T

@T.prim_func
def main(A: T.Buffer((8,), "float32"), O: T.Buffer((8,), "float32")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        R = T.alloc_buffer((1,), scope="local")
        S = T.alloc_buffer((8,), scope="shared")
        with T.block("R"):
            i = T.axis.spatial(8, t)
            R[0] = A[i]
        with T.block("S"):
            i = T.axis.spatial(8, t)
            S[i] = R[0]
        with T.block("O"):
            i = T.axis.spatial(8, t)
            O[i] = S[7 - i]

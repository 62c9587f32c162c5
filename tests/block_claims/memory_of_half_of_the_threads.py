# unproved domain of block R
from tvm.script import tir as T

# Instances from 4 on run in no thread.
@T.prim_func
def main(A: T.Buffer((8,), "float32"), O: T.Buffer((8,), "float32")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        R = T.alloc_buffer((1,), scope="local")
        with T.block("R"):
            i = T.axis.spatial(8, t)
            T.where(t < 4)
            R[0] = A[i]
        with T.block("O"):
            i = T.axis.spatial(8, t)
            O[i] = R[0]

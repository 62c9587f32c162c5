# unproved reduced axes of block R
from tvm.script import tir as T

# Each thread has one value of the sum.
@T.prim_func
def main(A: T.Buffer((8,), "float32"), O: T.Buffer((8,), "float32")):
    for t in T.thread_binding(8, thread="threadIdx.x"):
        R = T.alloc_buffer((1,), scope="local")
        with T.block("R"):
            i = T.axis.reduce(8, t)
            with T.init():
                R[0] = T.float32(0)
            R[0] = R[0] + A[i]
        with T.block("O"):
            i = T.axis.spatial(8, t)
            O[i] = R[0]

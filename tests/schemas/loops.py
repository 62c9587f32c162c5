# A loop that the host runs, because its launches wait for each other.
from tvm.script import tir as T


@T.prim_func
def rounds(A: T.Buffer((17,), "int32"), B: T.Buffer((17,), "int32"), n: T.int32):
    for t in range(n):
        for i in T.thread_binding(17, thread="blockIdx.x"):
            B[i] = A[16 - i] + t
        for i in T.thread_binding(17, thread="blockIdx.x"):
            A[i] = B[(i + 5) % 17]

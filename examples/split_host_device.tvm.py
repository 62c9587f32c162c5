# Two launches: rows are scaled by what the host computes, and then turned around. `split_host_device` makes a device function of each, which
# is passed the memory and the scalars that it uses.
from tvm.script import tir as T


@T.prim_func
def main(a: T.handle, b: T.handle, m: T.int32):
    n = T.int32()
    A = T.match_buffer(a, (n, 24), "float32")
    B = T.match_buffer(b, (n, 24), "float32")
    T.func_attr({"passes": ["split_host_device"]})
    x: T.int32 = m % 5 + 2
    X = T.alloc_buffer((n, 24), "float32")
    for i in T.thread_binding(n, thread="blockIdx.x"):
        for j in T.thread_binding(24, thread="threadIdx.x"):
            X[i, j] = A[i, j] * T.Cast("float32", x)
    for i in T.thread_binding(n, thread="blockIdx.x"):
        for j in T.thread_binding(24, thread="threadIdx.x"):
            B[i, j] = X[i, 23 - j]

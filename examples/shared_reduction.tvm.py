# The sum of each row, by the threads of a group in a tree: in each round, half as many threads add what two of them have. The number
# of rows is symbolic, and a row has 100 elements for 64 threads.
from tvm.script import tir as T


@T.prim_func
def row_sums(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 100), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for row in T.thread_binding(n, thread="blockIdx.x"):
        S = T.alloc_buffer((64,), "float32", scope="shared")
        for t in T.thread_binding(64, thread="threadIdx.x"):
            S[t] = A[row, t] + T.if_then_else(t < 36, A[row, t + 64], T.float32(0))
            T.tvm_storage_sync("shared")
            for k in range(6):
                if t < T.shift_right(32, k):
                    S[t] = S[t] + S[t + T.shift_right(32, k)]
                T.tvm_storage_sync("shared")
            if t == 0:
                B[row] = S[0]

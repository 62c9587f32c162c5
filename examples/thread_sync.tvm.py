# Each round turns eight elements of a row around through shared memory. The text has no barriers: `thread_sync` finds out where threads
# have to wait, also at the end of a round, because the next one writes what this one reads.
from tvm.script import tir as T


@T.prim_func
def reversed_rounds(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 24), "float32")
    B = T.match_buffer(b, (n, 24), "float32")
    T.func_attr({"passes": ["thread_sync"]})
    for i in T.thread_binding(n, thread="blockIdx.x"):
        S = T.alloc_buffer((8,), "float32", scope="shared")
        for t in T.thread_binding(8, thread="threadIdx.x"):
            for k in range(3):
                S[t] = A[i, k * 8 + t]
                B[i, k * 8 + t] = S[7 - t]

# A transpose through shared memory, so that reads and writes of global memory are both contiguous. Both extents are symbolic, and the
# tiles at the border are ragged. A row of the tile has one element more than it needs, which keeps columns in different banks.
from tvm.script import tir as T


@T.prim_func
def transpose(a: T.handle, b: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    B = T.match_buffer(b, (m, n), "float32")
    for by in T.thread_binding((n + 15) // 16, thread="blockIdx.y"):
        for bx in T.thread_binding((m + 15) // 16, thread="blockIdx.x"):
            S = T.alloc_buffer((16, 17), "float32", scope="shared")
            for ty in T.thread_binding(16, thread="threadIdx.y"):
                for tx in T.thread_binding(16, thread="threadIdx.x"):
                    if by * 16 + ty < n and bx * 16 + tx < m:
                        S[ty, tx] = A[by * 16 + ty, bx * 16 + tx]
                    T.tvm_storage_sync("shared")
                    if bx * 16 + ty < m and by * 16 + tx < n:
                        B[bx * 16 + ty, by * 16 + tx] = S[tx, ty]

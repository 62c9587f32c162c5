# A matrix product in tiles of 8 by 8 through shared memory. All three extents are symbolic; elements beyond the border are 0.
from tvm.script import tir as T


@T.prim_func
def product(a: T.handle, b: T.handle, c: T.handle):
    n, m, p = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (n, p), "float32")
    B = T.match_buffer(b, (p, m), "float32")
    C = T.match_buffer(c, (n, m), "float32")
    for by in T.thread_binding((n + 7) // 8, thread="blockIdx.y"):
        for bx in T.thread_binding((m + 7) // 8, thread="blockIdx.x"):
            TA = T.alloc_buffer((8, 8), "float32", scope="shared")
            TB = T.alloc_buffer((8, 8), "float32", scope="shared")
            for ty in T.thread_binding(8, thread="threadIdx.y"):
                for tx in T.thread_binding(8, thread="threadIdx.x"):
                    acc = T.alloc_buffer((1,), "float32", scope="local")
                    acc[0] = T.float32(0)
                    for k0 in range((p + 7) // 8):
                        TA[ty, tx] = T.if_then_else(by * 8 + ty < n and k0 * 8 + tx < p, A[by * 8 + ty, k0 * 8 + tx], T.float32(0))
                        TB[ty, tx] = T.if_then_else(k0 * 8 + ty < p and bx * 8 + tx < m, B[k0 * 8 + ty, bx * 8 + tx], T.float32(0))
                        T.tvm_storage_sync("shared")
                        for k in range(8):
                            acc[0] = acc[0] + TA[ty, k] * TB[k, tx]
                        T.tvm_storage_sync("shared")
                    if by * 8 + ty < n and bx * 8 + tx < m:
                        C[by * 8 + ty, bx * 8 + tx] = acc[0]

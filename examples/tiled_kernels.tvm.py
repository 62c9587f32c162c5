# Two kernels of a network: a matrix product in tiles through shared memory, whose tiles are filled for the next step while this one is
# computed, and a convolution whose images move from NHWC to NCHW4c. Both have vectors and threads. The rows and the length of the sums,
# and the number of images, are symbolic.
from tvm.script import ir as I
from tvm.script import tir as T


@I.ir_module
class Kernels:
    @T.prim_func
    def product(a: T.handle, b: T.handle, c: T.handle):
        n, p = T.int32(), T.int32()
        A = T.match_buffer(a, (n, p), "float32")
        B = T.match_buffer(b, (p, 44), "float32")
        C = T.match_buffer(c, (n, 44), "float32")
        T.func_attr({"passes": ["inject_double_buffer"]})
        for by in T.thread_binding((n + 7) // 8, thread="blockIdx.y"):
            for bx in T.thread_binding(2, thread="blockIdx.x"):
                TA = T.alloc_buffer((8, 8), "float32", scope="shared")
                TB = T.alloc_buffer((8, 32), "float32", scope="shared")
                for ty in T.thread_binding(8, thread="threadIdx.y"):
                    for tx in T.thread_binding(8, thread="threadIdx.x"):
                        acc = T.alloc_buffer((4,), "float32", scope="local")
                        for v in T.vectorized(4):
                            acc[v] = T.float32(0)
                        for k0 in range((p + 7) // 8):
                            with T.attr(TA.data, "double_buffer_scope", 1):
                                TA[ty, tx] = T.if_then_else(by * 8 + ty < n and k0 * 8 + tx < p, A[by * 8 + ty, k0 * 8 + tx], T.float32(0))
                            with T.attr(TB.data, "double_buffer_scope", 1):
                                for v in T.vectorized(4):
                                    TB[ty, tx * 4 + v] = T.if_then_else(k0 * 8 + ty < p and bx * 32 + tx * 4 < 44, B[k0 * 8 + ty, bx * 32 + tx * 4 + v], T.float32(0))
                            T.tvm_storage_sync("shared")
                            for k in range(8):
                                for v in T.vectorized(4):
                                    acc[v] = acc[v] + TA[ty, k] * TB[k, tx * 4 + v]
                            T.tvm_storage_sync("shared")
                        if by * 8 + ty < n and bx * 32 + tx * 4 < 44:
                            for v in T.vectorized(4):
                                C[by * 8 + ty, bx * 32 + tx * 4 + v] = acc[v]

    @T.prim_func
    def convolution(a: T.handle, W: T.Buffer((3, 3, 10, 12), "float32"), c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 12, 11, 10), "float32")
        C = T.match_buffer(c, (n, 10, 9, 12), "float32")
        T.func_attr({
            "layout_transform_map": {
                A: lambda n, h, w, c: [n, c // 4, h, w, c % 4],
                W: lambda r, s, i, o: [o // 4, i, r, s, o % 4],
                C: lambda n, h, w, c: [n, c // 4, h, w, c % 4],
            }
        })
        for b in T.thread_binding(n, thread="blockIdx.z"):
            for y in T.thread_binding(10, thread="blockIdx.y"):
                for o in T.thread_binding(3, thread="blockIdx.x"):
                    for x in T.thread_binding(9, thread="threadIdx.x"):
                        acc = T.alloc_buffer((4,), "float32", scope="local")
                        for v in T.vectorized(4):
                            acc[v] = T.float32(0)
                        for r, s, i in T.grid(3, 3, 10):
                            for v in T.vectorized(4):
                                acc[v] = acc[v] + A[b, y + r, x + s, i] * W[r, s, i, o * 4 + v]
                        for v in T.vectorized(4):
                            C[b, y, x, o * 4 + v] = acc[v]

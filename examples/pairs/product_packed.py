from tvm.script import tir as T

@T.prim_func
def main(a: T.handle, b: T.handle, c: T.handle):
    n = T.int32()
    m = T.int32()
    k = T.int32()
    A = T.match_buffer(a, (n, k), "float32")
    B = T.match_buffer(b, (k, m), "float32")
    C = T.match_buffer(c, (n, m), "float32")
    packed = T.alloc_buffer(((m + 63) // 64, k, 64), "float32")
    panel = T.alloc_buffer((2, 64, 32), "float32")
    acc = T.alloc_buffer((8, 8), "float32")
    block = T.alloc_buffer((64, 64), "float32")
    for jo, l, jj in T.grid((m + 63) // 64, k, 64):
        if jo * 64 + jj < m:
            packed[jo, l, jj] = B[l, jo * 64 + jj]
    for io, jo in T.grid((n + 63) // 64, (m + 63) // 64):
        for ii, ll in T.grid(64, 32):
            if io * 64 + ii < n and ll < k:
                panel[0, ii, ll] = A[io * 64 + ii, ll]
        for i, j in T.grid(64, 64):
            block[i, j] = T.float32(0)
        for lo in range((k + 31) // 32):
            for ii, ll in T.grid(64, 32):
                if io * 64 + ii < n and (lo + 1) * 32 + ll < k:
                    panel[(lo + 1) % 2, ii, ll] = A[io * 64 + ii, (lo + 1) * 32 + ll]
            for it, jt in T.grid(8, 8):
                for i, j in T.grid(8, 8):
                    acc[i, j] = block[it * 8 + i, jt * 8 + j]
                for lu in range(16):
                    for i, jv in T.grid(8, 2):
                        for v in T.vectorized(4):
                            if io * 64 + it * 8 + i < n and jo * 64 + jt * 8 + jv * 4 + v < m and lo * 32 + lu * 2 < k:
                                acc[i, jv * 4 + v] = acc[i, jv * 4 + v] + panel[lo % 2, it * 8 + i, lu * 2] * packed[jo, lo * 32 + lu * 2, jt * 8 + jv * 4 + v]
                    for i, jv in T.grid(8, 2):
                        for v in T.vectorized(4):
                            if io * 64 + it * 8 + i < n and jo * 64 + jt * 8 + jv * 4 + v < m and lo * 32 + lu * 2 + 1 < k:
                                acc[i, jv * 4 + v] = acc[i, jv * 4 + v] + panel[lo % 2, it * 8 + i, lu * 2 + 1] * packed[jo, lo * 32 + lu * 2 + 1, jt * 8 + jv * 4 + v]
                for i, j in T.grid(8, 8):
                    block[it * 8 + i, jt * 8 + j] = acc[i, j]
        for i, j in T.grid(64, 64):
            if io * 64 + i < n and jo * 64 + j < m:
                C[io * 64 + i, jo * 64 + j] = block[i, j]

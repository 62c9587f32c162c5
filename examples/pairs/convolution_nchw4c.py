from tvm.script import tir as T

@T.prim_func
def main(x: T.handle, f: T.handle, y: T.handle, h: T.int32, w: T.int32, c: T.int32, o: T.int32):
    X = T.match_buffer(x, ((c + 3) // 4, h + 2, w + 2, 4), "float32")
    F = T.match_buffer(f, (3, 3, c, o), "float32")
    Y = T.match_buffer(y, ((o + 3) // 4, h, w, 4), "float32")
    halo = T.alloc_buffer((10, 10, c), "float32")
    acc = T.alloc_buffer((8, 8, 4), "float32")
    for it, jt in T.grid((h + 7) // 8, (w + 7) // 8):
        for p, i, j in T.grid(c, 10, 10):
            if it * 8 + i < h + 2 and jt * 8 + j < w + 2:
                halo[i, j, p] = X[p // 4, it * 8 + i, jt * 8 + j, p % 4]
        for qo in range((o + 3) // 4):
            for i, j, qi in T.grid(8, 8, 4):
                acc[i, j, qi] = T.float32(0)
            for r, s, p in T.grid(3, 3, c):
                for i, j in T.grid(8, 8):
                    for qi in T.vectorized(4):
                        if it * 8 + i < h and jt * 8 + j < w and qo * 4 + qi < o:
                            acc[i, j, qi] = acc[i, j, qi] + halo[i + r, j + s, p] * F[r, s, p, qo * 4 + qi]
            for i, j, qi in T.grid(8, 8, 4):
                if it * 8 + i < h and jt * 8 + j < w and qo * 4 + qi < o:
                    Y[qo, it * 8 + i, jt * 8 + j, qi] = acc[i, j, qi]

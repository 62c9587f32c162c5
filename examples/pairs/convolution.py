from tvm.script import tir as T

@T.prim_func
def main(x: T.handle, f: T.handle, y: T.handle, h: T.int32, w: T.int32, c: T.int32, o: T.int32):
    X = T.match_buffer(x, (h + 2, w + 2, c), "float32")
    F = T.match_buffer(f, (3, 3, c, o), "float32")
    Y = T.match_buffer(y, (h, w, o), "float32")
    for i, j, q in T.grid(h, w, o):
        Y[i, j, q] = T.float32(0)
        for r, s, p in T.grid(3, 3, c):
            Y[i, j, q] = Y[i, j, q] + X[i + r, j + s, p] * F[r, s, p, q]

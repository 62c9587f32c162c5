# The blur of blur_tiled.py in TVMScript: the attribute lists the steps of the schedule, and each of them is proved. Rows are split into tiles,
# the rows of a tile are blurred in the loop that reads them, those of the next tile while these are read, and the sum over three rows is
# written out.
from tvm.script import tir as T


@T.prim_func
def blur(a: T.handle, y: T.handle):
    h = T.int32()
    w = T.int32()
    A = T.match_buffer(a, (h + 2, w + 2), "float32")
    Y = T.match_buffer(y, (h, w), "float32")
    T.func_attr({"schedule": ["split=j:8", "compute_at=X:j_outer", "double_buffer=X", "unroll=r"]})
    X = T.alloc_buffer((h + 2, w), "float32")
    for i, k in T.grid(h + 2, w):
        X[i, k] = A[i, k] + A[i, k + 1] + A[i, k + 2]
    for j, l in T.grid(h, w):
        Y[j, l] = T.float32(0)
        for r in range(3):
            Y[j, l] = Y[j, l] + X[j + r, l]

# A transpose that checks its call first: ranks, element types, shapes, strides, offsets and devices of both arguments.
from tvm.script import tir as T


@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 8), "float32")
    B = T.match_buffer(b, (8, n), "float32")
    T.func_attr({"passes": ["make_packed_api"]})
    for i, j in T.grid(n, 8):
        B[j, i] = A[i, j]

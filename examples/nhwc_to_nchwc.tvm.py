# RFC 39, "NHWC logical layout to NCHWc physical layout", written in TVMScript: the function still speaks of NHWC, its
# attribute says how the memory is laid out. Shapes are ragged so that a swapped axis cannot hide.
from tvm.script import tir as T


@T.prim_func
def bias_relu(A: T.Buffer((2, 7, 9, 16), "float32"), bias: T.Buffer((16,), "float32"), B: T.Buffer((2, 7, 9, 16), "float32")):
    T.func_attr({"layout_transform_map": {A.data: [lambda n, h, w, c: [n, c // 4, h, w, c % 4]], B.data: [lambda n, h, w, c: [n, c // 4, h, w, c % 4]]}})
    for n, h, w, c in T.grid(2, 7, 9, 16):
        B[n, h, w, c] = T.max(A[n, h, w, c] + bias[c], T.float32(0))

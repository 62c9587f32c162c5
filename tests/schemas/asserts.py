# A program with an assertion on a scalar parameter: kernels/1 lists it under `asserts` and `scalars`.
from tvm.script import tir as T

@T.prim_func
def scale(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), k: T.int32):
    assert k >= 0, "k is negative"
    for i in range(8):
        B[i] = A[i] * T.float32(2.0)

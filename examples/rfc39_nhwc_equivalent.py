# RFC 39, "Guide-level explanation": the definition that has the layout of rfc39_nhwc_to_nchwc.py by itself.
import tvm
from tvm import te

A = te.placeholder((16, 64, 64, 128), name="A")
B_equivalent = te.compute(
    [A.shape[0], A.shape[3]//4, A.shape[1], A.shape[2], 4],
    lambda n, c_outer, h, w, c_inner: A[n, h, w, 4*c_outer+c_inner],
)
s = te.create_schedule(B_equivalent.op)

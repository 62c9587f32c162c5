# NHWC to NCHW4c for every shape: channels that are no multiple of 4 leave padding behind.
import tvm
from tvm import te

n = te.var("n")
h = te.var("h")
w = te.var("w")
c = te.var("c")
A = te.placeholder((n, h, w, c), name="A")
B = te.compute(A.shape, lambda i, y, x, k: A[i, y, x, k] + 1, name="B")

s = te.create_schedule(B.op)
s[B].transform_layout(lambda i, y, x, k: [i, k // 4, y, x, k % 4])

# RFC 39, "Guide-level explanation": an axis separator cuts the axes into groups, and each group becomes one physical
# axis. Here [n, c//4, h] and [w, c%4] make a 2-d buffer, as textures want it.
#
# The shape is ragged and c is no multiple of 4: the last tile of c is padding, which the programs never read.
from tvm import te

A = te.placeholder((2, 7, 9, 18), name="A", dtype="float32")
B = te.compute(A.shape, lambda n, h, w, c: A[n, h, w, c] * 2.0, name="B")

s = te.create_schedule(B.op)
s[A].transform_layout(lambda n, h, w, c: [n, c // 4, h, te.AXIS_SEPARATOR, w, c % 4])
s[B].transform_layout(lambda n, h, w, c: [n, c // 4, h, te.AXIS_SEPARATOR, w, c % 4])

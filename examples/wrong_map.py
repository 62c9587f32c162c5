# A layout that loses data. `2 * i + j` looks like a packed index for rows of 3 x 4 elements, but rows are 4 long, not 2:
# (0, 2) and (1, 0) land on the same element. TVM accepts such maps; here the judge shows the two indices that collide.
#
#     tilewright check examples/wrong_map.py        # refuted, exit code 1
from tvm import te

A = te.placeholder((3, 4), name="A", dtype="float32")
B = te.compute(A.shape, lambda i, j: A[i, j] + 1.0, name="B")

s = te.create_schedule(B.op)
s[A].transform_layout(lambda i, j: [2 * i + j])

# A layout that loses data: c % 3 where c % 4 was meant. Two elements share one place, and `check` names them.
import tvm
from tvm import te

A = te.placeholder((2, 7, 9, 17), name="A")
B = te.compute(A.shape, lambda n, h, w, c: A[n, h, w, c] + 1, name="B")
s = te.create_schedule(B.op)
s[B].transform_layout(lambda n, h, w, c: [n, c // 4, h, w, c % 3])

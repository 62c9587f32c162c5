# Tiled layouts whose padding has a value. The padding of B, which is allocated, and of C, an output, is written by the
# program before anything else is; that of A, an input, is what the caller packs.
#
# C's tiled layout has an axis separator: it is stored in two physical axes, the tiles and what is inside of them.
from tvm import te

A = te.placeholder((5, 11), name="A", dtype="float32")
B = te.compute((5, 11), lambda i, j: A[i, j] * A[i, j], name="B")
C = te.compute((11, 5), lambda i, j: B[j, i] + 1.0, name="C")

s = te.create_schedule(C.op)
s[A].tile_layout("{1,0:T(2,4)(2,1)}", pad_value=0)
s[B].tile_layout("{1,0:T(2,4)}", pad_value=-1.5)
s[C].tile_layout("{1,0:T(4,2)}", pad_value=7, axis_separators=[2])

# XLA's tiled layouts for the buffers of a program: B is stored as in figure 2 of XLA's page, 2x4 tiles of which each is
# tiled again by 2x1; C in the order of its columns; and A in tiles over its first two dimensions combined.
#
# The shapes are ragged: the tiles at the edges are padded. The padding holds nothing, and nothing reads it.
from tvm import te

A = te.placeholder((3, 5, 11), name="A", dtype="float32")
r = te.reduce_axis((0, 3), name="r")
B = te.compute((5, 11), lambda i, j: te.sum(A[r, i, j], axis=r), name="B")
C = te.compute((5, 11), lambda i, j: B[i, j] * 2.0 + 1.0, name="C")

s = te.create_schedule(C.op)
s[A].tile_layout("{2,1,0:T(*,2,4)}")
s[B].tile_layout("{1,0:T(2,4)(2,1)}")
s[C].tile_layout("{0,1:T(4,2)}")

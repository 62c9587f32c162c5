# A blur of rows and columns in tiles: the rows of a tile are blurred where its columns are, with an edge of one row above and below,
# and the rows of the next tile while those of this one are read. Sizes are symbolic, and tiles may overhang.
import tvm
from tvm import te

h, w = te.var("h"), te.var("w")
A = te.placeholder((h + 2, w + 2), name="A")
X = te.compute((h + 2, w), lambda y, x: A[y, x] + A[y, x + 1] + A[y, x + 2], name="X")
r = te.reduce_axis((0, 3), name="r")
Y = te.compute((h, w), lambda y, x: te.sum(X[y + r, x], axis=r), name="Y")

s = te.create_schedule(Y.op)
y, x = s[Y].op.axis
yo, yi = s[Y].split(y, factor=8)
s[Y].unroll(s[Y].op.reduce_axis[0])
s[X].compute_at(s[Y], yo)
s[X].double_buffer()
tvm.lower(s, [A, Y])

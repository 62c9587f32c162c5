# RFC 39, "Reference-level explanation": the layouts of its three examples, each on a copy of x.
import tvm
from tvm import te


# x[i, j] of shape [64, 128] as [j, i].
def transposed():
    a = te.placeholder((64, 128), name="a")
    x = te.compute(a.shape, lambda i, j: a[i, j] + 1, name="x")
    s = te.create_schedule(x.op)
    s[x].transform_layout(lambda i,j: [j,i])


# NHWC to NCHWc, in one dimension.
def nchwc():
    a = te.placeholder((16, 64, 64, 128), name="a")
    x = te.compute(a.shape, lambda n, h, w, c: a[n, h, w, c] + 1, name="x")
    s = te.create_schedule(x.op)
    s[x].transform_layout(lambda n,h,w,c: [n, c//4, h, w, c%4])


# NHWC to NCHWc, with NCH in the first and Wc in the second dimension.
def nchwc_2d():
    a = te.placeholder((16, 64, 64, 128), name="a")
    x = te.compute(a.shape, lambda n, h, w, c: a[n, h, w, c] + 1, name="x")
    s = te.create_schedule(x.op)
    s[x].transform_layout(lambda n,h,w,c: [n, c//4, h, te.AXIS_SEPARATOR, w, c%4])

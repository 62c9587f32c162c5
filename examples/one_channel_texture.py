# A texture of one channel, such as a grey image: the last axis is 1, and a texel is a number. Not every device has such images
# (CL_R in OpenCL); where they are missing, `check` says so, and proves and interprets the program all the same.
#
# Each output is the mean of a row of 3 pixels; beyond the border they are 0.
import tvm
from tvm import te


def blur(height=9, width=13):
    A = te.placeholder((height, width, 1), name="A", dtype="uint8")
    padded = te.compute(
        (height, width + 2, 1),
        lambda y, x, c: te.if_then_else(te.all(x >= 1, x < width + 1), A[y, x - 1, c], tvm.tir.const(0, "uint8")),
        name="padded",
    )
    B = te.compute(
        (height, width),
        lambda y, x: ((padded[y, x, 0].astype("int32") + padded[y, x + 1, 0] + padded[y, x + 2, 0]) // 3).astype("uint8"),
        name="B",
    )

    s = te.create_schedule(B.op)
    s[padded].set_scope("texture")
    y, x, c = s[padded].op.axis
    s[padded].bind(y, te.thread_axis("blockIdx.x"))
    s[padded].bind(x, te.thread_axis("threadIdx.x"))
    y, x = s[B].op.axis
    s[B].bind(y, te.thread_axis("blockIdx.x"))
    s[B].bind(x, te.thread_axis("threadIdx.x"))
    return tvm.lower(s, [A, B], name="blur")

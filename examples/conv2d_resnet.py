# A 3x3 convolution of ResNet-50: 1x56x56x64, 64 filters, padding 1, written in NHWC, laid out as NCHW4c.
import tvm
from tvm import te


def conv2d(height=56, width=56, channels=64, filters=64):
    data = te.placeholder((1, height, width, channels), name="data")
    weight = te.placeholder((3, 3, channels, filters), name="weight")

    def inside(h, w):
        return te.all(h >= 1, h < height + 1, w >= 1, w < width + 1)

    padded = te.compute(
        (1, height + 2, width + 2, channels),
        lambda n, h, w, c: te.if_then_else(inside(h, w), data[n, h - 1, w - 1, c], 0.0),
        name="padded",
    )
    kh = te.reduce_axis((0, 3), name="kh")
    kw = te.reduce_axis((0, 3), name="kw")
    ci = te.reduce_axis((0, channels), name="ci")
    conv = te.compute(
        (1, height, width, filters),
        lambda n, h, w, c: te.sum(padded[n, h + kh, w + kw, ci] * weight[kh, kw, ci, c], axis=[kh, kw, ci]),
        name="conv",
    )

    s = te.create_schedule(conv.op)
    s[data].transform_layout(lambda n, h, w, c: [n, c // 4, h, w, c % 4])
    _, c_outer, h, w, c_inner = s[padded].transform_layout(lambda n, h, w, c: [n, c // 4, h, w, c % 4])
    s[padded].parallel(c_outer)
    n, c_outer, h, w, c_inner = s[conv].transform_layout(lambda n, h, w, c: [n, c // 4, h, w, c % 4])
    s[conv].parallel(s[conv].fuse(n, c_outer))
    return tvm.lower(s, [data, weight, conv], name="conv2d")

# A convolution with its activations and weights in textures: NCHW4c data, OIHW4o weights, stride, padding, and numbers of
# channels that are no multiple of 4. The padding channels are packed as 0, and the sums run over the real channels only, so
# that no padding reaches one.
#
# The reduction accumulates in memory of its own: an image is read or written, not both. Its result goes to a texture, 4
# output channels in a texel.
import tvm
from tvm import te


def conv2d(height=13, width=11, channels=18, filters=10, kernel=3, stride=2, padding=1):
    rows = (height + 2 * padding - kernel) // stride + 1
    columns = (width + 2 * padding - kernel) // stride + 1
    in_blocks = (channels + 3) // 4
    out_blocks = (filters + 3) // 4
    data = te.placeholder((1, channels, height, width), name="data")
    weight = te.placeholder((filters, channels, kernel, kernel), name="weight")
    packed = te.compute(
        (1, in_blocks, height, width, 4),
        lambda n, co, h, w, ci: te.if_then_else(co * 4 + ci < channels, data[n, co * 4 + ci, h, w], 0.0),
        name="packed",
    )
    filter4 = te.compute(
        (out_blocks, channels, kernel, kernel, 4),
        lambda oo, i, kh, kw, oi: te.if_then_else(oo * 4 + oi < filters, weight[oo * 4 + oi, i, kh, kw], 0.0),
        name="filter4",
    )

    def inside(h, w):
        return te.all(h >= padding, h < height + padding, w >= padding, w < width + padding)

    def at(n, i, h, w):
        return te.if_then_else(inside(h, w), packed[n, i // 4, h - padding, w - padding, i % 4], 0.0)

    i = te.reduce_axis((0, channels), name="i")
    kh = te.reduce_axis((0, kernel), name="kh")
    kw = te.reduce_axis((0, kernel), name="kw")
    conv = te.compute(
        (1, out_blocks, rows, columns, 4),
        lambda n, oo, h, w, oi: te.sum(
            at(n, i, h * stride + kh, w * stride + kw) * filter4[oo, i, kh, kw, oi], axis=[i, kh, kw]
        ),
        name="conv",
    )
    result = te.compute(
        (1, filters, rows, columns), lambda n, o, h, w: conv[n, o // 4, h, w, o % 4], name="result"
    )

    s = te.create_schedule(result.op)
    s[packed].set_scope("texture")
    s[filter4].set_scope("texture:weight")
    s[conv].set_scope("texture")
    acc = s.cache_write(conv, "local")

    oo, ic, kernel_h, kernel_w, oi = s[filter4].op.axis
    s[filter4].bind(oo, te.thread_axis("blockIdx.x"))
    s[filter4].bind(ic, te.thread_axis("threadIdx.x"))
    s[filter4].vectorize(oi)
    for stage in [packed, acc, conv]:
        n, co, h, w, ci = s[stage].op.axis
        s[stage].bind(s[stage].fuse(n, co), te.thread_axis("blockIdx.y"))
        s[stage].bind(h, te.thread_axis("blockIdx.x"))
        s[stage].bind(w, te.thread_axis("threadIdx.x"))
        if stage == acc:
            ic, kernel_h, kernel_w = s[stage].op.reduce_axis
            s[stage].reorder(ic, kernel_h, kernel_w, ci)
        s[stage].vectorize(ci)
    n, o, h, w = s[result].op.axis
    s[result].bind(s[result].fuse(n, o), te.thread_axis("blockIdx.y"))
    s[result].bind(h, te.thread_axis("blockIdx.x"))
    s[result].bind(w, te.thread_axis("threadIdx.x"))
    return tvm.lower(s, [data, weight, result], name="conv2d")

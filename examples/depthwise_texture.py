# A depthwise convolution of stride 2 in textures: each channel has a kernel of its own, so a texel of 4 channels is
# multiplied with a texel of 4 weights. 18 channels make 5 texels, and the last one is half padding: it is packed as 0, and
# nothing of it is read back.
import tvm
from tvm import te


def depthwise(height=13, width=11, channels=18, kernel=3, stride=2, padding=1):
    rows = (height + 2 * padding - kernel) // stride + 1
    columns = (width + 2 * padding - kernel) // stride + 1
    blocks = (channels + 3) // 4
    data = te.placeholder((1, channels, height, width), name="data")
    weight = te.placeholder((channels, kernel, kernel), name="weight")
    packed = te.compute(
        (1, blocks, height, width, 4),
        lambda n, co, h, w, ci: te.if_then_else(co * 4 + ci < channels, data[n, co * 4 + ci, h, w], 0.0),
        name="packed",
    )
    weight4 = te.compute(
        (blocks, kernel, kernel, 4),
        lambda co, kh, kw, ci: te.if_then_else(co * 4 + ci < channels, weight[co * 4 + ci, kh, kw], 0.0),
        name="weight4",
    )

    def at(n, co, h, w, ci):
        inside = te.all(h >= padding, h < height + padding, w >= padding, w < width + padding)
        return te.if_then_else(inside, packed[n, co, h - padding, w - padding, ci], 0.0)

    kh = te.reduce_axis((0, kernel), name="kh")
    kw = te.reduce_axis((0, kernel), name="kw")
    conv = te.compute(
        (1, blocks, rows, columns, 4),
        lambda n, co, h, w, ci: te.sum(
            at(n, co, h * stride + kh, w * stride + kw, ci) * weight4[co, kh, kw, ci], axis=[kh, kw]
        ),
        name="conv",
    )
    result = te.compute(
        (1, channels, rows, columns), lambda n, c, h, w: conv[n, c // 4, h, w, c % 4], name="result"
    )

    s = te.create_schedule(result.op)
    s[packed].set_scope("texture")
    s[weight4].set_scope("texture:weight")
    s[conv].set_scope("texture")
    acc = s.cache_write(conv, "local")

    for stage in [packed, acc, conv]:
        n, co, h, w, ci = s[stage].op.axis
        s[stage].bind(s[stage].fuse(n, co), te.thread_axis("blockIdx.y"))
        s[stage].bind(h, te.thread_axis("blockIdx.x"))
        s[stage].bind(w, te.thread_axis("threadIdx.x"))
        if stage == acc:
            kernel_h, kernel_w = s[stage].op.reduce_axis
            s[stage].reorder(kernel_h, kernel_w, ci)
        s[stage].vectorize(ci)
    co, kernel_h, kernel_w, ci = s[weight4].op.axis
    s[weight4].bind(co, te.thread_axis("blockIdx.x"))
    s[weight4].vectorize(ci)
    n, c, h, w = s[result].op.axis
    s[result].bind(s[result].fuse(n, c), te.thread_axis("blockIdx.y"))
    s[result].bind(h, te.thread_axis("blockIdx.x"))
    s[result].bind(w, te.thread_axis("threadIdx.x"))
    return tvm.lower(s, [data, weight, result], name="depthwise")

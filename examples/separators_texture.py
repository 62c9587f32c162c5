# RFC 39's axis separators are how a texture is cut into rows and columns: [n, c//4, h] are the rows, w the columns, c%4 the
# channel of a texel. The conventions of the texture RFC (scopes "texture", "texture:weight", "texture:nhwc") are short for
# separators; this layout is none of them.
#
# 18 channels make 5 texels, and the last one has two channels without a value. An image takes whole texels only, so the
# four channels are gathered into one store; the two are never read, and that is proved.
import tvm
from tvm import te


def separators(batch=2, height=7, width=9, channels=18):
    A = te.placeholder((batch, height, width, channels), name="A", dtype="float32")
    B = te.compute(A.shape, lambda n, h, w, c: A[n, h, w, c] * 2.0, name="B")

    s = te.create_schedule(B.op)
    At = s.cache_read(A, "texture", [B])
    n, co, h, w, ci = s[At].transform_layout(lambda n, h, w, c: [n, c // 4, h, te.AXIS_SEPARATOR, w, c % 4])
    s[At].bind(s[At].fuse(n, co), te.thread_axis("blockIdx.y"))
    s[At].bind(h, te.thread_axis("blockIdx.x"))
    s[At].bind(w, te.thread_axis("threadIdx.x"))

    n, h, w, c = s[B].op.axis
    s[B].bind(s[B].fuse(n, h), te.thread_axis("blockIdx.x"))
    s[B].bind(w, te.thread_axis("threadIdx.x"))
    return tvm.lower(s, [A, B], name="separators")

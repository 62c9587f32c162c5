# A depthwise convolution with blocks, whose buffers are put into NCHW4c by its schedule. The padding of ten channels to three groups
# of four is part of what is proved.
import tvm
from tvm.script import tir as T


@T.prim_func
def depthwise(
    A: T.Buffer((1, 9, 9, 10), "float32"), W: T.Buffer((3, 3, 10), "float32"), C: T.Buffer((1, 7, 7, 10), "float32")
):
    for n, h, w, c, r, s in T.grid(1, 7, 7, 10, 3, 3):
        with T.sblock("C"):
            v_n, v_h, v_w, v_c, v_r, v_s = T.axis.remap("SSSSRR", [n, h, w, c, r, s])
            T.reads(A[v_n, v_h + v_r, v_w + v_s, v_c], W[v_r, v_s, v_c])
            T.writes(C[v_n, v_h, v_w, v_c])
            with T.init():
                C[v_n, v_h, v_w, v_c] = T.float32(0)
            C[v_n, v_h, v_w, v_c] = C[v_n, v_h, v_w, v_c] + A[v_n, v_h + v_r, v_w + v_s, v_c] * W[v_r, v_s, v_c]


sch = tvm.s_tir.Schedule(depthwise)
block = sch.get_sblock("C")
nchw4c = lambda n, h, w, c: [n, c // 4, h, w, c % 4]
sch.transform_layout(block, ("read", 0), nchw4c, pad_value=0.0)
sch.transform_layout(block, ("write", 0), nchw4c, pad_value=0.0, assume_injective_transform=True)
sch.transform_layout(block, "W", lambda r, s, c: [c // 4, r, s, c % 4])
n, h, w, c, r, s = sch.get_loops(block)
c_0, c_1 = sch.split(c, factors=[None, 4])
sch.reorder(n, c_0, h, w, r, s, c_1)
sch.decompose_reduction(block, r)

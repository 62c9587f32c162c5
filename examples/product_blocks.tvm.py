# What `print(mod)` gives for a matrix product with ragged tiles, TVM 0.27: blocks, their axes, and what they read and write.
from tvm.script import ir as I
from tvm.script import tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((37, 29), "float32"), B: T.Buffer((29, 23), "float32"), C: T.Buffer((37, 23), "float32")):
        # with T.sblock("root"):
        for i_0, j_0, k_0, i_1, k_1 in T.grid(5, 3, 5, 8, 6):
            for j_1 in T.serial(8):
                with T.sblock("C"):
                    v_i = T.axis.spatial(37, i_0 * 8 + i_1)
                    v_j = T.axis.spatial(23, j_0 * 8 + j_1)
                    v_k = T.axis.reduce(29, k_0 * 6 + k_1)
                    T.where(i_0 * 8 + i_1 < 37 and j_0 * 8 + j_1 < 23 and k_0 * 6 + k_1 < 29)
                    T.reads(A[v_i, v_k], B[v_k, v_j])
                    T.writes(C[v_i, v_j])
                    with T.init():
                        C[v_i, v_j] = T.float32(0.0)
                    C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]

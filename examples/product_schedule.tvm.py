# A matrix product with blocks, scheduled in TVM's notation: tiled, its result collected in a cache for each tile, vectorised.
import tvm
from tvm.script import tir as T


@T.prim_func
def product(A: T.Buffer((37, 29), "float32"), B: T.Buffer((29, 24), "float32"), C: T.Buffer((37, 24), "float32")):
    for i, j, k in T.grid(37, 24, 29):
        with T.sblock("C"):
            v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
            T.reads(A[v_i, v_k], B[v_k, v_j])
            T.writes(C[v_i, v_j])
            with T.init():
                C[v_i, v_j] = T.float32(0)
            C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]


sch = tvm.s_tir.Schedule(product)
block = sch.get_sblock("C")
i, j, k = sch.get_loops(block)
i_0, i_1 = sch.split(i, factors=[None, 8])
j_0, j_1 = sch.split(j, factors=[None, 4])
sch.reorder(i_0, j_0, k, i_1, j_1)
tile = sch.cache_write(block, 0, "global")
sch.reverse_compute_at(tile, j_0)
sch.decompose_reduction(block, k)
sch.vectorize(j_1)
sch.vectorize(sch.get_loops(tile)[-1])

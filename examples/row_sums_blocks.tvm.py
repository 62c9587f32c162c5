# The sum of each row in TVM's notation for schedules on blocks: a loop that counts a reduced axis is bound to threads. The schedule keeps it
# as it is; when the blocks are lowered, the step `allreduce` lets the threads combine their sums through shared memory, and
# `lower_thread_allreduce` does so in a tree.
import tvm
from tvm.script import tir as T


@T.prim_func
def row_sums(A: T.Buffer((7, 105), "float32"), B: T.Buffer((7,), "float32")):
    for i, k in T.grid(7, 105):
        with T.sblock("B"):
            v_i, v_k = T.axis.remap("SR", [i, k])
            with T.init():
                B[v_i] = T.float32(0)
            B[v_i] = B[v_i] + A[v_i, v_k]


sch = tvm.s_tir.Schedule(row_sums)
block = sch.get_sblock("B")
i, k = sch.get_loops(block)
k_0, k_1 = sch.split(k, factors=[None, 14])
sch.bind(i, "blockIdx.x")
sch.bind(k_1, "threadIdx.x")

# proved
# Each group has memory of its own, and reads what another of its threads has computed.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for b in T.thread_binding(4, thread="blockIdx.x"):
        P = T.alloc_buffer((16,), "float32", scope="shared")
        for t in T.thread_binding(4, thread="threadIdx.x"):
            with T.sblock("P"):
                vi = T.axis.spatial(16, b * 4 + t)
                P[vi] = A[vi]
            T.tvm_storage_sync("shared")
            with T.sblock("B"):
                vb, vt = T.axis.remap("SS", [b, t])
                B[vb * 4 + vt] = P[vb * 4 + 3 - vt]

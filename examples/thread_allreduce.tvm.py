# The sum of each row, by as many threads as a row has elements: 100, which is no power of two.
from tvm.script import tir as T


@T.prim_func
def row_sums(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 100), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for row in T.thread_binding(n, thread="blockIdx.x"):
        for t in T.thread_binding(100, thread="threadIdx.x"):
            R = T.alloc_buffer((1,), "float32", scope="local")
            with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0))):
                T.tvm_thread_allreduce(T.uint32(1), A[row, t], T.bool(True), R[0], t)
            if t == 0:
                B[row] = R[0]

# The sum of each row, by 14 threads for each row: a loop over a reduced axis is bound to threads. Each thread adds its part of the
# 105 elements, of which the last round has 7, and the threads combine their sums through shared memory.
import tvm
from tvm import te


def row_sums(columns=105, threads=14):
    rows = te.var("rows")
    A = te.placeholder((rows, columns), name="A", dtype="float32")
    k = te.reduce_axis((0, columns), name="k")
    B = te.compute((rows,), lambda i: te.sum(A[i, k], axis=k), name="B")

    s = te.create_schedule(B.op)
    ko, ki = s[B].split(B.op.reduce_axis[0], threads)
    s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.x"))
    s[B].bind(ki, te.thread_axis("threadIdx.x"))
    return tvm.lower(s, [A, B], name="row_sums")

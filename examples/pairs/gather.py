# Rows of a table by number. What the numbers are is up to the caller.
from tvm.script import tir as T


@T.prim_func
def main(table: T.handle, numbers: T.handle, out: T.handle):
    n = T.int32()
    m = T.int32()
    rows = T.int32()
    Table = T.match_buffer(table, (rows, m), "float32")
    Number = T.match_buffer(numbers, (n,), "int32")
    Out = T.match_buffer(out, (n, m), "float32")
    for i, j in T.grid(n, m):
        Out[i, j] = Table[Number[i], j]

# gather.py with the columns in the outer loop, eight at a time.
from tvm.script import tir as T


@T.prim_func
def main(table: T.handle, numbers: T.handle, out: T.handle):
    n = T.int32()
    m = T.int32()
    rows = T.int32()
    Table = T.match_buffer(table, (rows, m), "float32")
    Number = T.match_buffer(numbers, (n,), "int32")
    Out = T.match_buffer(out, (n, m), "float32")
    for jt, i, j in T.grid((m + 7) // 8, n, 8):
        if jt * 8 + j < m:
            Out[i, jt * 8 + j] = Table[Number[i], jt * 8 + j]

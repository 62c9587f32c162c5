from tvm.script import tir as T

@T.prim_func
def main(a: T.handle, c: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    C = T.match_buffer(c, (n,), "float32")
    part = T.alloc_buffer((4,), "float32")
    for i in range(n):
        for ki in range(4):
            part[ki] = T.float32(0)
            for ko in range((m + 3) // 4):
                if ko * 4 + ki < m:
                    part[ki] = part[ki] + A[i, ko * 4 + ki]
        C[i] = T.float32(0)
        for ki in range(4):
            C[i] = C[i] + part[3 - ki]

# unproved scanned axes of block X
from tvm.script import tir as T

@T.prim_func
def f(A: T.Buffer((2, 2), "float32"), B: T.Buffer((2,), "float32")):
    for l0 in range(2):
        for l1 in range(2):
            with T.sblock("X"):
                vi = T.axis.spatial(2, (l0 + l1) % 2)
                vs = T.axis.scan(2, l1)
                B[vi] = A[vi, vs]

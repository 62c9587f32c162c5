# proved
# The names of an argmax read what T.init has written.
from tvm.script import tir as T


@T.prim_func
def f(A: T.Buffer((6, 7), "float32"), V: T.Buffer((6,), "float32"), I: T.Buffer((6,), "int32")):
    for i, k in T.grid(6, 7):
        with T.sblock("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            T.reads(A[vi, vk])
            T.writes(I[vi], V[vi])
            with T.init():
                I[vi] = -1
                V[vi] = T.min_value("float32")
            x: T.int32 = T.if_then_else(V[vi] >= A[vi, vk], I[vi], vk)
            y: T.float32 = T.if_then_else(V[vi] >= A[vi, vk], V[vi], A[vi, vk])
            I[vi] = x
            V[vi] = y

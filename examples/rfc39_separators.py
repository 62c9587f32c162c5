# RFC 39, "Guide-level explanation": one tensor of shape (M, N, P, Q), with 1-d, 2-d, 3-d and split 2-d layouts.
import tvm
from tvm import te

M = te.var("M")
N = te.var("N")
P = te.var("P")
Q = te.var("Q")
A = te.placeholder((M, N, P, Q), name="A")


# Default, produces a 1-d allocation with shape (M*N*P*Q,)
def flat():
    B = te.compute(shape=(M,N,P,Q), fcompute=lambda *i: A(*i) + 1)
    s = te.create_schedule(B.op)
    s[B].transform_layout(lambda m,n,p,q: [m,n,p,q])


# One separator, produces a 2-d allocation with shape (M*N, P*Q).
def two_axes():
    B = te.compute(shape=(M,N,P,Q), fcompute=lambda *i: A(*i) + 1)
    s = te.create_schedule(B.op)
    s[B].transform_layout(lambda m,n,p,q: [m, n, te.AXIS_SEPARATOR, p, q])


# Two separators, produces a 3-d allocation with shape (M, N*P, Q).
def three_axes():
    B = te.compute(shape=(M,N,P,Q), fcompute=lambda *i: A(*i) + 1)
    s = te.create_schedule(B.op)
    s[B].transform_layout(lambda m,n,p,q: [m, te.AXIS_SEPARATOR, n, p, te.AXIS_SEPARATOR, q])


# Can be used along with reorders and splits.
def split_axes():
    B = te.compute(shape=(M,N,P,Q), fcompute=lambda *i: A(*i) + 1)
    s = te.create_schedule(B.op)
    s[B].transform_layout(lambda m,n,p,q: [m, q//4, n, te.AXIS_SEPARATOR, p, q%4])

# RFC 39, "Guide-level explanation", read as one program: four layouts of one tensor, one after the other.
import tvm
from tvm import te

M, N, P, Q = 2, 7, 9, 17
A = te.placeholder((M, N, P, Q), name="A")
B = te.compute(shape=(M,N,P,Q), fcompute=lambda m,n,p,q: A[m,n,p,q] + 1)
s = te.create_schedule(B.op)

# Default, produces a 1-d allocation with shape (M*N*P*Q,)
s[B].transform_layout(lambda m,n,p,q: [m,n,p,q])

# One separator, produces a 2-d allocation with shape (M*N, P*Q).
s[B].transform_layout(lambda m,n,p,q: [m, n, te.AXIS_SEPARATOR, p, q])

# Two separators, produces a 3-d allocation with shape (M, N*P, Q).
s[B].transform_layout(lambda m,n,p,q: [m, te.AXIS_SEPARATOR, n, p, te.AXIS_SEPARATOR, q])

# Can be used along with reorders and splits.
s[B].transform_layout(lambda m,n,p,q: [m, q//4, n, te.AXIS_SEPARATOR, p, q%4])

# The texture memory RFC, "A0: Support texture memory as a schedulable global scratch space", as printed.
import tvm
from tvm import te

def addone(shape=(32, 32, 4), dtype="float32"):
  X = te.placeholder(shape, dtype=args.dtype)
  Y = te.compute(shape, lambda i, j, k: X[i, j, k] + 1)
  s = te.create_schedule(Y.op)
  Xt = s.cache_read(X, "texture", [Y])

  # copy to texture stage
  x, y, c = s[Xt].op.axis
  s[Xt].bind(x, te.thread_axis("blockIdx.x"))
  s[Xt].bind(y, te.thread_axis("threadIdx.x"))
  s[Xt].vectorize(c)

  # the compute stage
  x, y, c = s[Y].op.axis
  xo, yo, xi, yi = s[Y].tile(x, y, 4, 4)
  s[Y].bind(xo, te.thread_axis("blockIdx.x"))
  s[Y].bind(yo, te.thread_axis("threadIdx.x"))
  s[Y].vectorize(c)
  return tvm.driver.lower([X, Y])

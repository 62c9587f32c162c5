"""Operators for scripts/tvm_dlight.py: products, normalisations, reductions, and others that models have, in TE.

`operators()` returns them by name, a function of TVM each. The extents `n`, `m` and `k` are not known; all others are numbers.
"""

from tvm import te, tirx, topi

from tvm_programs import F16, F32, I8, I32, product


def tensor(*shape, name="A", dtype=F32):
    """An input."""
    return te.placeholder(shape, dtype, name)


def unary(function, *shape):
    """A function of one tensor."""
    a = tensor(*shape)
    return [a, function(a)]


def product_transposed(n, m, k):
    """A product of matrices, of which the second is transposed."""
    a, b, r = tensor(n, k), tensor(m, k, name="B"), te.reduce_axis((0, k), "k")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[j, r], r), "C")]


def product_bias_relu(n, m, k):
    """A product of matrices, a bias and a maximum with zero."""
    a, b, c = product(n, m, k)
    d = tensor(m, name="D")
    return [a, b, d, topi.nn.relu(topi.add(c, d))]


def products(batch, n, m, k):
    """Several products of matrices."""
    a, b, r = tensor(batch, n, k), tensor(batch, k, m, name="B"), te.reduce_axis((0, k), "k")
    return [a, b, te.compute((batch, n, m), lambda q, i, j: te.sum(a[q, i, r] * b[q, r, j], r), "C")]


def matrix_vector(n, k):
    """A product of a matrix and a vector."""
    a, x, r = tensor(n, k), tensor(k, name="X"), te.reduce_axis((0, k), "k")
    return [a, x, te.compute((n,), lambda i: te.sum(a[i, r] * x[r], r), "Y")]


def dense(batch, n, k):
    """A matrix applied to each of a batch of vectors, as layers of a language model do it, for a sequence of length 1."""
    a, w, r = tensor(batch, 1, k), tensor(n, k, name="W"), te.reduce_axis((0, k), "k")
    return [a, w, te.compute((batch, 1, n), lambda p, q, i: te.sum(a[p, q, r] * w[i, r], r), "Y")]


def dense_quantised(n, k):
    """A matrix of bytes, with a scale for each row, applied to a vector."""
    w, s, x = tensor(n, k, name="W", dtype=I8), tensor(n, name="S"), tensor(1, k, name="X")
    r = te.reduce_axis((0, k), "k")
    d = te.compute((n, k), lambda i, j: w[i, j].astype(F32) * s[i], "D")
    return [w, s, x, te.compute((1, n), lambda p, i: te.sum(x[p, r] * d[i, r], r), "Y")]


def layer_norm(n, m):
    """Each row less its mean, by its deviation."""
    a, g, b = tensor(n, m), tensor(m, name="G"), tensor(m, name="Bt")
    return [a, g, b, topi.nn.layer_norm(a, g, b, [1])]


def rms_norm(n, m):
    """Each row by the root of the mean of its squares."""
    a, g = tensor(n, m), tensor(m, name="G")
    return [a, g, topi.nn.rms_norm(a, g, [1])]


def mean(n, m):
    """The mean of each row."""
    a = tensor(n, m)
    s = topi.sum(a, 1)
    divided = lambda i: s[i] * tirx.const(1.0 / m, F32) if isinstance(m, int) else s[i] / tirx.Cast(F32, m)
    return [a, te.compute(s.shape, divided, "M")]


def sums_before(n, m):
    """The sums of each row up to each of its elements."""
    a, r = tensor(n, m), te.reduce_axis((0, m), "k")
    body = lambda i, j: te.sum(tirx.if_then_else(r <= j, a[i, r], tirx.const(0, F32)), r)
    return [a, te.compute((n, m), body, "C")]


def broadcast(n, m):
    """A row added to each row."""
    a, b = tensor(n, m), tensor(m, name="B")
    return [a, b, topi.add(a, b)]


def convolution(function, shape, kernel):
    """A convolution of padded images with steps of 1."""
    a, w = tensor(*shape), tensor(*kernel, name="W")
    return [a, w, function(a, w, 1, 1, 1)]


def take(n, m):
    """Rows of a table, of which a tensor holds the numbers."""
    a, i = tensor(n, m), tensor(11, name="I", dtype=I32)
    return [a, i, topi.take(a, i, 0)]


def gather(n, m, k):
    """Elements of each row, of which a tensor holds the numbers."""
    a, i = tensor(n, m), tensor(n, k, name="I", dtype=I32)
    return [a, i, topi.gather(a, 1, i)]


def joined(n, m, k):
    """The columns of two matrices."""
    a, b = tensor(n, m), tensor(n, k, name="B")
    return [a, b, topi.concatenate([a, b], 1)]


def of_products(n, m, k):
    """Products of matrices, and of matrices and vectors."""
    return {
        "matmul_64x96x128": product(64, 96, 128), "matmul_33x65x17": product(33, 65, 17), "matmul_n_96_128": product(n, 96, 128),
        "matmul_nmk": product(n, m, k), "matmul_tb_n": product_transposed(n, 64, 64), "bmm": products(3, 17, 20, 9),
        "bmm_n": products(4, n, 32, 16), "gemv_64x128": matrix_vector(64, 128), "gemv_33x17": matrix_vector(33, 17),
        "gemv3_64x256": dense(1, 64, 256), "gemv3_n": dense(1, n, 128), "lowbatch_n": dense(n, 48, 64),
        "matmul_bias_relu_n": product_bias_relu(n, 64, 32), "matmul_fp16": product(n, 64, 64, F16, F32),
        "dequant_gemv": dense_quantised(64, 32),
    }


def of_reductions(n, m):
    """Normalisations, and reductions of an axis or of all."""
    softmax = lambda axis: lambda a: topi.nn.softmax(a, axis)
    total = lambda axis: lambda a: topi.sum(a, axis)
    largest, index_of_largest = lambda a: topi.max(a, 1), lambda a: topi.argmax(a, 1)
    return {
        "softmax_last": unary(softmax(-1), 5, 40), "softmax_mid": unary(softmax(1), 3, 20, 7),
        "softmax_n": unary(softmax(-1), n, 64), "softmax_nm": unary(softmax(-1), n, m),
        "logsoftmax": unary(topi.nn.log_softmax, 6, 33), "layernorm": layer_norm(4, 48), "layernorm_n": layer_norm(n, 64),
        "rmsnorm": rms_norm(4, 48), "rmsnorm_n": rms_norm(n, 64), "sum_last": unary(total(1), 9, 100),
        "sum_first": unary(total(0), 50, 9), "sum_all": unary(total(None), 7, 33), "sum_n": unary(total(1), n, 100),
        "sum_nm": unary(total(1), n, m), "sum_first_n": unary(total(0), n, 9), "max_last": unary(largest, 9, 30),
        "max_nm": unary(largest, n, m), "mean_last": mean(9, 40), "mean_nm": mean(n, m),
        "argmax": unary(index_of_largest, 6, 40), "argmax_n": unary(index_of_largest, n, 40), "cumsum_masked": sums_before(6, 20),
    }


def of_windows(n):
    """Convolutions, pooling and padding."""
    padded = lambda a: topi.nn.pad(a, [1, 2], [1, 0])
    pooled = lambda a: topi.nn.pool2d(a, [2, 2], [2, 2], [1, 1], [0, 0, 0, 0], "max")
    averages = lambda a: topi.nn.adaptive_pool(a, [3, 3], "avg")
    conv, depthwise = topi.nn.conv2d_nchw, topi.nn.depthwise_conv2d_nchw
    return {
        "conv2d": convolution(conv, (1, 3, 8, 9), (4, 3, 3, 3)), "conv2d_n": convolution(conv, (n, 3, 8, 9), (4, 3, 3, 3)),
        "depthwise": convolution(depthwise, (1, 6, 8, 9), (6, 1, 3, 3)), "pad": unary(padded, 7, 9), "pad_n": unary(padded, n, 9),
        "pool": unary(pooled, 1, 3, 8, 8), "adaptive_pool": unary(averages, 1, 3, 8, 8),
    }


def of_elements(n, m):
    """Elements computed one by one, and elements moved."""
    swapped = lambda a: topi.transpose(a, [1, 0])
    return {
        "transpose": unary(swapped, 33, 50), "transpose_n": unary(swapped, n, m),
        "transpose4": unary(lambda a: topi.transpose(a, [0, 2, 3, 1]), 2, 9, 5, 7),
        "elemwise": unary(lambda a: topi.nn.relu(topi.add(topi.exp(a), a)), 7, 33),
        "elemwise_n": unary(lambda a: topi.nn.relu(topi.tanh(a)), n, 33), "bcast_nm": broadcast(n, m), "take": take(20, 9),
        "take_n": take(n, 9), "gather": gather(6, 9, 4), "concat": joined(5, 7, 6), "concat_n": joined(n, 7, 6),
        "split_stride": unary(lambda a: topi.strided_slice(a, [0, 1], [7, 9], [1, 2]), 7, 10),
        "reshape_n": unary(lambda a: topi.reshape(a, (n * 4, 8)), n, 32),
    }


def operators():
    """Returns the operators by name, each of them a function of TVM."""
    n, m, k = te.var("n"), te.var("m"), te.var("k")
    of = {**of_products(n, m, k), **of_reductions(n, m), **of_windows(n), **of_elements(n, m)}
    return {name: te.create_prim_func(tensors) for name, tensors in of.items()}

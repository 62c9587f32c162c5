"""Programs for the corpus of scripts/tvm_corpus.py: definitions in TE, and schedules that apply to any of them.

`definitions()` returns the programs, a function of TVM each. `SCHEDULES` are generators: each takes an S-TIR schedule, does
one step of it at a time, and yields the name of the step. What a step needs to be proved beyond that, a map of a parameter's
layout or the premise that sums may be reordered, it yields with the name.
"""

from tvm import s_tir, te, tirx

F32, F16, I8, I32, U8 = "float32", "float16", "int8", "int32", "uint8"


def product(n, m, k, dtype=F32, out=None):
    """A product of matrices, with its operands converted to the type `out` first."""
    out = out or dtype
    a, b = te.placeholder((n, k), dtype, "A"), te.placeholder((k, m), dtype, "B")
    r = te.reduce_axis((0, k), "k")
    return [a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r].astype(out) * b[r, j].astype(out), r), "C")]


def product_relu(n, m, k):
    """A product of matrices, a bias and a maximum with zero."""
    a, b, c = product(n, m, k)
    bias = te.placeholder((m,), F32, "bias")
    d = te.compute((n, m), lambda i, j: c[i, j] + bias[j], "D")
    return [a, b, bias, te.compute((n, m), lambda i, j: te.max(d[i, j], tirx.const(0, F32)), "Z")]


def batch_product(n, m, k):
    """Products of matrices, of which the second is transposed."""
    a, b = te.placeholder((3, n, k), F32, "A"), te.placeholder((3, m, k), F32, "B")
    r = te.reduce_axis((0, k), "k")
    return [a, b, te.compute((3, n, m), lambda p, i, j: te.sum(a[p, i, r] * b[p, j, r], r), "C")]


def convolution(h, w, c, o, stride=1, pad=1):
    """A convolution with a window of 3 by 3 whose image is padded by zeros, NCHW."""
    x, f = te.placeholder((c, h, w), F32, "X"), te.placeholder((o, c, 3, 3), F32, "F")

    def padded(i, y, z):
        inside = tirx.all(y >= pad, y < h + pad, z >= pad, z < w + pad)
        return tirx.if_then_else(inside, x[i, y - pad, z - pad], tirx.const(0, F32))

    p = te.compute((c, h + 2 * pad, w + 2 * pad), padded, "P")
    i, y, z = te.reduce_axis((0, c), "i"), te.reduce_axis((0, 3), "y"), te.reduce_axis((0, 3), "z")
    shape = (o, (h + 2 * pad - 3) // stride + 1, (w + 2 * pad - 3) // stride + 1)
    body = lambda q, r, s: te.sum(p[i, r * stride + y, s * stride + z] * f[q, i, y, z], [i, y, z])
    return [x, f, te.compute(shape, body, "Y")]


def depthwise(h, w, c):
    """A convolution of each channel by itself, NHWC."""
    x, f = te.placeholder((h, w, c), F32, "X"), te.placeholder((3, 3, c), F32, "F")
    y, z = te.reduce_axis((0, 3), "y"), te.reduce_axis((0, 3), "z")
    body = lambda r, s, q: te.sum(x[r + y, s + z, q] * f[y, z, q], [y, z])
    return [x, f, te.compute((h - 2, w - 2, c), body, "Y")]


def pooling(h, w, reduce, dtype=F32):
    """A pooling of windows of 2 by 3, `reduce` combines them."""
    x = te.placeholder((h, w), dtype, "X")
    y, z = te.reduce_axis((0, 2), "y"), te.reduce_axis((0, 3), "z")
    body = lambda r, s: reduce(x[r * 2 + y, s * 3 + z], [y, z])
    return [x, te.compute((h // 2, w // 3), body, "Y")]


def rows(n, m, reduce, dtype=F32):
    """A reduction of each row."""
    x, r = te.placeholder((n, m), dtype, "X"), te.reduce_axis((0, m), "r")
    return [x, te.compute((n,), lambda i: reduce(x[i, r], r), "Y")]


def softmax(n, m):
    """The softmax of each row."""
    x = te.placeholder((n, m), F32, "X")
    r, q = te.reduce_axis((0, m), "r"), te.reduce_axis((0, m), "q")
    top = te.compute((n,), lambda i: te.max(x[i, r], r), "top")
    e = te.compute((n, m), lambda i, j: te.exp(x[i, j] - top[i]), "e")
    total = te.compute((n,), lambda i: te.sum(e[i, q], q), "total")
    return [x, te.compute((n, m), lambda i, j: e[i, j] / total[i], "Y")]


def normalised(n, m):
    """Rows less their mean."""
    x, r = te.placeholder((n, m), F32, "X"), te.reduce_axis((0, m), "r")
    mean = te.compute((n,), lambda i: te.sum(x[i, r], r), "mean")
    return [x, te.compute((n, m), lambda i, j: x[i, j] - mean[i] * tirx.const(0.125, F32), "Y")]


def elementwise(n, m, dtype=F32, f=None):
    """Two stages without a reduction; `f` is the second one."""
    x = te.placeholder((n, m), dtype, "X")
    t = te.compute((n, m), lambda i, j: x[i, j] * tirx.const(3, dtype), "U")
    f = f or (lambda v, i, j: v + tirx.const(1, dtype))
    return [x, te.compute((n, m), lambda i, j: f(t[i, j], i, j), "Y")]


def moved(shape_in, shape_out, index, dtype=F32):
    """Elements moved: `index` gives the one of `X` that stands at an index of `Y`."""
    x = te.placeholder(shape_in, dtype, "X")
    return [x, te.compute(shape_out, lambda *at: x(*index(*at)), "Y")]


def gather(n, m, k):
    """Rows of a table, of which a tensor holds the numbers."""
    t, at = te.placeholder((k, m), F32, "Table"), te.placeholder((n,), I32, "At")
    return [t, at, te.compute((n, m), lambda i, j: t[at[i], j], "Y")]


def joined(n, m, k):
    """Two matrices, one after the other."""
    a, b = te.placeholder((n, m), F32, "A"), te.placeholder((n, k), F32, "B")
    body = lambda i, j: tirx.if_then_else(j < m, a[i, j], b[i, j - m])
    return [a, b, te.compute((n, m + k), body, "Y")]


def blurred(n, m):
    """Sums of three neighbours, by rows and then by columns."""
    x = te.placeholder((n + 2, m + 2), F32, "X")
    h = te.compute((n + 2, m), lambda i, j: x[i, j] + x[i, j + 1] + x[i, j + 2], "H")
    return [x, te.compute((n, m), lambda i, j: h[i, j] + h[i + 1, j] + h[i + 2, j], "Y")]


def definitions():
    """Returns the programs by name, each of them a function of TVM."""
    n, m, k = te.var("n"), te.var("m"), te.var("k")
    wide = te.var("n", "int64")
    mixed = lambda v, i, j: tirx.Select((i + j) % 3 == 0, v, -v)
    shifted = lambda v, i, j: (v >> 2) ^ (v & tirx.const(15, I32)) | tirx.shift_left(v, tirx.const(1, I32))
    maths = lambda v, i, j: te.exp(v) * te.sqrt(te.abs(v)) + te.tanh(v) + te.sigmoid(v) + te.floor(v)
    of = {
        "product": product(37, 24, 19), "product_sym": product(n, m, k), "product_int8": product(16, 24, 8, I8, I32),
        "product_half": product(8, 12, 20, F16, F32), "product_rows": product(n, 24, 16),
        "product_relu": product_relu(16, 20, 12), "batch": batch_product(9, 10, 7),
        "conv": convolution(9, 10, 3, 6), "conv_stride": convolution(11, 8, 4, 5, 2, 0),
        "conv_sym": convolution(n, m, 3, 4), "depthwise": depthwise(10, 9, 6),
        "pool_max": pooling(14, 21, te.max), "pool_sum": pooling(12, 18, te.sum, I32),
        "rows_sum": rows(13, 40, te.sum), "rows_sum_sym": rows(n, m, te.sum, I32), "rows_min": rows(9, 33, te.min, I8),
        "softmax": softmax(7, 18), "normalised": normalised(n, 24),
        "scale": elementwise(13, 22), "scale_sym": elementwise(n, m), "scale_wide": elementwise(wide, 24),
        "mixed": elementwise(17, 11, F32, mixed), "shifted": elementwise(15, 20, I32, shifted),
        "maths": elementwise(6, 30, F32, maths), "bytes": elementwise(n, 16, U8),
        "cast": elementwise(12, 19, F32, lambda v, i, j: v.astype(F16).astype(I32).astype(F32)),
        "transpose": moved((14, 9), (9, 14), lambda i, j: (j, i)),
        "transpose_sym": moved((n, m, 4), (4, n, m), lambda p, i, j: (i, j, p)),
        "reshape": moved((6, 20), (15, 8), lambda i, j: ((i * 8 + j) // 20, (i * 8 + j) % 20)),
        "slice": moved((40,), (13,), lambda i: (i * 3 + 1,)), "flip": moved((n,), (n,), lambda i: (n - 1 - i,)),
        "upsample": moved((5, 6), (10, 18), lambda i, j: (i // 2, j // 3)),
        "gather": gather(12, 10, 30), "gather_sym": gather(n, m, k), "joined": joined(6, 9, 8), "blur": blurred(13, 18),
        "blur_sym": blurred(n, m),
    }
    return {name: te.create_prim_func(tensors) for name, tensors in of.items()}


def blocks(s):
    """Returns the blocks of a schedule in program order."""
    return list(s.get_child_blocks(s.get_sblock("root")))


def loops(s, block, kind):
    """Returns the loops of a block whose variables are spatial (`"S"`) or reduced (`"R"`) axes."""
    code = {"S": 0, "R": 2}[kind]
    axes = [axis.iter_type for axis in s.get(block).iter_vars]
    return [loop for loop, axis in zip(s.get_loops(block)[-len(axes):], axes) if int(axis) == code]


def plain(s):
    """No schedule."""
    return iter(())


def tiled(s):
    """Tiles of 4 by 8 of the last block, the inner loops as vectors, the ones before unrolled."""
    block = blocks(s)[-1]
    spatial, reduced = loops(s, block, "S"), loops(s, block, "R")
    outer, inner = [], []
    for loop, factor in zip(spatial, [4] * (len(spatial) - 1) + [8]):
        pair = s.split(loop, [None, factor])
        outer.append(pair[0]), inner.append(pair[1])
        yield "split"
    s.reorder(*outer, *reduced, *inner)
    yield "reorder"
    s.vectorize(inner[-1])
    yield "vectorize"
    if len(inner) > 1:
        s.unroll(inner[-2])
        yield "unroll"
    if reduced:
        s.decompose_reduction(block, reduced[0])
        yield "decompose_reduction"


def fused(s):
    """The spatial loops of each block fused and split by a number that does not divide them."""
    for block in blocks(s):
        spatial = loops(s, block, "S")
        if len(spatial) > 1:
            fused_loop = s.fuse(*spatial)
            yield "fuse"
        else:
            fused_loop = spatial[0]
        outer, _ = s.split(fused_loop, [None, 7])
        yield "split"
        s.parallel(outer)
        yield "parallel"


def launched(s, vthread=False):
    """Each block as a kernel: its spatial loops fused, and bound to the axes of a launch."""
    for block in blocks(s):
        spatial = loops(s, block, "S")
        loop = s.fuse(*spatial) if len(spatial) > 1 else spatial[0]
        parts = s.split(loop, [None, 2, 16] if vthread else [None, 16])
        yield "split"
        s.bind(parts[0], "blockIdx.x")
        s.bind(parts[-1], "threadIdx.x")
        yield "bind"
        if vthread:
            s.bind(parts[1], "vthread.x")
            yield "vthread"


def virtual(s):
    """As `launched`, with two virtual threads."""
    return launched(s, True)


def cached(s, double=False):
    """The inputs of the last block in local memory and its output too, by rows of tiles."""
    block = blocks(s)[-1]
    spatial = loops(s, block, "S")
    outer, inner = s.split(spatial[0], [None, 4])
    yield "split"
    if len(spatial) > 1:
        s.reorder(outer, *[loop for loop in spatial[1:]], inner)
        yield "reorder"
    write = s.cache_write(block, 0, "local")
    yield "cache_write"
    s.reverse_compute_at(write, outer)
    yield "reverse_compute_at"
    read = s.cache_read(block, 0, "local")
    yield "cache_read"
    s.compute_at(read, outer)
    yield "compute_at"
    if double:
        s.annotate(read, "double_buffer_scope", 0)
        yield "double_buffer"


def doubled(s):
    """As `cached`, with two halves of the cache of the first input."""
    return cached(s, True)


def inlined(s):
    """The first block inlined where it can be, and else computed where the last block needs it."""
    first, last = blocks(s)[0], blocks(s)[-1]
    if len(blocks(s)) < 2:
        return
    outer = s.split(loops(s, last, "S")[0], [None, 3])[0]
    yield "split"
    try:
        s.compute_inline(first)
        yield "compute_inline"
    except s_tir.ScheduleError:
        s.compute_at(first, outer)
        yield "compute_at"


def moved_in(s):
    """All blocks before the last one computed where an iteration of it needs them."""
    *before, last = blocks(s)
    if not before:
        return
    outer = s.split(loops(s, last, "S")[0], [None, 4])[0]
    yield "split"
    for block in reversed(before):
        s.compute_at(block, outer)
        yield "compute_at"
    s.unroll(s.get_loops(last)[1])
    yield "unroll"


def staged(s):
    """A reduction in two stages."""
    block = blocks(s)[-1]
    reduced = loops(s, block, "R")
    if not reduced:
        return
    _, inner = s.split(reduced[0], [None, 4])
    yield "split"
    s.rfactor(inner, 0)
    yield "rfactor", {"reassociate": True}


def repacked(s, pad=False):
    """The output of the last block in tiles of 4 along its last axis."""
    block = blocks(s)[-1]
    buffer = s.get(block).writes[0].source
    names = [f"i{axis}" for axis in range(len(buffer.shape))]
    body = [*names[:-1], f"{names[-1]} // 4", f"{names[-1]} % 4"]
    text = f"lambda {', '.join(names)}: [{', '.join(body)}]"
    zero = (lambda *_: tirx.const(0, buffer.dtype)) if pad else None
    s.transform_layout(block, ("write", 0), eval(text), pad_value=zero)  # noqa: S307
    yield "transform_layout", {"map": f"{buffer.name}: {text}"}


def padded(s):
    """As `repacked`, with padding of zeros."""
    return repacked(s, True)


def unrolled(s):
    """The innermost loop of the last block split and unrolled."""
    block = blocks(s)[-1]
    loop = s.get_loops(block)[-1]
    _, inner = s.split(loop, [None, 3])
    yield "split"
    s.unroll(inner)
    yield "unroll"


SCHEDULES = [plain, tiled, fused, launched, virtual, cached, doubled, inlined, moved_in, staged, repacked, padded, unrolled]

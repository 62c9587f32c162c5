# The kernels of the graph in block.json: a depthwise convolution of stride 2 in textures, with what is around it. 10
# channels make 3 texels, and the last one is half padding: it is packed as 0, and nothing of it is unpacked.
from tvm.script import tir as T


@T.prim_func
def pack(image: T.Buffer((1, 7, 9, 10), "float32"), packed: T.Buffer((1, 3, 7, 9, 4), "float32", scope="texture")):
    for co in T.thread_binding(3, thread="blockIdx.y"):
        for h in T.thread_binding(7, thread="blockIdx.x"):
            for w in T.thread_binding(9, thread="threadIdx.x"):
                for c in T.vectorized(4):
                    packed[0, co, h, w, c] = T.if_then_else(co * 4 + c < 10, image[0, h, w, co * 4 + c], T.float32(0))


@T.prim_func
def pack_weight(kernel: T.Buffer((3, 3, 10), "float32"), weight: T.Buffer((3, 3, 3, 4), "float32", scope="texture:weight")):
    for co in T.thread_binding(3, thread="blockIdx.x"):
        for i in T.thread_binding(3, thread="threadIdx.y"):
            for j in T.thread_binding(3, thread="threadIdx.x"):
                for c in T.vectorized(4):
                    weight[co, i, j, c] = T.if_then_else(co * 4 + c < 10, kernel[i, j, co * 4 + c], T.float32(0))


@T.prim_func
def depthwise(
    packed: T.Buffer((1, 3, 7, 9, 4), "float32", scope="texture"),
    weight: T.Buffer((3, 3, 3, 4), "float32", scope="texture:weight"),
    conv: T.Buffer((1, 3, 4, 5, 4), "float32", scope="texture"),
):
    for co in T.thread_binding(3, thread="blockIdx.y"):
        for h in T.thread_binding(4, thread="blockIdx.x"):
            for w in T.thread_binding(5, thread="threadIdx.x"):
                total = T.alloc_buffer((4,), "float32", scope="local")
                for c in T.vectorized(4):
                    total[c] = T.float32(0)
                for i in range(3):
                    for j in range(3):
                        for c in T.vectorized(4):
                            total[c] = total[c] + T.if_then_else(
                                1 <= h * 2 + i and h * 2 + i < 8 and 1 <= w * 2 + j and w * 2 + j < 10,
                                packed[0, co, h * 2 + i - 1, w * 2 + j - 1, c],
                                T.float32(0),
                            ) * weight[co, i, j, c]
                for c in T.vectorized(4):
                    conv[0, co, h, w, c] = total[c]


@T.prim_func
def relu(
    conv: T.Buffer((1, 3, 4, 5, 4), "float32", scope="texture"),
    rectified: T.Buffer((1, 3, 4, 5, 4), "float32", scope="texture"),
):
    for co in T.thread_binding(3, thread="blockIdx.y"):
        for h in T.thread_binding(4, thread="blockIdx.x"):
            for w in T.thread_binding(5, thread="threadIdx.x"):
                for c in T.vectorized(4):
                    rectified[0, co, h, w, c] = T.max(conv[0, co, h, w, c], T.float32(0))


@T.prim_func
def add(
    rectified: T.Buffer((1, 3, 4, 5, 4), "float32", scope="texture"),
    conv: T.Buffer((1, 3, 4, 5, 4), "float32", scope="texture"),
    total: T.Buffer((1, 3, 4, 5, 4), "float32", scope="texture"),
):
    for co in T.thread_binding(3, thread="blockIdx.y"):
        for h in T.thread_binding(4, thread="blockIdx.x"):
            for w in T.thread_binding(5, thread="threadIdx.x"):
                for c in T.vectorized(4):
                    total[0, co, h, w, c] = rectified[0, co, h, w, c] * T.float32(0.5) + conv[0, co, h, w, c]


@T.prim_func
def unpack(total: T.Buffer((1, 3, 4, 5, 4), "float32", scope="texture"), result: T.Buffer((1, 4, 5, 10), "float32")):
    for k in T.thread_binding(10, thread="blockIdx.y"):
        for h in T.thread_binding(4, thread="blockIdx.x"):
            for w in T.thread_binding(5, thread="threadIdx.x"):
                result[0, h, w, k] = total[0, k // 4, h, w, k % 4]


@T.prim_func
def mean(rows: T.Buffer((20, 10), "float32"), means: T.Buffer((10,), "float32")):
    for k in T.thread_binding(10, thread="threadIdx.x"):
        means[k] = T.float32(0)
        for j in range(20):
            means[k] = means[k] + rows[j, k]
        means[k] = means[k] / T.float32(20)


@T.prim_func
def shift(means: T.Buffer((10,), "float32"), scores: T.Buffer((10,), "float32")):
    for k in T.thread_binding(10, thread="threadIdx.x"):
        scores[k] = means[k] - means[9 - k]

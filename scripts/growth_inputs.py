"""Inputs of growing size for scripts/growth.py: programs, maps, chains of stages and graphs, as text."""

import json
import random

AXES = "abcdefghijkl"
PACKED = "lambda i, y, x, k: [i, k // 4, y, x, k % 4]"


def multiply_add(elements):
    """NHWC to NCHW4c with a multiplication and an addition; the batch grows, an image has 10000 elements."""
    n = max(1, elements // 10_000)
    load = "A[n, h, w, co * 4 + ci]"
    return f"""@T.prim_func
def multiply_add(A: T.Buffer(({n}, 25, 25, 16), "float32"), B: T.Buffer(({n}, 4, 25, 25, 4), "float32")):
    for n, co, h, w, ci in T.grid({n}, 4, 25, 25, 4):
        B[n, co, h, w, ci] = {load} * T.float32(2) + {load}
"""


def maps(rank, symbolic, count):
    """Requests of a batch: permutations of the axes, one of which is split. A constant shape has about 10^8 elements at any rank."""
    chosen = random.Random(rank)
    for number in range(count):
        order = list(AXES[:rank])
        extent = max(2, round(1e8 ** (1 / rank)))
        shape = [f"n{name}" if symbolic else extent - (chosen.random() < 0.5) * (extent > 2) for name in order]
        names = ", ".join(order)
        split, factor = chosen.choice(order), chosen.choice([2, 3, 4, 8, 16])
        chosen.shuffle(order)
        outputs = [f"{name} // {factor}" if name == split else name for name in order] + [f"{split} % {factor}"]
        yield json.dumps({"id": number, "map": f"lambda {names}: [{', '.join(outputs)}]", "shape": shape})


def chain(stages, symbolic):
    """Stages in TE, each from NHWC to NCHW4c."""
    extents = ["n", "h", "w", "c"]
    lines = ["import tvm", "from tvm import te"]
    lines += [f'{name} = te.var("{name}")' if symbolic else f"{name} = {value}" for name, value in zip(extents, (2, 3, 3, 8))]
    lines.append('T0 = te.placeholder((n, h, w, c), name="T0")')
    for i in range(1, stages + 1):
        lines.append(f'T{i} = te.compute(T0.shape, lambda i, y, x, k: T{i - 1}[i, y, x, k] + 1, name="T{i}")')
    lines.append(f"s = te.create_schedule(T{stages}.op)")
    lines += [f"s[T{i}].transform_layout({PACKED})" for i in range(1, stages + 1)]
    return "\n".join(lines) + "\n"


def nests(count):
    """Loops at the root of a function, for a symbolic extent."""
    lines = ["@T.prim_func", "def nests(a: T.handle, b: T.handle):", "    n = T.int32()"]
    lines += [f'    {name.upper()} = T.match_buffer({name}, (n,), "float32")' for name in "ab"]
    for i in range(count):
        lines += ["    for i in range(n):", f"        B[i] = A[i] + T.float32({i})"]
    return "\n".join(lines) + "\n"


class Graph:
    """A graph in the making, as `tilewright.graph/1`."""

    def __init__(self):
        self.tensors, self.steps = [], []

    def tensor(self, name, shape, dtype, scope, **more):
        self.tensors.append({"name": name, "shape": shape, "dtype": dtype, "scope": scope, **more})
        return name

    def step(self, name, reads, writes):
        self.steps.append({"name": name, "reads": reads, "writes": writes})

    def text(self, inputs, outputs):
        whole = {"schema": "tilewright.graph/1", "tensors": self.tensors, "steps": self.steps}
        return json.dumps({**whole, "inputs": inputs, "outputs": outputs}, separators=(",", ":"))


def block(graph, number, scope, last, side, channels):
    """Adds an inverted residual of seven tensors: expand, depthwise, project, sum, a view, and two weights. Returns the view."""
    quarter = channels // 4

    def tensor(name, factor):
        return graph.tensor(f"b{number}.{name}", [1, quarter * factor, side, side, 4], "float16", scope)

    expand, depthwise, project, total = tensor("expand", 6), tensor("depthwise", 6), tensor("project", 1), tensor("sum", 1)
    graph.step(f"b{number}.expand", [last], [expand])
    graph.step(f"b{number}.depthwise", [expand], [depthwise])
    graph.step(f"b{number}.project", [depthwise], [project])
    graph.step(f"b{number}.sum", [project, last], [total])
    same = graph.tensor(f"b{number}.same", [1, quarter, side, side, 4], "float16", scope, view_of=total)
    weight = [quarter * 4, quarter * (2 + number % 3), 4]
    packed = graph.tensor(f"b{number}.packed", weight, "float32", "texture:weight")
    scale = graph.tensor(f"b{number}.scale", [channels + 3], "float32", "global")
    graph.step(f"b{number}.pack", [same], [packed, scale])
    return same


def network(tensors):
    """A network of about so many tensors, the same as `tilewright::fuzz::graph::network` makes: blocks, one in five of buffers and
    the others of textures, with images that get smaller and deeper every 40 blocks."""
    graph, scopes = Graph(), ["texture", "global"]
    side, channels = 112, 16
    last = [graph.tensor(f"x.{scope}", [1, channels // 4, side, side, 4], "float16", scope) for scope in scopes]
    inputs = list(last)
    for number in range(tensors // 7 + 1):
        branch = int(number % 5 == 3)
        if number % 40 == 39:
            side, channels = (-(-side // 2), channels + 12) if side > 7 else (112, 16)
            for at, scope in enumerate(scopes):
                name = f"b{number}.pool.{at}"
                down = graph.tensor(name, [1, channels // 4, side, side, 4], "float16", scope)
                graph.step(name, [last[at]], [down])
                last[at] = down
        last[branch] = block(graph, number, scopes[branch], last[branch], side, channels)
    return graph.text(inputs, last)

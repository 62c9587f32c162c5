"""Times relayouts of 16 MiB in numpy, JAX and TVM, and copies of as many bytes, all on one thread.

    python=$(scripts/peers_env.sh) && "$python" scripts/relayout_peers.py [ROUNDS]

Prints one JSON object: milliseconds by name of the move and of the peer, or the reason why there are none. The process keeps to one
processor and tells every library to use one thread. All write into memory that was touched before; JAX gets the result of the round before
to write into. The result of each peer is compared with that of numpy. scripts/relayout_kernels.py runs this.
"""

import json
import os
import statistics
import sys
import time

SHAPE = (16, 64, 64, 64)
#: Each move for numpy and JAX, and for TVM as a nest that writes its result in order: the loops, what is stored and what is read.
MOVES = {
    "NHWC to NCHW": (
        lambda a: a.transpose(0, 3, 1, 2),
        ("n, c, h, w", (16, 64, 64, 64), "n, h, w, c"),
    ),
    "NCHW to NHWC": (
        lambda a: a.transpose(0, 2, 3, 1),
        ("n, h, w, c", (16, 64, 64, 64), "n, c, h, w"),
    ),
    "NCHW to NCHW4c": (
        lambda a: a.reshape(16, 16, 4, 64, 64).transpose(0, 1, 3, 4, 2),
        ("n, co, h, w, ci", (16, 16, 64, 64, 4), "n, co * 4 + ci, h, w"),
    ),
}


def one_thread():
    """Keeps this process, and the threads that libraries start in it, to one processor."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TVM_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    os.environ["JAX_PLATFORMS"] = "cpu"


def milliseconds(run, rounds):
    """The median time of a call."""
    for _ in range(3):
        run()
    found = []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        run()
        found.append(time.perf_counter_ns() - start)
    return statistics.median(found) / 1e6


def numpy_move(numpy, source, move, _):
    """A call that moves in numpy, and what reads its result."""
    moved = move(source)
    out = numpy.zeros(moved.shape, source.dtype)
    return lambda: numpy.copyto(out, moved), lambda: out


def jax_move(numpy, source, move, _):
    """A call that moves in JAX, compiled; the memory of its last result is donated to the next."""
    import jax

    given = jax.numpy.asarray(source)
    compiled = jax.jit(lambda _, array: move(array), donate_argnums=0, keep_unused=True)
    held = [jax.numpy.zeros(move(source).shape, source.dtype)]

    def run():
        held[0] = compiled(held[0], given)
        held[0].block_until_ready()

    return run, lambda: numpy.asarray(held[0])


def tvm_move(numpy, source, move, nest):
    """A call that moves in TVM, compiled by LLVM for this processor, without a schedule."""
    import tvm
    import tvm.script

    loops, extents, read = nest
    text = f"""@T.prim_func
def move(A: T.Buffer({SHAPE}, "float32"), B: T.Buffer({extents}, "float32")):
    for {loops} in T.grid{extents}:
        B[{loops}] = A[{read}]
"""
    host = tvm.get_global_func("target.llvm_get_system_cpu", allow_missing=True)
    target = tvm.target.Target({"kind": "llvm", "mcpu": host()} if host else "llvm")
    compiled = tvm.compile(tvm.IRModule({"main": tvm.script.from_source(text)}), target=target)["main"]
    given, out = tvm.runtime.tensor(source), tvm.runtime.tensor(numpy.zeros(extents, "float32"))
    return lambda: compiled(given, out), out.numpy


PEERS = {"numpy": numpy_move, "JAX": jax_move, "TVM": tvm_move}


def measured(rounds):
    """Milliseconds, or reasons, by move and peer; a copy is measured beside each move."""
    import numpy

    source = numpy.random.default_rng(0).random(SHAPE, dtype="float32")
    copy = numpy.zeros_like(source)
    report = {}
    for name, (move, nest) in MOVES.items():
        report[name] = {"memcpy": milliseconds(lambda: numpy.copyto(copy, source), rounds)}
        for peer, make in PEERS.items():
            try:
                run, result = make(numpy, source, move, nest)
                report[name][peer] = milliseconds(run, rounds)
                if not numpy.array_equal(result(), move(source)):
                    report[name][peer] = "wrong result"
            except Exception as error:  # A peer may be missing, or refuse in its own way.
                report[name][peer] = str(error).strip().split("\n")[-1][:80] or type(error).__name__
    return report


if __name__ == "__main__":
    one_thread()
    print(json.dumps(measured(int(sys.argv[1]) if len(sys.argv) > 1 else 30)))

#!/usr/bin/env python3
"""Writes MobileNetV2 as an ONNX model with fixed pseudo-random weights. Needs Python alone.

    scripts/mobilenet.py mobilenet.onnx [--size 224] [--width 1.0] [--classes 1000]

The layers are those of the paper (Sandler et al. 2018, table 2): 17 inverted residuals, batch normalisation folded into the
convolutions. Weights are drawn so that activations keep their magnitude from layer to layer; the same arguments give the
same file.
"""

import argparse
import array
import struct
import sys

# Expansion, channels, repetitions and first stride of each row of the table.
BLOCKS = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, value):
    """A field of a protobuf message: an integer, a float, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    if isinstance(value, list):
        return field(1, name) + b"".join(field(8, one) for one in value) + field(20, 7)
    if isinstance(value, float):
        return field(1, name) + field(2, value) + field(20, 1)
    return field(1, name) + field(3, value) + field(20, 2)


class Model:
    def __init__(self):
        self.nodes, self.constants, self.state, self.count = [], [], 1, 0

    def numbers(self, count, largest):
        """Uniform pseudo-random numbers in -largest..largest, by a linear congruential generator."""
        state, out = self.state, array.array("f")
        for _ in range(count):
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            out.append((state / 0x40000000 - 1.0) * largest)
        self.state = state
        if sys.byteorder == "big":
            out.byteswap()
        return out.tobytes()

    def constant(self, name, shape, largest):
        count = 1
        for extent in shape:
            count *= extent
        dims = b"".join(field(1, extent) for extent in shape)
        self.constants.append(dims + field(2, 1) + field(8, name) + field(9, self.numbers(count, largest)))
        return name

    def node(self, op, inputs, output, **attributes):
        parts = [field(1, name) for name in inputs] + [field(2, output), field(3, "n_" + output), field(4, op)]
        parts += [field(5, attribute(name, value)) for name, value in sorted(attributes.items())]
        self.nodes.append(b"".join(parts))
        return output

    def conv(self, x, channels, filters, kernel, stride, groups=1, clips=True):
        name = f"conv{self.count}"
        self.count += 1
        fan_in = channels // groups * kernel * kernel
        weights = self.constant(name + ".w", [filters, channels // groups, kernel, kernel], ((6.0 if clips else 3.0) / fan_in) ** 0.5)
        bias = self.constant(name + ".b", [filters], 0.25)
        out = self.node("Conv", [x, weights, bias], name, group=groups, kernel_shape=[kernel] * 2, strides=[stride] * 2,
                        pads=[kernel // 2] * 4)
        return self.node("Clip", [out], name + ".relu6", min=0.0, max=6.0) if clips else out


def info(name, shape):
    dims = b"".join(field(1, field(1, extent)) for extent in shape)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, dims)))


def mobilenet(size, width, classes):
    def channels(count):
        scaled = max(8, int(count * width + 4) // 8 * 8)
        return scaled + 8 if scaled < 0.9 * count * width else scaled

    model = Model()
    now = channels(32)
    x = model.conv("image", 3, now, 3, 2)
    for expansion, count, repetitions, first in BLOCKS:
        for repetition in range(repetitions):
            stride, hidden, out = first if repetition == 0 else 1, now * expansion, channels(count)
            y = model.conv(x, now, hidden, 1, 1) if expansion > 1 else x
            y = model.conv(y, hidden, hidden, 3, stride, groups=hidden)
            y = model.conv(y, hidden, out, 1, 1, clips=False)
            x = model.node("Add", [x, y], f"sum{model.count}") if stride == 1 and now == out else y
            now = out
    last = channels(1280) if width > 1.0 else 1280
    x = model.conv(x, now, last, 1, 1)
    x = model.node("GlobalAveragePool", [x], "means")
    x = model.node("Flatten", [x], "features", axis=1)
    model.constant("classifier.w", [classes, last], (3.0 / last) ** 0.5)
    model.constant("classifier.b", [classes], 0.25)
    x = model.node("Gemm", [x, "classifier.w", "classifier.b"], "scores", transB=1)
    x = model.node("Softmax", [x], "probabilities", axis=1)
    parts = [field(1, node) for node in model.nodes] + [field(2, "mobilenet_v2")]
    parts += [field(5, constant) for constant in model.constants]
    parts += [field(11, info("image", [1, 3, size, size])), field(12, info(x, [1, classes]))]
    return field(1, 8) + field(7, b"".join(parts)) + field(8, field(1, "") + field(2, 9))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--width", type=float, default=1.0)
    parser.add_argument("--classes", type=int, default=1000)
    given = parser.parse_args()
    with open(given.file, "wb") as file:
        file.write(mobilenet(given.size, given.width, given.classes))


main()

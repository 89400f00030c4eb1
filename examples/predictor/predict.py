#!/usr/bin/env python3
# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Predicts with a trained model in Python, through the C interface and ctypes alone (docs/predictor.md).

    predict.py RUN < numbers        one sample per line; prints its outputs
"""
import array
import ctypes
import os
import sys

FLOATS = ctypes.POINTER(ctypes.c_float)


class Predictor:
    """A model of a run directory, a checkpoint or an exported folder. For one thread at a time; clone() gives another one."""

    def __init__(self, path, checkpoint=None, library=os.environ.get("LOCKSTEP_C_LIBRARY", "liblockstep_c.so"), _model=None):
        self._c = path if isinstance(path, ctypes.CDLL) else ctypes.CDLL(library)
        text, number, model, size = ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_int64
        for name, result, *arguments in (
                ("last_error", text), ("open", model, text, text), ("clone", model, model), ("close", None, model),
                ("input_count", number, model), ("output_count", number, model), ("input_name", text, model, number),
                ("output_name", text, model, number), ("input_size", size, model, number), ("output_size", size, model, number),
                ("predict", number, model, ctypes.POINTER(FLOATS), ctypes.POINTER(FLOATS), size)):
            function = getattr(self._c, "lockstep_" + name)
            function.restype, function.argtypes = result, arguments
        self._model = _model or self._c.lockstep_open(os.fsencode(path), checkpoint and str(checkpoint).encode())
        self._require(self._model)
        #: name -> values of one sample, in the order of the model
        self.inputs = self._sizes(self._c.lockstep_input_count, self._c.lockstep_input_name, self._c.lockstep_input_size)
        self.outputs = self._sizes(self._c.lockstep_output_count, self._c.lockstep_output_name, self._c.lockstep_output_size)

    def _require(self, worked):
        if not worked:
            raise RuntimeError(self._c.lockstep_last_error().decode())

    def _sizes(self, count, name, size):
        return {name(self._model, i).decode(): size(self._model, i) for i in range(count(self._model))}

    def predict(self, samples=1, **inputs):
        """predict(2, features=x): x has 2 samples of float32, one after the other, as an array.array("f"), a NumPy array or any
        other buffer. Returns an array.array("f") for each output (numpy.frombuffer(y, "f4") is a view of it)."""
        if inputs.keys() != self.inputs.keys():
            raise TypeError(f"the inputs are {', '.join(self.inputs)}")
        given, kept = (FLOATS * len(inputs))(), []
        for i, (name, size) in enumerate(self.inputs.items()):
            values = memoryview(inputs[name])
            if values.format != "f" or not values.c_contiguous or values.nbytes != 4 * samples * size:
                raise TypeError(f"{name}: {samples} x {size} values of float32 are wanted")
            kept.append(array.array("f", values.tobytes()))
            given[i] = ctypes.cast(kept[-1].buffer_info()[0], FLOATS)
        results = {name: array.array("f", bytes(4 * samples * size)) for name, size in self.outputs.items()}
        wanted = (FLOATS * len(results))(*(ctypes.cast(r.buffer_info()[0], FLOATS) for r in results.values()))
        self._require(self._c.lockstep_predict(self._model, given, wanted, samples) == 0)
        return results

    def clone(self):
        model = self._c.lockstep_clone(self._model)
        self._require(model)
        return Predictor(self._c, _model=model)

    def __del__(self):
        if getattr(self, "_model", None):
            self._c.lockstep_close(self._model)


def main():
    net = Predictor(sys.argv[1])
    (name,) = net.inputs
    for line in sys.stdin:
        sample = array.array("f", map(float, line.split()))
        for values in net.predict(**{name: sample}).values():
            print(*(f"{value:.9g}" for value in values))


if __name__ == "__main__":
    main()

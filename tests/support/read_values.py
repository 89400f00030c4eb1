# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""What a reader makes of files, as NumPy arrays, for tests that compare it with pandas and NumPy.

A test that needs numpy (or pandas) is skipped without it: @needs_numpy, @needs_pandas.
"""
import re
import unittest

from lockstep_run import LockstepTest, go_on_with

go_on_with("numpy", "pandas")
try:
    import numpy
except ImportError:
    numpy = None
try:
    import pandas
except ImportError:
    pandas = None

needs_numpy = unittest.skipUnless(numpy is not None, "no numpy")
needs_pandas = unittest.skipUnless(numpy is not None and pandas is not None, "no numpy and pandas")


class ValuesTest(LockstepTest):
    def config(self, data):
        """A configuration whose section data is `data`, the inside of a YAML map."""
        path = self.folder / "data.yaml"
        path.write_text(f"data: {{{data}}}\n", encoding="utf-8")
        return path

    def values(self, data, *more):
        """Features and labels (None without) of all samples."""
        out = self.folder / "values.npz"
        self.lockstep("convert", self.config(data), out, "--force", *more)
        with numpy.load(out) as arrays:
            return arrays["features"], arrays["labels"] if "labels" in arrays else None

    def assert_values(self, data, features, labels=None, *more):
        found, found_labels = self.values(data, *more)
        numpy.testing.assert_array_equal(found, numpy.asarray(features, dtype="float32").reshape(found.shape))
        if labels is not None:
            numpy.testing.assert_array_equal(found_labels.ravel(), numpy.asarray(labels).ravel())

    def refused(self, data, pattern, *more, code=3):
        """The one error of a reader, as text without line ends."""
        result = self.start("data", self.config(data), *more).wait()
        self.assert_one_error(result, code, ".")
        text = re.sub(r"\s+", " ", result.err)
        self.assertRegex(text, pattern)
        return text

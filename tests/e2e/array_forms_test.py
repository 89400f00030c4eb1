# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays as NumPy programs save them: orders, types, labels that are texts; what cannot be read is named, and its advice works."""
import pickle
import re

from lockstep_run import main
from read_values import ValuesTest, needs_numpy, numpy

X = "format: npy, features: x.npy"
XY = X + ", labels: y.npy"
RUN = """
seed: 1
data: {%s}
model:
  layers: [{dense: {units: %d}}]
  loss: softmax_cross_entropy
optimizer: {gradient_descent: {learning_rate: 0.01}}
train: {batch_size: 8, epochs: 1}
"""


@needs_numpy
class ArrayFormsTest(ValuesTest):
    def setUp(self):
        super().setUp()
        self.random = numpy.random.default_rng(1)

    def save(self, name, array):
        numpy.save(self.folder / name, array)

    def test_both_orders_are_read_from_memory_and_in_blocks(self):
        for shape in ((57, 3), (57, 1, 4), (57, 4, 3, 2), (1, 5, 2)):
            for kind in ("u1", "i2", "<f4", ">f4", ">f8", "u4"):
                array = self.random.integers(0, 100, shape).astype(kind)
                expected = array.astype("float32")
                self.save("x.npy", numpy.asfortranarray(array))
                numpy.savez(self.folder / "plain.npz", x=numpy.asfortranarray(array))
                numpy.savez_compressed(self.folder / "packed.npz", x=numpy.asfortranarray(array))
                with self.subTest(shape=shape, kind=kind):
                    if array.ndim > 1 and sum(extent > 1 for extent in shape) > 1:
                        self.assertIn(b"'fortran_order': True", (self.folder / "x.npy").read_bytes()[:128])
                    for data in (X, X + ", memory_gb: 1e-7, block_samples: 10", "format: npy, path: plain.npz, features: x",
                                 "format: npy, path: packed.npz, features: x")[:4 if kind in ("<f4", ">f8") else 1]:
                        self.assert_values(data, expected)
        self.assert_values(X + ", rows: [0, 1]", expected[:1])

    def test_rows_of_several_files_in_fortran_order(self):
        whole = self.random.integers(0, 255, (90, 4, 5)).astype("u1")
        for i, part in enumerate(numpy.split(whole, [20, 61])):
            self.save(f"x{i}.npy", numpy.asfortranarray(part) if i != 1 else part)
        self.assert_values("format: npy, features: 'x?.npy', rows: [11, 77]", whole[11:77])
        channels = numpy.asfortranarray(whole)
        self.save("x.npy", channels)
        self.assert_values(X + ", layout: channels_first", numpy.moveaxis(whole, 1, -1))

    def test_labels_of_a_frame(self):
        """Values of a DataFrame are in Fortran order: several targets."""
        targets = numpy.asfortranarray(self.random.random((40, 3)).astype("f4"))
        self.save("x.npy", self.random.random((40, 2)).astype("f4"))
        self.save("y.npy", targets)
        numpy.testing.assert_array_equal(self.values(XY)[1], targets)

    def test_labels_of_every_whole_type(self):
        classes = self.random.integers(0, 5, 40)
        self.save("x.npy", self.random.random((40, 2)).astype("f4"))
        for kind in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", ">u4", ">u8", ">i8"):
            self.save("y.npy", classes.astype(kind))
            self.assertTrue(numpy.array_equal(self.values(XY)[1].ravel(), classes), kind)
        self.save("y.npy", classes > 2)
        self.assertTrue(numpy.array_equal(self.values(XY)[1].ravel(), classes > 2))
        big = numpy.array([1, 2**63], dtype="u8")
        self.save("x.npy", big)
        self.refused_twice(X, "9223372036854775808 does not fit into 63 bits", lambda: self.save("x.npy", big.astype("f8")))

    def refused_twice(self, data, pattern, follow, *more):
        """Refused, and read after its advice was followed."""
        text = self.refused(data, pattern, *more)
        follow()
        self.values(data, *more)
        return text

    def test_labels_of_texts_are_classes(self):
        names = numpy.array(["rose", "bär", "Tulip", "a b", "☃ 𝄞"])
        y = self.random.integers(0, 5, 60)
        y[:5] = range(5)
        classes = sorted(names.tolist(), key=str.encode)
        indices = [classes.index(name) for name in names[y]]
        self.save("x.npy", self.random.random((60, 2)).astype("f4"))
        encoded = numpy.array([name.encode() for name in names[y]])
        for array in (names[y], names[y].astype(">U9"), names[y].reshape(-1, 1), encoded):
            with self.subTest(array.dtype.str):
                self.save("y.npy", array)
                self.assert_values(XY, numpy.load(self.folder / "x.npy"), indices)
        self.assert_values(XY + ", classes: auto", numpy.load(self.folder / "x.npy"), indices)
        listed = names.tolist()
        self.assert_values(XY + f", classes: {listed}", numpy.load(self.folder / "x.npy"), y)
        self.refused(XY + ", classes: [rose, Tulip]", r"record \d+: the label '.*' is none of the 2 classes \(rose, Tulip\)")
        self.save("y.npy", y)
        self.refused(XY + ", classes: [rose, Tulip]", "is given, but the labels of .* are numbers", code=2)
        self.save("y.npy", numpy.array([b"\xe9"] * 60))
        text = self.refused(XY, "record 0: the label is no text in UTF-8")
        self.follow_save(text, "y.npy", numpy.array([b"\xe9"] * 60))
        self.assert_values(XY, numpy.load(self.folder / "x.npy"), [0] * 60)

    def follow_save(self, text, name, array):
        code = re.search(r"numpy\.save\(file, (array\.T|.*\))\)", text)[1]
        self.save(name, eval(code, {"numpy": numpy, "array": array}))  # the advice of the program under test

    def test_classes_are_those_of_training_in_evaluation_and_prediction(self):
        names = numpy.array(["a", "b", "c"])
        y = self.random.integers(0, 3, 60)
        y[:3] = range(3)
        x = self.random.random((60, 2)).astype("f4")
        numpy.savez(self.folder / "train.npz", x=x, y=names[y])
        numpy.savez(self.folder / "eval.npz", x=x[:20], y=names[numpy.minimum(y[:20], 1) + 1])  # without a
        numpy.savez(self.folder / "other.npz", x=x[:2], y=numpy.array(["a", "d"]))
        config = self.folder / "run.yaml"
        config.write_text(RUN % ("format: npy, path: train.npz, features: x, labels: y, eval: {path: eval.npz}", 3), encoding="ascii")
        self.train("run", config=config)
        run = self.folder / "run"
        self.assertEqual((run / "classes.txt").read_text(), "a\nb\nc\n")
        (self.folder / "train.npz").unlink()
        self.lockstep("predict", run, "--input", self.folder / "eval.npz", "--output", self.folder / "out.h5")
        script = "import h5py, sys; print(h5py.File(sys.argv[1])['labels'][...].ravel().tolist())"
        self.assertEqual(self.read_by_h5py(script, self.folder / "out.h5"), (numpy.minimum(y[:20], 1) + 1).tolist())
        result = self.start("predict", run, "--input", self.folder / "other.npz", "--output", self.folder / "o.h5").wait()
        self.assert_one_error(result, 3, r"the label 'd' is none of the\s+3\s+classes")
        self.lockstep("evaluate", run)

    def test_types_that_are_no_numbers_are_named_and_the_advice_works(self):
        array = numpy.array([[1, 2], [3, 4]])
        for other, pattern, code in (
                (array.astype(object), r"holds Python objects, which are pickled \(type '\|O'\)", "array.astype('float32')"),
                (array.astype("c8"), "holds complex numbers", "numpy.stack([array.real, array.imag], -1).astype('f4')"),
                (array.astype("M8[s]"), "holds dates or times", "(array - array.min()) / numpy.timedelta64(1, 's')"),
                (array.astype("m8[s]"), "holds dates or times", "(array - array.min()) / numpy.timedelta64(1, 's')"),
                (array.astype("g"), "longest type", "array.astype('f8')"),
                (array.astype("f4").view("V4"), "holds raw bytes", "array.view('f4')"),
                (array.astype(str), r"holds texts \(type '<U21'\)", "array.astype('f4')")):
            with self.subTest(pattern):
                self.save("x.npy", other)
                text = self.refused(X, pattern)
                self.assertIn(code, text)
                self.save("x.npy", eval(code, {"numpy": numpy, "array": other}))
                self.values(X)
        self.save("x.npy", numpy.arange(2.0))
        labels = numpy.array(["a", "b"], dtype=object)
        self.save("y.npy", labels)
        self.assertIn("array.astype(str)", self.refused(XY, "holds Python objects"))
        self.save("y.npy", labels.astype(str))
        self.assert_values(XY, [0, 1], [0, 1])
        (self.folder / "x.npy").write_bytes(pickle.dumps(array))
        self.refused(X, "is not a .npy file.*It is a pickle of Python, which is never executed")

    def test_different_numbers_of_samples_show_both_shapes(self):
        x = self.random.random((5, 100)).astype("f4")
        self.save("x.npy", x)
        self.save("y.npy", numpy.arange(100))
        text = self.refused(XY, r"holds 100 labels for 5 samples: \S*x\.npy has the shape \(5, 100\), \S*y\.npy has the shape \(100,\)")
        self.assertRegex(text, r"Does axis 1 of \S*x\.npy count the samples, is it transposed\?")
        self.follow_save(text, "x.npy", x)
        self.assert_values(XY, x.T, numpy.arange(100))
        volume = self.random.random((5, 6, 100)).astype("f4")
        self.save("x.npy", volume)
        text = self.refused(XY, r"\(5, 6, 100\)")
        self.follow_save(text, "x.npy", volume)
        self.assert_values(XY, numpy.moveaxis(volume, 2, 0), numpy.arange(100))
        targets = self.random.random((3, 100)).astype("f4")
        self.save("y.npy", targets)
        text = self.refused(XY, r"Does axis 1 of \S*y\.npy")
        self.follow_save(text, "y.npy", targets)
        numpy.testing.assert_array_equal(self.values(XY)[1], targets.T)
        self.save("y.npy", numpy.arange(7))
        self.assertNotIn("transposed", self.refused(XY, "holds 7 labels for 100 samples"))
        numpy.savez(self.folder / "a.npz", x=x, y=numpy.arange(100))
        self.refused("format: npy, path: a.npz, features: x, labels: y", r"member x\.npy has the shape \(5, 100\).*transposed")


if __name__ == "__main__":
    main()

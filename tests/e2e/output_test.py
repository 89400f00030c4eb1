# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""What --output writes, where, and in which format; the same rules for all commands."""
import ast
import csv
import gzip
import io
import os
import stat
import struct
import threading
import unittest

from lockstep_run import DIGITS_DATA, MPIRUN, PROGRAM, Job, LockstepTest, checkpoints, main

SAMPLES = 13
READ_HDF5 = """
import h5py, sys
with h5py.File(sys.argv[1]) as file:
    print(dict(format=file.attrs["format"].decode(), step=int(file.attrs["global_step"]), sample=file["sample"][:].tolist(),
               quantity=file["outputs"].attrs["quantity"].decode(), classes=file["class"][:].tolist(),
               outputs=[[float(x) for x in row] for row in file["outputs"][:]],
               names=[name.decode() for name in file["class_names"][:]] if "class_names" in file else None,
               labels=file["labels"][:].tolist() if "labels" in file else None,
               input=file.attrs["input"].decode()))
"""


def read_npy(data):
    """Shape and rows of a .npy file, as numpy.lib.format describes it."""
    if data[:8] != b"\x93NUMPY\x01\x00":
        raise AssertionError(data[:16])
    length, = struct.unpack("<H", data[8:10])
    header = ast.literal_eval(data[10:10 + length].decode("ascii"))
    if (10 + length) % 64 != 0 or header["descr"] != "<f4" or header["fortran_order"]:
        raise AssertionError(header)
    rows, columns = header["shape"]
    numbers = struct.unpack(f"<{rows * columns}f", data[10 + length:])
    return [list(numbers[i * columns:(i + 1) * columns]) for i in range(rows)]


class OutputTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.train_once("run", steps=4)
        self.run_dir = self.folder / "run"
        self.input = self.folder / "in.csv"
        with gzip.open(DIGITS_DATA, "rt", encoding="ascii") as file:
            self.input.write_text("".join(file.readlines()[:SAMPLES]), encoding="ascii")

    def predict(self, output, code=0, ranks=None, inputs=None, more=()):
        words = [word for path in inputs or [self.input] for word in ("--input", path)]
        return self.lockstep("predict", self.run_dir, *words, "--output", output, "--quiet", *more, code=code, ranks=ranks)

    def read_hdf5(self, path):
        return self.read_by_h5py(READ_HDF5, path)

    def csv_text(self):
        self.predict(self.folder / "plain.csv")
        return (self.folder / "plain.csv").read_text(encoding="ascii")

    def through_fifo(self, path, command):
        """The bytes that come out of the FIFO `path` while `command` writes to it."""
        os.mkfifo(path)
        got = []
        reader = threading.Thread(target=lambda: got.append(path.read_bytes()), daemon=True)
        reader.start()
        command()
        self.assertTrue(stat.S_ISFIFO(path.lstat().st_mode), "the FIFO was replaced")
        reader.join(10)
        self.assertEqual(len(got), 1)
        return got[0]

    def test_formats_hold_the_same_numbers(self):
        text = self.csv_text()
        rows = list(csv.DictReader(io.StringIO(text)))
        names = [f"probability_{c}" for c in range(10)]
        self.assertEqual(list(rows[0]), ["class", *names])
        numbers = [[float(row[name]) for name in names] for row in rows]
        self.predict(self.folder / "out.npy", ranks=2)
        single = [[struct.unpack("f", struct.pack("f", x))[0] for x in row] for row in numbers]
        self.assertEqual(read_npy((self.folder / "out.npy").read_bytes()), single)
        self.predict(self.folder / "out.H5", ranks=2)
        self.assertEqual((self.folder / "out.H5").read_bytes()[:8], b"\x89HDF\r\n\x1a\n")
        self.assertEqual(self.read_hdf5(self.folder / "out.H5"), {
            "format": "lockstep predictions", "step": 4, "sample": list(range(SAMPLES)), "quantity": "probability",
            "classes": [int(row["class"]) for row in rows], "outputs": single, "names": None, "labels": self.labels(),
            "input": str(self.input)})
        for ranks in (None, 3):
            self.predict(self.folder / "again.h5", ranks=ranks)
            self.assertEqual((self.folder / "again.h5").read_bytes(), (self.folder / "out.H5").read_bytes(), ranks)

    def labels(self):
        return [int(line.rpartition(",")[2]) for line in self.input.read_text(encoding="ascii").splitlines()]

    def test_several_inputs_and_their_labels(self):
        self.predict(self.folder / "one.h5")
        lines = self.input.read_text(encoding="ascii").splitlines(keepends=True)
        parts = [self.folder / f"part{i}.csv" for i in range(3)]
        for i, path in enumerate(parts):
            path.write_text("".join(lines[5 * i:5 * i + 5]), encoding="ascii")
        one = self.read_hdf5(self.folder / "one.h5")
        for inputs in ([self.folder / "part*.csv"], [parts[0], self.folder / "part[12].csv"]):
            self.predict(self.folder / "several.h5", ranks=2, inputs=inputs)
            several = self.read_hdf5(self.folder / "several.h5")
            self.assertEqual(several.pop("input").split("\n"), [str(path) for path in parts])
            self.assertEqual(several, {name: value for name, value in one.items() if name != "input"})
        for inputs, pattern in (([parts[0], parts[0]], "part0.csv: is named twice"),
                                ([self.folder / "none*.csv"], r"none\*.csv: matches no file")):
            self.assert_one_error(self.predict(self.folder / "no.h5", code=3, ranks=2, inputs=inputs), 3, pattern)
        self.assert_one_error(self.lockstep("predict", self.run_dir, "--input", *parts, "--output", "no.h5", code=2), 2,
                              "one argument too many(.|\n)*put the pattern in quotes")

    def test_labels_may_be_absent_or_ignored(self):
        unlabelled, unknown = self.folder / "unlabelled.csv", self.folder / "unknown.csv"
        features = [line.rpartition(",")[0] for line in self.input.read_text(encoding="ascii").splitlines()]
        unlabelled.write_text("".join(line + "\n" for line in features), encoding="ascii")
        unknown.write_text("".join(line + ",?\n" for line in features), encoding="ascii")
        result = self.predict(self.folder / "no.h5", code=3, ranks=2, inputs=[unknown])
        self.assert_one_error(result, 3, "unknown.csv, line 1: column 64 [(]from 0[)]: '[?]' means a missing value(.|\n)*--ignore-labels")
        self.predict(self.folder / "plain.csv")
        self.predict(self.folder / "unknown.out.csv", inputs=[unknown])
        self.assertEqual(*((self.folder / name).read_bytes() for name in ("plain.csv", "unknown.out.csv")))
        self.predict(self.folder / "unlabelled.h5", inputs=[unlabelled])
        self.predict(self.folder / "unknown.h5", inputs=[unknown], more=["--ignore-labels"])
        for name in ("unlabelled", "unknown"):
            found = self.read_hdf5(self.folder / f"{name}.h5")
            self.assertIsNone(found["labels"])
            self.assertEqual(len(found["outputs"]), SAMPLES)

    def test_names_of_samples(self):
        expected = [f"{self.input}, line {i + 1}" for i in range(SAMPLES)]
        for ranks in (None, 2):
            self.predict(self.folder / "names.csv", ranks=ranks, more=["--sample-names"])
            lines = (self.folder / "names.csv").read_text(encoding="utf-8").splitlines(keepends=True)
            self.assertEqual([row["sample_name"] for row in csv.DictReader(lines)], expected)
            self.predict(self.folder / "names.h5", ranks=ranks, more=["--sample-names"])
            script = "import h5py, sys; print([t.decode() for t in h5py.File(sys.argv[1])['sample_name'][:]])"
            self.assertEqual(self.read_by_h5py(script, self.folder / "names.h5"), expected)
        self.assert_one_error(self.predict(self.folder / "no.npy", code=2, ranks=2, more=["--sample-names"]), 2,
                              r"no.npy: a .npy file holds numbers(.|\n)*ends with .h5 or .csv")

    def test_ranks_must_read_the_same_input(self):
        words = [PROGRAM, "predict", self.run_dir, "--input", "x.csv", "--output", self.folder / "no.csv"]
        lines = self.input.read_text(encoding="ascii").splitlines(keepends=True)
        for name, count in (("a", 13), ("b", 5)):
            (self.folder / name).mkdir()
            (self.folder / name / "x.csv").write_text("".join(lines[:count]), encoding="ascii")
        job = Job([*MPIRUN, "-n", 1, "-wdir", self.folder / "a", *words, ":", "-n", 1, "-wdir", self.folder / "b", *words],
                  self.folder)
        self.jobs.append(job)
        self.assert_one_error(job.wait(), 2, "input")

    def test_unknown_endings_list_the_known_ones(self):
        for name in ("out.xlsx", "out"):
            self.assert_one_error(self.predict(self.folder / name, code=2), 2, r"Known endings: \.csv, \.h5, \.hdf5, \.npy")
            self.assertFalse((self.folder / name).exists())
        checkpoint = checkpoints(self.run_dir)[-1]
        for command in (["export", self.run_dir], ["average", checkpoint, checkpoint]):
            result = self.lockstep("checkpoint", *command, "--output", self.folder / "model.onnx", code=2)
            self.assert_one_error(result, 2, r"the ending \.onnx names no format .*\n.*Known endings: \.h5, \.hdf5")

    def test_standard_output_and_fifos_are_streams(self):
        text = self.csv_text()
        for name in ("-", "/dev/stdout"):
            result = self.predict(name)
            self.assertEqual(result.out, text)
        fifo = self.folder / "fifo"
        self.assertEqual(self.through_fifo(fifo, lambda: self.predict(fifo)).decode("ascii"), text)
        self.predict(self.folder / "plain.h5")
        fifo = self.folder / "fifo.h5"
        self.assertEqual(self.through_fifo(fifo, lambda: self.predict(fifo)), (self.folder / "plain.h5").read_bytes())
        exported = self.lockstep("checkpoint", "export", self.run_dir, "--output", self.folder / "weights.h5")
        self.assertEqual(exported.out, "")
        fifo = self.folder / "weights-fifo.h5"
        weights = self.through_fifo(
            fifo, lambda: self.lockstep("checkpoint", "export", self.run_dir, "--output", fifo))
        self.assertEqual(len(weights), (self.folder / "weights.h5").stat().st_size)

    def test_a_full_device_is_an_error_and_stays_a_device(self):
        device = self.folder / "full"
        try:
            os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 7))
            device.open("ab", buffering=0).close()
        except PermissionError:
            self.skipTest("devices cannot be made here")
        self.assert_one_error(self.predict(device, code=1, ranks=2), 1, "full: cannot write: No space left on device")
        self.assert_one_error(self.lockstep("checkpoint", "export", self.run_dir, "--output", device, code=1), 1,
                              "full: cannot write: No space left on device")
        self.assertTrue(stat.S_ISCHR(device.lstat().st_mode))

    def test_the_target_of_a_symbolic_link_is_replaced(self):
        text = self.csv_text()
        target, link = self.folder / "target.csv", self.folder / "link.csv"
        link.symlink_to("target.csv")
        for before in (None, "old"):
            if before is not None:
                target.write_text(before, encoding="ascii")
                target.chmod(0o640)
            self.predict(link)
            self.assertTrue(link.is_symlink())
            self.assertEqual(target.read_text(encoding="ascii"), text)
        self.assertEqual(stat.S_IMODE(target.stat().st_mode), 0o640, "the file keeps its mode")

    def test_an_input_is_never_written_over(self):
        before = self.input.read_bytes()
        link = self.folder / "link.csv"
        link.symlink_to(self.input)
        for output in (self.input, link):
            self.assert_one_error(self.predict(output, code=2, ranks=2), 2, "is also an input of this command")
        self.assertEqual(self.input.read_bytes(), before)
        checkpoint = checkpoints(self.run_dir)[-1]
        before = checkpoint.read_bytes()
        for command in (["export", self.run_dir], ["average", checkpoint, checkpoint]):
            result = self.lockstep("checkpoint", *command, "--output", checkpoint, code=2)
            self.assert_one_error(result, 2, "is also an input of this command")
        self.assertEqual(checkpoint.read_bytes(), before)
        song, config = self.folder / "song.txt", self.folder / "song.yaml"
        song.write_text("abcd\n" * 100, encoding="ascii")
        config.write_text("data: {format: text_windows, path: song.txt, length: 8, stride: 8}\n"
                          "model: {layers: [{dense: {units: 2}}], loss: softmax_cross_entropy}\n"
                          "optimizer: {gradient_descent: {learning_rate: 0.1}}\n"
                          "train: {batch_size: 8, steps: 1}\n", encoding="ascii")
        words = self.lockstep("vocabulary", config, "--output", "-")
        self.assertTrue(words.out.startswith("<unk>\t0\n"), str(words))
        for output in (song, config):
            result = self.lockstep("vocabulary", config, "--output", output, code=2)
            self.assert_one_error(result, 2, "is also an input of this command")
        self.assertEqual(song.read_text(encoding="ascii"), "abcd\n" * 100)

    def test_folders_and_empty_names_are_refused(self):
        self.assert_one_error(self.predict(self.folder, code=2), 2, "is a folder")
        self.assert_one_error(self.predict("", code=2), 2, "is empty|names a format")
        left = [path.name for path in self.folder.iterdir() if ".tmp-" in path.name]
        self.assertEqual(left, [])


if __name__ == "__main__":
    main()

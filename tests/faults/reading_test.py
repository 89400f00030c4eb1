# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Data files that change while a run reads them, and what is no file: the run ends in time, all ranks together, with one
message that names file and record. A file that is only removed stays readable where it is open."""
import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from lockstep_run import DIGITS_DATA, SOURCE, LockstepTest, main, python_with_h5py, records, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "e2e"))
from records_test import BINARY, CONFIG, JSONL, MAKE_DIGITS, NPY, SMALL, TFRECORD  # noqa: E402

PYTHON = python_with_h5py()
IN_TIME = 60  # seconds: the run ends by itself, whatever the load of the machine
STEPS = 1000000  # none of these runs gets so far
HDF5 = 'format: hdf5, path: "plain*.h5", features: x, labels: y, layout: channels_first'
CHUNKED = HDF5.replace("plain", "gzip")
IMAGES = 'format: images, path: images, size: [8, 8], channels: 1'
MAKE_HDF5 = """
import h5py, numpy, sys
labels, first = numpy.load(sys.argv[1] + "/y.npy").astype("i4"), 0
for i in range(3):
    images = numpy.load(f"{sys.argv[1]}/x{i}.npy")
    for name, how in (("plain", {}), ("gzip", {"chunks": (16, 1, 8, 8), "compression": "gzip"})):
        with h5py.File(f"{sys.argv[1]}/{name}{i}.h5", "w") as file:
            file["y"] = labels[first:first + len(images)]
            file.create_dataset("x", data=images, **how)
    first += len(images)
"""
JSONL_SMALL = "data.memory_gb=0.00005"


@unittest.skipUnless(PYTHON, "no Python with numpy and h5py")
class ReadingTest(LockstepTest):
    @classmethod
    def setUpClass(cls):
        cls.made = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"lockstep-reading-{os.getpid()}"
        cls.made.mkdir()
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        subprocess.run([PYTHON, "-c", MAKE_DIGITS, DIGITS_DATA, cls.made, SOURCE / "tests/vectors"], check=True, timeout=60)
        subprocess.run([PYTHON, "-c", MAKE_HDF5, cls.made], check=True, timeout=60)
        subprocess.run([sys.executable, SOURCE / "examples" / "generate_digit_images.py", cls.made / "digits", "--every", "9"],
                       check=True, capture_output=True, timeout=60)
        (cls.made / "digits" / "train").rename(cls.made / "images")

    def setUp(self):
        super().setUp()
        shutil.copytree(self.made, self.folder, dirs_exist_ok=True)

    def begin(self, name, data, *, ranks=2, steps=STEPS, memory=SMALL):
        """`memory` None: the reader reads all of it at the start."""
        config, text = self.folder / f"{name}.yaml", CONFIG % data
        config.write_text(text if memory else text.replace("scale: 0.0625, block_samples: 16, ", ""), encoding="utf-8")
        sets = [memory] if memory else []
        return self.start(*self.train_arguments(f"run-{name}", config=config, steps=steps, sets=sets), ranks=ranks)

    def harmed(self, name, data, harm, memory=SMALL):
        """A run that streams its data, to which `harm` is done in the middle."""
        job = self.begin(name, data, memory=memory)
        wait_until(lambda: not job.running() or len(records(self.folder / f"run-{name}")) >= 3, IN_TIME, "some steps")
        self.assertTrue(job.running())
        harm()
        return job.wait(IN_TIME)

    def test_a_file_that_shrinks(self):
        for name, data, file, where, memory in (
                ("npy", NPY, "x1.npy", r"x1\.npy, record \d+, byte \d+", SMALL),
                ("binary", BINARY, "part1.bin", r"part1\.bin, record \d+, byte \d+", SMALL),
                ("tfrecord", TFRECORD, "part1.tfrecord", r"part1\.tfrecord, record \d+, byte \d+", SMALL),
                ("jsonl", JSONL, "all.jsonl", r"all\.jsonl, line \d+, byte \d+", JSONL_SMALL),
                ("hdf5", HDF5, "plain1.h5", r"plain1\.h5, dataset x, record \d+", SMALL),
                ("gzip", CHUNKED, "gzip1.h5", r"gzip1\.h5, dataset x, record \d+", SMALL)):
            with self.subTest(name):
                path = self.folder / file
                result = self.harmed(name, data, lambda path=path: os.truncate(path, path.stat().st_size // 2), memory)
                self.assert_one_error(result, 3, rf"error: (rank 1: )?{self.folder}/{where}.*(ends here, before its data end|became shorter while it was read)")

    def test_an_image_that_vanishes_or_shrinks(self):
        some = sorted((self.folder / "images").glob("*/*"))
        for name, harm, pattern in (("vanishes", pathlib.Path.unlink, r": cannot open: No such file or directory"),
                                    ("shrinks", lambda path: os.truncate(path, 60), r", byte \d+: cannot be decoded: the PNG file ends early")):
            with self.subTest(name):
                path = some.pop()
                result = self.harmed(name, IMAGES, lambda path=path: harm(path), "data.memory_gb=0.000008")
                self.assert_one_error(result, 3, rf"error: (rank 1: )?{path}{pattern}")

    def test_files_that_vanish_are_read_while_they_are_open(self):
        for name, data, pattern in (("binary", BINARY, "part*.bin"), ("hdf5", HDF5, "plain*.h5")):
            with self.subTest(name):
                def remove(pattern=pattern):
                    for path in self.folder.glob(pattern):
                        path.unlink()
                job = self.begin(name, data, steps=300)
                wait_until(lambda n=name: not job.running() or len(records(self.folder / f"run-{n}")) >= 3, IN_TIME, "some steps")
                remove()
                self.assertEqual(job.wait(IN_TIME).code, 0)

    def test_one_of_many_files_that_vanishes(self):
        """More files than stay open."""
        whole = (self.folder / "part0.bin").read_bytes()
        for i in range(80):
            (self.folder / f"many{i:02}.bin").write_bytes(whole[:65 * 16])
        result = self.harmed("many", BINARY.replace("part*", "many*"), (self.folder / "many70.bin").unlink)
        self.assert_one_error(result, 3, rf"error: (rank 1: )?{self.folder}/many70\.bin, record \d+: cannot open: No such file or directory")

    def test_a_fifo_that_nobody_writes(self):
        """Opening one would wait for ever."""
        for name, data, file in (("npy", NPY, "x1.npy"), ("binary", BINARY, "part1.bin"), ("tfrecord", TFRECORD, "part1.tfrecord"),
                                 ("jsonl", JSONL, "all.jsonl"), ("hdf5", HDF5, "plain1.h5"), ("csv", "format: csv, path: pipe.csv", "pipe.csv"),
                                 ("text", "format: text_windows, path: pipe.txt, length: 4", "pipe.txt")):
            with self.subTest(name):
                path = self.folder / file
                path.unlink(missing_ok=True)
                os.mkfifo(path)
                memory = None if name in ("csv", "text") else SMALL
                self.assert_one_error(self.begin(name, data, memory=memory).wait(IN_TIME), 3, rf"{path}: is not a regular file")


if __name__ == "__main__":
    main()

# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Folders of images: the bits of a set in memory and of one that is decoded while it is used, on any number of ranks; errors; predictions."""
import csv
import io
import os
import shutil
import subprocess
import sys
import tarfile
import unittest

from lockstep_run import SOURCE, LockstepTest, main, records

MAKE = SOURCE / "examples" / "generate_digit_images.py"

CONFIG = """
seed: 3
shards: 4
data:
  format: images
  path: digits/train
  size: [8, 8]
  channels: 1
  scale: 0.00390625
  block_samples: 3
  eval: {path: digits/test}
model:
  layers: [flatten, {dense: {units: 32}}, batch_norm, relu, {dense: {units: 10}}]
  loss: softmax_cross_entropy
optimizer:
  adam: {learning_rate: 0.003}
train: {batch_size: 64, epochs: 2, shuffle: %s}
"""
# 500 training images of 64 bytes, and their labels; a block of 3 has 256 bytes.
SMALL = "data.memory_gb=0.000008"


class ImagesTest(LockstepTest):
    def setUp(self):
        super().setUp()
        subprocess.run([sys.executable, MAKE, self.folder / "digits", "--every", "3"], check=True, capture_output=True, timeout=60)
        self.config = self.folder / "digits.yaml"
        self.config.write_text(CONFIG % "blocks", encoding="utf-8")

    def run_it(self, name, ranks=None, threads=1, sets=(), **more):
        return self.train(name, ranks=ranks, threads=threads, config=self.config, sets=["eval.every_epochs=1", *sets], **more)

    def fails(self, code, pattern, sets=(), ranks=None):
        arguments = self.train_arguments("bad", config=self.config, sets=sets)
        self.assert_one_error(self.start(*arguments, ranks=ranks).wait(), code, pattern)

    def test_a_stream_has_the_bits_of_the_set_in_memory_on_any_number_of_ranks(self):
        self.run_it("memory")
        for ranks, threads, sets in ((2, 1, [SMALL, "data.reader_threads=1"]), (3, 2, [SMALL]), (4, 1, [SMALL])):
            with self.subTest(ranks=ranks, threads=threads):
                run = f"stream-{ranks}-{threads}"
                result = self.run_it(run, ranks=ranks, threads=threads, sets=sets)
                if sets:
                    self.assertRegex(result.err, "training data: 500 samples, read while they are used")
                self.assert_same_run("memory", run)
                self.assertEqual(records(self.folder / run, "eval"), records(self.folder / "memory", "eval"))
        self.config.write_text(CONFIG % "true", encoding="utf-8")
        self.run_it("memory-true")
        self.run_it("stream-true", ranks=2, sets=[SMALL, "data.block_samples=null"])
        self.assert_same_run("memory-true", "stream-true")

    def test_tar_archives_have_the_bits_of_the_folder(self):
        """Three archives of different sizes, in the order of the folder's files; with an index."""
        files = sorted((self.folder / "digits" / "train").glob("*/*.png"))
        names = sorted({path.parent.name for path in files})
        for part, (first, last) in enumerate(((0, 120), (120, 303), (303, len(files)))):
            with tarfile.open(self.folder / f"train-{part}.tar", "w") as out:
                for number, path in enumerate(files[first:last]):
                    for extension, data in (("png", path.read_bytes()), ("cls", b"%d" % names.index(path.parent.name))):
                        info = tarfile.TarInfo(f"{number:05}.{extension}")
                        info.size = len(data)
                        out.addfile(info, io.BytesIO(data))
        self.config.write_text(CONFIG % "false", encoding="utf-8")
        self.run_it("folder")
        text = (CONFIG % "false").replace("format: images\n  path: digits/train", "format: webdataset\n  path: 'train-{0..2}.tar'\n  index: train.index")
        self.config.write_text(text.replace("  eval: {path: digits/test}\n", ""), encoding="utf-8")
        for ranks, sets in ((1, []), (3, [SMALL, "data.block_samples=1"])):
            self.run_it(f"tar-{ranks}", ranks=ranks, sets=["data.block_samples=1", *sets, "eval.every_epochs=0"])
            self.assert_same_run("folder", f"tar-{ranks}")
        self.assertTrue((self.folder / "train.index").exists())
        path = self.folder / "train-1.tar"
        data = bytearray(path.read_bytes())
        data[1024 + 148] ^= 1
        path.write_bytes(data)
        self.fails(3, r"train-1.tar, byte 1024: the checksum of a header is wrong")
        self.fails(2, "It is called 'webdataset' here", sets=["data.format=wds"])

    def test_predictions_show_the_names_of_classes(self):
        self.run_it("run", sets=["train.epochs=12"])
        self.assertEqual((self.folder / "run" / "classes.txt").read_text(encoding="utf-8").split(),
                         sorted(("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")))
        output = self.folder / "out.csv"
        self.lockstep("predict", self.folder / "run", "--input", self.folder / "digits" / "test", "--output", output, "--quiet", ranks=2)
        files = sorted((self.folder / "digits" / "test").glob("*/*.png"))
        with open(output, encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines))
        self.assertEqual(len(rows), len(files))
        right = sum(row["class_name"] == file.parent.name for row, file in zip(rows, files))
        self.assertGreater(right, 0.75 * len(files))
        self.assertIn("probability_seven", rows[0])
        # One file, and one that is named by a pattern.
        self.lockstep("predict", self.folder / "run", "--input", files[0], "--input", str(files[-1].parent) + "/*.png", "--output", output, "--quiet")
        with open(output, encoding="utf-8") as lines:
            self.assertEqual(len(list(lines)), 2 + len(list(files[-1].parent.iterdir())))

    def test_a_damaged_image_ends_the_run_with_its_name_and_place(self):
        path = sorted((self.folder / "digits" / "train" / "four").iterdir())[7]
        whole = path.read_bytes()
        name = "four/" + path.name
        for what, data, pattern in (("short", whole[:70], f"{name}, byte 70: cannot be decoded: the PNG file ends early"),
                                    ("changed", whole[:60] + b"?" + whole[61:], f"{name}, byte [0-9]+: cannot be decoded: IDAT: "),
                                    ("other", b"GIF89a" + whole, f"{name}: is a GIF image")):
            with self.subTest(what):
                path.write_bytes(data)
                self.fails(3, pattern, ranks=2 if what == "short" else None)
        # What the first look does not read is found when its block is used.
        path.unlink()
        os.mkfifo(path)
        self.fails(3, f"{name}: is not a regular file", sets=[SMALL])

    def test_both_sets_need_the_same_classes(self):
        shutil.rmtree(self.folder / "digits" / "test" / "five")
        self.fails(3, "digits/test/.*the classes of the evaluation set are not those of the training set: class 1 is 'four' there, and 'five' in the training set")
        (self.folder / "digits" / "test" / "five").mkdir()
        self.run_it("run", steps=2)

    def test_the_example(self):
        sets = [word for key in ("", "eval.") for word in ("--set", f"data.{key}path={self.folder}/digits/{'test' if key else 'train'}")]
        self.assertRegex(self.lockstep("check", SOURCE / "examples" / "digit_images.yaml", *sets).out, "500 samples of 12x12x1 uint8")

    def test_bad_options(self):
        for sets, pattern in ((["data.size=[8, 0]"], r"size: must be \[1, 65535\]"), (["data.channels=2"], "channels: is 2"),
                              (["data.resize=lanczos"], "'lanczos' is not one of bilinear, bicubic, nearest, none")):
            self.fails(2, pattern, sets=sets)
        self.fails(2, "It is called 'images' here", sets=["data.format=image_folder"])


if __name__ == "__main__":
    main()

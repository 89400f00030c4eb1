# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A finished model without its data: predictions, evaluations and exports of a checkpoint that was copied elsewhere."""
import csv
import gzip
import json
import os
import pathlib
import shutil
import subprocess

from lockstep_run import DIGITS_DATA, PROGRAM, LockstepTest, checkpoints, main, python_with_h5py

IMAGES = """
seed: 3
shards: 2
data: {format: csv, path: digits.csv, label_column: -1, shape: [8, 8, 1], normalize: channels, train: {rows: [0, 300]},
       eval: {rows: [300, 400]}}
optimizer: {adam: {learning_rate: 0.003}}
train: {batch_size: 50, epochs: 1}
model: {layers: [{conv2d: {filters: 4, kernel: 3}}, relu, flatten, {dense: {units: 10}}]}
"""
BIRDS = """
seed: 3
shards: 2
data: {format: hdf5, path: birds.h5, features: x, labels: kind, eval: {path: others.h5}}
optimizer: {adam: {learning_rate: 0.01}}
train: {batch_size: 20, epochs: 2}
model: {layers: [{dense: {units: 3}}]}
"""
TABLE = """
seed: 3
shards: 2
data:
  format: csv
  header: true
  path: people.csv
  columns: [age, town]
  categories: {town: auto}
  labels: [income]
  classes: auto
  eval: {path: others.csv}
optimizer: {adam: {learning_rate: 0.01}}
train: {batch_size: 20, epochs: 2}
model: {layers: [{dense: {units: 2}}]}
"""
TEXT = """
seed: 3
shards: 2
data: {format: text_tsv, path: mail.tsv, text_column: 1, label_column: 0, max_length: 6}
optimizer: {adam: {learning_rate: 0.01}}
train: {batch_size: 10, epochs: 1}
model: {layers: [{embedding: {name: words, rows: 8, units: 4}}, flatten, {dense: {units: 2}}]}
"""
LANGUAGE = """
seed: 3
shards: 2
data: {format: text_windows, path: book.txt, tokens: characters, length: 8}
optimizer: {adam: {learning_rate: 0.01}}
train: {batch_size: 10, epochs: 1}
model: {layers: [{embedding: {rows: 8, units: 4}}, {dense: {units: 8}}]}
"""


class AloneTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "data"
        self.data.mkdir()
        self.away = self.folder / "away"

    def config(self, text):
        path = self.data / "config.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    def digits(self):
        with gzip.open(DIGITS_DATA, "rt", encoding="utf-8") as file:
            lines = [line for line, _ in zip(file, range(500))]
        (self.data / "digits.csv").write_text("".join(lines), encoding="utf-8")
        new = self.folder / "new.csv"
        new.write_text("".join(lines[450:470]), encoding="utf-8")
        return new

    def leave(self, run="run"):
        """Copies the checkpoint of a run into an empty folder, and removes the run and all data."""
        self.away.mkdir(exist_ok=True)
        copy = self.away / run
        copy.mkdir()
        shutil.copy(checkpoints(self.folder / run)[-1], copy)
        shutil.rmtree(self.folder / run)
        shutil.rmtree(self.data, ignore_errors=True)
        return copy

    def predicted(self, run, new, *more, ending=".csv"):
        out = self.folder / ("out" + ending)
        self.lockstep("predict", run, "--input", new, "--output", out, *more)
        return out.read_bytes()

    def test_a_folder_with_a_checkpoint_predicts_evaluates_and_exports(self):
        new = self.digits()
        self.train("run", config=self.config(IMAGES))
        run = self.folder / "run"
        before = self.predicted(run, new)
        net = self.folder / "before.onnx"
        self.lockstep("export", run, "--output", net)
        judged = json.loads(self.lockstep("evaluate", run).out)
        shutil.copy(self.data / "digits.csv", self.folder / "others.csv")
        away = self.leave()
        self.assertEqual(self.predicted(away, new), before)
        file = next(away.glob("*.h5"))
        self.assertEqual(self.predicted(file, new), before)
        after = self.folder / "after.onnx"
        self.lockstep("export", away, "--output", after)
        self.assertEqual(after.read_bytes(), net.read_bytes())
        here = json.loads(self.lockstep("evaluate", away, "--set", f"data.eval.path={self.folder / 'others.csv'}").out)
        self.assertEqual({**here, "checkpoint": ""}, {**judged, "checkpoint": ""})
        self.assertEqual(self.lockstep("evaluate", file, "--set", f"data.eval.path={self.folder / 'others.csv'}", ranks=2).out.split("global")[1],
                         self.lockstep("evaluate", away, "--set", f"data.eval.path={self.folder / 'others.csv'}").out.split("global")[1])

    def test_inspect_shows_what_a_checkpoint_carries(self):
        self.digits()
        self.train("run", config=self.config(IMAGES))
        run = self.folder / "run"
        text = self.lockstep("inspect", run).out
        self.assertRegex(text, r"\n  epoch +1, 0 samples of it consumed\n")
        self.assertRegex(text, r"\n  samples +8x8x1 of \w+, 1 class index")
        self.assertRegex(text, r"\n  kept of the data +normalization.txt \(\d+ bytes\)\n")
        found = self.header(checkpoints(run)[-1])["data"]
        self.assertEqual(found["samples.json"]["parts"][0]["shape"], [8, 8, 1])
        self.assertIn("normalization.txt", found)

    def test_an_exported_folder_and_an_ensemble_need_no_data(self):
        new = self.digits()
        config = self.config(IMAGES)
        for run, seed in (("one", 3), ("two", 4)):
            self.train(run, config=config, sets=[f"seed={seed}"])
        runs = [self.folder / run for run in ("one", "two")]
        exported = self.folder / "exported"
        exported.mkdir()
        self.lockstep("checkpoint", "export", runs[0], "--output", exported / "step-00000001.h5")
        both, one = self.predicted(runs[0], new, runs[1]), self.predicted(runs[0], new)
        self.assertEqual(self.predicted(exported, new), one)
        away = [self.leave(run) for run in ("one", "two")]
        self.assertEqual(self.predicted(exported, new), one)
        self.assertEqual(self.predicted(away[0], new, away[1]), both)

    def test_lists_of_a_table_are_in_the_checkpoint(self):
        header = "age,town,income\n"
        rows = [f"{20 + i},{('Ulm', 'Bonn', 'Kiel')[i % 3]},{('low', 'high')[i % 2]}\n" for i in range(40)]
        for name in ("people.csv", "others.csv"):
            (self.data / name).write_text(header + "".join(rows), encoding="utf-8")
        self.train("run", config=self.config(TABLE))
        run, new = self.folder / "run", self.folder / "new.csv"
        new.write_text("age,town\n30,Kiel\n31,Ulm\n", encoding="utf-8")
        before = self.predicted(run, new)
        self.assertIn(b"probability_high,probability_low", before)
        judged = json.loads(self.lockstep("evaluate", run).out)
        shutil.copy(self.data / "others.csv", self.folder)
        away = self.leave()
        self.assertEqual(self.predicted(away, new), before)
        # A file whose lists would be others, were they its own.
        (self.folder / "others.csv").write_text(header + "".join(rows), encoding="utf-8")
        other = ["--set", f"data.eval.path={self.folder / 'others.csv'}"]
        self.assertEqual(json.loads(self.lockstep("evaluate", away, *other).out)["loss"], judged["loss"])
        (self.folder / "others.csv").write_text(header + "25,Ulm,low\n26,Kiel,high\n", encoding="utf-8")
        self.assertEqual(json.loads(self.lockstep("evaluate", away, *other).out)["samples"], 2)

    def test_words_are_in_the_checkpoint(self):
        lines = [f"{('ham', 'spam')[i % 2]}\t{('see you soon', 'buy pills now')[i % 2]}\n" for i in range(20)]
        (self.data / "mail.tsv").write_text("".join(lines), encoding="utf-8")
        self.train("run", config=self.config(TEXT))
        run, new = self.folder / "run", self.folder / "new.tsv"
        new.write_text("see pills\n", encoding="utf-8")
        before = self.predicted(run, new)
        near = self.lockstep("neighbours", run, "--words", "buy").out
        away = self.leave()
        self.assertEqual(self.predicted(away, new), before)
        self.assertEqual(self.lockstep("neighbours", away, "--words", "buy").out, near)

    def test_a_language_model_goes_on_without_its_book(self):
        (self.data / "book.txt").write_text("abcdef\n" * 60, encoding="utf-8")
        self.train("run", config=self.config(LANGUAGE))
        say = ["--prompt", "ab", "--length", 5, "--seed", 1]
        before = self.lockstep("predict", self.folder / "run", *say).out
        self.assertEqual(self.lockstep("predict", self.leave(), *say).out, before)

    def test_a_checkpoint_of_before_says_what_it_lacks(self):
        python = python_with_h5py()
        if python is None:
            self.skipTest("no Python has h5py")
        new = self.digits()
        self.train("run", config=self.config(IMAGES))
        run = self.folder / "run"
        right = self.predicted(run, new)
        without = "import h5py, sys\nwith h5py.File(sys.argv[1], 'r+') as file:\n    del file['data']"
        subprocess.run([python, "-c", without, checkpoints(run)[-1]], check=True)
        self.assertIn("not described", self.lockstep("inspect", run).out)
        self.assertEqual(self.predicted(run, new), right)  # with the data
        elsewhere = self.folder / "elsewhere.csv"
        (self.data / "digits.csv").rename(elsewhere)
        for command in (["predict", run, "--input", new, "--output", self.folder / "no.csv"], ["export", run, "--output", self.folder / "no.onnx"]):
            result = self.start(*command).wait()
            self.assert_one_error(result, 3, "the checkpoint does not describe its samples: an earlier version of Lockstep has written it")
            self.assertRegex(result.err, "--set data.path")
        # The advice is followed.
        self.assertEqual(self.predicted(run, new, "--set", f"data.path={elsewhere}"), right)

    def another_root(self, *files):
        """A root folder with the program, its shared libraries, and copies of `files` at its top."""
        if os.geteuid() != 0:
            self.skipTest("only root may change the root")
        listed = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True)
        if listed.returncode != 0:
            self.skipTest("the program's libraries cannot be listed")
        root = self.folder / "root"
        libraries = [pathlib.Path(word) for line in listed.stdout.splitlines() for word in line.split() if word.startswith("/")]
        for file in (pathlib.Path(PROGRAM), *libraries):
            to = root / str(file.absolute())[1:]
            to.parent.mkdir(parents=True, exist_ok=True)
            if not to.exists():
                shutil.copy(file, to)
        for name in ("tmp", "proc", "dev"):
            (root / name).mkdir(exist_ok=True)
        for file in files:
            shutil.copy(file, root)
        return root

    def in_root(self, root, *arguments):
        """Runs the program where no other file of this machine is; without a launcher MPI needs none. Returns its output."""
        mounts = f"mount --bind /proc {root}/proc && mount --bind /dev {root}/dev && exec chroot {root} \"$@\""
        result = subprocess.run(["unshare", "--mount", "sh", "-c", mounts, "sh", PROGRAM, *arguments], capture_output=True, text=True, timeout=120,
                                env={"PATH": os.environ["PATH"]})
        if "unshare:" in result.stderr or "mount:" in result.stderr or "chroot:" in result.stderr:
            self.skipTest(f"another root is not allowed here: {result.stderr.strip()}")
        self.assertEqual(result.returncode, 0, f"{arguments}\n{result.stdout}{result.stderr}")
        return result.stdout

    def test_in_another_root_with_nothing_but_the_program(self):
        """chroot: no file of this machine but the program, its libraries, the checkpoint and the new samples."""
        new = self.digits()
        self.train("run", config=self.config(IMAGES))
        run, net = self.folder / "run", self.folder / "net.onnx"
        predicted, judged = self.predicted(run, new), json.loads(self.lockstep("evaluate", run).out)
        self.lockstep("export", run, "--output", net)
        others = self.folder / "others.csv"
        shutil.copy(self.data / "digits.csv", others)
        root = self.another_root(next(self.leave().glob("*.h5")), new, others)
        (checkpoint,) = (f"/{file.name}" for file in root.glob("*.h5"))
        self.in_root(root, "predict", checkpoint, "--input", "/new.csv", "--output", "/out.csv")
        self.assertEqual((root / "out.csv").read_bytes(), predicted)
        here = json.loads(self.in_root(root, "evaluate", checkpoint, "--set", "data.eval.path=/others.csv"))
        self.assertEqual({**here, "checkpoint": ""}, {**judged, "checkpoint": ""})
        self.in_root(root, "export", checkpoint, "--output", "/net.onnx")
        self.assertEqual((root / "net.onnx").read_bytes(), net.read_bytes())

    def test_texts_as_labels_in_an_hdf5_file(self):
        python = python_with_h5py()
        if python is None:
            self.skipTest("no Python has h5py")
        make = ("import h5py, numpy, sys\nkinds = sys.argv[2].split()\nwith h5py.File(sys.argv[1], 'w') as file:\n"
                "    file['x'] = numpy.array([[kinds[i % len(kinds)] == 'owl', i % 5] for i in range(40)], dtype='f4')\n"
                "    file['kind'] = [kinds[i % len(kinds)] for i in range(40)]\n")
        for name, kinds in (("birds.h5", "wren owl kite"), ("others.h5", "owl wren")):
            subprocess.run([python, "-c", make, self.data / name, kinds], check=True, timeout=60)
        shutil.copy(self.data / "others.h5", self.folder)
        self.train("run", config=self.config(BIRDS))
        run, new = self.folder / "run", self.folder / "others.h5"
        judged, before = json.loads(self.lockstep("evaluate", run).out), self.predicted(run, new)
        away = self.leave()
        self.assertEqual(self.predicted(away, new), before)
        here = json.loads(self.lockstep("evaluate", away, "--set", f"data.eval.path={new}").out)
        self.assertEqual({**here, "checkpoint": ""}, {**judged, "checkpoint": ""})


if __name__ == "__main__":
    main()

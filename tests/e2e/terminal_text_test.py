# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Names of others reach terminals and logs as text alone: no control characters, no lines that the program did not begin.

Columns, classes, tensors, files, run directories, metrics and fields of status files have names with escape sequences, C1 control
characters, line ends, NUL and changes of the direction of writing; every command that shows them is run."""
import json
import os
import re
import shutil
import struct
import subprocess
import unicodedata

from lockstep_run import DIGITS, PROGRAM, LockstepTest, checkpoints, go_on_with, main
from made_run import MadeRun
from torch_files import Storage, Tensor, pickled, write_archive

PLAIN = "é中"  # stays as it is
EVIL = f"n\x1b[31m{PLAIN}\u009b5m\u202e\r\x07x\nforged: line\n  forged: advice\tend"
NUL = EVIL + "\0z"
SHOWN = r"n\x1b[31mé中\u009b5m\u202e\r\x07x\nforged: line\n  forged: advice\tend"


def faults(data, is_json=False):
    """What a terminal would act on in the bytes `data`, and the lines that a name began. JSON keeps changes of the direction."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return [f"no UTF-8: {error}"]
    found = [f"U+{ord(c):04X} in {text[max(0, i - 30):i + 20]!r}" for i, c in enumerate(text)
             if c not in "\n\t" and (unicodedata.category(c) == "Cc" or (c in "\u2028\u2029\u202e" and not is_json))]
    return found[:3] + [f"a forged line: {line!r}" for line in re.split(r"[\r\n]", text) if line.lstrip().startswith("forged")][:3]


class TerminalTextTest(LockstepTest):
    maxDiff = 0

    def setUp(self):
        super().setUp()
        self.wrong = []

    def tearDown(self):
        for log in self.folder.rglob("lockstep.log"):
            self.wrong += [f"lockstep.log: {fault}" for fault in faults(log.read_bytes())]
        self.assertEqual(self.wrong, [], "\n".join(map(str, self.wrong)))

    def shown(self, *words, code=None, expect=SHOWN, stdin=b""):
        """What a command prints, which must be harmless and have `expect` in it."""
        result = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, timeout=100, cwd=self.folder, input=stdin, check=False,
                                env={**os.environ, "OMP_NUM_THREADS": "1", "LC_ALL": "C.UTF-8", "COLUMNS": "400"})
        for name, data in (("stdout", result.stdout), ("stderr", result.stderr)):
            self.wrong += [f"{' '.join(map(str, words))[:80]!r}: {name}: {fault}" for fault in faults(data, name == "stdout" and ("--json" in words or words[0] in ("events", "evaluate", "watch")))]
        text = (result.stdout + result.stderr).decode(errors="replace")
        if code is not None and result.returncode != code:
            self.wrong.append(f"{str(words)[:300]} ended with {result.returncode}: {text[-1500:]}")
        if expect and expect not in text.replace("\t", "\\t"):  # tabs stay in messages
            self.wrong.append(f"{str(words)[:300]} shows no {expect!r}: {text[-1500:]}")
        return text

    def try_data(self, data, new=(), columns=SHOWN):
        """A configuration for the data, and all that looks at it. `data`: a path in the test's folder."""
        self.shown("new", data, "--output", "c.yaml", "--force", "--epochs", "1", "--size", "small", *new, code=0, expect=None)
        self.shown("new", data, "--output", "-", *new, code=0, expect=None)
        self.shown("check", "c.yaml", code=0, expect=None)
        self.shown("data", "c.yaml", code=0, expect=columns)
        self.shown("data", "c.yaml", "--json", code=0, expect=None)
        self.shown("train", "c.yaml", "--run-dir", "run", "--set", "eval.every_epochs=1", code=0, expect=None)
        for command in ("evaluate", "inspect", "report", "status"):
            self.shown(command, "run", code=0, expect=None)
        shutil.rmtree(self.folder / "run")

    def test_columns_and_classes_of_a_table(self):
        quoted = EVIL.replace('"', '""')
        for head, tail in ((quoted, quoted), ("x\x1b[31m\u009b", "c\x1b[2J\u009b")):
            rows = [f'{i},{i % 7},"{tail}{i % 2}"' for i in range(60)]
            (self.folder / "t.csv").write_text(f'"{head}","b{head}",label\n' + "\n".join(rows) + "\n", encoding="utf-8")
            self.try_data("t.csv", columns=r"\x1b[")

    def test_classes_of_folders_of_images(self):
        if not go_on_with("PIL", "numpy"):
            self.skipTest("no Python has Pillow")
        import numpy
        from PIL import Image
        numbers = numpy.random.default_rng(1)
        for c in range(2):
            folder = self.folder / "photos" / f"{EVIL}{c}"
            folder.mkdir(parents=True)
            for i in range(8):
                Image.fromarray(numbers.integers(0, 255, (8, 8, 3), dtype=numpy.uint8)).save(folder / f"{EVIL}{i}.png")
        self.try_data("photos")

    def test_names_in_hdf5_and_npz_files(self):
        if not go_on_with("h5py", "numpy"):
            self.skipTest("no Python has h5py")
        import h5py
        import numpy
        features, labels = numpy.random.default_rng(1).normal(size=(40, 3)), numpy.arange(40) % 2
        with h5py.File(self.folder / "d.h5", "w") as file:
            file[EVIL] = features
            file["l" + EVIL] = labels
        numpy.savez(self.folder / "d.npz", **{EVIL: features, "l" + EVIL: labels})
        for name in ("d.h5", "d.npz"):
            self.try_data(name, ["--features", EVIL, "--labels", "l" + EVIL], columns=None)
            self.shown("new", name, "--labels", "absent" + EVIL, "--output", "-", expect="absent" + SHOWN)
            self.shown("new", name, "--output", "-", expect=None)

    def test_run_directories_and_what_is_in_them(self):
        self.train("run", steps=4, sets=["checkpoint.every_steps=2", "eval.every_epochs=1"], more=["--record", "3", "--profile", "1:3"]
                   if "--profile" in self.lockstep("train", "--help").out else ["--record", "3"])
        run = f"runs{EVIL}"
        shutil.copytree(self.folder / "run", self.folder / run)
        shutil.copytree(self.folder / "run", self.folder / f"{run}2")
        for command in (["inspect"], ["status"], ["report"], ["events"], ["trace"], ["plot"], ["top", "--once"], ["checkpoint", "list"],
                        ["checkpoint", "verify"], ["evaluate"], ["watch"], ["replay"], ["neighbours", "--words", EVIL], ["train", DIGITS, "--run-dir"]):
            self.shown(*command, run, expect=None)
        self.shown("train", DIGITS, "--steps", 6, "--run-dir", run, "--threads", 1, code=0)
        self.shown("checkpoint", "verify", run, code=0)
        self.shown("checkpoint", "diff", run, f"{run}2", expect=None)
        self.shown("compare", run, f"{run}2", code=0)
        self.shown("compare", run, f"{run}2", "--output", f"{EVIL}.html", code=0)
        self.shown("export", run, "--output", f"{EVIL}.onnx", code=0)
        self.shown("export", run, "--output", f"{EVIL}.bad")

    def test_fields_of_status_files_and_names_of_metrics(self):
        for name in ("made", "made2"):
            run = MadeRun(self.folder / name)
            run.append((1, {NUL: 0.5, "loss": 0.3}), (2, {NUL: 0.25, "loss": 0.2, "split": "eval"}), (2, {NUL: 0.25, "loss": 0.2}))
            run.ranks([(NUL, .1, .1, .1, .1, 1), (NUL, .1, .1, .1, .1, 1)])
            run.status(host=NUL, queue_job=NUL, reason=NUL, phase=NUL)
            run.end()
            (run.path / "jobs.jsonl").write_text(json.dumps({**run.record, "state": "requeue", "begin": run.begin - 50, "end": run.begin - 10}) + "\n")
            (run.path / "config.yaml").write_text(DIGITS.read_text())
        self.shown("status", "made", code=0)
        self.shown("status", "made", "--json", code=0, expect=PLAIN)
        self.shown("top", "made", "--once", code=0)
        self.shown("report", "made", code=0)
        self.shown("compare", "made", "made2", code=0)
        self.shown("plot", "made", "--tag", "n*", "--width", 300, code=0)
        self.shown("plot", "made", "--tag", "n*", "--follow", code=0)
        self.shown("plot", "made", "--tag", EVIL + "x")

    def test_texts_in_checkpoints(self):
        if not go_on_with("h5py"):
            self.skipTest("no Python has h5py")
        import h5py
        self.train("run", steps=2)
        path = checkpoints(self.folder / "run")[-1]
        with h5py.File(path, "r+") as file:
            changed = []
            for name in ("computed_on", "lockstep_version", "created"):
                if name in file.attrs:
                    file.attrs[name] = EVIL
                    changed.append(name)
            group = file["variables"]
            first = sorted(group)[0]
            group.move(first, EVIL)
        self.assertTrue(changed)
        self.shown("inspect", path, expect=None)
        self.shown("inspect", path, "--json", expect=None)
        self.shown("inspect", path, "--digest", expect=None)
        self.shown("checkpoint", "verify", path, expect=None)
        shutil.copy(path, self.folder / f"{EVIL}.h5")
        self.shown("checkpoint", "verify", f"{EVIL}.h5")
        self.shown("checkpoint", "diff", f"{EVIL}.h5", path, expect=None)
        self.shown("import", f"{EVIL}.h5", "--show", expect=None)

    def test_tensors_of_other_programs(self):
        header = {EVIL: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, NUL: {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]},
                  "__metadata__": {EVIL: EVIL}}
        text = json.dumps(header).encode()
        (self.folder / "t.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(12))
        self.shown("import", "t.safetensors", "--show", code=0)
        self.shown("import", "t.safetensors", "--show", "--like", DIGITS, code=0)
        self.shown("import", "t.safetensors", "--like", DIGITS, "--output", "w.h5", expect=None)
        self.shown("import", "t.safetensors", "--output", f"{EVIL}.h5")

    def test_tensors_of_pytorch(self):
        tensor = lambda: Tensor(Storage("0", "FloatStorage", 2), 0, (2,), (1,))
        write_archive(self.folder / "t.pt", pickled({"state_dict": {EVIL: {EVIL: tensor(), "b.weight": tensor()}}, EVIL: 1}), {"0": bytes(8)})
        self.shown("import", "t.pt", "--show", code=0)
        self.shown("import", "t.pt", "--show", "--like", DIGITS, code=0)
        self.shown("import", "t.pt", "--like", DIGITS, "--output", "w.h5", expect=None)
        self.shown("import", "t.pt", "--output", "w.h5", code=0, expect=None)
        self.shown("inspect", "w.h5", code=0, expect=None)
        write_archive(self.folder / "t.pt", pickled({EVIL: {EVIL: tensor()}, EVIL + "." + EVIL: tensor()}), {"0": bytes(8)})
        self.shown("import", "t.pt", "--show", code=3)
        write_archive(self.folder / "t.pt", pickled({EVIL: Tensor(Storage(EVIL, "FloatStorage", 2), 0, (2,), (1,))}), {"0": bytes(8)})
        self.shown("import", "t.pt", "--show", code=3)
        write_archive(self.folder / "t.pt", b"\x80\x02c" + EVIL.replace("\n", "\r").encode() + b"\nx" + EVIL.replace("\n", "\r").encode() + b"\n.", {})
        self.shown("import", "t.pt", "--show", code=3, expect=r"n\x1b[31m")

    def test_tensors_of_onnx(self):
        def field(number, contents):
            return bytes([number << 3 | 2]) + (bytes([len(contents)]) if len(contents) < 128 else bytes([len(contents) & 127 | 128, len(contents) >> 7])) + contents
        name = EVIL.encode()
        for dims, code in ((b"\x08\x02", 0), (b"\x08\x03", 3), (b"\x08\x01" * 9, 3)):
            node = field(1, b"x") + field(1, name) + field(2, b"y") + field(4, b"MatMul")
            initializer = dims + b"\x10\x01" + field(8, name) + field(9, bytes(8))
            (self.folder / "t.onnx").write_bytes(field(7, field(1, node) + field(5, initializer)))
            self.shown("import", "t.onnx", "--show", code=code)

    def test_arrays_of_keras(self):
        if not go_on_with("h5py"):
            self.skipTest("no Python has h5py")
        import h5py
        import numpy
        path = self.folder / "t.weights.h5"
        with h5py.File(path, "w") as file:
            file[f"layers/{EVIL}/vars/0"] = numpy.zeros((2, 3), "f4")
        self.shown("import", path.name, "--show", code=0)
        self.shown("import", path.name, "--show", "--like", DIGITS, code=0)
        for target in (h5py.SoftLink("/" + EVIL), h5py.ExternalLink(f"{EVIL}.h5", EVIL), h5py.ExternalLink(f"/{EVIL}.h5", EVIL)):
            with h5py.File(path, "a") as file:
                if EVIL in file.keys():
                    del file[EVIL]
                file[EVIL] = target
            self.shown("import", path.name, "--show", code=3)

    def test_members_of_archives_and_features_of_records(self):
        import io
        import tarfile
        import zipfile
        with zipfile.ZipFile(self.folder / "d.npz", "w") as archive:
            archive.writestr(f"{EVIL}.npy", b"no array")
        (self.folder / "c.yaml").write_text("data: {format: npy, path: d.npz, features: x, labels: y}\nmodel: {loss: mean_squared_error, layers: [dense: {units: 1}]}\n"
                                            "optimizer: {gradient_descent: {learning_rate: 0.1}}\ntrain: {batch_size: 2, steps: 1}\n")
        self.shown("check", "c.yaml", code=3)
        with tarfile.open(self.folder / "d.tar", "w", format=tarfile.PAX_FORMAT) as archive:
            for name in (f"{EVIL}.txt", f"{EVIL}.cls"):
                info = tarfile.TarInfo(name)
                info.size = 3
                archive.addfile(info, io.BytesIO(b"abc"))
        self.shown("new", "d.tar", "--output", "-", expect=None)
        (self.folder / "d.jsonl").write_text(json.dumps({EVIL: [1, 2], "l" + EVIL: EVIL}) + "\n" + json.dumps({EVIL: "x"}) + "\n")
        self.shown("new", "d.jsonl", "--output", "-", expect=None)
        self.shown("check", "c.yaml", "--set", "data.format=jsonl", "--set", "data.path=d.jsonl", expect=None)

    def test_messages_about_words_of_the_command_line_and_absent_files(self):
        listed = self.lockstep("--help").out.partition("Subcommands:")[2]
        commands = re.findall(r"(?m)^  ([a-z-]+) ", listed)
        self.assertGreater(len(commands), 25)
        for command in commands:
            if command == "watch":  # waits for a run directory that does not exist
                continue
            needs_more = {"predict", "replay", "convert", "export", "import", "compare", "vocabulary", "neighbours"}
            self.shown(command, EVIL, expect=None if command in needs_more else SHOWN)
            self.shown(command, "--" + EVIL, expect=None)
        self.shown(EVIL)
        self.shown("train", f"{EVIL}.yaml", code=2)
        self.shown("train", DIGITS, "--set", f"{EVIL}=1", code=2)
        self.shown("train", DIGITS, "--set", f"train.batch_size={EVIL}", code=2, expect=PLAIN)
        self.shown("explain", EVIL)
        (self.folder / f"{EVIL}.yaml").write_text("train: {steps: [\x1b1\x9b}\n", encoding="latin-1")
        self.shown("check", f"{EVIL}.yaml", code=2)
        (self.folder / f"{EVIL}.yaml").write_text(f'data: {{"{json.dumps(EVIL)[1:-1]}": 1}}\nmodel: {{layers: [dense\u009b]}}\n', encoding="utf-8")
        self.shown("check", f"{EVIL}.yaml", code=2)
        bad = b"\xc3.\x9b\xc1\x9b\xed\xa0\x80"  # cut off, C1 alone, overlong, a surrogate
        result = subprocess.run([PROGRAM.encode(), b"train", b"x" + bad], capture_output=True, check=False)
        self.assertIn(rb"x\xc3.\x9b\xc1\x9b\xed\xa0\x80", result.stderr)

    def test_long_texts_are_shortened_with_a_count(self):
        for word in ("x" * 100_000, "y z" * 30_000):
            for words in (["--set", f"train.batch_size={word}"], ["--run-dir", word], ["--set", f"data.train.path={word}"]):
                text = self.shown("train", DIGITS, *words, expect="..." if "=" in words[1] else "characters left out")
                self.assertLess(len(text), 5000)
        rows = [f"{i},c" for i in range(20)] + ["1," + "w" * 3_000_000]
        (self.folder / "t.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        (self.folder / "c.yaml").write_text("data: {format: csv, train: {path: t.csv, features: [0], labels: 1, label_names: [c]}}\n"
                                            "model: {layers: [dense: 2]}\ntrain: {batch_size: 4, epochs: 1}\n")
        self.assertLess(len(self.shown("check", "c.yaml", expect=None)), 10000)


if __name__ == "__main__":
    main()

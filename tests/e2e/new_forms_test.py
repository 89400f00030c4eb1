# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""lockstep new, where it must not guess: the first line of a table asks a person, files that no reader reads come with the command that
makes data of them (the tests run it), and what other programs leave in folders is nothing."""
import bz2
import json
import lzma
import random
import shlex
import shutil
import struct
import subprocess
import unittest
import zipfile
import zlib

from lockstep_run import LockstepTest, main, on_a_terminal, python_with, python_with_h5py

DATA = 3


def grey_png(level):
    """A picture of 8 x 8 pixels of one level."""
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = (b"\0" + bytes([level]) * 8) * 8
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


PNG = [grey_png(40), grey_png(200)]
PYTHON = python_with("h5py", "netCDF4", "numpy", "pandas", "PIL", "scipy") or python_with_h5py()


def has(module):
    return PYTHON is not None and subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True).returncode == 0


class FormsTest(LockstepTest):
    def write(self, name, lines):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return name

    def rows(self, count=60, delimiter=","):
        source = random.Random(3)
        return [delimiter.join([f"{source.uniform(-1, 1):.3f}", f"{source.uniform(-1, 1):.3f}", str(i * 5 % 7 % 2)]) for i in range(count)]

    def new(self, data, *options, code=0):
        return self.lockstep("new", data, "--output", "net.yaml", "--force", *options, code=code, cwd=self.folder)

    def asked(self, data, question, answer):
        """What is written after `answer` to the question in a terminal."""
        code, shown = on_a_terminal(
            self.folder, ["new", data, "--output", "asked.yaml", "--force", "--task", "auto", "--size", "small", "--held-out", "0.2"],
            answer + b"\n")
        self.assertEqual(code, 0, shown)
        self.assertIn(question, shown)
        return (self.folder / "asked.yaml").read_text(encoding="utf-8")

    def follow(self, data, pattern):
        """The error names what `data` is, and its commands lead to a configuration that passes the check."""
        result = self.new(data, code=DATA)
        self.assert_one_error(result, DATA, pattern)
        run, then = (next(line.split(word, 1)[1] for line in result.err.splitlines() if word in line) for word in ("un: ", "Then: "))
        # The interpreter of the tests has the modules.
        run = f"{shlex.quote(PYTHON or 'python3')} {run.removeprefix('python3 ')}" if run.startswith("python3 ") else run
        subprocess.run(["bash", "-c", run], cwd=self.folder, check=True, timeout=60)
        program, *arguments = shlex.split(then)
        self.assertEqual(program, "lockstep")
        done = self.lockstep(*arguments, "--output", "net.yaml", "--force", cwd=self.folder)
        self.lockstep("check", "net.yaml", cwd=self.folder)
        return done.out


class Forms(FormsTest):
    def test_compressed_tables_are_read_or_named_with_a_command(self):
        text = "\n".join(["a,b,label", *self.rows()]).encode()
        (self.folder / "a.csv.xz").write_bytes(lzma.compress(text))
        (self.folder / "b.csv.bz2").write_bytes(bz2.compress(text))
        with zipfile.ZipFile(self.folder / "c.csv.zip", "w") as archive:
            archive.writestr("c.csv", text)
        if shutil.which("zstd"):
            subprocess.run(["zstd", "-q", "-o", self.folder / "d.csv.zst"], input=text, check=True)
        for path, pattern, tool in (("a.csv.xz", "by xz", "xz"), ("b.csv.bz2", "by bzip2", "bzip2"), ("c.csv.zip", "ZIP archive", "unzip"),
                                    ("d.csv.zst", "by zstd", "zstd")):
            with self.subTest(path):
                if not shutil.which(tool):
                    self.skipTest(f"no program {tool}")
                read = self.start("new", path, "--output", "net.yaml", "--force", cwd=self.folder).wait()
                out = read.out if read.code == 0 else self.follow(path, pattern)
                self.assertIn("predicted: label, 2 classes", out)

    @unittest.skipUnless(has("scipy"), "no Python with scipy")
    def test_matlab_files_of_version_5(self):
        subprocess.run([PYTHON, "-c", "import numpy, scipy.io; r = numpy.random.default_rng(1); scipy.io.savemat('five.mat', "
                        "{'X': r.normal(size=(40, 3)), 'y': numpy.arange(40).reshape(-1, 1) * 5 % 7 % 2 + 1.0, 'name': 'x'})"], cwd=self.folder, check=True)
        self.assertIn("3 classes", self.follow("five.mat", "MATLAB file of version 5"))

    @unittest.skipUnless(PYTHON, "no Python with numpy and h5py")
    def test_matlab_files_of_version_7_whose_axes_are_reversed(self):
        make = ("import h5py, io, numpy; b = io.BytesIO(); f = h5py.File(b, 'w', userblock_size=512); r = numpy.random.default_rng(1); "
                "f['X'] = r.normal(size=(3, 40)); f['y'] = (numpy.arange(40) * 5 % 7 % 2).astype('f8').reshape(1, 40); f.close(); "
                "open('seven.mat', 'wb').write(b'MATLAB 7.3 MAT-file'.ljust(512) + b.getvalue()[512:])")
        subprocess.run([PYTHON, "-c", make], cwd=self.folder, check=True)
        self.assertIn("each 3; predicted: y, 2 classes", self.follow("seven.mat", "version 7.3, which has its axes in reverse order"))

    @unittest.skipUnless(PYTHON, "no Python with numpy and h5py")
    def test_arrays_that_matlab_wrote_are_read_or_named_with_a_command(self):
        """Samples are the rows of a table, or the last axis of pictures, as MATLAB shows them."""
        make = ("import h5py, io, numpy; b = io.BytesIO(); f = h5py.File(b, 'w', userblock_size=512); r = numpy.random.default_rng(1)\n"
                "y = (numpy.arange(40) * 5 % 7 % 2).astype('f8').reshape(1, 40)\n"
                "for name, x in (('X', ARRAY), ('y', y)): f[name] = x; f[name].attrs['MATLAB_class'] = numpy.bytes_('double')\n"
                "f.close(); open('real.mat', 'wb').write(b'MATLAB 7.3 MAT-file'.ljust(512) + b.getvalue()[512:])")
        for array, shape in (("r.normal(size=(3, 40))", "3"), ("r.normal(size=(40, 3, 9, 8))", "8x9x3")):
            subprocess.run([PYTHON, "-c", make.replace("ARRAY", array)], cwd=self.folder, check=True)
            read = self.start("new", "real.mat", "--output", "net.yaml", "--force", cwd=self.folder).wait()
            out = read.out if read.code == 0 else self.follow("real.mat", "version 7.3, which has its axes in reverse order")
            self.assertIn(f"each {shape}; predicted: y, 2 classes", out)
            self.lockstep("check", "net.yaml", cwd=self.folder)

    @unittest.skipUnless(PYTHON, "no Python with numpy and h5py")
    def test_tables_of_pandas_in_hdf5(self):
        """Their axes and blocks are no samples and labels, whatever shapes they have."""
        make = ("import h5py, numpy; f = h5py.File('frame.h5', 'w'); g = f.create_group('df'); g['axis0'] = numpy.array([b'a', b'b', b'label']); "
                "g['axis1'] = numpy.arange(40); g['block0_items'] = numpy.array([b'a', b'b']); g['block0_values'] = numpy.ones((40, 2)); "
                "g['block1_items'] = numpy.array([b'label']); g['block1_values'] = numpy.ones((40, 1), 'i8')")
        subprocess.run([PYTHON, "-c", make], cwd=self.folder, check=True)
        self.assert_one_error(self.new("frame.h5", code=DATA), DATA, r"table of pandas \(df\)[\s\S]*read_hdf\('frame.h5', 'df'\)")

    @unittest.skipUnless(PYTHON, "no Python with numpy and h5py")
    def test_what_counts_or_names_rows_is_no_label(self):
        make = ("import h5py, numpy; f = h5py.File('axes.h5', 'w'); f['x'] = numpy.ones((40, 3)); f['id'] = numpy.arange(40)[::-1]; "
                "f['number'] = numpy.arange(40) + 3; f['time'] = numpy.arange(40) * 2; f['file_path'] = numpy.array([b'%d' % i for i in range(40)])")
        subprocess.run([PYTHON, "-c", make], cwd=self.folder, check=True)
        self.assert_one_error(self.new("axes.h5", code=DATA), DATA, r"no labels are: file_path \(.*\), id \(names rows\), number \(counts the rows\), time \(")
        self.assertIn("predicted: number, 1 number", self.new("axes.h5", "--labels", "number").out, "somebody said so")

    def test_json_arrays_and_tables_of_blanks(self):
        records = [{"x": [float(i % 7), 1.0], "label": i % 2} for i in range(40)]
        (self.folder / "all.json").write_text(json.dumps(records), encoding="utf-8")
        self.assertIn("predicted: label, 2 classes", self.follow("all.json", "is one JSON array"))
        self.write("lines.json", map(json.dumps, records))
        self.assertIn("predicted: label, 2 classes", self.new("lines.json").out)
        self.write("aligned.txt", [f"  {row}" for row in self.rows(delimiter="   ")])
        self.assertIn("each 2; predicted: column 2 (from 0), 2 classes", self.new("aligned.txt").out)
        self.assertIn("delimiter: blanks", (self.folder / "net.yaml").read_text(encoding="utf-8"))

    def test_separators_and_decimal_commas(self):
        """What the reader finds, written down: the configuration trains."""
        for number, (delimiter, header) in enumerate(((";", "a;b;kind"), ("|", "a|b|kind"), ("\t", "a\tb\tkind"), ("   ", "a b kind"))):
            rows = [delimiter.join((f"{i % 7},5", f"{i % 5},25", "yes" if i % 2 else "no")) for i in range(60)]
            result = self.new(self.write(f"{number}.csv", [header.replace(" ", delimiter), *rows]))
            self.assertIn("predicted: kind, 2 classes", result.out)
            text = (self.folder / "net.yaml").read_text(encoding="utf-8")
            self.assertIn('decimal: ","', text)
            self.assertIn("delimiter: ", text)
            shown = self.lockstep("data", "net.yaml", cwd=self.folder).out
            self.assertRegex(shown, r"column a +mean 3\.\d+, .*\n +column b +mean 2\.\d+")

    def test_prose_in_a_table_with_commas(self):
        rows = [f'"a longer text, that is like ""no"" other {i}",{"good" if i % 3 else "bad"}' for i in range(60)]
        self.assertIn("2 classes", self.follow(self.write("reviews.csv", ["text,label", *rows]), "no column has numbers or categories"))

    def test_files_of_other_programs(self):
        for name, pattern in (("a.parquet", "Parquet[\\s\\S]*read_parquet"), ("a.xlsx", "spreadsheet[\\s\\S]*read_excel"), ("a.pkl", "pickle[\\s\\S]*read_pickle")):
            (self.folder / name).write_bytes(b"x")
            self.assert_one_error(self.new(name, code=DATA), DATA, pattern)
        (self.folder / "old.nc").write_bytes(b"CDF\x01" + bytes(100))
        self.assert_one_error(self.new("old.nc", code=DATA), DATA, "netCDF-3[\\s\\S]*nccopy -k nc4 old.nc old-4.nc")


class FirstLines(FormsTest):
    UNCLEAR = ["17,23,kind", *[f"{i % 9}.5,{i % 5},{'ab'[i % 2]}" for i in range(60)]]

    def test_what_is_assumed_an_option_changes(self):
        self.write("kinds.csv", self.UNCLEAR)
        result = self.new("kinds.csv")
        self.assertIn("assumed: the first line (17, 23, kind) names the columns", result.out)
        self.assertIn("otherwise: --header no", result.out)
        self.assertIn("predicted: kind, 2 classes", result.out)
        self.assertIn("# assumed: the first line", (self.folder / "net.yaml").read_text(encoding="utf-8"))
        result = self.new("kinds.csv", "--header", "no")
        self.assertNotIn("first line", result.out)
        self.assertIn("3 classes", result.out)

    def test_a_person_is_asked(self):
        self.write("kinds.csv", self.UNCLEAR)
        for answer, expected in ((b"", "header: true"), (b"no", "classes: auto")):
            written = self.asked("kinds.csv", "Does the first line of the table name its columns? (17, 23, kind)", answer)
            self.assertIn(expected, written)
            self.assertEqual("header: true" in written, not answer)
            self.assertNotIn("the first line", written)


class Categories(FormsTest):
    """Columns of 0 and 1, of which exactly one is 1 in each row."""
    KINDS = ("lily", "rose", "tulip")

    def table(self, name, text_too=False):
        header = ",".join(["a", *(["kind"] if text_too else []), *(f"kind_{kind}" for kind in self.KINDS), "b"])
        rows = []
        for i in range(60):
            kind = i * 7 % 3
            rows.append(",".join([f"{i % 9}.5", *([self.KINDS[kind]] if text_too else []), *("01"[kind == k] for k in range(3)), f"{i % 11}.25"]))
        return self.write(name, [header, *rows])

    def written(self):
        return (self.folder / "net.yaml").read_text(encoding="utf-8")

    def test_their_common_name_means_all_of_them(self):
        result = self.new(self.table("kinds.csv"), "--labels", "kind")
        self.assertIn("each 2; predicted: kind, 3 classes", result.out)
        self.assertIn('labels: ["kind_lily", "kind_rose", "kind_tulip"]', self.written())
        self.lockstep("train", "net.yaml", "--run-dir", "run", "--steps", 2, "--quiet", cwd=self.folder)

    def test_the_others_do_not_give_a_label_away(self):
        result = self.new(self.table("kinds.csv"), "--labels", "kind_rose")
        self.assertIn("each 2; predicted: kind_rose, 2 classes", result.out)
        self.assertRegex(result.out, r"left out: column kind_lily: gives the label away")
        self.assertIn('ignore: ["kind_lily", "kind_tulip"]', self.written())

    def test_columns_that_were_made_of_the_label_do_not_give_it_away(self):
        result = self.new(self.table("both.csv", text_too=True), "--labels", "kind")
        self.assertIn("each 2; predicted: kind, 3 classes", result.out)
        self.assertIn('ignore: ["kind_lily", "kind_rose", "kind_tulip"]', self.written())

    def test_a_person_is_asked_whether_they_are_the_classes(self):
        rows = [f"{i % 9}.5,{i % 11}.25,{int(i * 7 % 3 == 0)},{int(i * 7 % 3 == 1)},{int(i * 7 % 3 == 2)}" for i in range(60)]
        self.write("ports.csv", ["a,b,port_C,port_Q,port_S", *rows])
        for answer, expected in ((b"", 'labels: ["port_C", "port_Q", "port_S"]'), (b"no", 'labels: ["b"]')):
            written = self.asked("ports.csv", "Exactly one of columns port_C, port_Q, port_S is 1 in each row. Are they the classes to predict?", answer)
            self.assertIn(expected, written)
            self.assertNotIn("# assumed", written)


class SeparateLabels(FormsTest):
    """Features in one file, labels in the other: the commands of the message join them."""

    def har(self, begin, rows, end="\n"):
        """As the UCI repository has "Human Activity Recognition": numbers in columns of a width, labels from 1."""
        source = random.Random(rows)
        for part, text in (("X", "".join("".join(f"{source.uniform(-1, 1): 17.7e}" for _ in range(5)) + end for _ in range(rows))),
                           ("y", "".join(f"{i * 5 % 7 % 6 + 1}{end}" for i in range(rows)))):
            path = self.folder / begin.replace("PART", part)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())

    def test_folders_of_sets(self):
        for number, end in enumerate(("\n", "\r\n")):
            self.har(f"UCI HAR {number}/train/PART_train.txt", 84, end)
            self.har(f"UCI HAR {number}/test/PART_test.txt", 42, end)
            (self.folder / f"UCI HAR {number}" / "train" / "Inertial Signals").mkdir()
            out = self.follow(f"UCI HAR {number}", "has no labels: y_train.txt next to it has one for each of its rows")
            self.assertIn("84 samples for training, each 5; predicted: column 5 (from 0), 6 classes", out)
            self.assertIn(f'eval: {{path: "UCI HAR {number}/test.txt"}}', (self.folder / "net.yaml").read_text(encoding="utf-8"))
            joined = [line.split() for line in (self.folder / f"UCI HAR {number}" / "test.txt").read_text(encoding="utf-8").splitlines()]
            features, labels = ([line.split() for line in (self.folder / f"UCI HAR {number}" / "test" / f"{part}_test.txt").read_text(encoding="utf-8").splitlines()]
                                for part in "Xy")
            self.assertEqual(joined, [x + y for x, y in zip(features, labels)])

    def test_a_folder_of_files(self):
        for part, rows in (("train", 60), ("test", 30)):
            self.har(f"PART_{part}.txt", rows)
        self.assertIn("60 samples for training", self.follow(".", "y_train.txt next to it"))
        self.assertIn("60 samples for training", self.follow("X_train.txt", "y_train.txt next to it"))
        self.assertTrue((self.folder / "new_train.txt").exists(), "what exists is not replaced")

    def test_tables_with_names_in_both_or_in_one_of_them(self):
        rows = self.rows()
        for number, (x, y) in enumerate(((["a,b"], ["kind"]), (["a,b"], []), ([], []))):
            self.write(f"{number}/features.csv", [*x, *(row.rsplit(",", 1)[0] for row in rows)])
            self.write(f"{number}/labels.csv", [*y, *(row.rsplit(",", 1)[1] for row in rows)])
            out = self.follow(f"{number}/features.csv", "has no labels: labels.csv")
            self.assertRegex(out, "48 samples for training, each 2; predicted: (kind|label|column 2 .from 0.), 2 classes")
            self.assertEqual([line for line in (self.folder / str(number) / "joined.csv").read_text(encoding="utf-8").splitlines() if line[0] != "a"], rows)

    def test_files_that_are_no_labels(self):
        """A list of names of labels has another number of lines; a label that is named is there."""
        self.write("a/data.csv", self.rows())
        self.write("a/labels.csv", ["cat", "dog"])
        self.assertIn("2 classes", self.new("a/data.csv").out)
        self.write("b/data.csv", ["a,b,label", *self.rows()])
        self.write("b/labels.csv", ["other", *(str(i % 5) for i in range(60))])
        self.assertIn("predicted: label, 2 classes", self.new("b/data.csv").out)
        self.write("c/data.csv", self.rows())
        self.write("c/labels.csv", [str(i % 5) for i in range(60)])
        self.assertIn("2 classes", self.new("c/data.csv", "--labels", "2").out, "somebody said so")


class LeftOvers(FormsTest):
    def test_folders_and_files_that_other_programs_leave_are_no_classes_and_no_samples(self):
        for i in range(20):
            for j, kind in enumerate(("cat", "dog")):
                path = self.folder / "pets" / kind / f"{i}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(PNG[j])
        clean = self.new("pets").out
        self.assertIn("2 folders of images; 32 samples", clean)
        for folder in (".ipynb_checkpoints", "__MACOSX", "@eaDir"):
            (self.folder / "pets" / folder).mkdir()
            shutil.copy(self.folder / "pets" / "cat" / "0.png", self.folder / "pets" / folder / "0.png")
        for name in ("._0.png", ".DS_Store", "Thumbs.db", "desktop.ini"):
            (self.folder / "pets" / "cat" / name).write_bytes(b"nothing")
        self.assertEqual(self.new("pets").out, clean)
        self.lockstep("train", "net.yaml", "--run-dir", "run", "--steps", 1, "--quiet", cwd=self.folder)
        self.assertEqual((self.folder / "run" / "classes.txt").read_text(encoding="utf-8").split(), ["cat", "dog"])

    def test_sets_of_other_classes_are_not_used(self):
        for part, kinds in (("train", ("cat", "dog")), ("test", ("cat", "cow"))):
            for kind in kinds:
                for i in range(20):
                    path = self.folder / "pets" / part / kind / f"{i}.png"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(PNG[i % 2])
        result = self.new("pets")
        self.assertRegex(result.out, 'assumed: "pets/test" is not used for evaluation')
        self.assertIn("2 classes", result.out)
        self.lockstep("check", "net.yaml", cwd=self.folder)


if __name__ == "__main__":
    main()

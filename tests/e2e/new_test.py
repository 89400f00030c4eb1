# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""lockstep new: the configuration that it writes trains above a stated accuracy without an edit, on each data set at hand (those that do
not ship with the project: in LOCKSTEP_EXTRA_DATA, otherwise skipped), and on small files of other forms."""
import io
import json
import math
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import unittest
import zipfile

from lockstep_run import DIGITS_DATA, PROGRAM, SOURCE, LockstepTest, main, on_a_terminal, records

EXTRA = pathlib.Path(os.environ["LOCKSTEP_EXTRA_DATA"] or "/nonexistent")
CONFIG, DATA = 2, 3


class NewTest(LockstepTest):
    def new(self, data, *options):
        result = self.lockstep("new", data, "--output", "net.yaml", *options, cwd=self.folder)
        self.assertIn("Written to net.yaml", result.out)
        return (self.folder / "net.yaml").read_text(encoding="utf-8")

    def trained(self, data, *options, ranks=None, limit=400):
        """The last evaluation of a run with the configuration for `data`, as it was written."""
        self.new(data, *options)
        self.lockstep("check", "net.yaml", cwd=self.folder)
        self.lockstep("train", "net.yaml", "--run-dir", "run", "--quiet", ranks=ranks, cwd=self.folder, limit=limit)
        return records(self.folder / "run", "eval")[-1]

    def write_rows(self, name, header, rows):
        (self.folder / name).write_text("\n".join([*([header] if header else []), *rows]) + "\n", encoding="utf-8")
        return name


class DataSetsAtHand(NewTest):
    def test_digits_reach_97_percent(self):
        shutil.copy(DIGITS_DATA, self.folder)
        evaluation = self.trained("digits.csv.gz", "--epochs", 10, ranks=2)
        self.assertGreaterEqual(evaluation["accuracy"], 0.97, evaluation)
        text = (self.folder / "net.yaml").read_text(encoding="utf-8")
        self.assertIn("shape: [8, 8, 1]", text)
        self.assertIn("units: 10}", text)

    @unittest.skipUnless((EXTRA / "mnist").is_dir(), "no folder mnist in LOCKSTEP_EXTRA_DATA")
    def test_mnist_reaches_95_percent(self):
        evaluation = self.trained(EXTRA / "mnist", "--epochs", 2)
        self.assertGreaterEqual(evaluation["accuracy"], 0.95, evaluation)

    @unittest.skipUnless((EXTRA / "cifar10-subset.h5").is_file(), "no file cifar10-subset.h5 in LOCKSTEP_EXTRA_DATA")
    def test_cifar10_reaches_40_percent(self):
        evaluation = self.trained(EXTRA / "cifar10-subset.h5", "--epochs", 2)
        self.assertGreaterEqual(evaluation["accuracy"], 0.40, evaluation)

    @unittest.skipUnless((EXTRA / "reuters21578-modapte.tsv.gz").is_file(), "no file reuters21578-modapte.tsv.gz in LOCKSTEP_EXTRA_DATA")
    def test_reuters_reaches_an_f1_of_half(self):
        evaluation = self.trained(EXTRA / "reuters21578-modapte.tsv.gz", "--epochs", 4)
        self.assertGreaterEqual(evaluation["f1"], 0.5, evaluation)

    @unittest.skipUnless((EXTRA / "tinyshakespeare.txt").is_file(), "no file tinyshakespeare.txt in LOCKSTEP_EXTRA_DATA")
    def test_shakespeare_predicts_40_percent_of_the_characters(self):
        evaluation = self.trained(EXTRA / "tinyshakespeare.txt", "--epochs", 2)
        self.assertGreaterEqual(evaluation["accuracy"], 0.40, evaluation)


class OtherForms(NewTest):
    def test_a_table_with_names_texts_and_missing_values(self):
        source = random.Random(1)
        rows = []
        for _ in range(300):
            kind, size = source.choice(["red", "blue"]), source.uniform(0, 1)
            label = "large" if (size > 0.5) == (kind == "red") else "small"
            rows.append(f"{kind},{'' if source.random() < 0.02 else f'{size:.3f}'},{label}")
        evaluation = self.trained(self.write_rows("things.csv", "colour,size,species", rows), "--epochs", 40)
        self.assertGreaterEqual(evaluation["accuracy"], 0.85, evaluation)
        text = (self.folder / "net.yaml").read_text(encoding="utf-8")
        for expected in ("header: true", 'labels: ["species"]', "classes: auto", 'categories: {"colour": auto}', 'missing: {"size": 0.'):
            self.assertIn(expected, text)

    def test_numbers_to_predict(self):
        source = random.Random(2)
        rows = []
        for _ in range(300):
            x, y = source.uniform(-1, 1), source.uniform(-1, 1)
            rows.append(f"{x:.4f};{y:.4f};{x - 2 * y:.4f}")
        evaluation = self.trained(self.write_rows("line.csv", "", rows), "--epochs", 40)
        self.assertGreaterEqual(evaluation["r2"], 0.9, evaluation)

    def test_large_numbers_to_predict(self):
        source = random.Random(5)
        rows = []
        for _ in range(300):
            area, rooms = source.uniform(30, 150), source.randint(1, 6)
            rows.append(f"{area:.1f},{rooms},{round(3000 * area + 10000 * rooms)}")
        evaluation = self.trained(self.write_rows("prices.csv", "area,rooms,price", rows), "--epochs", 40)
        self.assertGreaterEqual(evaluation["r2"], 0.9, evaluation)
        self.assertLess(evaluation["root_mean_squared_error"], 40000, "in the unit of the labels")

    def test_a_table_as_people_have_them(self):
        """Row numbers, dates, free texts, missing texts and numbers, classes that do not begin with 0."""
        source = random.Random(6)
        rows = []
        for i in range(120):
            cabin, age = source.choice(["", "", "C85", "E46"]), source.choice(["", "22", "38.5"])
            rows.append(f'{i + 1},2024-01-{i % 30 + 1:02},"Braund, Mr. {i}",{cabin},{age},same,{i % 3 + 1}')
        data = self.write_rows("people.csv", "PersonId,day,name,cabin,age,ship,group", rows)
        result = self.lockstep("new", data, "--output", "net.yaml", cwd=self.folder)
        for expected in ("predicted: group, 3 classes", "left out: column PersonId: numbers the rows", "left out: column name: texts of too many",
                         "left out: column ship: one text"):
            self.assertIn(expected, result.out)
        text = (self.folder / "net.yaml").read_text(encoding="utf-8")
        for expected in ('missing: {"cabin": missing, "age": 3', 'ignore: ["PersonId", "name", "ship"]', "classes: auto", "units: 3}"):
            self.assertIn(expected, text)
        self.lockstep("train", "net.yaml", "--run-dir", "run", "--steps", 2, cwd=self.folder)
        self.assertEqual((self.folder / "run" / "classes.txt").read_text(encoding="utf-8").split(), ["1", "2", "3"])
        # A value that is missing for the first time far below is found, too.
        self.write_rows("people.csv", "a,group", [*[f"{i % 7},{i % 2}" for i in range(700)], ",1"])
        self.assertIn('missing: {"a": ', self.new("people.csv", "--force"))

    def test_the_first_line_of_texts(self):
        """It names the columns only where it is unlike the others."""
        rows = [f"{'red' if i % 2 else 'blue'},{'large' if i % 3 else 'small'}" for i in range(60)]
        self.assertIn("header: true", self.new(self.write_rows("named.csv", "colour,size", rows), "--force"))
        self.assertNotIn("header", self.new(self.write_rows("plain.csv", "", rows), "--force"))
        prose = [f"{'train' if i < 50 else 'test'}\ttopic{i % 50 % 13}\ta longer text about the subject number {i}" for i in range(80)]
        text = self.new(self.write_rows("prose.tsv", "train\tcocoa\ta first text about another subject", prose), "--force")
        self.assertIn("text_column: 2", text)

    def test_tables_with_mistakes(self):
        good = [f"{i * 37 % 101}.5,{i % 2}" for i in range(100)]
        for name, header, rows, pattern in (
                ("mistake", "a,label", [*good, "12x,1"], r"line 102: column a: '12x' is no number, but 100 other rows have numbers"),
                ("commas", "a;b;label", [f"{i},5;{i * 2}.25;{i % 2}" for i in range(60)], r"column a: '0,5' has a decimal comma\n  .*decimal point"),
                ("prose", "text,label", [f"a text that is like no other {i},{i % 2}" for i in range(60)], "no column has numbers or categories"),
                ("one", "a,label", [f"{i},0" for i in range(60)], "all labels are the same class"),
                ("none", "a,label", [*good, "1,"], r"column label has no value in 1 of 101 rows")):
            result = self.lockstep("new", self.write_rows(f"{name}.csv", header, rows), code=DATA, cwd=self.folder)
            self.assert_one_error(result, DATA, pattern)
        (self.folder / "wide.csv").write_text("a,label\n" + "\n".join(good), encoding="utf-16")
        self.assert_one_error(self.lockstep("new", "wide.csv", code=DATA, cwd=self.folder), DATA, "wide.csv: is a text in UTF-16")

    def test_all_classes_count_also_those_of_the_evaluation_set(self):
        """The last class has one sample, which may be in either part."""
        for rare in (3, 20, 44):
            rows = [f"{i},{4 if i == rare else i % 4}" for i in range(50)]
            self.assertIn("units: 5}", self.new(self.write_rows("rare.csv", "a,label", rows), "--force"))
            self.lockstep("check", "net.yaml", cwd=self.folder)

    def test_folders_of_texts(self):
        source = random.Random(3)
        for name, words in (("ham", "lunch meeting friend report"), ("spam", "money winner prize free")):
            (self.folder / "mails" / name).mkdir(parents=True)
            for i in range(60):
                text = " ".join(source.choice((words + " the a of and").split()) for _ in range(20))
                (self.folder / "mails" / name / f"{i}.txt").write_text(text, encoding="utf-8")
        evaluation = self.trained("mails", "--epochs", 5)
        self.assertGreaterEqual(evaluation["accuracy"], 0.9, evaluation)

    def test_json_lines_with_named_fields(self):
        source = random.Random(4)
        rows = []
        for _ in range(200):
            x = [source.uniform(-1, 1) for _ in range(4)]
            rows.append(json.dumps({"values": x, "kind": int(sum(x) > 0)}))
        data = self.write_rows("data.jsonl", "", rows)
        result = self.lockstep("new", data, code=DATA, cwd=self.folder)
        self.assertIn("--features NAME --labels NAME", result.err)
        self.assertIn("Fields: values, kind", result.err)
        evaluation = self.trained(data, "--features", "values", "--labels", "kind", "--epochs", 40)
        self.assertGreaterEqual(evaluation["accuracy"], 0.85, evaluation)

    def test_json_lines_of_texts(self):
        source = random.Random(7)
        words = {"gut": ["großartig", "schön", "聪明", "отлично"], "schlecht": ["übel", "hässlich", "糟糕", "плохо"]}
        rows = []
        for i in range(200):
            kind = source.choice(list(words))
            text = " ".join(source.choice([*words[kind], "das", "Buch", "😀"]) for _ in range(source.randint(6, 15)))
            rows.append(json.dumps({"id": i, "text": text, "label": kind}, ensure_ascii=i % 2 == 0))
        evaluation = self.trained(self.write_rows("reviews.jsonl", "", rows), "--epochs", 15)
        self.assertGreaterEqual(evaluation["accuracy"], 0.85, evaluation)
        self.assertEqual((self.folder / "run" / "classes.txt").read_text(encoding="utf-8").split(), ["gut", "schlecht"])
        self.lockstep("predict", "run", "--input", "reviews.jsonl", "--output", "out.csv", cwd=self.folder)
        self.assertEqual((self.folder / "out.csv").read_text(encoding="utf-8").splitlines()[0], "id,class,class_name,probability_gut,probability_schlecht")
        self.write_rows("broken.jsonl", "", [*rows, '{"id": 7, "text": "abc'])
        self.assert_one_error(self.lockstep("new", "broken.jsonl", code=DATA, cwd=self.folder), DATA, "broken.jsonl, line 201: is no JSON object")
        self.write_rows("other.jsonl", "", [*rows, '{"id": 7, "label": "gut"}'])
        self.assert_one_error(self.lockstep("new", "other.jsonl", code=DATA, cwd=self.folder), DATA, "line 201: has no field 'text'")


class Arrays(NewTest):
    def test_samples_without_an_axis_of_channels(self):
        """Volumes and pictures of bytes get convolutions and a channel; bands, colours and rows of numbers stay as they are."""
        for shape, kind, first, net in (((28, 20), "|u1", "reshape: {shape: [28, 20, 1]}", "conv2d"), ((12, 12, 12), "|u1", "reshape: {shape: [12, 12, 12, 1]}", "conv3d"),
                                        ((10, 20, 18), "<f4", "reshape: {shape: [10, 20, 18, 1]}", "conv3d"), ((16, 16, 13), "|u1", "conv2d:", "conv2d"),
                                        ((12, 9), "<f4", "flatten", "dense"), ((64, 8), "|u1", "flatten", "dense")):
            with self.subTest(shape), zipfile.ZipFile(self.folder / "arrays.npz", "w") as file:
                for name, extents, form, values in (("x", (40, *shape), kind, None), ("y", (40,), "<i4", struct.pack("<40i", *(i % 3 for i in range(40))))):
                    head = repr({"descr": form, "fortran_order": False, "shape": extents})
                    head += " " * (-(len(head) + 11) % 64) + "\n"
                    data = values or bytes(40 * math.prod(shape) * int(form[-1]))
                    file.writestr(f"{name}.npy", b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head.encode() + data)
                file.close()
                text = self.new("arrays.npz", "--features", "x", "--labels", "y", "--force")
                self.assertRegex(text, rf"layers:\n    - {re.escape(first)}")
                self.assertEqual("normalize: all" in text, "reshape" in text)
                self.assertIn("batch_size: 16 ", text, "few samples")
                self.assertIn(f" {net} ", self.lockstep("check", "net.yaml", cwd=self.folder).out)


class DigitsInOtherForms(NewTest):
    """The digits that ship, as other programs have them."""

    def images(self):
        subprocess.run([sys.executable, SOURCE / "examples" / "generate_digit_images.py", self.folder / "images"], check=True, capture_output=True)
        return sorted((self.folder / "images" / "train").glob("*/*.png"), key=lambda file: file.stem)

    def test_arrays_of_numpy_and_tfrecords(self):
        for ending in ("npz", "tfrecord"):
            self.lockstep("convert", SOURCE / "examples" / "digits.yaml", self.folder / f"digits.{ending}")
            evaluation = self.trained(f"digits.{ending}", "--features", "features", "--labels", "labels", "--epochs", 10, "--force")
            self.assertGreaterEqual(evaluation["accuracy"], 0.93, evaluation)
            shutil.rmtree(self.folder / "run")

    def test_folders_of_small_grey_images(self):
        self.assertEqual(len(self.images()), 1500)
        evaluation = self.trained("images/train", "--epochs", 4, ranks=2)
        self.assertGreaterEqual(evaluation["accuracy"], 0.93, evaluation)
        text = (self.folder / "net.yaml").read_text(encoding="utf-8")
        self.assertIn("size: [16, 16]", text)
        self.assertIn("channels: 1 ", text)
        (self.folder / "images" / "train" / "eight" / "0000.png").write_bytes(b"no image")
        result = self.lockstep("new", "images/train", "--output", "net.yaml", "--force", cwd=self.folder)
        self.assertRegex(result.out, r"1 of 150[01] records? (is|are) bad and left out: .*eight/0000.png")
        self.assertIn("bad_records: skip", (self.folder / "net.yaml").read_text(encoding="utf-8"))
        self.lockstep("check", "net.yaml", cwd=self.folder)
        for image in (self.folder / "images" / "train" / "nine").iterdir():
            image.write_bytes(b"no image")
        self.assert_one_error(self.lockstep("new", "images/train", code=DATA, cwd=self.folder), DATA, "images/train/")

    def test_a_tar_archive_of_images(self):
        files = self.images()
        names = sorted({file.parent.name for file in files})
        with tarfile.open(self.folder / "digits.tar", "w") as archive:
            for file in files:
                archive.add(file, f"{file.stem}.png")
                label = tarfile.TarInfo(f"{file.stem}.cls")
                number = str(names.index(file.parent.name)).encode()
                label.size = len(number)
                archive.addfile(label, io.BytesIO(number))
        evaluation = self.trained("digits.tar", "--epochs", 4)
        self.assertGreaterEqual(evaluation["accuracy"], 0.93, evaluation)
        self.assertIn("size: [16, 16]", (self.folder / "net.yaml").read_text(encoding="utf-8"))
        with tarfile.open(self.folder / "texts.tar", "w") as archive:
            archive.add(self.folder / "net.yaml", "a.txt")
        self.assert_one_error(self.lockstep("new", "texts.tar", code=DATA, cwd=self.folder), DATA, "no .jpg or .png images")


class Answers(NewTest):
    def test_mistakes(self):
        shutil.copy(DIGITS_DATA, self.folder)
        self.assertIn("DATA is missing", self.lockstep("new", code=CONFIG, cwd=self.folder).err)
        self.assertIn("does not exist", self.lockstep("new", "nothing.csv", code=DATA, cwd=self.folder).err)
        self.assertIn("has no column 'price'", self.lockstep("new", "digits.csv.gz", "--labels", "price", code=DATA, cwd=self.folder).err)
        (self.folder / "net.yaml").write_text("mine\n", encoding="utf-8")
        result = self.lockstep("new", "digits.csv.gz", "--output", "net.yaml", code=CONFIG, cwd=self.folder)
        self.assertIn("the file exists", result.err)
        self.assertEqual((self.folder / "net.yaml").read_text(encoding="utf-8"), "mine\n")
        self.new("digits.csv.gz", "--force")
        (self.folder / "strange.xyz").write_text("x", encoding="utf-8")
        self.assertIn("'.xyz' are not known", self.lockstep("new", "strange.xyz", code=DATA, cwd=self.folder).err)
        self.assertFalse((self.folder / "strange.yaml").exists())

    def test_the_questions_on_a_terminal(self):
        shutil.copy(DIGITS_DATA, self.folder)
        # A wrong answer to the first and the fourth question is asked again.
        code, shown = on_a_terminal(self.folder, ["new"], b"nothing.csv\ndigits.csv.gz\n\n0.25\nhuge\nmedium\nasked.yaml\n")
        self.assertEqual(code, 0, shown)
        for number in range(1, 6):
            self.assertIn(f"{number}. ", shown)
        self.assertIn("There is no such file or folder.", shown)
        self.assertIn("Answer small, medium or large.", shown)
        written = (self.folder / "asked.yaml").read_text(encoding="utf-8")
        self.assertIn("holdout: 0.25", written)
        self.assertIn("filters: 64", written)

    def test_without_a_terminal_nothing_is_asked(self):
        shutil.copy(DIGITS_DATA, self.folder)
        done = subprocess.run([PROGRAM, "new", "digits.csv.gz"], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("1. ", done.stdout)
        written = (self.folder / "digits.yaml").read_text(encoding="utf-8")
        self.assertEqual(self.lockstep("new", "digits.csv.gz", "--output", "-", cwd=self.folder).out, written)
        self.assertFalse((self.folder / "-").exists())


if __name__ == "__main__":
    main()

# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""JSON lines, TFRecord and tar archives as other programs write them: missing values, texts as classes, and what is no such record."""
import io
import json
import struct
import sys
import tarfile
import zlib

from lockstep_run import SOURCE, main
from read_values import ValuesTest, needs_numpy, numpy

sys.path.insert(0, str(SOURCE / "tests" / "vectors"))
if numpy is not None:
    from make_record_vectors import byte_list, example, field, float_list, framed, int64_list

RUN = """
seed: 1
data: {%s}
model:
  layers: [{dense: {units: 3}}]
  loss: softmax_cross_entropy
optimizer: {gradient_descent: {learning_rate: 0.01}}
train: {batch_size: 8, epochs: 1}
"""
NAMES = ["cat", "ant", "bär"]


@needs_numpy
class RecordFormsTest(ValuesTest):
    def lines(self, records, name="t.jsonl"):
        (self.folder / name).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")

    def records(self, examples, name="t.tfrecord"):
        (self.folder / name).write_bytes(b"".join(framed(one) for one in examples))

    def test_missing_numbers_of_json_lines(self):
        nan = float("nan")
        records = [{"z": 1}, {"x": [1, None], "z": 2}, {"x": [nan, 4], "z": None}, {"x": None, "z": 5}, {"x": [7, 8], "z": nan, "t": 'a "NaN" b'}]
        self.lines(records)
        data = "format: jsonl, path: t.jsonl, features: [x, z]"

        def filled(x, z):
            rows = [[*(record.get("x") or [None, None]), record.get("z")] for record in records]
            table = numpy.array(rows, dtype="f8")
            return numpy.where(numpy.isnan(table), [x, x, z], table)
        self.assert_values(data + ", missing: 0", filled(0, 0))
        self.assert_values(data + ", missing: {x: -1, z: 0.5}", filled(-1, 0.5))
        self.refused(data, "line 1: has no field 'x'.*option missing")
        self.refused(data + ", missing: {x: 1}", "line 3: field 'z' is null.*option missing")
        self.refused(data + ", missing: {y: 1}", "names 'y', which is no feature.*x, z", code=2)
        self.refused(data + ", missing: none", "must be error, a finite number, or a map", code=2)

    def test_numbers_that_json_does_not_have_are_named_with_their_line(self):
        for word in ("NaN", "Infinity", "-Infinity"):
            (self.folder / "t.jsonl").write_text('{"x": [1, 2]}\n{"x": [3, %s]}\n' % word, encoding="ascii")
            data = "format: jsonl, path: t.jsonl, features: x"
            text = self.refused(data, rf"line 2, column \d+: has {word}, which is no number of JSON")
            if word == "NaN":
                self.assertIn("missing", text)
                self.assert_values(data + ", missing: 9", [[1, 2], [3, 9]])
            else:
                self.refused(data + ", missing: 9", rf"has {word}")

    def test_a_missing_label_is_an_error(self):
        for label in (None, float("nan")):
            self.lines([{"x": 1, "y": 0}, {"x": 2, "y": label}])
            self.refused("format: jsonl, path: t.jsonl, features: x, labels: y, missing: 0", "line 2.*(is null|has no field|label is needed)")
        self.lines([{"x": 1, "y": 0}, {"x": 2}])
        self.refused("format: jsonl, path: t.jsonl, features: x, labels: y, missing: 0", "line 2: has no field 'y'")

    def test_missing_steps_of_sequences(self):
        self.lines([{"x": [1, None, 3]}, {"x": [None]}])
        self.assert_values("format: jsonl, path: t.jsonl, features: x, pad_to: 4, pad_value: -9, missing: 0.5", [[1, 0.5, 3, -9], [0.5, -9, -9, -9]], None, "--transforms")

    def test_missing_features_of_records(self):
        self.records([example(y=int64_list([0])), example(x=float_list([1, 2])), example(x=field(2, b"")), example(x=float_list([5, 6]))])
        data = "format: tfrecord, path: t.tfrecord, features: x"
        self.assert_values(data + ", missing: 0.5", [[0.5, 0.5], [1, 2], [0.5, 0.5], [5, 6]])
        self.refused(data, "record 0: has no feature 'x'")
        self.records([example(x=int64_list([1, 2])), example()])
        self.assert_values(data + ", missing: -3", [[1, 2], [-3, -3]])
        self.refused(data + ", missing: 0.5", "is 0.5, but the feature holds int64", code=2)
        self.records([example(x=byte_list(b"ab")), example()])
        self.refused(data + ", missing: 0", "is about numbers, but the feature holds bytes", code=2)

    def assert_classes(self, data, file, write):
        """Sorted as Python sorts bytes; learned from the training set, kept in the checkpoint."""
        y = numpy.random.default_rng(1).integers(0, 3, 40)
        y[:3] = range(3)
        x = numpy.arange(80).reshape(40, 2)
        classes = sorted(NAMES, key=str.encode)
        indices = [classes.index(NAMES[i]) for i in y]
        write(x, [NAMES[i] for i in y], file)
        self.assert_values(data, x, indices)
        self.assert_values(data + f", classes: [{', '.join(NAMES)}]", x, y)
        write(x[:20], [classes[1 + i % 2] for i in range(20)], "eval-" + file)
        write(x[:2], ["dog", "cat"], "other-" + file)
        config = self.folder / "run.yaml"
        config.write_text(RUN % f"{data}, eval: {{path: eval-{file}}}", encoding="utf-8")
        self.train("run", config=config)
        run = self.folder / "run"
        self.assertEqual((run / "classes.txt").read_text(encoding="utf-8").split(), classes)
        before = self.lockstep("evaluate", run).out
        (self.folder / file).unlink()
        self.assertEqual(json.loads(self.lockstep("evaluate", run).out)["loss"], json.loads(before)["loss"])
        result = self.start("predict", run, "--input", self.folder / ("other-" + file), "--output", self.folder / "o.h5").wait()
        self.assert_one_error(result, 3, r"the label 'dog' is none of the\s+3\s+classes")

    def test_texts_of_json_lines_are_classes(self):
        self.assert_classes("format: jsonl, path: t.jsonl, features: x, labels: y", "t.jsonl",
                            lambda x, y, name: self.lines([{"x": a.tolist(), "y": b} for a, b in zip(x, y)], name))
        self.lines([{"x": 1, "y": "a"}, {"x": 2, "y": 3}])
        self.refused("format: jsonl, path: t.jsonl, features: x, labels: y", "field 'y' is no text.*all names of classes, or all numbers")

    def test_texts_of_records_are_classes(self):
        self.assert_classes("format: tfrecord, path: t.tfrecord, features: x, labels: y", "t.tfrecord",
                            lambda x, y, name: self.records([example(x=float_list(a.tolist()), y=byte_list(b.encode())) for a, b in zip(x, y)], name))

    def test_a_sequence_example_is_named(self):
        lists = field(1, field(1, b"frames") + field(2, field(1, float_list([1, 2]))))
        sequence = field(2, lists)
        context = example(y=int64_list([1]))
        self.records([context + sequence])
        self.refused("format: tfrecord, path: t.tfrecord, features: frames", "is a tf.SequenceExample.*no feature 'frames'; its lists are: frames.*Write tf.Example")
        self.assert_values("format: tfrecord, path: t.tfrecord, features: y", [1])
        self.records([context])
        self.assertNotIn("Sequence", self.refused("format: tfrecord, path: t.tfrecord, features: x", "has no feature 'x'"))

    def test_lines_in_another_encoding(self):
        (self.folder / "t.jsonl").write_bytes('{"x": 1}\n'.encode("utf-16"))
        self.refused("format: jsonl, path: t.jsonl, features: x", r"is a text in UTF-16.*iconv -f UTF-16 -t UTF-8 \S*t\.jsonl > \S*t\.utf8\.jsonl")

    def tar(self, names):
        """A picture of one pixel, or the number of a class, for each name."""
        def chunk(name, data):
            return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        png = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
               + chunk(b"IDAT", zlib.compress(b"\0\7")) + chunk(b"IEND", b""))
        with tarfile.open(self.folder / "t.tar", "w") as archive:
            for name in names:
                data = png if name.endswith("png") else b"1"
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))

    def test_members_of_archives_that_do_not_follow_each_other(self):
        self.tar(["a.png", "b.png", "a.cls", "b.cls"])
        data = "format: webdataset, path: t.tar"
        self.refused(data, "sample a: its members do not follow each other in the archive: they end with .png, .cls.*tar --sort=name")
        self.tar(["a.png", "b.png", "b.cls"])
        self.assertNotIn("follow", self.refused(data, "sample a: has no label: its members end with .png"))

    def test_names_of_members_with_dots(self):
        self.tar(["a.b.png", "a.b.cls"])
        data = "format: webdataset, path: t.tar"
        self.refused(data, r"has no image: its members end with .b.png, .b.cls. In WebDataset, the first dot of a name ends the key: 'b.png' is the extension of 'a.b.png'")
        self.assertEqual(self.values(data + ", image: b.png, labels: b.cls")[1].tolist(), [1])
        self.tar([f"img.{i:03}.png" for i in range(30)])
        self.refused(data + ", labels: null", r"\.009\.png and 20 more\. In WebDataset")


if __name__ == "__main__":
    main()

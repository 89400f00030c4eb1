# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""lockstep data: what it says about sets, its pictures, and what it finds."""
import json
import struct
import zlib

from lockstep_run import DIGITS_DATA, SOURCE, LockstepTest, main

DIGITS = SOURCE / "examples" / "digits.yaml"


def size_of_png(data):
    """Width and height; every chunk has its checksum."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, kinds = 8, []
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(kind + body)
        kinds.append(kind)
        if kind == b"IHDR":
            size = struct.unpack(">II", body[:8])
        at += 12 + length
    assert kinds[-1] == b"IEND"
    return size


class DataCommandTest(LockstepTest):
    def test_it_prints_values_labels_and_rates_of_both_sets(self):
        out = self.lockstep("data", DIGITS).out
        for pattern in (r"training set: 1500 samples of 8x8x1 float32", r"first sample .*digits.csv.gz, line 1\n",
                        r"values +0 to 1, mean 0\.3\d+, standard deviation 0\.37", r"labels +10 classes", r"evaluation set: 297 samples",
                        r"one thread +\d+ samples/s"):
            self.assertRegex(out, pattern)
        self.assertNotIn("look at this", out, "nothing is wrong with the digits")
        counts = [int(line.split()[1]) for line in out.splitlines() if line.endswith("#")]
        self.assertEqual(sum(counts), 1797)

    def test_pictures_before_and_after_transforms(self):
        sheet = self.folder / "digits.png"
        transforms = "data.transforms=[random_crop: {padding: 1}, resize: {size: 24}]"
        out = self.lockstep("data", DIGITS, "--png", sheet, "--set", transforms, "--show", 2).out
        self.assertIn("transformed to 24x24x1", out)
        self.assertRegex(out, "with the transforms")
        # 8 columns; 4 rows of stored and 4 of transformed samples per set, 48 pixels each, borders of 4.
        self.assertEqual(size_of_png(sheet.read_bytes()), (8 * 52 + 4, 16 * 52 + 4))
        self.assertRegex(out, r"(?m)^[ .:\-=+*#%@]{33,34}$", "two digits in characters")

    def test_it_finds_what_is_wrong(self):
        digits = "data.eval.rows=[1000, 1100]"
        out = self.lockstep("data", DIGITS, "--set", digits).out
        self.assertRegex(out, "look at this: 100 samples of the evaluation set are in the training set, too, for example .*line 1001")
        out = self.lockstep("data", DIGITS, "--set", "data.scale=1").out
        self.assertRegex(out, r"look at this: .*normalise them: normalize: channels in section data")
        rows = DIGITS_DATA.parent / "digits.csv.gz"
        import gzip
        lines = gzip.open(rows, "rt").read().splitlines()
        few = [line for line in lines if not line.endswith(",3")][:300] + [line for line in lines if line.endswith(",3")][:2]
        (self.folder / "few.csv").write_text("\n".join(few) + "\n")
        out = self.lockstep("data", DIGITS, "--set", f"data.path={self.folder}/few.csv", "--set", "data.train.rows=null", "--set", "data.eval=null").out
        self.assertRegex(out, r"look at this: class \d has \d+ samples, class 3 has 2: accuracy says little")

    def test_a_table_is_told_by_its_columns_and_a_part_by_its_own_samples(self):
        rows = [f"{i},{'ab'[i % 2]},7,{i % 2}" for i in range(50)]
        (self.folder / "table.csv").write_text("number,kind,still,label\n" + "\n".join(rows) + "\n")
        config = self.folder / "table.yaml"
        config.write_text("data: {format: csv, path: table.csv, header: true, labels: label, classes: auto, categories: {kind: auto}, holdout: 0.2, eval: {}}\n")
        out = self.lockstep("data", config).out
        for pattern in (r"(?m)^    column number    +0 to 49", r"(?m)^    column kind = a  +0 to 1,", r"look at this: column still of the training set is 7 everywhere"):
            self.assertRegex(out, pattern)
        found = json.loads(self.lockstep("data", config, "--json").out)["sets"]
        self.assertEqual([channel["name"] for channel in found[0]["values"]["channels"]], ["number", "kind = a", "kind = b", "still"])
        self.assertEqual(len({part["first_sample"] for part in found}), 2, "each part of the file begins with a sample of its own")

    def test_json_has_what_the_text_has(self):
        sheet = self.folder / "digits.png"
        transforms = "data.transforms=[resize: {size: 24}]"
        found = json.loads(self.lockstep("data", DIGITS, "--json", "--set", transforms, "--set", "data.eval.rows=[1000, 1100]", "--png", sheet).out)
        train, evaluation = found["sets"]
        self.assertEqual((train["set"], train["samples"], train["looked_at"], train["shape"], train["transformed_shape"], train["type"]),
                         ("train", 1500, 1500, [8, 8, 1], [24, 24, 1], "float32"))
        self.assertEqual((train["values"]["min"], train["values"]["max"], train["bytes"]), (0, 1, 1500 * 65 * 4))
        self.assertAlmostEqual(train["values"]["mean"], 0.3055, delta=1e-3)
        self.assertEqual(sum(c["samples"] for c in evaluation["labels"]["classes"]), 100)
        self.assertGreater(train["samples_per_second"], train["transformed_per_second"])
        self.assertEqual(len(found["findings"]), 1, found["findings"])
        self.assertRegex(found["findings"][0], "100 samples of the evaluation set are in the training set")
        self.assertTrue(sheet.exists())

    def test_mistakes(self):
        result = self.lockstep("data", DIGITS, "--set", "data.path=none.csv", code=3)
        self.assert_one_error(result, 3, "none.csv")
        (self.folder / "rows.csv").write_text("1,2,0\n3,4,1\n")
        result = self.lockstep("data", DIGITS, "--set", f"data.path={self.folder}/rows.csv", "--set", "data.shape=[2]", "--set", "data.train.rows=null",
                               "--set", "data.eval=null", "--png", self.folder / "x.png", code=2)
        self.assert_one_error(result, 2, "no images")


if __name__ == "__main__":
    main()

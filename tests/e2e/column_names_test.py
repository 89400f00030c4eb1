# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A column in quotes is a name, also in maps and if it looks like a number, wherever the configuration comes from."""
import csv

from lockstep_run import main
from read_values import ValuesTest, needs_pandas, numpy, pandas

# Names that are the numbers of other columns.
TABLE = "1,0,y\n,20,0\n1,,1\n3,30,0\n,40,1\n"

RUN = """
seed: 1
%s
model:
  layers: [{dense: {units: 2}}]
  loss: softmax_cross_entropy
optimizer: {gradient_descent: {learning_rate: 0.01}}
train: {batch_size: 2, epochs: 1}
"""
DATA = 'data: {format: csv, path: t.csv, header: true, labels: y, missing: {"1": 11, "0": 222}}'


@needs_pandas
class ColumnNamesTest(ValuesTest):
    def setUp(self):
        super().setUp()
        self.path = self.folder / "t.csv"
        self.path.write_text(TABLE, encoding="ascii")

    def filled(self, values):
        return pandas.read_csv(self.path).fillna(values)[["1", "0"]].to_numpy("float32")

    def test_missing_values_are_those_of_the_named_columns(self):
        named, numbered = self.filled({"1": 11, "0": 222}), self.filled({"0": 11, "1": 222})
        self.assertFalse(numpy.array_equal(named, numbered))
        common = "format: csv, path: t.csv, header: true, labels: y"
        self.assert_values(common + ', missing: {"1": 11, "0": 222}', named)
        self.assert_values(common + ", missing: {1: 11, 0: 222}", numbered)
        self.assert_values(common, named, None, "--set", 'data.missing={"1": 11, "0": 222}')
        self.assert_values(common, numbered, None, "--set", "data.missing={1: 11, 0: 222}")
        changed = self.filled({"1": 5, "0": 222})
        self.assert_values(common + ', missing: {"1": 11, "0": 222}', changed, None, "--set", "data.missing.1=5")

    def test_an_included_file_keeps_its_quotes(self):
        (self.folder / "base.yaml").write_text(DATA + "\n", encoding="ascii")
        config = self.folder / "top.yaml"
        config.write_text("include: base.yaml\ndata: {missing: {'0': 7}}\n", encoding="ascii")
        self.lockstep("convert", config, self.folder / "o.npz")
        numpy.testing.assert_array_equal(numpy.load(self.folder / "o.npz")["features"], self.filled({"1": 11, "0": 7}))

    def test_categories(self):
        self.path.write_text("1,0,y\na,20,0\nb,30,1\n", encoding="ascii")
        common = "format: csv, path: t.csv, header: true, labels: y"
        self.assert_values(common + ', categories: {"1": auto}', [[1, 0, 20], [0, 1, 30]])
        self.refused(common + ", categories: {1: auto}", "'a' is not a number")  # column 1 is the one named 0

    def test_a_run_that_continues_and_predictions_from_a_checkpoint_know_the_names(self):
        config = self.folder / "run.yaml"
        config.write_text(RUN % DATA, encoding="ascii")
        self.train("run", config=config)
        self.train("run", config=config, sets=["train.epochs=2"])
        config.write_text(RUN % DATA.replace('{"1": 11, "0": 222}', "{1: 11, 0: 222}"), encoding="ascii")
        more = self.start(*self.train_arguments("run", config=config, sets=["train.epochs=3"])).wait()
        self.assertNotEqual(more.code, 0, "columns 1 and 0 are others than those named so")
        self.assertIn("data.train.missing", more.err)
        full = self.filled({"1": 11, "0": 222})
        with open(self.folder / "full.csv", "w", newline="", encoding="ascii") as file:
            csv.writer(file).writerows([["1", "0"], *full.tolist()])
        (self.folder / "gaps.csv").write_text("".join(line.rpartition(",")[0] + "\n" for line in TABLE.splitlines()), encoding="ascii")
        checkpoint = self.folder / "alone.h5"
        newest = sorted((self.folder / "run" / "checkpoints").glob("step-*.h5"))[-1]
        checkpoint.write_bytes(newest.read_bytes())
        for name in ("full", "gaps"):
            self.lockstep("predict", checkpoint, "--input", self.folder / f"{name}.csv", "--output", self.folder / f"{name}.out.csv")
        self.assertEqual((self.folder / "full.out.csv").read_text(), (self.folder / "gaps.out.csv").read_text())

    def test_a_number_in_quotes_that_is_no_name_is_explained(self):
        self.path.write_text("a,b,y\n1,20,0\n", encoding="ascii")
        common = "format: csv, path: t.csv, header: true, labels: y"
        for option in ('missing: {"1": 5}', 'columns: ["1"]', 'categories: {"1": auto}'):
            self.refused(f"{common}, {option}", "has no column named '1'.*In quotes, 1 is a name; without them, it is the number")
        self.assertNotIn("In quotes", self.refused(common + ', columns: ["7"]', "has no column named '7'"))

    def test_tables_of_texts(self):
        (self.folder / "t.tsv").write_text("1\t0\nx y\tb\nz\ta\n", encoding="ascii")
        config = self.folder / "texts.yaml"
        form = "data: {{format: text_tsv, path: t.tsv, header: true, text_column: {}, label_column: {}, labels: class, max_length: 3}}\n"
        found = []
        for text, label in (('"1"', '"0"'), ("0", "1")):
            config.write_text(form.format(text, label), encoding="ascii")
            self.lockstep("convert", config, self.folder / "o.npz", "--force")
            found.append(numpy.load(self.folder / "o.npz")["features"].tolist())
        self.assertEqual(found[0], found[1])


if __name__ == "__main__":
    main()

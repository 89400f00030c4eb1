# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A table with texts, quotes and missing values, written by Python's csv module: trained, evaluated, predicted, refused."""
import csv
import json
import random

from lockstep_run import LockstepTest, main, records

COLUMNS = ["PassengerId", "Survived", "Pclass", "Name", "Sex", "Age", "Ticket", "Fare", "Cabin", "Embarked"]

CONFIG = """
seed: 3
shards: 4
data:
  format: csv
  path: train.csv
  header: true
  columns: [Pclass, Sex, Age, Fare, Embarked]
  labels: Survived
  classes: %s
  categories: {Sex: auto, Pclass: ["1", "2", "3"], Embarked: auto}
  missing: {Age: 30, Embarked: S}
  eval: {path: test.csv}
model:
  layers: [{dense: {units: 8}}, relu, {dense: {units: 2}}]
  loss: softmax_cross_entropy
optimizer:
  adam: {learning_rate: 0.01}
train: {batch_size: 32, epochs: 12}
"""


def passengers(count, seed):
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        sex = rng.choice(["male", "female"])
        title = {"male": "Mr.", "female": "Mrs."}[sex]
        rows.append({"PassengerId": f"P/{number}", "Survived": "yes" if (sex == "female") ^ (rng.random() < 0.15) else "no",
                     "Pclass": rng.choice("123"), "Name": f'Doe, {title} "Jo" {number}' + ("\nsecond line" if number % 7 == 0 else ""),
                     "Sex": sex, "Age": rng.choice(["", "NA", f"{rng.randrange(1, 80)}"]), "Ticket": f"A/5 {rng.randrange(9999)}",
                     "Fare": f"{rng.uniform(5, 90):.2f}", "Cabin": rng.choice(["", "C85"]), "Embarked": rng.choice(["S", "C", "Q", ""])})
    return rows


def write(path, rows, columns=None, **form):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns or COLUMNS, extrasaction="ignore", **form)
        writer.writeheader()
        writer.writerows(rows)


class TablesTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.config = self.folder / "titanic.yaml"
        self.config.write_text(CONFIG % "auto", encoding="utf-8")
        self.rows = passengers(150, 1)
        write(self.folder / "train.csv", self.rows)
        write(self.folder / "test.csv", passengers(60, 2))

    def test_a_table_is_trained_evaluated_and_predicted(self):
        """The bits are those of the same numbers without texts, and of the same table in another form, on other ranks."""
        self.train("run", config=self.config, ranks=1)
        run = self.folder / "run"
        self.assertEqual((run / "classes.txt").read_text(), "no\nyes\n")
        self.assertEqual((run / "categories.txt").read_text(),
                         "Pclass\t1\nPclass\t2\nPclass\t3\nSex\tfemale\nSex\tmale\nEmbarked\tC\nEmbarked\tQ\nEmbarked\tS\n")
        with open(self.folder / "numbers.csv", "w", encoding="ascii") as file:
            for row in self.rows:
                values = [int(row["Pclass"] == value) for value in "123"] + [int(row["Sex"] == value) for value in ("female", "male")]
                values += [row["Age"] if row["Age"] not in ("", "NA") else 30, row["Fare"]]
                values += [int((row["Embarked"] or "S") == value) for value in "CQS"]
                print(*values, int(row["Survived"] == "yes"), sep=",", file=file)
        numbers = self.folder / "numbers.yaml"
        begin, end = CONFIG.index("  path:"), CONFIG.index("model:")
        numbers.write_text(CONFIG[:begin] + "  path: numbers.csv\n" + CONFIG[end:], encoding="utf-8")
        self.train("numbers", config=numbers, ranks=2)
        self.assertEqual(self.digest("run"), self.digest("numbers"))
        write(self.folder / "train.tsv", self.rows, COLUMNS[::-1], delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n")
        self.train("tsv", config=self.config, ranks=3, sets=["data.path=train.tsv"])
        self.assertEqual(self.digest("run"), self.digest("tsv"))
        self.assertEqual(records(self.folder / "run", "eval"), records(self.folder / "tsv", "eval"))
        result = self.lockstep("evaluate", run)
        self.assertGreater(json.loads(result.out)["accuracy"], 0.6)
        self.predicts(run)

    def predicts(self, run):
        """Files with and without labels, with columns in other orders."""
        some = passengers(20, 3)
        write(self.folder / "with.csv", some)
        write(self.folder / "without.csv", some, ["Embarked", "Fare", "Age", "Sex", "Pclass"])
        found = {}
        for name in ("with", "without"):
            out = self.folder / f"{name}.out.csv"
            self.lockstep("predict", run, "--input", self.folder / f"{name}.csv", "--output", out)
            with open(out, newline="", encoding="utf-8") as file:
                found[name] = list(csv.DictReader(file))
        self.assertEqual(len(found["with"]), 20)
        self.assertEqual({row["class_name"] for row in found["with"]}, {"no", "yes"})
        for row, other in zip(found["with"], found["without"]):
            self.assertEqual({key: row[key] for key in other}, other)

    def test_mistakes_are_named(self):
        def change(name, **values):
            write(self.folder / name, [dict(row, **values) if i == 4 else row for i, row in enumerate(self.rows)])
            return f"data.path={name}"
        for split, sets, pattern in (
                ("train", [change("fare.csv", Fare="cheap")], r"column Fare: 'cheap' is not a number"),
                ("train", [change("empty.csv", Fare="")], r"column Fare is empty"),
                ("eval", ["data.eval." + change("port.csv", Embarked="X")[5:]],
                 r"column Embarked: 'X' is none of the 3 values \(C, Q, S\)"),
                ("eval", ["data.eval." + change("class.csv", Survived="maybe")[5:]], r"column Survived: 'maybe' is none of the 2 classes")):
            with self.subTest(pattern):
                result = self.start(*self.train_arguments("wrong", config=self.config, sets=sets)).wait()
                self.assert_one_error(result, 3, pattern)
                self.assertRegex(result.err, r"\.csv, line 7")  # a name of two lines comes before

    def test_another_list_of_values_is_noticed(self):
        self.train("run", config=self.config)
        rows = [row for row in self.rows if row["Embarked"] != "Q"]
        write(self.folder / "train.csv", rows)
        write(self.folder / "test.csv", rows)
        # A finished run has the lists of its checkpoint.
        self.assertEqual(json.loads(self.lockstep("evaluate", self.folder / "run").out)["samples"], len(rows))
        # A job that continues it has those of the data.
        others = [{**row, "Embarked": "X" if row["Embarked"] == "Q" else row["Embarked"]} for row in self.rows]
        write(self.folder / "train.csv", others)
        write(self.folder / "test.csv", others)
        more = self.train_arguments("run", config=self.config, sets=["train.epochs=20"], more=["--accept-changes"])
        self.assert_one_error(self.start(*more).wait(), 3, r"the list of categories of the data is not that of the run: 'Embarked\\tS'")

    def test_names_of_other_programs_are_answered(self):
        for key, pattern in (("sep", "delimiter"), ("usecols", "columns"), ("na_values", "missing_values"), ("names", "header: true"),
                             ("skiprows", "skip_lines"), ("dtype", "categories")):
            with self.subTest(key):
                result = self.start("check", self.config, "--set", f"data.{key}=x").wait()
                self.assert_one_error(result, 2, pattern)


if __name__ == "__main__":
    main()

# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A story: a table of customers with names, categories and missing values. Who leaves? The net is compared with scikit-learn on the same rows."""
import math

from lockstep_run import main
from story import Story


class Table(Story):
    def test_customers_who_leave(self):
        self.script("customers.py", "make", self.home / "customers.csv", 1500, 4, needs=())
        self.script("customers.py", "make", self.elsewhere / "new.csv", 40, 5, "new", needs=())

        said = self.sh("lockstep new customers.csv --epochs 12").out
        self.assertIn("predicted: left, 2 classes", said)
        self.assertIn("left out: column id: texts of too many values\n  left out: column name: ", said)
        self.assertIn("1200 of 1500 samples of 12 float32", self.sh("lockstep check customers.yaml").out)

        self.sh("lockstep train customers.yaml --run-dir runs/customers --steps 200")
        self.sh("mpirun -n 2 lockstep train customers.yaml --run-dir runs/customers")
        metrics = self.judged("lockstep evaluate runs/customers")
        self.assertEqual(metrics["samples"], 300)

        self.sh("lockstep report runs/customers")
        self.looks_like_a_report(self.home / "runs/customers/report.html", "accuracy", "no", "yes")
        self.sh("lockstep predict runs/customers --set-name eval --output evaluated.csv")
        evaluated = self.table(self.home / "evaluated.csv")
        self.assertEqual([row["id"] for row in evaluated], [f"C-{int(row['sample']) + 1:05}" for row in evaluated])
        right = sum(row["class_name"] == row["label_name"] for row in evaluated) / len(evaluated)
        self.assertAlmostEqual(right, metrics["accuracy"], delta=1e-9)

        # Another machine, new customers: missing values are still filled with the means of the training set.
        self.take_elsewhere("runs/customers")
        self.sh("lockstep predict models/customers --input new.csv --output new_left.csv", at=self.elsewhere)
        new = self.table(self.elsewhere / "new_left.csv")
        self.assertEqual([row["id"] for row in new], [row["id"] for row in self.table(self.elsewhere / "new.csv")])
        self.sh("lockstep export models/customers --output customers.onnx", at=self.elsewhere)
        self.nobody_has_seen_jena(new)

        self.assertGreater(right, 0.82)
        sklearn = self.script("customers.py", "compare", self.gone / "customers.csv", self.gone / "evaluated.csv", needs=("sklearn",))
        print(f"accuracy {right:.3f}; scikit-learn {sklearn}")
        self.assertGreater(right, sklearn["most frequent"] + 0.15)
        self.assertGreater(right, max(sklearn.values()) - 0.03)

    def nobody_has_seen_jena(self, known):
        """A new customer comes from a town that the model does not know."""
        text = (self.elsewhere / "new.csv").read_text(encoding="utf-8")
        self.assertIn(",Ulm,", text)
        (self.elsewhere / "jena.csv").write_text(text.replace(",Ulm,", ",Jena,", 1), encoding="utf-8")
        said = self.sh("lockstep predict models/customers --input jena.csv --output jena_left.csv", at=self.elsewhere, code=3).err
        self.assertRegex(said, r"jena\.csv, line \d+: column town: 'Jena' is none of the 4 values(?s:.*)--set data\.bad_records=skip")
        said = self.sh("lockstep predict models/customers --input jena.csv --output jena_left.csv --set data.bad_records=skip", at=self.elsewhere).err
        self.assertRegex(said, r"sample \d+ is bad, and its row is NaN: .*jena\.csv, line \d+.*Jena")
        rows = self.table(self.elsewhere / "jena_left.csv")
        unknown = [row for row in rows if math.isnan(float(row["probability_yes"]))]
        self.assertEqual(len(unknown), 1)
        for row, other in zip(rows, known, strict=True):
            self.assertTrue(row in unknown or row == other, f"{row} was {other}")


if __name__ == "__main__":
    main()

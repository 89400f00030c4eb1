# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Predictions in the units of the data, of samples as the configuration has them: names, ids, lags, bad samples, the evaluation set."""
import csv
import json
import math
import random
import struct
import subprocess

from lockstep_run import LockstepTest, main, python_with_h5py

HOUSES = """
seed: 3
shards: 2
data:
  format: csv
  header: true
  path: houses.csv
  label_column: null
  columns: [rooms, age]
  normalize: channels
  %s
  targets:
    sale: {columns: [price, area], normalize: channels}
optimizer: {adam: {learning_rate: 0.02}}
train: {batch_size: 20, epochs: 4}
eval: {metrics: [root_mean_squared_error, mean_absolute_error, r2]}
model: {layers: [{dense: {units: 8}}, relu, {dense: {units: 2}}], loss: mean_squared_error}
"""
SERIES = """
seed: 3
shards: 2
data:
  format: csv
  header: true
  path: series.csv
  label_column: null
  columns: [level]
  inputs:
    before: {train: {rows: [0, 90]}, normalize: all}
    now: {train: {rows: [3, 93]}, normalize: all}
  targets:
    later: {train: {rows: [5, 95]}, normalize: all}
optimizer: {adam: {learning_rate: 0.02}}
train: {batch_size: 30, epochs: 2}
model: {layers: [{concat: {inputs: [before, now]}}, {dense: {units: 1}}], loss: mean_squared_error}
"""
GRID = """
seed: 3
shards: 2
data:
  format: hdf5
  path: grid.h5
  window: {inputs: 3, horizon: 2, time: time}
  inputs:
    past: {features: t, normalize: all, transforms: [{steps_to_channels: {new_axis: true}}]}
  targets:
    next: {features: t, normalize: all}
  train: {rows: [0, 40]}
  eval: {rows: [40, 60]}
optimizer: {adam: {learning_rate: 0.02}}
train: {batch_size: 12, epochs: 2}
model: {layers: [{conv2d: {filters: 1, kernel: 3}}, flatten], loss: mean_squared_error}
"""


class UnitsTest(LockstepTest):
    def setUp(self):
        super().setUp()
        draw = random.Random(5)
        self.rows = []
        for i in range(120):
            rooms, age = draw.randint(1, 8), draw.randint(0, 90)
            price, area = 50000 + 42000 * rooms - 800 * age + draw.gauss(0, 5000), 22 * rooms + draw.gauss(0, 4)
            self.rows.append({"id": f"house {i}", "rooms": rooms, "age": age, "price": round(price, 2), "area": round(area, 3)})
        self.write("houses.csv", self.rows)

    def write(self, name, rows):
        with open(self.folder / name, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return self.folder / name

    def houses(self, name, which="train: {rows: [0, 90]}\n  eval: {rows: [90, 120]}"):
        path = self.folder / f"{name}.yaml"
        path.write_text(HOUSES % which, encoding="utf-8")
        self.train(name, config=path)
        return self.folder / name

    def table(self, *arguments, ranks=None):
        out = self.folder / "out.csv"
        result = self.lockstep("predict", *arguments, "--output", out, ranks=ranks)
        with open(out, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file)), result

    def test_predictions_are_in_the_units_of_the_data_by_name_and_with_ids(self):
        run = self.houses("run")
        new = self.write("new.csv", [{key: row[key] for key in ("id", "rooms", "age")} for row in self.rows[90:]])
        table, _ = self.table(run, "--input", new)
        self.assertEqual(list(table[0]), ["id", "price", "area"])
        self.assertEqual([row["id"] for row in table], [f"house {i}" for i in range(90, 120)])
        mean = sum(row["price"] for row in self.rows) / len(self.rows)
        self.assertLess(abs(sum(float(row["price"]) for row in table) / 30 - mean), 0.5 * mean)
        named, _ = self.table(run, "--input", new, "--id-column", "age")
        self.assertEqual([int(row["age"]) for row in named], [row["age"] for row in self.rows[90:]])

    def test_the_evaluation_set_with_its_true_values_gives_the_metrics_of_evaluate(self):
        run = self.houses("run")
        judged = json.loads(self.lockstep("evaluate", run).out)
        for ranks in (None, 2):
            table, _ = self.table(run, "--set-name", "eval", ranks=ranks)
            self.assertEqual(list(table[0]), ["sample", "price", "area", "true_price", "true_area"])
            self.assertEqual([int(row["sample"]) for row in table], list(range(30)))
            squares = []
            for name in ("price", "area"):
                errors = [float(row[name]) - float(row[f"true_{name}"]) for row in table]
                for row, true in zip(table, self.rows[90:]):
                    self.assertAlmostEqual(float(row[f"true_{name}"]), true[name], delta=1e-6 * abs(true[name]))
                root = math.sqrt(sum(error ** 2 for error in errors) / len(errors))
                self.assertAlmostEqual(judged[f"root_mean_squared_error/{name}"], root, delta=1e-4 * root)
                absolute = sum(map(abs, errors)) / len(errors)
                self.assertAlmostEqual(judged[f"mean_absolute_error/{name}"], absolute, delta=1e-4 * absolute)
                self.assertIn(f"r2/{name}", judged)
                squares += [error ** 2 for error in errors]
            self.assertAlmostEqual(judged["root_mean_squared_error"], math.sqrt(sum(squares) / len(squares)),
                                   delta=1e-4 * judged["root_mean_squared_error"])

    def test_the_evaluation_set_of_a_holdout_has_the_numbers_of_its_rows(self):
        run = self.houses("run", "holdout: 0.25\n  eval: {}")
        table, _ = self.table(run, "--set-name", "eval", "--sample-names")
        self.assertEqual(len(table), 30)
        for row in table:
            true = self.rows[int(row["sample"])]
            self.assertAlmostEqual(float(row["true_price"]), true["price"], delta=1e-6 * abs(true["price"]))
            self.assertTrue(row["sample_name"].endswith(f"line {int(row['sample']) + 2}"), row["sample_name"])
        trained, _ = self.table(run, "--set-name", "train")
        self.assertEqual(sorted(int(row["sample"]) for row in [*table, *trained]), list(range(120)))
        self.assert_one_error(self.start("predict", run, "--set-name", "eval", "--input", "x.csv", "--output", "-").wait(), 2,
                              "--input does not go with --set-name")

    def test_an_ensemble_of_other_normalisations_averages_values(self):
        one, two = self.houses("one"), self.houses("two", "train: {rows: [60, 110]}\n  eval: {rows: [90, 120]}")
        new = self.write("new.csv", [{key: row[key] for key in ("rooms", "age")} for row in self.rows[90:]])
        single = [self.table(run, "--input", new)[0] for run in (one, two)]
        both, _ = self.table(one, two, "--input", new)
        self.assertEqual(list(both[0]), ["price", "area", "spread_price", "spread_area"])
        for row, a, b in zip(both, *single):
            for name in ("price", "area"):
                x, y = float(a[name]), float(b[name])
                self.assertAlmostEqual(float(row[name]), (x + y) / 2, delta=1e-5 * abs(x + y))
                self.assertAlmostEqual(float(row[f"spread_{name}"]), abs(x - y) / math.sqrt(2), delta=1e-4 * abs(x) + 1e-6)
        judged = json.loads(self.lockstep("evaluate", one, two).out)
        table, _ = self.table(one, two, "--set-name", "eval")
        errors = [float(row["price"]) - float(row["true_price"]) for row in table]
        root = math.sqrt(sum(error ** 2 for error in errors) / len(errors))
        self.assertAlmostEqual(judged["root_mean_squared_error/price"], root, delta=1e-3 * root)

    def test_inputs_keep_the_rows_that_belong_together(self):
        draw, level, rows = random.Random(2), 10.0, []
        for _ in range(100):
            level += draw.gauss(0, 3)
            rows.append({"level": round(level, 3)})
        self.write("series.csv", rows)
        config = self.folder / "series.yaml"
        config.write_text(SERIES, encoding="utf-8")
        self.train("run", config=config)
        run = self.folder / "run"
        trained, _ = self.table(run, "--set-name", "train")
        table, _ = self.table(run, "--input", self.folder / "series.csv")
        self.assertEqual(len(table), 97)  # the second input lies three rows later
        self.assertEqual([row["later"] for row in table[:90]], [row["later"] for row in trained])
        other, _ = self.table(run, "--input", self.folder / "series.csv", "--set", "data.inputs.now.train.rows=[1, 91]")
        self.assertEqual(len(other), 99)
        self.assertNotEqual([row["later"] for row in other[:90]], [row["later"] for row in trained])
        self.assert_one_error(self.start("predict", run, "--input", self.folder / "series.csv", "--output", "-", "--set",
                                         "data.inputs.now.path=x.csv").wait(), 2, "data.inputs.now.path has no effect")

    def test_windows_of_a_series_have_the_target_of_the_horizon(self):
        """The field t has 2 x 3 places and is 270 + step + place / 10; there is a gap of time before step 50."""
        python = python_with_h5py()
        if python is None:
            self.skipTest("no Python has h5py")
        script = ("import h5py, numpy as n, sys\nwith h5py.File(sys.argv[1], 'w') as f:\n"
                  "    s = n.arange(60.)\n    f['t'] = (270 + s[:, None, None] + n.arange(6).reshape(2, 3) / 10).astype('f4')\n"
                  "    f['time'] = s + 9 * (s >= 50)")
        subprocess.run([python, "-c", script, self.folder / "grid.h5"], check=True)
        config = self.folder / "grid.yaml"
        config.write_text(GRID, encoding="utf-8")
        self.train("run", config=config)
        self.train("two", config=config, ranks=2)
        self.assertEqual(self.digest("run"), self.digest("two"))
        run, grid = self.folder / "run", self.folder / "grid.h5"
        judged, _ = self.table(run, "--set-name", "eval")
        # A window has 5 steps: of the steps 40 to 49 and 50 to 59, six begin one each.
        steps = [*range(44, 50), *range(54, 60)]
        for row, step in zip(judged, steps, strict=True):
            for place in range(6):
                self.assertAlmostEqual(float(row[f"true_{place}"]), 270 + step + place / 10, delta=1e-3, msg=row)
        table, _ = self.table(run, "--input", grid)
        self.assertEqual(len(table), 48 + 8)  # up to the last step before the gap, and of the file
        self.assertEqual(table[-8:-2], [{key: row[key] for key in table[0]} for row in judged[6:]])
        self.assertIn("window: 20 steps give 12 samples; the others lack steps at the ends of the rows (4) or around gaps of time (4)",
                      self.lockstep("data", config).out)
        self.assert_one_error(self.start("check", config, "--set", "data.holdout=0.2").wait(), 2, "would give both sets the same steps")

    def test_a_file_of_another_form_into_a_named_input_is_normalised(self):
        path = self.folder / "named.yaml"
        path.write_text((HOUSES % "train: {rows: [0, 90]}\n  eval: {rows: [90, 120]}").replace("  columns: [rooms, age]\n  normalize: channels\n",
                                                                                             "  inputs:\n    house: {columns: [rooms, age], normalize: channels}\n"),
                        encoding="utf-8")
        self.train("run", config=path)
        run = self.folder / "run"
        right, _ = self.table(run, "--input", self.write("new.csv", [{key: row[key] for key in ("rooms", "age")} for row in self.rows[90:]]))
        values = [float(row[key]) for row in self.rows[90:] for key in ("rooms", "age")]
        header = "{'descr': '<f4', 'fortran_order': False, 'shape': (30, 2), }"
        header += " " * (63 - (len(header) + 10) % 64) + "\n"
        array = self.folder / "new.npy"
        array.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}f", *values))
        for given in (array, f"house={array}"):
            self.assertEqual(self.table(run, "--input", given)[0], right)

    def test_a_bad_sample_is_a_row_of_nan(self):
        run = self.houses("run", "bad_records: skip\n  train: {rows: [0, 90]}\n  eval: {rows: [90, 120]}")
        rows = [{key: row[key] for key in ("id", "rooms", "age")} for row in self.rows[90:110]]
        new = self.write("new.csv", rows)
        right, _ = self.table(run, "--input", new)
        rows[7]["age"] = "old"
        rows[19]["rooms"] = "none"
        self.write("new.csv", rows)
        for ranks in (None, 2):
            table, result = self.table(run, "--input", new, ranks=ranks)
            for i, row in enumerate(table):
                self.assertEqual(row["id"], f"house {90 + i}")
                if i in (7, 19):
                    self.assertEqual((row["price"], row["area"]), ("nan", "nan"))
                    self.assertRegex(result.err, rf"sample {i} is bad, and its row is NaN: .*new.csv, line {i + 2}")
                else:
                    self.assertEqual(row, right[i])


if __name__ == "__main__":
    main()

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
    sale: {columns: [price, area], %s}
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
shards: 4
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

    def houses(self, name, which="train: {rows: [0, 90]}\n  eval: {rows: [90, 120]}", of_targets="normalize: channels"):
        path = self.folder / f"{name}.yaml"
        path.write_text(HOUSES % (which, of_targets), encoding="utf-8")
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
        self.check_evaluation(self.houses("run"), (None, 2))

    def test_transformed_and_whitened_targets_come_back(self):
        for number, of_targets in enumerate(("normalize: none, transforms: [clip: {min: 1, max: 1e9}, log, normalize: {mean: [12, 4], std: [0.5, 0.7]}]",
                                             "whiten: zca", "normalize: channels, whiten: pca, transforms: [scale: {factor: 2, offset: 1}]")):
            run = self.houses(f"run{number}", of_targets=of_targets)
            table, result = self.check_evaluation(run, (None,))
            self.assertNotIn("units of training", result.err)
            for name in ("price", "area"):
                mean = sum(row[name] for row in self.rows) / len(self.rows)
                self.assertLess(abs(sum(float(row[name]) for row in table) / 30 - mean), 0.5 * mean, of_targets)
        ensemble, _ = self.table(self.folder / "run0", self.folder / "run2", "--set-name", "eval")
        judged = json.loads(self.lockstep("evaluate", self.folder / "run0", self.folder / "run2").out)
        squares = [(float(row["area"]) - float(row["true_area"])) ** 2 for row in ensemble]
        self.assertAlmostEqual(judged["root_mean_squared_error/area"], math.sqrt(sum(squares) / 30), delta=1e-3 * math.sqrt(sum(squares) / 30))

    def test_what_has_no_way_back_is_said(self):
        for number, (of_targets, why) in enumerate((("transforms: [standardize]", "sale: the transform standardize has no inverse"),
                                                    ("whiten: {pca: {components: 1}}", "sale: its whitening keeps 1 components of 2 values"))):
            run = self.houses(f"run{number}", of_targets=of_targets) if number == 0 else self.narrow_houses(of_targets)
            said = f"in (the )?units of training, not of the data: {why}"
            self.assertRegex(self.lockstep("check", run / "config.yaml").out, said)
            self.assertRegex(self.lockstep("evaluate", run).err, said)
            out = self.folder / "out.h5"
            result = self.lockstep("predict", run, "--set-name", "eval", "--output", out)
            self.assertRegex(result.err, said)
            self.assertEqual(result.err.count("units of training"), 1)
            self.assertIn(why.encode(), out.read_bytes())  # the attribute as_trained
            page = self.folder / "report.html"
            self.lockstep("report", run, "--output", page)
            self.assertRegex(page.read_text(encoding="utf-8"), said)

    def narrow_houses(self, of_targets):
        """A model with one output."""
        path = self.folder / "narrow.yaml"
        text = HOUSES % ("train: {rows: [0, 90]}\n  eval: {rows: [90, 120]}", of_targets)
        path.write_text(text.replace("{dense: {units: 2}}", "{dense: {units: 1}}"), encoding="utf-8")
        self.train("narrow", config=path)
        return self.folder / "narrow"

    def check_evaluation(self, run, all_ranks):
        """Predictions of the evaluation set have its true values, and give the metrics of evaluate."""
        judged = json.loads(self.lockstep("evaluate", run).out)
        for ranks in all_ranks:
            table, result = self.table(run, "--set-name", "eval", ranks=ranks)
            self.assertEqual(list(table[0]), ["sample", "id", "price", "area", "true_price", "true_area"])
            self.assertEqual([row["id"] for row in table], [f"house {i}" for i in range(90, 120)])
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
        return table, result

    def test_folds_have_the_numbers_of_their_rows(self):
        run, places = self.houses("run", "folds: 4\n  fold: 1\n  eval: {}"), []
        for name in ("eval", "train"):
            table, _ = self.table(run, "--set-name", name)
            places.append([int(row["sample"]) for row in table])
            for row in table:
                self.assertAlmostEqual(float(row["true_price"]), self.rows[int(row["sample"])]["price"], delta=1e-6 * float(row["true_price"]))
        self.assertEqual([len(part) for part in places], [30, 90])
        self.assertEqual(sorted(places[0] + places[1]), list(range(120)))

    def test_ids_of_hdf5_files_and_json_lines(self):
        run = self.houses("run")
        new = self.write("new.csv", [{key: row[key] for key in ("id", "rooms", "age")} for row in self.rows[90:]])
        first = self.folder / "first.h5"  # outputs, of two numbers as the inputs, sample and id
        self.lockstep("predict", run, "--input", new, "--output", first)
        as_input = ("--input", first, "--input-option", "features=outputs")
        table, _ = self.table(run, *as_input)
        self.assertEqual([row["id"] for row in table], [f"house {i}" for i in range(90, 120)])
        table, _ = self.table(run, *as_input, "--id-column", "sample", ranks=2)
        self.assertEqual([row["sample"] for row in table], [str(i) for i in range(30)])
        for name, message in (("nothing", "'nothing' is no dataset of .*first.h5"), ("outputs", "has no text and no whole number for each sample")):
            self.assert_one_error(self.start("predict", run, *as_input, "--output", "-", "--id-column", name).wait(), 2 if name == "nothing" else 3, message)
        lines = [json.dumps({"x": [row["rooms"], row["age"]], "y": row["price"], "id": row["id"], "place": i}) for i, row in enumerate(self.rows)]
        (self.folder / "all.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        (self.folder / "lines.yaml").write_text("data: {format: jsonl, path: all.jsonl, features: x, labels: y}\nmodel: {loss: mean_squared_error, layers: [dense: {units: 1}]}\n"
                                                "optimizer: {adam: {learning_rate: 0.01}}\ntrain: {batch_size: 20, steps: 2}\nshards: 2\n", encoding="utf-8")
        self.train("lines", config=self.folder / "lines.yaml")
        some = self.folder / "some.jsonl"
        some.write_text("".join(f"{line}\n" for line in lines[5:9]) + "\n \n", encoding="utf-8")
        for more, wanted in (((), [row["id"] for row in self.rows[5:9]]), (("--id-column", "place"), ["5", "6", "7", "8"])):
            table, _ = self.table(self.folder / "lines", "--input", some, *more)
            self.assertEqual([row[more[1] if more else "id"] for row in table], wanted)

    def write_npy(self, name, shape, numbers):
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
        header += " " * (63 - (len(header) + 10) % 64) + "\n"
        (self.folder / f"{name}.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(numbers)}f", *numbers))
        return self.folder / f"{name}.npy"

    def test_the_mean_over_views_of_a_sample(self):
        draw = random.Random(3)
        images = [[draw.gauss(0, 1) for _ in range(12)] for _ in range(20)]  # 3 x 4
        self.write_npy("x", (20, 3, 4, 1), sum(images, []))
        flipped = self.write_npy("flipped", (20, 3, 4, 1), [value for image in images for y in range(3) for value in image[4 * y:4 * y + 4][::-1]])
        self.write_npy("y", (20, 1), [500 + 100 * image[0] + 50 * image[5] for image in images])
        (self.folder / "images.yaml").write_text(
            "data:\n  inputs: {image: {format: npy, features: x.npy, train: {transforms: [random_flip: {axes: [horizontal]}]}, eval: {}}}\n"
            "  targets: {price: {format: npy, features: y.npy, normalize: all, train: {}, eval: {}}}\n"
            "model: {loss: mean_squared_error, layers: [flatten, dense: {units: 1}]}\neval: {metrics: [root_mean_squared_error]}\n"
            "optimizer: {adam: {learning_rate: 0.1}}\ntrain: {batch_size: 10, steps: 4}\nshards: 4\n", encoding="utf-8")
        self.train("images", config=self.folder / "images.yaml")
        run = self.folder / "images"
        values = lambda *arguments, **more: [float(row["price"]) for row in self.table(run, *arguments, **more)[0]]
        plain, mirrored = values("--set-name", "eval"), values("--input", flipped)
        self.assertGreater(max(abs(a - b) for a, b in zip(plain, mirrored)), 1)
        views = values("--set-name", "eval", "--augmentations", 8)
        flips = [8 * (mean - a) / (b - a) for a, b, mean in zip(plain, mirrored, views)]
        for count in flips:  # so many of 7 draws were flipped
            self.assertAlmostEqual(count, round(count), delta=2e-2)
            self.assertIn(round(count), range(8))
        self.assertGreater(len({round(count) for count in flips}), 2)
        for ranks in (2, 3, 4):
            self.assertEqual(values("--set-name", "eval", "--augmentations", 8, "--threads", 2, ranks=ranks), views)
        judged = json.loads(self.lockstep("evaluate", run, "--augmentations", 8, ranks=2).out)
        self.assertEqual(judged["augmentations"], 8)
        errors = [mean - (500 + 100 * image[0] + 50 * image[5]) for mean, image in zip(views, images)]
        root = math.sqrt(sum(error ** 2 for error in errors) / 20)
        self.assertAlmostEqual(judged["root_mean_squared_error"], root, delta=1e-3 * root)
        self.assertNotAlmostEqual(json.loads(self.lockstep("evaluate", run).out)["root_mean_squared_error"], root, delta=1e-3 * root)
        for arguments, message in ((("predict", run, run, "--set-name", "eval", "--output", "-"), "--augmentations belongs to one model"),
                                   (("predict", run, "--set-name", "eval", "--layer", "dense1", "--output", "-"), "--layer does not go with --augmentations"),
                                   (("evaluate", run, "--name", "views"), "--name does not go with --augmentations"),
                                   (("evaluate", self.houses("houses")), "no transform of training is random")):
            self.assert_one_error(self.start(*arguments, "--augmentations", 2).wait(), 2, message)

    def test_the_layout_of_the_samples_is_kept(self):
        draw = random.Random(3)
        channel = [[draw.gauss(10 * c, 1 + c) for _ in range(20 * 12)] for c in range(2)]
        values = [channel[c][12 * i + pixel] for i in range(20) for c in range(2) for pixel in range(12)]
        self.write_npy("x", (20, 2, 3, 4), values)
        self.write_npy("y", (20, 1), [draw.gauss(0, 1) for _ in range(20)])
        (self.folder / "images.yaml").write_text(
            "data: {format: npy, features: x.npy, labels: y.npy, layout: channels_first, normalize: channels, eval: {}}\n"
            "model: {loss: mean_squared_error, layers: [conv2d: {filters: 3, kernel: 3}, flatten, dense: {units: 1}]}\n"
            "optimizer: {adam: {learning_rate: 0.01}}\ntrain: {batch_size: 10, steps: 2}\nshards: 2\n", encoding="utf-8")
        self.train("images", config=self.folder / "images.yaml")
        right, _ = self.table(self.folder / "images", "--set-name", "train")
        table, _ = self.table(self.folder / "images", "--input", self.folder / "x.npy")
        self.assertEqual([row["value_0"] for row in table], [row["value_0"] for row in right])

    def test_the_evaluation_set_of_a_holdout_has_the_numbers_of_its_rows(self):
        run = self.houses("run", "holdout: 0.25\n  eval: {}")
        table, _ = self.table(run, "--set-name", "eval", "--sample-names")
        self.assertEqual(len(table), 30)
        for row in table:
            true = self.rows[int(row["sample"])]
            self.assertAlmostEqual(float(row["true_price"]), true["price"], delta=1e-6 * abs(true["price"]))
            self.assertTrue(row["sample_name"].endswith(f"line {int(row['sample']) + 2}"), row["sample_name"])
            self.assertEqual(row["id"], f"house {row['sample']}")
        trained, _ = self.table(run, "--set-name", "train", "--id-column", "age", ranks=2)
        self.assertEqual(sorted(int(row["sample"]) for row in [*table, *trained]), list(range(120)))
        for row in trained:
            self.assertEqual(int(row["age"]), self.rows[int(row["sample"])]["age"])
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
        for ranks, threads in ((2, 1), (3, 1), (4, 1), (1, 2)):
            other = f"run-{ranks}-{threads}"
            self.train(other, config=config, ranks=ranks, threads=threads)
            self.assertEqual(self.digest("run"), self.digest(other), other)
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
        path.write_text((HOUSES % ("train: {rows: [0, 90]}\n  eval: {rows: [90, 120]}", "normalize: channels")).replace("  columns: [rooms, age]\n  normalize: channels\n",
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

# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Bad input gets one clear message and the right exit code, alone and under mpirun, and nothing is lost."""
import gzip
import hashlib
import re
import unittest

from lockstep_run import DIGITS, DIGITS_DATA, LockstepTest, checkpoints, main, records, wait_until

FAILED, CONFIG, DATA, CHECKPOINT = 1, 2, 3, 4  # exit codes


class BadInputTest(LockstepTest):
    def refused(self, code, pattern, *arguments):
        """Without a launcher and on two ranks."""
        for ranks in (None, 2):
            with self.subTest(arguments=arguments[:1], ranks=ranks):
                self.assert_one_error(self.start(*arguments, ranks=ranks).wait(), code, pattern)

    def refused_training(self, code, pattern, run="refused", **options):
        self.refused(code, pattern, *self.train_arguments(run, **{"steps": 3, **options}))
        self.assertEqual(checkpoints(self.folder / run), [], "a refused run must not write checkpoints")


class BadCommandAndConfig(BadInputTest):
    def edited(self, old, new):
        """A copy of the example with one thing replaced, and its data next to the original."""
        text = DIGITS.read_text(encoding="utf-8")
        self.assertIn(old, text)
        path = self.folder / "edited.yaml"
        path.write_text(text.replace(old, new).replace("../data/digits.csv.gz", str(DIGITS_DATA)), encoding="utf-8")
        return path

    def test_unknown_command(self):
        self.refused(CONFIG, "unknown command 'evalate'(.|\n)*Did you mean 'evaluate'", "evalate", "runs/x")

    def test_misspelt_key_names_position_and_right_key(self):
        config = self.edited("batch_size: 64", "batchsize: 64")
        self.refused_training(CONFIG, r"edited\.yaml:\d+:\d+(.|\n)*'?batchsize'?(.|\n)*batch_size", config=config)
        config = self.edited("filters: 32", "filtres: 32")
        self.refused_training(CONFIG, r"edited\.yaml:\d+:\d+(.|\n)*filtres(.|\n)*filters", config=config)
        self.refused_training(CONFIG, "trian(.|\n)*train", sets=["trian.epochs=3"])

    def test_yaml_that_cannot_be_parsed(self):
        config = self.edited("train: {rows: [0, 1500]}", "train: {rows: [0, 1500}")
        self.refused_training(CONFIG, r"edited\.yaml:\d+:\d+", config=config)
        self.refused_training(CONFIG, "missing.yaml", config=self.folder / "missing.yaml")

    def test_a_layer_that_does_not_fit_its_input(self):
        config = self.edited("    - global_avg_pool\n", "")
        self.refused_training(CONFIG, "(?s)logits.*flatten", config=config)
        config = self.edited("shape: [8, 8, 1]", "shape: [8, 9, 1]")
        self.refused_training(DATA, "64 feature columns(.|\n)*needs 72", config=config)

    def test_all_mistakes_at_once(self):
        text = DIGITS.read_text(encoding="utf-8")
        for old, new in (("batch_size: 64", "batchsize: 64"), ("filters: 32", "filtres: 32"), ("rate: 0.2", "rate: 2"),
                         ("loss: softmax_cross_entropy", "loss: mse"), ("adam:", "adamx:"), ("keep: 3", "keep: three")):
            text = text.replace(old, new)
        config = self.folder / "seven.yaml"
        config.write_text(text, encoding="utf-8")
        result = self.start("check", config, "--set", "summary.every_steps=0").wait()
        self.assertEqual(result.code, CONFIG, str(result))
        errors = re.findall(r"^error: (.*)\n(  +\d+ \|.*\n  +\| +\^\n)?(.*)", result.err, re.M)
        self.assertEqual(len(errors), 7, str(result))
        lines = [int(place.group(1)) for place in (re.match(r".*seven\.yaml:(\d+):\d+: ", message)
                                                   for message, _, _ in errors) if place]
        self.assertEqual(lines, sorted(lines))
        self.assertEqual(len(lines), 6)
        self.assertTrue(all(mark for _, mark, _ in errors[:-1]), str(result))
        self.assertTrue(errors[-1][0].startswith("--set summary.every_steps=0: "), str(result))
        self.assertIn("\n7 mistakes\n", result.err)

    def test_data_in_place_of_a_configuration(self):
        (self.folder / "rows.csv").write_text("a,b,label\n" + "1,2,0\n" * 5000, encoding="utf-8")
        result = self.lockstep("check", "rows.csv", code=CONFIG, cwd=self.folder)
        self.assert_one_error(result, CONFIG, "rows.csv: this is no configuration file\n  .*`lockstep new rows.csv`")
        (self.folder / "rows").write_text("a,b,label\n" + "1,2,0\n" * 5000, encoding="utf-8")
        result = self.lockstep("check", "rows", code=CONFIG, cwd=self.folder)
        self.assertLess(len(result.err), 500, result.err)
        result = self.lockstep("evaluate", "step-00000001.h5", code=CONFIG, cwd=self.folder)
        self.assert_one_error(result, CONFIG, "step-00000001.h5: .*No such file or directory")

    def test_what_is_no_configuration(self):
        many = self.folder / "many.yaml"
        many.write_text("".join(f"k{i}: 1\n" for i in range(800000)), encoding="utf-8")
        deep = self.folder / "deep.yaml"
        deep.write_text("a: " + 5000 * "[", encoding="utf-8")
        keys = self.folder / "keys.yaml"
        keys.write_text("data:\n" + "".join(f"  k{i}: 1\n" for i in range(200000)), encoding="utf-8")
        for path, pattern in ((many, "more than 1000000 keys and values"), (deep, "nested deeper than 100 levels"),
                              ("/dev/zero", "is a device or socket"), (keys, "section data has no format")):
            result = self.start("check", path).wait(20)
            self.assertEqual(result.code, CONFIG, str(result))
            self.assertRegex(result.err, pattern)
            self.assertLess(len(result.err), 50000)

    def test_names_and_groups_are_checked_before_training(self):
        for override, pattern in (("model.layers.conv2.name=a//b", "(?s)--set .*'a//b' is not a layer name: a part of it is empty"),
                                  ("model.layers.conv2.name=conv1/kernel", "lies below another layer's variable conv1/kernel"),
                                  ("model.layers.bn1.group=3", "group 3 does not divide the 8 shards")):
            result = self.start("check", DIGITS, "--set", override).wait()
            self.assert_one_error(result, CONFIG, pattern)
            self.assertIn("--set " + override, result.err)

    def test_more_ranks_or_shards_than_there_is_work_for(self):
        arguments = self.train_arguments("run", steps=3, sets=["shards=2"])
        self.assert_one_error(self.start(*arguments, ranks=3).wait(), CONFIG, "3 ranks are too many(.|\n)*2 shards")
        self.refused_training(CONFIG, "65 shards are more than the batch_size of 64", sets=["shards=65"])


class BadData(BadInputTest):
    def setUp(self):
        super().setUp()
        with gzip.open(DIGITS_DATA, "rt", encoding="ascii") as file:
            self.rows = file.read().splitlines()

    def refused_rows(self, pattern, line, row):
        """The data with another row in this line, from 1."""
        rows = list(self.rows)
        rows[line - 1] = row
        path = self.folder / "data.csv"
        path.write_text("\n".join(rows) + "\n", encoding="ascii")
        self.refused_training(DATA, rf"data\.csv, line {line}: {pattern}", sets=[f"data.path={path}"])

    def test_missing_file(self):
        self.refused_training(DATA, "(?s)nowhere.csv.gz", sets=["data.path=nowhere.csv.gz"])

    def test_truncated_gzip(self):
        path = self.folder / "cut.csv.gz"
        path.write_bytes(DIGITS_DATA.read_bytes()[:-20000])
        self.refused_training(DATA, r"cut\.csv\.gz.*: the gzip stream ends early",
                              sets=[f"data.path={path}"])

    def test_label_out_of_range(self):
        self.refused_rows(r"label 10 is not one of 10 classes\n.*Classes count from 0", 1234, self.rows[1233].rpartition(",")[0] + ",10")

    def test_nan(self):
        columns = self.rows[76].split(",")
        columns[2] = "nan"
        self.refused_rows("column 2 [(]from 0[)]: 'nan' means a missing value", 77, ",".join(columns))

    def test_wrong_number_of_columns(self):
        self.refused_rows("has 64 columns, but the rows before it have 65", 1700, self.rows[1699].partition(",")[2])

    def test_damaged_evaluation_set_is_found_at_the_start(self):
        self.refused_rows("column 0 [(]from 0[)]: 'x' is not a number", 1797, "x," + self.rows[1796].partition(",")[2])
        self.assertEqual(records(self.folder / "refused"), [])


class BadCheckpoint(BadInputTest):
    SETS = ["checkpoint.every_steps=5", "checkpoint.background=false"]

    def setUp(self):
        super().setUp()
        self.train_once("run", ranks=None, steps=12, sets=self.SETS)
        self.run_dir = self.folder / "run"
        self.assertEqual(len(checkpoints(self.run_dir)), 3)

    def flip_a_byte(self, path):
        """In the middle: among the variables' values, not in an unused corner."""
        damaged = bytearray(path.read_bytes())
        damaged[len(damaged) // 2] ^= 0x10
        path.write_bytes(damaged)

    def continues_as_if_undamaged(self, ranks=2):
        """From the newest intact checkpoint, with a warning that names the damaged one."""
        newest = checkpoints(self.run_dir)[-1].name
        result = self.train("run", ranks=ranks, steps=20, sets=self.SETS)
        self.assertRegex(result.err, f"warning.*damaged.*{newest}")
        self.assertIn("continuing at step 10", result.err)
        self.train_once("whole", ranks=None, steps=20, sets=self.SETS)
        self.assert_same_run("whole", "run")

    def test_flipped_bit_costs_steps_not_the_run(self):
        self.flip_a_byte(checkpoints(self.run_dir)[-1])
        self.continues_as_if_undamaged()

    def test_truncated_file_costs_steps_not_the_run(self):
        newest = checkpoints(self.run_dir)[-1]
        newest.write_bytes(newest.read_bytes()[:-3000])
        self.continues_as_if_undamaged(ranks=None)

    def test_empty_file_costs_steps_not_the_run(self):
        checkpoints(self.run_dir)[-1].write_bytes(b"")
        self.continues_as_if_undamaged(ranks=3)

    def test_a_lost_state_file_costs_nothing(self):
        (self.run_dir / "checkpoint").unlink()
        self.assertIn("continuing at step 12", self.train("run", ranks=2, steps=20, sets=self.SETS).err)
        self.train_once("whole", ranks=None, steps=20, sets=self.SETS)
        self.assert_same_run("whole", "run")

    def test_only_damaged_ones(self):
        for path in checkpoints(self.run_dir):
            self.flip_a_byte(path)
        before = [path.read_bytes() for path in checkpoints(self.run_dir)]
        self.refused(CHECKPOINT, "none of 3 checkpoints is intact",
                     *self.train_arguments("run", steps=20, sets=self.SETS))
        self.refused(CHECKPOINT, "none of 3 checkpoints is intact", "evaluate", self.run_dir)
        self.assertEqual([path.read_bytes() for path in checkpoints(self.run_dir)], before)

    def test_named_damaged_checkpoint_is_not_replaced(self):
        newest = checkpoints(self.run_dir)[-1]
        self.flip_a_byte(newest)
        self.refused(CHECKPOINT, newest.name, "evaluate", self.run_dir, "--checkpoint", newest)
        self.assert_one_error(self.start("inspect", newest, "--digest").wait(), CHECKPOINT, newest.name)

    def test_one_of_another_model(self):
        digest = self.digest("run")
        self.refused(CHECKPOINT, r"(?s)checkpoint of another model.*conv1/kernel",
                     *self.train_arguments("run", steps=20, sets=["model.layers.conv1.filters=16", *self.SETS]), "--accept-changes")
        self.refused(CHECKPOINT, "(?s)checkpoint of another model.*conv1/kernel", "evaluate", self.run_dir, "--set",
                     "model.layers.conv1.filters=16")
        self.assertEqual(self.digest("run"), digest)
        self.train("run", ranks=2, steps=20, sets=self.SETS)
        self.train_once("whole", ranks=None, steps=20, sets=self.SETS)
        self.assert_same_run("whole", "run")


class BadRunDirectory(BadInputTest):
    def test_in_use_by_another_run(self):
        arguments = self.train_arguments("run", steps=10**6, sets=["checkpoint.every_steps=100"])
        first = self.start(*arguments, ranks=2)
        wait_until(lambda: not first.running() or len(records(self.folder / "run")) > 3, 60, "the first run to train")
        holder = first.ranks()[0]
        self.refused(CONFIG, f"(?s)in use by process {holder} on .*since.*run", *arguments)
        self.assertTrue(first.running(), "the second run harmed the first")
        seen = len(records(self.folder / "run"))
        wait_until(lambda: not first.running() or len(records(self.folder / "run")) > seen, 60, "the first run to go on")
        self.assertTrue(first.running())
        first.kill()
        steps = [record["step"] for record in records(self.folder / "run")]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))
        # The lock died with its holder.
        last = self.header(self.folder / "run")["global_step"] if checkpoints(self.folder / "run") else 0
        self.train("run", ranks=1, steps=last + 5)

    def test_a_file_in_its_place(self):
        path = self.folder / "file"
        path.write_text("precious", encoding="utf-8")
        self.refused(CONFIG, "file: the run directory cannot be made", *self.train_arguments("file", steps=3))
        self.refused(CONFIG, "file/run: the run directory cannot be made", *self.train_arguments("file/run", steps=3))
        self.assertEqual(path.read_text(encoding="utf-8"), "precious")

    def test_no_run_in_it(self):
        (self.folder / "empty").mkdir()
        self.refused(CONFIG, "no config.yaml", "evaluate", self.folder / "empty")
        self.assert_one_error(self.start("inspect", self.folder / "empty").wait(), CHECKPOINT, "no intact checkpoint")

    def test_an_output_file_in_a_folder_that_is_missing(self):
        self.train("run", steps=2)
        rows = self.folder / "rows.csv"
        with gzip.open(DIGITS_DATA, "rt", encoding="ascii") as file:
            rows.write_text("".join(file.readlines()[:5]), encoding="ascii")
        self.refused(CONFIG, "missing/out.csv: cannot be written: there is no folder", "predict", self.folder / "run",
                     "--input", rows, "--output", self.folder / "missing" / "out.csv")


class Diverging(BadInputTest):
    def test_stops_with_the_last_checkpoint_intact(self):
        sets = ["checkpoint.every_steps=1", "checkpoint.keep=0"]
        self.train("run", steps=4, sets=sets)
        good = hashlib.sha256(checkpoints(self.folder / "run")[-1].read_bytes()).hexdigest()
        diverging = [*self.train_arguments("run", steps=40, sets=["optimizer.adam.learning_rate=1e30", *sets]),
                     "--accept-changes"]
        self.refused(FAILED, r"the loss of step \d+ is -?(nan|inf): training has diverged", *diverging)
        kept = self.folder / "run" / "checkpoints" / "step-00000004.h5"
        self.assertEqual(hashlib.sha256(kept.read_bytes()).hexdigest(), good)
        for path in checkpoints(self.folder / "run"):
            self.assertEqual([tensor["path"] for tensor in self.header(path)["tensors"] if tensor["nan"]], [])
        self.lockstep("evaluate", self.folder / "run", "--checkpoint", kept)


if __name__ == "__main__":
    main()

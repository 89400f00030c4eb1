# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""`lockstep checkpoint ...`, and the options of section checkpoint, by what a run directory then holds."""
import json
import unittest

from lockstep_run import LockstepTest, checkpoints, main, records

SYNCHRONOUS = "checkpoint.background=false"  # none is late: exactly the steps that are due


def flip(path, part):
    data = bytearray(path.read_bytes())
    data[int(len(data) * part)] ^= 1
    path.write_bytes(data)


class CheckpointCommands(LockstepTest):
    def setUp(self):
        super().setUp()
        self.train_once("run", ranks=2, steps=30, sets=["checkpoint.every_steps=10", SYNCHRONOUS])
        self.run_dir = self.folder / "run"
        self.files = checkpoints(self.run_dir)
        self.assertEqual(len(self.files), 3)

    def test_list_and_verify(self):
        listed = self.lockstep("checkpoint", "list", self.run_dir).out
        self.assertEqual(len(listed.splitlines()), 4)
        self.assertNotIn("intact", listed)
        rows = json.loads(self.lockstep("checkpoint", "list", self.run_dir, "--json", "--verify").out)
        self.assertEqual([(row["step"], row["intact"], row["kept"]) for row in rows],
                         [(step, True, "recent") for step in (10, 20, 30)])
        self.assertEqual([row["bytes"] for row in rows], [path.stat().st_size for path in self.files])
        self.assertEqual(self.lockstep("checkpoint", "verify", self.run_dir).out.count(": intact\n"), 3)

        flip(self.files[1], 0.5)
        rows = json.loads(self.lockstep("checkpoint", "list", self.run_dir, "--json", "--verify").out)
        self.assertEqual([row["intact"] for row in rows], [True, False, True])
        result = self.lockstep("checkpoint", "verify", self.run_dir, code=4)
        self.assertRegex(result.out, r"step-00000020.h5, dataset (variables|slots)/\S+: .*DAMAGED")
        self.lockstep("checkpoint", "verify", self.files[0])
        self.lockstep("checkpoint", "verify", self.files[1], code=4)
        self.assert_one_error(self.start("checkpoint", "list", self.folder).wait(), 4, "holds no checkpoint")
        self.lockstep("checkpoint", "verify", self.folder / "nothing.h5", code=4)

    def test_diff(self):
        same = self.lockstep("checkpoint", "diff", self.run_dir, self.files[-1])
        self.assertRegex(same.out, r"^(\d+) of \1 tensors are equal; steps 30 and 30\n$")
        self.assertRegex(self.lockstep("checkpoint", "diff", *self.files[:2], code=1).out,
                         r"variables/conv1/kernel: \d+ values differ, at most by")
        found = json.loads(self.lockstep("checkpoint", "diff", *self.files[:2], "--json", code=1).out)
        self.assertFalse(found["equal"])
        self.assertGreater(max(tensor.get("max_absolute", 0) for tensor in found["tensors"]), 0)
        self.assert_one_error(self.start("checkpoint", "diff", self.run_dir).wait(), 2, "B is required")

    def test_average_and_export(self):
        mean, weights = self.folder / "mean.h5", self.folder / "weights.h5"
        self.lockstep("checkpoint", "average", *self.files, "--output", mean)
        self.lockstep("checkpoint", "export", self.run_dir, "--output", weights)
        evaluated = {}
        for name, arguments in (("mean", ["--checkpoint", mean]), ("weights", ["--checkpoint", weights]), ("run", [])):
            evaluated[name] = json.loads(self.lockstep("evaluate", self.run_dir, *arguments, ranks=2).out)
        self.assertEqual(evaluated["weights"]["loss"], evaluated["run"]["loss"])
        self.assertNotEqual(evaluated["mean"]["loss"], evaluated["run"]["loss"])
        paths = [tensor["path"] for tensor in self.header(mean)["tensors"]]
        self.assertEqual([path for path in paths if not path.startswith("variables/")], [])

    def test_a_run_does_not_continue_from_weights_alone(self):
        weights = self.folder / "weights.h5"
        self.lockstep("checkpoint", "export", self.run_dir, "--output", weights)
        (self.run_dir / "checkpoint").write_text(f'model_checkpoint_path: "{weights}"\n', encoding="utf-8")
        arguments = self.train_arguments("run", steps=40)
        for ranks in (None, 2):
            self.assert_one_error(self.start(*arguments, ranks=ranks).wait(), 4, "weights.h5: holds weights only")


class CheckpointOptions(LockstepTest):
    def steps(self, run):
        return [int(path.stem.partition("-")[2]) for path in checkpoints(self.folder / run)]

    def test_the_best_by_the_evaluation_are_kept(self):
        for metric, mode in (("loss", "min"), ("accuracy", "max"), ("percentage_below", "min"), ("percentage_below", "max")):
            with self.subTest(metric=metric, mode=mode):
                run = f"{metric}-{mode}"
                sets = ["checkpoint.every_steps=6", "eval.every_steps=6", "checkpoint.keep=1", "checkpoint.keep_best=2",
                        f"checkpoint.best_metric={metric}", f"checkpoint.best_mode={mode}", SYNCHRONOUS,
                        "eval.metrics=[percentage_below: {threshold: 0.01}]"]
                for steps in (20, 42):  # the second process knows what the first has seen
                    self.train(run, ranks=2, steps=steps, sets=sets)
                values = {record["step"]: record[metric] for record in records(self.folder / run, "eval")}
                self.assertEqual(sorted(values), [6, 12, 18, 20, 24, 30, 36, 42])
                order = sorted(values, key=lambda step: (values[step] if mode == "min" else -values[step], step))
                self.assertEqual(self.steps(run), sorted({*order[:2], 42}))
                rows = json.loads(self.lockstep("checkpoint", "list", self.folder / run, "--json").out)
                self.assertEqual([row["metric"] for row in rows], [values[row["step"]] for row in rows])
                self.assertEqual([row["step"] for row in rows if "best" in row["kept"]], sorted(order[:2]))

    def test_keep_best_needs_an_evaluation(self):
        arguments = self.train_arguments("run", steps=2, sets=["checkpoint.keep_best=1", "data.eval=null"])
        self.assert_one_error(self.start(*arguments, ranks=2).wait(), 2, "keep_best: there is no evaluation")

    def test_before_the_first_step_and_by_time(self):
        self.train_until_checkpoints("run", 2, ["checkpoint.at_start=true", "checkpoint.every_seconds=0.05"])
        steps = self.steps("run")
        self.assertEqual(steps[0], 0)
        last = steps[-1]
        self.train("plain", ranks=1, steps=last)
        self.assert_same_run("plain", "run")
        again = self.train("run", ranks=1, steps=last + 1, sets=["checkpoint.at_start=true", "checkpoint.keep=0"])
        self.assertIn(f"continuing at step {last}", again.err)
        self.assertEqual(self.steps("run"), [*steps, last + 1])

    def test_as_often_as_failures_make_worth_while(self):
        """A failure every 0.4 s: the first after about a second, then as often as the disk allows."""
        self.train_until_checkpoints("run", 3, ["checkpoint.mtbf_hours=0.0001"])
        self.train("never", ranks=2, steps=50, sets=["checkpoint.mtbf_hours=1e6", "checkpoint.keep=0"])
        self.assertEqual(self.steps("never"), [50])


if __name__ == "__main__":
    main()

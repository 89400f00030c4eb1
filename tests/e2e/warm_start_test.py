# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Initial values from another run's checkpoint: what is taken, what is refused, and the same bits on any ranks."""
import json
import unittest

from lockstep_run import DIGITS, LockstepTest, checkpoints, main

FIRST_LAYER = "conv1/kernel"


class WarmStartTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.train("pretrained", steps=10)
        self.pretrained = self.folder / "pretrained"

    def warm(self, run, source, ranks=1, steps=1, code=0, sets=()):
        """A run of another seed, hence other initial values, that keeps its state before the first step."""
        sets = ["seed=5", "checkpoint.at_start=true", "checkpoint.background=false", f"warm_start.checkpoint={source}",
                *sets]
        return self.train(run, ranks=ranks, steps=steps, code=code, sets=sets)

    def differing(self, one, two):
        """Variables whose values differ, of all that are in both."""
        arguments = ["checkpoint", "diff", one, two, "--json"]
        result = self.start(*arguments).wait()
        self.assertIn(result.code, (0, 1), str(result))
        tensors = json.loads(result.out)["tensors"]
        variables = {tensor["path"].removeprefix("variables/"): tensor["difference"] for tensor in tensors
                     if tensor["path"].startswith("variables/")}
        self.assertGreater(len(variables), 3)
        return sorted(name for name, difference in variables.items() if difference != "equal"), sorted(variables)

    def at_start(self, run):
        path = self.folder / run / "checkpoints" / "step-00000000.h5"
        self.assertTrue(path.exists())
        return path

    def test_all_variables_and_no_slots_are_taken(self):
        source = checkpoints(self.pretrained)[-1]
        for ranks in (None, 1, 2, 3):
            result = self.warm(f"run-{ranks}", self.pretrained, ranks=ranks, steps=6)
            self.assertEqual(result.err.count("warm start from"), 1, "the chief alone tells\n" + str(result))
            self.assertRegex(result.err, r"\d+ variables taken")
            differing, _ = self.differing(source, self.at_start(f"run-{ranks}"))
            self.assertEqual(differing, [])
            slots = [tensor for tensor in self.header(self.at_start(f"run-{ranks}"))["tensors"]
                     if tensor["path"].startswith("slots/")]
            self.assertTrue(slots)
            self.assertEqual([slot["path"] for slot in slots if slot["max"] != 0 or slot["min"] != 0], [])
            self.assert_same_run("run-None", f"run-{ranks}")
        self.train("cold", steps=6, sets=["seed=5"])
        self.assertNotEqual(self.digest("cold"), self.digest("run-None"), "the warm start changed nothing")

    def test_a_subset_and_a_renamed_file_of_weights(self):
        weights = self.folder / "weights.h5"
        self.lockstep("checkpoint", "export", self.pretrained, "--output", weights, "--variables", "conv1/*",
                      "--rename", "conv1/=first/")
        result = self.warm("run", weights, ranks=2, sets=["warm_start.variables=conv1/*",
                                                          "warm_start.rename={conv1/: first/}"])
        self.assertRegex(result.err, r"taken: conv1/kernel \(from first/kernel\)")
        differing, names = self.differing(checkpoints(self.pretrained)[-1], self.at_start("run"))
        self.assertNotIn(FIRST_LAYER, differing)
        self.train("cold", steps=1, sets=["seed=5", "checkpoint.at_start=true", "checkpoint.background=false"])
        differing, names = self.differing(self.at_start("cold"), self.at_start("run"))
        self.assertEqual([name for name in names if name.startswith("conv1/") and name not in differing], [])
        self.assertEqual(differing, [name for name in names if name.startswith("conv1/")], "nothing else is touched")

    def test_frozen_layers_keep_their_values(self):
        """Fine-tuning: L2 on every kernel, a frozen backbone with its statistics, and one frozen variable."""
        sets = ["model.frozen=[conv1, bn1, conv2/*]", "train.batch_size=64",
                'model.regularization=[{variables: "*/kernel", l2: 0.1}]']
        source = checkpoints(self.pretrained)[-1]
        for run, ranks in (("one", 1), ("three", 3)):
            result = self.warm(run, self.pretrained, ranks=ranks, steps=6, sets=sets)
            self.assertRegex(result.err, r"parameters to train, \d+ frozen")
            differing, names = self.differing(source, checkpoints(self.folder / run)[-1])
            kept = [name for name in names if name.startswith(("conv1/", "bn1/", "conv2/"))]
            self.assertEqual(len(kept), 6)
            self.assertEqual(sorted(set(names) - set(differing)), kept)
            slots = [tensor["path"] for tensor in self.header(checkpoints(self.folder / run)[-1])["tensors"]
                     if tensor["path"].startswith("slots/")]
            self.assertEqual([path for path in slots if "/conv1/" in path or "/bn1/" in path], [])
        self.assert_same_run("one", "three")
        # The run goes on with everything trainable: new slots begin at zero.
        result = self.train("one", steps=8, more=["--accept-changes"],
                            sets=["seed=5", "checkpoint.at_start=true", "checkpoint.background=false",
                                  f"warm_start.checkpoint={self.pretrained}", "train.batch_size=64",
                                  'model.regularization=[{variables: "*/kernel", l2: 0.1}]'])
        self.assertRegex(result.err, r"state of optimizer of .*: begun anew: ")
        differing, names = self.differing(source, checkpoints(self.folder / "one")[-1])
        self.assertEqual(differing, names)

    def test_missing_or_misshapen_is_an_error_if_strict(self):
        weights = self.folder / "weights.h5"
        self.lockstep("checkpoint", "export", self.pretrained, "--output", weights, "--variables", "re:conv1/.*")
        for ranks in (None, 2):
            result = self.warm("run", weights, ranks=ranks, code=4)
            self.assert_one_error(result, 4, r"cannot be warm-started from it: [^\n]*missing there(.|\n)*missing: ")
        self.assertEqual(checkpoints(self.folder / "run"), [])
        result = self.warm("run", weights, ranks=2, sets=["warm_start.strict=false"])
        self.assertRegex(result.err, r"warning: warm start from (.|\n)*missing: ")
        # Another shape: a scale in the place of a kernel.
        result = self.warm("shape", self.pretrained, ranks=2, code=4,
                           sets=["warm_start.rename={conv1/kernel: bn1/gamma}"])
        self.assert_one_error(result, 4, r"another shape: conv1/kernel \(from bn1/gamma\): float32 of 32 there")

    def test_unmatched_names_and_unusable_files(self):
        for override, code, pattern in (
                ("warm_start.variables=covn1/.*", 2, r"(?s)--set \S+: warm_start.variables: no variable .* 'covn1/\.\*'.*write re:covn1"),
                ("warm_start.rename={a/: b/}", 2, "warm_start.rename: no variable"),
                ("warm_start.variables=re:(", 2, "not a regular expression"),
                ("warm_start.variables=re:" + 50000 * "(", 2, r"50003 characters, and the limit is 500"),
                ("warm_start.rename={a/: b}", 2, "both sides must be scopes"),
                ("warm_start.checkpoint=/nonexistent", 4, "/nonexistent")):
            for ranks in (None, 2):
                result = self.warm("run", self.pretrained, ranks=ranks, code=code, sets=[override])
                self.assert_one_error(result, code, pattern)
        damaged = self.folder / "damaged.h5"
        data = bytearray(checkpoints(self.pretrained)[-1].read_bytes())
        middle = len(data) // 2
        data[middle] ^= 1
        damaged.write_bytes(data)
        self.assert_one_error(self.warm("run", damaged, ranks=2, code=4), 4, r"damaged.h5, dataset \S+/\S+: the checksum is wrong")

    def test_a_run_that_continues_is_not_warm_started(self):
        self.warm("run", self.pretrained, steps=3)
        resumed = self.warm("run", "/gone/since", ranks=2, steps=6)
        self.assertNotIn("warm start", resumed.err)
        self.warm("whole", self.pretrained, steps=6)
        self.assert_same_run("whole", "run")


if __name__ == "__main__":
    main()

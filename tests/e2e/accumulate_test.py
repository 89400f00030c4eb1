# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""train.accumulate: a batch in rounds has the bits of the same batch in as many more shards."""
import unittest

from lockstep_run import DIGITS, LockstepTest, main, records

STEPS = 6


def groups(size):
    return [f"model.layers.{layer}.group={size}" for layer in ("bn1", "bn2", "bn3")]


class AccumulateTest(LockstepTest):
    def test_rounds_have_the_bits_of_shards(self):
        """Of a batch norm over the whole batch; with rounds of 8, 4, 2 and 1 microshards."""
        self.train("plain", steps=STEPS, sets=["shards=8"])
        self.assertEqual(len(records(self.folder / "plain")), STEPS)
        for rounds in (1, 2, 4, 8):
            sets = [f"shards={8 // rounds}", f"train.accumulate={rounds}"]
            for ranks, threads in ((1, 1), (1, 2), (2, 2), (3, 1), (4, 1), (8, 1)):
                with self.subTest(rounds=rounds, ranks=ranks, threads=threads):
                    run = f"{rounds}-{ranks}-{threads}"
                    self.train(run, ranks=ranks, threads=threads, steps=STEPS, sets=sets)
                    self.assert_same_run("plain", run)

    def test_rounds_are_other_bits_than_fewer_shards(self):
        self.train("one", steps=2, sets=["shards=2"])
        self.train("two", steps=2, sets=["shards=2", "train.accumulate=2"])
        self.assertNotEqual(self.digest("one"), self.digest("two"))

    def test_groups_of_microshards(self):
        """One rank with one thread carries one group after the other through the net; eight ranks, and three threads
        for four groups of two, do other things."""
        for group in (1, 2, 4):
            sets = ["shards=2", "train.accumulate=4", *groups(group)]
            self.train(f"one-{group}", steps=STEPS, sets=sets)
            for ranks, threads in ((1, 2), (1, 3), (2, 1), (2, 2), (3, 1), (4, 1), (8, 1)):
                with self.subTest(group=group, ranks=ranks, threads=threads):
                    run = f"run-{group}-{ranks}-{threads}"
                    self.train(run, ranks=ranks, threads=threads, steps=STEPS, sets=sets)
                    self.assert_same_run(f"one-{group}", run)
        self.assertNotEqual(self.digest("one-1"), self.digest("one-2"))

    def test_overlapped_sums(self):
        sets = ["shards=2", "train.accumulate=4", *groups(2)]
        self.train("plain", steps=STEPS, sets=sets)
        self.train("small", ranks=2, steps=STEPS, sets=[*sets, "comm.overlap=on", "comm.bucket_first_mb=0.001", "comm.bucket_mb=0.01"])
        self.assert_same_run("plain", "small")

    def test_a_run_in_rounds_is_resumed(self):
        sets = ["shards=2", "train.accumulate=4"]
        self.train("whole", steps=STEPS, sets=sets)
        self.train("parts", ranks=3, steps=3, sets=sets)
        self.assertEqual(self.header(self.folder / "parts")["shards"], 8)
        self.train("parts", ranks=2, steps=STEPS, sets=sets)
        self.assertEqual(self.digest("whole"), self.digest("parts"))

    def test_other_rounds_are_refused_on_resume(self):
        self.train("run", steps=2, sets=["shards=2", "train.accumulate=4"])
        for sets, more, pattern in (
                (["shards=2", "train.accumulate=2"], (), r"would change the result:\n.*- train.accumulate: 4\n.*\+ train.accumulate: 2"),
                (["shards=2", "train.accumulate=2"], ("--accept-changes",), "2 shards in 2 rounds are 4 microshards, but the run began with 8"),
                (["shards=null", "train.accumulate=3"], ("--accept-changes",), "8 microshards, which cannot be 3 rounds")):
            arguments = self.train_arguments("run", steps=4, sets=sets, more=more)
            self.assert_one_error(self.start(*arguments, ranks=2).wait(), 2, pattern)

    def test_bad_rounds(self):
        for sets, pattern in ((["train.accumulate=0"], r"must be \[1, 65536\], but is 0"),
                              (["train.accumulate=100"], "batch_size of 64 has not enough samples for 100 rounds"),
                              (["shards=8", "train.accumulate=16"], "batch_size of 64 has not enough samples for 16 rounds of 8 shards"),
                              (["train.batch_size=100000", "shards=60000", "train.accumulate=2"], "more than 65536 microshards")):
            arguments = self.train_arguments("bad", steps=4, sets=sets)
            self.assert_one_error(self.start(*arguments, ranks=2).wait(), 2, pattern)

    def test_names_of_other_frameworks(self):
        for name in ("gradient_accumulation_steps", "accumulate_grad_batches", "iter_size", "accum_steps"):
            result = self.lockstep("check", DIGITS, "--set", f"train.{name}=2", code=2)
            self.assertRegex(result.err, "It is called 'accumulate' here: batch_size is the whole batch")

    def test_it_is_said_what_rounds_save(self):
        sets = ("--set", "shards=2", "--set", "train.accumulate=4")
        text = self.lockstep("check", DIGITS, *sets).out
        self.assertIn("64 samples in 8 microshards, 4 rounds of 2 shards", text)
        self.assertRegex(text, "all microshards of a rank are in flight")
        self.assertRegex(text, "warning +train.accumulate saves no memory of activations: bn1, bn2, bn3 take")
        for name in groups(1):
            sets += ("--set", name)
        text = self.lockstep("check", DIGITS, *sets).out
        self.assertRegex(text, "one microshard per thread in flight")
        self.assertNotIn("saves no memory", text)
        self.assertIn("train.accumulate saves no memory", self.train("run", steps=1, sets=["shards=2", "train.accumulate=4"]).err)


if __name__ == "__main__":
    main()

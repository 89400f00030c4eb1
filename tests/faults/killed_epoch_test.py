# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""SIGKILL in the middle of epochs, at random steps of random ranks, of runs with length buckets, sources, bad records and
passes: resumed on other numbers of ranks, they end with the bits of a run that nobody kills. LOCKSTEP_SEED repeats a case."""
import json
import os
import random
import shutil

from lockstep_run import LockstepTest, checkpoints, main

CONFIG = """
seed: 11
shards: 4
data:
  format: jsonl
  features: ids
  labels: y
  pad_to: 9
  bad_records: skip
  max_bad_records: 0.5
  block_samples: 8
  memory_gb: %s
%s
model:
  layers:
    - sequence_length: {name: length}
    - embedding: {name: words, inputs: features, rows: 12, units: 4}
    - gru: {name: rnn, units: 5, inputs: [words, length]}
    - dropout: {rate: 0.1, inputs: "rnn:1"}
    - dense: {units: 2}
optimizer: {adam: {learning_rate: 0.01}}
train: {batch_size: 10, epochs: 3, last_batch: %s}
checkpoint: {every_steps: 3}
"""
BUCKETS = "  path: [left.jsonl, right.jsonl]\n  train: {length_buckets: [%s], repeat: %d}"
SOURCES = "  sources:\n    left: {path: left.jsonl%s}\n    right: {path: right.jsonl%s}\n  train: {%s}"


class KilledEpochTest(LockstepTest):
    def write(self, numbers, name, count):
        with open(self.folder / name, "w", encoding="utf-8") as file:
            for _ in range(count):
                ids = [numbers.randint(1, 11) for _ in range(numbers.randint(1, 9))]
                bad = numbers.random()
                if bad < 0.05:
                    ids += [1] * 9  # too long
                elif bad < 0.1:
                    ids = []
                file.write("no object\n" if 0.1 < bad < 0.13 else json.dumps({"ids": ids, "y": int(sum(ids) % 2)}) + "\n")

    def check(self, kind, seed):
        numbers = random.Random(f"{kind} {seed}")
        self.write(numbers, "left.jsonl", numbers.randint(40, 60))
        self.write(numbers, "right.jsonl", numbers.randint(20, 70))
        if kind == "buckets":
            data = BUCKETS % (numbers.choice(["3, 6", "5", "1, 2, 4, 8"]), numbers.randint(1, 2))
        elif kind == "shares":
            data = SOURCES % (", share: 2", f", share: {numbers.randint(1, 3)}", f"repeat: {numbers.randint(1, 2)}")
        else:
            data = SOURCES % ("", "", "length_buckets: [4]")
        config = self.folder / "run.yaml"
        config.write_text(CONFIG % (numbers.choice([1, "0.000004"]), data, numbers.choice(["smaller", "drop", "fill"])), encoding="utf-8")
        arguments = lambda run: ["train", config, "--run-dir", self.folder / run, "--threads", 1]  # noqa: E731
        self.lockstep(*arguments("whole"))
        last = int(checkpoints(self.folder / "whole")[-1].stem.split("-")[1])
        step = 0
        for _ in range(2):
            step = numbers.randint(step + 1, max(step + 1, (step + last) // 2))
            ranks = numbers.randint(2, 4)
            fault = {"LOCKSTEP_FAULT": f"{step}:{numbers.randint(0, ranks - 1)}:kill"}
            result = self.start(*arguments("killed"), ranks=ranks, variables=fault).wait()
            self.assertEqual(result.code, 137, str(result))
        self.lockstep(*arguments("killed"), ranks=numbers.choice([None, 2, 3, 4]))
        self.assertEqual(int(checkpoints(self.folder / "killed")[-1].stem.split("-")[1]), last)
        self.assertEqual(self.digest("whole"), self.digest("killed"), f"{kind} {seed}:\n{config.read_text()}")

    def test_killed_runs_end_with_the_same_bits(self):
        seed = os.environ.get("LOCKSTEP_SEED")
        for kind, seeds in (("buckets", (1, 2)), ("shares", (3,)), ("sources", (4,))):
            for case in seeds if seed is None else (int(seed),):
                with self.subTest(kind=kind, seed=case):
                    for run in ("whole", "killed"):
                        shutil.rmtree(self.folder / run, ignore_errors=True)
                    self.check(kind, case)


if __name__ == "__main__":
    main()

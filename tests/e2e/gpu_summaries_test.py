# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Histograms and pictures of a run on GPUs: measured there, the same on any number of ranks, close to the CPU's, and without
an effect on the bits of the training."""
from event_records import summaries
from gpu_run import EMULATED, GpuRunTest
from lockstep_run import main, records

PARTS = [f"summary.{part}={{every_steps: 2}}" for part in
         ("weights", "gradients", "updates", "activations", "inputs", "filters")]


class GpuSummariesTest(GpuRunTest):
    def found(self, run):
        return {key: value for key, value in summaries(self.folder / run).items()
                if not key[0].endswith("/sec") and not key[0].startswith(("configuration", "_hparams_"))}

    def test_the_same_on_any_ranks_and_close_to_the_cpu(self):
        self.on_gpu("plain", steps=2)
        self.on_gpu("memory", steps=3, sets=["summary.ranks={every_steps: 3}"])
        memory = [record["ranks/gpu_memory_gb"] for record in records(self.folder / "memory") if "ranks/gpu_memory_gb" in record]
        self.assertEqual(len(memory), 1)
        self.assertTrue(4 * 3 * 56554e-9 < memory[0] < 1, "at least variables, gradients and a slot; this is a small model")
        for run, ranks, gpus in (("one", 1, 1), ("shared", 2, 1), *((("three", 3, 4),) if EMULATED else ())):
            self.on_gpu(run, ranks=ranks, gpus=gpus, steps=2, sets=PARTS)
            self.assertEqual(self.digest(run), self.digest("plain"), run)
            self.assertEqual(self.found(run), self.found("one"), run)
        self.on_gpu("cpu", steps=2, sets=PARTS, device="cpu")
        gpu, cpu = self.found("one"), self.found("cpu")
        self.assertEqual(set(gpu), set(cpu))
        self.assertEqual(gpu["inputs", 2][0], cpu["inputs", 2][0])
        compared = 0
        for key, (value,) in gpu.items():
            if not isinstance(value, dict) or "limits" not in value:
                continue
            other = cpu[key][0]
            self.assertEqual(value["num"], other["num"], key)
            self.assertEqual(value["num"], sum(value["counts"]), key)
            if key[0].startswith(("weights", "activations")):
                compared += 1
                self.assertAlmostEqual(value["sum_squares"], other["sum_squares"],
                                       delta=1e-2 * other["sum_squares"] + 1e-12, msg=str(key))
        self.assertGreater(compared, 15)
        rows = [{}, {}]
        for row, run in zip(rows, ("one", "cpu")):
            for record in records(self.folder / run):
                row.update(record)
        for name, value in rows[1].items():
            if name.startswith(("gradient_norm/", "zero_fraction/")):
                self.assertAlmostEqual(rows[0][name], value, delta=2e-2 * abs(value) + 1e-3, msg=name)


if __name__ == "__main__":
    main()

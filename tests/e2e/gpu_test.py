# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The whole program on GPUs: the same bits from run to run and on 1, 2, 3 and 4 ranks, resumed and killed, on a GPU and on
CPUs in turn. Runs on the emulated GPU everywhere (LOCKSTEP_EMULATED=1), and on a real one where there is one."""
import gzip
import os
import re
import unittest

import lockstep_run
from gpu_run import EMULATED, SMALL, GpuRunTest
from lockstep_run import checkpoints, main, records, wait_until

HAS_FAULTS = os.environ.get("LOCKSTEP_HAS_FAULTS") == "1"
STEPS = 6 if EMULATED else 48  # emulated steps are slow
SHARED = ["comm.nccl_shared_gpu=true"]  # NCCL takes ranks that share a GPU for hosts
# 32 units: a step of these layers is one kernel.
RECURRENT = """
data: {format: synthetic, samples: 64, shape: [4, 8], classes: 3}
model:
  layers:
    - lstm: {name: long, units: 32, bidirectional: true}
    - gru: {name: after, units: 32, reset_after: true}
    - gru: {name: before, units: 32, recurrent_dropout: 0.2}
    - last_step
    - dense: {name: top, units: 3}
optimizer: {momentum: {learning_rate: 0.05}}
train: {batch_size: 16}
"""


class GpuTest(GpuRunTest):
    STEPS = STEPS

    def test_same_bits_on_1_to_4_ranks_sharing_a_gpu(self):
        first = self.plain_on_gpu("first")
        self.assertNotIn("SHARE", first.err)
        for ranks in (1, 2, 3, 4):
            result = self.on_gpu(f"ranks{ranks}", ranks=ranks)
            self.assert_same_run("first", f"ranks{ranks}", f"{ranks} ranks")
            self.assertEqual("RANKS SHARE A GPU" in result.err, ranks > 1, str(result))
            self.assertRegex(result.err, r"rank +host +GPU +address +NUMA +cores\n +0 ")

    def test_recomputed_activations_have_the_same_bits(self):
        self.plain_on_gpu("first")
        for ranks in (1, 3):
            result = self.on_gpu(f"recomputed{ranks}", ranks=ranks, sets=["train.recompute=auto"])
            self.assertRegex(result.err, "recomputation: .* of the forward pass once more")
            self.assert_same_run("first", f"recomputed{ranks}", f"{ranks} ranks")

    @unittest.skipUnless(EMULATED, "several GPUs are emulated")
    def test_same_bits_with_a_gpu_per_rank(self):
        self.plain_on_gpu("one")
        for ranks in (2, 3, 4):
            result = self.on_gpu(f"nccl{ranks}", ranks=ranks, gpus=4)
            self.assertNotIn("SHARE", result.err)
            self.assert_same_run("one", f"nccl{ranks}", f"{ranks} ranks")

    def test_nccl_between_ranks_that_share_a_gpu_has_the_same_bits(self):
        self.plain_on_gpu("one")
        for ranks in (2, 3, 4):
            result = self.on_gpu(f"shared{ranks}", ranks=ranks, sets=SHARED)
            self.assertIn("gradients pass through NCCL and sockets, VERY SLOW (comm.nccl_shared_gpu)", result.err)
            self.assert_same_run("one", f"shared{ranks}", f"{ranks} ranks")

    @unittest.skipUnless(HAS_FAULTS, "a build without faults")
    def test_nccl_ends_in_time_with_one_message_after_a_kill_a_stop_and_an_error(self):
        for fault, code, message in (
                ("kill", 137, r"signal 9 \(Killed\)"),
                ("stop", 1, r"the run hangs: rank 1: no answer .*\n.* the run ends here"),
                ("lost_gpu_groups", 1, r"NCCL, group '(gradients|batch norm)', rank \d of 2: |waited \d+ s in '")):
            with self.subTest(fault=fault):
                result = self.on_gpu(fault, ranks=2, sets=[*SHARED, "comm.timeout_seconds=5"], code=code, limit=90,
                                     LOCKSTEP_FAULT=f"3:1:{fault}")
                self.assertRegex(result.err, message)
                self.assertLessEqual(len(re.findall(r"^error", result.err, re.M)), 1, str(result))
                self.assertLess(result.seconds, 60, str(result))

    @unittest.skipUnless(EMULATED, "MPI takes the memory of emulated GPUs, because it is the host's")
    def test_same_bits_if_mpi_moves_the_memory_of_gpus(self):
        self.plain_on_gpu("one")
        for ranks, gpus, overlap in ((2, 1, "on"), (3, 1, "off"), (4, 2, "on")):
            result = self.on_gpu(f"ranks{ranks}", ranks=ranks, gpus=gpus,
                                 sets=["comm.gpu_aware_mpi=on", f"comm.overlap={overlap}"])
            self.assertIn("MPI sends and receives the memory of GPUs", result.err)
            self.assertIn("gradients pass through MPI", result.err)
            self.assert_same_run("one", f"ranks{ranks}", f"{ranks} ranks")

    def test_branches_have_the_bits_of_one(self):
        # Batch norms of all microshards, and a net without any, where a branch carries microshards one after the other.
        dropout = "model.layers=[flatten, dense: {units: 32}, layer_norm, gelu, dropout: {rate: 0.5}, dense: {units: 10}]"
        for net, sets in (("norms", []), ("dropout", [dropout, "precision.compute=bfloat16"])):
            sets = ["shards=8", *sets]
            one = self.on_gpu(f"{net}1", sets=[*sets, "gpu.branches=1"])
            self.assertNotIn("at a time on the GPU", one.err)
            for ranks, gpus, branches in ((1, 1, 8), (1, 1, 3), (2, 1, 2), (4, 1, 8), *(((3, 4, 2),) if EMULATED else ())):
                name = f"{net}{ranks}-{branches}"
                result = self.on_gpu(name, ranks=ranks, gpus=gpus, sets=[*sets, f"gpu.branches={branches}"])
                self.assertIn(f"{min(branches, 8 // ranks)} microshards at a time on the GPU of rank 0", result.err)
                self.assert_same_run(f"{net}1", name, name)
            for order in ("RUN_AHEAD", "INTERLEAVED") if EMULATED else ():
                self.on_gpu(f"{net}{order}", sets=sets, **{f"LOCKSTEP_EMULATED_{order}": "1"})
                self.assert_same_run(f"{net}1", f"{net}{order}", order)
        words = [word for one in ("device=cuda", "shards=8", *SMALL) for word in ("--set", one)]
        found = re.search(r"branches +8 microshards at a time on one rank; each after the first takes ([\d.]+) MB",
                          self.lockstep("check", lockstep_run.DIGITS, *words).out)
        self.assertGreater(float(found[1]), 1)

    def test_16_bits_same_bits_and_close_to_the_cpu(self):
        for kind in ("bfloat16", "float16"):
            # The loss scale changes behind recorded steps: they must not be launched with the old one.
            sets = [f"precision.compute={kind}", "precision.loss_scale_growth_steps=2"]
            self.on_gpu(f"{kind}1", sets=sets)
            for ranks, gpus in ((2, 1), (4, 1), *(((3, 4),) if EMULATED else ())):
                self.on_gpu(f"{kind}{ranks}", ranks=ranks, gpus=gpus, sets=sets)
                self.assert_same_run(f"{kind}1", f"{kind}{ranks}", f"{kind}, {ranks} ranks")
            self.on_gpu(f"{kind}cpu", sets=sets, device="cpu", steps=3)
            losses = [[record["loss"] for record in records(self.folder / f"{kind}{where}")[:3]] for where in ("1", "cpu")]
            for gpu, cpu in zip(*losses):
                self.assertAlmostEqual(gpu, cpu, delta=0.02)
            self.on_gpu(f"{kind}parts", steps=STEPS // 2, sets=sets)
            self.on_gpu(f"{kind}parts", steps=STEPS, ranks=2, sets=sets)
            self.assertEqual(self.digest(f"{kind}1"), self.digest(f"{kind}parts"))
        scales = [record["loss_scale"] for record in records(self.folder / "float161")]
        self.assertGreater(len(set(scales)), 2)

    def test_clipped_gradients_same_bits_on_any_ranks(self):
        for kind, limit in (("clip_global_norm", 0.5), ("clip_norm", 0.2), ("clip_value", 0.02)):
            sets = [f"gradients.{kind}={limit}", "gradients.record_norm=true"]
            self.on_gpu(f"{kind}1", sets=sets)
            for ranks, gpus in ((2, 1), (4, 1), *(((3, 4),) if EMULATED else ())):
                self.on_gpu(f"{kind}{ranks}", ranks=ranks, gpus=gpus, sets=sets)
                self.assert_same_run(f"{kind}1", f"{kind}{ranks}", f"{kind}, {ranks} ranks")
            if EMULATED:
                self.on_gpu(f"{kind}early", sets=sets, LOCKSTEP_EMULATED_RUN_AHEAD="1")
                self.assert_same_run(f"{kind}1", f"{kind}early", f"{kind}, early")
            self.on_gpu(f"{kind}cpu", sets=sets, device="cpu", steps=4)
            gpu, cpu = ([record["gradient_norm"] for record in records(self.folder / f"{kind}{where}")[:4]]
                        for where in ("1", "cpu"))
            for one, other in zip(gpu, cpu):
                self.assertAlmostEqual(one, other, delta=1e-3 * other)
        self.assertNotEqual(self.digest("clip_norm1"), self.digest("clip_value1"))

    def test_compressed_sums_same_bits(self):
        sets = ["comm.compress=bfloat16"]
        self.on_gpu("one", sets=sets)
        for ranks, gpus in ((2, 1), (3, 1), *(((2, 4), (3, 4)) if EMULATED else ())):
            self.on_gpu(f"ranks{ranks}-{gpus}", ranks=ranks, gpus=gpus, sets=sets)
            self.assert_same_run("one", f"ranks{ranks}-{gpus}", f"{ranks} ranks, {gpus} GPUs")
        self.on_gpu("plain", steps=2)
        self.on_gpu("rounded", steps=2, sets=sets)
        self.assertNotEqual(self.digest("plain"), self.digest("rounded"))

    def test_moving_average_same_bits_and_resumed(self):
        sets = ["average={swa: {start_step: 2, every_steps: 2}}"]
        self.on_gpu("one", sets=sets)
        self.on_gpu("two", ranks=2, sets=sets)
        self.assert_same_run("one", "two")
        if EMULATED:
            self.on_gpu("early", sets=sets, LOCKSTEP_EMULATED_RUN_AHEAD="1")
            self.assert_same_run("one", "early")
        for steps in (1, 5, STEPS):
            self.on_gpu("resumed", steps=steps, sets=sets)
        self.assertEqual(self.digest("one"), self.digest("resumed"))

    def test_muon_same_bits_and_close_to_the_cpu(self):
        self.matrices_same_bits_and_close_to_the_cpu("muon: {learning_rate: 0.002, adamw_for: ['logits/*']}")

    def test_shampoo_same_bits_and_close_to_the_cpu(self):
        self.matrices_same_bits_and_close_to_the_cpu(
            "shampoo: {learning_rate: 0.002, block_size: 24, root_every: 3, adamw_for: ['logits/*']}")

    def test_recurrent_steps_same_bits_and_close_to_the_cpu(self):
        config = self.folder / "recurrent.yaml"
        config.write_text(RECURRENT)
        for kind in ("float32", "bfloat16"):
            options = {"config": config, "sets": [f"precision.compute={kind}"]}
            self.on_gpu(f"{kind}1", **options)
            self.on_gpu(f"{kind}2", ranks=2, LOCKSTEP_EMULATED_RUN_AHEAD="1", **options)
            self.assert_same_run(f"{kind}1", f"{kind}2", kind)
            self.on_gpu(f"{kind}cpu", device="cpu", **options)
            for one, other in zip(records(self.folder / f"{kind}1"), records(self.folder / f"{kind}cpu")):
                self.assertAlmostEqual(one["loss"], other["loss"], delta=2e-3)

    def matrices_same_bits_and_close_to_the_cpu(self, rule):
        sets = [f"optimizer={{{rule}}}"]
        self.on_gpu("one", sets=sets)
        for ranks, gpus in ((2, 1), *(((3, 4),) if EMULATED else ())):
            self.on_gpu(f"ranks{ranks}", ranks=ranks, gpus=gpus, sets=sets)
            self.assert_same_run("one", f"ranks{ranks}")
        if EMULATED:
            self.on_gpu("early", ranks=2, sets=sets, LOCKSTEP_EMULATED_RUN_AHEAD="1")
            self.assert_same_run("one", "early")
        self.on_gpu("cpu", sets=sets, device="cpu")
        for one, other in zip(records(self.folder / "one"), records(self.folder / "cpu")):
            self.assertAlmostEqual(one["loss"], other["loss"], delta=2e-3)
        self.on_gpu("resumed", sets=sets, steps=4, ranks=2)
        self.on_gpu("resumed", sets=sets)
        self.assertEqual(self.digest("one"), self.digest("resumed"))

    def test_rounds_noise_scale_and_watched_gradients(self):
        norms = [f"model.layers.{layer}.group=1" for layer in ("bn1", "bn2", "bn3")]
        sets = [*norms, "gradients.noise_scale=true", "train.on_nan=rollback"]
        rounds = ["shards=2", "train.accumulate=4"]
        self.on_gpu("shards", sets=[*sets, "shards=8"])
        for ranks, gpus in ((1, 1), (2, 1), *(((3, 4),) if EMULATED else ())):
            self.on_gpu(f"rounds{ranks}", ranks=ranks, gpus=gpus, sets=[*sets, *rounds])
            self.assert_same_run("shards", f"rounds{ranks}")
        if EMULATED:
            self.on_gpu("early", sets=[*sets, *rounds], LOCKSTEP_EMULATED_RUN_AHEAD="1")
            self.assert_same_run("shards", "early")

    @unittest.skipUnless(HAS_FAULTS, "a build without faults")
    def test_a_rollback_has_the_same_bits_on_any_ranks(self):
        sets = ["train.on_nan=rollback", "checkpoint.every_steps=2"]
        for ranks in (1, 2):
            result = self.on_gpu(f"back{ranks}", ranks=ranks, sets=sets, LOCKSTEP_FAULT="4:0:nan_gradient")
            self.assertIn("back to the checkpoint of step 2; training goes on after the samples of step 4", result.err)
        self.assert_same_run("back1", "back2")

    @unittest.skipUnless(HAS_FAULTS, "a build without faults")
    def test_non_finite_norm_skips_or_ends(self):
        sets, fault = ["gradients.clip_global_norm=0.5"], {"LOCKSTEP_FAULT": "3:1:nan_gradient"}
        result = self.on_gpu("skip", ranks=2, sets=[*sets, "train.on_nan=skip"], **fault)
        self.assertIn("the norm of the gradients of step 3 is nan: training has diverged: this step's update is skipped",
                      result.err)
        norms = [record["gradient_norm"] for record in records(self.folder / "skip")]
        self.assertEqual([norm is None for norm in norms], [step == 3 for step in range(1, STEPS + 1)])
        result = self.on_gpu("error", ranks=2, sets=sets, code=1, **fault)
        self.assert_one_error(result, 1, "the loss of step 4 is nan")

    @unittest.skipUnless(EMULATED, "the order of streams is emulated")
    def test_same_bits_for_late_and_early_streams(self):
        self.plain_on_gpu("late")
        for ranks, gpus in ((1, 1), (2, 1), (3, 4)):
            self.on_gpu(f"early{ranks}", ranks=ranks, gpus=gpus, LOCKSTEP_EMULATED_RUN_AHEAD="1")
            self.assert_same_run("late", f"early{ranks}", f"{ranks} ranks")
        half = ["precision.compute=float16"]
        self.on_gpu("late16", sets=half)
        self.on_gpu("early16", sets=half, LOCKSTEP_EMULATED_RUN_AHEAD="1")
        self.assert_same_run("late16", "early16", "float16")
        # The backward pass computes the mask again, from the number of the step that came with the samples.
        dropout = ["model.layers=[flatten, dense: {units: 32}, relu, dropout: {rate: 0.5}, dense: {units: 10}]"]
        self.on_gpu("late-dropout", sets=dropout)
        self.on_gpu("early-dropout", sets=dropout, LOCKSTEP_EMULATED_RUN_AHEAD="1")
        self.assert_same_run("late-dropout", "early-dropout", "dropout")

    def test_same_bits_without_a_thread_for_communication(self):
        self.assertIn("communication overlapped", self.on_gpu("with", ranks=2).err)
        self.assertNotIn("communication overlapped", self.on_gpu("without", ranks=2, sets=["comm.overlap=off"]).err)
        self.assert_same_run("with", "without")

    @unittest.skipUnless(EMULATED, "several GPUs are emulated")
    def test_fast_sums_from_gpu_to_gpu_come_close(self):
        self.on_gpu("tree", steps=2)
        self.on_gpu("fast", steps=2, ranks=3, gpus=4, sets=["comm.reduction=fast"])
        one, two = (records(self.folder / run)[-1]["loss"] for run in ("tree", "fast"))
        self.assertAlmostEqual(one, two, delta=1e-4)

    @unittest.skipUnless(EMULATED, "an error of NCCL is emulated")
    def test_nccl_error_ends_all_ranks_with_one_message(self):
        result = self.on_gpu("run", ranks=2, gpus=2, code=1, LOCKSTEP_EMULATED_NCCL_ERROR="40")
        self.assert_one_error(result, 1, r"NCCL, group '(?:gradients|batch norm)', rank \d of 2: .*remote process exited")

    @unittest.skipUnless(EMULATED, "a profiler is emulated")
    def test_profile_starts_and_stops_the_gpu_profiler(self):
        self.plain_on_gpu("plain")
        result = self.on_gpu("run", sets=["hooks=[{profile: {first_step: 2, last_step: 3}}]"], LOCKSTEP_EMULATED_PROFILER="1")
        self.assertEqual(re.findall(r"^emulated profiler: (\w+)$", result.err, re.M), ["start", "stop"])
        self.assert_same_run("plain", "run")

    def test_concurrent_checkpoint_equals_that_of_an_end(self):
        sets = ["checkpoint.every_steps=1", "checkpoint.keep=100"]
        self.on_gpu("long", ranks=2, sets=sets)
        found = {self.header(path)["global_step"]: path for path in checkpoints(self.folder / "long")}
        self.assertGreater(len(found), 2)  # one in flight lets others wait
        for step in sorted(found)[:3]:
            self.on_gpu(f"to{step}", steps=step)
            self.assertEqual(self.header(found[step])["digest"], self.digest(f"to{step}"), f"step {step}")

    def test_resumed_run_has_the_bits_of_one_run(self):
        self.plain_on_gpu("whole")
        self.on_gpu("parts", steps=STEPS // 2)
        self.on_gpu("parts", steps=STEPS, ranks=2)
        self.assertEqual(self.digest("whole"), self.digest("parts"))

    def test_loss_with_label_divisor_follows_recording(self):
        # Its phase is never recorded. A resumed run begins with steps that are not recorded at all.
        sets = ["model.loss={softmax_cross_entropy: {ignore_index: 3}}"]
        self.on_gpu("whole", steps=STEPS, sets=sets)
        self.on_gpu("parts", steps=STEPS - 2, sets=sets)
        self.on_gpu("parts", steps=STEPS, ranks=2, sets=sets)
        self.assertEqual(self.digest("whole"), self.digest("parts"))

    def test_gpu_run_continues_on_cpu_and_back_on_gpu(self):
        batch = ["train.batch_size=64"]  # large enough for a loss that falls within a few steps
        arguments = self.train_arguments("run", steps=1000, threads=None, sets=[
            "device=cuda", "shards=4", "checkpoint.every_steps=2", *SMALL, *batch])
        job = self.start(*arguments, ranks=2)
        wait_until(lambda: checkpoints(self.folder / "run"), 120, "a checkpoint")
        job.kill()
        reached = self.header(checkpoints(self.folder / "run")[-1])["global_step"]
        self.assertGreater(reached, 0)
        cpu = self.on_gpu("run", steps=reached + 3, device="cpu", ranks=2, sets=batch, more=["--accept-changes"])
        self.assertIn(f"continuing at step {reached}", cpu.err)
        back = self.on_gpu("run", steps=reached + 5, sets=batch, more=["--accept-changes"])
        self.assertIn(f"continuing at step {reached + 3}", back.err)
        losses = [record["loss"] for record in records(self.folder / "run")]
        self.assertLess(losses[-1], losses[0])

    def test_evaluate_and_predict_agree_with_the_cpu(self):
        self.on_gpu("run", steps=4)
        data, rows = lockstep_run.DIGITS_DATA, 1797
        if EMULATED:
            data, rows = self.folder / "digits.csv", 203
            lines = gzip.decompress(lockstep_run.DIGITS_DATA.read_bytes()).splitlines(keepends=True)
            data.write_bytes(b"".join(lines[:rows]))
        found = {}
        for device in ("cuda", "cpu"):
            metrics = ("eval.metrics=[{top_k: {k: 3}}, {f1: {average: macro}}, {auc_roc: {exact: true}}, perplexity, "
                       "{mean: {name: hidden, layer: global_avg_pool1}}]")
            out, again = (self.lockstep("evaluate", self.folder / "run", "--set", f"device={device}", "--set", metrics,
                                        "--quiet", ranks=ranks).out for ranks in (2, 3))
            self.assertEqual(out, again)
            found[device] = lockstep_run.json.loads(out)
            table = self.folder / f"{device}.csv"
            self.lockstep("predict", self.folder / "run", "--set", f"device={device}", "--input", data,
                          "--output", table, "--quiet")
            found[device + " rows"] = [[float(x) for x in line.split(",")]
                                       for line in table.read_text(encoding="utf-8").splitlines()[1:]]
        self.assertAlmostEqual(found["cuda"]["loss"], found["cpu"]["loss"], places=4)
        for name in ("top_k", "f1", "auc_roc", "perplexity", "hidden"):
            self.assertAlmostEqual(found["cuda"][name], found["cpu"][name], delta=0.02, msg=name)
        self.assertEqual(len(found["cuda rows"]), rows)
        for one, two in zip(found["cuda rows"], found["cpu rows"]):
            for a, b in zip(one[1:], two[1:]):
                self.assertAlmostEqual(a, b, delta=1e-4)

    @unittest.skipUnless(EMULATED, "the size of the GPU is emulated")
    def test_out_of_memory_names_size_and_advice(self):
        result = self.on_gpu("run", code=1, LOCKSTEP_EMULATED_GPU_BYTES=str(1 << 20))
        self.assert_one_error(result, 1, r"out of GPU memory: [\d.]+ MB could not be allocated on cuda:0; [\d.]+ MB are in "
                                         r"use by this rank, [\d.]+ of [\d.]+ MB are free\n  Use a smaller train.batch_size")

    def test_check_predicts_the_memory_of_training(self):
        sets = ["device=cuda", "shards=4", *SMALL]
        words = [word for one in sets for word in ("--set", one)]
        predicted = re.search(r"GPU memory +([\d.]+) MB", self.lockstep("check", lockstep_run.DIGITS, *words).out)
        result = self.on_gpu("run", steps=2)
        taken = re.search(r"GPU memory: at most ([\d.]+) MB", result.err)
        self.assertTrue(predicted and taken, str(result))
        # Evaluation takes its own activations on top.
        self.assertLessEqual(float(predicted[1]), float(taken[1]))
        self.assertGreater(float(predicted[1]), 0.8 * float(taken[1]))

    def test_recorded_step_repeats_on_other_ranks(self):
        self.on_gpu("run", steps=4, ranks=2, more=("--record", 3))
        result = self.lockstep("replay", self.folder / "run", "--step", 3, "--quiet", ranks=3)
        self.assertIn("repeated on 3 ranks: equal, layer by layer", result.out)


if __name__ == "__main__":
    main()

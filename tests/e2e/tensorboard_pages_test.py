# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""A real TensorBoard that watches a run from its begin, through a kill and a resume: each page has what the run has recorded, and
no step twice."""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

from everything import NET, everything
from lockstep_run import SOURCE, LockstepTest, checkpoints, main, newest_step, python_with, records, wait_until

WORDS = """
seed: 1
shards: 4
data: {format: csv, path: %s, label_column: -1}
model:
  layers: [embedding: {name: words, rows: 40, units: 5}, flatten, dense: {name: logits, units: 3}]
  loss: softmax_cross_entropy
optimizer: {gradient_descent: {learning_rate: 0.1}}
train: {batch_size: 16, steps: 8}
"""
SOUNDS = """
seed: 1
shards: 4
data: {format: synthetic, shape: [800], classes: 3, train: {samples: 64}}
model: {layers: [dense: {units: 3}], loss: softmax_cross_entropy}
optimizer: {gradient_descent: {learning_rate: 0.1}}
train: {batch_size: 16, steps: 4}
summary: {inputs: {count: 2, sample_rate: 8000}}
"""


class Server:
    """TensorBoard on a free port of this machine."""

    def __init__(self, python, folder, *options):
        self.log = tempfile.NamedTemporaryFile(dir=folder, suffix=".log")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self.process = subprocess.Popen(
            [python, "-m", "tensorboard.main", "--logdir", folder / "runs", "--host", "127.0.0.1", "--port", "0", "--reload_interval", "1",
             "--samples_per_plugin", "scalars=100000,images=1000,histograms=1000,text=1000,audio=1000", *options],
            stdout=self.log, stderr=subprocess.STDOUT, env=environment, cwd=folder, start_new_session=True)
        self.url = "http://" + wait_until(self._address, 60, "TensorBoard")

    def _address(self):
        text = pathlib.Path(self.log.name).read_text(errors="replace")
        if self.process.poll() is not None:
            raise AssertionError(text)
        found = re.search(r"TensorBoard \S+ at http://([^/\s]+)", text)
        return found and found.group(1)

    def bytes(self, page, body=None, **query):
        url = f"{self.url}/data/{page}?{urllib.parse.urlencode(query)}"
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(url, data, {"Content-Type": "application/json"}), timeout=30) as answer:
            return answer.read()

    def __call__(self, page, body=None, **query):
        return json.loads(self.bytes(page, body, **query))

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=30)
        self.log.close()


class TensorBoardPagesTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.python = python_with("tensorboard")
        if self.python is None:
            self.skipTest("there is no TensorBoard (scripts/test.sh installs it)")
        (self.folder / "runs").mkdir()

    def serve(self, *options):
        server = Server(self.python, self.folder, *options)
        self.addCleanup(server.close)
        return server

    def watched_run(self, server):
        """Killed after a few checkpoints, while the server has seen steps that are lost, and resumed on other ranks."""
        config = self.folder / "net.yaml"
        config.write_text(NET % SOURCE)
        run = self.folder / "runs" / "run"
        job = self.start(*self.train_arguments("runs/run", config=config, steps=100000, sets=[*everything(), "checkpoint.every_steps=5"]), ranks=2)
        wait_until(lambda: len(checkpoints(run)) > 2, 60, "checkpoints")
        seen = wait_until(lambda: self.steps(server) and max(self.steps(server)), 60, "the server to see the run")
        wait_until(lambda: max(self.steps(server)) > seen + 5, 60, "the server to see more")
        job.kill()
        step = newest_step(run)
        last = step + 12
        self.train("runs/run", ranks=3, config=config, steps=last, sets=[*everything(profile=(step + 2, step + 3)), "checkpoint.every_steps=5"])
        wait_until(lambda: self.steps(server)[-1:] == [last] or max(self.steps(server)) == last, 60, "the server to see the end")
        return run, last

    def steps(self, server):
        if "run" not in server("runs"):
            return []
        tags = server("plugin/scalars/tags").get("run", {})
        time.sleep(0.1)  # this machine trains, too
        return [step for _, step, _ in server("plugin/scalars/scalars", run="run", tag="loss")] if "loss" in tags else []

    def check_pages(self, server):
        run, last = self.watched_run(server)
        every_fifth = list(range(5, last + 1, 5))
        recorded = [1, *every_fifth]  # summaries begin with the first step
        self.assertEqual(self.steps(server), [record["step"] for record in records(run) if "loss" in record])
        self.assertEqual(self.steps(server), list(range(1, last + 1)))
        scalars = server("plugin/scalars/tags")
        for tag in ("learning_rate", "group1/learning_rate", "gradient_norm/conv", "update_ratio/conv/kernel", "zero_fraction/act",
                    "ranks/work_spread", "ranks/work_seconds/1"):
            self.assertIn(tag, scalars["run"])
        losses = server("plugin/scalars/scalars", run="run/eval", tag="loss")
        self.assertEqual([step for _, step, _ in losses], every_fifth + [last] * (last % 5 > 0))

        histograms = server("plugin/histograms/tags")["run"]
        for tag in ("weights/conv/kernel", "gradients/logits/bias", "updates/look/qkv_kernel", "activations/act"):
            self.assertIn(tag, histograms)
            rows = server("plugin/histograms/histograms", run="run", tag=tag)
            self.assertEqual([step for _, step, _ in rows], recorded, tag)
            self.assertGreater(sum(count for _, _, count in rows[-1][2]), 9, tag)

        images = server("plugin/images/tags")
        for tag, where, steps in (("inputs", "run", recorded), ("filters/conv", "run", recorded), ("attention/look", "run", recorded),
                                  ("confusion_matrix/matrix", "run/eval", None)):
            self.assertIn(tag, images[where])
            found = server("plugin/images/images", run=where, tag=tag, sample=0)
            if steps:
                self.assertEqual([one["step"] for one in found], steps, tag)
            with urllib.request.urlopen(f"{server.url}/data/plugin/images/individualImage?{found[-1]['query']}", timeout=30) as answer:
                self.assertTrue(answer.read().startswith(b"\x89PNG"), tag)

        self.assertLessEqual({"configuration", "inputs/samples"}, set(server("plugin/text/tags")["run"]))
        table = server("plugin/text/text", run="run", tag="inputs/samples")
        self.assertEqual([one["step"] for one in table], recorded)
        self.assertIn("<table>", table[-1]["text"])
        self.assertIn("digits.csv.gz, line ", table[-1]["text"])

        curves = server("plugin/pr_curves/tags")["run/eval"]
        self.assertEqual(len([tag for tag in curves if tag.startswith("auc_pr/class_")]), 10)
        curve = server("plugin/pr_curves/pr_curves", run="run/eval", tag="auc_pr/class_3/pr_curves")["run/eval"]
        self.assertGreater(len(curve[-1]["precision"]), 50, "without thresholds above all scores")

        graph = server.bytes("plugin/graphs/graph", run="run", conceptual="false").decode()
        for text in ('name: "look"', 'op: "conv2d"', '"^bn_synchronisation"', 'op: "SumOverMicroshards"', 'name: "update"', 'op: "adam"', "/device:CPU:0"):
            self.assertIn(text, graph)
        info = server("plugin/graphs/info")["run"]
        metadata = [tag for tag in info["tags"] if tag.startswith("steps_")]
        self.assertEqual(len(metadata), 2, "one profile in each job")
        self.assertIn('node_name: "look"', server.bytes("plugin/graphs/run_metadata", run="run", tag=metadata[-1]).decode())

        groups = server("plugin/hparams/session_groups", {"experimentName": "", "startIndex": 0, "sliceSize": 10, "colParams": [],
                                                          "allowedStatuses": ["STATUS_SUCCESS", "STATUS_RUNNING", "STATUS_UNKNOWN"]})
        self.assertEqual(groups["totalSize"], 1)
        group = groups["sessionGroups"][0]
        self.assertEqual(group["hparams"]["optimizer.adam.learning_rate"], 0.01)
        self.assertTrue(any(value["name"]["tag"] == "loss" for value in group["metricValues"]), group)

    def test_pages_of_a_run_that_was_killed(self):
        self.check_pages(self.serve())

    def test_pages_by_the_loader_in_python(self):
        self.check_pages(self.serve("--load_fast=false"))

    def test_projector_and_sounds(self):
        rows = self.folder / "rows.csv"
        rows.write_text("".join(",".join(str((7 * i + j * j) % 40) for j in range(4)) + f",{i % 3}\n" for i in range(64)))
        for name, text in (("words", WORDS % rows), ("sounds", SOUNDS)):
            (self.folder / f"{name}.yaml").write_text(text)
            self.train(f"runs/{name}", config=self.folder / f"{name}.yaml", ranks=2, sets=["summary.projector=true"])
        server = self.serve()
        wait_until(lambda: {"words", "sounds"} <= set(server("runs")), 60, "the server to see the runs")
        self.assertIn("words", server("plugin/projector/runs"))
        table = server("plugin/projector/info", run="words")["embeddings"][0]
        self.assertEqual((table["tensorName"], table["tensorShape"]), ("words/embeddings", [40, 5]))
        self.assertEqual(len(server.bytes("plugin/projector/tensor", run="words", name="words/embeddings")), 40 * 5 * 4)
        self.assertIn("principal_components/words/embeddings", server("plugin/images/tags")["words"])
        tags = wait_until(lambda: server("plugin/audio/tags").get("sounds"), 60, "sounds")
        self.assertEqual(sorted(tags), ["inputs/audio/0", "inputs/audio/1"])
        found = server("plugin/audio/audio", run="sounds", tag="inputs/audio/1", sample=0)
        self.assertEqual([one["step"] for one in found], [1])
        with urllib.request.urlopen(f"{server.url}/data/plugin/audio/individualAudio?{found[0]['query']}", timeout=30) as answer:
            self.assertTrue(answer.read().startswith(b"RIFF"))


if __name__ == "__main__":
    main()

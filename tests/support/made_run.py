# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Run directories with chosen contents, for tests of the commands that watch a run."""
import json
import os
import time


class MadeRun:
    """A run directory as rank 0 keeps it, of a job on another machine: it counts as alive for a minute."""

    def __init__(self, path, ranks=2, total_steps=100):
        self.path = path
        path.mkdir()
        self.begin = time.time() - 100
        self.record = {"format": 1, "state": "running", "reason": "", "phase": "step 1", "host": "elsewhere", "pid": 1,
                       "pid_namespace": "none", "process_start": 1, "queue_job": "", "ranks": ranks, "total_steps": total_steps,
                       "begin_step": 0, "step": 0, "loss": 0.5, "begin": self.begin, "first_step": self.begin + 1, "exit_code": -1}
        self.status(step=1)

    def _write(self, name, value):
        part = self.path / (name + ".part")
        part.write_text(json.dumps(value) + "\n", encoding="utf-8")
        os.replace(part, self.path / name)

    def status(self, **changes):
        now = time.time()
        self.record.update(heartbeat=now, last_step=now, **changes)
        self._write("status.json", self.record)

    def end(self, state="finished", code=0):
        self.status(state=state, exit_code=code, end=time.time())

    def append(self, *records):
        with open(self.path / "metrics.jsonl", "a", encoding="utf-8") as file:
            for step, values in records:
                split = values.pop("split", "train")
                file.write(json.dumps({"step": step, "epoch": 1, "split": split, **values}) + "\n")

    def ranks(self, times, step=1, factor=1.2):
        """times: [(host, step_seconds, work_seconds, communication_seconds, input_seconds, bytes, bytes on the GPU)]; the last may be missing."""
        names = ("host", "step_seconds", "work_seconds", "communication_seconds", "input_seconds", "peak_memory_bytes", "peak_gpu_bytes")
        self._write("ranks.json", {"format": 1, "job_begin": self.begin, "time": time.time(), "step": step, "steps": 5,
                                   "samples_per_second": 1234.0, "straggler_factor": factor,
                                   "ranks": [{"rank": i, **dict(zip(names, one))} for i, one in enumerate(times)]})

# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""`lockstep check` approves a configuration exactly if `lockstep train` starts with it.

Some configurations, each with the change of one option, for the options of the reference with values that these say they take,
and changes that were once judged differently. CTest runs all of these and a sample of the others; all, by hand:

    tests/fuzz/check_train_test.py --program build/ci/bin/lockstep --all
"""
import argparse
import concurrent.futures
import copy
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

from config_generator import to_yaml
from reference_tables import reference_tables

SAMPLES, FEATURES, CLASSES = 48, 48, 3
LIMIT = 120  # seconds of a command
# Where and how long a run trains; what needs a GPU, another program or another run.
NOT_TRIED = {"base_directory", "name", "plugins", "device", "data", "model", "optimizer", "hooks", "sweep", "warm_start", "experiment",
             "threads", "epochs", "steps", "time_limit", "stage_to", "tasks"}


def tables(program):
    """{heading: [(option, type, range)]} of the reference."""
    return {heading: [(row[0], row[1], row[3]) for row in rows] for heading, rows in reference_tables(program).items()}


def values_of(kind, limits):
    if kind == "boolean":
        return [True, False]
    if re.fullmatch(r"\w+(\|\w+)+", limits):
        return limits.split("|")
    values = {"whole number": [0, 1, 2, 3, 16], "number": [0, 0.5, 1, 2]}.get(kind, [])
    return values + ([None] if "or null" in limits else [])


def dense(layers=(), **sections):
    """A dense net on the table, with values for sections; `data`, `optimizer` and `average` are replaced as a whole."""
    config = {"shards": 4, "data": {"format": "csv", "path": "data.csv", "shape": [FEATURES], "train": {"rows": [0, 32]}, "eval": {"rows": [32, 48]}},
              "model": {"layers": [*layers, {"dense": {"units": CLASSES, "name": "logits"}}], "loss": "softmax_cross_entropy"},
              "optimizer": {"adam": {"learning_rate": 0.01}}, "train": {"batch_size": 16}}
    for name, section in sections.items():
        whole = name in ("data", "optimizer", "average")
        config[name] = section if whole else {**config.get(name, {}), **section}
    return config


def bases():
    """By name."""
    text = {"format": "text_tsv", "path": "text.tsv", "text_column": 1, "label_column": 0, "max_length": 8, "train": {"rows": [0, 32]},
            "eval": {"rows": [32, 48]}}
    buckets = {**text, "train": {"rows": [0, 32], "length_buckets": 4}}
    words = [{"embedding": {"rows": 100, "units": 2, "name": "words"}}, {"global_avg_pool": {"name": "pool"}}]
    return {
        "dense": dense([{"dense": {"units": 8, "name": "hidden"}}, "batch_norm", "relu", {"dropout": {"rate": 0.2}}]),
        "balanced": {**dense(), "data": {**dense()["data"], "train": {"rows": [0, 32], "balance": "classes"}}},
        "buckets": dense(words, data=buckets),
        "sparse": dense(words, data=text, comm={"sparse_below": 1}),
        "lazy": dense(words, data=text, optimizer={"adam": {"learning_rate": 0.01, "lazy": True}}),
        "clipped": dense(["batch_norm"], gradients={"clip_norm": 1}, precision={"compute": "float16"}),
        "servers": dense(cluster={"ps": 1}),
        "average": dense(["batch_norm"], average={"ema": {"decay": 0.9}}),
        "matrices": dense([{"dense": {"units": 8, "name": "hidden"}}], optimizer={"muon": {"learning_rate": 0.01}}),
        "weights": dense(model={"loss": {"softmax_cross_entropy": {"class_weights": "balanced"}}}),
        "no evaluation": {**dense(), "data": {**dense()["data"], "eval": None}},
    }


# (base, {path: value}): what a part of these once meant to one command only, and neighbours of it.
KNOWN = [
    ("balanced", {"train.shuffle": False}), ("balanced", {"train.shuffle": "blocks"}),
    ("buckets", {"train.shuffle": False}), ("buckets", {"train.shuffle": "blocks"}),
    ("dense", {"train.shuffle": "blocks", "train.shuffle_window": 2}), ("dense", {"data.train.mix": {"mixup": 0.2, "classes": CLASSES}}),
    ("servers", {"cluster.aggregate": 9, "cluster.parts": 2}), ("servers", {"cluster.aggregate": 2, "cluster.parts": 2}),
    ("servers", {"cluster.places": {"nothing/*": 0}}), ("servers", {"gradients.noise_scale": True}),
    ("dense", {"gradients.noise_scale": True, "shards": 1}), ("sparse", {"gradients.noise_scale": True}),
    ("sparse", {"comm.compress": "bfloat16"}), ("dense", {"comm.error_feedback": True}),
    ("dense", {"comm.error_feedback": True, "comm.compress": "bfloat16"}), ("matrices", {"optimizer.shard": True}),
    ("dense", {"optimizer.shard": True, "comm.reduction": "fast"}), ("dense", {"train.accumulate": 3}), ("dense", {"train.accumulate": 17}),
    ("dense", {"shards": 17}), ("dense", {"train.batch_size": 64, "train.last_batch": "drop"}), ("dense", {"train.batch_size": 1}),
    ("weights", {"model.loss": {"sigmoid_cross_entropy": {"class_weights": "balanced"}}}),
    ("weights", {"model.layers": [{"dense": {"units": 2, "name": "logits"}}]}),
    ("dense", {"model.layers": [{"dense": {"units": CLASSES, "kernel_initializer": {"normal": {"stddev": 0.1}}}}]}),
    ("dense", {"eval.metrics": ["accuracy", "mean_iou", {"mean": {"layer": "hidden"}}]}),
    ("dense", {"eval.metrics": ["accuracy", "mean_iou"]}),
    ("dense", {"eval.metrics": [{"auc_roc": {"exact": True, "memory_mb": 0.0001}}]}),
    ("dense", {"hooks": [{"logging": {"tensors": ["nothing"], "every_steps": 1}}]}),
    ("dense", {"hooks": [{"stop_if_no_decrease": {"metric": "loss", "patience": 1}}, {"stop_if_no_decrease": {"metric": "mean_iou", "patience": 1}}]}),
    ("dense", {"eval.metrics": ["mean_iou"], "hooks": [{"stop_if_no_decrease": {"metric": "loss", "patience": 1}},
                                                       {"stop_if_no_increase": {"metric": "mean_iou", "patience": 1}}]}),
    ("no evaluation", {"hooks": [{"stop_if_lower": {"metric": "loss", "threshold": 0}}]}),
    ("dense", {"summary.attention": True}), ("dense", {"summary.confusion_matrix": True}), ("dense", {"summary.filters": True}),
    ("dense", {"summary.inputs": {"sample_rate": 8000}}), ("dense", {"summary.inputs": True}), ("dense", {"summary.gradients": {"variables": "nothing"}}),
    ("dense", {"summary.activations": {"layers": "nothing"}}), ("dense", {"summary.weights": {"variables": "hidden/*", "every_steps": 1}}),
    ("dense", {"optimizer": {"adam": {"learning_rate": {"piecewise_constant": {"boundaries": [9, 3], "values": [1, 2, 3]}}}}}),
    ("no evaluation", {"optimizer": {"adam": {"learning_rate": {"reduce_on_plateau": {"initial": 0.1, "metric": "loss"}}}}}),
    ("dense", {"optimizer.groups": [{"variables": "nothing", "frozen": True}]}), ("dense", {"optimizer.groups": [{"variables": "hidden/*", "frozen": True}]}),
    ("dense", {"data.eval.rows": [32, 49]}), ("dense", {"data.normalize": "channels"}), ("dense", {"checkpoint.keep_best": 1}),
    ("dense", {"checkpoint.best_metric": "nothing", "checkpoint.keep_best": 1}), ("dense", {"seed": 7, "train.on_nan": "rollback"}),
    ("dense", {"optimizer.gating": "none"}), ("clipped", {"optimizer.gating": "op"}), ("average", {"train.batch_size": 32}),
    ("dense", {"precision.loss_scale": 8}), ("dense", {"precision.compute": "float16", "precision.loss_scale": 0}),
]


def at(config, path, value):
    """`config` with a value at a dotted path."""
    changed = copy.deepcopy(config)
    *sections, key = path.split(".")
    section = changed
    for name in sections:
        section[name] = dict(section.get(name) or {})
        section = section[name]
    section[key] = value
    return changed


def cases(program, everything):
    """(name, configuration)."""
    found = []
    for name, config in bases().items():
        found.append((name, config))
    for name, changes in KNOWN:
        config = bases()[name]
        for path, value in changes.items():
            config = at(config, path, value)
        found.append((f"{name}: {json.dumps(changes)}", config))
    others = []
    sections = {"Top level": "", "Samples of a set": "data.train.", "Every training set": "data.train.", "Every data set": "data."}
    for heading, rows in tables(program).items():
        section = sections.get(heading)
        if heading.startswith("Section ") and heading[8:] not in NOT_TRIED and "." not in heading:
            section = heading[8:] + "."
        if heading in ("Optimizer adam", "Optimizer options"):
            section = "optimizer."
        if section is None:
            continue
        for option, kind, limits in rows:
            if option in NOT_TRIED:
                continue
            for value in values_of(kind, limits):
                for name, config in bases().items():
                    others.append((f"{name}: {section}{option} = {value}", at(config, section + option, value)))
    if not everything:
        others = random.Random(1).sample(others, min(len(others), 90))
    return found + others


class Judges:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        source = random.Random(1)
        with open(folder / "data.csv", "w", encoding="ascii") as file:
            for i in range(SAMPLES):
                file.write(",".join([f"{source.uniform(-1, 1):.3f}" for _ in range(FEATURES)] + [str(i % CLASSES)]) + "\n")
        words = [source.choice("abcde") for _ in range(20 * SAMPLES)]
        (folder / "text.tsv").write_text("".join(f"{i % CLASSES}\t{' '.join(words[10 * i:10 * i + 3 + i % 6])}\n" for i in range(SAMPLES)))

    def run(self, *arguments):
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "OMPI_COMM", "PMI"))}
        return subprocess.run([self.options.program, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True, errors="replace",
                              timeout=LIMIT, check=False, env=environment, stdin=subprocess.DEVNULL)

    def judge(self, number, case):
        """What is wrong; empty: nothing, both refuse; None: nothing, both approve."""
        _, config = case
        path = self.folder / f"{number}.yaml"
        path.write_text(to_yaml(config))
        steps = ["--set", "train.steps=1", "--set", "train.epochs=null"]
        run_dir = self.folder / f"run-{number}"
        check = self.run("check", path, *steps)
        if run_dir.exists() or (self.folder / "runs").exists():
            return "check has written something"
        train = self.run("train", path, "--run-dir", run_dir, "--threads", 1, "--quiet", *steps)
        # A run that has made a step had started, however it ended.
        started = train.returncode == 0 or "diverged" in train.stderr or re.search(r"after step 1|of step 1 ", train.stderr)
        for result in (check, train):
            if result.returncode < 0 or "broken invariant" in result.stderr:
                return f"exit code {result.returncode}: {result.stderr}"
        if (check.returncode == 0) != bool(started) or (not started and check.returncode != train.returncode):
            return f"check {check.returncode}, train {train.returncode}\n  check: {check.stderr.strip()[-400:]}\n  train: {train.stderr.strip()[-400:]}"
        return None if started else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.environ.get("LOCKSTEP_PROGRAM", "build/ci/bin/lockstep"))
    parser.add_argument("--all", action="store_true", help="all values, not only a sample")
    parser.add_argument("--only", help="only cases whose names match this regular expression")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="print the judgement of each case")
    options = parser.parse_args()
    options.program = str(pathlib.Path(options.program).resolve())
    chosen = [case for case in cases(options.program, options.all) if not options.only or re.search(options.only, case[0])]
    approved = findings = 0
    with tempfile.TemporaryDirectory(prefix="lockstep-check-train-") as folder:
        judges = Judges(options, pathlib.Path(folder))
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for case, wrong in zip(chosen, pool.map(judges.judge, range(len(chosen)), chosen)):
                approved += wrong is None
                if wrong:
                    findings += 1
                    print(f"FOUND {case[0]}: {wrong}", flush=True)
                elif options.verbose:
                    print("approved" if wrong is None else "refused", case[0])
    print(f"{len(chosen)} configurations, {approved} approved by both, {findings} findings")
    # Neither "all refused" nor "all approved" would show anything.
    balanced = options.only or len(chosen) / 4 < approved < len(chosen)
    return 0 if findings == 0 and balanced else 1


if __name__ == "__main__":
    sys.exit(main())

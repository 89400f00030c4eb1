# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Sets each numeric option of each table to extreme values and runs `lockstep check`.

The tables come from `lockstep config-reference`, so that a new option is covered. `check` must end in time and within a
limit of memory: with exit code 0, 2 or 3 and a clear message, or with 1 and a message that names what needs the memory. CTest runs the essential values; all values by hand:

    tests/fuzz/option_sweep.py --program build/ci/bin/lockstep --all
    tests/fuzz/option_sweep.py --program build/ci/bin/lockstep --all --only conv2d
"""
import argparse
import concurrent.futures
import copy
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile

from config_generator import to_yaml
from reference_tables import reference_tables

# For programs that are built with sanitizers: a report ends the program, and memory that there is not is no report.
os.environ.setdefault("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1")
os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1")

# The essential values find overflow and what takes for ever; the others find limits of 32 bits and of double.
ESSENTIAL = [2 ** 61, 10 ** 6]
VALUES = [*ESSENTIAL, 0, -1, 2 ** 31 - 1, 2 ** 63 - 1, -2 ** 63, 2 ** 64, 2 ** 32, 2 ** 53, 10 ** 7, -2 ** 31, 1e308, -1e308, ".nan", ".inf"]
MEMORY_BYTES = 6 << 30
NOT_CLEAR = re.compile(r"broken invariant|terminate called|std::|basic_string|vector::|Signal:|bad_alloc|Sanitizer: |runtime error: |what\(\)")
MARGINS = {"padding", "cropping"}

IMAGES = {"upsample", "spatial_dropout", "global_avg_pool", "global_max_pool"}
SEQUENCES = {"lstm", "gru", "attention", "last_step", "sequence_length", "masking", "positional_embedding"}
REQUIRED = {
    "units": 2, "filters": 2, "kernel": 1, "padding": 0, "cropping": 0, "rows": 8, "parts": 3, "begin": None, "size": None,
    "shape": [48], "axis": 0, "permutation": None, "classes": 8, "sampled": 2, "rate": 0.5, "stddev": 0.1, "low": 0,
    "high": 1, "value": 0.1, "learning_rate": 0.1, "initial": 0.1, "decay_steps": 5, "decay_rate": 0.5, "steps": 5,
    "seconds": 5, "step": 5, "max_steps": 5, "metric": "eval/loss", "threshold": 0.5, "variables": "*", "run": ".",
    "peak": 0.1, "total_steps": 9, "first_decay_steps": 5, "boundaries": [3], "values": [0.1, 0.05],
}


def tables(program):
    """{heading: [(option, type, is required)]} of the reference."""
    return {heading: [(row[0], row[1], row[2] == "required") for row in rows] for heading, rows in reference_tables(program).items()}


def base(shape):
    return {"shards": 2, "data": {"format": "csv", "path": "data.csv", "shape": shape, "train": {"rows": [0, 32]}},
            "model": {"layers": [], "loss": "softmax_cross_entropy"}, "optimizer": {"adam": {}},
            "train": {"batch_size": 8, "epochs": 1}}


def with_layers(shape, *layers):
    config = base(shape)
    config["model"]["layers"] = [*layers, "flatten", {"dense": {"units": 3, "name": "logits"}}]
    return config


def layer_config(kind, options):
    """A configuration with one layer, in a net that fits it."""
    if kind.startswith(("conv1d", "conv3d")):
        return with_layers([16, 3] if kind.startswith("conv1d") else [4, 2, 2, 3], {kind: options})
    if kind == "embedding":
        return with_layers([48], {kind: options})
    if kind in SEQUENCES:
        return with_layers([12, 4], {kind: options})
    if kind in ("nce", "sampled_softmax", "negative_sampling"):
        config = base([48])
        config["model"] = {"layers": [{kind: options}], "loss": "mean"}
        return config
    if kind == "slice":
        options = {"begin": [0, 0, 0], "size": [4, 4, 3], **options}
    if kind == "transpose":
        options = {"permutation": [0, 1, 2], **options}
    if kind == "constant":
        config = with_layers([4, 4, 3], {kind: {"name": "c", **options}}, {"reshape": {"shape": [1, 1, -1], "name": "r"}})
        return config
    return with_layers([4, 4, 3], {kind: options})


def readers(kind, options):
    config = with_layers([48])
    data = {"csv": {"path": "data.csv"}, "skip_gram": {"path": "text.txt"},
            "text_windows": {"path": "text.txt", "length": 4},
            "text_tsv": {"path": "text.tsv", "text_column": 1, "label_column": 0, "max_length": 4}}.get(kind)
    if data is None:
        return None
    config["data"] = {"format": kind, **data, **options}
    if kind != "csv":
        config["model"]["layers"].insert(0, {"embedding": {"rows": 100, "units": 2}})
    if kind == "text_windows":
        config["model"]["layers"] = [{"embedding": {"rows": 100, "units": 2}}, {"dense": {"units": 100}}]
    return config


def configuration(heading, options):
    """A configuration in which these options of this table count; None if there is none here."""
    kind, _, name = heading.partition(" ")
    config = with_layers([48])
    if heading == "Top level":
        config.update(options)
    elif kind == "Section":
        if name in ("data", "model", "hooks", "warm_start") or "." in name:  # data.mix, data.window: parts of readers
            return None
        config[name] = {**config.get(name, {}), **options}
    elif kind == "Layer":
        return layer_config(name, options)
    elif kind == "Reader":
        return readers(name, options)
    elif kind == "Initializer":
        config["model"]["layers"][-1]["dense"]["kernel_initializer"] = {name: options}
    elif kind == "Head":
        config["model"]["heads"] = [{"name": "a", **options}]
        del config["model"]["loss"]
    elif kind == "Loss":
        config["model"]["loss"] = {name: options}
    elif kind == "Metric":
        config["data"]["eval"] = {"rows": [32, 48]}
        config["eval"] = {"metrics": [{name: options}]}
    elif kind == "Regularization":
        config["model"]["regularization"] = [options]
    elif kind == "Optimizer":
        config["optimizer"] = {name: options}
    elif kind == "Schedule":
        config["optimizer"] = {"adam": {"learning_rate": {name: options}}}
    elif kind == "Hook":
        config["hooks"] = [{name: options}]
    else:
        return None
    return config


def cases(program, values, only):
    for heading, rows in tables(program).items():
        if only and not re.search(only, heading):
            continue
        required = {name: REQUIRED[name] for name, _, is_required in rows
                    if is_required and REQUIRED.get(name) is not None}
        for name, kind, _ in rows:
            if "number" not in kind and name not in MARGINS:
                continue
            for value in values:
                if values is ESSENTIAL and value != values[0] and not heading.startswith("Layer"):
                    continue
                forms = [value]
                if name in MARGINS:
                    sides = {"conv1d": 2, "conv3d": 6}.get(heading.split(" ")[1].replace("_transpose", ""), 4)
                    forms = [[value] * sides, [0] * (sides - 1) + [value]]
                elif "numbers" in kind:
                    forms = [value, [value, value], [value, 4, 3], [1, value, value]]
                for form in forms:
                    options = copy.deepcopy(required)
                    options[name] = form
                    if name == "sizes":
                        options["axis"] = 0
                    config = configuration(heading, options)
                    if config is not None:
                        yield f"{heading}, {name} = {form}", to_yaml(config).replace('".nan"', ".nan").replace('".inf"', ".inf")


def nets():
    """Configurations as a whole that took for ever or all memory."""
    def text(*layers):
        return to_yaml(with_layers([12, 4], *layers))
    yield "3000 layers", text(*["relu"] * 3000)
    yield "100,000 layers", text(*["relu"] * 100_000)
    yield "many upsample layers", to_yaml(with_layers([4, 4, 3], *[{"upsample": {"factor": 8}}] * 20))
    yield "many wide layers", text(*[{"dense": {"units": 10 ** 6}}] * 3)
    yield "outer sizes", text({"dense": {"units": 65536}}, {"dense": {"units": 65536}}, {"dense": {"units": 65536}})
    yield "65,536 parts", to_yaml(with_layers([48], {"dense": {"units": 65536}}, {"split": {"parts": 65536}}))
    yield "800,000 keys", text() + "".join(f"k{i}: 1\n" for i in range(800_000))


class Sweep:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        source = random.Random(1)
        with open(folder / "data.csv", "w", encoding="ascii") as file:
            for _ in range(48):
                file.write(",".join([f"{source.uniform(0, 7):.3f}" for _ in range(48)] + [str(source.randrange(3))]) + "\n")
        words = [source.choice(["a", "b", "c", "d", "e"]) for _ in range(400)]
        (folder / "text.txt").write_text("\n".join(" ".join(words[i:i + 10]) for i in range(0, 400, 10)) + "\n")
        (folder / "text.tsv").write_text("".join(f"{i % 3}\t{' '.join(words[10 * i:10 * i + 6])}\n" for i in range(40)))

    def check(self, number, case):
        what, text = case
        path = self.folder / f"{number}.yaml"
        path.write_text(text)

        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        try:
            result = subprocess.run([self.options.program, "check", path], cwd=self.folder, capture_output=True, text=True,
                                    errors="replace", timeout=self.options.limit, check=False,
                                    preexec_fn=None if self.options.no_memory_limit else limit)
        except subprocess.TimeoutExpired:
            return what, "did not end in time"
        finally:
            path.unlink()
        error = result.stderr
        if result.returncode < 0:
            return what, f"ended by signal {-result.returncode}"
        # What fits into a large machine may be too much for this one: then the message names it.
        if result.returncode == 1 and re.search(r"^error: (.*no memory for .*out of memory: |the model takes .* of memory on each rank)", error, re.M):
            return what, None
        if result.returncode == 4 and "the disk is too full" in error:
            return what, None
        if result.returncode not in (0, 2, 3):
            return what, f"exit code {result.returncode}: {error[:300]}"
        if NOT_CLEAR.search(error):
            return what, f"not a clear message: {error[:300]}"
        if result.returncode != 0 and not re.search(r"^error: .{8}", error, re.M):
            return what, "no message"
        return what, "" if result.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.environ.get("LOCKSTEP_PROGRAM", "build/ci/bin/lockstep"))
    parser.add_argument("--all", action="store_true", help="all values, not only the essential ones")
    parser.add_argument("--only", help="only tables whose heading contains this regular expression")
    parser.add_argument("--limit", type=float, default=20, help="seconds that one command may take")
    parser.add_argument("--no-memory-limit", action="store_true",
                        default=os.environ.get("LOCKSTEP_FUZZ_NO_MEMORY_LIMIT") == "1", help="for AddressSanitizer")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="print what is approved, too")
    options = parser.parse_args()
    options.program = str(pathlib.Path(options.program).resolve())
    all_cases = list(cases(options.program, VALUES if options.all else ESSENTIAL, options.only))
    if not options.only:
        all_cases += nets()
    findings = approved = 0
    with tempfile.TemporaryDirectory(prefix="lockstep-sweep-") as folder:
        sweep = Sweep(options, pathlib.Path(folder))
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for what, wrong in pool.map(sweep.check, range(len(all_cases)), all_cases):
                approved += wrong == ""
                if wrong:
                    findings += 1
                    print(f"FOUND {what}: {wrong.strip()}", flush=True)
                elif wrong == "" and options.verbose:
                    print(f"approved {what}")
    print(f"{len(all_cases)} configurations, {approved} approved, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

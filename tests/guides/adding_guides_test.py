# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""docs/adding_*.md, followed to the letter: every file is written, every line inserted, all of it compiled and linked
into one program and one program of tests. The tests run, then the commands of each page."""
import json
import os
import pathlib
import re
import shlex
import shutil
import unittest

from guide import Guide
from lockstep_run import MPIRUN, PROGRAM, SOURCE, main, records
from toolchain import Toolchain, run

BUILD = pathlib.Path(os.environ["LOCKSTEP_BUILD"])
SCRATCH = pathlib.Path(os.environ["LOCKSTEP_SCRATCH"])
GUIDES_TESTS = os.environ["LOCKSTEP_GUIDES_TESTS"]
# The cases of all layers take a minute to compile; a GPU's kernels are compiled as the emulated GPU has them.
COMPILED_ONLY = ["src/kernels/update_cuda.cu", "src/kernels/loss_terms_cuda.cu", "tests/unit/model/layer_cases/simple_cases.cpp"]
# The sources for which it matters that a guide inserts lines in a header.
USERS_OF_HEADERS = {"src/kernels/loss_formulas.h": ["src/kernels/loss_terms_cpu.cpp", "src/kernels/loss_terms_cuda.cu"],
                    "src/kernels/rules.h": ["src/kernels/update_cpu.cpp", "src/kernels/update_cuda.cu", "src/optim/rules/lion.cpp"],
                    "tests/unit/kernels/rules_testing.h": ["tests/unit/kernels/update_test.cpp"]}
PAGES = ["adding_a_command", "adding_a_hook", "adding_a_layer", "adding_a_loss", "adding_a_metric", "adding_a_reader",
         "adding_an_optimizer"]

# Folders whose sources CMake finds by itself.
FOUND_BY_FOLDER = ("src/driver/commands/", "tests/unit/")


class AddingGuidesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.rmtree(SCRATCH, ignore_errors=True)
        cls.guides = {page: Guide(SOURCE / "docs" / f"{page}.md") for page in PAGES}
        cls.tools = Toolchain(SOURCE, BUILD, SCRATCH)
        cls.paths = cls.write_all()
        cls.build_all()

    @classmethod
    def write_all(cls):
        """The guides' files, the files that they change, and links to what their commands read."""
        changed, written = {}, {}
        for page, guide in cls.guides.items():
            (SCRATCH / page).mkdir(parents=True)
            for folder in ("examples", "data"):
                (SCRATCH / page / folder).symlink_to(SOURCE / folder)
            guide.apply_edits(SOURCE, changed)
            written.update({guide.place(path): text for path, text in guide.files.items()})
        written.update({path: "".join(lines) for path, lines in changed.items()})
        for path, text in written.items():
            (SCRATCH / path).parent.mkdir(parents=True, exist_ok=True)
            (SCRATCH / path).write_text(text, encoding="utf-8")
        return list(written)

    @classmethod
    def build_all(cls):
        ours, tests = [], cls.tools.compile("tests/support/mpi_main.cpp")
        users = [user for path in cls.paths for user in USERS_OF_HEADERS.get(path, [])]
        for path in [*cls.paths, *users]:
            if path.startswith(("src/", "tests/")) and path.endswith((".cpp", ".cu")):
                objects = cls.tools.compile(path)
                if path in COMPILED_ONLY:
                    continue
                (tests if path.startswith("tests/") else ours).extend(objects)
        cls.program = cls.tools.link("lockstep", [*cls.tools.compile("src/main.cpp"), *ours], PROGRAM)
        cls.tests = cls.tools.link("guides_tests", [*tests, *ours], GUIDES_TESTS)

    def follow(self, page):
        """Runs the page's commands; returns the output of the last one."""
        self.assertTrue(self.guides[page].commands, f"{page} shows no command")
        out = ""
        for command in self.guides[page].commands:
            words = [str(self.program) if word == "lockstep" else word for word in shlex.split(command)]
            out = run([*MPIRUN, *words[1:]] if words[0] == "mpirun" else words, SCRATCH / page)
        return out

    def losses(self, page, run_dir):
        return [record["loss"] for record in records(SCRATCH / page / "runs" / run_dir)]

    def test_every_new_source_is_in_a_list_of_sources(self):
        for page, guide in self.guides.items():
            for path in guide.files:
                if path.startswith(("src/", "tests/")) and path.endswith(".cpp") and not path.startswith(FOUND_BY_FOLDER):
                    lists = [edit.lines for edit in guide.edits if edit.path.endswith("CMakeLists.txt")]
                    self.assertTrue(any(os.path.basename(path) in lines for lines in lists), f"{page}: {path}")

    def test_the_tests_of_the_guides_pass(self):
        out = run([*MPIRUN, "-n", "2", str(self.tests)], SCRATCH)  # hooks are tested on several ranks
        for path in self.paths:
            if path.startswith("tests/") and path.endswith(".cpp") and path not in COMPILED_ONLY:
                suite = re.search(r"^TEST(?:_F)?\((\w+),", (SCRATCH / path).read_text(encoding="utf-8"), re.MULTILINE)[1]
                self.assertIn(f" {suite}.", out, f"the tests of {path} did not run")

    def test_options_are_in_the_reference(self):
        reference = run([str(self.program), "config-reference"], SCRATCH)
        for name in ("Hook stop_if_loss_below", "Layer scale", "Loss poisson", "Metric brier_score", "Optimizer sign_descent",
                     "Reader records", "Schedule linear_decay"):
            self.assertIn(f"\n## {name}\n", reference)

    def test_command(self):
        """Its entry brings help, suggestions and completion."""
        lines = self.follow("adding_a_command").splitlines()
        log = (SCRATCH / "adding_a_command/runs/tail/lockstep.log").read_text(encoding="utf-8").splitlines()
        self.assertEqual(lines, log[-2:])
        self.assertIn("lockstep tail runs/digits --lines 3", run([str(self.program), "help", "tail"], SCRATCH))
        self.assertIn("tail", run([str(self.program), "completion", "bash"], SCRATCH))

    def test_hook(self):
        self.follow("adding_a_hook")
        losses = self.losses("adding_a_hook", "below")
        below = [loss < 2.2 for loss in losses]
        self.assertEqual(below[-3:], [True] * 3, losses)
        self.assertNotIn([True] * 3, [below[i:i + 3] for i in range(len(below) - 3)], losses)

    def test_hook_as_a_plugin(self):
        """The header is copied next to the plugin; the program is the one that was built."""
        folder = SCRATCH / "adding_a_hook"
        shutil.copy(SCRATCH / "src/session/hooks/stop_if_loss_below_hook.h", folder)
        plugin = self.tools.plugin("adding_a_hook/plugin.cpp")
        run([PROGRAM, "train", "examples/digits.yaml", "--run-dir", "runs/plugin", "--set", "summary.every_steps=1",
             "--set", f"plugins=[{plugin}]", "--set", "hooks=[{stop_if_loss_below: {threshold: 2.2, steps: 3}}]"], folder)
        self.assertTrue(3 <= len(self.losses("adding_a_hook", "plugin")) < 100)

    def test_layer(self):
        """In Lockstep; the test `consumer` builds the page's plugin."""
        self.train_layers(self.program, "scale", "[flatten, scale: {factor: 0.5}, dense: {units: 10}]")

    def test_layer_in_a_program_of_its_own_and_a_function(self):
        """The program's layer and the plugin's function."""
        plugin = self.tools.plugin("adding_a_layer/log1p.cpp")
        objects = self.tools.compile("adding_a_layer/main.cpp", like="src/main.cpp")
        program = self.tools.link("adding_a_layer/train_scale", objects, PROGRAM)
        self.train_layers(program, "channel_scale", "[log1p, flatten, dense: {units: 64}, channel_scale, relu, "
                          "dense: {units: 10}]", "--set", f"plugins=[{plugin}]")

    def train_layers(self, program, run_dir, layers, *more):
        """On one rank and on two: the loss falls, and the bits are the same."""
        for ranks in (1, 2):
            run([*MPIRUN, "-n", str(ranks), str(program), "train", "examples/digits.yaml", "--steps", "12", "--run-dir",
                 f"runs/{run_dir}_{ranks}", "--set", "summary.every_steps=1", "--set", f"model.layers={layers}", *more],
                SCRATCH / "adding_a_layer")
        one, two = (self.losses("adding_a_layer", f"{run_dir}_{ranks}") for ranks in (1, 2))
        self.assertEqual(one, two)
        self.assertLess(one[-1], one[0])

    def test_loss(self):
        """The loss falls; bits do not depend on the ranks."""
        found = json.loads(self.follow("adding_a_loss"))
        losses = self.losses("adding_a_loss", "poisson")
        self.assertLess(losses[-1], losses[0])
        self.assertLess(found["loss"], losses[0])

    def test_metric(self):
        found = json.loads(self.follow("adding_a_metric"))
        self.assertTrue(0 < found["brier_score"] < 0.09, found)

    def test_optimizer(self):
        self.follow("adding_an_optimizer")
        losses = self.losses("adding_an_optimizer", "sign")
        self.assertLess(losses[-1], 0.8 * losses[0])

    def test_optimizer_as_a_plugin(self):
        """Refused on a GPU in create_slots() (tests/unit/optim/registered_optimizer_test.cpp)."""
        plugin = self.tools.plugin("adding_an_optimizer/plugin.cpp")
        for ranks in (1, 2):
            run([*MPIRUN, "-n", str(ranks), PROGRAM, "train", "examples/digits.yaml", "--steps", "12", "--run-dir",
                 f"runs/relative_{ranks}", "--set", "summary.every_steps=1", "--set", f"plugins=[{plugin}]", "--set",
                 "optimizer={relative_descent: {learning_rate: 0.003}}"], SCRATCH / "adding_an_optimizer")
        one, two = (self.losses("adding_an_optimizer", f"relative_{ranks}") for ranks in (1, 2))
        self.assertEqual(one, two)
        self.assertLess(one[-1], one[0])

    def test_reader(self):
        self.follow("adding_a_reader")
        losses = self.losses("adding_a_reader", "records")
        self.assertLess(losses[-1], losses[0])


if __name__ == "__main__":
    main()

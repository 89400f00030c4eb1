# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The public headers, as they install, under GCC and Clang: each alone and all together, without a warning of a strict project, and
with readable errors for the mistakes that are made with options.

    compilers_test.py SOURCE GENERATED [unittest's options]

A compiler that is not installed is skipped, and the test says so.
"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, GENERATED = pathlib.Path(sys.argv.pop(1)).resolve(), pathlib.Path(sys.argv.pop(1)).resolve()
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
JOBS = min(2, os.cpu_count() or 1)
MOST_LINES = 60  # of the messages for one mistake

# What a program writes, as a strict project compiles it.
PROGRAM = """
#include <lockstep/lockstep.h>
using namespace lockstep;
EstimatorSpec model(const Features& features, const LabelColumns& labels, Mode, const Params&) {
  const LayerOutput x = layers::relu(layers::dense(features, {.name = "hidden", .units = 32}));
  return {.loss = losses::softmax_cross_entropy(labels, layers::dense(x, {.units = 10})),
          .train_op = {.optimizer = optimizers::adam({.learning_rate = 0.01})}};
}
int run(CommEnvironment& ranks, const InputFunction& samples) {
  Estimator estimator(ranks, model, {.model_dir = "runs/digits", .train = {.batch_size = 64}, .checkpoint = {.every_steps = 100}});
  return estimator.train(samples, {.max_steps = 500}).exit_code;
}
"""

# A mistake, and what the messages must name: a pattern for the first error and the note that follows it.
MISTAKES = {
    "a field that is misspelt": ("auto x = optimizers::Adam{.learnig_rate = 0.1};", r"learnig_rate"),
    "a text for a number": ('auto x = optimizers::Adam{.epsilon = "small"};', r"Setting<double>"),
    "a fraction for a whole number": ("auto x = layers::Dense{.units = 2.5};", r"Required<(std::int64_t|long( int)?)>"),
    "a text for a struct": ('auto x = RunConfig{.model_dir = "x", .train = "short"};', r"OptionsByName"),
    "a number for a struct": ('auto x = RunConfig{.model_dir = "x", .train = 5};', r"OptionsByName"),
    "options without their names": ("auto x = layers::Dense{32};", r"OptionsByName|layers::Dense"),
    "a section that is misspelt": ('auto x = RunConfig{.model_dir = "x", .trian = {.batch_size = 5}};', r"trian"),
    "a key of a section that is misspelt": ('auto x = RunConfig{.model_dir = "x", .train = {.batchsize = 5}};', r"batchsize|sections::Train"),
    "the wrong order": ("auto x = optimizers::Adam{.beta1 = 0.9, .learning_rate = 0.1};", r"learning_rate"),
    "a required field that is left out": ('auto x = layers::Dense{.name = "x"};', r"Required|units"),
    "misspelt in a call": ("auto x = optimizers::adam({.learnig_rate = 0.1});", r"optimizers::Adam|'adam'"),
    "misspelt in a call of a layer": ("auto f(LayerOutput in) { return layers::dense(in, {.unit = 10}); }", r"layers::Dense|'dense'"),
    "misspelt in the call of a loss": ("auto f(LabelColumns y, LayerOutput in) { return losses::softmax_cross_entropy(y, in, {.smoothing = 1}); }",
                                       r"SoftmaxCrossEntropy|'softmax_cross_entropy'"),
    "misspelt in an estimator": ('void f(CommEnvironment& r, ModelFunction m) { Estimator e(r, m, {.model_dri = "x", .train = {.batch_size = 1}}); }',
                                 r"Estimator"),
}


def compilers():
    """{name: command} of the two; GCC is what c++ is where there is no g++."""
    return {"GCC": shutil.which("g++") or shutil.which("c++"),
            "Clang": next(filter(None, map(shutil.which, ["clang++", *(f"clang++-{version}" for version in range(19, 13, -1))])), None)}


class Compiler:
    """Tests of one compiler."""
    name = ""

    @classmethod
    def setUpClass(cls):
        cls.compiler = compilers()[cls.name]
        if cls.compiler is None:
            raise unittest.SkipTest(f"{cls.name} is not installed")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.include = pathlib.Path(folder.name)
        subprocess.run(["cmake", f"-DSOURCE={SOURCE}", f"-DGENERATED={GENERATED}", f"-DDESTINATION={cls.include}", "-P",
                        SOURCE / "cmake" / "public_headers.cmake"], check=True, stdout=subprocess.DEVNULL)

    def compile(self, text, *flags):
        command = [self.compiler, "-std=c++20", "-fsyntax-only", "-DFMT_SHARED", "-I", self.include, "-isystem", "/usr/include/eigen3", *flags,
                   "-x", "c++", "-"]
        return subprocess.run(command, input=text, capture_output=True, text=True, timeout=500, check=False, env=dict(os.environ, LC_ALL="C"))

    def test_each_header_alone_has_no_warning(self):
        headers = sorted(path.name for path in (self.include / "lockstep").glob("*.h"))
        self.assertGreater(len(headers), 15)
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            for header, done in zip(headers, pool.map(lambda name: self.compile(f"#include <lockstep/{name}>\n", *STRICT), headers)):
                self.assertEqual((done.returncode, done.stderr), (0, ""), f"{self.name}: {header}")

    def test_a_strict_program_has_no_warning(self):
        done = self.compile(PROGRAM, *STRICT)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_mistakes_in_options_are_named(self):
        head = "#include <lockstep/estimator.h>\nusing namespace lockstep;\n"
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            results = list(pool.map(lambda item: self.compile(head + item[0]), MISTAKES.values()))
        for name, (code, wanted), done in zip(MISTAKES, MISTAKES.values(), results):
            with self.subTest(name):
                lines = done.stderr.splitlines()
                first = next((number for number, line in enumerate(lines) if re.search("(error|warning):", line)), None)  # Clang: a wrong order is a warning
                self.assertIsNotNone(first, f"{code} compiles")
                self.assertRegex(re.split("(?:error|warning):", lines[first])[1], wanted, done.stderr[:3000])
                self.assertLessEqual(len(lines), MOST_LINES, done.stderr[:6000])


class Gcc(Compiler, unittest.TestCase):
    name = "GCC"


class Clang(Compiler, unittest.TestCase):
    name = "Clang"


if __name__ == "__main__":
    program = unittest.main(verbosity=2, exit=False)
    result = program.result
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)

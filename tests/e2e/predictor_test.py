# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""The C interface of predictions, and the examples of Python, C and Fortran: the bits of `lockstep predict`, and a guest's manners."""
import array
import ctypes
import importlib.util
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import textwrap
import threading

from lockstep_run import SOURCE, LockstepTest, main

LIBRARY = os.environ["LOCKSTEP_C_LIBRARY"]
EXAMPLES = SOURCE / "examples" / "predictor"
HOUSES = """
seed: 3
shards: 2
data:
  format: csv
  header: true
  path: houses.csv
  label_column: null
  columns: [rooms, age]
  normalize: channels
  targets:
    sale: {columns: [price, area], normalize: channels}
optimizer: {adam: {learning_rate: 0.02}}
train: {batch_size: 20, epochs: 4}
model: {layers: [{dense: {units: 16}}, relu, {dense: {units: 16}}, relu, {dense: {units: 2}}], loss: mean_squared_error}
"""

GUEST = """
import ctypes, locale, os, shutil, signal, sys
sys.path.insert(0, sys.argv[3])
import array, predict
run = sys.argv[1]
called = []
signal.signal(signal.SIGINT, lambda *_: called.append(1))
before = [signal.getsignal(s) for s in range(1, 32) if s not in (9, 19)]
try:
    print("locale", locale.setlocale(locale.LC_ALL, "de_DE.UTF-8"), file=sys.stderr)
except locale.Error:
    print("locale missing", file=sys.stderr)
name = locale.setlocale(locale.LC_ALL)
environment = dict(os.environ)
net = predict.Predictor(run)
shutil.rmtree(run)
threads = len(os.listdir("/proc/self/task"))
x = array.array("f", map(float, sys.argv[4:]))
first = net.predict(features=x)["outputs"]
assert net.predict(features=x)["outputs"] == first and len(first) == 2
assert len(os.listdir("/proc/self/task")) == threads == 1, os.listdir("/proc/self/task")
assert locale.setlocale(locale.LC_ALL) == name
assert [signal.getsignal(s) for s in range(1, 32) if s not in (9, 19)] == before
os.kill(os.getpid(), signal.SIGINT)
assert called == [1]
assert dict(os.environ) == environment
mapped = open("/proc/self/maps").read()
assert "libmpi" not in mapped, "MPI is loaded"
print(",".join("%.9g" % value for value in first), file=sys.stderr)
"""


def example():
    spec = importlib.util.spec_from_file_location("predict", EXAMPLES / "predict.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def npy_rows(path):
    """The values of a file of float32 as bytes, and the number of rows."""
    data = path.read_bytes()
    length, = struct.unpack("<H", data[8:10])
    rows, = re.findall(rb"'shape': \((\d+),", data[:10 + length])
    return data[10 + length:], int(rows)


class PredictorTest(LockstepTest):
    def setUp(self):
        super().setUp()
        draw = random.Random(5)
        lines = ["rooms,age,price,area"]
        for _ in range(120):
            rooms, age = draw.randint(1, 8), draw.randint(0, 90)
            lines.append(f"{rooms},{age},{50000 + 42000 * rooms - 800 * age + draw.gauss(0, 5000):.2f},{22 * rooms + draw.gauss(0, 4):.3f}")
        (self.folder / "houses.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        self.samples = [[float(word) for word in line.split(",")[:2]] for line in lines[1:]]
        config = self.folder / "houses.yaml"
        config.write_text(HOUSES, encoding="utf-8")
        self.train_once("run", config=config)
        self.run_dir = self.folder / "run"
        self.lockstep("predict", self.run_dir, "--input", self.folder / "houses.csv", "--output", self.folder / "all.npy")
        self.expected, rows = npy_rows(self.folder / "all.npy")
        self.assertEqual(rows, 120)
        self.numbers = array.array("f", [value for sample in self.samples for value in sample])

    def printed(self, command, cwd=None):
        """What a program that reads a sample per line prints, as the bytes of float32."""
        text = "".join(" ".join(f"{value:.9g}" for value in sample) + "\n" for sample in self.samples)
        done = subprocess.run([str(word) for word in command], input=text, capture_output=True, text=True, timeout=60, check=False, cwd=cwd,
                              env=dict(os.environ, LOCKSTEP_C_LIBRARY=LIBRARY, LD_LIBRARY_PATH=str(pathlib.Path(LIBRARY).parent)))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return array.array("f", map(float, done.stdout.split())).tobytes()

    def compile(self, compiler, sources, *flags):
        program = self.folder / "program"
        done = subprocess.run([compiler, *map(str, sources), *flags, "-I", str(SOURCE / "include"), f"-L{pathlib.Path(LIBRARY).parent}",
                               "-llockstep_c", "-o", str(program)], capture_output=True, text=True, timeout=120, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return program

    def test_python_has_the_bits_of_predict_alone_and_in_batches(self):
        net = example().Predictor(self.run_dir, library=LIBRARY)
        self.assertEqual((net.inputs, net.outputs), ({"features": 2}, {"outputs": 2}))
        self.assertEqual(net.predict(120, features=self.numbers)["outputs"].tobytes(), self.expected)
        alone = b"".join(net.predict(features=self.numbers[2 * i:2 * i + 2])["outputs"].tobytes() for i in range(120))
        self.assertEqual(alone, self.expected)
        self.assertEqual(self.printed([sys.executable, EXAMPLES / "predict.py", self.run_dir]), self.expected)
        last = sorted((self.run_dir / "checkpoints").glob("step-*.h5"))[-1]
        shutil.copy(last, self.folder / "alone.h5")
        shutil.rmtree(self.run_dir)
        (self.folder / "houses.csv").unlink()  # neither the run nor its data are there
        other = example().Predictor(self.folder / "alone.h5", library=LIBRARY)
        self.assertEqual(other.predict(120, features=self.numbers)["outputs"].tobytes(), self.expected)

    def test_threads_with_clones_have_the_bits_of_predict(self):
        net = example().Predictor(self.run_dir, library=LIBRARY)
        results = {}

        def work(number):
            own = net.clone()
            for _ in range(50):
                results[number] = own.predict(120, features=self.numbers)["outputs"].tobytes()
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        self.assertEqual([results.get(number) for number in range(4)], [self.expected] * 4)

    def test_c99_has_the_bits_of_predict(self):
        compiler = shutil.which("cc")
        if compiler is None:
            self.skipTest("there is no C compiler")
        program = self.compile(compiler, [EXAMPLES / "main.c"], "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror")
        self.assertEqual(self.printed([program, self.run_dir]), self.expected)
        failed = subprocess.run([program, str(self.folder / "none")], capture_output=True, text=True, timeout=60, check=False,
                                env=dict(os.environ, LD_LIBRARY_PATH=str(pathlib.Path(LIBRARY).parent)))
        self.assertEqual(failed.returncode, 1)
        self.assertIn("none", failed.stderr)
        self.assertEqual(failed.stdout, "")

    def test_fortran_has_the_bits_of_predict(self):
        compiler = shutil.which("gfortran")
        if compiler is None:
            self.skipTest("there is no gfortran")
        program = self.compile(compiler, [EXAMPLES / "lockstep_predictor.f90", EXAMPLES / "main.f90"], "-std=f2008", "-pedantic", "-Wall", "-Werror")
        self.assertEqual(self.printed([program, self.run_dir]), self.expected)
        failed = subprocess.run([program, str(self.folder / "none")], capture_output=True, text=True, timeout=60, check=False,
                                env=dict(os.environ, LD_LIBRARY_PATH=str(pathlib.Path(LIBRARY).parent)))
        self.assertNotEqual(failed.returncode, 0)
        self.assertIn("none", failed.stderr)

    def test_only_the_functions_of_the_header_are_seen_and_mpi_is_not_needed(self):
        header = (SOURCE / "include/lockstep/c_api.h").read_text(encoding="utf-8")
        declared = set(re.findall(r"\b(lockstep_\w+)\(", re.sub(r"/\*.*?\*/", "", header, flags=re.S)))
        names = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True, timeout=60).stdout
        self.assertEqual({line.split()[-1] for line in names.splitlines()}, declared)
        self.assertGreater(len(declared), 12)
        needed = subprocess.run(["readelf", "-d", LIBRARY], capture_output=True, text=True, check=True, timeout=60).stdout
        self.assertIn("libdnnl", needed)
        self.assertNotIn("libmpi", needed)

    def test_nothing_of_the_program_changes_and_no_file_is_needed_afterwards(self):
        expected = array.array("f", self.expected[:8])
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(GUEST), str(self.run_dir), LIBRARY, str(EXAMPLES), *map(str, self.samples[0])], capture_output=True, text=True, timeout=60,
                              check=False, env=dict(os.environ, LOCKSTEP_C_LIBRARY=LIBRARY))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.splitlines()[-1], ",".join(f"{value:.9g}" for value in expected))
        self.assertTrue(done.stderr.startswith("locale"), done.stderr)

    def test_wrong_calls_are_errors_of_the_thread_with_a_text(self):
        module = example()
        with self.assertRaisesRegex(RuntimeError, "(?s)nowhere.*"):
            module.Predictor(self.folder / "nowhere", library=LIBRARY)
        with self.assertRaisesRegex(RuntimeError, "no checkpoint of step 7"):
            module.Predictor(self.run_dir, checkpoint="7", library=LIBRARY)
        (self.run_dir / "checkpoints" / "damaged.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(500))
        with self.assertRaisesRegex(RuntimeError, "damaged.h5"):
            module.Predictor(self.run_dir / "checkpoints" / "damaged.h5", library=LIBRARY)
        net = module.Predictor(self.run_dir, library=LIBRARY)
        c, model = net._c, net._model  # pylint: disable=protected-access
        said = []
        thread = threading.Thread(target=lambda: said.append(c.lockstep_last_error()))
        thread.start()
        thread.join()
        self.assertEqual(said, [b""])  # of another thread
        self.assertIsNone(c.lockstep_input_name(model, 1))
        self.assertIn(b"there is no input 1", c.lockstep_last_error())
        self.assertEqual(c.lockstep_output_size(model, -1), -1)
        self.assertEqual(c.lockstep_input_count(None), -1)
        self.assertIn(b"the model is a null pointer", c.lockstep_last_error())
        self.assertEqual(c.lockstep_predict(model, None, None, 1), 2)
        c.lockstep_close(None)
        extents = (ctypes.c_int64 * 2)()
        c.lockstep_input_shape.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(ctypes.c_int64), ctypes.c_int]
        self.assertEqual((c.lockstep_input_shape(model, 0, extents, 2), extents[0]), (1, 2))
        c.lockstep_output_label.restype, c.lockstep_output_label.argtypes = ctypes.c_char_p, [ctypes.c_void_p, ctypes.c_int, ctypes.c_int64]
        self.assertEqual([c.lockstep_output_label(model, 0, k) for k in (0, 1, 2)], [b"price", b"area", None])
        c.lockstep_output_quantity.restype, c.lockstep_output_quantity.argtypes = ctypes.c_char_p, [ctypes.c_void_p, ctypes.c_int]
        self.assertEqual(c.lockstep_output_quantity(model, 0), b"value")
        c.lockstep_version.restype = ctypes.c_char_p
        self.assertRegex(c.lockstep_version().decode(), r"^\d+\.\d+\.\d+$")
        self.assertEqual(net.predict(120, features=self.numbers)["outputs"].tobytes(), self.expected)


if __name__ == "__main__":
    if os.environ.get("LOCKSTEP_SANITIZED"):
        print("skipped: a library with a sanitizer cannot be loaded by Python")
        sys.exit(77)
    main()

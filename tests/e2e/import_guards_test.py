# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""lockstep import of files from elsewhere: what they may not do. They copy no files of this machine into their output, give no zeros for what is not
there, and cannot ask for any amount of memory or time. docs/security.md."""
import json
import os
import struct
import subprocess
import unittest
import warnings
import zipfile

from lockstep_run import PROGRAM, LockstepTest, go_on_with, main
from torch_files import Storage, Tensor, pickled, write_archive

HAS_H5PY = go_on_with("h5py", "numpy")
if HAS_H5PY:
    import h5py
    import numpy as np

VARS = "layers/dense/vars"


@unittest.skipUnless(HAS_H5PY, "needs h5py and numpy")
class KerasFiles(LockstepTest):
    def setUp(self):
        super().setUp()
        self.inside, self.outside = self.folder / "download", self.folder / "mine"
        self.file, self.output = self.inside / "x.weights.h5", self.folder / "out.h5"
        self.kernel = np.arange(80, dtype="f4").reshape(20, 4)
        for folder in (self.inside, self.outside):
            folder.mkdir()
            (folder / "values.raw").write_bytes(self.kernel.tobytes())
            with h5py.File(folder / "other.h5", "w") as other:
                other["x"] = self.kernel
                other["group/0"] = self.kernel

    def write(self, add):
        with h5py.File(self.file, "w") as file:
            add(file.require_group(VARS), file)
        return self.file

    def refused(self, pattern, *options, cwd=None):
        result = self.lockstep("import", self.file, "--output", self.output, *options, code=3, cwd=cwd)
        self.assert_one_error(result, 3, pattern)
        self.assertIn("x.weights.h5", result.err)
        self.assertFalse(self.output.exists())
        return result.err

    def taken(self, *options, cwd=None, variables=None):
        """{name: array} that is written, and what is printed."""
        printed = self.lockstep("import", self.file, "--output", self.output, *options, cwd=cwd, variables=variables).out
        found = {}
        with h5py.File(self.output) as file:
            file["variables"].visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
        self.output.unlink()
        return found, printed

    def outward(self, folder):
        """{way: function that makes a file whose values come from `folder`, and the file there}"""
        def virtual(group, _):
            layout = h5py.VirtualLayout((20, 4), "f4")
            layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "x", (20, 4))
            group.create_virtual_dataset("0", layout)

        def virtual_through_link(group, file):
            file["away"] = h5py.ExternalLink(str(folder / "other.h5"), "/")
            layout = h5py.VirtualLayout((20, 4), "f4")
            layout[:] = h5py.VirtualSource(".", "/away/x", (20, 4))
            group.create_virtual_dataset("0", layout)

        def soft_through_link(group, file):
            file["away"] = h5py.ExternalLink(str(folder / "other.h5"), "/")
            group["0"] = h5py.SoftLink("/away/x")

        def group_link(_, file):
            del file[VARS]
            file[VARS] = h5py.ExternalLink(str(folder / "other.h5"), "/group")

        return {"raw": (lambda group, _: group.create_dataset("0", (20, 4), "f4", external=[(str(folder / "values.raw"), 0, 320)]), "values.raw"),
                "link": (lambda group, _: group.__setitem__("0", h5py.ExternalLink(str(folder / "other.h5"), "/x")), "other.h5"),
                "virtual": (virtual, "other.h5"), "virtual through a link": (virtual_through_link, "other.h5"),
                "soft through a link": (soft_through_link, "other.h5"), "link to a group": (group_link, "other.h5")}

    def test_files_of_other_folders_are_refused_unless_they_are_asked_for(self):
        for way, (make, source) in self.outward(self.outside).items():
            with self.subTest(way=way):
                self.write(make)
                error = self.refused(r"takes values from outside of the folder of the file: .*mine/" + source)
                self.assertIn("--follow-external", error)
                found, printed = self.taken("--follow-external")
                np.testing.assert_array_equal(found["dense/kernel"], self.kernel)
                self.assertIn(str((self.outside / source).resolve()), printed)

    def test_files_of_the_same_folder_are_followed_and_printed(self):
        for way, (make, source) in self.outward(self.inside).items():
            with self.subTest(way=way):
                self.write(make)
                found, printed = self.taken()
                np.testing.assert_array_equal(found["dense/kernel"], self.kernel)
                self.assertRegex(printed, r"values come from another file, too: .*" + str((self.inside / source).resolve()))

    def test_what_is_followed_is_printed_next_to_a_result_on_standard_output(self):
        self.write(self.outward(self.inside)["link"][0])
        with open(self.output, "wb") as out:
            result = subprocess.run([PROGRAM, "import", self.file, "--output", "-"], stdout=out, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(str((self.inside / "other.h5").resolve()), result.stderr)
        with h5py.File(self.output) as file:
            np.testing.assert_array_equal(file["variables/dense/kernel"], self.kernel)

    def test_a_file_that_is_followed_is_not_overwritten(self):
        self.write(self.outward(self.inside)["link"][0])
        before = (self.inside / "other.h5").read_bytes()
        result = self.lockstep("import", self.file, "--output", self.inside / "other.h5", code=2)
        self.assertIn("other.h5", result.err)
        self.assertEqual((self.inside / "other.h5").read_bytes(), before)

    def test_a_link_in_the_folder_that_leads_out_is_outside(self):
        """A symbolic link may have come with the file."""
        for way, (make, source) in self.outward(self.inside).items():
            with self.subTest(way=way):
                (self.inside / source).unlink()
                (self.inside / source).symlink_to(self.outside / source)
                self.write(make)
                self.refused(r"takes values from outside of the folder")

    def test_relative_names_and_prefixes_lead_out_no_more_than_absolute_ones(self):
        self.write(lambda group, _: group.create_dataset("0", (20, 4), "f4", external=[("values.raw", 0, 320)]))
        self.refused(r"takes values from outside .*mine/values\.raw", cwd=self.outside)
        found, _ = self.taken(cwd=self.inside)
        np.testing.assert_array_equal(found["dense/kernel"], self.kernel)
        found, _ = self.taken(cwd=self.outside, variables={"HDF5_EXTFILE_PREFIX": "${ORIGIN}"})
        np.testing.assert_array_equal(found["dense/kernel"], self.kernel)
        self.write(lambda group, _: group.__setitem__("0", h5py.ExternalLink("../mine/other.h5", "/x")))
        self.refused(r"takes values from outside .*mine/other\.h5")

    def test_a_fifo_is_not_waited_for(self):
        os.mkfifo(self.inside / "fifo.h5")
        self.write(lambda group, _: group.__setitem__("0", h5py.ExternalLink("fifo.h5", "/x")))
        self.refused("no regular file")

    def test_numbers_without_axes_in_other_files_are_refused(self):
        def scalar(group, _):
            space, plist = h5py.h5s.create(h5py.h5s.SCALAR), h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_external(os.fsencode(self.outside / "values.raw"), 0, 4)
            h5py.h5d.create(group.id, b"0", h5py.h5t.IEEE_F32LE, space, plist)
        try:
            self.write(scalar)
        except (ValueError, RuntimeError, OSError) as error:
            self.skipTest(f"HDF5 does not make such a file: {error}")
        self.refused("kept in another file")

    def test_a_damaged_file_that_crashed_hdf5(self):
        """Its dataset stores fewer bytes in its header than its extents need."""
        with h5py.File(self.file, "w", libver="earliest") as file:
            file["0"] = np.ones((20, 4), "f4")
            file.create_group("vars")
        contents = bytearray(self.file.read_bytes())
        for byte in (921, 923, 930, 946):
            contents[byte] = 0
        self.file.write_bytes(contents)
        self.refused("dataset 0, row 0: is not there: the dataset stores 0 bytes")

    def test_values_that_are_not_there_are_no_zeros(self):
        (self.inside / "short.raw").write_bytes(b"\1" * 100)
        raw = lambda name: lambda group, _: group.create_dataset("0", (20, 4), "f4", external=[(str(self.inside / name), 0, 320)])

        def virtual(source, shape=(20, 4)):
            def make(group, _):
                layout = h5py.VirtualLayout((20, 4), "f4")
                layout[:shape[0]] = h5py.VirtualSource(str(self.inside / source), "x", (20, 4))[:shape[0]]
                group.create_virtual_dataset("0", layout)
            return make

        def chunks(group, _):
            data = group.create_dataset("0", (20, 4), "f4", chunks=(5, 4))
            data[:10] = 1

        for way, (make, pattern) in {
                "short raw file": (raw("short.raw"), r"row 6: the external file .*short\.raw ends early"),
                "no raw file": (raw("none.raw"), r"the external file .*none\.raw is missing"),
                "no source": (virtual("none.h5"), r"none\.h5, dataset x, which cannot be opened"),
                "no source for some": (virtual("other.h5", (10, 4)), r"row 10: is covered by no source"),
                "chunks never written": (chunks, r"row 10: was never written"),
                "nothing written": (lambda group, _: group.create_dataset("0", (20, 4), "f4"), "was never written"),
                "one number never written": (lambda group, _: group.create_dataset("0", (), "f4"), "was never written"),
                "no values": (lambda group, _: group.create_dataset("0", data=h5py.Empty("f4")), "has no values"),
                "external link to no file": (lambda group, _: group.__setitem__("0", h5py.ExternalLink("none.h5", "/x")), "leads nowhere"),
                "external link to nothing": (lambda group, _: group.__setitem__("0", h5py.ExternalLink("other.h5", "/none")), "leads nowhere"),
                "soft link to nothing": (lambda group, _: group.__setitem__("0", h5py.SoftLink("/none")), "leads nowhere")}.items():
            with self.subTest(way=way):
                def add(group, file, make=make):
                    group["1"] = np.ones(4, "f4")
                    make(group, file)
                self.write(add)
                self.refused(pattern)
                self.refused(pattern, "--follow-external")


def entry(begin, count=1):
    return {"dtype": "F32", "shape": [count], "data_offsets": [begin, begin + 4 * count]}


class Contents(LockstepTest):
    """Doubled and senseless contents."""

    def setUp(self):
        super().setUp()
        self.output = self.folder / "out.h5"
        self.state = self.folder / "x.pt"
        self.safe = self.folder / "x.safetensors"

    def write_safetensors(self, header, numbers=1):
        text = header if isinstance(header, str) else json.dumps(header)
        self.safe.write_bytes(struct.pack("<Q", len(text)) + text.encode() + struct.pack(f"<{numbers}f", *range(numbers)))

    def refused(self, file, pattern, *options, code=3):
        for way in (("--output", self.output), ("--show",)):
            if way == ("--show",) and "cannot both" in pattern:
                continue
            result = self.lockstep("import", file, *way, *options, code=code)
            self.assert_one_error(result, code, pattern)
            self.assertIn(file.name, result.err)
        self.assertFalse(self.output.exists())

    def test_names_that_occur_twice(self):
        good = '"dtype":"F32","shape":[1],"data_offsets":[0,4]'
        for header in ('{"a":{"dtype":"F64",%s}}' % good, '{"__metadata__":{"k":"1","k":"2"},"a":{%s}}' % good, '{"a":{%s},"a":{%s}}' % (good, good)):
            with self.subTest(header=header):
                self.write_safetensors(header)
                self.refused(self.safe, "the name '(dtype|k|a)' occurs twice")
        self.write_safetensors('{"__metadata__":{"dtype":"1"},"a":{%s}}' % good)
        self.lockstep("import", self.safe, "--output", self.output)
        self.output.unlink()

        number = Storage("0", "FloatStorage", 1)
        tensor = lambda: Tensor(number, 0, (1,), (1,))
        write_archive(self.state, pickled({"a": {"b": tensor()}, "a.b": tensor()}), {"0": bytes(4)})
        self.refused(self.state, "has two tensors of the name 'a.b'")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            write_archive(self.state, pickled({"a": tensor()}), {"0": bytes(4)})
            with zipfile.ZipFile(self.state, "a") as archive:
                archive.writestr("archive/data/0", struct.pack("<f", 7))
        self.refused(self.state, "has two members of the name archive/data/0")

    def test_arrays_of_a_data_file_that_occur_twice(self):
        def npy(values):
            text = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 1), }" % len(values)
            text += " " * (-(len(text) + 11) % 64) + "\n"
            return b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text.encode() + struct.pack(f"<{len(values)}f", *values)
        with warnings.catch_warnings(), zipfile.ZipFile(self.folder / "set.npz", "w") as archive:
            warnings.simplefilter("ignore")
            for name, values in (("x.npy", [1.0] * 8), ("y.npy", [2.0] * 8), ("x.npy", [3.0] * 8)):
                archive.writestr(name, npy(values))
        config = self.folder / "net.yaml"
        config.write_text("data: {format: npy, path: set.npz, features: x, labels: y}\nmodel:\n  loss: mean_squared_error\n  layers: [dense: {units: 1}]\n"
                          "optimizer: {gradient_descent: {learning_rate: 0.01}}\ntrain: {batch_size: 4, steps: 1}\n", encoding="utf-8")
        self.assert_one_error(self.lockstep("check", config, code=3), 3, r"set\.npz.*has two members of the name x\.npy")

    def test_files_without_tensors(self):
        write_archive(self.state, pickled({}), {})
        self.refused(self.state, "has no tensors")
        write_archive(self.state, pickled({"epoch": 3, "state_dict": {}}), {})
        self.refused(self.state, "has no tensors")
        self.write_safetensors({}, 0)
        self.refused(self.safe, "has no tensors")

    def test_extents_that_no_tensor_has(self):
        for shape, what in (([1 << 40, 1 << 40, 0], "extents .* too large"), ([0, 1 << 62, 4], "extents .* too large"), ([1] * 9, "more than 8 axes")):
            with self.subTest(shape=shape):
                count = 1 if 0 not in shape else 0
                self.write_safetensors({"a.weight": {"dtype": "F32", "shape": shape, "data_offsets": [0, 4 * count]}}, count)
                self.refused(self.safe, f"tensor 'a.weight' has {'(the )?'}{what}")
                write_archive(self.state, pickled({"a.weight": Tensor(Storage("0", "FloatStorage", 1), 0, tuple(shape), (1,) * len(shape))}), {"0": bytes(4)})
                self.refused(self.state, f"tensor 'a.weight' has {'(the )?'}{what}")

    def test_a_name_that_is_a_group_of_another(self):
        self.write_safetensors({"a": entry(0), "a/b": entry(4)}, 2)
        self.refused(self.safe, r"'a' \(from a\) and 'a/b' \(from a/b\) cannot both be names", "--layout", "lockstep")
        self.write_safetensors({"a": entry(0), "c": entry(8), "a.b/c/d": entry(4), "a.b": entry(12)}, 4)
        self.refused(self.safe, r"'a\.b' .* and 'a\.b/c/d' .* cannot both be names", "--layout", "lockstep")

    def test_the_model_chooses_among_such_names(self):
        """What the message advises."""
        self.write_safetensors({"a": entry(0), "a/kernel": {"dtype": "F32", "shape": [1, 1], "data_offsets": [4, 8]}, "a/bias": entry(8)}, 3)
        (self.folder / "x.csv").write_text("1,2\n" * 8, encoding="utf-8")
        config = self.folder / "net.yaml"
        config.write_text("data: {format: csv, path: x.csv, label_column: -1}\nmodel:\n  loss: mean_squared_error\n"
                          "  layers: [dense: {name: a, units: 1}]\noptimizer: {gradient_descent: {learning_rate: 0.01}}\n"
                          "train: {batch_size: 4, steps: 1}\n", encoding="utf-8")
        self.assertIn("--like", self.lockstep("import", self.safe, "--layout", "lockstep", "--output", self.output, code=3).err)
        result = self.lockstep("import", self.safe, "--layout", "lockstep", "--like", config, "--output", self.output)
        self.assertRegex(result.out, r"2 tensors written(.|\n)*not used: a")


class Budgets(LockstepTest):
    """Small files that ask for much memory or time."""

    def run_measured(self, file, *options):
        """(exit code, messages, peak memory in bytes, seconds of computing)"""
        log = self.folder / "log"
        with open(log, "wb") as out:
            process = subprocess.Popen([PROGRAM, "import", file, *(options or ("--show",))], stdout=out, stderr=out)
            try:
                _, status, used = os.wait4(process.pid, 0)
            finally:
                process.returncode = 0
        return os.waitstatus_to_exitcode(status), log.read_text(), used.ru_maxrss * 1024, used.ru_utime + used.ru_stime

    def refused(self, file, pattern):
        code, text, peak, seconds = self.run_measured(file)
        self.assertEqual(code, 3, text)
        self.assertRegex(text, pattern)
        self.assertIn(file.name, text)
        self.assertNotIn("batch", text)
        self.assertLess(peak, 900 << 20)
        self.assertLess(seconds, 20)

    @unittest.skipUnless(HAS_H5PY, "needs h5py and numpy")
    def test_a_graph_of_hard_links(self):
        """Thirty groups with two links each to the next are 2^30 paths."""
        file = self.folder / "x.weights.h5"
        with h5py.File(file, "w") as out:
            groups = [out.create_group(f"g{i}") for i in range(30)]
            for group, following in zip(groups, groups[1:]):
                group["a"] = group["b"] = following
            groups[-1]["vars/0"] = np.ones(3, "f4")
        self.refused(file, "leads to more than 200000 objects")

    @unittest.skipUnless(HAS_H5PY, "needs h5py and numpy")
    def test_one_array_under_many_names(self):
        file = self.folder / "x.weights.h5"
        with h5py.File(file, "w") as out:
            group = out.create_group("layers/dense/vars")
            group.create_dataset("0", data=np.zeros(1 << 20, "f4"), compression="gzip", chunks=(1 << 20,))
            for i in range(1, 500):
                group[str(i)] = group["0"]
        self.refused(file, r"would take more than \d+ bytes of memory: the limit for a file of \d+ bytes \(256 MiB and 32 times its size\)")

    @unittest.skipUnless(HAS_H5PY, "needs h5py and numpy")
    def test_a_chunk_that_is_larger_than_the_array(self):
        file = self.folder / "x.weights.h5"
        with h5py.File(file, "w") as out:
            data = out.create_dataset("layers/dense/vars/0", (3,), "f4", chunks=(1 << 29,), maxshape=(None,), compression="gzip")
            data.id.write_direct_chunk((0,), b"not read")
        self.refused(file, "would take more than")

    def test_many_facts_in_safetensors_take_linear_time(self):
        file = self.folder / "x.safetensors"
        text = json.dumps({"__metadata__": {f"key {i}": "x" for i in range(100_000)}, "a.weight": entry(0)})
        file.write_bytes(struct.pack("<Q", len(text)) + text.encode() + bytes(4))
        code, text, _, seconds = self.run_measured(file)
        self.assertEqual(code, 0, text)
        self.assertLess(seconds, 4)

    def test_onnx_files_of_empty_objects(self):
        """Two bytes of the file are an object of a hundred or more."""
        def field(number, contents):
            size, length = len(contents), b""
            while True:
                length += bytes([size & 0x7F | (0x80 if size > 0x7F else 0)])
                size >>= 7
                if size == 0:
                    return bytes([number << 3 | 2]) + length + contents
        file = self.folder / "x.onnx"
        file.write_bytes(field(7, field(1, b"") * 6_000_000))
        self.refused(file, r"would take more than \d+ bytes of memory")

    def write_state(self, data, storages):
        file = self.folder / "x.pt"
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("archive/data.pkl", data)
            for key, values in storages.items():
                archive.writestr(f"archive/data/{key}", values)
        self.assertLess(file.stat().st_size, 250_000)
        return file

    def test_pickles_that_ask_for_gigabytes(self):
        tensor = pickled({"a": Tensor(Storage("0", "FloatStorage", 1 << 18), 0, (1 << 18,), (1,))})
        long_names = tensor.replace(b"X\x01\0\0\0a", b"X" + struct.pack("<I", 100_000) + b"a" * 100_000)
        one = pickled({"k" * 3000: Tensor(Storage("0", "FloatStorage", 1), 0, (1,), (1,))})
        self.assertEqual((one[-5:-3], one[-2:]), (b"Rq", b"s."))
        key = one[one.index(b"k" * 3000) + 3000:][:2].replace(b"q", b"h", 1)
        recalled = one[:-1] + b"(" + (key + b"h" + one[-3:-2]) * 150_000 + b"u."
        over_one = Tensor(Storage("0", "FloatStorage", 1 << 18), 0, (1 << 18,), (1,))
        for way, (data, pattern) in {
                "empty tuples": (b"\x80\x02" + b")" * 4_000_000 + b".", "would take more than"),
                "marks": (b"\x80\x02" + b"(" * 40_000_000 + b".", "would take more than"),
                "recalled values": (b"\x80\x02Nq\x01" + b"h\x01" * 45_000_000 + b".", "would take more than"),
                "recalled keys": (recalled, "would take more than"),
                "long names": (long_names, "a name has 100000 bytes, more than 4096"),
                "tensors over one storage": (pickled({str(i): over_one for i in range(2000)}), "would take more than"),
        }.items():
            with self.subTest(way=way):
                self.refused(self.write_state(data, {"0": bytes(1 << 20)}), pattern)


if __name__ == "__main__":
    main()

# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""lockstep import of files from elsewhere: what they may not do. They copy no files of this machine into their output, give no zeros for what is not
there, and cannot ask for any amount of memory or time. docs/security.md."""
import ast
import os
import subprocess
import sys
import unittest

from lockstep_run import LockstepTest, go_on_with, main

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
        self.inside.mkdir()
        self.outside.mkdir()
        self.file, self.output = self.inside / "x.weights.h5", self.folder / "out.h5"
        self.kernel = np.arange(80, dtype="f4").reshape(20, 4)
        for folder in (self.inside, self.outside):
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


if __name__ == "__main__":
    main()

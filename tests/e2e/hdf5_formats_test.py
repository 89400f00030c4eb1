# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Files that people have under the names of HDF5 and netCDF: MATLAB's, netCDF-3, HDF4, newer ones; their axes.

MATLAB's files are made as MATLAB makes them: a user block of 512 bytes, reversed axes, the attribute MATLAB_class.
"""
import re
import subprocess
import unittest

from lockstep_run import LockstepTest, main, python_with

PYTHON = python_with("numpy", "h5py", "netCDF4", "scipy") or python_with("numpy", "h5py")

MATLAB = """
import sys, h5py, numpy
path, = sys.argv[1:]
random = numpy.random.default_rng(3)
with h5py.File(path, "w", userblock_size=512) as file:
    def save(name, array, kind="double", **attributes):
        array = numpy.asarray(array)
        made = file.create_dataset(name, data=array.T, chunks=(array.shape[1], 7) if array.ndim == 2 and array.shape[0] > 7 else None)
        made.attrs["MATLAB_class"] = numpy.bytes_(kind)
        for key, value in attributes.items(): made.attrs[key] = value
        numpy.save(path + "." + name + ".npy", array)
    save("X", random.normal(size=(60, 4)))
    save("column", (numpy.arange(60.) % 3).reshape(60, 1))
    save("row", (numpy.arange(60.) % 3).reshape(1, 60))
    save("images", random.integers(0, 255, (5, 6, 3, 60)).astype("u1"), "uint8")
    save("volumes", random.integers(0, 255, (60, 5, 6, 3)).astype("u1"), "uint8")
    save("flag", (numpy.arange(60) % 2).astype("u1").reshape(60, 1), "logical", MATLAB_int_decode=numpy.int32(1))
    save("name", numpy.frombuffer(b"abc", "u1").astype("u2").reshape(1, 3), "char", MATLAB_int_decode=numpy.int32(2))
    save("strings", numpy.array([[3707764736, 2, 1, 1, 1, 1]], "u4"), "string", MATLAB_object_decode=numpy.int32(3))
    save("empty", numpy.array([[0, 0]], "u8"), "double", MATLAB_empty=numpy.uint8(1))
    complex_ = numpy.zeros((60, 2), dtype=[("real", "f8"), ("imag", "f8")])
    save("z", complex_)
    cells = file.create_dataset("cells", shape=(2, 60), dtype=h5py.ref_dtype); cells.attrs["MATLAB_class"] = numpy.bytes_("cell")
    file.create_group("S").attrs["MATLAB_sparse"] = numpy.uint64(60)
with open(path, "r+b") as file:
    file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(116) + bytes(8) + b"\\x00\\x02IM")
"""


@unittest.skipUnless(PYTHON, "no Python with numpy and h5py")
class Hdf5FormatsTest(LockstepTest):
    def python(self, script, *arguments):
        done = subprocess.run([PYTHON, "-c", script, *map(str, arguments)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def config(self, path, **options):
        text = "".join(f"\n  {key}: {value}" for key, value in {"features": "x", **options}.items())
        (self.folder / "config.yaml").write_text(f'data:\n  format: hdf5\n  path: "{path}"{text}\n', encoding="utf-8")
        return self.folder / "config.yaml"

    def fails(self, pattern, path, **options):
        result = self.start("data", self.config(path, **options)).wait()
        self.assert_one_error(result, 3, pattern)
        return result.err

    def same(self, right, path, **options):
        """The features are `right`, an expression of load(name)."""
        self.lockstep("convert", self.config(path, **options), self.folder / "out.npz", "--force")
        self.python(f"import sys, numpy; load = lambda name: numpy.load('{self.folder}/{path}.' + name + '.npy'); a = numpy.load(sys.argv[1])\n"
                    f"for found, right in zip((a['features'], a['labels'] if 'labels' in a else 0), {right}):\n"
                    "    assert (numpy.squeeze(found) == numpy.squeeze(right)).all() and numpy.squeeze(found).shape == numpy.squeeze(right).shape, (found, right)\n"
                    "if len(sys.argv) > 2: print(a['features'].dtype)", self.folder / "out.npz")

    def test_arrays_of_matlab_have_the_axes_that_matlab_shows(self):
        path = "m.mat"
        self.python(MATLAB, self.folder / path)
        for labels in ("column", "row"):
            self.same(f"(load('X'), load('{labels}'))", path, features="X", labels=labels)
        self.same("(load('volumes'), load('flag'))", path, features="volumes", labels="flag")
        # Blocks of a stream, some channels, some rows.
        self.same("(load('volumes')[3:, ..., [2, 0]], load('flag')[3:])", path, features="volumes", labels="flag", channels="[2, 0]", rows="[3, 60]", block_samples=7, memory_gb=0.000001)
        self.same("(numpy.moveaxis(load('images'), -1, 0), load('row'))", path, features="images", labels="row", sample_axis="last")
        self.same("(numpy.moveaxis(numpy.moveaxis(load('images'), -1, 0), 1, -1),)", path, features="images", sample_axis="last", layout="channels_first")
        said = self.lockstep("data", self.config(path, features="X", labels="row"))
        self.assertEqual((said.out + said.err).count("X: MATLAB's axes, the one of samples first, are 60x4"), 1 + said.err.count("MATLAB's axes, the one of samples first, are 60x4"))
        self.assertLessEqual(said.err.count("MATLAB's axes, the one of samples first, are 60x4"), 1)

    def test_what_matlab_stores_in_forms_of_its_own_is_refused(self):
        path = "m.mat"
        self.python(MATLAB, self.folder / path)
        self.fails(r"m.mat, dataset name: is an array of MATLAB's class char(.|\n)*double\(categorical", path, features="X", labels="name")
        self.fails(r"dataset strings: is an array of MATLAB's class string", path, features="X", labels="strings")
        self.fails(r"dataset cells: is an array of MATLAB's class cell", path, features="cells")
        self.fails(r"dataset empty: is an empty array of MATLAB", path, features="empty")
        self.fails(r"dataset z: holds complex numbers \(real, imag\)", path, features="z")
        self.fails(r"dataset S: is a sparse matrix of MATLAB(.|\n)*full\(x\)", path, features="S")
        self.fails(r"holds 60 labels, but images holds 5 samples \(their extents are 60x1 and 5x6x3x60\)(.|\n)*Axis 3 of images has 60", path, features="images", labels="column")

    def test_another_axis_that_fits_is_named_and_the_advice_works(self):
        self.python("""if True:
            import sys, h5py, numpy
            x = numpy.arange(120.).reshape(3, 40); y = numpy.arange(40)
            with h5py.File(sys.argv[1], "w") as file: file["x"] = x; file["y"] = y; file["row"] = y[None]; file["c"] = x.reshape(1, 3, 40); file["t"] = x.T
            numpy.save(sys.argv[1] + ".x.npy", x); numpy.save(sys.argv[1] + ".y.npy", y)
        """, self.folder / "a.h5")
        said = self.fails(r"a.h5, dataset y: holds 40 labels, but x holds 3 samples \(their extents are 40 and 3x40\)", "a.h5", labels="y")
        self.assertIn("sample_axis: last", said)
        self.same("(load('x').T, load('y'))", "a.h5", labels="y", sample_axis="last")
        self.same("(load('x').T, load('y'))", "a.h5", features="c", labels="row", sample_axis="last")
        self.same("(load('x').T, load('y'))", "a.h5", features="t", labels="row")
        self.fails("Without sample_axis: last", "a.h5", features="t", labels="y", sample_axis="last")

    def test_a_list_of_datasets_ends_after_ten(self):
        self.python("import sys, h5py\nwith h5py.File(sys.argv[1], 'w') as f:\n  for i in range(300): f[f'd{i:03}'] = [1.]", self.folder / "many.h5")
        self.assertIn("It holds: d000, d001, d002, d003, d004, d005, d006, d007, d008, d009 and 290 more.", self.fails("no such dataset", "many.h5"))

    def test_files_of_other_formats_are_named_with_the_command_that_converts_them(self):
        for name, start, pattern in (("a.nc", b"CDF\x01", r"is a netCDF-3 file \(classic\), not netCDF-4(.|\n)*nccopy -k nc4 \S*/a.nc \S*/copy-of-a.nc"),
                                     ("b.nc", b"CDF\x02", r"netCDF-3 file \(64-bit offset\)(.|\n)*ncks -4"), ("c.nc", b"CDF\x05", r"netCDF-3 file \(64-bit data\)"),
                                     ("d.hdf", b"\x0e\x03\x13\x01", r"is an HDF4 file, not HDF5(.|\n)*h4toh5"), ("e.mat", b"MATLAB 5.0 MAT-file, Platform", r"MATLAB file of version 5(.|\n)*-v7.3"),
                                     ("f.nc", b"GRIB\0\0\0\2", r"is a GRIB file(.|\n)*cdo -f nc4 copy"), ("g h.nc", b"CDF\x01", r"nccopy -k nc4 '\S*/g h.nc'"),
                                     ("i.h5", b"\x1f\x8b\x08", r"compressed as a whole by gzip(.|\n)*gunzip"), ("j.h5", b"version https://git-lfs.github.com/spec/v1", r"pointer of Git LFS(.|\n)*git lfs pull"),
                                     ("k.h5", b"<!DOCTYPE html>", r"is a page \(HTML or XML\)"), ("l.h5", b"hello", "cannot open as HDF5: file signature not found")):
            with self.subTest(name):
                (self.folder / name).write_bytes(start + bytes(1000))
                self.fails(name + "[^\n]*" + pattern if not pattern.startswith("nccopy") else pattern, name)

    def test_the_advice_about_netcdf3_and_matlab5_makes_files_that_are_read(self):
        if subprocess.run([PYTHON, "-c", "import scipy.io, netCDF4"], capture_output=True, timeout=60).returncode != 0:
            self.skipTest("no scipy and netCDF4 for Python")
        self.python("""if True:
            import sys, netCDF4, scipy.io, numpy
            x = numpy.arange(30.).reshape(10, 3)
            with netCDF4.Dataset(sys.argv[1] + "/old.nc", "w", format="NETCDF3_CLASSIC") as file:
                file.createDimension("t", 10); file.createDimension("f", 3); file.createVariable("x", "f4", ("t", "f"))[:] = x
            scipy.io.savemat(sys.argv[1] + "/old.mat", {"x": x})
        """, self.folder)
        said = self.fails("netCDF-3", "old.nc")
        command = re.search(r"nc3tonc4 \S+ \S+", said)[0]
        subprocess.run(["bash", "-c", f'PATH="$(dirname {PYTHON}):$PATH" {command}'], check=True, capture_output=True, timeout=60)
        self.lockstep("convert", self.config("copy-of-old.nc"), self.folder / "out.npz")
        check = "import sys, numpy; a = numpy.load(sys.argv[1]); assert (a[sys.argv[2]] == numpy.arange(30).reshape(10, 3)).all()"
        self.python(check, self.folder / "out.npz", "features")
        said = self.fails("MATLAB file of version 5", "old.mat")
        command = re.search(r'python3 -c "[^"]+"', said)[0].replace("python3", PYTHON, 1)
        subprocess.run(["bash", "-c", command], check=True, timeout=60)
        self.python(check, self.folder / "copy-of-old.mat.npz", "x")

    def test_a_dataset_of_a_newer_hdf5_is_named_and_the_advice_makes_one_that_is_read(self):
        made = self.python("""if True:
            import sys, h5py, numpy
            with h5py.File(sys.argv[1], "w", libver="latest") as file:
                data = file.create_dataset("g/x", data=numpy.arange(30.).reshape(10, 3), chunks=(2, 3), compression="gzip"); data.attrs["scale_factor"] = 2.0
                file["y"] = numpy.arange(10)
            print(h5py.version.hdf5_version)
        """, self.folder / "new.h5")
        result = self.start("data", self.config("new.h5", features="g/x", labels="y")).wait()
        if result.code == 0:
            self.skipTest(f"HDF5 {made} writes what this library reads")
        self.assert_one_error(result, 3, r"new.h5, dataset g/x: is stored in a form that HDF5 [0-9.]+ here does not know(.|\n)*h5repack --low=0 --high=2 \S*/new.h5 \S*/copy-of-new.h5")
        command = re.search(r'python3 -c "[^"]+"', result.err)[0].replace("python3", PYTHON, 1)
        subprocess.run(["bash", "-c", command], check=True, timeout=60)
        self.lockstep("convert", self.config("copy-of-new.h5", features="g/x", labels="y"), self.folder / "out.npz")
        self.python("import sys, numpy; a = numpy.load(sys.argv[1]); assert (a['features'].ravel() == 2 * numpy.arange(30)).all() and (a['labels'].ravel() == numpy.arange(10)).all()", self.folder / "out.npz")


if __name__ == "__main__":
    main()

# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Types and filters of HDF5 files: what docs/data_arrays.md says about each is what the reader does.

Files are made by h5py and netCDF4; right values are NumPy's.
"""
import re
import subprocess
import unittest

from lockstep_run import SOURCE, LockstepTest, main, python_with

PYTHON = python_with("numpy", "h5py", "netCDF4", "scipy") or python_with("numpy", "h5py")
PAGE = SOURCE / "docs" / "data_arrays.md"

# A file for each type: features x (16 x 3), labels y (16), and the values that they stand for.
MAKE = """
import sys, h5py, numpy
folder = sys.argv[1]
random = numpy.random.default_rng(5)
x = random.integers(0, 2, (16, 3)); y = numpy.arange(16) % 2
def low_level(file, name, values, kind, memory=None):
    made = h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple(values.shape))
    if memory is not None: made.write(h5py.h5s.ALL, h5py.h5s.ALL, values, mtype=memory)
def plain(kind):
    return lambda file, name, values: file.create_dataset(name, data=values.astype(kind))
def bfloat16(file, name, values):
    kind = h5py.h5t.IEEE_F32LE.copy(); kind.set_fields(15, 7, 8, 0, 7); kind.set_precision(16); kind.set_size(2); kind.set_ebias(127)
    low_level(file, name, values.astype("f4"), kind, h5py.h5t.NATIVE_FLOAT)
makers = {
    "bool": plain(bool), "enumeration": lambda file, name, values: file.create_dataset(name, data=values.astype("u2"), dtype=h5py.enum_dtype({"no": 0, "yes": 1}, basetype="u2")),
    "bitfield": lambda file, name, values: low_level(file, name, values.astype("u1"), h5py.h5t.STD_B8LE, h5py.h5t.NATIVE_B8),
    "bfloat16": bfloat16, "float128": plain(numpy.longdouble), "complex64": plain("c8"),
    "text": lambda file, name, values: file.create_dataset(name, data=numpy.array([b"no", b"yes"])[values]),
    "opaque": lambda file, name, values: file.create_dataset(name, data=values.astype("u4").view("V4")),
    "reference": lambda file, name, values: file.create_dataset(name, data=numpy.array([file.require_group("g").ref] * values.size, dtype=h5py.ref_dtype).reshape(values.shape), dtype=h5py.ref_dtype),
}
for kind in "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split():
    makers[kind] = plain(kind)
    makers["big-endian " + kind] = plain(numpy.dtype(kind).newbyteorder(">"))
for kind, make in makers.items():
    with h5py.File(f"{folder}/{kind.replace(' ', '-')}.h5", "w") as file:
        make(file, "x", x); make(file, "y", y); file["ones"] = [[1.0]] * 16
numpy.savez(f"{folder}/right.npz", x=x, y=y)
print(" ".join(kind.replace(" ", "-") for kind in makers))
"""

# Pairs of a file and "features" or "labels": prints the type of each.
SAME = """
import sys, numpy
right = numpy.load(sys.argv[1])
for path, part in zip(sys.argv[2::2], sys.argv[3::2]):
    found, wanted = numpy.load(path)[part], right["x" if part == "features" else "y"]
    assert (found.reshape(wanted.shape).astype("f8") == wanted).all(), (path, part, found, wanted)
    print(found.dtype)
"""


def table(heading):
    """The cells of the rows of the first table below a heading of the page."""
    text = PAGE.read_text(encoding="utf-8").partition(heading + "\n")[2].partition("\n#")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return rows[2:]


def names(cell):
    return re.findall(r"`([^`]+)`", cell)


def has(module):
    return PYTHON is not None and subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, timeout=60).returncode == 0


@unittest.skipUnless(PYTHON, "no Python with numpy and h5py")
class Hdf5TypesTest(LockstepTest):
    def python(self, script, *arguments, variables=None):
        done = subprocess.run([PYTHON, "-c", script, *map(str, arguments)], capture_output=True, text=True, timeout=60, env=variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def config(self, path, name="config.yaml", **options):
        text = "".join(f"\n  {key}: {value}" for key, value in {"features": "x", **options}.items())
        (self.folder / name).write_text(f'data:\n  format: hdf5\n  path: "{path}"{text}\n', encoding="utf-8")
        return self.folder / name

    def fails(self, pattern, config, **more):
        result = self.start("data", config, **more).wait()
        self.assert_one_error(result, 3, pattern)
        return result.err

    def convert(self, config, variables=None):
        self.lockstep("convert", config, self.folder / "out.npz", "--force", variables=variables)
        return self.folder / "out.npz"

    def test_the_table_of_types_says_what_is_read(self):
        kinds = self.python(MAKE, self.folder).split()
        rows = table("### Types of values")
        told = [name for row in rows for name in names(row[0])]
        self.assertEqual(sorted(told), sorted(kind for kind in kinds if not kind.startswith("big-endian")))
        found, wanted = [], []
        for row in rows:
            for kind in names(row[0]):
                for path in sorted({kind, "big-endian-" + kind} & set(kinds)):
                    for part, cell, options in (("features", row[1], {}), ("labels", row[2], {"features": "ones", "labels": "y"})):
                        config = self.config(f"{path}.h5", **options)
                        if cell.startswith("error"):
                            with self.subTest(type=path, part=part):
                                self.fails(r"holds (float128|complex numbers|texts|an opaque type|an object reference)[^\n]*, a type that cannot be read|: it has 2 axes of complex numbers", config)
                            continue
                        with self.subTest(type=path, part=part):
                            found += [self.convert(config).rename(self.folder / f"{path}.{part}.npz"), part]
                            wanted.append({"class indices": "int32", "classes": "int32", "targets": "float32"}[cell.partition(";")[0]] if part == "labels" else
                                          "float32" if kind == "bfloat16" else  # a .npz has no bfloat16
                                          kind if cell == "the same" else names(cell)[0])
        self.assertEqual(self.python(SAME, self.folder / "right.npz", *found).split(), wanted)

    def test_numbers_of_uint64(self):
        make = """if True:
            import sys, h5py, numpy
            with h5py.File(sys.argv[1], "w") as file:
                x = numpy.array([[2**63 - 1, 5], [2**63 - 1, 6], [7, 8]], dtype="u8")
                file["x"] = x
                x[1, 0] = 2**63
                file["large"] = x
                file["y"] = numpy.array([1, 2**64 - 1, 0], dtype="u8")
                file.create_dataset("filled", data=x).attrs["_FillValue"] = numpy.uint64(2**63)
                file.create_dataset("scaled", data=x).attrs["scale_factor"] = 2.0 ** -60
        """
        self.python(make, self.folder / "u8.h5")
        load = "import sys, h5py, numpy; x, f = numpy.load(sys.argv[1])['features'], h5py.File(sys.argv[2]); "
        self.python(load + "assert x.dtype == 'i8' and (x == f['x'][...]).all(), x", self.convert(self.config("u8.h5")), self.folder / "u8.h5")
        self.fails(r"u8.h5, dataset large, record 1: 9223372036854775808 does not fit into int64", self.config("u8.h5", features="large"))
        self.fails(r"u8.h5, dataset y, record 1: 18446744073709551615 does not fit into int64", self.config("u8.h5", labels="y"))
        self.fails(r"u8.h5, dataset filled, record 1: a value of filled is missing", self.config("u8.h5", features="filled"))
        self.python(load + "r = f['filled'][...]; r[1, 0] = 3; assert (x == r).all(), x", self.convert(self.config("u8.h5", features="filled", fill=3)), self.folder / "u8.h5")
        self.python(load + "r = (f['scaled'][...] * 2.0 ** -60).astype('f4'); assert (x == r).all(), x", self.convert(self.config("u8.h5", features="scaled")), self.folder / "u8.h5")

    def test_labels_know_what_features_know(self):
        """Each variable, as features and as labels: the same values, or the same error."""
        make = """if True:
            import sys, h5py, numpy
            with h5py.File(sys.argv[1], "w") as file:
                file["x"] = numpy.zeros((6, 1), "f4")
                def add(name, data, **attributes):
                    made = file.create_dataset(name, data=data)
                    for key, value in attributes.items(): made.attrs[key] = value
                numbers = numpy.array([3, 1, 4, 1, 5, 9])
                # In float32 the missing value and its neighbour are one number.
                add("neighbour", numpy.array([1.5, 16777217.0, 2, 3, 4, 5]), _FillValue=16777216.0)
                add("missing", numpy.array([1.5, 2, -9999.9, 3, 4, 5]), missing_value=-9999.9)
                add("scaled", numpy.array([0.1, 1e9 + 0.7, 2, 3, 4, 5]), scale_factor=1e-9, add_offset=-1.0)
                add("half", numbers.astype("f2"), scale_factor=0.1)
                add("bool", numbers > 3)
                add("u32", (numbers + 2**31 - 10).astype("u4"), _FillValue=numpy.uint32(7))
                add("unsigned", numbers.astype("i8"), _Unsigned="true")
        """
        self.python(make, self.folder / "a.nc")
        right = """if True:
            import sys, h5py, numpy
            name, features, labels = sys.argv[2:]
            with h5py.File(sys.argv[1]) as file:
                data, a = file[name][...], dict(file[name].attrs)
            if "scale_factor" in a: data = (data.astype("f8") * float(a["scale_factor"]) + float(a.get("add_offset", 0))).astype("f4")
            for path, part in ((features, "features"), (labels, "labels")):
                found = numpy.load(path)[part]
                assert (found.ravel() == data.astype(found.dtype)).all(), (part, found, data)
        """
        for name in ("neighbour", "scaled", "half", "bool", "u32", "unsigned"):
            with self.subTest(name):
                features = self.convert(self.config("a.nc", features=name)).rename(self.folder / "features.npz")
                self.python(right, self.folder / "a.nc", name, features, self.convert(self.config("a.nc", labels=name)))
        for options in ({"features": "missing"}, {"labels": "missing"}):
            self.fails("dataset missing, record 2: a value of missing is missing: it is the fill value -9999.9", self.config("a.nc", **options))

    @unittest.skipUnless(has("xarray, netCDF4"), "no xarray and netCDF4 for Python")
    def test_variables_have_the_values_of_xarray(self):
        """As features and as labels; values that are missing there are `fill` here."""
        make = """if True:
            import sys, numpy, xarray
            random = numpy.random.default_rng(6)
            kelvin = random.uniform(250, 300, 30); kelvin[[3, 17]] = numpy.nan
            counts = random.integers(0, 4e9, 30)
            data = {"t2m": kelvin, "rain": kelvin.astype("f4") - 250, "bytes": random.integers(0, 250, 30).astype("f8"), "flag": counts % 2 == 0, "counts": counts, "kind": counts % 5}
            encoding = {"t2m": dict(dtype="i2", scale_factor=0.01, add_offset=273.15, _FillValue=-32768), "rain": dict(dtype="f4", _FillValue=-999.0), "bytes": dict(dtype="i1", _Unsigned="true", _FillValue=-1),
                        "counts": dict(dtype="u4"), "kind": dict(dtype="i8")}
            xarray.Dataset({name: ("t", values) for name, values in data.items()}).to_netcdf(sys.argv[1], engine="netcdf4", encoding=encoding)
        """
        self.python(make, self.folder / "w.nc")
        check = """if True:
            import sys, numpy, xarray
            right = xarray.open_dataset(sys.argv[1], engine="netcdf4")[sys.argv[2]]
            right = right.fillna(99).values.astype("f8") if right.dtype.kind == "f" else right.values.astype("f8")
            for path, part in zip(sys.argv[3:], ("features", "labels")):
                found = numpy.load(path)[part].ravel().astype("f8")
                assert numpy.allclose(found, right, rtol=2e-7, atol=0), (part, found, right)
        """
        for name in ("t2m", "rain", "bytes", "flag", "counts", "kind"):
            with self.subTest(name):
                found = [self.convert(self.config("w.nc", features=name, fill=99)).rename(self.folder / "features.npz")]
                if name != "counts":  # no class numbers
                    found.append(self.convert(self.config("w.nc", features="kind", labels=name, fill=99)))
                self.python(check, self.folder / "w.nc", name, *found)

    @unittest.skipUnless(has("netCDF4"), "no netCDF4 for Python")
    def test_characters_of_netcdf_are_one_text_for_each_sample(self):
        make = """if True:
            import sys, netCDF4, numpy
            for part, width in enumerate((7, 5)):
                with netCDF4.Dataset(f"{sys.argv[1]}/part{part}.nc", "w") as file:
                    for name, extent in (("t", 20), ("f", 3), ("width", width)): file.createDimension(name, extent)
                    file.createVariable("x", "f4", ("t", "f"))[:] = 1
                    names = numpy.array(["rain", "sun", "fog", "hail!"])[(numpy.arange(20) * 3 + part) % 4]
                    file.createVariable("sky", "S1", ("t", "width"))[:] = netCDF4.stringtochar(names.astype(f"S{width}"))
        """
        self.python(make, self.folder)
        self.convert(self.config("part*.nc", labels="sky"))
        check = "import sys, numpy; y = numpy.load(sys.argv[1])['labels'].ravel(); n = ['rain', 'sun', 'fog', 'hail!']; r = [sorted(n).index(n[(i * 3 + p) % 4]) for p in (0, 1) for i in range(20)]; assert y.tolist() == r, y"
        self.python(check, self.folder / "out.npz")

    def test_float_labels_that_are_whole_numbers_train_classes(self):
        make = """if True:
            import sys, h5py, numpy
            random = numpy.random.default_rng(1); y = random.integers(0, 3, 64)
            with h5py.File(sys.argv[1], "w") as file:
                file["x"] = random.normal(size=(64, 4)).astype("f4"); file["i"] = y.astype("i4"); file["d"] = y.astype("f8"); file["half"] = y + 0.5
        """
        self.python(make, self.folder / "c.h5")
        for labels in ("i", "d", "half"):  # a class of 0.5 is none
            config = self.config("c.h5", labels=labels)
            config.write_text(config.read_text() + "model: {layers: [{dense: {units: 3}}], loss: softmax_cross_entropy}\noptimizer: {gradient_descent: {learning_rate: 0.1}}\ntrain: {batch_size: 16, epochs: 2}\n")
            self.train(labels, config=config, code=3 if labels == "half" else 0)
        self.assertEqual(self.digest("i"), self.digest("d"))
        # Names of samples that are hashes of 64 bits stay whole.
        self.python("import sys, h5py, numpy\nwith h5py.File(sys.argv[1], 'a') as f: f['hash'] = numpy.array([2**64 - 1 - i for i in range(64)], dtype='u8')", self.folder / "c.h5")
        self.lockstep("predict", self.folder / "i", "--input", self.folder / "c.h5", "--id-column", "hash", "--output", self.folder / "out.csv")
        first = (self.folder / "out.csv").read_text(encoding="utf-8").splitlines()[1]
        self.assertTrue(first.startswith("18446744073709551615,"), first)

    def test_bools_in_tables_are_columns_of_numbers(self):
        make = """if True:
            import sys, h5py, numpy
            kind = h5py.h5t.create(h5py.h5t.COMPOUND, 6)
            kind.insert(b"a", 0, h5py.h5t.IEEE_F32LE); kind.insert(b"bit", 4, h5py.h5t.STD_B8LE); kind.insert(b"flag", 5, h5py.h5t.py_create(numpy.dtype(bool), logical=True))
            rows = numpy.zeros(5, dtype=[("a", "<f4"), ("bit", "u1"), ("flag", "?")])
            rows["a"] = [0.5, 1, 2, 3, 4]; rows["bit"] = [1, 0, 0, 1, 1]; rows["flag"] = [0, 1, 0, 0, 1]
            with h5py.File(sys.argv[1], "w") as file:
                made = h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((5,)))
                made.write(h5py.h5s.ALL, h5py.h5s.ALL, rows, mtype=kind)
            numpy.save(sys.argv[2], numpy.stack([rows[n].astype("f4") for n in rows.dtype.names], 1))
        """
        self.python(make, self.folder / "t.h5", self.folder / "right.npy")
        check = "import sys, numpy; a = numpy.load(sys.argv[1]); r = numpy.load(sys.argv[2]); assert (a['features'] == r).all(), a['features']; print(a['labels'].ravel() if len(sys.argv) > 3 else '')"
        self.python(check, self.convert(self.config("t.h5")), self.folder / "right.npy")
        self.convert(self.config("t.h5", columns="a", labels="x.bit"))
        self.assertEqual(self.python("import sys, numpy; print(numpy.load(sys.argv[1])['labels'].ravel().tolist())", self.folder / "out.npz"), "[1, 0, 0, 1, 1]")

    def test_the_table_of_filters_says_what_is_read(self):
        """Filters that HDF5 has are read; others are named, with their number."""
        make = """if True:
            import sys, h5py, numpy
            numbers = {"lzo": 305, "bzip2": 307, "lzf": 32000, "blosc": 32001, "snappy": 32003, "lz4": 32004, "bitshuffle": 32008, "zfp": 32013, "fpzip": 32014,
                       "zstd": 32015, "sz": 32017, "sz3": 32024, "blosc2": 32026}
            own = {"gzip": dict(compression="gzip"), "shuffle": dict(shuffle=True), "fletcher32": dict(fletcher32=True), "scaleoffset": dict(scaleoffset=0),
                   "szip": dict(compression="szip")}
            x = numpy.random.default_rng(2).integers(0, 9, (40, 5)).astype("i4")
            numpy.save(sys.argv[1] + "/right.npy", x)
            for name in sys.argv[2:]:
                with h5py.File(f"{sys.argv[1]}/{name}.h5", "w") as file:
                    if name in own:
                        try: file.create_dataset("x", data=x, chunks=(8, 5), **own[name])
                        except ValueError: print("cannot", name)
                        continue
                    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE); properties.set_chunk((8, 5))
                    properties.set_filter(numbers[name], h5py.h5z.FLAG_OPTIONAL)
                    data = h5py.h5d.create(file.id, b"x", h5py.h5t.STD_I32LE, h5py.h5s.create_simple((40, 5)), properties)
                    for row in range(0, 40, 8): data.write_direct_chunk((row, 0), x[row:row + 8].tobytes())
        """
        rows = table("### Compressed datasets")
        told = [name for row in rows for name in names(row[0])]
        self.assertGreaterEqual(set(told), {"gzip", "shuffle", "fletcher32", "szip", "lzf", "blosc", "blosc2", "zstd", "lz4", "bitshuffle", "bzip2", "zfp", "sz"})
        cannot = self.python(make, self.folder, *told).split()
        found = []
        for row in rows:
            for name in names(row[0]):
                if name in cannot:
                    continue
                with self.subTest(name):
                    config = self.config(f"{name}.h5")
                    if "plugin" in row[1]:
                        self.fails(rf"{name}.h5, dataset x: its chunks are compressed by the filter {name} \(number \d+\), which HDF5 does not find here", config)
                    else:
                        found.append(self.convert(config).rename(self.folder / f"{name}.npz"))
        self.python("import sys, numpy\nfor path in sys.argv[2:]: assert (numpy.load(path)['features'] == numpy.load(sys.argv[1])).all(), path", self.folder / "right.npy", *found)

    def test_the_advice_about_lzf_makes_a_file_that_is_read(self):
        self.python("import sys, h5py, numpy\nwith h5py.File(sys.argv[1], 'w') as f: f.create_dataset('g/x', data=numpy.arange(120.).reshape(40, 3), chunks=(8, 3), compression='lzf').attrs['scale_factor'] = 0.5; f['y'] = 1",
                    self.folder / "old.h5")
        said = self.fails(r"filter lzf \(number 32000\)", self.config("old.h5", features="g/x"))
        self.follow(said, "python3 -c ")
        self.convert(self.config("copy-of-old.h5", features="g/x"))
        self.python("import sys, numpy; assert (numpy.load(sys.argv[1])['features'].ravel() == numpy.arange(120) / 2).all()", self.folder / "out.npz")

    def follow(self, said, start):
        """Runs the command in a message, by the Python of this test."""
        found = re.search(re.escape(start) + r'"([^"]*)"', said)
        self.assertIsNotNone(found, said)
        subprocess.run(["bash", "-c", found[0].replace("python3", PYTHON, 1)], check=True, timeout=60)

    @unittest.skipUnless(has("netCDF4"), "no netCDF4 for Python")
    def test_a_plugin_is_found_by_its_variable(self):
        plugins = self.python("import netCDF4, os; print(os.path.dirname(netCDF4.__file__) + '/plugins')")
        make = """if True:
            import sys, netCDF4, numpy
            with netCDF4.Dataset(sys.argv[1], "w") as file:
                file.createDimension("t", 40); file.createDimension("f", 5)
                file.createVariable("x", "f4", ("t", "f"), compression="zstd", chunksizes=(8, 5))[:] = numpy.arange(200).reshape(40, 5)
        """
        self.python(make, self.folder / "z.nc")
        self.fails(r"filter zstd \(number 32015\)(.|\n)*HDF5_PLUGIN_PATH(.|\n)*h5repack -f GZIP=4 \S*z.nc \S*copy-of-z.nc", self.config("z.nc"))
        self.convert(self.config("z.nc"), variables={"HDF5_PLUGIN_PATH": plugins})
        self.python("import sys, numpy; assert (numpy.load(sys.argv[1])['features'].ravel() == numpy.arange(200)).all()", self.folder / "out.npz")


if __name__ == "__main__":
    main()

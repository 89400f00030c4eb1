# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""netCDF-4 by the reader hdf5: packing, unsigned numbers, missing values, dimension scales.

The files are made with h5py, with the attributes, the dimension scales and the types that the netCDF library writes.
"""
import subprocess
import unittest

from lockstep_run import LockstepTest, main, python_with_h5py

PYTHON = python_with_h5py()

MAKE = """
import sys, h5py, numpy
random = numpy.random.default_rng(1)
with h5py.File(sys.argv[1], "w") as file:
    file.attrs["_NCProperties"] = numpy.bytes_("version=2,netcdf=4.9.0,hdf5=1.10.8")
    shape = (40, 6, 5)
    for name, extent in zip(("time", "lat", "lon"), shape):
        file.create_dataset(name, data=numpy.linspace(0, 1, extent)).make_scale(name)
    def variable(name, data, **attributes):
        made = file.create_dataset(name, data=data, chunks=(8, 6, 5)[:data.ndim], shuffle=True, compression="gzip",
                                   fillvalue=attributes.get("_FillValue"))
        for axis, scale in zip(range(data.ndim), ("time", "lat", "lon")):
            made.dims[axis].attach_scale(file[scale])
        for key, value in attributes.items():
            made.attrs.create(key, value)
    packed = random.integers(-3000, 3000, shape).astype("i2")
    variable("t2m", packed, _FillValue=numpy.int16([-32767]), scale_factor=numpy.float64([0.01]), add_offset=numpy.float64([273.15]), units="K")
    variable("only_scale", packed, scale_factor=numpy.float32([0.5]))
    holes = packed.copy(); holes[17, 3, 2] = -32767
    variable("holes", holes, _FillValue=numpy.int16([-32767]), scale_factor=numpy.float64([0.01]), add_offset=numpy.float64([273.15]))
    default = packed.copy(); default[4, 0, 0] = -32767
    variable("default_fill", default)
    floats = packed.astype("f4"); floats[9, 5, 4] = -numpy.float32("nan")  # any NaN, whatever its bits
    variable("floats", floats, missing_value=numpy.float32([numpy.nan]))
    variable("bytes", random.integers(-128, 128, shape).astype("i1"), _Unsigned=numpy.bytes_("true"))
    variable("shorts", packed, _Unsigned="true")
    variable("wide", packed.astype("i4"), _Unsigned=numpy.bytes_("true"))
    for size in (1, 2, 4):
        variable(f"signed{size}", packed.astype(f"u{size}"), _Unsigned=numpy.bytes_("false") if size == 2 else "False")
    signed = packed.astype("i1"); signed[signed == -1] = 0; signed[8, 2, 1] = -1
    variable("signed_fill", signed.view("u1"), _Unsigned="false", missing_value=numpy.int8([-1]), scale_factor=numpy.float64([0.5]))
    variable("valid", packed, valid_range=numpy.int16([-1000, 2500]), scale_factor=numpy.float64([0.01]), add_offset=numpy.float64([273.15]))
    variable("valid_values", packed, valid_max=numpy.float64([290]), scale_factor=numpy.float64([0.01]), add_offset=numpy.float64([273.15]))
    variable("all_valid", packed, valid_min=numpy.int16([-3000]), valid_max=numpy.int16([3000]))
    variable("plain", packed, units="m")
    variable("kind", (numpy.arange(40) % 3).astype("i1"), _FillValue=numpy.int8([-1]))
    bad = (numpy.arange(40) % 3).astype("i1"); bad[30] = -1
    variable("bad_kind", bad, _FillValue=numpy.int8([-1]))
    variable("target", numpy.arange(40, dtype="i2"), scale_factor=numpy.float64([0.25]))
    variable("two_scales", packed, scale_factor=numpy.float64([1, 2]))
    variable("text_scale", packed, scale_factor="0.01", add_offset=numpy.bytes_("273.15 "))
    variable("no_number", packed, scale_factor="percent")
    zeros = packed.copy(); zeros[:, :2] = 0
    variable("held_by_none", zeros, scale_factor=numpy.float64([0.01]), add_offset=numpy.float64([273.15]),
             missing_value=numpy.float32([numpy.nan]), _FillValue=numpy.int16([-32767]))
    for name, missing in (("half", -0.5), ("large", 1e20), ("wide_fill", 40000)):
        variable("not_" + name, zeros, missing_value=numpy.float64([missing]))
    variable("too_large", zeros.astype("f4"), missing_value=numpy.float64([1e300]))
    variable("text_missing", holes, missing_value="-32767", scale_factor="0.01")
    full = (packed % 256).astype("u1").view("i1"); full[full == -1] = 0; full[8, 2, 1] = -1
    variable("unsigned_fill", full, _Unsigned="True", missing_value=numpy.uint8([255]))
    variable("many_kinds", (numpy.arange(40) * 6).astype("u1").view("i1"), _Unsigned="true")
"""

# The meaning of the attributes in a few lines of NumPy.
MEANING = """
import sys, h5py, numpy
path, name, result = sys.argv[1:4]
with h5py.File(path) as file:
    data = file[name][...]
    attributes = file[name].attrs
    if "_Unsigned" in attributes:
        said = attributes["_Unsigned"]
        kind = "u" if (said.decode() if isinstance(said, bytes) else str(said)).lower() == "true" else "i"
        data = data.view(f"{kind}{data.dtype.itemsize}") if data.dtype.itemsize < 4 else data.view(kind + "4").astype("i8")
    missing = numpy.zeros(data.shape, bool)
    for key in ("_FillValue", "missing_value"):
        if key in attributes:
            fill = attributes[key][0]
            fill = float(fill if not isinstance(attributes[key], str) else attributes[key])
            missing |= numpy.isnan(data) if fill != fill else (data.astype("f8") == fill) if data.dtype.kind in "iu" else (data == numpy.asarray(fill).astype(data.dtype)) & (abs(fill) < 3e38)
    if name == "default_fill": missing |= data == -32767
    if "scale_factor" in attributes:
        number = lambda value: float(value if isinstance(value, (str, bytes)) else value[0])
        data = (data * number(attributes["scale_factor"]) + number(attributes.get("add_offset", [0]))).astype("f4")
    if len(sys.argv) > 4: data[missing] = float(sys.argv[4])
found = numpy.load(result)["features"]
assert found.dtype == data.dtype and found.tobytes() == data.tobytes(), (found.dtype, data.dtype, found[found != data][:4], data[found != data][:4])
"""


@unittest.skipUnless(PYTHON, "no Python with numpy and h5py")
class NetcdfTest(LockstepTest):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "weather.nc"
        subprocess.run([PYTHON, "-c", MAKE, self.file], check=True, timeout=60)

    def config(self, features, **options):
        path = self.folder / "data.yaml"
        text = "".join(f"\n  {key}: {value}" for key, value in options.items())
        path.write_text(f"data:\n  format: hdf5\n  path: weather.nc\n  features: {features}{text}\n", encoding="utf-8")
        return path

    def same(self, features, fill=None, **options):
        if fill is not None:
            options["fill"] = fill
        self.lockstep("convert", self.config(features, **options), self.folder / "out.npz", "--force")
        arguments = [self.file, features, self.folder / "out.npz"] + ([fill] if fill is not None else [])
        done = subprocess.run([PYTHON, "-c", MEANING, *map(str, arguments)], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)

    def fails(self, code, pattern, features, **options):
        self.assert_one_error(self.start("data", self.config(features, **options)).wait(), code, pattern)

    def test_values_are_what_the_attributes_say(self):
        for name in ("t2m", "only_scale", "bytes", "shorts", "wide", "signed1", "signed2", "signed4", "plain", "time"):
            with self.subTest(variable=name):
                self.same(name, **({"rows": "[0, 40]"} if name == "time" else {}))
        self.same("t2m", labels="kind", block_samples=8)

    def test_numbers_that_are_written_as_texts(self):
        self.same("text_scale")
        self.same("text_missing", 1.5)
        self.fails(3, r"weather\.nc, dataset no_number: its attribute scale_factor is the text 'percent', which is not one finite number",
                   "no_number")
        self.lockstep("data", self.config("no_number", unpack="false"))

    def test_a_missing_value_that_the_type_cannot_hold_matches_nothing(self):
        for name in ("held_by_none", "not_half", "not_large", "not_wide_fill", "too_large"):
            with self.subTest(variable=name):
                self.same(name)
                said = self.lockstep("data", self.config(name)).err
                self.assertEqual(said.count("no value is missing by it"), 1, said)

    def test_numbers_that_are_signed_whatever_their_type_says(self):
        self.fails(3, "dataset signed_fill, record 8: a value of signed_fill is missing: it is the fill value -1", "signed_fill")
        self.same("signed_fill", 0)

    def test_values_beyond_what_is_valid_are_taken_and_named_once(self):
        for name, said in (("valid", r"is beyond the valid_range \[-1000, 2500\] of valid"), ("valid_values", r"is beyond the valid_min and valid_max \[-inf, 290\] of valid_values"),
                           ("all_valid", None)):
            with self.subTest(variable=name):
                self.same(name)
                found = self.lockstep("data", self.config(name)).err
                self.assertEqual(found.count("is beyond"), 0 if said is None else 1, found)
                if said is not None:
                    self.assertRegex(found, rf"weather\.nc, dataset {name}, record \d+: .* {said}")

    def test_labels_follow_the_rule_of_features(self):
        self.fails(3, "dataset unsigned_fill, record 8: a value of unsigned_fill is missing: it is the fill value 255", "unsigned_fill")
        self.same("unsigned_fill", 0)
        self.lockstep("convert", self.config("t2m", labels="many_kinds"), self.folder / "out.npz", "--force")
        check = "import sys, numpy; assert (numpy.load(sys.argv[1])['labels'] == numpy.arange(40) * 6).all()"
        subprocess.run([PYTHON, "-c", check, self.folder / "out.npz"], check=True, timeout=60)

    def test_the_stored_numbers_without_unpacking(self):
        self.lockstep("convert", self.config("t2m", unpack="false"), self.folder / "out.npz")
        check = "import sys, h5py, numpy; f = h5py.File(sys.argv[1]); a = numpy.load(sys.argv[2])['features']; assert a.dtype == 'i2' and (a == f['t2m'][...]).all()"
        subprocess.run([PYTHON, "-c", check, self.file, self.folder / "out.npz"], check=True, timeout=60)

    def test_missing_values_are_errors_that_name_variable_and_record(self):
        for name, record in (("holes", 17), ("default_fill", 4), ("floats", 9)):
            with self.subTest(variable=name):
                self.fails(3, rf"weather\.nc, dataset {name}, record {record}: a value of {name} is missing: it is the fill value (-32767|-?nan)", name)
                self.lockstep("data", self.config(name, rows=f"[0, {record}]"))
        self.fails(3, r"dataset bad_kind, record 30: a value of bad_kind is missing: it is the fill value -1", "t2m", labels="bad_kind")

    def test_a_class_is_never_filled_in(self):
        """`fill` is about features then; the advice of the message is followed."""
        message = "dataset bad_kind, record 30: a value of bad_kind is missing: it is the fill value -1"
        self.same("holes", 7.5, labels="kind")
        self.fails(3, message, "holes", labels="bad_kind", fill=0)
        left = self.lockstep("convert", self.config("holes", labels="bad_kind", fill=0, bad_records="skip", max_bad_records=1), self.folder / "left.npz").err
        self.assertIn("record 30", left)
        check = "import sys, numpy; assert (numpy.load(sys.argv[1])['labels'] == [n % 3 for n in range(40) if n != 30]).all()"
        subprocess.run([PYTHON, "-c", check, self.folder / "left.npz"], check=True, timeout=60)

    def test_a_value_in_their_place(self):
        for name, fill in (("holes", 250.5), ("default_fill", 7), ("floats", -1)):
            with self.subTest(variable=name):
                self.same(name, fill)
        self.fails(2, "fill is 0.5, but its values are int16", "default_fill", fill=0.5)
        self.fails(2, "fill is 40000, but its values are int16", "default_fill", fill=40000)

    def test_lockstep_data_says_what_is_done(self):
        out = self.lockstep("data", self.config("t2m", labels="target")).out
        self.assertRegex(out, r"t2m: value = stored \* 0\.01 \+ 273\.15; missing values are errors")
        self.assertRegex(out, r"target: value = stored \* 0\.25 \+ 0")
        self.assertRegex(out, r"labels +1 columns: 0 to 9\.75")
        self.assertNotIn("stored", self.lockstep("data", self.config("t2m", unpack="false")).out)
        self.fails(3, "its attribute scale_factor is not one finite number", "two_scales")


if __name__ == "__main__":
    main()

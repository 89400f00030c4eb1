# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""What pixels become: palettes, 16 bits, files that are no JPEG or PNG. Right values are Pillow's and NumPy's."""
import io
import subprocess
import tarfile
import unittest

from lockstep_run import LockstepTest, main, python_with

PYTHON = python_with("numpy", "PIL")

MAKE = """
import sys, os, numpy
from PIL import Image
folder = sys.argv[1]
random = numpy.random.default_rng(4)
def save(path, image, **options):
    os.makedirs(os.path.dirname(f"{folder}/{path}"), exist_ok=True)
    image.save(f"{folder}/{path}", **options)
right = {"index": [], "color": [], "depth": [], "grey": []}
for i in range(6):
    # A mask of 3 to 200 classes: 2, 4 and 8 bits for an index.
    classes = (3, 15, 200)[i % 3]
    mask = random.integers(0, classes, (9, 7)).astype("u1")
    image = Image.fromarray(mask, "P"); image.putpalette(random.integers(0, 256, 3 * classes).astype("u1").tobytes())
    save(f"masks/a/{i}.png", image, bits=(2, 4, 8)[i % 3])
    right["index"].append(mask); right["color"].append(numpy.asarray(image.convert("RGB")))
    depth = random.integers(0, 65536 if i else 120, (9, 7)).astype("u2")
    save(f"depth/a/{i}.png", Image.fromarray(depth))
    right["depth"].append(depth)
    grey = random.integers(0, 256, (9, 7)).astype("u1")
    save(f"grey/a/{i}.png", Image.fromarray(grey)); right["grey"].append(grey)
numpy.savez(f"{folder}/right.npz", **right)
for i in range(300):
    save(f"bad/a/{i:03}.png", Image.fromarray(random.integers(0, 256, (4, 5, 3)).astype("u1")))
whole = open(f"{folder}/bad/a/000.png", "rb").read()
picture = Image.fromarray(random.integers(0, 256, (4, 5, 3)).astype("u1"))
for name in ("x1.gif", "x2.GIF", "x3.jpg"):
    picture.save(f"{folder}/bad/a/{name}", format="GIF")
picture.save(f"{folder}/bad/a/x4.gif", format="PNG")  # a PNG file by its bytes
picture.convert("CMYK").save(f"{folder}/bad/a/x5.jpg")
for name, data in (("y1.png", whole[:60]), ("y2.png", b""), ("y3.png", b"no picture"), ("y4.webp", b"RIFF....WEBP"), ("y5.jpeg", b"\\xff\\xd8\\xff\\xe0")):
    open(f"{folder}/bad/a/{name}", "wb").write(data)
"""

SAME = """
import sys, numpy
found, right = numpy.load(sys.argv[1])["features"], numpy.load(sys.argv[2])
wanted = eval(sys.argv[3])
wanted = wanted if wanted.ndim == 4 else wanted[..., None]
assert found.dtype == wanted.dtype and found.shape == wanted.shape and (found == wanted).all(), (found.dtype, wanted.dtype, found[0], wanted[0])
"""


@unittest.skipUnless(PYTHON, "no Python with numpy and Pillow")
class ImagePixelsTest(LockstepTest):
    def setUp(self):
        super().setUp()
        subprocess.run([PYTHON, "-W", "ignore", "-c", MAKE, self.folder], check=True, timeout=60)

    def config(self, path, **options):
        text = "".join(f"\n  {key}: {value}" for key, value in options.items())
        (self.folder / "config.yaml").write_text(f"data:\n  format: images\n  path: {path}{text}\n", encoding="utf-8")
        return self.folder / "config.yaml"

    def same(self, wanted, path, **options):
        done = self.lockstep("convert", self.config(path, **options), self.folder / "out.npz", "--force")
        subprocess.run([PYTHON, "-c", SAME, self.folder / "out.npz", self.folder / "right.npz", wanted], check=True, timeout=60)
        return done.err

    def fails(self, code, pattern, path, **options):
        self.assert_one_error(self.start("data", self.config(path, **options)).wait(), code, pattern)

    def test_a_palette_gives_colors_or_indices(self):
        self.same("right['color']", "masks")
        self.same("right['index']", "masks", palette="index", channels=1)
        self.same("right['index'][:, numpy.arange(3) * 3 + 1]", "masks", palette="index", channels=1, size="[3, 7]", resize="nearest")
        self.same("right['index'].astype('u2')", "masks", palette="index", channels=1, bits=16)
        self.same("right['grey']", "grey", palette="index", channels=1)
        self.fails(2, "palette: is index, and samples have 3 channels", "masks", palette="index")
        self.fails(2, "resize: would mix the indices", "masks", palette="index", channels=1, size=8)
        self.fails(3, "bad/a/000.png, byte [0-9]+: cannot be decoded: it has colours without a palette", "bad/a/0*.png", palette="index", channels=1)
        self.fails(3, "depth/a/0.png, byte [0-9]+: cannot be decoded: its values have 16 bits, which bits: 16 reads", "depth", palette="index", channels=1)

    def test_16_bits_stay_or_are_said_to_go(self):
        said = self.same("numpy.floor(right['depth'] * 255.0 / 65535 + 0.5).astype('u1')", "depth", channels=1)
        self.assertEqual(said.count("has 16 bits per value, of which samples keep 8"), 1, said)
        said = self.same("right['depth']", "depth", channels=1, bits=16)
        self.assertNotIn("16 bits per value", said)
        self.same("numpy.repeat(right['depth'][..., None], 3, -1)", "depth", bits=16)
        self.same("right['grey'].astype('u2') * numpy.uint16(257)", "grey", channels=1, bits=16)
        self.same("right['depth'][:, numpy.arange(3) * 3 + 1]", "depth", channels=1, bits=16, size="[3, 7]", resize="nearest")
        # Scaled as the options say; a stream has the same values.
        self.same("(right['depth'])", "depth", channels=1, bits=16, memory_gb=0.0000005)
        self.assertNotIn("keep 8", self.same("right['grey']", "grey", channels=1))
        self.fails(2, "bits: is 12", "depth", bits=12)
        self.fails(2, "resize: has 8 bits, and samples have bits: 16", "depth", bits=16, size=8)

    def test_archives_and_predictions_have_the_same_values(self):
        with tarfile.open(self.folder / "depth.tar", "w") as out:
            for path in sorted((self.folder / "depth" / "a").iterdir()):
                for name, data in ((path.name, path.read_bytes()), (path.stem + ".cls", b"0")):
                    info = tarfile.TarInfo(name)
                    info.size = len(data)
                    out.addfile(info, io.BytesIO(data))
        config = self.config("depth.tar", channels=1, bits=16, image="png")
        config.write_text(config.read_text(encoding="utf-8").replace("format: images", "format: webdataset"), encoding="utf-8")
        self.lockstep("convert", config, self.folder / "out.npz")
        subprocess.run([PYTHON, "-c", SAME, self.folder / "out.npz", self.folder / "right.npz", "right['depth']"], check=True, timeout=60)
        config = self.config("depth", channels=1, bits=16, scale=0.00001)
        model = "model: {layers: [flatten, {dense: {units: 1, name: sum, kernel_initializer: ones}}], loss: mean_squared_error}\n"
        config.write_text(config.read_text(encoding="utf-8") + model + "optimizer: {gradient_descent: {learning_rate: 1.0e-30}}\ntrain: {batch_size: 6, steps: 1}\n", encoding="utf-8")
        self.train("run", config=config)
        self.lockstep("predict", self.folder / "run", "--input", self.folder / "depth", "--output", self.folder / "out.npy")
        check = "import sys, numpy; a = numpy.load(sys.argv[1]).ravel(); r = numpy.load(sys.argv[2])['depth'].sum((1, 2)) * 1e-5; assert numpy.allclose(a, r, rtol=1e-5), (a, r)"
        subprocess.run([PYTHON, "-c", check, self.folder / "out.npy", self.folder / "right.npz"], check=True, timeout=60)

    def test_a_file_is_what_its_bytes_say_under_every_name(self):
        for name in ("x1.gif", "x2.GIF", "x3.jpg"):
            with self.subTest(name):
                for other in (self.folder / "bad" / "a").glob("[xy]*"):
                    if other.name != name:
                        other.rename(self.folder / other.name)
                self.fails(3, f"bad/a/{name}: is a GIF image(.|\n)*convert it, or leave it out: bad_records: skip", "bad")
                for other in self.folder.glob("[xy][0-9].*"):
                    other.rename(self.folder / "bad" / "a" / other.name)

    def test_all_files_that_cannot_be_decoded_are_skipped_and_counted(self):
        out = self.lockstep("data", self.config("bad", bad_records="skip", max_bad_records=10)).out
        self.assertRegex(out, r"8 of 310 records are bad and left out")
        self.lockstep("convert", self.config("bad", bad_records="skip", max_bad_records=10), self.folder / "out.npz")
        check = "import sys, numpy; a = numpy.load(sys.argv[1])['features']; assert a.shape == (302, 4, 5, 3), a.shape"
        subprocess.run([PYTHON, "-c", check, self.folder / "out.npz"], check=True, timeout=60)
        self.fails(3, r"more than 7 of 310 records are bad", "bad", bad_records="skip", max_bad_records=7)


if __name__ == "__main__":
    main()

# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Section summary: histograms and pictures are right, the same on any number of ranks and threads, and change no
bit of the training."""
import bisect
import gzip
import math
import re
import sys
import zlib

from event_records import summaries
from everything import NET, NOTHING, everything
from lockstep_run import DIGITS_DATA, SOURCE, LockstepTest, checkpoints, main, newest_step, records, wait_until

EVERY = 6
PARTS = [f"summary.{part}={{every_steps: {EVERY}}}" for part in
         ("weights", "gradients", "updates", "activations", "inputs", "filters")]
EVERYTHING = [*PARTS, "summary.confusion_matrix=true", "eval.metrics=[confusion_matrix]", f"eval.every_steps={EVERY}"]


def limits():
    """The 1,551 limits of TensorFlow's buckets."""
    positive = [1e-12]
    while positive[-1] * 1.1 < 1e20:
        positive.append(positive[-1] * 1.1)
    positive.append(sys.float_info.max)
    return [-edge for edge in reversed(positive)] + [0.0] + positive


def expanded(histogram):
    """{bucket: count} without empty buckets."""
    all_limits = limits()
    return {all_limits.index(limit): count
            for limit, count in zip(histogram["limits"], histogram["counts"]) if count}


def results(run):
    """Without speeds, and without what tells how the run was started."""
    return {key: value for key, value in summaries(run).items()
            if not key[0].endswith("/sec") and not key[0].startswith(("configuration", "_hparams_"))}


class SummariesTest(LockstepTest):
    def with_everything(self, name, ranks=2, threads=1, steps=12, more=()):
        self.train(name, ranks=ranks, threads=threads, steps=steps, sets=[*EVERYTHING, *more])
        return self.folder / name

    def test_recording_moves_no_bit_and_is_the_same_on_any_ranks_and_threads(self):
        self.train("plain", ranks=2, steps=12)
        expected = None
        for ranks, threads in ((1, 2), (2, 1), (3, 1), (4, 1)):
            run = self.with_everything(f"run{ranks}{threads}", ranks=ranks, threads=threads)
            self.assertEqual(self.digest(f"run{ranks}{threads}"), self.digest("plain"))
            found = results(run)
            found.update({("eval",) + key: value for key, value in summaries(run / "eval").items()})
            # The samples of the first microshard are those of rank 0.
            expected = expected or found
            self.assertEqual(set(found), set(expected))
            different = [key for key in found if found[key] != expected[key]]
            self.assertEqual(different, [], f"{ranks} ranks")
        tags = {key[0] for key in expected}
        for tag in ("weights/conv1/kernel", "weights/bn1/moving_mean", "gradients/logits/bias",
                    "gradient_norm/conv2", "updates/conv3/kernel", "update_ratio/conv3/kernel",
                    "activations/relu1", "zero_fraction/relu1", "inputs", "inputs/samples", "filters/conv1"):
            self.assertIn(tag, tags)
        self.assertIn(("eval", "confusion_matrix/matrix", 12), expected)
        self.assertTrue(all(len(values) == 1 for values in expected.values()), "each value once")

    def test_histograms_of_weights_are_those_of_the_checkpoint(self):
        run = self.with_everything("run")
        found = summaries(run)
        script = ("import h5py,json,sys\n"
                  "with h5py.File(sys.argv[1]) as f: print(json.dumps("
                  "{n: f['variables'][n][...].ravel().astype(float).tolist() for n in ('conv1/kernel','logits/kernel')}))")
        for name, values in self.read_by_h5py(script, checkpoints(run)[-1]).items():
            histogram = found["weights/" + name, 12][0]
            self.assertEqual(histogram["num"], len(values))
            self.assertEqual(histogram["min"], min(values))
            self.assertEqual(histogram["max"], max(values))
            self.assertAlmostEqual(histogram["sum"], math.fsum(values), delta=1e-9)
            self.assertAlmostEqual(histogram["sum_squares"], math.fsum(v * v for v in values), delta=1e-9)
            expected = {}
            all_limits = limits()
            for value in values:
                bucket = bisect.bisect_right(all_limits, value)
                expected[bucket] = expected.get(bucket, 0) + 1
            self.assertEqual(expanded(histogram), expected)

    def test_norms_and_ratios_agree_with_each_other(self):
        sets = ["gradients.record_norm=true", "optimizer={gradient_descent: {learning_rate: 0.125}}"]
        run = self.with_everything("run", more=["summary.every_steps=6", *sets])
        rows = {}
        for row in records(run):
            rows.setdefault(row["step"], {}).update(row)
        self.assertEqual(sorted(rows), [1, 6, 12])
        del rows[1]  # histograms and norms begin with the first step, loss and metrics do not
        for step, row in rows.items():
            layers = [value for name, value in row.items() if name.startswith("gradient_norm/")]
            self.assertEqual(len(layers), 7)
            self.assertAlmostEqual(math.sqrt(sum(v * v for v in layers)), row["gradient_norm"], delta=1e-6)
            found = summaries(run)
            gradient = found["gradients/conv1/kernel", step][0]
            weights = found["weights/conv1/kernel", step][0]
            update = found["updates/conv1/kernel", step][0]
            # The update of plain gradient descent, rounded to float32 twice.
            self.assertAlmostEqual(update["sum_squares"], 0.125 ** 2 * gradient["sum_squares"],
                                   delta=1e-5 * update["sum_squares"])
            self.assertAlmostEqual(row["update_ratio/conv1/kernel"],
                                   math.sqrt(update["sum_squares"] / weights["sum_squares"]), delta=1e-12)
            relu = found["activations/relu1", step][0]
            self.assertEqual(relu["num"], 64 * 8 * 8 * 32)
            self.assertEqual(relu["min"], 0)
            zeros = expanded(relu).get(limits().index(1e-12), 0)
            self.assertAlmostEqual(row["zero_fraction/relu1"], zeros / relu["num"], delta=1e-3)

    def test_updates_of_chosen_variables_of_odd_sizes(self):
        chosen = ["hidden/bias", "logits/kernel", "logits/bias"]
        self.train("run", ranks=2, steps=4, config=self.flat_net("tanh"),
                   sets=["summary.gradients={every_steps: 4}", f"summary.updates={{every_steps: 4, variables: [{', '.join(chosen)}]}}"])
        found = summaries(self.folder / "run")
        self.assertEqual({tag for tag, _ in found if tag.startswith("updates/")}, {"updates/" + name for name in chosen})
        for name in chosen:
            gradient, update = found["gradients/" + name, 4][0], found["updates/" + name, 4][0]
            self.assertGreater(update["sum_squares"], 0)
            self.assertAlmostEqual(update["sum_squares"], 0.01 ** 2 * gradient["sum_squares"],
                                   delta=1e-3 * update["sum_squares"], msg=name)

    def test_gradients_are_whole_where_ranks_share_the_update(self):
        parts = [part for part in PARTS if "gradients" in part or "updates" in part]
        found = []
        for shard in ("false", "true"):
            self.train("shard" + shard, ranks=3, steps=EVERY, sets=[*parts, f"optimizer.shard={shard}"])
            found.append({key: value for key, value in summaries(self.folder / ("shard" + shard)).items()
                          if key[0].startswith(("gradient", "update"))})
        self.assertGreater(len(found[0]), 20)
        self.assertEqual(found[0], found[1])

    def test_gradients_are_the_same_whatever_the_gating(self):
        found = []
        for gating in ("graph", "none"):
            self.train(gating, ranks=2, steps=EVERY, sets=[*PARTS[:3], f"optimizer.gating={gating}"])
            found.append(results(self.folder / gating))
        self.assertGreater(len(found[0]), 40)
        self.assertEqual(found[0], found[1])

    def test_rows_without_a_gradient_count_as_zeros(self):
        rows = [[(7 * i + j * j) % 50 for j in range(4)] + [i % 3] for i in range(64)]
        (self.folder / "rows.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
        config = self.folder / "rows.yaml"
        config.write_text("""
shards: 4
data: {format: csv, path: rows.csv, label_column: -1}
model:
  layers: [embedding: {name: words, rows: 700, units: 5}, flatten, dense: {name: logits, units: 3}]
  loss: softmax_cross_entropy
optimizer: {gradient_descent: {learning_rate: 0.1}}
train: {batch_size: 16, epochs: 3}
""")
        found = []
        for below in (0, 0.9):
            run = f"below{below}"
            self.train(run, ranks=2, steps=2, config=config,
                       sets=["summary.gradients={every_steps: 2}", f"comm.sparse_below={below}"])
            found.append(summaries(self.folder / run)["gradients/words/embeddings", 2][0])
        dense, sparse = found
        self.assertEqual(dense["num"], 3500)
        for name in ("num", "min", "max", "limits", "counts"):
            self.assertEqual(sparse[name], dense[name], name)
        self.assertAlmostEqual(sparse["sum_squares"], dense["sum_squares"], delta=1e-12)

    def test_a_resumed_run_has_each_value_once(self):
        once = self.with_everything("once", steps=18)
        self.with_everything("run", steps=12, more=["checkpoint.every_steps=6"])
        checkpoints(self.folder / "run")[-1].unlink()  # as if killed: steps 7 to 12 are recorded, and are computed again
        self.with_everything("run", ranks=1, threads=2, steps=18)
        keys = set(results(once))
        self.assertIn(("weights/conv1/kernel", 12), keys)
        found = summaries(self.folder / "run")
        for key in keys:
            self.assertEqual(len(found.get(key, [])), 1, key)
        self.assertEqual(found["weights/conv1/kernel", 18], summaries(once)["weights/conv1/kernel", 18])

    def test_everything_together_moves_no_bit_also_after_a_kill(self):
        config = self.folder / "everything.yaml"
        config.write_text(NET % SOURCE)
        run = self.folder / "run"
        job = self.start(*self.train_arguments("run", config=config, steps=100000, sets=[*everything(), "checkpoint.every_steps=5"]), ranks=2)
        wait_until(lambda: len(checkpoints(run)) > 2 and records(run)[-1]["step"] > newest_step(run) + 1, 60, "checkpoints, and steps after them")
        job.kill()
        last = newest_step(run) + 12
        self.train("run", ranks=3, threads=2, config=config, steps=last, sets=everything())
        self.train("plain", config=config, steps=last, sets=NOTHING)
        self.assertEqual(self.digest("run"), self.digest("plain"))
        self.assertFalse(list((self.folder / "plain").glob("**/*tfevents*")))
        found = summaries(run)
        self.assertEqual({tag.split("/")[0] for tag, step in found if step == last // 5 * 5} - {"global_step", "samples"},
                         {"loss", "accuracy", "learning_rate", "group1", "weights", "gradients", "gradient_norm", "updates", "update_ratio",
                          "activations", "zero_fraction", "inputs", "attention", "filters", "ranks"})
        self.assertEqual([key for key, values in found.items() if len(values) > 1], [])

    def test_saturation_of_a_sigmoid(self):
        self.train("run", ranks=2, steps=EVERY, config=self.flat_net("sigmoid"),
                   sets=[f"summary.activations={{every_steps: {EVERY}, layers: 'act*'}}"])
        row = records(self.folder / "run")[-1]
        histogram = summaries(self.folder / "run")["activations/act", EVERY][0]
        self.assertGreater(row["saturation/act"], 0.2, "weights of this size saturate it")
        self.assertLess(row["saturation/act"], 1)
        self.assertLessEqual(histogram["max"], 1)

    def test_ranks_share_the_pieces_of_a_large_model(self):
        layers = "[dense: {name: hidden, units: 1100}, relu, dense: {name: logits, units: 3}]"
        config = self.net(layers, shape="[1000]")
        found = []
        for ranks, threads in ((1, 2), (2, 1), (3, 1), (4, 1)):
            run = f"run{ranks}"
            self.train(run, ranks=ranks, threads=threads, steps=2, config=config,
                       sets=["summary.weights={every_steps: 2}", "summary.updates={every_steps: 2}"])
            found.append(results(self.folder / run))
            self.assertEqual(found[-1], found[0], ranks)
        self.assertEqual(found[0]["weights/hidden/kernel", 2][0]["num"], 1100000)

    def test_pictures_of_attention(self):
        layers = "[attention: {name: look, units: 8, heads: 2, causal: true}, flatten, dense: {units: 3}]"
        self.train("run", ranks=2, steps=2, config=self.net(layers, shape="[12, 8]"),
                   sets=["summary.attention={every_steps: 2}"])
        picture = summaries(self.folder / "run")["attention/look", 2][0]
        # Two heads of 12 x 12, each enlarged four times, with borders of 4.
        self.assertEqual((picture["width"], picture["height"], picture["channels"]), (108, 56, 3))
        bright = self.pixels(picture)
        rows = [[bright[4 + 4 * i + 1][4 + 4 * j + 1] for j in range(12)] for i in range(12)]
        self.assertEqual(rows[0][0], 255, "the first position attends to itself alone")
        self.assertTrue(all(rows[i][j] == 0 for i in range(12) for j in range(i + 1, 12)), "causal")
        self.assertTrue(all(abs(sum(row) - 255) < 12 for row in rows), "probabilities")

    def tile(self, bright, place, size):
        """The pixels of a picture of size x size in a contact sheet of 8 in a row."""
        factor = -(-48 // size)
        top, left = (4 + n * (size * factor + 4) for n in divmod(place, 8))
        return [[bright[top + factor * i + 1][left + factor * j + 1] for j in range(size)] for i in range(size)]

    def test_pictures_of_inputs_are_the_samples_that_the_table_names(self):
        self.train("run", ranks=2, steps=1, sets=["summary.inputs={count: 5}"])
        found = summaries(self.folder / "run")
        bright = self.pixels(found["inputs", 1][0])
        text = found["inputs/samples", 1][0].decode(errors="replace")
        rows = re.findall(r"\| (\d+) \| ([^|]*) \| (\d+) \| (\d+) \|", text)
        self.assertEqual([int(row[0]) for row in rows], [1, 2, 3, 4, 5])
        lines = gzip.decompress(DIGITS_DATA.read_bytes()).decode().splitlines()
        for number, where, label, prediction in rows:
            values = list(map(int, lines[int(re.search(r"(\d+)$", where).group(1)) - 1].split(",")))
            self.assertEqual(int(label), values[-1], where)
            self.assertIn(int(prediction), range(10))
            expected = [[int(values[8 * i + j] / 16 * 255 + 0.5) for j in range(8)] for i in range(8)]
            self.assertEqual(self.tile(bright, int(number) - 1, 8), expected, where)

    def sample_rows(self, folder, step=1):
        """The cells of the table of samples."""
        text = summaries(folder)["inputs/samples", step][0].decode(errors="replace")
        lines = text[text.index("| | record"):].splitlines()
        return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]

    def test_inputs_that_are_numbers_words_and_sounds(self):
        values = [[i, i / 8, -i, 0.5, 7, 8, 9, 10, 11, 12, i % 3] for i in range(32)]
        (self.folder / "rows.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in values))
        texts = [f"n{i} *x* a|b_c <i>&\\ {'and so on ' * (i % 2 * 40)}" for i in range(32)]
        (self.folder / "texts.tsv").write_text("".join(f"{i % 3}\t{text}\n" for i, text in enumerate(texts)))
        net = "{layers: [dense: {units: 3}], loss: softmax_cross_entropy}"
        words = "{layers: [embedding: {rows: 60, units: 4}, reduce: {operation: mean, axes: [0]}, dense: {units: 3}], loss: softmax_cross_entropy}"
        sounds = "{format: synthetic, shape: [80, 2], classes: 3, train: {samples: 32}}"
        flat = "{layers: [flatten, dense: {units: 3}], loss: softmax_cross_entropy}"
        for name, data, model, more in (("numbers", "{format: csv, path: rows.csv, label_column: -1}", net, ""),
                                        ("words", "{format: text_tsv, path: texts.tsv, label_column: 0, text_column: 1, tokens: characters, max_length: 300}", words, ""),
                                        ("sounds", sounds, flat, ", sample_rate: 8000")):
            config = self.folder / f"{name}.yaml"
            config.write_text(f"shards: 4\ndata: {data}\nmodel: {model}\noptimizer: {{gradient_descent: {{learning_rate: 0.1}}}}\n"
                              f"train: {{batch_size: 16, epochs: 3}}\nsummary: {{inputs: {{count: 4{more}}}}}\n")
            self.train(name, ranks=2, steps=1, config=config)
        head, _, *rows = self.sample_rows(self.folder / "numbers")
        self.assertEqual(head, ["", "record", "input", "label", "prediction"])
        self.assertEqual(len(rows), 4)
        for _, where, numbers, label, prediction in rows:
            row = values[int(re.search(r"(\d+)$", where).group(1)) - 1]
            self.assertEqual(numbers, ", ".join(f"{value:.4g}" for value in row[:8]) + ", ... (10 numbers)")
            self.assertEqual(int(label), row[-1])
        head, _, *rows = self.sample_rows(self.folder / "words")
        self.assertEqual(head[:3], ["", "record", "input"])
        for _, where, text, label, _ in rows:
            number = int(re.search(r"(\d+)$", where).group(1)) - 1
            # The cell is Markdown, of a text that is escaped as words are in files.
            shown = re.sub(r"\\(.)", r"\1", text).replace("&lt;", "<").replace("&amp;", "&")
            expected = texts[number].strip().replace("\\", "\\\\")
            self.assertEqual(shown, expected if number % 2 == 0 else expected[:200] + " ...")
            self.assertEqual(int(label), number % 3)
        found = summaries(self.folder / "sounds")
        self.assertEqual(sorted(tag for tag, _ in found if "audio" in tag), [f"inputs/audio/{i}" for i in range(4)])
        self.assertEqual(self.sample_rows(self.folder / "sounds")[0], ["", "record", "label", "prediction"])
        self.assert_one_error(self.train("bad", code=2, steps=1, config=self.folder / "words.yaml", sets=["summary.inputs={sample_rate: 8000}"]), 2,
                              r"no input is a sound: words")

    def test_labels_of_samples_that_have_several(self):
        lines = [f"{i},{i % 5},{7 * i % 11}," + ",".join("1" if (i >> label) & 1 else "0" for label in range(6)) for i in range(64)]
        (self.folder / "rows.csv").write_text("\n".join(["x,y,z,red,green,blue,old,new,odd", *lines]) + "\n")
        config = self.folder / "labels.yaml"
        config.write_text("shards: 4\ndata: {format: csv, path: rows.csv, header: true, labels: [red, green, blue, old, new, odd]}\n"
                          "model: {layers: [dense: {units: 6}], loss: sigmoid_cross_entropy}\n"
                          "optimizer: {gradient_descent: {learning_rate: 0.1}}\ntrain: {batch_size: 64, epochs: 3}\nsummary: {inputs: true}\n")
        self.train("run", ranks=2, steps=1, config=config)
        _, _, *rows = self.sample_rows(self.folder / "run")
        names = ["red", "green", "blue", "old", "new", "odd"]
        predicted = set()
        for _, where, numbers, labels, predictions in rows:
            number = int(numbers.split(",")[0])
            has = [name for label, name in enumerate(names) if (number >> label) & 1]
            self.assertEqual(labels, ", ".join(has[:4] + ["..."] * (len(has) > 4)) or "none")
            predicted |= set(predictions.split(", "))
        self.assertTrue(predicted & set(names))
        self.assertLessEqual(predicted, {*names, "none", "..."})

    def test_pictures_of_filters_are_the_kernels_of_the_checkpoint(self):
        self.train("run", ranks=2, steps=2, sets=["summary.filters={every_steps: 2}"])
        bright = self.pixels(summaries(self.folder / "run")["filters/conv1", 2][0])
        script = ("import h5py,sys\n"
                  "with h5py.File(sys.argv[1]) as f: print(f['variables/conv1/kernel'][:, :, 0, :].astype(float).tolist())")
        kernel = self.read_by_h5py(script, checkpoints(self.folder / "run")[-1])
        most = max(abs(value) for row in kernel for cell in row for value in cell)
        self.assertGreater(len(kernel[0][0]), 8, "more than one row of filters")
        for number in range(len(kernel[0][0])):
            for row, shown in zip(kernel, self.tile(bright, number, 3)):
                for cell, pixel in zip(row, shown):
                    self.assertAlmostEqual(pixel, (cell[number] + most) / (2 * most) * 255, delta=0.51, msg=f"filter {number}")

    def test_the_picture_of_a_confusion_matrix_is_the_recorded_matrix(self):
        self.train("run", ranks=2, steps=4, sets=["summary.confusion_matrix=true", "eval.metrics=[confusion_matrix]", "eval.every_steps=4"])
        bright = self.pixels(summaries(self.folder / "run" / "eval")["confusion_matrix/matrix", 4][0])
        matrix = records(self.folder / "run", "eval")[-1]["confusion_matrix/matrix"]
        self.assertNotEqual(matrix, [list(column) for column in zip(*matrix)], "a turned picture is seen")
        for label, row in enumerate(matrix):
            for predicted, count in enumerate(row):
                place = 2 * math.sqrt(count / sum(row))
                red = 255 - place * (255 - 107) if place < 1 else 107 - (place - 1) * (107 - 8)
                self.assertAlmostEqual(bright[48 * label + 20][48 * predicted + 20], red, delta=0.51, msg=f"{label} {predicted}")

    def test_the_picture_of_an_embedding_is_the_plane_of_its_principal_components(self):
        rows = [[(7 * i + j * j) % 40 for j in range(4)] + [i % 3] for i in range(64)]
        (self.folder / "rows.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
        config = self.folder / "rows.yaml"
        config.write_text("""
shards: 4
data: {format: csv, path: rows.csv, label_column: -1}
model:
  layers: [embedding: {name: words, rows: 40, units: 5}, flatten, dense: {name: logits, units: 3}]
  loss: softmax_cross_entropy
optimizer: {gradient_descent: {learning_rate: 0.1}}
train: {batch_size: 16, epochs: 3}
""")
        self.train("run", ranks=2, steps=8, config=config, sets=["summary.projector=true"])
        picture = summaries(self.folder / "run")["principal_components/words/embeddings", 8][0]
        bright = self.pixels(picture)
        script = ("import h5py,sys,numpy as np\n"
                  "with h5py.File(sys.argv[1]) as f: t=f['variables/words/embeddings'][...].astype(float)\n"
                  "t-=t.mean(axis=0); v=np.linalg.eigh(t.T@t)[1][:,:-3:-1]; v*=np.sign(v[abs(v).argmax(axis=0),[0,1]])\n"
                  "p=t@v; p=240+np.rint(p/abs(p).max()*224)*[1,-1]; print(p.astype(int).tolist())")
        places = self.read_by_h5py(script, checkpoints(self.folder / "run")[-1])
        self.assertEqual(bright[places[0][1]][places[0][0]], 8, "the first row is drawn over all others")
        for number, (x, y) in enumerate(places):
            self.assertLess(min(bright[y + dy][x + dx] for dx in (-1, 0, 1) for dy in (-1, 0, 1)), 255, number)
        dark = sum(value < 255 for row in bright for value in row)
        self.assertTrue(21 <= dark <= 21 * 40, "a dot has 21 pixels")

    def pixels(self, picture):
        """The first channel of a PNG of 8-bit RGB, row by row."""
        data, at, packed = picture["png"], 8, b""
        while at < len(data):
            length = int.from_bytes(data[at:at + 4], "big")
            if data[at + 4:at + 8] == b"IDAT":
                packed += data[at + 8:at + 8 + length]
            at += length + 12
        raw, width = zlib.decompress(packed), 3 * picture["width"]
        rows, before = [], bytes(width)
        for y in range(picture["height"]):
            kind, line = raw[y * (width + 1)], bytearray(raw[y * (width + 1) + 1:(y + 1) * (width + 1)])
            for x in range(width):
                left, up, corner = (line[x - 3] if x >= 3 else 0), before[x], (before[x - 3] if x >= 3 else 0)
                guess = left + up - corner
                paeth = min((left, up, corner), key=lambda value: abs(guess - value))
                line[x] = (line[x] + (0, left, up, (left + up) // 2, paeth)[kind]) & 255
            rows.append(list(line[::3]))
            before = bytes(line)
        return rows

    def flat_net(self, activation):
        return self.net(f"[dense: {{name: hidden, units: 8, kernel_initializer: {{normal: {{stddev: 5}}}}}}, "
                        f"{activation}: {{name: act}}, dense: {{name: logits, units: 3}}]")

    def net(self, layers, shape="[16]"):
        path = self.folder / "net.yaml"
        path.write_text(f"""
shards: 4
data: {{format: synthetic, shape: {shape}, classes: 3, train: {{samples: 64}}}}
model:
  layers: {layers}
  loss: softmax_cross_entropy
optimizer: {{gradient_descent: {{learning_rate: 0.01}}}}
train: {{batch_size: 16, epochs: 3}}
""")
        return path

    def test_mistakes_are_named_before_the_first_step(self):
        for sets, pattern in (
                (["summary.weights={variables: ['conv9*', 'bn1']}"], r"summary.weights.*'conv9\*' matches none"),
                (["summary.activations={layers: relu9}"], r"'relu9' matches none of the layers(.|\n)*relu1"),
                (["summary.gradients={norms: false, histograms: false}"], "neither histograms nor norms"),
                (["summary.weights=7"], "neither true nor false nor a map"),
                (["summary.updates={every_step: 3}"], "every_steps"),
                (["summary.confusion_matrix=true"], "Add `confusion_matrix` to eval.metrics"),
                (["summary.histograms=true"], "unknown option|weights")):
            with self.subTest(sets):
                self.assert_one_error(self.train("bad", ranks=2, code=2, steps=1, sets=sets), 2, pattern)
        for part, pattern in (("filters", "no chosen layer is a conv2d"),):
            with self.subTest(part):
                result = self.train("bad", ranks=2, code=2, steps=1, config=self.flat_net("relu"),
                                    sets=[f"summary.{part}=true"])
                self.assert_one_error(result, 2, pattern)


if __name__ == "__main__":
    main()

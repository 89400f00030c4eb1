# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""lockstep report: one HTML file about a run that was killed and resumed, about a run that goes on, and about what is
left of a run; what people named cannot become code; a browser runs the page without an error."""
import base64
import html
import json
import pathlib
import re
import shutil
import struct
import subprocess
import unittest
import zlib

from lockstep_run import LockstepTest, checkpoints, main, records, wait_until

CHROMIUM = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)
MEGABYTE = 1 << 20


def data_of(page):
    """The numbers that the page's script draws."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S).group(1))


def curve_of(page, tag, name="training"):
    chart = next(chart for chart in data_of(page)["charts"] if chart["tag"] == tag)
    return next(curve for curve in chart["curves"] if curve["name"] == name)


def section_of(page, name):
    return re.search(rf'<section id="{name}">(.*?)</section>', page, re.S).group(1)


def png(pixels):
    """A grey PNG file of rows of bytes."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    rows = b"".join(b"\0" + bytes(row) for row in pixels)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", len(pixels[0]), len(pixels), 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class ReportTest(LockstepTest):
    def report(self, run, *more, code=0):
        """The page, and the Result of the command."""
        result = self.lockstep("report", self.folder / run, "--output", self.folder / "page.html", *more, code=code)
        page = (self.folder / "page.html").read_text(encoding="utf-8") if code == 0 else ""
        return page, result

    def dom(self, path):
        """The page as a browser leaves it, and what its console said."""
        if CHROMIUM is None:
            self.skipTest("there is no chromium")
        done = subprocess.run(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0",
             "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={self.folder / 'browser'}", "--window-size=1200,2000",
             "--virtual-time-budget=2000", "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=100, check=True)
        return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]

    def killed_and_resumed(self):
        """Two jobs in "run": the first one was killed, the second one kept other checkpoints and finished."""
        def train():
            run = self.folder / "run"
            sets = ["checkpoint.every_steps=20", "eval.every_epochs=1", "eval.metrics=[confusion_matrix, {f1: {average: per_class}}]"]
            job = self.start(*self.train_arguments("run", steps=1000000, sets=sets), ranks=2)
            wait_until(lambda: len(checkpoints(run)) > 1, 60, "a checkpoint")
            job.kill()
            step = int(checkpoints(run)[-1].stem.split("-")[1])
            more = ["--set", "checkpoint.keep=2", "--steps", step + 40]
            return self.lockstep("train", run, *more, "--quiet", ranks=2)
        self.once("killed", "run", train)
        return self.folder / "run"

    def test_killed_and_resumed_run(self):
        run = self.killed_and_resumed()
        page, result = self.report("run")
        timeline = section_of(page, "timeline")
        self.assertIn(">killed<", timeline)
        self.assertIn(">finished<", timeline)
        self.assertIn("<mark>2</mark>", section_of(page, "configuration"))
        self.assertIn("checkpoint.keep", section_of(page, "configuration"))
        self.assertEqual(section_of(page, "checkpoints").count(">intact<"), 2)
        # Every record is in the curve, to six digits.
        of_train, curve = records(run), curve_of(page, "loss")
        self.assertGreater(len(of_train), 50)
        self.assertEqual(curve["x"], [record["step"] for record in of_train])
        self.assertEqual(curve["y"], [float(f"{record['loss']:.6g}") for record in of_train])
        self.assertEqual(data_of(page)["runs"][0]["epoch"], 24)
        hours = data_of(page)["runs"][0]["hours"]
        self.assertEqual(hours, sorted(hours))
        # The mistakes are those that the accuracy of the last evaluation counts.
        last = json.loads(self.lockstep("evaluate", run).out)
        wrong = round(297 * (1 - last["accuracy"]))
        self.assertIn(f"{wrong} of 297 samples are wrong", section_of(page, "mistakes"))
        pictures = re.findall(r'src="data:image/png;base64,([^"]+)"', section_of(page, "mistakes"))
        self.assertGreaterEqual(len(pictures), min(12, wrong))
        self.assertLessEqual(len(pictures), min(24, wrong))
        self.assertTrue(all(base64.b64decode(picture, validate=True).startswith(b"\x89PNG") for picture in pictures))
        evaluation = section_of(page, "evaluation")
        self.assertIn("confusion_matrix/matrix", evaluation)
        self.assertIn("f1/per_class", evaluation)
        self.assertIn("area under ROC", evaluation)
        network = section_of(page, "network")
        self.assertIn("56,554", network)
        self.assertIn("not measured", network)
        self.assertEqual(network.count('<g class="box'), 8)
        self.assertIn("finished", result.out)
        self.assertIn(f"{of_train[-1]['step']} of {of_train[-1]['step']}", result.out)

    def test_histograms_and_pictures(self):
        parts = [f"summary.{part}={{every_steps: 4}}" for part in ("weights", "gradients", "activations", "inputs", "filters")]
        self.train("run", ranks=2, steps=12, sets=parts)
        page, _ = self.report("run", "--mistakes", 0)
        section = section_of(page, "summaries")
        self.assertEqual(re.findall(r"<summary>(\w+) \((\d+)\)", section), [("activations", "10"), ("gradients", "11"), ("weights", "17")])
        chart = re.search(r"<figcaption>weights/conv1/kernel</figcaption>(.*?)</figure>", section, re.S).group(1)
        self.assertEqual(chart.count('class="band'), 4)
        # Four steps, there and back: the first band is the range.
        band, line = re.search(r'class="band c0" d="([^"]*)"', chart).group(1), re.search(r'class="curve c0" d="([^"]*)"', chart).group(1)
        self.assertEqual((len(re.findall("[ML]", band)), len(re.findall("[ML]", line))), (8, 4))
        shown = re.findall(r"<figcaption>([^<]*), step (\d+)</figcaption>", section)
        self.assertEqual(shown, [("inputs", "1"), ("inputs", "12"), ("filters/conv1", "1"), ("filters/conv1", "12")])
        pictures = re.findall(r'src="data:image/png;base64,([^"]+)"', section)
        self.assertTrue(all(base64.b64decode(picture, validate=True).startswith(b"\x89PNG") for picture in pictures))
        self.assertEqual(len(pictures), 4)
        # The samples' records, labels and predictions of the last step.
        self.assertIn("<h3>inputs/samples, step 12</h3>", section)
        table = section[section.index("inputs/samples, step 12"):]
        self.assertEqual(table.count("digits.csv.gz, line "), 8, "as many as a microshard has")
        self.assertRegex(table, r'<th scope="col">record</th><th scope="col" class="n">label</th><th scope="col" class="n">prediction</th>')
        self.assertNotIn("configuration, step", section)
        # A damaged file is said, and the rest is shown.
        (self.folder / "run" / "events.out.tfevents.1.other").write_bytes(b"<x>" * 100)
        damaged = section_of(self.report("run", "--mistakes", 0)[0], "summaries")
        self.assertIn("events.out.tfevents.1.other", damaged)
        self.assertNotIn("<x>", damaged)
        self.assertIn("weights/conv1/kernel", damaged)
        self.train("without", ranks=2, steps=2)
        nothing = section_of(self.report("without", "--mistakes", 0)[0], "summaries")
        self.assertIn("No histograms were recorded: summary.weights", nothing)
        self.assertIn("No pictures were recorded: summary.inputs", nothing)

    def test_browser_runs_the_page_without_an_error_or_a_request(self):
        self.killed_and_resumed()
        page, _ = self.report("run")
        dom, console = self.dom(self.folder / "page.html")
        self.assertEqual(console, [])
        self.assertIn('data-ready="yes"', dom)
        # The script has drawn the charts anew: its SVG has a clip path each.
        self.assertEqual(len(re.findall(r'<clipPath id="clip\d+"', dom)), len(data_of(page)["charts"]))
        self.assertNotRegex(page, r"(src|href)=\"(?!#|data:)")
        self.assertNotRegex(page, r"@import|url\((?!#)")

    def test_controls_of_the_page_work(self):
        self.killed_and_resumed()
        page, _ = self.report("run", "--mistakes", 0)
        # A visitor in the page: what the charts say after each action goes into the document.
        visitor = """
addEventListener("error", (event) => { document.body.dataset.failed = event.message; });
const found = {}, figure = document.querySelector("figure[data-chart]"), plot = figure.querySelector(".plot");
const ticks = () => [...plot.querySelectorAll("svg > text[text-anchor=middle]")].map((text) => text.textContent);
const levels = () => [...plot.querySelectorAll("svg > text[text-anchor=end]")].map((text) => text.textContent);
const lines = () => plot.querySelectorAll("path.raw").length;
const set = (id, value, event) => {
  const control = document.getElementById(id);
  if (control.type === "checkbox") control.checked = value; else control.value = value;
  control.dispatchEvent(new Event(event, { bubbles: true }));
};
const point = (kind, share) => {
  const box = plot.getBoundingClientRect();
  plot.dispatchEvent(new PointerEvent(kind, { clientX: box.left + share * box.width, clientY: box.top + 60, button: 0, pointerId: 1, bubbles: true }));
};
plot.setPointerCapture = () => {};
found.steps = ticks(); found.smoothed = lines(); found.linear = levels();
set("smooth", 0, "input"); found.plain = lines();
set("axis", "epochs", "change"); found.epochs = ticks();
set("axis", "hours", "change"); found.hours = ticks();
set("axis", "steps", "change");
point("pointermove", 0.6); found.tip = figure.querySelector(".tip").textContent;
point("pointerdown", 0.5); point("pointermove", 0.6); point("pointerup", 0.7); found.zoomed = ticks();
plot.dispatchEvent(new MouseEvent("dblclick", { bubbles: true })); found.reset = ticks();
set("log", true, "change"); found.log = levels();
set("filter", "accur", "input"); found.filtered = [...document.querySelectorAll("figure[data-chart]")].filter((one) => !one.hidden).length;
document.getElementById("theme").click(); found.theme = document.documentElement.dataset.theme;
document.body.dataset.found = JSON.stringify(found);
"""
        path = self.folder / "visited.html"
        path.write_text(page.replace("</body>", f"<script>{visitor}</script></body>"), encoding="utf-8")
        dom, console = self.dom(path)
        self.assertEqual(console, [])
        found = json.loads(html.unescape(re.search(r'data-found="([^"]*)"', dom).group(1)))
        number = {tick: float(tick.replace("k", "e3")) for key in ("steps", "epochs", "zoomed") for tick in found[key]}
        span = {key: number[found[key][-1]] - number[found[key][0]] for key in ("steps", "epochs", "zoomed")}
        self.assertLess(span["zoomed"], 0.5 * span["steps"])
        self.assertLess(span["epochs"], 0.1 * span["steps"])
        self.assertEqual(found["reset"], found["steps"])
        self.assertNotEqual(found["hours"], found["steps"])
        self.assertNotEqual(found["log"], found["linear"])
        self.assertEqual((found["smoothed"], found["plain"]), (1, 0))
        self.assertRegex(found["tip"], r"training.*step \d+")
        self.assertEqual(found["filtered"], 1)
        self.assertEqual(found["theme"], "light")

    def test_names_are_no_code(self):
        evil = "<script>document.title='owned'</script>".replace("/", "|")
        folder = self.folder / "pictures"
        for name, grey in ((evil, 40), ("b&\"'", 200)):
            (folder / name).mkdir(parents=True)
            for i in range(8):
                (folder / name / f"{i}.png").write_bytes(png([[grey + i] * 4] * 4))
        config = self.folder / "c.yaml"
        config.write_text(f"""
seed: 1
shards: 2
data: {{format: images, path: {folder}, train: {{}}, eval: {{}}}}
model: {{layers: [flatten, dense: {{units: 2}}], loss: softmax_cross_entropy}}
optimizer: {{gradient_descent: {{learning_rate: 1.0e-9}}}}
train: {{batch_size: 8, steps: 2}}
eval: {{metrics: [confusion_matrix]}}
""", encoding="utf-8")
        run = "<b>run & 'co'"
        self.lockstep("train", config, "--run-dir", self.folder / run, "--quiet")
        page, _ = self.report(run)
        self.assertIn(html.escape(evil, quote=False).replace("'", "&#39;"), page)
        self.assertIn("&lt;b&gt;run &amp; &#39;co&#39;", page)
        self.assertNotIn(evil, page)
        self.assertNotIn("<b>run", page)
        dom, console = self.dom(self.folder / "page.html")
        self.assertEqual(console, [])
        self.assertIn("<title>&lt;b&gt;run &amp; 'co'</title>", dom)

    def test_nulls_are_gaps_and_an_incomplete_line_is_passed_over(self):
        self.killed_and_resumed()
        path = self.folder / "run" / "metrics.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines()
        lines[5] = re.sub(r'"loss":[^,}]+', '"loss":null', lines[5])
        path.write_text("\n".join(lines) + '\n{"step":99999,"epoch":1,"split":"tr', encoding="utf-8")
        with (self.folder / "run" / "lockstep.log").open("a", encoding="utf-8") as log:
            log.write("2026-01-31T23:59:59.123+00:00 warning <b>look here\nand here\n2026-01-31T23:59:59.124+00:00 info not here\n")
        page, _ = self.report("run", "--mistakes", 0)
        self.assertIn("warning &lt;b&gt;look here\nand here\n</pre>", section_of(page, "log"))
        curve = curve_of(page, "loss")
        self.assertIsNone(curve["y"][5])
        self.assertIsNotNone(curve["y"][4])
        self.assertNotIn(99999, curve["x"])
        self.assertIn("1 line was passed over", page)
        self.assertIn("1 recorded value is no finite number", page)
        self.assertIn("Not computed: --mistakes 0.", section_of(page, "mistakes"))

    def test_predictions_are_those_of_the_evaluation_part_alone(self):
        """Of a file that holdout cuts: the samples, mistakes and confusion matrix that an evaluation counts."""
        rows = [f"{i * 37 % 101},{i * 53 % 89},{i * 7 % 3}" for i in range(200)]
        (self.folder / "rows.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
        (self.folder / "net.yaml").write_text(
            "data: {format: csv, path: rows.csv, normalize: channels, holdout: 0.25, eval: {}}\n"
            "model: {layers: [dense: {units: 3}], loss: softmax_cross_entropy}\n"
            "optimizer: {adam: {learning_rate: 0.01}}\n"
            "train: {batch_size: 20, epochs: 3}\n", encoding="utf-8")
        self.lockstep("train", "net.yaml", "--run-dir", "run", cwd=self.folder)
        evaluation = json.loads(self.lockstep("evaluate", "run", cwd=self.folder).out)
        self.assertEqual(evaluation["samples"], 50)
        page, _ = self.report("run", "--mistakes", 50)
        wrong = round(50 * (1 - evaluation["accuracy"]))
        self.assertIn(f"{wrong} of 50 samples are wrong", page)
        # The rows that are shown are rows of the evaluation part.
        held_out = json.loads(self.lockstep("data", "net.yaml", "--json", cwd=self.folder).out)["sets"][1]
        self.assertEqual(held_out["chosen"], 50)
        shown = {int(line) for line in re.findall(r"rows\.csv, line (\d+)", section_of(page, "mistakes"))}
        self.assertEqual(len(shown), wrong)

    def test_regression_has_parity_plots_in_the_units_of_the_data(self):
        """Normalised targets: the plots, R2 and RMSE are in dollars and grams, as the metrics of the last evaluation."""
        rows = [f"{i * 37 % 101 / 101:.4f},{i * 53 % 89 / 89:.4f}" for i in range(200)]
        rows = [f"{row},{20000 + 3000 * float(row.split(',')[0]):.2f},{0.001 * float(row.split(',')[1]):.6f}" for row in rows]
        (self.folder / "rows.csv").write_text("a,b,price,weight of <it>\n" + "\n".join(rows) + "\n", encoding="utf-8")
        (self.folder / "net.yaml").write_text(
            "data:\n  format: csv\n  header: true\n  path: rows.csv\n  columns: [a, b]\n  holdout: 0.25\n  eval: {}\n"
            "  targets: {it: {columns: [price, 'weight of <it>'], normalize: channels}}\n"
            "model: {layers: [dense: {units: 2}], loss: mean_squared_error}\n"
            "optimizer: {adam: {learning_rate: 0.05}}\n"
            "train: {batch_size: 25, epochs: 3}\n"
            "eval: {metrics: [r2, {root_mean_squared_error: {name: points_lost}}, {mean: {name: error_mean}}]}\n", encoding="utf-8")
        self.lockstep("train", "net.yaml", "--run-dir", "run", cwd=self.folder)
        page, result = self.report("run")
        evaluation = section_of(page, "evaluation")
        last = records(self.folder / "run", "eval")[-1]
        for column, name in (("price", "price"), ("weight of <it>", "weight of &lt;it&gt;")):
            r2, error = re.search(rf"<figcaption>{name}</figcaption><p class=\"legend\"><span>R² (\S+)</span><span>RMSE (\S+)</span><span>50 values</span>",
                                  evaluation).groups()
            self.assertAlmostEqual(float(r2), last[f"r2/{column}"], places=4)
            self.assertAlmostEqual(float(error) / last[f"points_lost/{column}"], 1, places=4)
        plot = re.search(r'aria-label="predicted over true price">(.*?)</svg>', evaluation, re.S).group(1)
        self.assertIn(">20k<", plot)
        self.assertEqual(len(re.findall("M", re.search(r'class="points c0" d="([^"]*)"', plot).group(1))), 50)
        # What is better is said by the metric, not by the name that somebody gave it.
        of = {name: [record[name] for record in records(self.folder / "run", "eval")] for name in ("points_lost", "r2")}
        self.assertRegex(result.out, rf"points_lost +best {min(of['points_lost']):.6g} at")
        self.assertRegex(result.out, rf"r2 +best {max(of['r2']):.6g} at")
        self.assertRegex(result.out, r"error_mean +last \S+ at step 18\n")

    def test_run_that_goes_on(self):
        job = self.start(*self.train_arguments("run", steps=1000000))
        wait_until(lambda: len(records(self.folder / "run")) > 20, 60, "records")
        page, result = self.report("run")
        job.kill()
        self.assertRegex(result.out, r"state +(starting|running): ")
        self.assertIn("The run has no checkpoint.", section_of(page, "checkpoints"))
        self.assertIn("The run has no checkpoint.", section_of(page, "mistakes"))
        self.assertGreater(len(curve_of(page, "loss")["x"]), 20)

    def test_data_elsewhere_and_missing_parts_are_said(self):
        run = self.killed_and_resumed()
        config = (run / "config.yaml").read_text(encoding="utf-8")
        (run / "config.yaml").write_text(config.replace("digits.csv.gz", "moved.csv.gz"), encoding="utf-8")
        page, _ = self.report("run")
        self.assertIn("the data of the run cannot be opened here: ", section_of(page, "mistakes"))
        self.assertIn("moved.csv.gz", section_of(page, "mistakes"))
        self.assertIn("56,874", section_of(page, "network"))  # from the checkpoint, with running statistics
        # Blocks are expanded, too.
        blocks = "model:\n  layers:\n    - mlp: {classes: 10}\n  loss: softmax_cross_entropy\n"
        moved = (run / "config.yaml").read_text(encoding="utf-8")
        (run / "config.yaml").write_text(re.sub(r"^model:\n(?:  .*\n)+", blocks, moved, flags=re.M), encoding="utf-8")
        network = section_of(self.report("run")[0], "network")
        self.assertIn(">mlp/logits</text>", network)
        self.assertIn(">loss</text>", network)
        for name in ("config.yaml", "metrics.jsonl", "lockstep.log"):
            (run / name).unlink()
        shutil.rmtree(run / "checkpoints")
        page, _ = self.report("run")
        self.assertIn("no config.yaml", section_of(page, "configuration"))
        self.assertIn("There is no metrics.jsonl", section_of(page, "curves"))
        self.assertIn("no lockstep.log", section_of(page, "log"))
        self.assertIn("No network", section_of(page, "network"))

    def test_hundred_thousand_records_are_thinned_with_their_extremes(self):
        self.killed_and_resumed()
        path = self.folder / "run" / "metrics.jsonl"
        spike = 77777
        with path.open("w", encoding="utf-8") as file:
            for step in range(1, 100001):
                loss = 123.5 if step == spike else 1 / step + 1e-3 * (step * 7919 % 1000)
                values = {f"layer{i}/norm": loss * i + 0.123456789 for i in range(1, 9)}
                record = {"step": step, "epoch": (step - 1) // 24 + 1, "split": "train", "loss": loss, "accuracy": 1 - loss / 200,
                          "learning_rate": 0.1, "samples_per_second": 1000.0 + step % 17, **values}
                file.write(json.dumps(record) + "\n")
        page, result = self.report("run", "--mistakes", 0)
        self.assertLess(len(page.encode()), 5 * MEGABYTE)
        self.assertIn("Thinned: ", page)
        self.assertIn("1,200,000 recorded values", page)
        curve = curve_of(page, "loss")
        self.assertEqual(curve["values"], 100000)
        self.assertEqual(sum(curve["n"]), 100000)
        self.assertEqual(max(curve["high"]), 123.5)
        self.assertLess(abs(curve["x"][curve["high"].index(123.5)] - spike), 100000 / len(curve["x"]))
        self.assertTrue(all(low <= mean <= high for low, mean, high in zip(curve["low"], curve["y"], curve["high"])))
        print(f"{result.seconds:.1f} s, {len(page) / 1e6:.2f} MB")

    def test_errors_and_outputs(self):
        self.assert_one_error(self.report("nowhere", code=2)[1], 2, "there is no such folder")
        (self.folder / "empty").mkdir()
        self.assert_one_error(self.report("empty", code=2)[1], 2, "there is no status of a run")
        (self.folder / "file").write_text("x", encoding="utf-8")
        self.assert_one_error(self.report("file", code=2)[1], 2, "this is no folder")
        run = self.killed_and_resumed()
        before = (run / "metrics.jsonl").read_bytes()
        refused = self.lockstep("report", run, "--output", run / "metrics.jsonl", code=2)
        self.assertIn("metrics.jsonl", refused.err)
        self.assertEqual((run / "metrics.jsonl").read_bytes(), before)
        piped = self.lockstep("report", run, "--output", "-", "--mistakes", 0)
        self.assertTrue(piped.out.startswith("<!DOCTYPE html>"))
        self.lockstep("report", run, "--mistakes", 0)
        self.assertTrue((run / "report.html").read_text(encoding="utf-8").endswith("</html>\n"))


if __name__ == "__main__":
    main()

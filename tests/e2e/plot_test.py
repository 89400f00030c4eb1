# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""`lockstep plot`: curves of runs as text, in pipes and in real terminals (tmux), also while a run goes on."""
import json
import re
import unittest

from lockstep_run import LockstepTest, main, wait_until
from made_run import MadeRun
from tmux import Terminal, has_tmux

BRAILLE = re.compile("[\u2801-\u28ff]")
COLOUR = re.compile("\033\\[[0-9;]*3[0-9]")


def rows_of(chart):
    """The rows of the curves, without their axis."""
    rows = [re.split(r"[|+]", line, maxsplit=1)[1] for line in chart.splitlines() if re.match(r" *[-0-9.e]* [|+]", line)]
    return [row for row in rows if not row.startswith("---")]


class PlotTest(LockstepTest):
    def plot(self, *arguments, code=0, **variables):
        result = self.start("plot", *arguments, variables={"LC_ALL": "C", "COLUMNS": "80", **variables}).wait()
        self.assertEqual(result.code, code, str(result))
        return result

    def made(self, name="run", **options):
        return MadeRun(self.folder / name, **options)


class Charts(PlotTest):
    def test_a_real_run_is_drawn_with_training_and_evaluations_together(self):
        self.train("run", ranks=2, steps=48, sets=["eval.every_steps=8"])
        text = self.plot(self.folder / "run").out
        self.assertTrue(text.isascii())
        self.assertLessEqual(max(map(len, text.splitlines())), 80)
        last = json.loads((self.folder / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
        self.assertEqual(last["split"], "eval")
        self.assertIn(f"+ eval/loss {last['loss']:.6g}", text)
        for mark in "*+":
            self.assertIn(mark, "".join(rows_of(text)))
        self.assertIn("\naccuracy\n", text)
        unicode = self.plot(self.folder / "run", "--tag", "loss", LC_ALL="C.UTF-8").out
        self.assertRegex(unicode, BRAILLE)
        self.assertLessEqual(max(map(len, unicode.splitlines())), 80)
        self.assertNotIn("\033", unicode)
        exported = [json.loads(line) for line in self.lockstep("events", self.folder / "run", "--export", "jsonl").out.splitlines()]
        first = min(row["wall_time"] for row in exported)  # of all that is recorded, texts too
        last = max(row["wall_time"] for row in exported if row["tag"].endswith("loss"))
        spans = {"epoch": 2, "hours": (last - first) / 3600}
        for axis, span in spans.items():
            ticks = re.search(rf"\n([ 0-9.e-]+)\n +{axis}\n", self.plot(self.folder / "run", "--x", axis, "--tag", "loss").out)[1].split()
            self.assertTrue(0.4 * span < float(ticks[-1]) <= 1.5 * span, f"{ticks}, {span} {axis}")

    def test_a_falling_curve_falls_and_a_gap_stays_empty(self):
        run = self.made()
        run.append(*((step, {"loss": 1 - step / 100 if not 40 <= step < 60 else float("nan")}) for step in range(101)))
        # json writes NaN, which is no JSON; the log writes null.
        file = run.path / "metrics.jsonl"
        file.write_text(file.read_text(encoding="utf-8").replace("NaN", "null"), encoding="utf-8")
        rows = rows_of(self.plot(run.path, "--tag", "loss", "--width", "60", "--height", "20").out)
        self.assertEqual(len(rows), 20)
        width = max(map(len, rows))
        tops = [next((i for i, row in enumerate(rows) if row[column:column + 1] == "*"), None) for column in range(width)]
        gap = [column for column, top in enumerate(tops) if top is None]
        self.assertGreater(len(gap), width * 0.15)
        self.assertTrue(width * 0.35 < gap[0] and gap[-1] < width * 0.65, gap)
        drawn = [top for top in tops if top is not None]
        self.assertEqual(drawn, sorted(drawn))
        self.assertEqual((drawn[0], drawn[-1]), (0, 19))

    def test_an_extreme_of_one_step_among_many_is_drawn(self):
        run = self.made(total_steps=20000)
        run.append(*((step, {"loss": 9.0 if step == 7001 else 1.0}) for step in range(1, 20001)))
        text = self.plot(run.path, "--tag", "loss").out
        self.assertRegex(text, r"\n +0 +5000 +10000 +15000 +20000\n", "the axis")
        rows = rows_of(text)
        self.assertEqual([row.count("*") for row in rows[1:8]], [1] * 7, rows)  # the axis ends at 10

    def test_runs_share_charts_and_tags_have_patterns(self):
        for name, value in (("one", 1.0), ("two", 0.5)):
            run = self.made(name)
            run.append(*((step, {"loss": value, "head/loss": 2.0, "lr": 0.1}) for step in range(0, 50, 5)))
            run.append((50, {"split": "eval", "loss": value / 2}))
        text = self.plot(self.folder / "one", self.folder / "two", "--tag", "loss,lr").out
        self.assertIn("* one 1  + two 0.5", text)
        self.assertIn("* one 0.1  + two 0.1", text)
        rows = rows_of(text)
        self.assertIn("*" * 40, rows[0])
        text = self.plot(self.folder / "one", "--tag", "*loss").out
        self.assertIn("* head/loss 2  + loss 1  o eval/loss 0.5", text)

    def test_logarithmic_and_smoothed(self):
        run = self.made()
        run.append(*((step, {"loss": 10.0 ** -(step / 10)}) for step in range(41)))
        run.append((41, {"loss": 0.0}))
        text = self.plot(run.path, "--tag", "loss", "--log", "--height", "13").out
        for tick in ("1 +", "0.01 +", "0.0001 +"):
            self.assertIn(tick, text)
        self.assertIn("1 values are not positive", text)
        run = self.made("noise")
        run.append(*((step, {"loss": float(step % 2)}) for step in range(400)))
        text = self.plot(run.path, "--tag", "loss", "--smooth", "0.95", "--height", "11").out
        self.assertIn("loss: 1 at step 399", text, "the last value is the recorded one")
        rows = rows_of(text)
        self.assertLessEqual([row[40:].count("*") > 0 for row in rows].count(True), 2, rows)

    def test_wrong_directories_and_tags(self):
        run = self.made()
        run.append((1, {"loss": 1.0, "head/accuracy": 0.5}))
        self.assert_one_error(self.plot(run.path, "--tag", "loss,acc", code=2), 2, r"no tag matches 'acc'\n  There are: head/accuracy, loss\.")
        self.assert_one_error(self.plot(run.path, "--tag", ".*loss", code=2), 2, r"no tag matches '\.\*loss'")
        self.assert_one_error(self.plot(self.folder / "none", code=2), 2, "is no run directory")
        (self.folder / "empty").mkdir()
        self.assert_one_error(self.plot(self.folder / "empty", code=2), 2, "there are no records yet")
        self.assert_one_error(self.plot(run.path, "--x", "days", code=2), 2, "one of step, epoch, hours")
        self.assert_one_error(self.plot(run.path, "--x", "hours", code=3), 3, "no event files")
        (run.path / "status.json").unlink()
        self.assertIn("loss", self.plot(run.path).out)  # a copied file is enough
        self.assert_one_error(self.plot(run.path, "--follow", code=2), 2, "there is no status of a run")

    def test_following_without_a_terminal_prints_each_record_once(self):
        run = self.made()
        run.append((1, {"loss": 0.5, "lr": 0.1}))
        job = self.start("plot", run.path, "--follow", "--tag", "*loss")
        job_lines = lambda: (job.out.seek(0), job.out.read().decode().splitlines())[1]
        wait_until(lambda: len(job_lines()) == 1, 60, "the first record")
        run.append((2, {"loss": 0.25}), (2, {"split": "eval", "loss": 0.75}), (3, {"lr": 0.1}))
        with open(run.path / "metrics.jsonl", "a", encoding="utf-8") as file:
            file.write('{"step":4,"epoch":1,"split":"train","lo')
        wait_until(lambda: len(job_lines()) == 3, 60, "the others")
        with open(run.path / "metrics.jsonl", "a", encoding="utf-8") as file:
            file.write('ss":0.125}\n')
        run.end()
        self.assertEqual(job.wait().out.splitlines(), ["run  step 1  epoch 1  loss 0.5", "run  step 2  epoch 1  loss 0.25",
                                                       "run  step 2  epoch 1  eval/loss 0.75", "run  step 4  epoch 1  loss 0.125"])


@unittest.skipUnless(has_tmux(), "no tmux (scripts/install_dependencies.sh --test)")
class InATerminal(PlotTest):
    def setUp(self):
        super().setUp()
        self.run_dir = self.made()
        self.run_dir.append(*((step, {"loss": 1 / step, "accuracy": 1 - 1 / step}) for step in range(1, 31)))

    def terminal(self, arguments, **options):
        from lockstep_run import PROGRAM
        terminal = Terminal(self.folder, f"{PROGRAM} plot {self.run_dir.path} {arguments}", **options)
        self.addCleanup(terminal.close)
        return terminal

    def test_colours_and_a_narrow_terminal(self):
        terminal = self.terminal("--tag '*loss,*c*'", columns=40, lines=44)
        screen = terminal.wait_for("code=0")
        self.assertRegex(screen, BRAILLE)
        self.assertLessEqual(max(map(len, screen.splitlines())), 40)

    def test_following_redraws_until_the_run_ends_and_gives_the_terminal_back(self):
        terminal = self.terminal("--follow --tag loss,accuracy")
        screen = terminal.wait_for("accuracy: 0.966667 at step 30")
        self.assertIn("run running, step 30/100", screen.splitlines()[0])
        self.assertIn("loss: 0.0333333 at step 30", screen)
        self.run_dir.append((31, {"loss": 2.0, "accuracy": 0.0}))
        terminal.wait_for("loss: 2 at step 31")
        terminal.resize(50, 18)
        screen = terminal.wait_for("accuracy")
        wait_until(lambda: max(map(len, terminal.screen().splitlines())) <= 50, 60, "the narrow picture")
        terminal.resize(80, 40)
        self.run_dir.end()
        screen = terminal.wait_for("code=0")
        self.assertIn("loss: 2 at step 31", screen)  # the last picture stays
        terminal.wait_for("\nicanon")

    def test_q_and_interrupts_end_it(self):
        for key in ("q", "C-c"):
            terminal = self.terminal("--follow")
            terminal.wait_for("step 30/100")
            terminal.keys(key)
            screen = terminal.wait_for("\nicanon")
            self.assertIn("code=0", screen)
            terminal.close()

    def test_without_colours_and_without_unicode(self):
        self.run_dir.append((30, {"split": "eval", "loss": 0.5}))
        coloured = self.terminal("--tag '*loss'")
        coloured.wait_for("code=0")
        self.assertRegex(coloured.screen(colours=True), COLOUR)
        coloured.close()
        for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"LC_ALL": "C", "NO_COLOR": "1"}):
            terminal = self.terminal("--tag '*loss'", variables=variables)
            screen = terminal.wait_for("code=0")
            self.assertIn("* loss 0.0333333  + eval/loss 0.5", screen)
            self.assertNotRegex(screen, BRAILLE)  # two curves of dots would look alike
            self.assertNotRegex(terminal.screen(colours=True), COLOUR)
            self.assertEqual("│" in screen, "LC_ALL" not in variables)
            terminal.close()


if __name__ == "__main__":
    main()

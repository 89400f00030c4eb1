# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""`lockstep top`: a job as its files show it, in pipes and in real terminals (tmux); and summary.ranks, which records the same."""
import json
import os
import re
import signal
import unittest

from lockstep_run import PROGRAM, LockstepTest, main, wait_until
from made_run import MadeRun
from tmux import Terminal, has_tmux

MILLI = 1e-3
COLOUR = re.compile("\033\\[[0-9;]*3[0-9]")


def rank(host="n01", step=10.0, work=8.0, communication=2.0, reading=1.0, memory=1.5e9):
    return (host, step * MILLI, work * MILLI, communication * MILLI, reading * MILLI, memory)


class TopTest(LockstepTest):
    def top(self, *arguments, code=0, **variables):
        result = self.start("top", *arguments, variables={"LC_ALL": "C", "COLUMNS": "80", **variables}).wait()
        self.assertEqual(result.code, code, str(result))
        return result

    def made(self, name="run", **options):
        run = MadeRun(self.folder / name, **options)
        run.append(*((step, {"loss": 1 / step, "samples_per_second": 100.0 * step}) for step in range(1, 41)))
        run.append((40, {"split": "eval", "accuracy": 0.75, "loss": 0.5}))
        run.status(step=40, phase="step 41")
        return run


class Once(TopTest):
    def test_a_real_run_of_two_ranks(self):
        self.train("run", ranks=2, steps=30, sets=["eval.every_steps=10"])
        written = json.loads((self.folder / "run" / "ranks.json").read_text(encoding="utf-8"))
        self.assertEqual([one["rank"] for one in written["ranks"]], [0, 1])
        for one in written["ranks"]:
            self.assertGreater(one["work_seconds"], 0)
            self.assertGreater(one["communication_seconds"], 0)
            self.assertGreaterEqual(one["step_seconds"], one["work_seconds"])
            self.assertGreaterEqual(one["step_seconds"], one["communication_seconds"] + one["input_seconds"])
            self.assertGreater(one["peak_memory_bytes"], 1e6)
        text = self.top(self.folder / "run").out
        self.assertIn("finished", text)
        self.assertRegex(text, r"\nstep   30/30 \[#+\] 100%")
        self.assertRegex(text, r"\neval   loss [\d.]+  accuracy [\d.]+  at step 30\n")
        for number in (0, 1):
            self.assertRegex(text, rf"\n   {number} \S+ +[\d.]+ ms [#=. ]+ \d+ MB")
        self.assertLessEqual(max(map(len, text.splitlines())), 80)

    def test_times_of_an_earlier_job_are_not_shown(self):
        run = self.made()
        run.ranks([rank(), rank()])
        self.assertIn("10.00 ms", self.top(run.path).out)
        (run.path / "jobs.jsonl").write_text(json.dumps({**run.record, "state": "requeue", "reason": "SIGTERM", "exit_code": 75,
                                                         "end": run.begin + 50}) + "\n", encoding="utf-8")
        run.status(begin=run.begin + 60, begin_step=40)
        text = self.top(run.path).out
        self.assertIn("no times of ranks yet", text)
        self.assertIn("job 1  requeue after step 40, 2 ranks on elsewhere, 50s: SIGTERM", text)
        self.assertIn(", job 2, ", text)

    def test_the_slow_rank_is_marked_and_the_parts_of_a_step_are_drawn(self):
        run = self.made()
        run.ranks([rank(communication=5.0), rank(work=12.0, communication=0.0, reading=5.0), rank(communication=5.0)])
        rows = {int(row[1]): row for row in re.finditer(r"\n +(\d) n01 +10.00 ms ([#=.]+) +1.50 GB( slow)?", self.top(run.path).out)}
        self.assertEqual([bool(rows[i][3]) for i in range(3)], [False, True, False])
        for i, parts in ((0, (0.4, 0.5, 0.1)), (1, (0.5, 0.0, 0.5))):
            bar = rows[i][2]
            for mark, share in zip("#=.", parts):
                self.assertAlmostEqual(bar.count(mark) / len(bar), share, delta=0.03)
        run.ranks([rank(), rank(work=14.0)], factor=0)
        self.assertNotIn("slow", self.top(run.path).out)

    def test_wrong_directories(self):
        self.assert_one_error(self.top(self.folder / "none", code=2), 2, "is no run directory")
        (self.folder / "empty").mkdir()
        self.assert_one_error(self.top(self.folder / "empty", code=2), 2, "there is no status of a run")
        self.assert_one_error(self.top(self.folder / "empty", "--interval", "0", code=2), 2, "interval")

    def test_any_width(self):
        run = self.made()
        run.ranks([rank(host="a-host-with-a-very-long-name") for _ in range(3)])
        for width in (20, 30, 40, 50, 60, 80, 200):
            for locale in ("C", "C.UTF-8"):
                lines = self.top(run.path, COLUMNS=str(width), LC_ALL=locale).out.splitlines()
                self.assertLessEqual(max(map(len, lines)), width)
                self.assertEqual("".join(lines).isascii(), locale == "C")
                self.assertEqual(sum(bool(re.match(r" +\d ", line)) for line in lines), 3, lines)


class Evaluations(TopTest):
    def test_numbers_are_whole_at_any_width(self):
        run = self.made()
        run.append((40, {"split": "eval", "accuracy": 0.75, "loss": 0.5, "auc_pr": 0.998186, "auc_roc": 0.999708, "f1": 0.980342}))
        shown = []
        for width in range(30, 100, 7):
            line = next(line for line in self.top(run.path, COLUMNS=str(width)).out.splitlines() if line.startswith("eval"))
            self.assertRegex(line, r"^eval   (loss 0\.5  (accuracy 0\.75  (auc_pr 0\.998186  (auc_roc 0\.999708  (f1 0\.980342  )?)?)?)?)?at step 40$")
            shown.append(len(line))
        self.assertEqual(shown, sorted(shown))
        self.assertIn("f1", line)


class MemoryOfGpus(TopTest):
    def test_a_column_where_ranks_have_gpus(self):
        run = self.made()
        run.ranks([(*rank(), 6.25e9), (*rank(work=14.0), 5e8)])
        lines = self.top(run.path).out.splitlines()
        self.assertTrue(next(line for line in lines if line.startswith("rank ")).rstrip().endswith("memory   on GPU"), lines)
        self.assertRegex(next(line for line in lines if line.startswith("   0 ")), r" 1\.50 GB +6\.25 GB *$")
        self.assertRegex(next(line for line in lines if line.startswith("   1 ")), r" 1\.50 GB +500 MB +slow$")
        self.assertLessEqual(max(map(len, lines)), 80)
        narrow = self.top(run.path, COLUMNS="50").out
        self.assertNotIn("on GPU", narrow)
        self.assertLessEqual(max(map(len, narrow.splitlines())), 50)
        run.ranks([rank(), rank()])
        self.assertNotIn("on GPU", self.top(run.path).out)


class Summaries(TopTest):
    def test_recording_ranks_moves_no_bit(self):
        self.train("plain", ranks=2, steps=12)
        self.train("recorded", ranks=2, steps=12, sets=["summary.ranks=true", "summary.every_steps=4"])
        self.assertEqual(self.digest("plain"), self.digest("recorded"))
        lines = (self.folder / "recorded" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        names = ("step_seconds_max", "work_seconds_max", "work_seconds_min", "work_spread", "communication_share", "input_share", "memory_gb")
        trained = [record for record in map(json.loads, lines) if record["split"] == "train"]
        self.assertEqual([record["step"] for record in trained], [4, 8, 12])
        for record in trained:
            values = [record[f"ranks/{name}"] for name in names]
            longest, most, least, spread, communication, reading, memory = values
            self.assertTrue(longest >= most >= least > 0, values)
            self.assertAlmostEqual(spread, (most - least) / most)
            self.assertTrue(0 < communication < 1 and 0 <= reading < 1 and memory > 1e-3, values)
        events = self.lockstep("events", self.folder / "recorded", "--tag", "ranks/work_spread").out.splitlines()
        self.assertEqual([json.loads(line)["step"] for line in events], [4, 8, 12])
        self.train("seldom", ranks=2, steps=12, sets=["summary.ranks={every_steps: 6, each_rank: true}", "summary.every_steps=4"])
        rows = map(json.loads, (self.folder / "seldom" / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
        rows = [row for row in rows if "ranks/work_spread" in row]
        self.assertEqual([row["step"] for row in rows], [6, 12])
        for row in rows:
            for name in ("step", "work"):
                self.assertEqual(max(row[f"ranks/{name}_seconds/{rank}"] for rank in (0, 1)), row[f"ranks/{name}_seconds_max"])
            waited = sum(row[f"ranks/communication_seconds/{rank}"] for rank in (0, 1)) / sum(row[f"ranks/step_seconds/{rank}"] for rank in (0, 1))
            self.assertAlmostEqual(waited, row["ranks/communication_share"])
            self.assertIn("ranks/input_seconds/1", row)
            self.assertNotIn("ranks/step_seconds/2", row)
        self.assertNotIn("ranks/", (self.folder / "plain" / "metrics.jsonl").read_text(encoding="utf-8"))


@unittest.skipUnless(has_tmux(), "no tmux (scripts/install_dependencies.sh --test)")
class InATerminal(TopTest):
    def terminal(self, run_dir, arguments="--interval 0.2", **options):
        terminal = Terminal(self.folder, f"{PROGRAM} top {run_dir} {arguments}", **options)
        self.addCleanup(terminal.close)
        return terminal

    def test_it_follows_a_real_run_to_its_end(self):
        job = self.start(*self.train_arguments("run", steps=100000), ranks=2)
        wait_until(lambda: (self.folder / "run" / "status.json").exists(), 60, "the run")
        terminal = self.terminal(self.folder / "run")
        wait_until(lambda: re.search(r"\nstep   [1-9]\d*/100000 ", terminal.screen()), 60, "steps")
        (self.folder / "run" / "STOP").touch()
        self.assertEqual(job.wait().code, 130)
        screen = terminal.wait_for("\nicanon")
        self.assertIn("stopped", screen)
        self.assertIn("code=0", screen)
        self.assertRegex(screen, r"\n   1 \S+ +[\d.]+ m?s ")

    def test_more_ranks_than_lines(self):
        run = self.made(ranks=100)
        run.ranks([rank(work=8.0 + (0.5 if i == 77 else 0.001 * i)) for i in range(100)])
        terminal = self.terminal(run.path)
        screen = terminal.wait_for("faster ranks")
        lines = screen.splitlines()
        self.assertEqual(len(lines), 24)
        head = next(i for i, line in enumerate(lines) if line.startswith("rank "))
        self.assertTrue(lines[head + 1].startswith("  77 "), screen)
        self.assertTrue(lines[head + 2].startswith("  99 "), screen)
        shown = 24 - head - 2
        self.assertIn(f"and {100 - shown} faster ranks: work 8.00 ms to ", lines[-1])
        terminal.resize(60, 12)
        wait_until(lambda: re.search(r"and 9\d faster", terminal.screen()), 60, "fewer lines")
        terminal.resize(80, 120)
        wait_until(lambda: "faster" not in terminal.screen() and "\n   0 " in terminal.screen(), 60, "all ranks")

    def test_narrow_without_colours_without_unicode(self):
        run = self.made()
        run.ranks([rank(), rank(work=14.0)])
        coloured = self.terminal(run.path)
        self.assertIn("█", coloured.wait_for("slow"))
        self.assertRegex(coloured.screen(colours=True), COLOUR)
        coloured.close()
        for options in ({"columns": 40}, {"variables": {"NO_COLOR": "1"}}, {"variables": {"LC_ALL": "C"}}):
            terminal = self.terminal(run.path, **options)
            screen = terminal.wait_for("slow")
            self.assertEqual(len(re.findall(r"\n   [01] ", screen)), 2, screen)
            self.assertLessEqual(max(map(len, screen.splitlines())), options.get("columns", 80))
            variables = options.get("variables", {})
            self.assertEqual(bool(COLOUR.search(terminal.screen(colours=True))), "NO_COLOR" not in variables)
            self.assertEqual(screen.isascii(), "LC_ALL" in variables)
            terminal.close()

    def test_q_and_interrupts_end_it_and_give_the_terminal_back(self):
        run = self.made()
        run.ranks([rank(), rank()])
        for key in ("q", "C-c"):
            terminal = self.terminal(run.path)
            terminal.wait_for("10.00 ms")
            terminal.keys(key)
            screen = terminal.wait_for("\nicanon")
            self.assertIn("code=0", screen)
            self.assertNotIn("10.00 ms", screen)
            terminal.close()
        ended = self.terminal(run.path)
        ended.wait_for("10.00 ms")
        ended.keys("C-z")  # no shell could continue it: it goes on
        ended.resize(70, 20)
        wait_until(lambda: "10.00 ms" in ended.screen(), 60, "the picture")
        os.kill(ended.child(), signal.SIGTERM)
        screen = ended.wait_for("\nicanon")
        self.assertIn("code=143", screen)
        ended.close()
        shell = Terminal(self.folder, "bash --norc --noprofile -i")
        self.addCleanup(shell.close)
        shell.keys(f"{PROGRAM} top {run.path} --interval 0.2", "Enter")
        shell.wait_for("10.00 ms")
        shell.keys("C-z")
        self.assertNotIn("10.00 ms", shell.wait_for("Stopped"), "the shell has its screen back")
        shell.keys("fg", "Enter")
        shell.wait_for("10.00 ms")
        shell.keys("q")
        wait_until(lambda: "10.00 ms" not in shell.screen(), 60, "the shell's screen")
        dumb = self.terminal(run.path, variables={"TERM": "dumb"})
        self.assertIn("10.00 ms", dumb.wait_for("code=0"))


if __name__ == "__main__":
    main()

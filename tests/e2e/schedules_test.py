# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Schedules in runs: those that follow evaluations, with noise and of a layer's number; and their drawings."""
import re
import xml.etree.ElementTree

from lockstep_run import DIGITS, LockstepTest, main, records

STEPS = 24
SETS = ["model.layers=[flatten, {dropout: {name: drop, rate: {polynomial_decay: {initial: 0, last: 0.5, decay_steps: 1, unit: epochs}}}}, "
        "{dense: {units: 10}}]",
        "optimizer={momentum: {learning_rate: {reduce_on_plateau: {initial: 0.5, factor: 0.5, patience: 1, threshold: 0.5, metric: loss, "
        "warmup: {linear: {steps: 4}}}}, momentum: {noisy_linear_cosine_decay: {initial: 0.5, decay_steps: 20, beta: 0.1, "
        "initial_variance: 0.01}}}}",
        "eval.every_steps=2", "train.batch_size=48"]


class SchedulesTest(LockstepTest):
    def rates(self, run):
        return [record["learning_rate"] for record in records(self.folder / run)]

    def test_resumed_in_the_middle_on_any_number_of_ranks(self):
        whole = self.train("whole", ranks=None, steps=STEPS, sets=SETS)
        self.assertIn("learning_rate falls from 0.5 to 0.25: loss has not decreased", whole.err)
        rates = self.rates("whole")
        self.assertEqual(rates[:5], [0, 0.125, 0.25, 0.375, 0.5], "the warm-up")
        falls = [step for step in range(5, STEPS) if rates[step] < rates[step - 1]]
        self.assertTrue(falls[0] < 13 < falls[-1], f"the state at step 13 must matter: {falls}")
        record = records(self.folder / "whole")[10]
        self.assertAlmostEqual(record["drop/rate"], 0.5 * 10 / 32)
        self.assertGreater(len({record["momentum"] for record in records(self.folder / "whole")}), STEPS // 2)
        for before, after, threads in ((1, 2, 2), (2, 3, 1), (3, 4, 1)):
            run = f"run-{before}-{after}"
            self.train(run, ranks=before, steps=13, sets=SETS)  # with an evaluation at the end, which must not count
            self.train(run, ranks=after, steps=STEPS, threads=threads, sets=SETS)
            self.assert_same_run("whole", run)

    def test_dropout_inside_attention_and_recurrent_layers(self):
        def sets(rate):
            return ["data.shape=[8, 8]", "train.batch_size=32", "model.layers=[attention: {name: attention, units: 8, heads: 2, "
                    f"dropout: {rate}}}, lstm: {{name: lstm, units: 6, layers: 2, dropout: {rate}, recurrent_dropout: {rate}}}, "
                    "flatten, dense: {units: 10}]"]
        grows = "{polynomial_decay: {initial: 0, last: 0.5, decay_steps: 6}}"
        for name, rate in (("grows", grows), ("number", "0.25"), ("none", "0"),
                           ("constant", "{piecewise_constant: {boundaries: [3], values: [0.25, 0.25]}}")):
            self.train(name, steps=6, sets=sets(rate))
        self.train("three", steps=2, ranks=3, sets=sets(grows))
        self.train("three", steps=6, ranks=2, threads=2, sets=sets(grows))
        self.assert_same_run("grows", "three")
        self.assertEqual(self.digest("number"), self.digest("constant"))
        self.assertEqual(len({self.digest(name) for name in ("grows", "number", "none")}), 3)
        rates = [record["lstm/recurrent_dropout"] for record in records(self.folder / "grows")]
        self.assertAlmostEqual(rates[3], 0.25)
        self.assertEqual(records(self.folder / "grows")[0]["loss"], records(self.folder / "none")[0]["loss"])

    def test_a_recorded_step_has_the_rate_of_its_state(self):
        self.train("run", steps=18, sets=SETS, more=["--record", "17"])
        self.assertLess(self.rates("run")[-1], 0.5)
        self.lockstep("replay", self.folder / "run", "--step", 17)

    def test_evaluations_change_the_result_where_a_schedule_follows_them(self):
        self.train("run", ranks=None, steps=2, sets=SETS)
        refused = self.train("run", ranks=None, steps=4, sets=[*SETS, "eval.every_steps=3"], code=2)
        self.assert_one_error(refused, 2, r"\+ eval.every_steps: 3")

    def test_a_schedule_without_a_length_lasts_until_the_end_of_the_run(self):
        sets = ["optimizer={momentum: {learning_rate: {cosine_decay: {initial: 0.2}}}}", "train.batch_size=48"]
        self.train("run", steps=4, sets=sets)
        self.train("given", steps=4, sets=[sets[0].replace("0.2", "0.2, decay_steps: 4"), sets[1]])
        self.assert_same_run("given", "run")
        self.assertAlmostEqual(self.rates("run")[2], 0.1)
        refused = self.train("run", steps=8, sets=sets, code=2)
        self.assert_one_error(refused, 2, r"\+ train.steps: 8\n.*lasts until the end of the run.*--accept-changes")
        self.train("run", steps=8, sets=[sets[0].replace("0.2", "0.2, decay_steps: 4"), sets[1]], more=["--accept-changes"])
        self.assertEqual(self.rates("run")[4:], [0, 0, 0, 0], "a length of its own does not follow")
        self.train("stretched", ranks=2, steps=4, sets=sets)
        self.train("stretched", steps=8, sets=sets, more=["--accept-changes"])
        self.assertAlmostEqual(self.rates("stretched")[4], 0.1)

    def plotted(self, *arguments, variables):
        result = self.start("check", DIGITS, *arguments, variables=variables).wait()
        self.assertEqual(result.code, 0, str(result))
        return result

    def test_drawn_in_the_terminal(self):
        rate = "optimizer.learning_rate={cosine_decay: {initial: 0.2, decay_steps: 15, unit: epochs, warmup: {linear: {steps: 5}}}}"
        result = self.plotted("--set", rate, "--plot-schedule", variables={"LC_ALL": "C", "COLUMNS": "64"})
        self.assertRegex(result.out, r"learning_rate +cosine_decay after 120 steps of warm-up: 0 in the first step, at most 0.2, ")
        chart = result.out[result.out.index("learning_rate: cosine_decay, 120 steps of warm-up\n"):].splitlines()[:16]
        self.assertTrue(all(len(line) <= 64 and line.isascii() for line in chart), chart)
        rows = [line.partition("+" if "+" in line else "|")[2] for line in chart[1:13]]
        tops = [next(i for i, row in enumerate(rows) if row[column:column + 1] == "*") for column in range(50)]
        peak = tops.index(min(tops))
        self.assertGreaterEqual(tops[0], 10)  # a column has eight steps
        self.assertTrue(10 < peak < 18, tops)
        self.assertEqual(tops[:peak], sorted(tops[:peak], reverse=True), "it rises")
        self.assertEqual(tops[peak:], sorted(tops[peak:]), "it falls")
        self.assertIn("24 steps are an epoch, 20 epochs in all", chart[15])
        unicode = self.plotted("--set", rate, "--plot-schedule", variables={"LC_ALL": "C.UTF-8"})
        self.assertTrue(re.search("[\u2801-\u28ff]", unicode.out), unicode.out)
        self.assertLessEqual(max(map(len, unicode.out.splitlines()[-18:])), 80)

    def test_drawn_as_svg(self):
        file = self.folder / "rates.svg"
        dropout = ("model.layers=[flatten, {dropout: {rate: {one_cycle: {peak: 0.4, total_steps: 20, unit: epochs}}}}, "
                   "{dense: {units: 10}}]")
        self.plotted("--plot-schedule", file, "--set", dropout, variables={})
        svg = xml.etree.ElementTree.parse(file).getroot()
        name = "{http://www.w3.org/2000/svg}"
        texts = [text.text for text in svg.iter(name + "text")]
        self.assertIn("learning_rate: exponential_decay", texts)
        self.assertIn("dropout1/rate: one_cycle", texts)
        curves = [path for path in svg.iter(name + "path") if path.get("class") == "curve"]
        self.assertEqual(len(curves), 2)
        result = self.start("check", DIGITS, "--plot-schedule", "rates.png").wait()
        self.assert_one_error(result, 2, "must end with .svg")
        self.assertIn("learning_rate", self.lockstep("check", "--plot-schedule", DIGITS).out)


if __name__ == "__main__":
    main()

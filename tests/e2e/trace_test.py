# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""Profiles of several ranks on one clock, with arrows between them, and `lockstep trace`, which reads them."""
import collections
import json
import re

from lockstep_run import LockstepTest, main

PROFILES = "hooks=[{profile: {first_step: 3, last_step: 4, every_steps: 4}}]"


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


class TraceTest(LockstepTest):
    def profiled(self, ranks=3, overlap="on"):
        """A run with profiles of the steps 3, 4 and 7, 8."""
        self.train_once("run", ranks=ranks, steps=9, sets=[PROFILES, f"comm.overlap={overlap}"])
        return self.folder / "run"

    def assert_perfetto_reads(self, trace):
        """The rules of the Trace Event Format that Perfetto keeps to. Returns spans by (pid, tid) and pairs of flow events."""
        spans, begins, ends = collections.defaultdict(list), {}, {}
        named = {(event["pid"], event.get("tid")) for event in trace["traceEvents"] if event["ph"] == "M"}
        self.assertFalse([pair for pair in named if pair[0] == pair[1]], "Perfetto takes such a thread for the main one")
        for event in trace["traceEvents"]:
            if event["ph"] == "X":
                self.assertGreaterEqual(event["ts"], 0)
                self.assertGreaterEqual(event["dur"], 0)
                self.assertIn((event["pid"], event["tid"]), named)
                spans[event["pid"], event["tid"]].append(event)
            elif event["ph"] in "sf":
                of = begins if event["ph"] == "s" else ends
                self.assertNotIn(event["id"], of, "an id is of one arrow")
                of[event["id"]] = event
                if event["ph"] == "f":
                    self.assertEqual(event["bp"], "e", "else it ends in the next span")
            else:
                self.assertIn(event["ph"], "Mi")
        self.assertEqual(begins.keys(), ends.keys())
        for identity, begin in begins.items():
            end = ends[identity]
            self.assertEqual((begin["name"], begin["cat"]), (end["name"], end["cat"]))
            self.assertNotEqual(begin["pid"], end["pid"])
            for event in (begin, end):  # both are inside a span of their thread
                inside = [span for span in spans[event["pid"], event["tid"]] if span["cat"] == "communication" and
                          span["ts"] - 2e-3 <= event["ts"] <= span["ts"] + span["dur"] + 2e-3]
                self.assertTrue(inside, event)
        return spans, [(begins[identity], ends[identity]) for identity in begins]


class Profiles(TraceTest):
    def check_arrows(self, run):
        trace = load(run / "profile" / "trace-00000003-00000004.json")
        _, arrows = self.assert_perfetto_reads(trace)
        clocks = trace["otherData"]["clocks"]
        self.assertEqual([clock["rank"] for clock in clocks], [0, 1, 2])
        for clock in clocks:  # of one host
            self.assertLessEqual(abs(clock["offset_us"]), clock["error_us"])
        error = 2 * max(clock["error_us"] for clock in clocks)
        for begin, end in arrows:
            self.assertGreaterEqual(end["ts"], begin["ts"] - error - 1e-3, "it arrives before it was sent")
        messages = {(begin["pid"], end["pid"]) for begin, end in arrows if begin["name"] == "message"}
        self.assertEqual({rank for pair in messages for rank in pair}, {0, 1, 2}, "the tree of gradients")
        last = [(begin, end) for begin, end in arrows if begin["name"] == "last to come"]
        calls = collections.Counter((begin["pid"], begin["tid"], begin["ts"]) for begin, _ in last)
        self.assertEqual(set(calls.values()), {2}, "the last one of three is waited for by two")
        self.assertGreaterEqual(len(calls), 2 * 2, "batch norm and loss, in each of two steps")
        for begin, end in last:
            self.assertGreaterEqual(end["args"]["waited_us"], 0)
            self.assertLessEqual(end["args"]["waited_us"], end["ts"] + 1e-3)

    def test_arrows_join_sends_with_receives_on_one_clock(self):
        self.check_arrows(self.profiled())

    def test_arrows_without_a_thread_for_communication(self):
        self.check_arrows(self.profiled(overlap="off"))

    def test_ranks_are_in_a_collective_call_at_the_same_time(self):
        trace = load(self.profiled() / "profile" / "trace-00000007-00000008.json")
        calls = collections.defaultdict(list)
        for event in trace["traceEvents"]:
            if event["ph"] == "X" and event["name"] == "loss of the step":
                calls[event["pid"]].append(event)
        self.assertEqual([len(calls[rank]) for rank in range(3)], [2, 2, 2])
        error = 2 * max(clock["error_us"] for clock in trace["otherData"]["clocks"])
        for same in zip(*calls.values()):
            latest = max(event["ts"] for event in same)
            for event in same:
                self.assertGreaterEqual(event["ts"] + event["dur"], latest - error)

    def test_one_rank_has_no_arrows(self):
        self.train("one", ranks=None, steps=5, sets=[PROFILES])
        _, arrows = self.assert_perfetto_reads(load(self.folder / "one" / "profile" / "trace-00000003-00000004.json"))
        self.assertEqual(arrows, [])


class Command(TraceTest):
    def test_the_summary_names_layers_and_ranks(self):
        text = self.lockstep("trace", self.profiled()).out
        self.assertEqual(len(re.findall(r"^steps \d to \d, 3 ranks, [1-9]\d* arrows, clocks of ranks within ", text, re.M)), 2)
        for layer in ("conv1", "bn2", "logits"):
            self.assertEqual(len(re.findall(rf"^{layer} +\d+\.\d+ +\d+\.\d+ +\d+\.\d %$", text, re.M)), 2, text)
        self.assertEqual(len(re.findall(r"^[012] +\d+\.\d{3}( +\d+\.\d %){6}$", text, re.M)), 6, text)
        self.assertEqual(len(re.findall(r"^[012] +\d+\.\d{3} +\d+\.\d +\d+\.\d{3}$", text, re.M)), 6, text)

    def test_merged_profiles_follow_one_another(self):
        run = self.profiled()
        self.assertIn("2 profiles in ", self.lockstep("trace", run, "--merge").out)
        merged = load(run / "profile" / "merged.json")
        spans, arrows = self.assert_perfetto_reads(merged)
        parts = [load(path) for path in sorted((run / "profile").glob("trace-*.json"))]
        self.assertEqual(sum(map(len, spans.values())), sum(event["ph"] == "X" for part in parts for event in part["traceEvents"]))
        self.assertEqual(len(arrows), sum(event["ph"] == "s" for part in parts for event in part["traceEvents"]))
        begins = [event["ts"] for event in merged["traceEvents"] if event["ph"] == "i"]
        self.assertAlmostEqual(begins[1] - begins[0], 1e6 * (parts[1]["otherData"]["begin_time"] - parts[0]["otherData"]["begin_time"]), delta=2)
        first_ends = max(event["ts"] + event["dur"] for event in parts[0]["traceEvents"] if event["ph"] == "X")
        self.assertGreaterEqual(begins[1], first_ends)
        names = collections.Counter((event["pid"], event["args"]["name"]) for event in merged["traceEvents"] if event["name"] == "thread_name")
        self.assertEqual(set(names.values()), {1}, "a thread is one track in all profiles")
        self.lockstep("trace", run, "--merge", "--output", self.folder / "other.json")  # merged.json is not merged again
        self.assertEqual((self.folder / "other.json").read_bytes(), (run / "profile" / "merged.json").read_bytes())

    def test_what_is_no_profile(self):
        (self.folder / "run" / "profile").mkdir(parents=True)
        run = self.folder / "run"
        self.assert_one_error(self.lockstep("trace", run, code=2), 2, "there are no profiles")
        self.assert_one_error(self.lockstep("trace", run, "--output", "x.json", code=2), 2, "--output needs --merge")
        file = run / "profile" / "trace-00000001-00000002.json"
        for text in ('{"traceEvents":[{"ph":"X"', "[]", '{"traceEvents":[{"ph":"X"}]}', '{"traceEvents":[{"ph":7,"name":"a","pid":0}]}',
                     '{"traceEvents":[{"ph":"f","name":"a","pid":0,"tid":1,"ts":1,"id":4}]}', ""):
            file.write_text(text, encoding="utf-8")
            self.assert_one_error(self.lockstep("trace", run, code=3), 3, "is no profile of a run")
        file.write_text('{"displayTimeUnit":"ms","traceEvents":[]}', encoding="utf-8")
        self.assertIn("0 arrows", self.lockstep("trace", run, "--merge").out)


if __name__ == "__main__":
    main()

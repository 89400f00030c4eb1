# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""TensorBoard's own loader reads the event files and honours the restart: tensorboard_test.py INTEROP_PROGRAM."""
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing import event_accumulator
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1], "events", folder], check=True, timeout=60)
    events = event_accumulator.EventAccumulator(folder)
    events.Reload()
    assert sorted(events.Tags()["scalars"]) == ["learning rate", "train/loss"], events.Tags()
    losses = {event.step: event.value for event in events.Scalars("train/loss")}
    assert len(losses) == len(events.Scalars("train/loss"))
    assert sorted(losses) == [1, 2, 3, 4, 5, 6, 7, 8], losses
    for step, value in losses.items():
        expected = 1 / step if step < 4 else 100 + step
        assert abs(value - expected) <= 1e-6 * expected, (step, value)
    rate = events.Scalars("learning rate")[0]
    assert rate.step == 8 and abs(rate.value - 1e-4) <= 1e-10 and rate.wall_time > 1.6e9, rate
print("ok")

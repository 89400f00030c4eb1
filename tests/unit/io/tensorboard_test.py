# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""TensorBoard's own loader reads every kind of value, and honours the restart: tensorboard_test.py INTEROP_PROGRAM."""
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing import event_accumulator
    from tensorboard.util import tensor_util
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

with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1], "kinds", folder], check=True, timeout=60)
    everything = dict.fromkeys(event_accumulator.DEFAULT_SIZE_GUIDANCE, 0)
    events = event_accumulator.EventAccumulator(folder, size_guidance=everything)
    events.Reload()
    assert [event.value for event in events.Scalars("loss")] == [0.5, 1.0]
    histogram = events.Histograms("weights")[1].histogram_value
    assert (histogram.min, histogram.max, histogram.num, histogram.sum, histogram.sum_squares) == (-1, 2, 3, 1, 5)
    assert (histogram.bucket_limit, histogram.bucket) == ([-0.5, 0.5, 2.5], [1, 0, 2]), histogram
    image = events.Images("input/image/0")[1]
    assert (image.width, image.height, image.step) == (1, 1, 2), image
    assert image.encoded_image_string.startswith(b"\x89PNG")
    sound = events.Audio("noise/audio")[0]
    assert (sound.sample_rate, sound.length_frames, sound.content_type) == (8000, 2, "audio/wav"), sound
    assert sound.encoded_audio_string == b"RIFF"
    notes = [tensor_util.make_ndarray(event.tensor_proto).tolist() for event in events.Tensors("notes")]
    assert notes == [[b"**a**", b"b"]] * 2, notes
    table = tensor_util.make_ndarray(events.Tensors("table")[0].tensor_proto)
    assert table.dtype == "int32" and table.tolist() == [[7, -1]], table
    metadata = events.SummaryMetadata("notes")
    assert metadata.plugin_data.plugin_name == "text", metadata
    assert (metadata.display_name, metadata.summary_description) == ("Notes", "what was seen")
    assert events.SummaryMetadata("table").plugin_data.content == b"bytes"
print("ok")

# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
"""TensorBoard's own loader reads every kind of value, and honours the restart: tensorboard_test.py INTEROP_PROGRAM."""
import io
import subprocess
import sys
import tempfile
import wave

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

with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.argv[1], "plugins", folder], check=True, timeout=60)
    events = event_accumulator.EventAccumulator(folder)
    events.Reload()
    graph = {node.name: node for node in events.Graph().node}
    dense = graph["block/dense"]
    assert (dense.op, list(dense.input), dense.device) == ("dense", ["features"], "/cpu:0"), dense
    shape = dense.attr["_output_shapes"].list.shape[0]
    assert [dim.size for dim in shape.dim] == [-1, 4], shape
    assert dense.attr["activation"].s == b"relu" and dense.attr["parameters"].i == 36, dense
    node = events.RunMetadata("step_3").step_stats.dev_stats[0].node_stats[0]
    assert (node.node_name, node.all_start_micros, node.all_end_rel_micros) == ("block/dense", 10, 15), node

    from tensorboard.plugins.hparams import metadata as hparams
    from tensorboard.plugins.pr_curve import metadata as pr_curve

    start = hparams.parse_session_start_info_plugin_data(
        events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content)
    values = {name: getattr(value, value.WhichOneof("kind")) for name, value in start.hparams.items()}
    assert values == {"optimizer.learning_rate": 0.1, "train.shuffle": True, "model": "mlp"}, values
    assert start.start_time_secs == 100
    experiment = hparams.parse_experiment_plugin_data(
        events.SummaryMetadata("_hparams_/experiment").plugin_data.content)
    assert [(info.name.group, info.name.tag) for info in experiment.metric_infos] == [("", "loss"), ("eval", "accuracy")]
    assert [info.type for info in experiment.hparam_infos] == [3, 2, 1], experiment
    end = hparams.parse_session_end_info_plugin_data(
        events.SummaryMetadata("_hparams_/session_end_info").plugin_data.content)
    assert (end.status, end.end_time_secs) == (1, 200), end

    metadata = events.SummaryMetadata("class_1/pr_curves")
    assert metadata.plugin_data.plugin_name == "pr_curves"
    assert pr_curve.parse_plugin_metadata(metadata.plugin_data.content).num_thresholds == 3
    curve = tensor_util.make_ndarray(events.Tensors("class_1/pr_curves")[0].tensor_proto)
    assert curve.shape == (6, 3) and abs(curve[4] - [3 / 5, 2 / 3, 0]).max() < 1e-6, curve
    assert abs(curve[5] - [1, 2 / 3, 0]).max() < 1e-6, curve
    assert tensor_util.make_ndarray(events.Tensors("table")[0].tensor_proto).tolist() == [[b"a", b"b"], [b"c", b"d"]]
    assert tensor_util.make_ndarray(events.Tensors("notes")[0].tensor_proto).tolist() == b"# Title"
    assert tensor_util.make_ndarray(events.Tensors("counts")[0].tensor_proto).tolist() == [5, -6]
    assert events.SummaryMetadata("notes").plugin_data.plugin_name == "text"
    assert sorted(events.Tags()["images"]) == ["in/image/0", "in/image/1"]
    assert events.Images("in/image/1")[0].encoded_image_string.startswith(b"\x89PNG")
    with io.BytesIO(events.Audio("tone/audio")[0].encoded_audio_string) as sound, wave.open(sound) as tone:
        assert (tone.getframerate(), tone.getnframes(), tone.getsampwidth()) == (8000, 4, 2)
        assert tone.readframes(4) == b"\0\0\0\x40\xff\x7f\0\x80"
print("ok")

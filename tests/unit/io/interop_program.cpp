// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes files for other programs to read (h5py_test.py, tensorboard_test.py): interop_program checkpoint
// FILE | events FOLDER | kinds FOLDER | plugins FOLDER | verify FILE.
#include <cstdio>
#include <numeric>
#include <string_view>
#include <vector>

#include "io/checkpoint.h"
#include "io/event_writer.h"
#include "io/png_file.h"
#include "io/summary_media.h"
#include "io/summary_writer.h"

namespace lockstep {
namespace {

void write_checkpoint_file(const std::string& path) {
  std::vector<float> kernel(3 * 1 * 5 * 7);
  std::iota(kernel.begin(), kernel.end(), 0.5F);
  std::vector<std::uint16_t> half = {0x3FC0, 0xC000};  // bf16: 1.5, -2
  double scale = 1024;
  std::vector<std::int64_t> counts = {-1, 1LL << 40};
  const std::vector<CheckpointTensor> tensors = {
      {"variables/conv1/kernel", Tensor(kernel.data(), DType::f32, {3, 1, 5, 7})},
      {"variables/conv1/half", Tensor(half.data(), DType::bf16, {2})},
      {"variables/empty", Tensor(nullptr, DType::f32, {2, 0})},
      {"state/loss_scale", Tensor(&scale, DType::f64, {})},
      {"state/counts", Tensor(counts.data(), DType::i64, {2})},
  };
  CheckpointHeader header;
  header.global_step = 200;
  header.epoch = 3;
  header.samples_consumed = 640;
  header.shards = 4;
  header.seed = 0xFEDCBA9876543210U;
  header.config = "name: \"caf\xc3\xa9\"\n";
  header.lockstep_version = "0.1.0";
  write_checkpoint(path, header, tensors);
}

void write_events(const std::string& folder) {
  EventWriter first(folder);
  for (int step = 1; step <= 6; ++step) first.scalar("train/loss", step, 1.0 / step);
  first.close();
  EventWriter resumed(folder);  // from a checkpoint of step 3
  resumed.restart_from(4);
  for (int step = 4; step <= 8; ++step) resumed.scalar("train/loss", step, 100 + step);
  resumed.scalar("learning rate", 8, 1e-4);
  resumed.close();
  if (!(first.error() + resumed.error()).empty())
    throw Error(ErrorKind::data, first.error() + resumed.error());
}

/// A picture of one grey pixel, a sound of two samples, and what else a summary holds.
void write_kinds(const std::string& folder) {
  EventWriter writer(folder);
  for (int step = 1; step <= 2; ++step)
    writer.add(step, {{"loss", 0.5F * static_cast<float>(step)},
                      {"weights", HistogramData{.min = -1,
                                                .max = 2,
                                                .num = 3,
                                                .sum = 1,
                                                .sum_squares = 5,
                                                .limits = {-0.5, 0.5, 2.5},
                                                .counts = {1, 0, 2}}},
                      {"input/image/0", ImageData{1, 1, 1, png_of(Picture(1, 1, 1, 200))}},
                      {"noise/audio", AudioData{8000, 1, 2, "RIFF"}},
                      {"notes",
                       TensorData{.dtype = SummaryDType::text, .shape = {2}, .strings = {"**a**", "b"}},
                       {.plugin = "text", .display_name = "Notes", .description = "what was seen"}},
                      {"table",
                       TensorData{.dtype = SummaryDType::i32,
                                  .shape = {1, 2},
                                  .bytes = std::string("\x07\0\0\0\xff\xff\xff\xff", 8)},
                       {.plugin = "some_plugin", .content = "bytes"}}});
  writer.close();
  if (!writer.error().empty()) throw Error(ErrorKind::data, writer.error());
}

/// By SummaryWriter: what the plugins show.
void write_plugins(const std::string& folder) {
  SummaryWriter writer(folder);
  const std::vector<GraphNode> nodes = {{.name = "features", .op = "Input", .output_shapes = {{-1, 8}}},
                                        {.name = "block/dense",
                                         .op = "dense",
                                         .inputs = {"features"},
                                         .device = "/cpu:0",
                                         .output_shapes = {{-1, 4}},
                                         .texts = {{"activation", "relu"}},
                                         .numbers = {{"parameters", 36}}}};
  writer.add_graph(nodes);
  const std::vector<DeviceTimes> times = {
      {"/cpu:0", {{.node = "block/dense", .begin_us = 10, .end_us = 25}}}};
  writer.add_run_metadata("step_3", 3, run_metadata(times));
  writer.add_hparams({.values = {{"optimizer.learning_rate", 0.1}, {"train.shuffle", true}, {"model", "mlp"}},
                      .metrics = {{"", "loss"}, {"eval", "accuracy"}},
                      .start_seconds = 100});
  writer.add_summary(3, {hparams_end(HParamsStatus::success, 200)});
  writer.add_text("notes", 3, "# Title");
  writer.add_summary(3, {text_table_value("table", {"a", "b", "c", "d"}, 2),
                         tensor_value("counts", std::vector<std::int64_t>{5, -6}, {2})});
  writer.add_pr_curve("class_1", 3, {.tp = {3, 2, 0}, .fp = {2, 1, 0}, .tn = {0, 1, 2}, .fn = {0, 1, 3}});
  writer.add_summary(3, image_values("in", {2, 2, 2, 1}, std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
  writer.add_summary(3, audio_values("tone", {1, 4, 1}, std::vector<float>{0, 0.5F, 1, -1}, 8000, 1));
  writer.add_session_log(SessionStatus::checkpoint, 3, "step-3.h5");
  writer.close();
  if (!writer.error().empty()) throw Error(ErrorKind::data, writer.error());
}

int run(int argc, char** argv) {
  const std::string_view what = argc == 3 ? argv[1] : "";
  if (what == "checkpoint")
    write_checkpoint_file(argv[2]);
  else if (what == "events")
    write_events(argv[2]);
  else if (what == "kinds")
    write_kinds(argv[2]);
  else if (what == "plugins")
    write_plugins(argv[2]);
  else if (what == "verify")
    CheckpointFile(argv[2]).verify();
  else
    throw Error(ErrorKind::usage,
                "checkpoint FILE | events FOLDER | kinds FOLDER | plugins FOLDER | verify FILE");
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  try {
    return lockstep::run(argc, argv);
  } catch (const lockstep::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return lockstep::exit_code(error.kind());
  }
}

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How fast a reader reads: reader_bench FORMAT NAME=VALUE... (the options of section data). Prints lines of
// what, seconds of wall time, and seconds of processor time of all threads, best of five: to open the set in
// memory (with all checks and the fingerprint), and to gather all samples in order as float32, from memory
// and while they are read through a quarter of their size by one and by two threads; to open a set that is
// read while it is used, and to open it again by what a run keeps (data/kept_index.h). readers.py makes rates
// of them.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "config/param_reader.h"
#include "core/error.h"
#include "data/kept_index.h"
#include "data/reader_dataset.h"
#include "data/reader_table.h"
#include "data/sample_stream.h"
#include "data/step_plan.h"
#include "data/stored_chunks.h"

namespace lockstep {
namespace {

constexpr int kRounds = 5;
constexpr std::int64_t kBatch = 256;

struct Seconds {
  double wall = 1e9, processor = 1e9;
};

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

template <typename Action>
Seconds best_of(Action action) {
  Seconds best;
  for (int round = 0; round < kRounds; ++round) {
    const double processor = processor_seconds();
    const auto begin = std::chrono::steady_clock::now();
    action();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    best.wall = std::min(best.wall, wall.count());
    best.processor = std::min(best.processor, processor_seconds() - processor);
  }
  return best;
}

using Options = std::vector<std::pair<std::string, std::string>>;

Params params_of(std::string_view format, const Options& options) {
  Node node;
  node.kind = Node::Kind::map;
  for (const auto& [name, text] : options) {
    node.entries.emplace_back(name, parse_fallback(text));
    node.entry_where.emplace_back(name);
  }
  return Params(node, find_reader(format).table, std::string(format));
}

std::unique_ptr<ReaderDataset> open(std::string_view format, const Options& options) {
  return open_dataset(format, params_of(format, options), "");
}

/// One epoch in the order of the files.
void gather(const ReaderDataset& data) {
  const StepPlan plan({.num_samples = data.size(), .batch_size = kBatch, .shuffle = Shuffle::none});
  std::vector<float> values(static_cast<std::size_t>(kBatch * data.feature_shape().num_elements()));
  std::vector<std::int64_t> samples;
  for (Cursor cursor; cursor.epoch == 0; cursor = plan.advance(cursor)) {
    const Batch batch = plan.batch(cursor);
    if (data.stream() != nullptr) data.stream()->begin(plan, batch, {0, 1});
    samples.resize(static_cast<std::size_t>(batch.count));
    plan.samples(batch.epoch, batch.first, samples);
    data.gather_features(samples, SampleKey{}, values.data(), {});
  }
  if (data.stream() != nullptr) data.stream()->leave(plan);
}

/// All samples as they are stored, in pieces of a few megabytes, into the same memory: reading alone.
void read(const ReaderDataset& data) {
  constexpr std::int64_t kBytes = std::int64_t{4} << 20;
  const std::int64_t block = data.blocks().block_samples(), bytes = data.size_bytes() / data.size();
  const std::int64_t step = std::max<std::int64_t>(1, kBytes / (bytes * block)) * block;
  std::vector<char> features(
      static_cast<std::size_t>(step * data.stored_shape().num_elements() *
                               static_cast<std::int64_t>(size_in_bytes(data.feature_dtype()))));
  std::vector<std::int32_t> indices(static_cast<std::size_t>(step * data.num_label_columns()));
  std::vector<float> rows(indices.size());
  for (std::int64_t first = 0; first < data.size(); first += step)
    data.stored().read(first, std::min(step, data.size() - first),
                       {.features = features.data(),
                        .label_indices = data.label_kind() == LabelKind::indices ? indices.data() : nullptr,
                        .label_rows = data.label_kind() == LabelKind::rows ? rows.data() : nullptr});
}

void print(std::string_view what, const Seconds& seconds) {
  fmt::print("{}\t{}\t{}\n", what, seconds.wall, seconds.processor);
  std::fflush(stdout);
}

int run(int count, char** arguments) {
  if (count < 2) return 2;
  const std::string format = arguments[1];
  Options options;
  for (int i = 2; i < count; ++i) {
    const std::string_view word = arguments[i];
    const auto equals = word.find('=');
    if (equals == std::string_view::npos) return 2;
    options.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  std::unique_ptr<ReaderDataset> data;
  const Seconds opening = best_of([&] { data = open(format, options); });
  print("samples", {static_cast<double>(data->size()), 0});
  print("open in memory", opening);
  print("gather, in memory", best_of([&] { gather(*data); }));
  const auto table = find_reader(format).table;
  if (std::ranges::find(table, "memory_gb", &ParamSpec::name) == table.end()) return 0;
  {
    const auto once = open_dataset(format, params_of(format, options), "", {.read_once = true});
    print("read, 1 thread", best_of([&] { read(*once); }));
  }
  for (const char* threads : {"1", "2"}) {
    Options small = options;
    small.emplace_back("memory_gb", fmt::format("{}", static_cast<double>(data->size_bytes()) / 4e9));
    small.emplace_back("reader_threads", threads);
    const auto stream = open(format, small);
    print(fmt::format("gather while read, {} thread{}", threads, *threads == '1' ? "" : "s"),
          best_of([&] { gather(*stream); }));
  }
  Options small = options;
  small.emplace_back("memory_gb", fmt::format("{}", static_cast<double>(data->size_bytes()) / 4e9));
  print("open, read while used", best_of([&] { open(format, small); }));
  std::string folder = (std::filesystem::temp_directory_path() / "reader_bench-XXXXXX").string();
  LOCKSTEP_CHECK(mkdtemp(folder.data()) != nullptr);
  {
    const IndexFolder index(folder + "/index", true);
    open(format, small);
    print("the same by the kept index", best_of([&] { open(format, small); }));
  }
  std::filesystem::remove_all(folder);
  if (const auto chunks = stored_chunks(format, params_of(format, options), "");
      chunks && chunks->compressed) {
    double seconds = chunks->unpack_seconds;
    for (int round = 1; round < kRounds; ++round)
      seconds = std::min(seconds, stored_chunks(format, params_of(format, options), "")->unpack_seconds);
    seconds *= static_cast<double>(chunks->samples) / static_cast<double>(chunks->samples_per_chunk);
    print("unpack the chunks, alone", {seconds, seconds});
  }
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int count, char** arguments) {
  try {
    const int code = lockstep::run(count, arguments);
    if (code == 2) std::fputs("usage: reader_bench FORMAT NAME=VALUE...\n", stderr);
    return code;
  } catch (const lockstep::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

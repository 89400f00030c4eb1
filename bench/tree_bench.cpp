// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The sum along the fixed tree, by messages and in shared memory, compared with MPI_Allreduce, in turn, from
// 256 B to 100 MB. Where ranks are on several hosts, shared memory is not used, and its column is that of
// messages.
//
//   mpirun -n 4 tree_bench [--json FILE] [--shards G] [--largest BYTES] [--piece BYTES]
//
// Each repetition's time is that of the slowest rank; the output has median and minimum over the repetitions.
// Every sum is checked once, outside the timing, with small integers, for which any order of addition is
// exact.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "comm/environment.h"
#include "comm/gradient_reducer.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/range.h"
#include "core/timer.h"

namespace {

using namespace lockstep;

struct Arguments {
  std::string json;
  int shards = 0;  // 0: one per rank
  std::int64_t largest = 100'000'000, piece = HostTreeSum{}.piece_bytes;
};

struct Times {
  double median, minimum;
};

struct Row {
  std::int64_t bytes;
  int repetitions;
  Times tree, shared, library;
};

std::int64_t number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value <= 0)
    throw Error(ErrorKind::usage, fmt::format("'{}' is not a positive number", text));
  return value;
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    if (i + 1 >= argc) throw Error(ErrorKind::usage, fmt::format("{} needs a value", name));
    const std::string_view value = argv[i + 1];
    if (name == "--json")
      arguments.json = value;
    else if (name == "--shards")
      arguments.shards = static_cast<int>(number(value));
    else if (name == "--largest")
      arguments.largest = number(value);
    else if (name == "--piece")
      arguments.piece = number(value);
    else
      throw Error(ErrorKind::usage, fmt::format("unknown option {}", name), {},
                  "--json FILE, --shards G, --largest BYTES, --piece BYTES");
  }
  return arguments;
}

// Each partial holds (rank + 1 + element % 7) / partials of the rank: exact in float32.
void fill(GradientReducer& reducer, int rank, std::int64_t count) {
  for (int k = 0; k < reducer.num_partials(); ++k)
    for (std::int64_t i = 0; i < count; ++i)
      reducer.partial(k)[i] = k == 0 ? static_cast<float>(rank + 1) + static_cast<float>(i % 7) : 0.0F;
}

void check(const float* sum, int ranks, std::int64_t count, const char* which) {
  const auto base = static_cast<float>(ranks * (ranks + 1) / 2);
  for (std::int64_t i = 0; i < count; ++i)
    if (const float expected = base + static_cast<float>(ranks) * static_cast<float>(i % 7);
        !(sum[i] == expected))
      throw Error(ErrorKind::bug,
                  fmt::format("{}: element {} of {} is {}, not {}", which, i, count, sum[i], expected));
}

// The time of one call on the slowest rank.
template <typename Call>
double timed(Communicator& world, Call&& call) {
  world.barrier("bench");
  const Timer timer;
  call();
  const double mine = timer.seconds();
  std::vector<double> all(static_cast<std::size_t>(world.size()));
  world.allgather(&mine, sizeof mine, all.data(), "bench");
  return *std::max_element(all.begin(), all.end());
}

Times summary(std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front()};
}

Row measure(Communicator& world, const Arguments& arguments, std::int64_t bytes) {
  const std::int64_t count = bytes / std::int64_t{sizeof(float)};
  const int shards = arguments.shards > 0 ? arguments.shards : world.size();
  const std::vector<Range> bucket{{0, count}};
  GradientReducer tree(world, nullptr, shards, count, bucket,
                       {.sum = HostTreeSum{.piece_bytes = static_cast<std::size_t>(arguments.piece)}});
  GradientReducer shared(world, nullptr, shards, count, bucket, {.sum = HostTreeSum{.shared_memory = true}});
  GradientReducer library(world, nullptr, shards, count, bucket, {.sum = FastSum{}});
  const auto run = [](GradientReducer& reducer) {
    reducer.start(0);
    reducer.wait_all();
  };
  for (GradientReducer* reducer : {&tree, &shared, &library}) {
    fill(*reducer, world.rank(), count);
    if (reducer->num_partials() == 0) std::memset(reducer->result(), 0, static_cast<std::size_t>(bytes));
    run(*reducer);
    check(reducer->result(), world.size(), count, reducer == &library ? "MPI_Allreduce" : "tree");
  }
  // Repeated sums would grow; zeros have the same cost.
  for (GradientReducer* reducer : {&tree, &shared, &library}) {
    for (int k = 0; k < reducer->num_partials(); ++k)
      std::memset(reducer->partial(k), 0, static_cast<std::size_t>(bytes));
    std::memset(reducer->result(), 0, static_cast<std::size_t>(bytes));
  }
  const int repetitions = static_cast<int>(std::clamp<std::int64_t>(400'000'000 / bytes, 9, 1000));
  std::vector<double> tree_times, shared_times, library_times;
  for (int i = 0; i < repetitions; ++i) {
    tree_times.push_back(timed(world, [&] { run(tree); }));
    shared_times.push_back(timed(world, [&] { run(shared); }));
    library_times.push_back(timed(world, [&] { run(library); }));
  }
  return {bytes, repetitions, summary(tree_times), summary(shared_times), summary(library_times)};
}

void write_json(const Arguments& arguments, int ranks, const std::vector<Row>& rows) {
  std::ofstream file(arguments.json);
  file << fmt::format(
      "{{\n  \"ranks\": {},\n  \"cores\": {},\n  \"processor\": \"{}\",\n  \"mpi\": \"{}\",\n  \"rows\": [\n",
      ranks, available_cores(), processor_name(), mpi_library_version());
  for (std::size_t i = 0; i < rows.size(); ++i)
    file << fmt::format(
        "    {{\"bytes\": {}, \"repetitions\": {}, \"tree_median_s\": {:.9f}, \"tree_minimum_s\": {:.9f}, "
        "\"shared_median_s\": {:.9f}, \"shared_minimum_s\": {:.9f}, "
        "\"allreduce_median_s\": {:.9f}, \"allreduce_minimum_s\": {:.9f}}}{}\n",
        rows[i].bytes, rows[i].repetitions, rows[i].tree.median, rows[i].tree.minimum, rows[i].shared.median,
        rows[i].shared.minimum, rows[i].library.median, rows[i].library.minimum,
        i + 1 < rows.size() ? "," : "");
  file << "  ]\n}\n";
  file.close();
  if (!file) throw Error(ErrorKind::data, "the results could not be written", arguments.json);
}

void run_benchmark(CommEnvironment& environment, int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  Communicator& world = environment.world();
  std::vector<Row> rows;
  if (world.rank() == 0)
    fmt::print("{} ranks, {}\n{:>12} {:>6} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>7} {:>7}\n",
               world.size(), mpi_library_version(), "bytes", "times", "tree med ms", "tree min", "shared med",
               "shared min", "MPI med ms", "MPI min", "tree", "shared");
  std::vector<std::int64_t> sizes;
  for (std::int64_t bytes = 256; bytes < arguments.largest; bytes *= 4) sizes.push_back(bytes);
  sizes.push_back(arguments.largest / 4 * 4);
  for (const std::int64_t bytes : sizes) {
    rows.push_back(measure(world, arguments, bytes));
    const Row& row = rows.back();
    if (world.rank() != 0) continue;
    fmt::print("{:12} {:6} {:12.4f} {:12.4f} {:12.4f} {:12.4f} {:12.4f} {:12.4f} {:7.2f} {:7.2f}\n",
               row.bytes, row.repetitions, 1e3 * row.tree.median, 1e3 * row.tree.minimum,
               1e3 * row.shared.median, 1e3 * row.shared.minimum, 1e3 * row.library.median,
               1e3 * row.library.minimum, row.tree.median / row.library.median,
               row.shared.median / row.library.median);
    std::fflush(stdout);
  }
  if (world.rank() == 0 && !arguments.json.empty()) write_json(arguments, world.size(), rows);
}

}  // namespace

int main(int argc, char** argv) {
  CommEnvironment environment({.timeout_seconds = 120});
  try {
    run_benchmark(environment, argc, argv);
    environment.finalize();
    return 0;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage || environment.world().rank() == 0)
      std::fprintf(stderr, "tree_bench: %s\n", error.what());
    environment.abort(exit_code(error.kind()));
  }
}

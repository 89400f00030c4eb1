// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The sum of gradients along the fixed tree, from GPU to GPU, compared with ncclAllReduce; and through pinned
// host memory and MPI, as for ranks that share a GPU, compared with MPI_Allreduce there. The measurements
// alternate.
//
//   [mpirun -n R] tree_rates [--megabytes N[,N]] [--repeat N] [--shared-gpu host|nccl] [--json FILE]
//
// Each rank uses the GPU whose index is the rank's number on its host, modulo the number of GPUs there. If
// ranks share a GPU, NCCL rejects them: its columns are skipped, and a line says so. With --shared-gpu nccl
// it takes each rank for a host of its own, and messages pass through sockets. On one rank the tree has no
// work. A time lasts from a barrier until the sum is on the slowest rank's device; the output has median and
// minimum. Every sum is checked once, outside the timing, with small integers, for which any order is exact.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/environment.h"
#include "comm/gradient_reducer.h"
#include "comm/nccl_hosts.h"
#ifdef LOCKSTEP_WITH_NCCL
#include "comm/nccl_communicator.h"
#endif
#include "core/error.h"
#include "core/range.h"
#include "core/timer.h"
#include "kernels/backend.h"
#include "kernels/backend_cuda.h"
#include "train/kernel_arithmetic.h"

namespace {

using namespace lockstep;
enum class Mode { tree, fast };

struct Arguments {
  std::vector<std::int64_t> megabytes{1, 25, 100};
  std::int64_t repeat = 30;
  bool nccl_shared_gpu = false;
  std::string json;
};

std::int64_t number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  LOCKSTEP_REQUIRE(error == std::errc() && end == text.data() + text.size() && value > 0, ErrorKind::usage,
                   "'{}' is not a positive whole number", text);
  return value;
}

Arguments arguments_of(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    LOCKSTEP_REQUIRE(i + 1 < argc, ErrorKind::usage, "{} needs a value", name);
    const std::string_view value = argv[i + 1];
    if (name == "--megabytes") {
      arguments.megabytes.clear();
      for (std::size_t at = 0; at <= value.size();) {
        const std::size_t comma = std::min(value.find(',', at), value.size());
        arguments.megabytes.push_back(number(value.substr(at, comma - at)));
        at = comma + 1;
      }
    } else if (name == "--repeat") {
      arguments.repeat = number(value);
    } else if (name == "--shared-gpu") {
      LOCKSTEP_REQUIRE(value == "host" || value == "nccl", ErrorKind::usage, "--shared-gpu {}: host or nccl",
                       value);
      arguments.nccl_shared_gpu = value == "nccl";
    } else if (name == "--json") {
      arguments.json = value;
    } else {
      throw Error(ErrorKind::usage, fmt::format("unknown option {}", name), {},
                  "--megabytes N[,N], --repeat N, --shared-gpu host|nccl, --json FILE");
    }
  }
  return arguments;
}

/// This rank's GPU and its communicators.
struct Place {
  Place(Communicator& world, Backend& backend, bool nccl_shared_gpu) {
    const std::unique_ptr<Communicator> host = world.split_by_host("ranks of a host");
    const int visible = backend.num_devices();
    LOCKSTEP_REQUIRE(visible > 0, ErrorKind::device, "no GPU: {}", backend.problem());
    const int mine = host->rank() % visible;
    device = &backend.open(mine);
    kernels = &backend.kernels({});
    name = backend.describe(mine).name;
    stream.emplace(*device);
    exchange.emplace(*device);
    const char shares_here = host->size() > visible ? 1 : 0;
    std::vector<char> all(static_cast<std::size_t>(world.size()));
    world.allgather(&shares_here, 1, all.data(), "who shares a GPU");
    shares = std::ranges::count(all, 1) > 0;
    if (shares && !nccl_shared_gpu) {
      no_nccl = fmt::format("{} ranks share GPUs, which NCCL rejects (see --shared-gpu)", world.size());
      return;
    }
    if (shares) take_ranks_for_hosts(world, host->size());
#ifdef LOCKSTEP_WITH_NCCL
    direct = make_nccl_communicator(world, *device, exchange->get(), "bench");
#else
    no_nccl = "this program was built without NCCL";
#endif
  }
  Device* device;
  const KernelTable* kernels;
  std::string name, no_nccl;
  bool shares = false;  ///< several ranks use one GPU
  std::optional<DeviceStream> stream, exchange;
  std::shared_ptr<DeviceCommunicator> direct;  ///< null: no_nccl contains the reason
};

/// One method to sum `count` numbers of each rank.
class Way {
 public:
  Way(Communicator& world, const Place& place, std::int64_t count, Mode mode, bool from_gpu_to_gpu)
      : world_(world), place_(place), count_(count), mode_(mode), direct_(from_gpu_to_gpu) {
    ReducerDevice gpu{.device = place.device, .stream = place.stream->get()};
    if (direct_) {
      gpu.direct = place.direct;
      arithmetic_.emplace(place.kernels->elementwise);
      gpu.arithmetic = &*arithmetic_;
    }
    GradientReducer::Options options;
    if (mode == Mode::tree)
      options.sum = DeviceTreeSum{.place = gpu};
    else
      options.sum = FastSum{gpu};
    reducer_ = std::make_unique<GradientReducer>(world, nullptr, world.size(), count,
                                                 std::vector<Range>{{0, count}}, std::move(options));
  }
  /// All ranks. Throws Error(bug) if the sum is wrong.
  void check() {
    std::vector<float> numbers(static_cast<std::size_t>(count_));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = static_cast<float>(world_.rank() + 1) + static_cast<float>(i % 7);
    const std::size_t bytes = numbers.size() * sizeof(float);
    place_.device->copy_from_host(reducer_->partial(0), numbers.data(), bytes);
    run();
    place_.device->copy_to_host(numbers.data(), reducer_->result(), bytes);
    const auto ranks = static_cast<float>(world_.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const float expected = ranks * (ranks + 1) / 2 + ranks * static_cast<float>(i % 7);
      LOCKSTEP_REQUIRE(numbers[i] == expected, ErrorKind::bug, "element {} of {} is {}, not {}", i, count_,
                       numbers[i], expected);
    }
    // Repeated sums would grow; zeros have the same cost.
    place_.device->zero(place_.stream->get(), reducer_->partial(0), bytes);
    place_.stream->synchronize();
  }
  /// The time in seconds on the slowest rank.
  double time() {
    world_.barrier("bench");
    const Timer timer;
    run();
    const double mine = timer.seconds();
    std::vector<double> all(static_cast<std::size_t>(world_.size()));
    world_.allgather(&mine, sizeof mine, all.data(), "bench");
    return *std::ranges::max_element(all);
  }

 private:
  void run() {
    if (world_.size() == 1 && direct_ && mode_ == Mode::fast) {
      // A reducer has no work on one rank; here the library's call is measured.
      place_.direct->allreduce_sum_fast(reducer_->partial(0), static_cast<std::size_t>(count_), "bench");
      place_.exchange->synchronize();
    } else {
      reducer_->start(0);
      reducer_->wait_all();
      place_.stream->synchronize();
    }
  }

  Communicator& world_;
  const Place& place_;
  std::int64_t count_;
  Mode mode_;
  bool direct_;
  std::optional<KernelArithmetic> arithmetic_;
  std::unique_ptr<GradientReducer> reducer_;
};

struct Column {
  const char *name, *key;
  Mode mode;
  bool direct;
};
constexpr Column kColumns[] = {{"tree", "tree", Mode::tree, true},
                               {"ncclAllReduce", "nccl", Mode::fast, true},
                               {"tree, host", "host_tree", Mode::tree, false},
                               {"MPI, host", "host_mpi", Mode::fast, false}};

bool there(const Column& column, const Communicator& world, const Place& place) {
  return column.direct ? place.direct != nullptr : world.size() > 1;
}

struct Times {
  double median = 0, minimum = 0;  ///< seconds; 0: not measured
};

std::vector<Times> measure(Communicator& world, const Place& place, const Arguments& arguments,
                           std::int64_t bytes) {
  const std::int64_t count = bytes / std::int64_t{sizeof(float)};
  std::vector<std::unique_ptr<Way>> ways;
  for (const Column& column : kColumns) {
    ways.push_back(there(column, world, place)
                       ? std::make_unique<Way>(world, place, count, column.mode, column.direct)
                       : nullptr);
    if (ways.back()) ways.back()->check();
  }
  std::vector<std::vector<double>> seconds(ways.size());
  for (std::int64_t i = 0; i < arguments.repeat; ++i)
    for (std::size_t w = 0; w < ways.size(); ++w)
      if (ways[w]) seconds[w].push_back(ways[w]->time());
  std::vector<Times> result(ways.size());
  for (std::size_t w = 0; w < ways.size(); ++w) {
    std::ranges::sort(seconds[w]);
    if (ways[w]) result[w] = {seconds[w][seconds[w].size() / 2], seconds[w].front()};
  }
  return result;
}

void print_head(const Communicator& world, const Place& place) {
  fmt::print("{} ranks, {}, {}\n", world.size(), place.name, mpi_library_version());
#ifdef LOCKSTEP_WITH_NCCL
  fmt::print("{}\n", nccl_library_version());
#endif
  if (!place.no_nccl.empty())
    fmt::print("SKIPPED, from GPU to GPU and ncclAllReduce: {}\n", place.no_nccl);
  else if (place.shares)
    fmt::print("ranks share a GPU: NCCL takes each for a host, and sends through sockets\n");
  fmt::print("{:>9}", "MB");
  for (const Column& column : kColumns) fmt::print(" {:>13} {:>9}", column.name, "minimum");
  fmt::print(" {:>10} {:>10}   ms, medians\n", "tree/NCCL", "tree/MPI");
}

void print_row(std::int64_t bytes, const std::vector<Times>& times, int ranks) {
  fmt::print("{:>9.1f}", 1e-6 * static_cast<double>(bytes));
  for (const Times& t : times)
    if (t.median > 0)
      fmt::print(" {:>13.4f} {:>9.4f}", 1e3 * t.median, 1e3 * t.minimum);
    else
      fmt::print(" {:>13} {:>9}", "-", "-");
  for (const std::size_t tree : {0U, 2U})
    fmt::print(" {:>10}", ranks > 1 && times[tree].median > 0
                              ? fmt::format("{:.2f}", times[tree].median / times[tree + 1].median)
                              : "-");
  fmt::print("\n");
  std::fflush(stdout);
}

void run_benchmark(CommEnvironment& environment, int argc, char** argv) {
  const Arguments arguments = arguments_of(argc, argv);
  Communicator& world = environment.world();
  const Place place(world, cuda_backend(), arguments.nccl_shared_gpu);
  const bool chief = world.rank() == 0;
  if (chief) print_head(world, place);
  nlohmann::json rows = nlohmann::json::array();
  for (const std::int64_t megabytes : arguments.megabytes) {
    const std::int64_t bytes = megabytes * 1'000'000;
    const std::vector<Times> times = measure(world, place, arguments, bytes);
    if (!chief) continue;
    print_row(bytes, times, world.size());
    nlohmann::json row = {{"bytes", bytes}};
    for (std::size_t w = 0; w < times.size(); ++w)
      if (times[w].median > 0)
        row.update({{fmt::format("{}_median_s", kColumns[w].key), times[w].median},
                    {fmt::format("{}_minimum_s", kColumns[w].key), times[w].minimum}});
    rows.push_back(std::move(row));
  }
  if (!chief || arguments.json.empty()) return;
  nlohmann::json content = {{"device", place.name}, {"ranks", world.size()}, {"rows", rows}};
  if (place.shares) content["nccl_over_sockets"] = place.direct != nullptr;
  if (!place.no_nccl.empty()) content["nccl_skipped"] = place.no_nccl;
  std::ofstream file(arguments.json);
  file << content.dump(2) << "\n";
  file.close();
  LOCKSTEP_REQUIRE(file, ErrorKind::data, "the results could not be written to {}", arguments.json);
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
      std::fprintf(stderr, "tree_rates: %s\n", error.what());
    environment.abort(exit_code(error.kind()));
  }
}

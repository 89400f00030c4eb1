// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the host asks of a GPU in one training step, counted on the emulated GPU: kernels, calls, waits, NCCL
// calls, bytes. No GPU is needed, and nothing is timed.
//
//   [mpirun -n R] step_counts [--net NAME[,NAME]] [--batch N] [--l2 FACTOR] [--compute
//   float32|bfloat16|float16]
//                             [--run] [--limit COLUMN=MOST[,COLUMN=MOST]] [--json FILE]
//
// Each rank has a GPU of its own and one microshard of --batch samples (default: 2), as in a run with one
// shard per rank and sums along the tree. --l2 regularizes all kernels. Nets have their full number of layers
// and their full size. Kernels and messages are counted and not computed, because the emulation is too slow
// for such nets; so gradients of sparse tables have no rows. --run computes them.
//
// Counts are means over 8 steps after 8 others, of rank 0. `calls`: calls of the host that put work into a
// stream (a graph is one call); `kernels`: those that run, in graphs and alone; `waits`: the host waits for
// the GPU. --limit fails if a count is larger.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/environment.h"
#include "comm/nccl_communicator.h"
#include "comm/tree_reduction.h"
#include "config/yaml_node.h"
#include "core/error.h"
#include "data/step_plan.h"
#include "kernels/backend.h"
#include "kernels/backend_cuda.h"
#include "loss_scaled_steps.h"
#include "nets.h"
#include "optim/optimizer.h"
#include "optim/optimizer_options.h"
#include "synthetic_samples.h"
#include "tests/support/cuda_emulation/counts.h"
#include "train/executor.h"
#include "train/sparse_gradients.h"
#include "train/trainer.h"
#include "train/trainer_options.h"
#include "train/workers.h"

namespace {

using namespace lockstep;
using emulation::Counts;

struct Arguments {
  std::string nets = "resnet50,gpt2,lstm,mlp", json;
  std::int64_t batch = 2;
  double l2 = 0;
  DType compute = DType::f32;
  bool run = false;
  std::vector<std::pair<std::string, double>> limits;
};

/// The parts of a list that are separated by commas.
std::vector<std::string> parts_of(std::string_view list) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    parts.emplace_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

DType type_of(std::string_view name) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    if (name_of(type) == name) return type;
  throw Error(ErrorKind::usage, fmt::format("'{}' is not an activation type", name), {},
              "float32, bfloat16, float16");
}

Arguments arguments_of(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--run") {
      arguments.run = true;
      continue;
    }
    LOCKSTEP_REQUIRE(i + 1 < argc, ErrorKind::usage, "{} needs a value", name);
    const std::string value = argv[++i];
    if (name == "--net")
      arguments.nets = value;
    else if (name == "--json")
      arguments.json = value;
    else if (name == "--batch")
      arguments.batch = std::stoll(value);
    else if (name == "--l2")
      arguments.l2 = std::stod(value);
    else if (name == "--compute")
      arguments.compute = type_of(value);
    else if (name == "--limit")
      for (const std::string& limit : parts_of(value)) {
        const std::size_t equals = limit.find('=');
        LOCKSTEP_REQUIRE(equals != std::string::npos, ErrorKind::usage, "'{}' is not COLUMN=MOST", limit);
        arguments.limits.emplace_back(limit.substr(0, equals), std::stod(limit.substr(equals + 1)));
      }
    else
      throw Error(ErrorKind::usage, fmt::format("unknown option {}", name), {},
                  "--net, --batch, --l2, --compute, --run, --limit, --json");
  }
  LOCKSTEP_REQUIRE(arguments.batch > 0, ErrorKind::usage, "a batch of {}", arguments.batch);
  return arguments;
}

/// The mean count of each column, in the order of the table.
using Row = std::vector<std::pair<std::string, double>>;

constexpr int kSteps = 8;  // the first steps record graphs; an input has two places

Row row_of(const Counts& counts) {
  const auto mean = [](std::int64_t count) { return static_cast<double>(count) / kSteps; };
  const auto megabytes = [&](std::int64_t bytes) { return 1e-6 * mean(bytes); };
  return {{"kernels", mean(counts.kernels)},
          {"calls", mean(counts.calls)},
          {"graphs", mean(counts.graphs)},
          {"copies", mean(counts.copies)},
          {"waits", mean(counts.waits)},
          {"nccl_calls", mean(counts.nccl_calls)},
          {"nccl_mb", megabytes(counts.nccl_sent_bytes)},
          {"uploaded_mb", megabytes(counts.uploaded_bytes)},
          {"downloaded_mb", megabytes(counts.downloaded_bytes)},
          {"moved_mb", megabytes(counts.moved_bytes)}};
}

Row count_step(Communicator& world, const Arguments& arguments, const BenchNet& net) {
  const std::int64_t shards = world.size(), batch = arguments.batch * shards;
  const ReaderDataset dataset = synthetic_samples(net, batch * 4);
  const StepPlan plan({.num_samples = dataset.size(), .batch_size = batch, .shards = shards, .seed = 1});
  Graph graph = graph_from_config(parse_yaml(net.layers(), std::string(net.name)), net.features);
  VariableStore variables;
  Heads heads(make_loss(Node::scalar("softmax_cross_entropy")));
  heads.add_outputs(graph);
  graph.hold_activations_as(arguments.compute);
  graph.finish(variables);
  Device& device = cuda_backend().open(world.rank());
  // Kernels may be counted only: a check of plans would fail.
  const KernelTable& kernels = cuda_backend().kernels({.check_plans = false});
  TrainerOptions options;
  options.scales_loss = arguments.compute == DType::f16;
  if (arguments.l2 > 0) options.regularization.push_back({NamePattern("*/kernel"), 0, arguments.l2});
  choose_sparse(variables, batch, sparse_share(true, world.size()));
  variables.commit(device);
  if (arguments.run) variables.initialize(1);
  heads.prepare(graph, device);
  const std::unique_ptr<Optimizer> optimizer =
      optimizer_options(parse_yaml(net.optimizer, std::string(net.name))).make();
  optimizer->create_slots(device, variables);
  Workers workers(1, device);
  const auto gradients = world.duplicate("gradients"), sync = world.duplicate("batch norm"),
             control = world.duplicate("control");
  const DeviceStream gradient_stream(device);
  std::shared_ptr<DeviceCommunicator> direct;
  std::unique_ptr<DeviceCommunicator> direct_sync;
  if (world.size() > 1) {
    direct = make_nccl_communicator(*gradients, device, gradient_stream.get(), "gradients");
    direct_sync = make_nccl_communicator(*sync, device, workers.lanes().front().stream, "batch norm");
    const std::vector<int> peers =
        TreeReduction::peers_of(world.rank(), world.size(), static_cast<int>(shards));
    direct->connect({.peers = peers});
    direct_sync->connect({});
  }
  options.reducer.sum = DeviceTreeSum{.place = {.direct = direct}};
  const ExecutorContext context{graph,
                                variables,
                                heads,
                                kernels,
                                device,
                                workers.pool(),
                                workers.lanes(),
                                *sync,
                                direct_sync.get(),
                                static_cast<int>(shards),
                                1};
  Trainer trainer(context, *gradients, *control, dataset, plan, *optimizer, options);
  workers.grow_scratch(trainer.executor().scratch_bytes(), trainer.executor().num_lanes());
  LossScaledSteps training(trainer);
  for (int i = 0; i < kSteps; ++i) training.step();
  emulation::reset_counts();
  for (int i = 0; i < kSteps; ++i) training.step();
  const Row row = row_of(emulation::counts());
  device.synchronize(workers.lanes().front().stream);
  return row;
}

std::string text_of(double count) {
  return count == std::floor(count) && count < 1e6 ? fmt::format("{:.0f}", count)
         : count < 0.01                            ? fmt::format("{:.6f}", count)
                                                   : fmt::format("{:.2f}", count);
}

void print_head(const Row& row) {
  fmt::print("{:<10} {:<8} {:>5}", "net", "type", "ranks");
  for (const auto& [name, count] : row) fmt::print(" {:>{}}", name, std::max<std::size_t>(name.size(), 8));
  fmt::print("\n");
}

void check_limits(const Arguments& arguments, const BenchNet& net, const Row& row) {
  for (const auto& [name, most] : arguments.limits) {
    const auto found = std::ranges::find(row, name, &Row::value_type::first);
    LOCKSTEP_REQUIRE(found != row.end(), ErrorKind::usage, "there is no column '{}'", name);
    LOCKSTEP_REQUIRE(found->second <= most, ErrorKind::bug, "{}: {} {} in a step, at most {} are allowed",
                     net.name, text_of(found->second), name, text_of(most));
  }
}

void run(CommEnvironment& environment, int argc, char** argv) {
  const Arguments arguments = arguments_of(argc, argv);
  Communicator& world = environment.world();
  setenv("LOCKSTEP_EMULATED_GPUS", std::to_string(world.size()).c_str(), 1);
  setenv("LOCKSTEP_EMULATED_GPU_BYTES", "1000000000000", 1);
  if (!arguments.run) emulation::count_only();
  nlohmann::json rows = nlohmann::json::array();
  for (const std::string& name : parts_of(arguments.nets)) {
    const BenchNet& net = find_net(name);
    const Row row = count_step(world, arguments, net);
    if (world.rank() != 0) continue;
    if (rows.empty()) print_head(row);
    fmt::print("{:<10} {:<8} {:>5}", net.name, name_of(arguments.compute), world.size());
    for (const auto& [column, count] : row)
      fmt::print(" {:>{}}", text_of(count), std::max<std::size_t>(column.size(), 8));
    fmt::print("\n");
    std::fflush(stdout);
    nlohmann::json line = {{"net", net.name},       {"compute", name_of(arguments.compute)},
                           {"ranks", world.size()}, {"batch_per_rank", arguments.batch},
                           {"l2", arguments.l2},    {"computed", arguments.run}};
    for (const auto& [column, count] : row) line[column] = count;
    rows.push_back(std::move(line));
    check_limits(arguments, net, row);
  }
  if (world.rank() != 0 || arguments.json.empty()) return;
  std::ofstream file(arguments.json);
  file << nlohmann::json{{"counted_on", "the emulated GPU"}, {"rows", rows}}.dump(2) << "\n";
  file.close();
  LOCKSTEP_REQUIRE(file, ErrorKind::data, "the counts could not be written to {}", arguments.json);
}

}  // namespace

int main(int argc, char** argv) {
  CommEnvironment environment({.timeout_seconds = 300});
  try {
    run(environment, argc, argv);
    environment.finalize();
    return 0;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage || environment.world().rank() == 0)
      std::fprintf(stderr, "step_counts: %s\n", error.what());
    environment.abort(exit_code(error.kind()));
  }
}

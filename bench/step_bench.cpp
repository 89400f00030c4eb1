// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole training steps on synthetic data in memory: samples/s, the parts of a step, memory. Nets that are
// mostly convolutions are compared with their convolutions alone, LSTM nets with their matrix products alone.
//
//   [mpirun -n R --bind-to none] step_bench [--net NAME[,NAME]] [--batch N] [--shards G] [--threads T]
//                                           [--scale K] [--steps N] [--repeat N] [--parts]
//                                           [--no-convolutions] [--sparse-below SHARE] [--json FILE]
//                                           [--device cpu|cuda] [--tf32] [--clip LIMIT]
//                                           [--compute float32|bfloat16|float16] [--shard-update]
//                                           [--compress] [--error-feedback] [--recompute]
//
// --recompute is train.recompute: auto.
//
// --device cuda needs step_bench_gpu, the same program with GPUs; each rank uses its own GPU. --compute is
// the activation type; with float16 the loss is scaled as in a run (loss_scaled_steps.h). The primitives
// alone are measured in float32 only. --clip limits the norm of all gradients: a limit far below the norm
// shows the cost of clipping, one far above it the cost of computing the norm.
//
// --batch and --shards are those of the whole group. --scale multiplies both, so that K cores do K times the
// work of one core in microshards of the same size. A step's time is that of the slowest rank. The output has
// median and minimum over all steps (other load only slows a step down), and the processor time of a rank's
// threads, which other load affects less. --steps 0 runs as many steps as fit into half a second. --parts,
// with one thread, adds the times of forward, backward, sums and update, measured in separate steps.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "comm/environment.h"
#include "config/yaml_node.h"
#include "convolutions_alone.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/range.h"
#include "core/timer.h"
#include "data/reader_dataset.h"
#include "dense_alone.h"
#include "kernels/backend.h"
#include "model/recompute.h"
#include "train/trainer.h"
#include "train/workers.h"
#ifdef LOCKSTEP_BENCH_GPU
#include "kernels/backend_cuda.h"
#endif
#include "kernels/kernel_table.h"
#include "loss_scaled_steps.h"
#include "nets.h"
#include "optim/optimizer_options.h"
#include "recurrent_alone.h"
#include "step_arguments.h"
#include "step_parts.h"
#include "synthetic_samples.h"
#include "train/trainer_options.h"
#include "train/update_parts.h"

namespace {

using namespace lockstep;

struct Times {
  double median = 0, minimum = 0,
         processor = 0;  ///< processor: the median of the processor time of all threads
};

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Times of repeated calls on this rank.
class Record {
 public:
  template <typename Call>
  void time(Call&& call) {
    const double processor = processor_seconds();
    const Timer timer;
    call();
    seconds_.push_back(timer.seconds());
    processor_.push_back(processor_seconds() - processor);
  }
  std::size_t size() const { return seconds_.size(); }
  /// Summarises the calls; each call's time is that of the slowest rank. All ranks.
  Times summary(Communicator& world) const {
    const std::vector<double> seconds = slowest(world, seconds_);
    return {median_of(seconds), *std::min_element(seconds.begin(), seconds.end()),
            median_of(slowest(world, processor_))};
  }

 private:
  static std::vector<double> slowest(Communicator& world, const std::vector<double>& mine) {
    std::vector<double> all(mine.size() * static_cast<std::size_t>(world.size())), result = mine;
    world.allgather(mine.data(), mine.size() * sizeof(double), all.data(), "bench");
    for (std::size_t i = 0; i < all.size(); ++i)
      result[i % mine.size()] = std::max(result[i % mine.size()], all[i]);
    return result;
  }

  std::vector<double> seconds_, processor_;
};

struct Result {
  std::string net;
  std::int64_t batch, shards;
  int ranks, threads;
  bool shares_update;  ///< optimizer.shard
  bool compresses;     ///< comm.compress: bfloat16
  DType compute;
  double loss_scale;    ///< at the end; 1: none
  std::size_t skipped;  ///< measured steps without an update, because their gradients overflowed
  std::size_t steps, layers, activation_bytes, gradient_bytes, scratch_bytes, variable_bytes, slot_bytes,
      peak_bytes, device_peak_bytes;
  std::int64_t sent_bytes;   ///< by a rank in a step
  Times step, convolutions;  ///< convolutions, or matrix products, alone; median 0: not measured
  StepParts parts;
};

struct Place {
  Device& device;
  const KernelTable& kernels;
};
HostTreeSum::Nodes nodes_of(const StepArguments& arguments) {
  using Nodes = HostTreeSum::Nodes;
  if (arguments.error_feedback) return Nodes::rounded_with_feedback;
  return arguments.compress ? Nodes::rounded : Nodes::exact;
}

Place place_of(const StepArguments& arguments, int rank) {
  if (arguments.device == "cpu") return {cpu_device(), cpu_kernels()};
  Backend* backend = find_backend(arguments.device);
  LOCKSTEP_REQUIRE(backend != nullptr, ErrorKind::usage,
                   "this program does not support the device {}; step_bench_gpu supports cuda",
                   arguments.device);
  const int visible = backend->num_devices();
  LOCKSTEP_REQUIRE(visible > 0, ErrorKind::device, "no GPU: {}", backend->problem());
  return {backend->open(rank % visible), backend->kernels({.allow_tf32 = arguments.tf32})};
}

Result measure(Communicator& world, const StepArguments& arguments, const BenchNet& net) {
  Result result{.net = std::string(net.name),
                .batch = (arguments.batch > 0 ? arguments.batch : net.batch) * arguments.scale,
                .shards = arguments.shards * arguments.scale,
                .ranks = world.size(),
                .threads = static_cast<int>(arguments.threads),
                .shares_update = arguments.shard,
                .compresses = arguments.compress,
                .compute = arguments.compute};
  LOCKSTEP_REQUIRE(result.shards >= result.ranks && result.batch >= result.shards, ErrorKind::usage,
                   "{} shards do not fit {} ranks and a batch of {}: try --shards or --scale", result.shards,
                   result.ranks, result.batch);
  const ReaderDataset dataset = synthetic_samples(net, result.batch * 4);
  const StepPlan plan(
      {.num_samples = dataset.size(), .batch_size = result.batch, .shards = result.shards, .seed = 1});
  Graph graph = graph_from_config(parse_yaml(net.layers(), std::string(net.name)), net.features);
  VariableStore variables;
  Heads heads(make_loss(Node::scalar("softmax_cross_entropy")));
  heads.add_outputs(graph);
  graph.hold_activations_as(arguments.compute);
  if (arguments.recompute) graph.recompute(Recompute::automatic);
  graph.finish(variables);
  const Place place = place_of(arguments, world.rank());
  // --parts times the dense sums alone
  if (!arguments.parts) choose_sparse(variables, result.batch, arguments.sparse_below);
  variables.commit(place.device);
  variables.initialize(1);
  heads.prepare(graph, place.device);
  const std::unique_ptr<Optimizer> optimizer =
      optimizer_options(parse_yaml(net.optimizer, std::string(net.name))).make();
  TrainerOptions options;
  HostTreeSum sum{.nodes = nodes_of(arguments), .shared_memory = arguments.shared_memory};
  std::vector<Range> held;
  if (arguments.shard && world.size() > 1) {
    sum.ownership = share_update(variables, world.size(), static_cast<int>(result.shards),
                                 options.bucket_first_bytes, options.bucket_bytes);
    held = held_parts(*sum.ownership, variables, world.rank());
  }
  if (place.device.is_host())
    options.reducer.sum = sum;
  else
    options.reducer.sum = DeviceTreeSum{.compress = arguments.compress};
  optimizer->create_slots(place.device, variables, std::move(held));
  Workers workers(result.threads, place.device);
  const auto gradients = world.duplicate("gradients"), sync = world.duplicate("batch norm"),
             control = world.duplicate("control");
  const ExecutorContext context{graph,
                                variables,
                                heads,
                                place.kernels,
                                place.device,
                                workers.pool(),
                                workers.lanes(),
                                *sync,
                                nullptr,
                                static_cast<int>(result.shards),
                                1};
  if (arguments.clip > 0) options.clip = {.by = ClipRule::By::global_norm, .limit = arguments.clip};
  options.scales_loss = arguments.compute == DType::f16;
  Trainer trainer(context, *gradients, *control, dataset, plan, *optimizer, options);
  workers.grow_scratch(trainer.executor().scratch_bytes(), trainer.executor().num_lanes());

  std::unique_ptr<ConvolutionsAlone> convolutions;
  std::unique_ptr<RecurrentAlone> products;
  std::unique_ptr<DenseAlone> dense;
  const bool recurrent = net.name == "lstm" || net.name == "lstm_alone";
  const bool transformer = net.name == "transformer";
  if ((net.convolutions != nullptr || recurrent || transformer) && arguments.convolutions &&
      place.device.is_host() && arguments.compute == DType::f32) {
    LOCKSTEP_REQUIRE(result.batch % result.shards == 0, ErrorKind::usage,
                     "{} shards do not divide the batch of {}, which measuring the primitives alone "
                     "requires; add --no-convolutions",
                     result.shards, result.batch);
    const Range own = shards_of_rank(world.rank(), world.size(), static_cast<int>(result.shards));
    const std::int64_t n = result.batch / result.shards;
    if (recurrent)
      products = std::make_unique<RecurrentAlone>(workers, n, own.size(), net.ids > 0);
    else if (transformer)
      dense = std::make_unique<DenseAlone>(workers, transformer_products(), n * net.features[0], own.size());
    else
      convolutions = std::make_unique<ConvolutionsAlone>(workers, net.convolutions(), n, own.size());
  }
  LossScaledSteps training(trainer);
  Record warm_up, steps, passes;
  for (int i = 0; i < 3; ++i) training.step();
  for (int i = 0; i < 5; ++i) warm_up.time([&] { training.step(); });
  const auto count = static_cast<int>(
      arguments.steps > 0 ? arguments.steps
                          : std::clamp(static_cast<int>(0.5 / warm_up.summary(world).median), 5, 2000));
  const std::size_t skipped_before = training.skipped();
  for (std::int64_t r = 0; r < arguments.repeat; ++r) {
    for (int i = 0; i < count; ++i) steps.time([&] { training.step(); });
    // Alternating with the steps, so that other load affects both.
    for (int i = 0; convolutions && i < count; ++i) passes.time([&] { convolutions->run(); });
    for (int i = 0; products && i < count; ++i) passes.time([&] { products->run(); });
    for (int i = 0; dense && i < count; ++i) passes.time([&] { dense->run(); });
  }
  result.steps = steps.size();
  result.step = steps.summary(world);
  result.loss_scale = training.scale();
  result.skipped = training.skipped() - skipped_before;
  if (convolutions || products || dense) result.convolutions = passes.summary(world);
  result.layers = graph.nodes().size();
  result.activation_bytes = trainer.executor().activation_bytes();
  result.gradient_bytes = trainer.gradient_bytes();
  result.sent_bytes = trainer.bytes_sent_per_step();
  result.scratch_bytes = workers.scratch_bytes();
  result.slot_bytes = optimizer->slots().bytes();
  result.variable_bytes = variables.trainable_values().size_bytes() + result.slot_bytes;
  result.peak_bytes = peak_resident_bytes();
  result.device_peak_bytes = place.device.is_host() ? 0 : place.device.peak_bytes();
  if (arguments.parts)
    result.parts = measure_parts(context, *gradients, *control, dataset, plan, *optimizer, workers, count);
  return result;
}

void print_head(const Communicator& world) {
  fmt::print(
      "{}, {} ranks\n{:<11} {:<8} {:>6} {:>6} {:>5}x{:<4} {:>10} {:>10} {:>10} {:>11} {:>11} {:>8} {:>7} "
      "{:>7}\n",
      processor_name(), world.size(), "net", "type", "batch", "shards", "ranks", "thr", "median ms",
      "minimum", "cpu ms", "samples/s", "at minimum", "us/layer", "act MB", "peak MB");
}

void print(const Result& r) {
  const auto batch = static_cast<double>(r.batch);
  fmt::print(
      "{:<11} {:<8} {:>6} {:>6} {:>5}x{:<4} {:>10.3f} {:>10.3f} {:>10.3f} {:>11.0f} {:>11.0f} {:>8.2f} "
      "{:>7.1f} {:>7.1f}\n",
      r.net, name_of(r.compute), r.batch, r.shards, r.ranks, r.threads, 1e3 * r.step.median,
      1e3 * r.step.minimum, 1e3 * r.step.processor, batch / r.step.median, batch / r.step.minimum,
      1e6 * r.step.median / static_cast<double>(r.layers), 1e-6 * static_cast<double>(r.activation_bytes),
      1e-6 * static_cast<double>(r.peak_bytes));
  if (r.loss_scale != 1)
    fmt::print(
        "  loss scale {:.0f} at the end; steps without an update because gradients overflowed: {} of {}\n",
        r.loss_scale, r.skipped, r.steps);
  if (r.sent_bytes > 0 || r.net.starts_with("words"))
    fmt::print("  gradients: {:.2f} MB of memory, {:.3f} MB sent in a step; slots: {:.2f} MB\n",
               1e-6 * static_cast<double>(r.gradient_bytes), 1e-6 * static_cast<double>(r.sent_bytes),
               1e-6 * static_cast<double>(r.slot_bytes));
  const Times& c = r.convolutions;
  if (c.median > 0)
    fmt::print(
        "  its {:<27}{:>10.3f} {:>10.3f} {:>10.3f} {:>11.0f} {:>11.0f}  step / "
        "these: median {:.3f}, "
        "minimum {:.3f}, cpu {:.3f}\n",
        r.net.starts_with("lstm") || r.net == "transformer" ? "matrix products alone" : "convolutions alone",
        1e3 * c.median, 1e3 * c.minimum, 1e3 * c.processor, batch / c.median, batch / c.minimum,
        r.step.median / c.median, r.step.minimum / c.minimum, r.step.processor / c.processor);
  if (r.parts.forward > 0)
    fmt::print(
        "  ms, medians: refresh {:.3f}, forward {:.3f}, backward {:.3f}, sums of gradients {:.3f}, loss sum "
        "{:.3f}, update {:.3f}\n",
        1e3 * r.parts.refresh, 1e3 * r.parts.forward, 1e3 * r.parts.backward, 1e3 * r.parts.reduction,
        1e3 * r.parts.control, 1e3 * r.parts.update);
  std::fflush(stdout);
}

nlohmann::json to_json(const Result& r) {
  const auto batch = static_cast<double>(r.batch);
  nlohmann::json row = {{"net", r.net},
                        {"batch", r.batch},
                        {"shards", r.shards},
                        {"ranks", r.ranks},
                        {"threads", r.threads},
                        {"compute", name_of(r.compute)},
                        {"loss_scale", r.loss_scale},
                        {"steps_without_update", r.skipped},
                        {"steps", r.steps},
                        {"layers", r.layers},
                        {"step_median_s", r.step.median},
                        {"step_minimum_s", r.step.minimum},
                        {"step_processor_s", r.step.processor},
                        {"samples_per_s", batch / r.step.median},
                        {"samples_per_s_at_minimum", batch / r.step.minimum},
                        {"activation_bytes", r.activation_bytes},
                        {"gradient_bytes", r.gradient_bytes},
                        {"sent_bytes", r.sent_bytes},
                        {"scratch_bytes", r.scratch_bytes},
                        {"variable_and_slot_bytes", r.variable_bytes},
                        {"slot_bytes", r.slot_bytes},
                        {"shares_update", r.shares_update},
                        {"compresses", r.compresses},
                        {"peak_resident_bytes", r.peak_bytes}};
  if (r.convolutions.median > 0)
    row.update({{"convolutions_median_s", r.convolutions.median},
                {"convolutions_minimum_s", r.convolutions.minimum},
                {"convolutions_processor_s", r.convolutions.processor}});
  if (r.device_peak_bytes > 0) row["device_peak_bytes"] = r.device_peak_bytes;
  if (r.parts.forward > 0)
    row["parts_s"] = {{"refresh", r.parts.refresh},   {"forward", r.parts.forward},
                      {"backward", r.parts.backward}, {"reduction", r.parts.reduction},
                      {"control", r.parts.control},   {"update", r.parts.update}};
  return row;
}

void run_benchmark(CommEnvironment& environment, int argc, char** argv) {
  const StepArguments arguments = step_arguments(argc, argv);
  Communicator& world = environment.world();
  std::vector<const BenchNet*> nets;
  for (std::size_t at = 0; at <= arguments.nets.size();) {
    const std::size_t comma = std::min(arguments.nets.find(',', at), arguments.nets.size());
    nets.push_back(&find_net(std::string_view(arguments.nets).substr(at, comma - at)));
    at = comma + 1;
  }
  nlohmann::json rows = nlohmann::json::array();
  if (world.rank() == 0) print_head(world);
  for (const BenchNet* net : nets) {
    const Result result = measure(world, arguments, *net);
    if (world.rank() != 0) continue;
    print(result);
    rows.push_back(to_json(result));
  }
  if (world.rank() != 0 || arguments.json.empty()) return;
  std::ofstream file(arguments.json);
  file << nlohmann::json{{"processor", processor_name()},
                         {"cores", available_cores()},
                         {"kernels", primitive_library_version()},
                         {"mpi", mpi_library_version()},
                         {"rows", rows}}
              .dump(2)
       << "\n";
  file.close();
  if (!file) throw Error(ErrorKind::data, "the results could not be written", arguments.json);
}

}  // namespace

int main(int argc, char** argv) {
#ifdef LOCKSTEP_BENCH_GPU
  lockstep::register_backend(lockstep::cuda_backend());
#endif
  CommEnvironment environment({.timeout_seconds = 120});
  try {
    run_benchmark(environment, argc, argv);
    environment.finalize();
    return 0;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage || environment.world().rank() == 0)
      std::fprintf(stderr, "step_bench: %s\n", error.what());
    environment.abort(exit_code(error.kind()));
  }
}

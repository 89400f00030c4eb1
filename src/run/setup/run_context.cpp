// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/run_context.h"

#include <algorithm>
#include <cstdlib>

#include "comm/agree.h"
#include "comm/device_communicator.h"
#include "comm/flight_recorder.h"
#include "comm/mpi_device_communicator.h"
#include "comm/shared_error.h"
#include "comm/startup_check.h"
#include "comm/tree_reduction.h"
#include "config/yaml_node.h"
#include "core/cpu.h"
#include "core/hash.h"
#include "core/process_environment.h"
#include "core/range.h"
#include "core/version.h"
#include "data/kept_index.h"
#include "data/normalization.h"
#include "data/reader_dataset.h"
#include "data/whitening.h"
#include "run/sections/tf_config.h"
#include "run/setup/normalize_sets.h"
#include "run/setup/run_size.h"
#include "run/setup/shared_sets.h"
#include "run/setup/train_setup.h"
#include "run/setup/widened_products.h"
#include "train/fault_step.h"

namespace lockstep {

namespace {

/// What the start-up check compares of the model: names, shapes and order of the variables.
std::string variable_table_text(const VariableStore& variables) {
  std::string text;
  for (const Variable& variable : variables.variables())
    text += fmt::format("{} {} {}\n", variable.name, variable.shape.to_string(),
                        variable.trainable ? "trainable" : (variable.frozen ? "frozen" : "state"));
  return text;
}

/// Of all inputs.
std::string normalization_of(const Dataset& data) {
  std::string text;
  for (const DatasetPart& part : data.parts()) {
    const StageNumbers numbers = part.data->stages().numbers();
    if (numbers.normalization != nullptr) text += normalization_text(*numbers.normalization);
    if (numbers.whitening != nullptr) text += fmt::format("{:x}", hash64(whitening_file(*numbers.whitening)));
    text += "\n";
  }
  return text;
}

/// For training; evaluations and predictions need no roles.
void take_tf_config(Config& config) {
  const Params& section = config.section("cluster");
  resolve_tf_config(config.cluster, section, process_environment);
  if (cluster_tasks(section, process_environment).is_evaluator())
    throw Error(ErrorKind::config, "this task is the evaluator, which does not train", "TF_CONFIG",
                "Start `lockstep experiment`, or `lockstep watch RUN_DIR`.");
}

}  // namespace

RunContext::RunContext(CommEnvironment& environment, Config config,
                       std::optional<std::int64_t> shards_from_checkpoint, const RunNeeds& needs)
    : environment_(environment), config_(std::move(config)) {
  set_long_phase("reading data and building the model");
  shared([&] {
    if (needs.updates)
      agree(
          world(), [&] { take_tf_config(config_); }, "reading TF_CONFIG");
    const CommEnvironment::LocalRanks local = environment_.local_ranks();
    ranks_on_host_ = local.count;
    agree(
        world(), [&] { device_.emplace(open_device(config_, local.rank)); }, "opening the device");
    device_table_ = lockstep::device_table(world(), *device_, &shares_gpus_);
    // Before any rank opens a file: what the chief found must not end another one (data_trial.h).
    agree(
        world(),
        [&] {
          if (config_.data.failure) throw Error(*config_.data.failure);
        },
        "trying the data files");
    OpenedData opened;
    agree(
        world(),
        [&] {
          const std::string folder = needs.index_in.empty() ? "" : needs.index_in + "/index";
          const IndexFolder index(folder, is_chief() && needs.updates);
          opened = open_data(config_, needs.train, needs.eval);
          index.remove_unused();
        },
        "opening the data");
    share_bad_records(world(), opened, needs.kept_in, lockstep::cores_per_rank(ranks_on_host_));
    cores_ = lockstep::cores_per_rank(ranks_on_host_);
    RunNeeds mine = needs;
    mine.ranks_on_host = ranks_on_host_;
    const std::unique_ptr<Communicator> host = world().split_by_host("host");
    share_memory_of_host(world(), *host, config_, mine, opened);
    DataAndModel parts;
    agree(
        world(), [&] { parts = read_data(config_, mine, std::move(opened)); }, "reading data");
    const auto normalize = [&] { normalize_sets(world(), parts.train, parts.eval, needs.kept_in, cores_); };
    // After the model, whose mistakes are said at once, unless it depends on the numbers.
    const bool normalizes_first = !knows_shapes(parts);
    if (normalizes_first) normalize();
    agree(
        world(),
        [&] { add_model(parts, config_, device_->device, mine, device_->memory_bytes(ranks_on_host_)); },
        "reading data and building the model");
    int total_cores = 0;
    std::vector<int> all(static_cast<std::size_t>(world().size()));
    world().allgather(&cores_, sizeof cores_, all.data(), "cores of each rank");
    for (int cores : all) total_cores += cores;
    const int computing = device_->is_gpu() ? 0 : total_cores;
    shards_ = choose_shards(config_, shards_from_checkpoint, std::max(computing, world().size()));
    if (world().size() > shards_)
      throw Error(
          ErrorKind::config,
          fmt::format("{} ranks are too many: a batch is cut into {} shards, and every rank needs one",
                      world().size(), shards_),
          config_.section("").where("shards"),
          fmt::format("Start at most {} ranks, or begin a new run with more shards.", shards_));
    const Range own = shards_of_rank(world().rank(), world().size(), shards_);
    const int threads =
        device_->is_gpu() ? 1  // it only submits work to the GPU
                          : choose_threads(config_, is_chief(), ranks_on_host_, static_cast<int>(own.size()));
    workers_ = std::make_unique<Workers>(threads, device_->device);
    if (!normalizes_first) normalize();
    train_set_ = std::move(parts.train);
    eval_set_ = std::move(parts.eval);
    model_ = std::move(parts.model);
    model_.variables->initialize(seed());
    check_same_everywhere();
  });
  gradients_ = world().duplicate("gradients");
  sync_ = world().duplicate("batch norm");
  control_ = world().duplicate("control");
  shared([&] { connect_devices(); });
}

// Two groups, one per stream: NCCL's calls of one group must come in the same order on all ranks. Of batch
// norm's, only the allgather is used.
void RunContext::connect_devices() {
  const MakeDeviceCommunicator make = device_communicator();
  if (!device_->is_gpu() || world().size() == 1) return;
  if (shares_gpus_ || make == nullptr) return connect_devices_by_mpi();
  gradient_stream_.emplace(device_->device);
  direct_gradients_ = make(*gradients_, device_->device, gradient_stream_->get(), "gradients");
  direct_sync_ = make(*sync_, device_->device, workers_->lanes().front().stream, "batch norm");
  const bool fast = config_.comm.fast_reduction;
  const std::vector<int> peers =
      fast ? std::vector<int>{} : TreeReduction::peers_of(world().rank(), world().size(), shards_);
  direct_gradients_->connect({.peers = peers, .allreduces = fast});
  direct_sync_->connect({});
}

// Batch norm's few numbers go through the host all the same: they are too small for a difference.
void RunContext::connect_devices_by_mpi() {
  using enum CommunicationOptions::GpuAwareMpi;
  const CommunicationOptions::GpuAwareMpi wanted = config_.comm.gpu_aware_mpi;
  const char mine = wanted == on || (wanted == automatic && mpi_takes_device_memory()) ? 1 : 0;
  std::vector<char> all(static_cast<std::size_t>(world().size()));
  world().allgather(&mine, sizeof mine, all.data(), "does MPI take GPU memory");
  if (std::ranges::find(all, 0) != all.end()) return;
  gradient_stream_.emplace(device_->device);
  direct_gradients_ =
      make_mpi_device_communicator(*gradients_, device_->device, gradient_stream_->get(), "gradients");
  direct_gradients_->connect({});
}

std::vector<NamedText> RunContext::environment() const {
  std::vector<NamedText> fields = {
      {"Lockstep's build", fmt::format("{} {}", kVersion, kBuild)},
      {"instruction set", name_of(isa_level())},
      {"oneDNN", primitive_library_version(config_.precision.compute)},
      {"device", device_->is_gpu() ? device_->description.name : "cpu"},
      {"activations", std::string(name_of(config_.precision.compute))},
      {"MPI library", mpi_library_version()},
      {"sums of gradients",
       config_.comm.fast_reduction
           ? fmt::format("in the order of MPI_Allreduce on {} ranks", environment_.world().size())
       : config_.comm.error_feedback ? "along the tree, nodes rounded to bfloat16, with error feedback"
       : config_.comm.compress       ? "along the tree, nodes rounded to bfloat16"
                                     : "along the tree"},
      {"training data", train_set_ ? train_set_->fingerprint() : ""}};
  const std::vector<NamedText> gpu = gpu_libraries();
  fields.insert(fields.end(), gpu.begin(), gpu.end());
  return fields;
}

std::vector<NamedText> RunContext::gpu_libraries() const {
  if (!device_->is_gpu()) return {};
  std::vector<NamedText> fields = device_->backend->versions();
  fields.emplace_back("GPU", device_->description.name);
  fields.emplace_back("GPU multiprocessors", std::to_string(device_->description.num_multiprocessors));
  return fields;
}

std::vector<NamedText> RunContext::gpu_identity() const {
  std::vector<NamedText> fields = gpu_libraries();
  if (device_->is_gpu()) fields.emplace_back("GPU algorithms", device_->backend->chosen_algorithms());
  return fields;
}

void RunContext::check_algorithms() {
  std::vector<NamedText> fields{{"products that are computed in float32", widened_products(*model_.graph)}};
  if (device_->is_gpu()) fields.emplace_back("GPU algorithms", device_->backend->chosen_algorithms());
  require_same(world(), fields);
}

void RunContext::check_same_everywhere() {
  Node root = config_.root;
  std::vector<NamedText> fields = environment();
  fields.insert(fields.end(), {{"evaluation data", eval_set_ ? eval_set_->fingerprint() : ""},
                               {"normalisation", normalization_of(train_set_ ? *train_set_ : *eval_set_)},
                               {"configuration", to_yaml(root) + fault_in_config()},
                               {"shards", std::to_string(shards_)},
                               {"variables", variable_table_text(*model_.variables)},
                               {"initial values", std::to_string(model_.variables->hash())}});
  require_same(world(), fields);
}

ExecutorContext RunContext::executor_context() {
  return {*model_.graph,
          *model_.variables,
          *model_.heads,
          device_->kernels,
          device_->device,
          workers_->pool(),
          workers_->lanes(),
          *sync_,
          direct_sync_.get(),
          shards_,
          seed()};
}

}  // namespace lockstep

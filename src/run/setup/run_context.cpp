// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/run_context.h"

#include <fmt/format.h>
#include <cstdlib>

#include "comm/agree.h"
#include "comm/flight_recorder.h"
#include "comm/shared_error.h"
#include "comm/startup_check.h"
#include "config/yaml_node.h"
#include "core/cpu.h"
#include "core/hash.h"
#include "core/process_environment.h"
#include "core/version.h"
#include "data/normalization.h"
#include "data/reader_dataset.h"
#include "data/whitening.h"
#include "optim/optimizer.h"
#include "run/sections/tf_config.h"
#include "run/setup/balance_classes.h"
#include "run/setup/gpu_description.h"
#include "run/setup/normalize_sets.h"
#include "run/setup/widened_products.h"
#include "train/fault_step.h"

namespace lockstep {

namespace {

// On disk: do not change.
constexpr const char* kWrongAlgorithms = "GPU algorithms that compute wrongly";
constexpr const char* kInexactAlgorithms = "GPU algorithms that round otherwise";

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
    : environment_(environment), config_(std::move(config)), optimizer_(config_.optimizer.make()) {
  set_long_phase("reading data and building the model");
  shared([&] {
    if (needs.updates) take_roles();
    place_.emplace(place_of_rank(environment_, config_));
    data_ = read_run_data(environment_, config_, needs, *place_);
    // Before the samples are read for their normalisation: then mistakes in the model are said at once.
    if (data_.knows_shapes()) build_model(needs);
    size_ = size_of_run(world(), config_, *place_, shards_from_checkpoint);
    workers_ = std::make_unique<Workers>(size_.threads, device().device);
    normalize_sets(world(), data_.train, data_.eval, needs.kept_in, place_->cores, needs.kept.get());
    if (model_.graph == nullptr) build_model(needs);
    balance_classes(world(), *model_.heads, data_.train_is_described ? UsedDataset() : data_.train, needs,
                    device().device);
    model_.variables->initialize(seed());
    check_same_everywhere();
  });
  communicators_.emplace(world());
  shared([&] { communicators_->connect_devices(world(), config_, *place_, *workers_, size_.shards); });
}

RunContext::~RunContext() = default;

std::unique_ptr<Optimizer> RunContext::take_optimizer() {
  LOCKSTEP_CHECK(optimizer_ != nullptr, "the optimizer of the run is taken");
  return std::move(optimizer_);
}

// Training has them; evaluations and predictions need none.
void RunContext::take_roles() {
  agree(
      world(), [&] { take_tf_config(config_); }, "reading TF_CONFIG");
}

void RunContext::build_model(const RunNeeds& needs) {
  agree(
      world(),
      [&] {
        model_ = model_for(data_, config_, optimizer_.get(), device().device, needs,
                           device().memory_bytes(place_->ranks_on_host));
      },
      "reading data and building the model");
}

std::vector<NamedText> RunContext::environment() const {
  std::vector<NamedText> fields = {
      {"Lockstep's build", fmt::format("{} {}", kVersion, kBuild)},
      {"instruction set", name_of(isa_level())},
      {"oneDNN", primitive_library_version(config_.precision.compute)},
      {"device", device().is_gpu() ? device().description.name : "cpu"},
      {"activations", std::string(name_of(config_.precision.compute))},
      {"MPI library", mpi_library_version()},
      {"sums of gradients",
       config_.comm.fast_reduction
           ? fmt::format("in the order of MPI_Allreduce on {} ranks", environment_.world().size())
       : config_.comm.error_feedback ? "along the tree, nodes rounded to bfloat16, with error feedback"
       : config_.comm.compress       ? "along the tree, nodes rounded to bfloat16"
                                     : "along the tree"},
      {"training data", data_.train ? data_.train->fingerprint() : ""}};
  const std::vector<NamedText> gpu = gpu_libraries();
  fields.insert(fields.end(), gpu.begin(), gpu.end());
  return fields;
}

std::vector<NamedText> RunContext::gpu_libraries() const {
  if (!device().is_gpu()) return {};
  std::vector<NamedText> fields = device().backend->versions();
  fields.emplace_back("GPU", device().description.name);
  fields.emplace_back("GPU multiprocessors", std::to_string(device().description.num_multiprocessors));
  return fields;
}

std::vector<NamedText> RunContext::gpu_identity() const {
  std::vector<NamedText> fields = gpu_libraries();
  if (!device().is_gpu()) return fields;
  fields.emplace_back("GPU algorithms", device().backend->chosen_algorithms());
  if (std::string wrong = device().backend->wrong_algorithms(); !wrong.empty())
    fields.emplace_back(kWrongAlgorithms, std::move(wrong));
  if (std::string inexact = device().backend->inexact_algorithms(); !inexact.empty())
    fields.emplace_back(kInexactAlgorithms, std::move(inexact));
  return fields;
}

void RunContext::check_algorithms() {
  std::vector<NamedText> fields;
  std::string wrong;
  if (device().is_gpu()) wrong = device().backend->wrong_algorithms();
  if (device().is_gpu()) fields.emplace_back(kWrongAlgorithms, wrong);  // first: it explains the others
  fields.emplace_back("products that are computed in float32", widened_products(*model_.graph));
  if (device().is_gpu()) fields.emplace_back("GPU algorithms", device().backend->chosen_algorithms());
  require_same(world(), fields);
  if (is_chief()) warn_of_wrong_algorithms(wrong, warned_algorithms_);
  warned_algorithms_ = wrong;
}

void RunContext::check_same_everywhere() {
  Node root = config_.root;
  std::vector<NamedText> fields = environment();
  fields.insert(fields.end(), {{"evaluation data", data_.eval ? data_.eval->fingerprint() : ""},
                               {"normalisation", normalization_of(data_.first())},
                               {"configuration", to_yaml(root) + fault_in_config()},
                               {"shards", std::to_string(size_.shards)},
                               {"variables", variable_table_text(*model_.variables)},
                               {"initial values", std::to_string(model_.variables->hash())}});
  require_same(world(), fields);
}

ExecutorContext RunContext::executor_context() {
  return {*model_.graph,
          *model_.variables,
          *model_.heads,
          device().kernels,
          device().device,
          workers_->pool(),
          workers_->lanes(),
          communicators_->batch_norm(),
          communicators_->direct_batch_norm(),
          size_.shards,
          seed()};
}

}  // namespace lockstep

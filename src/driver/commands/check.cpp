// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep check`: validates a configuration; prints the layer table, memory and bytes per step; runs
// nothing.
#include "driver/commands/commands.h"

#include <algorithm>

#include "comm/self_communicator.h"
#include "comm/tree.h"
#include "driver/setup/compute_device.h"
#include "driver/setup/run_size.h"
#include "driver/setup/train_setup.h"
#include "driver/setup/widened_products.h"
#include "model/memory_plan.h"
#include "session/hook_table.h"
#include "train/evaluation_metrics.h"
#include "train/trainer.h"

namespace lockstep {

namespace {

/// Where activations are held in 16 bits, with the type of each layer's, and of its products if they are in
/// another one. The layers were prepared.
void print_layers(const Model& model, const Graph::Calls& calls) {
  const bool typed = model.graph->activation_type() != DType::f32;
  fmt::print("{:<20} {:<16} {:>14} {:>12} {:>14}{}\n", "layer", "kind", "output", "parameters",
             "MFLOP/sample", typed ? "  type" : "");
  fmt::print("{:<20} {:<16} {:>14} {:>12} {:>14}{}\n", "features", "", model.graph->features().to_string(),
             "", "", typed ? "  float32" : "");
  const auto typed_as = [](const Graph::Node& node, DType type) {
    return fmt::format("  {}{}", name_of(type),
                       node.layer->traits().widened_products.empty() ? "" : ", products in float32");
  };
  const std::span<const Graph::Node> nodes = model.graph->nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Graph::Node& node = nodes[i];
    std::string kind = node.layer->kind();
    if (node.fused_into >= 0) kind += " (fused)";
    const auto value = static_cast<std::size_t>(calls.node_values[i].front());
    fmt::print("{:<20} {:<16} {:>14} {:>12} {:>14.3f}{}\n", node.layer->name(), kind,
               node.outputs[0].to_string(), node.parameters, node.layer->traits().flops_per_sample / 1e6,
               typed ? typed_as(node, calls.values[value].type) : "");
  }
  fmt::print("{:<20} {:<16} {:>14} {:>12} {:>14.3f}\n\n", "total", "", "", model.variables->num_parameters(),
             model.graph->flops_per_sample() / 1e6);
}

/// A configuration for GPUs may be checked where there are none, on a login node for one: then on the CPU.
ComputeDevice device_here(const Config& config, std::string& no_gpu) {
  try {
    return open_device(config, 0);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::config) throw;
    no_gpu = error.what_happened();
    return {cpu_device(), cpu_kernels(), -1, {}};
  }
}

/// Takes everything that training takes on one rank, so that the number is no guess.
void print_gpu_memory(const ComputeDevice& device, Model& model, const Config& config, const Dataset& train,
                      const StepPlan& plan) {
  SelfCommunicator self;
  Workers workers(1, device.device);
  const auto optimizer = config.optimizer.make();
  optimizer->create_slots(device.device, *model.variables);
  const ExecutorContext context{*model.graph,
                                *model.variables,
                                *model.heads,
                                device.kernels,
                                device.device,
                                workers.pool(),
                                workers.lanes(),
                                self,
                                nullptr,
                                static_cast<int>(plan.spec().shards),
                                0};
  const Trainer trainer(context, self, self, train, plan, *optimizer, {});
  workers.grow_scratch(trainer.scratch_bytes());
  fmt::print("GPU memory        {:.2f} MB for training on one rank, of {:.0f} MB of {}\n",
             static_cast<double>(device.device.peak_bytes()) * 1e-6,
             static_cast<double>(device.description.memory_bytes) * 1e-6, device.description.name);
}

}  // namespace

int run_command(const CheckArguments& arguments) {
  const Config config = load_config(arguments.config, arguments.overrides);
  const std::unique_ptr<Dataset> train = open_training_set(config.data, config.base_directory),
                                 eval = open_evaluation_set(config.data, config.base_directory);
  std::string no_gpu;
  const ComputeDevice device = device_here(config, no_gpu);
  Model model = make_model(config.model, train->feature_shape(), model_storage(config), device.device);
  check_labels(model, *train);
  if (eval) check_labels(model, *eval);
  if (eval) bind_metrics(config.eval.metrics, *model.heads, *model.graph, *eval);
  const int shards = choose_shards(config, std::nullopt, device.is_gpu() ? 1 : cores_per_rank(1));
  const std::int64_t batch = config.train.batch_size;
  const StepPlan plan({.num_samples = train->size(),
                       .batch_size = batch,
                       .shards = shards,
                       .seed = 0,
                       .shuffle = false,
                       .drop_remainder = config.train.drop_remainder});
  const std::vector<std::int64_t> sizes = plan.distinct_shard_sizes();
  const Graph::Calls calls = model.graph->prepare({.kernels = device.kernels,
                                                   .device = device.device,
                                                   .lanes = 1,
                                                   .training = true,
                                                   .sample_counts = sizes,
                                                   .wants_input_gradient = {},
                                                   .shards = shards});
  print_layers(model, calls);
  const MemoryPlan memory(calls, true, sizes.back());
  const bool meets = std::any_of(calls.operations.begin(), calls.operations.end(),
                                 [](const auto& op) { return op.collective != nullptr; });
  const double mb = 1e-6, parameters = 4.0 * static_cast<double>(model.variables->trainable_elements());
  const double dense = 4.0 * static_cast<double>(model.variables->dense_elements());
  const auto optimizer = config.optimizer.make();
  fmt::print("training set      {} samples of {} {}\n", train->size(), train->feature_shape().to_string(),
             name_of(train->feature_dtype()));
  if (!calls.casts.empty()) {
    std::vector<std::string> names;
    for (const auto& cast : calls.casts) names.push_back(cast->name());
    fmt::print("casts             {}\n", fmt::join(names, ", "));
  }
  if (const std::string widened = widened_products(*model.graph); !widened.empty())
    fmt::print("float32 products  {}\n", widened);
  if (eval) fmt::print("evaluation set    {} samples\n", eval->size());
  fmt::print("batch             {} samples in {} shards, {} steps per epoch\n", batch, shards,
             plan.steps_per_epoch());
  fmt::print("variables         {:.2f} MB, gradients {:.2f} MB or more, {} slots {:.2f} MB\n",
             parameters * mb, dense * mb, optimizer->slot_names().size(),
             parameters * mb * static_cast<double>(optimizer->slot_names().size()));
  double sparse = 0;
  for (const VariableId id : model.variables->sparse()) {
    const Variable& table = (*model.variables)[id];
    const std::int64_t rows = table.row_bound->per_sample * batch + table.row_bound->per_step;
    const double bytes = 4.0 * static_cast<double>(rows) *
                         (1 + static_cast<double>(table.shape.num_elements() / table.shape[0]));
    sparse += bytes;
    fmt::print("sparse gradient   {}: at most {} of {} rows in a step, {:.2f} MB\n", table.name, rows,
               table.shape[0], bytes * mb);
  }
  fmt::print("activations       {:.2f} MB per microshard; {}\n",
             static_cast<double>(memory.total_bytes()) * mb,
             meets ? fmt::format("all microshards of a rank are in flight: {:.2f} MB on one rank",
                                 static_cast<double>(memory.total_bytes()) * mb * shards)
                   : std::string("one microshard per thread is in flight"));
  fmt::print("data in memory    {:.2f} MB on every rank\n",
             (static_cast<double>(train->size()) + (eval ? static_cast<double>(eval->size()) : 0)) * mb *
                 static_cast<double>(train->feature_shape().num_elements()) *
                 static_cast<double>(size_in_bytes(train->feature_dtype())));
  for (int ranks = 2; ranks <= shards; ranks *= 2)
    fmt::print("sent per step     {:.2f} MB by each of {} ranks for the gradients\n",
               1.0 * (ranks - 1) / ranks * (2 * dense + sparse) * mb, ranks);
  if (device.is_gpu()) print_gpu_memory(device, model, config, *train, plan);
  if (!no_gpu.empty()) fmt::print("GPU memory        not known here: {}\n", no_gpu);
  fmt::print("The configuration is good.\n");
  return 0;
}

}  // namespace lockstep

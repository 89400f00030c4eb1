// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/check_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/name_list.h"
#include "data/bad_records.h"
#include "data/class_quotas.h"
#include "data/reader_dataset.h"
#include "io/print_result.h"
#include "model/memory_plan.h"
#include "model/recomputation.h"
#include "optim/optimizer.h"
#include "run/setup/clock_of_run.h"
#include "run/setup/widened_products.h"
#include "tools/samples/length_statistics.h"
#include "train/noise_scale.h"
#include "train/one_value_statistics.h"
#include "train/output_units.h"
#include "train/rounds_in_flight.h"

namespace lockstep {

namespace {

constexpr double kMegabytes = 1e-6;  // per byte

std::string chosen_text(const UsedDataset& data) {
  return data.use().choice == nullptr ? fmt::format("{}", data->size())
                                      : fmt::format("{} of {}", data.num_chosen(), data->size());
}

/// The samples of the first classes, and how often they are in an epoch.
std::string classes_text(const ClassQuotas& quotas, const std::vector<std::string>& sources) {
  constexpr std::size_t kShown = 20;
  const ClassLists& lists = quotas.lists();
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(kShown, lists.size()); ++i)
    texts.push_back(fmt::format("{}: {} of {}",
                                sources.empty() ? std::to_string(lists.labels()[i]) : sources[i],
                                quotas.quota(i), lists.samples(i).size()));
  if (lists.size() > kShown) texts.push_back(fmt::format("and {} more", lists.size() - kShown));
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// "8x8x1 uint8", or each of several inputs, and targets.
std::string form_text(const Dataset& data) {
  const auto texts_of = [](const std::vector<DatasetPart>& sets) {
    std::vector<std::string> texts;
    for (const DatasetPart& set : sets)
      texts.push_back(fmt::format("{}{}{} {}", set.name, set.name.empty() ? "" : " ",
                                  set.data->feature_shape().to_string(), name_of(set.data->feature_dtype())));
    return fmt::format("{}", fmt::join(texts, ", "));
  };
  return texts_of(data.inputs()) +
         (data.targets().empty() ? "" : fmt::format("; targets: {}", texts_of(data.targets())));
}

void print_bad_records(const Dataset& data) {
  for (const std::string& note : bad_records_notes(data)) print_result("bad records       {}\n", note);
}

/// Heads whose predictions will not be in the units of the data.
void print_units(const Sizes& sizes) {
  const std::vector<DatasetPart> targets = sizes.data.train->targets();
  const auto is_fitted = [](const DatasetPart& target) { return target.data->stages().are_fitted(); };
  if (!std::ranges::all_of(targets, is_fitted)) return;
  const Heads& heads = *sizes.model.heads;
  for (int head = 0; head < heads.size(); ++head)
    if (const OutputUnits units(*sizes.data.train, heads, head); !units.problem().empty())
      print_result("predictions       {}in units of training, not of the data: {}\n", heads[head].prefix(),
                   units.problem());
}

}  // namespace

/// Where activations are held in 16 bits, with the type of each layer's, and of its products if they are in
/// another one. The layers were prepared.
void print_layers(const Model& model, const Graph::Calls& calls) {
  const bool typed = model.graph->activation_type() != DType::f32;
  const bool frozen = model.variables->num_frozen_parameters() > 0;
  const auto counts = [&](auto trainable, auto kept) {
    return frozen ? fmt::format("{:>12} {:>12}", trainable, kept) : fmt::format("{:>12}", trainable);
  };
  print_result("{:<20} {:<16} {:>14} {} {:>14}{}\n", "layer", "kind", "output",
               counts(frozen ? "trainable" : "parameters", "frozen"), "MFLOP/sample", typed ? "  type" : "");
  print_result("{:<20} {:<16} {:>14} {} {:>14}{}\n", "features", "", model.graph->features().to_string(),
               counts("", ""), "", typed ? "  float32" : "");
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
    print_result("{:<20} {:<16} {:>14} {} {:>14.3f}{}\n", node.layer->name(), kind,
                 node.outputs[0].to_string(), counts(node.parameters, node.frozen_parameters),
                 node.layer->traits().flops_per_sample / 1e6,
                 typed ? typed_as(node, calls.values[value].type) : "");
  }
  print_result("{:<20} {:<16} {:>14} {} {:>14.3f}\n\n", "total", "", "",
               counts(model.variables->num_parameters(), model.variables->num_frozen_parameters()),
               model.graph->flops_per_sample() / 1e6);
}

void print_data(const Sizes& sizes) {
  const UsedDataset &train = sizes.data.train, &eval = sizes.data.eval;
  print_result("training set      {} samples of {}\n", chosen_text(train), form_text(*train));
  print_bad_records(*train);
  if (train.use().quotas != nullptr)
    print_result("in an epoch       {} ({}: uses of samples)\n",
                 classes_text(*train.use().quotas, sizes.sources),
                 sizes.sources.empty() ? "class" : "source");
  if (train.use().buckets != nullptr) print_result("length buckets    {}\n", bucket_line(sizes.plan));
  if (!sizes.calls.casts.empty()) {
    std::vector<std::string> names;
    for (const auto& cast : sizes.calls.casts) names.push_back(cast->name());
    print_result("casts             {}\n", name_list(names));
  }
  const Graph& graph = *sizes.model.graph;
  if (const std::string widened = widened_products(graph); !widened.empty())
    print_result("float32 products  {}\n", widened);
  if (eval) {
    print_result("evaluation set    {} samples\n", chosen_text(eval));
    print_bad_records(*eval);
  }
  print_result("batch             {} samples in {}, {} steps per epoch\n", sizes.plan.spec().batch_size,
               shards_text(sizes.shards(), sizes.rounds), sizes.plan.steps_per_epoch());
  print_units(sizes);
  if (const std::string one_value = one_value_statistics(graph, sizes.plan); !one_value.empty())
    print_result("warning           {}\n", one_value);
  for (const std::string& warning : sizes.warnings) print_result("warning           {}\n", warning);
}

double print_variables(const Sizes& sizes) {
  const double parameters = 4.0 * static_cast<double>(sizes.variables().trainable_elements());
  const std::size_t slots = sizes.optimizer.slot_names().size();
  print_result("variables         {:.2f} MB, gradients {:.2f} MB or more, {} slots {:.2f} MB\n",
               parameters * kMegabytes, sizes.dense_bytes() * kMegabytes, slots,
               parameters * kMegabytes * static_cast<double>(slots));
  if (sizes.shard && slots > 0)
    print_result(
        "sharded           the update: of R ranks, each holds 1/R of the slots of dense variables\n");
  if (!sizes.servers.empty()) print_result("servers           {}\n", sizes.servers);
  if (sizes.residuals > 0)
    print_result("error feedback    {:.2f} MB of residuals, divided among the ranks\n",
                 static_cast<double>(sizes.residuals) * kMegabytes);
  if (const MatrixMemory& memory = sizes.matrices; memory.work > 0) {
    const std::string state =
        memory.state == 0 ? ""
                          : fmt::format(", and {:.2f} MB of statistics and roots, divided among the ranks",
                                        static_cast<double>(memory.state) * kMegabytes);
    print_result("whole matrices    {:.2f} MB of work memory with one thread{}\n",
                 static_cast<double>(memory.work) * kMegabytes, state);
  }
  for (const Optimizer::Described& part : sizes.optimizer.describe(sizes.variables())) {
    print_result("update            {}\n", part.rule);
    if (!part.variables.empty()) print_result("                  of {}\n", fmt::join(part.variables, ", "));
  }
  if (!sizes.gating.empty()) print_result("gating            {}\n", sizes.gating);
  if (sizes.average)
    print_result("moving average    {:.2f} MB: {}\n", parameters * kMegabytes,
                 sizes.average->resolved(RunClock(epoch_shape(sizes.plan))).describe());
  double sparse = 0;
  for (const VariableId id : sizes.variables().sparse()) {
    const Variable& table = sizes.variables()[id];
    const std::int64_t rows =
        table.row_bound->per_sample * sizes.plan.spec().batch_size + table.row_bound->per_step;
    const double bytes = 4.0 * static_cast<double>(rows) *
                         (1 + static_cast<double>(table.shape.num_elements() / table.shape[0]));
    sparse += sizes.compress ? 4.0 * static_cast<double>(rows) + (bytes - 4.0 * static_cast<double>(rows)) / 2
                             : bytes;
    print_result("sparse gradient   {}: at most {} of {} rows in a step, {:.2f} MB\n", table.name, rows,
                 table.shape[0], bytes * kMegabytes);
  }
  return sparse;
}

void print_memory(const Sizes& sizes) {
  const std::int64_t largest = sizes.plan.distinct_shard_sizes().back();
  const double megabytes =
      static_cast<double>(MemoryPlan(sizes.calls, true, largest).total_bytes()) * kMegabytes;
  print_result("activations       {:.2f} MB per microshard; {}\n", megabytes,
               in_flight_text(sizes.calls, sizes.on_device, megabytes, sizes.shards(), sizes.branches));
  if (const std::string text = recomputation_text(sizes.model.graph->recompute(), sizes.calls, largest);
      !text.empty())
    print_result("recomputation     {}\n", text);
  if (sizes.branches)
    print_result(
        "branches          {} microshard{} at a time on one rank; each after the first takes {:.2f} MB\n",
        *sizes.branches, *sizes.branches == 1 ? "" : "s",
        static_cast<double>(sizes.branch_bytes) * kMegabytes);
  if (const std::string warning = rounds_save_nothing(sizes.calls, sizes.on_device, sizes.rounds);
      !warning.empty())
    print_result("warning           {}\n", warning);
  if (const std::string warning = noise_scale_warning(sizes.calls); sizes.noise_scale && !warning.empty())
    print_result("warning           {}\n", warning);
  std::int64_t all = 0, in_memory = 0;
  for (const Dataset* const data : {sizes.data.train.get(), sizes.data.eval.get()}) {
    if (data == nullptr) continue;
    all += data->size_bytes();
    in_memory += data->memory_bytes();
  }
  print_result("data in memory    {:.2f} MB on every rank{}\n", static_cast<double>(in_memory) * kMegabytes,
               in_memory < all ? fmt::format(" of {:.2f} MB; the rest is read while it is used",
                                             static_cast<double>(all) * kMegabytes)
                               : "");
}

void print_messages(const Sizes& sizes, double sparse_bytes) {
  // To the owner of a part as a sum, and from it as the total, or as variables where it updates them.
  const double ways = !sizes.compress ? 2 : sizes.shard ? 1.5 : 1;
  for (std::int64_t ranks = 2; ranks <= sizes.shards(); ranks *= 2)
    print_result("sent per step     {:.2f} MB by each of {} ranks for the gradients\n",
                 static_cast<double>(ranks - 1) / static_cast<double>(ranks) *
                     (ways * sizes.dense_bytes() + sparse_bytes) * kMegabytes,
                 ranks);
}

void print_gpu_memory(const ComputeDevice& device, const std::string& no_gpu) {
  if (device.is_gpu())
    print_result("GPU memory        {:.2f} MB for training on one rank, of {:.0f} MB of {}\n",
                 static_cast<double>(device.device.peak_bytes()) * kMegabytes,
                 static_cast<double>(device.description.memory_bytes) * kMegabytes, device.description.name);
  if (!no_gpu.empty()) print_result("GPU memory        not known here: {}\n", no_gpu);
}

}  // namespace lockstep

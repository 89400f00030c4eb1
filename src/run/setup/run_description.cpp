// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/run_description.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "config/yaml_node.h"
#include "core/scalar.h"
#include "run/sections/config_tables.h"
#include "session/run_graph.h"

namespace lockstep {

namespace {

constexpr std::size_t kMostCharacters = 200;  // of a text as hyper-parameter

/// Sections and options that say where data are, or what happens around the training: nothing to compare runs
/// by.
constexpr std::array<std::string_view, 19> kNotHyperParameters = {"base_directory",
                                                                  "checkpoint",
                                                                  "cluster.placement",
                                                                  "cluster.ps",
                                                                  "comm",
                                                                  "data",
                                                                  "device",
                                                                  "eval",
                                                                  "experiment",
                                                                  "hooks",
                                                                  "name",
                                                                  "plugins",
                                                                  "summary",
                                                                  "sweep",
                                                                  "threads",
                                                                  "train.max_jobs_without_progress",
                                                                  "train.max_recoveries",
                                                                  "train.max_setbacks",
                                                                  "train.time_margin"};

std::string clip_text(const ClipRule& rule) {
  constexpr std::string_view kNames[] = {"", "global_norm", "norm", "average_norm", "value"};
  return std::string(kNames[static_cast<std::size_t>(rule.by)]);
}

HParam hparam_of(const Node& scalar) {
  if (!scalar.quoted) {
    if (kind_of_scalar(scalar.text) == ScalarKind::boolean)
      return scalar.text[0] == 't' || scalar.text[0] == 'T';
    if (const auto number = parse_real(scalar.text)) return *number;
  }
  return scalar.text;
}

/// True for an option of the top level or of a section that has its default. A run's own config.yaml states
/// them all.
bool is_default(const std::string& path, const Node& scalar) {
  const auto dot = path.find('.');
  const std::string section = dot == std::string::npos ? "" : path.substr(0, dot);
  const std::string option = dot == std::string::npos ? path : path.substr(dot + 1);
  const auto sections = config_sections();
  const auto found = std::ranges::find(sections, section, &ConfigSection::name);
  if (found == sections.end()) return false;
  const auto spec = std::ranges::find(found->table, option, &ParamSpec::name);
  if (spec == found->table.end()) return false;
  const auto value = parse_real(scalar.text), fallback = parse_real(spec->fallback);
  return value && fallback ? *value == *fallback : scalar.text == spec->fallback;
}

/// Every scalar that is not null and not a default, under its path. Lists (of layers) are left out.
void append_scalars(const Node& node, const std::string& path,
                    std::vector<std::pair<std::string, HParam>>& values) {
  if (node.kind == Node::Kind::scalar && !is_null(node) && node.text.size() <= kMostCharacters &&
      !is_default(path, node))
    values.emplace_back(path, hparam_of(node));
  for (const auto& [key, entry] : node.entries) {
    const std::string below = path.empty() ? key : path + "." + key;
    if (std::ranges::find(kNotHyperParameters, below) == kNotHyperParameters.end())
      append_scalars(entry, below, values);
  }
}

/// What somebody has set: options that have their defaults would hide it.
HParamsSession hparams_of(const std::string& configuration, const Config& config, const Model& model,
                          bool evaluates) {
  HParamsSession session;
  append_scalars(parse_yaml(configuration, "configuration"), "", session.values);
  session.metrics.emplace_back("", "loss");
  if (!evaluates) return session;
  session.metrics.emplace_back("eval", "loss");
  if (model.accuracy()) session.metrics.emplace_back("eval", "accuracy");
  for (const MetricSpec& metric : config.eval.metrics) {
    const std::pair<std::string, std::string> entry = {"eval", metric.name};
    if (std::ranges::find(session.metrics, entry) == session.metrics.end()) session.metrics.push_back(entry);
  }
  return session;
}

}  // namespace

std::vector<std::string> embedding_tables(const Model& model) {
  std::vector<std::string> names;
  for (const Graph::Node& node : model.graph->nodes())
    if (std::string_view(node.layer->kind()) == "embedding")
      for (int i = node.first_variable; i < node.last_variable; ++i)
        names.push_back((*model.variables)[static_cast<VariableId>(i)].name);
  return names;
}

RunDescriptionHook::Options run_description(const Config& config, const Model& model, bool on_gpu,
                                            bool evaluates) {
  RunDescriptionHook::Options options;
  if (!config.summary.events) return options;
  const std::string text = resolved_config_text(config);
  if (config.summary.graph) {
    const std::string device = on_gpu ? "/device:GPU:0" : "/device:CPU:0";
    std::vector<GraphNode> nodes = graph_nodes(*model.graph, device);
    std::ranges::move(loss_nodes(*model.graph, *model.heads, device), std::back_inserter(nodes));
    const UpdateText update{.optimizer = std::string(config.optimizer.entry.name),
                            .clips = clip_text(config.gradients),
                            .compression = config.comm.error_feedback ? "bfloat16, with error feedback"
                                           : config.comm.compress     ? "bfloat16"
                                                                      : ""};
    std::ranges::move(update_nodes(*model.graph, nodes.back(), update, device), std::back_inserter(nodes));
    options.graph_def = graph_def(nodes);
  }
  if (config.summary.hparams) options.hparams = hparams_of(text, config, model, evaluates);
  if (config.summary.configuration) options.configuration = text;
  return options;
}

}  // namespace lockstep

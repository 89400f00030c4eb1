// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "config/error_text.h"
#include "config/yaml_node.h"
#include "core/name_list.h"
#include "core/scalar.h"
#include "core/shown_text.h"
#include "run/sections/blocks.h"
#include "run/sections/changed_defaults.h"
#include "run/sections/config_tables.h"
#include "run/sections/configuration_file.h"
#include "run/sections/experiment_options.h"
#include "run/sections/overrides.h"
#include "run/sections/sweep_options.h"
#include "session/plugin.h"
#include "session/training_options.h"
#include "train/gpu_options.h"

namespace lockstep {

namespace {

/// Where relative paths of a file in `folder` begin.
std::string base_directory_of(const Params& top, const std::filesystem::path& folder) {
  const auto written = top.as<BaseDirectory>();
  return std::filesystem::absolute(written.path ? folder / *written.path : folder)
      .lexically_normal()
      .string();
}

void load_plugins(const Params& top, const std::string& base_directory) {
  const auto plugins = top.as<Plugins>();
  if (!plugins.paths) return;
  for (const std::string& name : *plugins.paths)
    load_plugin((std::filesystem::path(base_directory) / name).lexically_normal().string(),
                top.where("plugins"));
}

/// The top level of an inference: what only training needs may be left out.
std::span<const ParamSpec> top_table(ConfigUse use) {
  static const std::vector<ParamSpec> kInference = [] {
    const std::span<const ParamSpec> all = config_section("").table;
    std::vector<ParamSpec> table(all.begin(), all.end());
    for (ParamSpec& spec : table)
      if (spec.name == "optimizer") spec.fallback = "null";
    return table;
  }();
  return use == ConfigUse::inference ? std::span<const ParamSpec>(kInference) : config_section("").table;
}

/// Reads the sections of a configuration one after the other and collects all their mistakes.
class Reader {
 public:
  Reader(Config& config, ConfigUse use, ErrorCollector& mistakes)
      : config_(config), use_(use), mistakes_(mistakes) {}

  const Params& top() {
    return add("", Params(config_.root, top_table(use_), "the configuration", mistakes_));
  }

  /// Calls `use` with the options of a section that has a table.
  template <typename Use>
  void section(std::string_view name, Use use) {
    mistakes_.attempt([&] {
      const Params& top = config_.section("");
      Node node = top.node(name);
      if (node.where.empty()) node.where = top.where(name);
      use(add(name, Params(node, config_section(name).table, fmt::format("section {}", name), mistakes_)));
    });
  }

  /// Calls `use` with a section that is a choice, or a list of choices.
  template <typename Use>
  bool node(std::string_view name, Use use) {
    return mistakes_.attempt([&] { use(config_.section("").node(name)); });
  }

 private:
  const Params& add(std::string_view name, Params params) {
    return config_.sections.emplace(name, std::move(params)).first->second;
  }

  Config& config_;
  const ConfigUse use_;
  ErrorCollector& mistakes_;
};

void check_together(const Config& config) {
  if (!config.eval.metrics.empty() && !config.data.eval)
    throw config.error("eval", "metrics", "there is no evaluation set to compute metrics of",
                       "Add `eval:` to section data, or leave the metrics out.");
}

void read_sections(Config& config, ConfigUse use, const std::filesystem::path& folder,
                   ErrorCollector& mistakes) {
  Reader reader(config, use, mistakes);
  const Params& top = reader.top();
  bool is_based = mistakes.attempt([&] { config.base_directory = base_directory_of(top, folder); });
  mistakes.attempt([&] { config.general = top.as<GeneralOptions>(); });
  const bool trains = use == ConfigUse::training;
  reader.section("train", [&](const Params& section) { config.train = training_options(section, trains); });
  reader.section("gradients", [&](const Params& section) { config.gradients = clip_rule(section); });
  reader.section("checkpoint",
                 [&](const Params& section) { config.checkpoint = checkpoint_options(section); });
  reader.section("summary", [&](const Params& section) { config.summary = summary_options(section); });
  reader.section("comm", [&](const Params& section) { config.comm = communication_options(section); });
  reader.section("cluster", [&](const Params& section) { config.cluster = cluster_options(section); });
  reader.section("precision", [&](const Params& section) { config.precision = precision_options(section); });
  reader.section("gpu", [&](const Params& section) { config.gpu = gpu_options(section); });
  reader.section("experiment", [&](const Params& section) { experiment_options(section); });
  mistakes.attempt([&] {
    if (!is_null(top.node("sweep")))
      reader.section("sweep", [&](const Params& section) { sweep_options(section); });
  });
  reader.section("warm_start", [&](const Params& section) {
    config.warm_start = warm_start_options(section, config.base_directory);
  });
  // The sections below may name what plugins register.
  if (is_based) is_based = mistakes.attempt([&] { load_plugins(top, config.base_directory); });
  if (!is_based) return;
  reader.node("model", [&](const Node& node) {
    config.model = model_options(with_expanded_blocks(node), block_names(node));
  });
  reader.node("optimizer", [&](const Node& node) {
    if (!trains && is_null(node)) return;
    config.optimizer = optimizer_options(node);
    config.model.frozen_variables = config.optimizer.frozen_variables();
  });
  reader.node("average", [&](const Node& node) { config.average = average_options(node); });
  const bool has_data = reader.node("data", [&](const Node& node) { config.data = data_options(node); });
  reader.section("eval", [&](const Params& section) { config.eval = evaluation_options(section); });
  config.checkpoint.follow_metrics(config.eval.metrics);
  reader.node("hooks",
              [&](const Node& node) { config.hooks = hooks_from_config(node, config.hook_setting()); });
  // The guard must see gradients before the update. Where the loss is scaled, they are looked at anyway.
  const GuardAction on_nan = config.train.on_nan;
  config.gradients.watch =
      on_nan != GuardAction::error && on_nan != GuardAction::warn && !config.precision.loss_scale.used();
  if (has_data) mistakes.attempt([&] { check_together(config); });
}

/// Gives each node without a position its path.
void set_positions(Node& node, const std::string& name, const std::string& path) {
  const std::string where = path.empty() ? name : fmt::format("{}, {}", name, path);
  if (node.where.empty()) node.where = where;
  // A program's text is in quotes, so that "1" is no number. One that nothing else can be is as in a file,
  // where "auto" or the name of a choice has none.
  if (node.quoted && kind_of_scalar(node.text) == ScalarKind::text) node.quoted = false;
  const auto below = [&](auto key) {
    return path.empty() ? fmt::format("{}", key) : fmt::format("{}.{}", path, key);
  };
  node.entry_where.resize(node.entries.size());
  for (std::size_t i = 0; i < node.items.size(); ++i) set_positions(node.items[i], name, below(i));
  for (std::size_t i = 0; i < node.entries.size(); ++i) {
    auto& [key, value] = node.entries[i];
    const std::string key_path = below(key);
    if (node.entry_where[i].empty()) node.entry_where[i] = fmt::format("{}, {}", name, key_path);
    set_positions(value, name, key_path);
  }
}

/// `include` is resolved where a file is read; here it comes from a text or from the command line.
void refuse_include(const Node& root) {
  const Node* const found = root.find("include");
  if (found != nullptr && !is_null(*found))
    throw Error(ErrorKind::config, "include is for configuration files: it cannot be used here",
                found->overridden.empty() ? found->where : found->overridden,
                "Write it into the file, or give the values.");
}

Config checked(Node root, const std::string& name, std::string path, const std::filesystem::path& folder,
               std::span<const std::string> overrides, ConfigUse use = ConfigUse::training) {
  if (root.kind == Node::Kind::null)
    throw Error(ErrorKind::config, "the configuration is empty", root.where,
                "It needs at least data, model, optimizer and train.");
  ErrorCollector mistakes;
  apply_overrides(root, overrides, mistakes);
  mistakes.attempt([&] { refuse_include(root); });
  Config config;
  config.root = std::move(root);
  config.path = std::move(path);
  read_sections(config, use, folder, mistakes);
  throw_in_order(mistakes, name);
  return config;
}

}  // namespace

const Params& Config::section(std::string_view name) const {
  const auto found = sections.find(name);
  if (found != sections.end()) return found->second;
  std::vector<std::string_view> names;
  for (const auto& [section, options] : sections)
    if (!section.empty()) names.push_back(section);
  throw Error(ErrorKind::usage, fmt::format("the configuration has no section {}", shown_text(name)), path,
              fmt::format("It has {}.", name_list(names)));
}

Error Config::error(std::string_view name, std::string_view option, std::string what_happened,
                    std::string advice) const {
  return section(name).error(option, std::move(what_happened), std::move(advice));
}

Config load_config(const std::string& path, std::span<const std::string> overrides) {
  return checked(read_configuration(path), path, path, std::filesystem::absolute(path).parent_path(),
                 overrides);
}

Config load_data_config(const std::string& path, std::span<const std::string> overrides) {
  Node root = read_configuration(path);
  if (root.kind != Node::Kind::map)
    throw Error(ErrorKind::config, "the configuration is no map of sections", root.where,
                "It needs a section data.");
  ErrorCollector mistakes;
  apply_overrides(root, overrides, mistakes);
  mistakes.attempt([&] { refuse_include(root); });
  Config config;
  config.path = path;
  // The table of the top level demands all sections; those that are not used may be anything.
  std::vector<ParamSpec> table;
  for (const ParamSpec& spec : config_section("").table) {
    table.push_back(spec);
    if (spec.name != "data" && spec.fallback == kRequired) table.back().fallback = "null";
  }
  config.root = std::move(root);
  mistakes.attempt([&] {
    const Params top(config.root, table, "the configuration", mistakes);
    const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
    config.base_directory = base_directory_of(top, folder);
    mistakes.attempt([&] { config.general = top.as<GeneralOptions>(); });
    mistakes.attempt([&] {
      config.comm = communication_options(
          Params(top.node("comm"), config_section("comm").table, "section comm", mistakes));
    });
    if (mistakes.attempt([&] { load_plugins(top, config.base_directory); }))
      mistakes.attempt([&] { config.data = data_options(top.node("data")); });
  });
  throw_in_order(mistakes, path);
  return config;
}

Config config_from_text(std::string_view text, const std::string& name,
                        std::span<const std::string> overrides) {
  keep_source(name, text);
  Node root = parse_yaml(text, name);
  replace_variables(root);
  return checked(std::move(root), name, {}, std::filesystem::current_path(), overrides);
}

Config config_from_node(Node root, const std::string& name, ConfigUse use) {
  set_positions(root, name, "");
  return checked(std::move(root), name, {}, std::filesystem::current_path(), {}, use);
}

Config changed_config(const Config& config, Node root, std::span<const std::string> overrides) {
  return checked(std::move(root), config.path, config.path, config.base_directory, overrides,
                 config.can_train() ? ConfigUse::training : ConfigUse::inference);
}

std::string default_run_directory(const std::string& config_path) {
  return (std::filesystem::path("runs") / std::filesystem::path(config_path).stem()).string();
}

namespace {
/// Without the defaults of layers.
Node with_section_defaults(const Config& config) {
  const Params& top = config.sections.find("")->second;
  Node root = with_defaults(config.root, config_section("").table);
  for (const ConfigSection& section : config_sections())
    if (!section.name.empty() && (section.name != "sweep" || top.has("sweep")))
      set_value(root, section.name, with_defaults(top.node(section.name), section.table));
  Node base = Node::scalar(config.base_directory);
  base.quoted = true;
  set_value(root, "base_directory", std::move(base));
  const auto include = std::ranges::find(root.entries, "include", &std::pair<std::string, Node>::first);
  if (include != root.entries.end()) {
    root.entry_where.erase(root.entry_where.begin() + (include - root.entries.begin()));
    root.entries.erase(include);
  }
  return root;
}
}  // namespace

Node resolved_config(const Config& config) {
  Node root = with_section_defaults(config);
  state_layer_defaults(root);
  return root;
}

std::vector<std::string> use_former_defaults(Config& config) {
  Node root = with_section_defaults(config);
  std::vector<std::string> stated = state_former_layer_defaults(root);
  if (!stated.empty()) config = changed_config(config, std::move(root));
  return stated;
}

std::string resolved_config_text(const Config& config) {
  Node root = resolved_config(config);
  escape_variables(root);
  return to_yaml(root);
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/config.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "config/error_text.h"
#include "config/yaml_node.h"
#include "run/sections/blocks.h"
#include "run/sections/config_tables.h"
#include "run/sections/configuration_file.h"
#include "run/sections/experiment_options.h"
#include "run/sections/overrides.h"
#include "run/sections/sweep_options.h"
#include "session/plugin.h"

namespace lockstep {

namespace {

GeneralOptions general_options(const Params& top) {
  GeneralOptions options;
  options.seed = static_cast<std::uint64_t>(top.integer("seed"));
  options.shards = top.optional_integer("shards");
  if (top.has("threads")) options.threads = static_cast<int>(top.integer("threads"));
  options.device = top.string("device");
  return options;
}

void load_plugins(const Params& top, const std::string& base_directory) {
  if (!top.has("plugins")) return;
  for (const std::string& name : top.strings("plugins"))
    load_plugin((std::filesystem::path(base_directory) / name).lexically_normal().string(),
                top.where("plugins"));
}

/// Reads the sections of a configuration one after the other and collects all their mistakes.
class Reader {
 public:
  Reader(Config& config, ErrorCollector& mistakes) : config_(config), mistakes_(mistakes) {}

  const Params& top() {
    return add("", Params(config_.root, config_section("").table, "the configuration", mistakes_));
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
  ErrorCollector& mistakes_;
};

void check_together(const Config& config) {
  if (!config.eval.metrics.empty() && !config.data.eval)
    throw config.error("eval", "metrics", "there is no evaluation set to compute metrics of",
                       "Add `eval:` to section data, or leave the metrics out.");
}

void read_sections(Config& config, const std::filesystem::path& folder, ErrorCollector& mistakes) {
  Reader reader(config, mistakes);
  const Params& top = reader.top();
  bool is_based = mistakes.attempt([&] {
    const std::filesystem::path base =
        top.has("base_directory") ? folder / top.string("base_directory") : folder;
    config.base_directory = std::filesystem::absolute(base).lexically_normal().string();
  });
  mistakes.attempt([&] { config.general = general_options(top); });
  reader.section("train", [&](const Params& section) { config.train = training_options(section); });
  reader.section("gradients", [&](const Params& section) { config.gradients = clip_rule(section); });
  reader.section("checkpoint",
                 [&](const Params& section) { config.checkpoint = checkpoint_options(section); });
  reader.section("summary", [&](const Params& section) { config.summary = summary_options(section); });
  reader.section("comm", [&](const Params& section) { config.comm = communication_options(section); });
  reader.section("cluster", [&](const Params& section) { config.cluster = cluster_options(section); });
  reader.section("precision", [&](const Params& section) { config.precision = precision_options(section); });
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
    config.optimizer = optimizer_options(node);
    config.model.frozen_variables = config.optimizer.frozen_variables();
  });
  reader.node("average", [&](const Node& node) { config.average = average_options(node); });
  const bool has_data = reader.node("data", [&](const Node& node) { config.data = data_options(node); });
  reader.section("eval", [&](const Params& section) { config.eval = evaluation_options(section); });
  reader.node("hooks",
              [&](const Node& node) { config.hooks = hooks_from_config(node, config.hook_setting()); });
  // The guard must see gradients before the update. Where the loss is scaled, they are looked at anyway.
  const GuardAction on_nan = config.train.on_nan;
  config.gradients.watch =
      on_nan != GuardAction::error && on_nan != GuardAction::warn && !config.precision.loss_scale.used();
  if (has_data) mistakes.attempt([&] { check_together(config); });
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
               std::span<const std::string> overrides) {
  if (root.kind == Node::Kind::null)
    throw Error(ErrorKind::config, "the configuration is empty", root.where,
                "It needs at least data, model, optimizer and train.");
  ErrorCollector mistakes;
  apply_overrides(root, overrides, mistakes);
  mistakes.attempt([&] { refuse_include(root); });
  Config config;
  config.root = std::move(root);
  config.path = std::move(path);
  read_sections(config, folder, mistakes);
  throw_in_order(mistakes, name);
  return config;
}

}  // namespace

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
    config.base_directory =
        std::filesystem::absolute(top.has("base_directory") ? folder / top.string("base_directory") : folder)
            .lexically_normal()
            .string();
    mistakes.attempt([&] { config.general = general_options(top); });
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

std::string default_run_directory(const std::string& config_path) {
  return (std::filesystem::path("runs") / std::filesystem::path(config_path).stem()).string();
}

std::string resolved_config_text(const Config& config) {
  const Params& top = config.sections.find("")->second;
  Node root = with_defaults(config.root, config_section("").table);
  for (const ConfigSection& section : config_sections())
    if (!section.name.empty() && (section.name != "sweep" || top.has("sweep")))
      set_value(root, section.name, with_defaults(top.node(section.name), section.table));
  Node base = Node::scalar(config.base_directory);
  base.quoted = true;
  set_value(root, "base_directory", std::move(base));
  std::erase_if(root.entries, [](const auto& entry) { return entry.first == "include"; });
  escape_variables(root);
  return to_yaml(root);
}

}  // namespace lockstep

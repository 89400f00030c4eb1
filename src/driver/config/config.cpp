// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/config/config.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "driver/config/config_tables.h"
#include "driver/config/yaml_node.h"
#include "session/plugin.h"

namespace lockstep {

namespace {

const Params& add_section(Config& config, std::string_view name) {
  const Params& top = config.sections.find("")->second;
  Node node = top.node(name);
  if (node.where.empty()) node.where = top.where(name);
  return config.sections
      .emplace(name, Params(node, config_section(name).table, fmt::format("section {}", name)))
      .first->second;
}

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

Config checked(Node root, std::string path, const std::filesystem::path& folder,
               std::span<const std::string> overrides) {
  if (root.kind == Node::Kind::null)
    throw Error(ErrorKind::config, "the configuration is empty", root.where,
                "It needs at least data, model, optimizer and train.");
  for (const std::string& assignment : overrides) apply_override(root, assignment);
  Config config;
  const Params& top =
      config.sections.emplace("", Params(root, config_section("").table, "the configuration")).first->second;
  config.root = std::move(root);
  config.path = std::move(path);
  const std::filesystem::path base =
      top.has("base_directory") ? folder / top.string("base_directory") : folder;
  config.base_directory = std::filesystem::absolute(base).lexically_normal().string();
  config.general = general_options(top);
  config.train = training_options(add_section(config, "train"));
  config.gradients = clip_rule(add_section(config, "gradients"));
  config.checkpoint = checkpoint_options(add_section(config, "checkpoint"));
  config.summary = summary_options(add_section(config, "summary"));
  config.comm = communication_options(add_section(config, "comm"));
  config.precision = precision_options(add_section(config, "precision"));
  const Params& warm_start = add_section(config, "warm_start");
  const Params& eval = add_section(config, "eval");
  load_plugins(top, config.base_directory);  // the sections below may name what they register
  config.model = model_options(top.node("model"));
  config.optimizer = optimizer_options(top.node("optimizer"));
  config.warm_start = warm_start_options(warm_start, config.base_directory);
  config.data = data_options(top.node("data"));
  config.eval = evaluation_options(eval);
  if (!config.eval.metrics.empty() && !config.data.eval)
    throw eval.error("metrics", "there is no evaluation set to compute metrics of",
                     "Add `eval:` to section data, or leave the metrics out.");
  config.hooks = hooks_from_config(top.node("hooks"), config.hook_setting());
  return config;
}

}  // namespace

Error Config::error(std::string_view name, std::string_view option, std::string what_happened,
                    std::string advice) const {
  return section(name).error(option, std::move(what_happened), std::move(advice));
}

Config load_config(const std::string& path, std::span<const std::string> overrides) {
  return checked(read_yaml(path), path, std::filesystem::absolute(path).parent_path(), overrides);
}

Config config_from_text(std::string_view text, const std::string& name,
                        std::span<const std::string> overrides) {
  return checked(parse_yaml(text, name), {}, std::filesystem::current_path(), overrides);
}

std::string default_run_directory(const std::string& config_path) {
  return (std::filesystem::path("runs") / std::filesystem::path(config_path).stem()).string();
}

std::string resolved_config_text(const Config& config) {
  const Params& top = config.sections.find("")->second;
  Node root = with_defaults(config.root, config_section("").table);
  for (const ConfigSection& section : config_sections())
    if (!section.name.empty())
      set_value(root, section.name, with_defaults(top.node(section.name), section.table));
  Node base = Node::scalar(config.base_directory);
  base.quoted = true;
  set_value(root, "base_directory", std::move(base));
  return to_yaml(root);
}

}  // namespace lockstep

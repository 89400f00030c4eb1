// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/config/config.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "driver/config/config_tables.h"
#include "driver/config/yaml_node.h"
#include "driver/setup/loss_scale.h"
#include "train/gradient_clip.h"

namespace lockstep {

namespace {

Params read_section(const Params& general, std::string_view name) {
  Node node = general.node(name);
  if (node.where.empty()) node.where = general.where(name);
  return Params(node, config_section(name).table, fmt::format("section {}", name));
}

void check_together(const Config& config) {
  const Params& train = config.train;
  if (train.has("epochs") == train.has("steps"))
    throw train.error(
        train.has("epochs") ? "epochs" : "steps",
        train.has("epochs") ? "both epochs and steps are given" : "neither epochs nor steps is given",
        "Give one of them: it says when training ends.");
  activation_type(config);
  loss_scale(config);
  clip_rule(config);
}

Config checked(Node root, std::string path, const std::filesystem::path& folder,
               std::span<const std::string> overrides) {
  if (root.kind == Node::Kind::null)
    throw Error(ErrorKind::config, "the configuration is empty", root.where,
                "It needs at least data, model, optimizer and train.");
  for (const std::string& assignment : overrides) apply_override(root, assignment);
  Config config;
  config.general = Params(root, config_section("").table, "the configuration");
  config.root = std::move(root);
  config.path = std::move(path);
  const std::filesystem::path base =
      config.general.has("base_directory") ? folder / config.general.string("base_directory") : folder;
  config.base_directory = std::filesystem::absolute(base).lexically_normal().string();
  for (auto [section, name] :
       {std::pair(&config.train, "train"), std::pair(&config.gradients, "gradients"),
        std::pair(&config.eval, "eval"), std::pair(&config.checkpoint, "checkpoint"),
        std::pair(&config.warm_start, "warm_start"), std::pair(&config.summary, "summary"),
        std::pair(&config.comm, "comm"), std::pair(&config.precision, "precision")})
    *section = read_section(config.general, name);
  config.data = config.general.node("data");
  config.model = config.general.node("model");
  config.optimizer = config.general.node("optimizer");
  config.hooks = config.general.node("hooks");
  check_together(config);
  return config;
}

}  // namespace

Config load_config(const std::string& path, std::span<const std::string> overrides) {
  return checked(read_yaml(path), path, std::filesystem::absolute(path).parent_path(), overrides);
}

Config config_from_text(std::string_view text, const std::string& name,
                        std::span<const std::string> overrides) {
  return checked(parse_yaml(text, name), {}, std::filesystem::current_path(), overrides);
}

std::string resolve_path(const Config& config, const std::string& path) {
  return (std::filesystem::path(config.base_directory) / path).lexically_normal().string();
}

std::optional<double> comm_timeout_seconds(const Config& config) {
  if (!config.comm.has("timeout_seconds")) return std::nullopt;
  return config.comm.real("timeout_seconds");
}

std::string default_run_directory(const std::string& config_path) {
  return (std::filesystem::path("runs") / std::filesystem::path(config_path).stem()).string();
}

Node resolved_config(const Config& config) {
  Node root = with_defaults(config.root, config_section("").table);
  for (const ConfigSection& section : config_sections())
    if (!section.name.empty())
      set_value(root, section.name, with_defaults(config.general.node(section.name), section.table));
  Node base = Node::scalar(config.base_directory);
  base.quoted = true;
  set_value(root, "base_directory", std::move(base));
  return root;
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/config_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "config/named_options.h"
#include "config/yaml_node.h"
#include "core/scalar.h"
#include "data/data_options.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "model/heads.h"
#include "model/layer_table.h"
#include "model/loss.h"
#include "model/metric.h"
#include "optim/average_rule.h"
#include "optim/optimizer_options.h"
#include "optim/regularizer.h"
#include "optim/scheduled_number.h"
#include "optim/variable_groups.h"
#include "run/sections/config_tables.h"
#include "session/hooks/hook_table.h"
#include "train/model.h"

namespace lockstep {

namespace {

/// `quotes`: of texts that are numbers without them. A column "1" is not column 1.
std::string text_of(const Node& node, bool quotes = false) {
  const auto quoted = [&](const std::string& text, bool in_quotes) {
    return in_quotes && quotes && parse_real(text) ? fmt::format("\"{}\"", text) : text;
  };
  if (is_null(node)) return "null";
  if (node.kind == Node::Kind::scalar) {
    if (!node.quoted && kind_of_scalar(node.text) != ScalarKind::text)
      if (const auto number = parse_real(node.text)) return fmt::format("{}", *number);
    return quoted(node.text, node.quoted);
  }
  std::vector<std::string> parts;
  for (const Node& item : node.items) parts.push_back(text_of(item, quotes));
  if (node.kind == Node::Kind::list) return fmt::format("[{}]", fmt::join(parts, ", "));
  std::map<std::string, std::string> sorted;
  for (const auto& [key, value] : node.entries)
    sorted[quoted(key, value.key_quoted)] =
        value.kind == Node::Kind::map && value.entries.empty() ? "null" : text_of(value, quotes);
  if (sorted.size() == 1 && sorted.begin()->second == "null") return sorted.begin()->first;  // a name alone
  for (const auto& [key, value] : sorted) parts.push_back(key + ": " + value);
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

/// An item of a list, for people: on one line if it is short, else as YAML.
std::string shown_text(const Node& node) {
  constexpr std::size_t kLongestLine = 80;
  std::string text = text_of(node);
  if (text.size() <= kLongestLine) return text;
  std::string yaml = to_yaml(node);
  yaml.pop_back();  // the newline at the end
  return yaml;
}

bool is_list(ParamType type) {
  return type == ParamType::integers || type == ParamType::reals || type == ParamType::strings;
}

std::optional<NamedOptions> named(const Node& node) {
  try {
    return named_options(node, "choice");
  } catch (const Error&) {
    return std::nullopt;
  }
}

template <typename Entry>
const Entry* entry_of(std::span<const Entry> table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &Entry::name);
  return found == table.end() ? nullptr : &*found;
}

/// When evaluations take place, and what they give. Their batch size changes nothing.
bool decides_evaluations(const std::string& path) {
  return path == "eval.every_epochs" || path == "eval.every_steps" || path.starts_with("eval.metrics");
}

bool decides_end(const std::string& path) { return path == "train.epochs" || path == "train.steps"; }

class Values {
 public:
  explicit Values(std::string base_directory) : base_directory_(std::move(base_directory)) {}

  void configuration(const Node& root);
  std::vector<ConfigValue> take() {
    if (follows_metric_)
      for (ConfigValue& value : values_)
        if (decides_evaluations(value.path)) value.change = Change::result;
    if (follows_end_)
      for (ConfigValue& value : values_)
        if (decides_end(value.path)) value.change = Change::result;
    return std::move(values_);
  }

 private:
  using Tables = std::vector<std::span<const ParamSpec>>;

  void add(const std::string& path, std::string value, Change change) {
    values_.push_back({path, std::move(value), all_.value_or(change)});
  }
  void option(const std::string& path, const Node& value, const ParamSpec& spec);
  /// The options of a map; keys in `elsewhere` are left to the caller.
  void options(const std::string& path, const Node& map, const Tables& tables,
               std::span<const std::string_view> elsewhere = {});
  template <typename Entry>
  void choice(const std::string& path, const Node& node, std::span<const Entry> table,
              std::span<const ParamSpec> common = {});
  template <typename Entry>
  void items(const std::string& path, const Node& list, std::span<const Entry> table,
             std::span<const ParamSpec> common, Change change);
  /// A map without a table: a block's definition or use, a repeat, a layer of a plugin that is not loaded.
  void untabled(const std::string& path, const Node& map, Change change);
  void model(const Node& node);
  void groups(const Node& list);
  /// The options of one input of a training or evaluation set.
  void data_set(const std::string& path, const Node& merged, const std::string& format);
  void data(const Node& node);

  std::string base_directory_;
  std::vector<ConfigValue> values_;
  std::optional<Change> all_;  ///< replaces the tables' word for everything below a key
  /// A schedule follows a metric, so evaluations change the result.
  bool follows_metric_ = false;
  /// A schedule lasts until the end of the run, so the length of the run changes the result.
  bool follows_end_ = false;
};

void Values::option(const std::string& path, const Node& value, const ParamSpec& spec) {
  if (takes_schedule(spec) && value.kind == Node::Kind::map) {
    choice(path, value, schedule_table().entries(), common_schedule_table());
  } else if (spec.change == Change::place && !is_null(value) && value.kind != Node::Kind::map) {
    std::vector<std::string> places;
    for (const Node& item : value.kind == Node::Kind::list ? value.items : std::vector<Node>{value})
      places.push_back(resolved_path(item.text, base_directory_));
    add(path, places.size() == 1 ? places[0] : fmt::format("[{}]", fmt::join(places, ", ")), spec.change);
  } else if (is_list(spec.type) && value.kind == Node::Kind::scalar && !is_null(value)) {
    add(path, fmt::format("[{}]", text_of(value)), spec.change);
  } else {
    add(path, text_of(value, spec.type == ParamType::node), spec.change);
  }
}

void Values::options(const std::string& path, const Node& map, const Tables& tables,
                     std::span<const std::string_view> elsewhere) {
  if (!is_null(map) && map.kind != Node::Kind::map) return add(path, text_of(map), Change::result);
  Node full = map;
  for (const std::span<const ParamSpec> table : tables) full = with_defaults(full, table);
  for (const auto& [key, value] : full.entries) {
    if (std::ranges::find(elsewhere, key) != elsewhere.end()) continue;
    const std::string below = path.empty() ? key : path + "." + key;
    const ParamSpec* spec = nullptr;
    for (const std::span<const ParamSpec> table : tables)
      if (spec == nullptr) spec = entry_of(table, key);
    if (spec != nullptr)
      option(below, value, *spec);
    else
      add(below, text_of(value), Change::result);
  }
}

/// One of a table with its options: a loss, a schedule.
template <typename Entry>
void Values::choice(const std::string& path, const Node& node, std::span<const Entry> table,
                    std::span<const ParamSpec> common) {
  const std::optional<NamedOptions> chosen = named(node);
  const Entry* entry = chosen ? entry_of(table, chosen->name) : nullptr;
  if (entry == nullptr) return add(path, text_of(node), Change::result);
  add(path, chosen->name, Change::result);
  values_.back().item = text_of(node);
  if constexpr (std::is_same_v<Entry, ScheduleEntry>) {
    follows_metric_ = follows_metric_ || entry->follows_metric;
    const Node* const end = chosen->options.find(entry->end_option);
    follows_end_ = follows_end_ || (!entry->end_option.empty() && (end == nullptr || is_null(*end)));
  }
  options(path, chosen->options, {entry->table, common});
}

/// A list of choices: layers, hooks, metrics. An item is called by its name, or by its kind and number.
template <typename Entry>
void Values::items(const std::string& path, const Node& list, std::span<const Entry> table,
                   std::span<const ParamSpec> common, Change change) {
  if (is_null(list)) return;
  if (list.kind != Node::Kind::list) return add(path, text_of(list), change);
  std::map<std::string, int> count;
  std::vector<std::string> names;
  for (const Node& node : list.items) {
    const std::optional<NamedOptions> chosen = named(node);
    const Entry* entry = chosen ? entry_of(table, chosen->name) : nullptr;
    const std::string kind = chosen ? chosen->name : "item";
    const Node* name = chosen ? chosen->options.find("name") : nullptr;
    names.push_back(name != nullptr && name->kind == Node::Kind::scalar
                        ? name->text
                        : fmt::format("{}{}", kind, ++count[kind]));
    const std::string below = path + "." + names.back();
    Change of_item = change;
    if constexpr (std::is_same_v<Entry, HookEntry>)
      if (entry != nullptr) of_item = entry->change;
    add(below, kind, of_item);
    values_.back().item = shown_text(node);
    static constexpr std::string_view kName[] = {"name"};
    if (entry != nullptr)
      options(below, chosen->options, {entry->table, common}, kName);
    else if (chosen)
      untabled(below, chosen->options, of_item);
    else
      add(below + ".options", text_of(node), of_item);
  }
  add(path, fmt::format("{}", fmt::join(names, ", ")), change);
}

void Values::untabled(const std::string& path, const Node& map, Change change) {
  if (map.kind != Node::Kind::map) {
    if (!is_null(map)) add(path + ".options", text_of(map), change);
    return;
  }
  for (const auto& [key, value] : map.entries) {
    const std::string below = path + "." + key;
    if (key == "layers" && value.kind == Node::Kind::list)
      items(below, value, layer_table().entries(), common_layer_table(), change);
    else if (key == "parameters" && value.kind == Node::Kind::map)
      untabled(below, value, change);
    else if (key != "name")
      add(below, text_of(value), key == "recompute" ? Change::free : change);
  }
}

void Values::model(const Node& node) {
  static constexpr std::string_view kElsewhere[] = {"layers", "blocks", "loss", "heads", "regularization"};
  options("model", node, {model_table()}, kElsewhere);
  const auto part = [&](std::string_view key) {
    const Node* found = node.find(key);
    return found != nullptr ? *found : Node{};
  };
  items("model.layers", part("layers"), layer_table().entries(), common_layer_table(), Change::result);
  for (const auto& [name, definition] : part("blocks").entries) {
    const std::string path = "model.blocks." + name;
    add(path, "block", Change::result);
    values_.back().item = shown_text(definition);
    untabled(path, definition, Change::result);
  }
  const Node full = with_defaults(node, model_table());
  const Node* loss = full.find("loss");
  const Node heads = part("heads"), regularization = part("regularization");
  if (is_null(heads) && loss != nullptr) choice("model.loss", *loss, loss_table().entries());
  static constexpr std::string_view kLoss[] = {"loss"};
  for (std::size_t i = 0; i < heads.items.size(); ++i) {
    const Node head = with_defaults(heads.items[i], head_table());
    const Node* name = head.find("name");
    const std::string path = fmt::format("model.heads.{}", name ? text_of(*name) : std::to_string(i));
    add(path, "head", Change::result);
    values_.back().item = shown_text(heads.items[i]);
    options(path, head, {head_table()}, kLoss);
    choice(path + ".loss", *head.find("loss"), loss_table().entries());
  }
  for (std::size_t i = 0; i < regularization.items.size(); ++i) {
    const std::string path = fmt::format("model.regularization.{}", i);
    add(path, "rule", Change::result);
    values_.back().item = text_of(regularization.items[i]);
    options(path, regularization.items[i], {regularization_table()});
  }
}

/// optimizer.groups.
void Values::groups(const Node& list) {
  static constexpr std::string_view kRule[] = {"rule"};
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const std::string path = fmt::format("optimizer.groups.{}", i);
    add(path, "group", Change::result);
    values_.back().item = text_of(list.items[i]);
    options(path, list.items[i], {group_table()}, kRule);
    const Node* rule = list.items[i].find("rule");
    if (rule != nullptr && !is_null(*rule)) choice(path + ".rule", *rule, optimizer_table().entries());
  }
}

void Values::data_set(const std::string& path, const Node& merged, const std::string& format) {
  if (const ReaderEntry* const reader = reader_table().find(format))
    options(path, merged, {reader->table, choice_table()});
  else
    options(path, merged, {});
}

void Values::data(const Node& node) {
  const auto format_of = [](const Node& section, const std::string& common) {
    const Node* const format = section.find("format");
    return format != nullptr ? text_of(*format) : common;
  };
  const std::string format = format_of(node, "");
  const auto sets_of = [&](const char* key) {
    const Node* const sets = node.find(key);
    return sets != nullptr && !is_null(*sets) ? sets : nullptr;
  };
  const bool named = sets_of("inputs") != nullptr;
  add("data.format", format, Change::result);
  for (const ParamSpec& spec : stage_table()) {
    const Node* const value = node.find(spec.name);
    option(fmt::format("data.{}", spec.name),
           value != nullptr ? *value : Node::scalar(std::string(spec.fallback)), spec);
  }
  for (const char* const split : {"train", "eval"}) {
    const Node* const own = node.find(split);
    const bool is_eval = std::string_view(split) == "eval";
    if (is_eval && (own == nullptr || is_null(*own))) break;
    if (is_eval) {
      add("data.eval", "set", Change::result);
      values_.back().item = text_of(*own);
    }
    const Node common = split_options(node, split);
    Node of_samples = common;  // the rest is in each input's options
    std::erase_if(of_samples.entries, [](const auto& entry) {
      return entry_of(choice_table(), entry.first) == nullptr &&
             entry_of(mixing_table(), entry.first) == nullptr;
    });
    if (named)
      options(fmt::format("data.{}", split), of_samples, {choice_table()});
    else
      data_set(fmt::format("data.{}", split), common, format);
    for (const char* const key : {"inputs", "targets"})
      if (const Node* const sets = sets_of(key))
        for (const auto& [name, input] : sets->entries)
          data_set(fmt::format("data.{}.{}.{}", key, name, split), split_options(node, input, split),
                   format_of(input, format));
  }
  if (const Node* const sources = sets_of("sources"))
    for (const auto& [name, source] : sources->entries) {
      const std::string path = fmt::format("data.sources.{}", name);
      data_set(path, source_options(node, source), format_of(source, format));
      const Node* const share = source.find("share");
      add(path + ".share", share != nullptr ? text_of(*share) : "null", Change::result);
    }
  for (const char* const key : {"inputs", "targets", "sources"}) {
    const Node* const sets = sets_of(key);
    if (sets == nullptr) continue;
    std::string names;
    for (const auto& [name, input] : sets->entries) {
      names += (names.empty() ? "" : ", ") + name;
      add(fmt::format("data.{}.{}.format", key, name), format_of(input, format), Change::result);
    }
    add(fmt::format("data.{}", key), names, Change::result);
  }
}

void Values::configuration(const Node& root) {
  const Node full = with_defaults(root, config_section("").table);
  for (const ParamSpec& spec : config_section("").table) {
    const std::string key(spec.name);
    if (key == "base_directory") continue;  // it is in the paths, which are absolute
    const Node* found = full.find(key);
    const Node node = found != nullptr ? *found : Node{};
    if (key == "data") {
      data(node);
    } else if (key == "model") {
      model(node);
    } else if (key == "optimizer") {
      const auto [rule, beside] = split_optimizer_section(node);
      choice(key, rule, optimizer_table().entries());
      static constexpr std::string_view kGroups[] = {"groups"};
      options(key, beside, {optimizer_section_table()}, kGroups);
      if (const Node* list = beside.find("groups")) groups(*list);
    } else if (key == "average") {
      choice(key, node, average_table().entries());
    } else if (key == "hooks") {
      items(key, node, hook_table().entries(), {}, Change::free);
    } else if (key == "eval") {
      static constexpr std::string_view kMetrics[] = {"metrics"};
      options(key, node, {config_section(key).table}, kMetrics);
      all_ = Change::free;
      if (const Node* metrics = node.find("metrics"))
        items("eval.metrics", *metrics, metric_table().entries(), common_metric_table(), Change::free);
      all_.reset();
    } else if (spec.type == ParamType::node) {
      options(key, node, {config_section(key).table});
    } else {
      option(key, node, spec);
    }
  }
}

}  // namespace

std::vector<ConfigValue> config_values(const Node& root, const std::string& base_directory) {
  Values values(base_directory);
  values.configuration(root);
  return values.take();
}

}  // namespace lockstep

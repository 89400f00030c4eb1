// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "reference/json_schema.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/param_reader.h"
#include "core/scalar.h"
#include "io/json.h"
#include "reference/option_catalogue.h"
#include "run/sections/built_in_nets.h"

namespace lockstep {

namespace {

/// The name of a definition: "layer conv2d" is layer_conv2d.
std::string definition_name(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, ' ', '_');
  return text;
}

Json reference(std::string_view definition) {
  return {{"$ref", "#/definitions/" + definition_name(definition)}};
}

Json number_of(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  text = text.substr(0, text.find_first_not_of("+-.0123456789eE"));
  if (const auto whole = parse_integer(text)) return *whole;
  const auto real = parse_real(text);
  return real ? Json(*real) : Json();
}

void add_limits(Json& schema, const OptionRange& range) {
  const auto add = [&](const char* inclusive, const char* exclusive, const auto& end) {
    if (!end) return;
    const auto whole = end->limit.whole();
    schema[end->is_included ? inclusive : exclusive] = whole ? Json(*whole) : Json(end->limit.value());
  };
  add("minimum", "exclusiveMinimum", range.lower());
  add("maximum", "exclusiveMaximum", range.upper());
}

/// The choices, as an editor writes them: `true` in "true|false|blocks" is a boolean in YAML.
Json choice_schema(const std::vector<std::string_view>& choices) {
  Json values = Json::array();
  for (const std::string_view choice : choices) {
    if (choice == "true" || choice == "false") values.push_back(choice == "true");
    if (Json number = number_of(choice);
        !number.is_null() && choice.find_first_not_of("0123456789.-") == choice.npos)
      values.push_back(number);
    else
      values.push_back(choice);
  }
  return {{"enum", values}};
}

/// A variable of the environment in place of a value (docs/config_files.md).
constexpr const char* kVariable = "\\$\\{";

/// What is no text, or a text with a variable. Limits of numbers do not concern texts, nor the pattern
/// numbers.
Json or_variable(const char* type) { return {{"type", {type, "string"}}, {"pattern", kVariable}}; }

Json item_schema(const ParamSpec& option) {
  const bool is_whole = option.type == ParamType::integer || option.type == ParamType::integers;
  const bool is_text = option.type == ParamType::string || option.type == ParamType::strings;
  if (option.type == ParamType::boolean) return or_variable("boolean");
  if (const auto choices = option.range.choices(); !choices.empty())
    return {{"anyOf", {choice_schema(choices), {{"type", "string"}, {"pattern", kVariable}}}}};
  if (is_text) return {{"type", "string"}};
  Json schema = or_variable(is_whole ? "integer" : "number");
  add_limits(schema, option.range);
  return schema;
}

bool is_list(ParamType type) {
  return type == ParamType::integers || type == ParamType::reals || type == ParamType::strings;
}

Json value_schema(std::string_view title, const ParamSpec& option) {
  if (const NodeForm* const form = node_form(title, option)) {
    // A part of the summary is switched on and off, or has options.
    if (title == "Section summary")
      return {{"anyOf", {{{"type", "boolean"}}, reference(fmt::format("summary {}", option.name))}}};
    return Json::parse(form->schema);
  }
  if (option.type == ParamType::node) {  // a number or a schedule
    ParamSpec number = option;
    number.type = ParamType::real;
    number.range = option.range.of_numbers();
    return {{"anyOf", {item_schema(number), reference("schedule")}}};
  }
  Json item = item_schema(option);
  if (!is_list(option.type)) return item;
  return {{"anyOf", {item, {{"type", "array"}, {"items", item}}}}};
}

Json option_schema(std::string_view title, const ParamSpec& option) {
  Json schema = value_schema(title, option);
  if (may_be_null(option)) {
    if (schema.contains("type") && schema["type"].is_string())
      schema["type"] = {schema["type"], "null"};
    else if (schema.contains("type"))
      schema["type"].push_back("null");
    else if (schema.contains("enum"))
      schema["enum"].push_back(nullptr);
    else if (schema.contains("anyOf"))
      schema["anyOf"].push_back({{"type", "null"}});
    else
      schema = {{"anyOf", {schema, {{"type", "null"}}}}};
  }
  if (schema.contains("$ref")) schema = {{"allOf", {schema}}};  // what stands next to $ref is not read
  std::string help(option.help);
  if (option.fallback != kRequired)
    help += fmt::format("{}Default: {}", help.ends_with('.') || help.empty() ? " " : ". ",
                        option.fallback.empty() ? "\"\"" : option.fallback);
  schema["description"] = help;
  return schema;
}

/// A map of the options of one table or several. `demands`: with those that must be given.
Json table_schema(const std::vector<const CatalogueEntry*>& entries, bool demands) {
  Json schema = {{"type", "object"}};
  if (!entries.front()->help.empty()) schema["description"] = entries.front()->help;
  Json properties = Json::object(), required = Json::array();
  for (const CatalogueEntry* entry : entries)
    for (const ParamSpec& option : entry->table) {
      properties[std::string(option.name)] = option_schema(entry->title, option);
      if (option.fallback == kRequired && demands) required.push_back(option.name);
    }
  schema["properties"] = properties;
  if (!required.empty()) schema["required"] = required;
  schema["additionalProperties"] = false;
  return schema;
}

class Schema {
 public:
  Json whole() {
    for (const CatalogueEntry& entry : catalogue_)
      if (entry.kind == "section" && !entry.name.empty()) add_section(entry);
    for (const std::string_view kind : {"transform", "whitening", "initializer", "loss", "metric", "schedule",
                                        "warm-up", "average", "hook", "export", "layer"})
      add_choice(kind);
    for (const CatalogueEntry* entry : of_kind("summary"))
      define(fmt::format("summary {}", entry->name), table_schema({entry}, true));
    for (const std::string_view kind : {"head", "regularization", "group", "sweep_range"})
      define(kind, table_schema(of_kind(kind), true));
    add_optimizers();
    add_layers();
    add_data();
    constexpr std::pair<const char*, const char*> kLists[] = {
        {"integers", "integer"}, {"numbers", "number"}, {"texts", "string"}};
    for (const auto& [name, type] : kLists)
      define(name, {{"anyOf", {{{"type", type}}, {{"type", "array"}, {"items", {{"type", type}}}}}}});
    define("columns", {{"anyOf",
                        {{{"type", {"integer", "string"}}},
                         {{"type", "array"}, {"items", {{"type", {"integer", "string"}}}}}}}});
    define("configuration", table_schema({&top()}, false));
    Json schema = {
        {"$schema", "http://json-schema.org/draft-07/schema#"},
        {"title", "Configuration of Lockstep"},
        {"description", "Written by `lockstep schema` from the tables that check a configuration."}};
    // Plugins add layers, readers, ...: their names cannot be checked here.
    schema["if"] = {{"type", "object"}, {"required", {"plugins"}}};
    schema["then"] = {{"type", "object"},
                      {"properties", {{"plugins", definitions_["configuration"]["properties"]["plugins"]}}},
                      {"propertyNames", {{"enum", names_of(top().table)}}}};
    // What must be given may stand in a file that is included.
    schema["else"] = {{"allOf",
                       {reference("configuration"),
                        {{"if", {{"not", {{"required", {"include"}}}}}}, {"then", what_must_be_given()}}}}};
    schema["definitions"] = definitions_;
    return schema;
  }

 private:
  void define(std::string_view name, Json schema) { definitions_[definition_name(name)] = std::move(schema); }

  const CatalogueEntry& top() const { return catalogue_.front(); }

  std::vector<const CatalogueEntry*> of_kind(std::string_view kind) const {
    std::vector<const CatalogueEntry*> found;
    for (const CatalogueEntry& entry : catalogue_)
      if (entry.kind == kind) found.push_back(&entry);
    return found;
  }

  /// The options without a default, of the top level and of the sections; and the sections that have one.
  Json what_must_be_given() const {
    Json required = Json::array(), properties = Json::object();
    const auto names = [](const CatalogueEntry& entry) {
      Json found = Json::array();
      for (const ParamSpec& option : entry.table)
        if (option.fallback == kRequired) found.push_back(option.name);
      return found;
    };
    required = names(top());
    for (const CatalogueEntry& entry : catalogue_) {
      const bool is_within_another = entry.name.find('.') != std::string::npos;
      if (entry.kind != "section" || entry.name.empty() || entry.name == "data" || is_within_another)
        continue;
      if (const Json own = names(entry); !own.empty()) {
        properties[entry.name] = {{"required", own}};
        if (std::find(required.begin(), required.end(), Json(entry.name)) == required.end())
          required.push_back(entry.name);
      }
    }
    return {{"required", required}, {"properties", properties}};
  }

  static Json names_of(std::span<const ParamSpec> table) {
    Json names = Json::array();
    for (const ParamSpec& option : table) names.push_back(option.name);
    return names;
  }

  void add_section(const CatalogueEntry& entry) {
    if (entry.name == "model")
      define("model", table_schema({&entry}, false));
    else if (entry.name == "data.mix")
      define("section data.mix", table_schema({&entry}, false));
    else if (!entry.table.empty() && entry.name != "data" && entry.name != "optimizer")
      define("section " + entry.name, table_schema({&entry}, false));
  }

  /// The options of what a choice names, as the definition "KIND NAME"; the choice itself as "KIND".
  void add_choice(std::string_view kind, bool demands = true, std::string_view prefix = {}) {
    const std::vector<const CatalogueEntry*> common = of_kind(fmt::format("every {}", kind));
    const std::string title(prefix.empty() ? kind : prefix);
    Json alone = Json::array(), properties = Json::object();
    for (const CatalogueEntry* entry : of_kind(kind)) {
      std::vector<const CatalogueEntry*> tables{entry};
      tables.insert(tables.end(), common.begin(), common.end());
      const std::string name = fmt::format("{} {}", title, entry->name);
      Json schema = table_schema(tables, demands);
      const bool has_required = schema.contains("required");
      if (!has_required) {
        alone.push_back(entry->name);
        schema["type"] = {"object", "null"};
      }
      define(name, std::move(schema));
      properties[entry->name] = reference(name);
    }
    Json options = {{"type", "object"},
                    {"properties", properties},
                    {"additionalProperties", false},
                    {"minProperties", 1},
                    {"maxProperties", 1}};
    define(title, {{"anyOf", {{{"enum", alone}}, options}}});
  }

  /// The section: a rule, and keys next to it. A rule of a group has what it does not say from the section's.
  void add_optimizers() {
    add_choice("optimizer");
    add_choice("optimizer", false, "optimizer_rule");
    Json options = definitions_["optimizer"]["anyOf"][1];
    options.erase("maxProperties");
    for (const CatalogueEntry& entry : catalogue_)
      if (entry.kind == "section" && entry.name == "optimizer")
        for (const ParamSpec& option : entry.table)
          options["properties"][std::string(option.name)] = option_schema(entry.title, option);
    definitions_["optimizer"]["anyOf"][1] = options;
  }

  /// Layers in the list of the model, among repeats and built-in nets. In a model with blocks an item may
  /// have the name of a block. Within blocks and repeats values may be formulas ($filters), so only the form
  /// of an item is checked.
  void add_layers() {
    Json item = definitions_["layer"];
    Json& names = item["anyOf"][0]["enum"];
    Json& properties = item["anyOf"][1]["properties"];
    for (const BuiltInNet& net : built_in_nets()) {
      names.push_back(net.name);
      properties[std::string(net.name)] = {{"type", {"object", "null"}}, {"description", net.help}};
    }
    define("layers_of_block",
           {{"type", "array"},
            {"minItems", 1},
            {"items", {{"type", {"string", "object"}}, {"minProperties", 1}, {"maxProperties", 1}}}});
    properties["repeat"] = {{"type", "object"},
                            {"description", "Layers so many times (docs/nets.md)."},
                            {"properties",
                             {{"times", {{"type", {"integer", "string"}}}},
                              {"index", {{"type", "string"}}},
                              {"name", {{"type", "string"}}},
                              {"inputs", reference("texts")},
                              {"trainable", {{"type", {"boolean", "string"}}}},
                              {"recompute", {{"type", {"boolean", "string"}}}},
                              {"layers", reference("layers_of_block")}}},
                            {"required", {"times", "layers"}},
                            {"additionalProperties", false}};
    define("layer_item", item);
    Json open = item;
    open["anyOf"][0] = {{"type", "string"}};
    open["anyOf"][1].erase("additionalProperties");
    define("layer_or_block", open);
    define("block",
           {{"type", "object"},
            {"properties",
             {{"parameters", {{"type", {"object", "null"}}}}, {"layers", reference("layers_of_block")}}},
            {"required", {"layers"}},
            {"additionalProperties", false}});
    Json& model = definitions_["model"];
    model["if"] = {{"not", {{"required", {"blocks"}}}}};
    model["then"] = {{"properties", {{"layers", {{"items", reference("layer_item")}}}}}};
  }

  /// The options depend on the reader that `format` names. With several inputs, sources or targets each may
  /// have a format of its own: there the names of options are checked, and the values of those that belong to
  /// no reader.
  void add_data() {
    const CatalogueEntry* keys = nullptr;
    for (const CatalogueEntry& entry : catalogue_)
      if (entry.kind == "section" && entry.name == "data") keys = &entry;
    std::vector<const CatalogueEntry*> common = of_kind("data");
    Json beside = table_schema(common, false);
    beside.erase("additionalProperties");
    beside.erase("description");
    Json set_names = Json::array(), formats = Json::array(), all_names = {"format", "share", "train", "eval"};
    for (const CatalogueEntry* entry : common)
      for (const ParamSpec& option : entry->table) set_names.push_back(option.name);
    for (const Json& name : set_names) all_names.push_back(name);
    define("data_common", beside);
    Json rules = Json::array();
    for (const CatalogueEntry* reader : of_kind("reader")) {
      formats.push_back(reader->name);
      Json own = table_schema({reader}, false);
      own.erase("additionalProperties");
      const std::string name = "reader " + reader->name;
      define(name, own);
      Json names = set_names;
      for (const ParamSpec& option : reader->table) {
        names.push_back(option.name);
        if (std::ranges::find(all_names, option.name) == all_names.end()) all_names.push_back(option.name);
      }
      Json set = {{"type", {"object", "null"}},
                  {"allOf", {reference("data_common"), reference(name)}},
                  {"propertyNames", {{"enum", names}}}};
      define("set " + reader->name, set);
      for (const ParamSpec& option : keys->table) names.push_back(option.name);
      rules.push_back(
          {{"if", {{"properties", {{"format", {{"const", reader->name}}}}}, {"required", {"format"}}}},
           {"then",
            {{"allOf", {reference("data_common"), reference(name)}},
             {"properties",
              {{"train", reference("set " + reader->name)}, {"eval", reference("set " + reader->name)}}},
             {"propertyNames", {{"enum", names}}}}}});
    }
    define("data_input",
           {{"type", {"object", "null"}},
            {"properties", {{"format", {{"enum", formats}}}, {"share", {{"type", {"number", "null"}}}}}},
            {"propertyNames", {{"enum", all_names}}}});
    for (const char* const key : {"inputs", "sources", "targets"}) all_names.push_back(key);
    Json data = table_schema({keys}, false);
    data.erase("additionalProperties");
    data["properties"]["format"]["enum"] = formats;
    data["if"] = {
        {"anyOf", {{{"required", {"inputs"}}}, {{"required", {"sources"}}}, {{"required", {"targets"}}}}}};
    data["then"] = {{"allOf", {reference("data_common")}}, {"propertyNames", {{"enum", all_names}}}};
    data["else"] = {{"required", {"format"}}, {"allOf", rules}};
    define("data", data);
  }

  std::vector<CatalogueEntry> catalogue_ = option_catalogue();
  Json definitions_ = Json::object();
};

}  // namespace

std::string json_schema() { return Schema().whole().dump(0) + "\n"; }

}  // namespace lockstep

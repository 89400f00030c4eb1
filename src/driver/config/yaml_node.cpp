// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/config/yaml_node.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace lockstep {

namespace {

std::string position(const std::string& name, const YAML::Mark& mark) {
  return mark.is_null() ? name : fmt::format("{}:{}:{}", name, mark.line + 1, mark.column + 1);
}

// Copies yaml-cpp's graph into a tree. An alias is replaced by a copy of its target. Limits of depth and size
// stop aliases that contain themselves or expand into millions of nodes.
class Converter {
 public:
  explicit Converter(const std::string& name) : name_(name) {}

  Node convert(const YAML::Node& from, const std::string& where_if_unknown, int depth = 0) {
    Node node;
    node.where = from.Mark().is_null() ? where_if_unknown : position(name_, from.Mark());
    if (depth > kMostLevels || ++count_ > kMostNodes)
      throw Error(ErrorKind::config, "nested too deeply, or too large", node.where,
                  "Is there an alias that contains itself?");
    if (from.IsScalar()) {
      node.kind = Node::Kind::scalar;
      node.text = from.Scalar();
      node.quoted = is_text(from.Tag(), node.where);
    } else if (from.IsSequence()) {
      node.kind = Node::Kind::list;
      for (const YAML::Node& item : from) node.items.push_back(convert(item, node.where, depth + 1));
    } else if (from.IsMap()) {
      node.kind = Node::Kind::map;
      for (const auto& entry : from) add(node, entry.first, entry.second, depth);
    }
    return node;
  }

 private:
  static constexpr int kMostLevels = 100, kMostNodes = 1'000'000;

  void add(Node& map, const YAML::Node& key, const YAML::Node& value, int depth) {
    const std::string where = key.Mark().is_null() ? map.where : position(name_, key.Mark());
    if (!key.IsScalar()) throw Error(ErrorKind::config, "a key must be a single word", where);
    const auto same = std::find_if(map.entries.begin(), map.entries.end(),
                                   [&](const auto& entry) { return entry.first == key.Scalar(); });
    if (same != map.entries.end())
      throw Error(ErrorKind::config, fmt::format("key '{}' is written twice", key.Scalar()), where,
                  fmt::format("The first is at {}; keep one.",
                              map.entry_where[static_cast<std::size_t>(same - map.entries.begin())]));
    map.entries.emplace_back(key.Scalar(), convert(value, where, depth + 1));
    map.entry_where.push_back(where);
  }

  // "?" and "" are plain scalars, "!" are quoted ones.
  static bool is_text(const std::string& tag, const std::string& where) {
    static constexpr std::string_view kYaml = "tag:yaml.org,2002:";
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return true;
    if (tag.empty() || tag == "?") return false;
    for (const std::string_view known : {"int", "float", "bool", "null"})
      if (tag.starts_with(kYaml) && tag.substr(kYaml.size()) == known) return false;
    throw Error(ErrorKind::config, fmt::format("unknown tag {}", tag), where, "Remove it.");
  }

  const std::string& name_;
  int count_ = 0;
};

// Where a second document begins. YAML::LoadAll is no alternative: after a stray "]" it never returns and
// takes all memory.
std::optional<YAML::Mark> second_document(const std::string& text) {
  struct Ignore : YAML::EventHandler {
    YAML::Mark start;
    void OnDocumentStart(const YAML::Mark& mark) override { start = mark; }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
    void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
    void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
    void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                         YAML::EmitterStyle::value) override {}
    void OnSequenceEnd() override {}
    void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                    YAML::EmitterStyle::value) override {}
    void OnMapEnd() override {}
  } handler;
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  if (parser.HandleNextDocument(handler) && parser.HandleNextDocument(handler)) return handler.start;
  return std::nullopt;
}

}  // namespace

Node parse_yaml(std::string_view text, const std::string& name) {
  try {
    const std::string copy(text);
    if (const auto mark = second_document(copy))
      throw Error(
          ErrorKind::config, "there is more behind the end of the YAML document", position(name, *mark),
          "Look for a bracket too many; if there is a '---' between two documents, keep one of them.");
    Node node = Converter(name).convert(YAML::Load(copy), name);
    return node;
  } catch (const YAML::Exception& error) {
    throw Error(
        ErrorKind::config, fmt::format("not valid YAML: {}", error.msg), position(name, error.mark),
        "Look at the indentation (spaces, no tabs), the colons and the brackets here and in the line above.");
  }
}

Node read_yaml(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw Error(ErrorKind::config, "this is a folder, not a configuration file", path);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || file.bad())
    throw Error(ErrorKind::config,
                fmt::format("the configuration cannot be read: {}",
                            errno != 0 ? std::strerror(errno) : "unknown reason"),
                path, "Check the path; it starts in the folder where the program is called.");
  return parse_yaml(text.str(), path);
}

}  // namespace lockstep

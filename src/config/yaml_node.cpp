// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/yaml_node.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <unordered_map>

#include "config/error_text.h"

namespace lockstep {

namespace {

std::string position(const std::string& name, const YAML::Mark& mark) {
  return mark.is_null() ? name : fmt::format("{}:{}:{}", name, mark.line + 1, mark.column + 1);
}

/// Limits of a configuration. Nothing sensible reaches them, and what exceeds them ends at once.
constexpr int kMostLevels = 100, kMostNodes = 1'000'000;
constexpr std::size_t kMostBytes = std::size_t{16} << 20;

constexpr const char* kAliasAdvice =
    "Is there an alias that contains itself, or one that is used very often?";

void check_limits(int depth, int nodes, const std::string& where, const char* advice) {
  if (depth > kMostLevels)
    throw Error(ErrorKind::config, fmt::format("nested deeper than {} levels", kMostLevels), where, advice);
  if (nodes > kMostNodes)
    throw Error(ErrorKind::config, fmt::format("more than {} keys and values", kMostNodes), where, advice);
}

// Copies yaml-cpp's graph into a tree. An alias is replaced by a copy of its target. Limits of depth and size
// stop aliases that contain themselves or expand into millions of nodes.
class Converter {
 public:
  Converter(const std::string& name, std::string_view text) : name_(name), text_(text) {}

  Node convert(const YAML::Node& from, const std::string& where_if_unknown, int depth = 0) {
    Node node;
    node.where = from.Mark().is_null() ? where_if_unknown : position(name_, from.Mark());
    check_limits(depth, ++count_, node.where, kAliasAdvice);
    if (from.IsScalar()) {
      node.kind = Node::Kind::scalar;
      node.text = from.Scalar();
      node.quoted = is_text(from.Tag(), node.where);
    } else if (from.IsSequence()) {
      node.kind = Node::Kind::list;
      for (const YAML::Node& item : from) node.items.push_back(convert(item, node.where, depth + 1));
    } else if (from.IsMap()) {
      node.kind = Node::Kind::map;
      std::unordered_map<std::string, std::size_t> places;
      for (const auto& entry : from) add(node, places, entry.first, entry.second, depth);
    } else if (from.IsNull() && is_written(from.Mark())) {
      node.text = "null";
    }
    return node;
  }

 private:
  /// A null that stands there, in contrast to a key without a value.
  bool is_written(const YAML::Mark& mark) const {
    if (mark.is_null() || mark.pos < 0 || static_cast<std::size_t>(mark.pos) >= text_.size()) return false;
    const std::string_view rest = text_.substr(static_cast<std::size_t>(mark.pos));
    const std::string_view word = rest.substr(0, rest.find_first_of(" \t\r\n,]}#"));
    return word == "~" || word == "null" || word == "Null" || word == "NULL";
  }

  /// `places`: the keys so far, and their numbers.
  void add(Node& map, std::unordered_map<std::string, std::size_t>& places, const YAML::Node& key,
           const YAML::Node& value, int depth) {
    const std::string where = key.Mark().is_null() ? map.where : position(name_, key.Mark());
    if (!key.IsScalar()) throw Error(ErrorKind::config, "a key must be a single word", where);
    const auto [same, is_new] = places.try_emplace(key.Scalar(), map.entries.size());
    if (!is_new)
      throw Error(ErrorKind::config, fmt::format("key '{}' is written twice", key.Scalar()), where,
                  fmt::format("The first is at {}; keep one.", map.entry_where[same->second]));
    map.entries.emplace_back(key.Scalar(), convert(value, where, depth + 1));
    map.entries.back().second.key_quoted = is_text(key.Tag(), where);
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
  std::string_view text_;
  int count_ = 0;
};

/// Reads a document without keeping it: checks its limits, and finds where it begins. Of deeper nesting
/// yaml-cpp says "bad file" only.
class Survey final : public YAML::EventHandler {
 public:
  explicit Survey(const std::string& name) : name_(name) {}
  const YAML::Mark& start() const { return start_; }

  void OnDocumentStart(const YAML::Mark& mark) override { start_ = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { count(mark); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { count(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t, const std::string&) override {
    count(mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    ++depth_;
    count(mark);
  }
  void OnSequenceEnd() override { --depth_; }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    ++depth_;
    count(mark);
  }
  void OnMapEnd() override { --depth_; }

 private:
  void count(const YAML::Mark& mark) {
    if (depth_ > kMostLevels || ++nodes_ > kMostNodes)
      check_limits(depth_, nodes_, position(name_, mark),
                   "Is this a configuration? Look for brackets that are not closed.");
  }

  const std::string& name_;
  YAML::Mark start_;
  int depth_ = 0, nodes_ = 0;
};

// Where a second document begins. YAML::LoadAll is no alternative: after a stray "]" it never returns and
// takes all memory.
std::optional<YAML::Mark> second_document(const std::string& text, const std::string& name) {
  Survey survey(name);
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  if (parser.HandleNextDocument(survey) && parser.HandleNextDocument(survey)) return survey.start();
  return std::nullopt;
}

[[noreturn]] void no_file(const std::string& path, const std::string& what) {
  throw Error(ErrorKind::config, what, path, "Give a configuration file (YAML), or a pipe.");
}

/// The text of a regular file or of a pipe.
std::string text_of(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) no_file(path, "this is a folder, not a configuration file");
  if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_fifo(status))
    no_file(path, "this is a device or socket, not a configuration file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostBytes + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad())
    throw Error(ErrorKind::config,
                fmt::format("the configuration cannot be read: {}",
                            errno != 0 ? std::strerror(errno) : "unknown reason"),
                path, "Check the path; it starts in the folder where the program is called.");
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kMostBytes)
    no_file(path, fmt::format("a configuration of more than {} MiB", kMostBytes >> 20));
  return text;
}

/// A line of a text, from 0.
std::string_view line_of(std::string_view text, int number) {
  for (; number > 0; --number) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

}  // namespace

Node parse_yaml(std::string_view text, const std::string& name) {
  try {
    const std::string copy(text);
    if (const auto mark = second_document(copy, name))
      throw Error(
          ErrorKind::config, "there is more after the end of the YAML document", position(name, *mark),
          "Look for a bracket too many; if there is a '---' between two documents, keep one of them.");
    Node node = Converter(name, copy).convert(YAML::Load(copy), name);
    return node;
  } catch (const YAML::Exception& error) {
    if (!error.mark.is_null() && line_of(text, error.mark.line).find("${") != std::string_view::npos)
      throw Error(
          ErrorKind::config, fmt::format("not valid YAML: {}", error.msg), position(name, error.mark),
          "${NAME} cannot stand without quotes in {...} or [...]: write the key and its value on a line of "
          "their own, or a text in quotes.");
    throw Error(
        ErrorKind::config, fmt::format("not valid YAML: {}", error.msg), position(name, error.mark),
        "Look at the indentation (spaces, no tabs), the colons and the brackets here and in the line above.");
  }
}

Node read_yaml(const std::string& path) {
  const std::string text = text_of(path);
  keep_source(path, text);
  return parse_yaml(text, path);
}

}  // namespace lockstep

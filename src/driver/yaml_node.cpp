// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/yaml_node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/scalar.h"

namespace lockstep {

namespace {

std::string position(const std::string& name, const YAML::Mark& mark) {
  return mark.is_null() ? name : fmt::format("{}:{}:{}", name, mark.line + 1, mark.column + 1);
}

// Copies yaml-cpp's graph into a tree. An alias is copied like what it stands for; one that holds itself, or
// that multiplies into millions of nodes, is stopped by the limits.
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

// Where a second document begins. Not YAML::LoadAll: that never ends, and takes all memory, after a stray
// "]".
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

// Plain only where every YAML reader, also of version 1.1 (where `on` is true), sees the same text.
bool plain_is_safe(const std::string& text) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/';
  };
  const auto is_inner = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+';
  };
  if (text.empty() || !is_letter(text[0]) || !std::all_of(text.begin(), text.end(), is_inner)) return false;
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  static constexpr std::array<std::string_view, 6> kOldBooleans{"y", "n", "yes", "no", "on", "off"};
  return std::find(kOldBooleans.begin(), kOldBooleans.end(), lower) == kOldBooleans.end() &&
         kind_of_scalar(text) == ScalarKind::text;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string scalar_text(const std::string& text, bool is_text) {
  if (!is_text && kind_of_scalar(text) != ScalarKind::text) return text.empty() ? "null" : text;
  return plain_is_safe(text) ? text : quoted(text);
}

bool fits_on_a_line(const Node& node) {
  return node.kind != Node::Kind::map &&
         std::all_of(node.items.begin(), node.items.end(), [](const Node& item) {
           return item.kind == Node::Kind::scalar || item.kind == Node::Kind::null;
         });
}

std::string on_a_line(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::scalar:
      return scalar_text(node.text, node.quoted);
    case Node::Kind::map:
      return "{}";
    case Node::Kind::list:
      break;
  }
  std::vector<std::string> items;
  for (const Node& item : node.items) items.push_back(on_a_line(item));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

// `indent` is where the lines of this node begin; the first line's indentation is there already.
void write(std::string& out, const Node& node, int indent) {
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  const auto write_child = [&](const Node& child, bool in_list) {
    if (fits_on_a_line(child) || (child.kind == Node::Kind::map && child.entries.empty())) {
      out += ' ' + on_a_line(child) + '\n';
    } else if (in_list) {
      out += ' ';
      write(out, child, indent + 2);
    } else {
      out += '\n' + margin + "  ";
      write(out, child, indent + 2);
    }
  };
  bool first = true;
  for (const auto& [key, child] : node.entries) {
    out += (first ? "" : margin) + scalar_text(key, true) + ':';
    write_child(child, false);
    first = false;
  }
  for (const Node& item : node.items) {
    out += (first ? "" : margin) + '-';
    write_child(item, true);
    first = false;
  }
}

// The list item that `segment` means: an index, or the `name` of an item, also of one written as `- conv2d:
// {name: a}`.
Node* item_of(Node& list, std::string_view segment) {
  std::size_t index = 0;
  const auto [end, status] = std::from_chars(segment.data(), segment.data() + segment.size(), index);
  if (status == std::errc{} && end == segment.data() + segment.size())
    return index < list.items.size() ? &list.items[index] : nullptr;
  for (Node& item : list.items) {
    Node* named = item.entries.size() == 1 && item.entries[0].second.kind == Node::Kind::map
                      ? &item.entries[0].second
                      : &item;
    const Node* name = named->find("name");
    if (name != nullptr && name->kind == Node::Kind::scalar && name->text == segment) return named;
  }
  return nullptr;
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

std::string to_yaml(const Node& node) {
  if (fits_on_a_line(node) || (node.entries.empty() && node.items.empty())) return on_a_line(node) + '\n';
  std::string out;
  write(out, node, 0);
  return out;
}

void set_value(Node& root, std::string_view path, Node value) {
  const std::string where = value.where;
  Node* node = &root;
  for (std::string_view rest = path;;) {
    const auto dot = rest.find('.');
    const std::string_view segment = rest.substr(0, dot);
    const std::string_view before = path.substr(0, path.size() - rest.size());
    if (segment.empty())
      throw Error(ErrorKind::config, fmt::format("'{}' is not a path of keys", path), where,
                  "Write it as in 'train.batch_size'.");
    if (is_null(*node)) {
      *node = Node{};
      node->kind = Node::Kind::map;
      node->where = where;
    }
    if (node->kind == Node::Kind::map) {
      auto entry = std::find_if(node->entries.begin(), node->entries.end(),
                                [&](const auto& candidate) { return candidate.first == segment; });
      if (entry == node->entries.end()) {
        node->entries.emplace_back(std::string(segment), Node{});
        node->entry_where.push_back(where);
        entry = node->entries.end() - 1;
      }
      node = &entry->second;
    } else if (node->kind == Node::Kind::list) {
      Node* item = item_of(*node, segment);
      if (item == nullptr)
        throw Error(
            ErrorKind::config,
            fmt::format("the list '{}' has no item '{}'", before.substr(0, before.size() - 1), segment),
            where,
            fmt::format("Give an index from 0 to {}, or the 'name' of an item.", node->items.size() - 1));
      node = item;
    } else {
      throw Error(ErrorKind::config,
                  fmt::format("'{}' is a single value: there is no '{}' in it",
                              before.substr(0, before.size() - 1), segment),
                  where);
    }
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  *node = std::move(value);
}

void apply_override(Node& root, std::string_view assignment) {
  const std::string where = fmt::format("--set {}", assignment);
  const auto equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw Error(ErrorKind::usage, "not of the form key=value", where,
                "For example: --set optimizer.learning_rate=0.01");
  Node value;
  try {
    value = parse_yaml(assignment.substr(equals + 1), where);
  } catch (const Error& error) {
    throw Error(ErrorKind::config, error.what_happened(), where,
                "The value is YAML: quote special characters.");
  }
  // One position for all of it: lines and columns inside a command-line argument help nobody.
  const auto place = [&](Node& node, const auto& self) -> void {
    node.where = where;
    for (std::string& key : node.entry_where) key = where;
    for (auto& entry : node.entries) self(entry.second, self);
    for (Node& item : node.items) self(item, self);
  };
  place(value, place);
  set_value(root, assignment.substr(0, equals), std::move(value));
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/configuration_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "config/yaml_node.h"
#include "core/error.h"
#include "core/shown_text.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kInclude = "include";
constexpr std::size_t kMostFiles = 1000;

Node take(Node& map, std::string_view key) {
  Node value;
  for (std::size_t i = 0; i < map.entries.size(); ++i)
    if (map.entries[i].first == key) {
      value = std::move(map.entries[i].second);
      map.entries.erase(map.entries.begin() + static_cast<std::ptrdiff_t>(i));
      map.entry_where.erase(map.entry_where.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  return value;
}

class Files {
 public:
  Node read(const std::string& path) {
    if (++count_ > kMostFiles)
      throw Error(ErrorKind::config, fmt::format("more than {} files are included", kMostFiles), path);
    Node root = read_yaml(path);
    replace_variables(root);
    if (root.kind != Node::Kind::map || root.find(kInclude) == nullptr) return root;
    const Node includes = take(root, kInclude);
    if (is_null(includes)) return root;
    chain_.push_back({path, identity(path)});
    Node base;
    const auto add = [&](const Node& item) {
      Node included = read_included(item, path);
      base = base.kind == Node::Kind::null ? std::move(included) : merged_configuration(base, included);
    };
    if (includes.kind == Node::Kind::list)
      for (const Node& item : includes.items) add(item);
    else
      add(includes);
    chain_.pop_back();
    return base.kind == Node::Kind::null ? root : merged_configuration(base, root);
  }

 private:
  struct Open {
    std::string path;
    fs::path identity;
  };

  static fs::path identity(const std::string& path) {
    std::error_code failed;
    fs::path whole = fs::weakly_canonical(path, failed);
    return failed ? fs::path(path) : whole;
  }

  Node read_included(const Node& item, const std::string& including) {
    if (item.kind != Node::Kind::scalar || item.text.empty())
      throw Error(ErrorKind::config, "include must be the path of a file, or a list of paths", item.where,
                  "Write include: base.yaml; the path begins in the folder of this file.");
    const std::string path = (fs::path(including).parent_path() / item.text).lexically_normal().string();
    const fs::path whole = identity(path);
    if (const auto first = std::ranges::find(chain_, whole, &Open::identity); first != chain_.end()) {
      std::vector<std::string> names;
      for (auto open = first; open != chain_.end(); ++open) names.push_back(open->path);
      names.push_back(path);
      throw Error(ErrorKind::config,
                  fmt::format("a file includes itself: {}", fmt::join(names, " includes ")), item.where,
                  "Remove one of these includes.");
    }
    Node included;
    try {
      if (std::error_code failed; fs::exists(path, failed) && !fs::is_regular_file(path, failed))
        throw Error(ErrorKind::config, "is no plain file", path);
      included = read(path);
    } catch (const Error& error) {
      // A file that cannot be read: where it is included says more than its own name.
      if (error.where() != shown_text(path)) throw;
      throw Error(error.kind(), fmt::format("{}: {}", path, error.what_happened()), item.where,
                  "The path begins in the folder of the file that includes it.");
    }
    if (included.kind != Node::Kind::map)
      throw Error(ErrorKind::config, fmt::format("{} is no map of sections", path), item.where,
                  "An included file is written like a configuration, of which it may have a part.");
    return included;
  }

  std::vector<Open> chain_;
  std::size_t count_ = 0;
};

}  // namespace

Node read_configuration(const std::string& path) {
  constexpr std::array kData{".csv",      ".tsv", ".h5",  ".hdf5", ".nc", ".npy",  ".npz",        ".jsonl",
                             ".tfrecord", ".tar", ".png", ".jpg",  ".pt", ".onnx", ".safetensors"};
  std::error_code failed;
  if (std::ranges::find(kData, fs::path(path).extension()) != kData.end() && fs::exists(path, failed))
    throw Error(ErrorKind::config, "this is no configuration file", path,
                fmt::format("Give a YAML file. `lockstep new {}` writes one for data; a run continues with "
                            "its run directory.",
                            path));
  return Files().read(path);
}

}  // namespace lockstep

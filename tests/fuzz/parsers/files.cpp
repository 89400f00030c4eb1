// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Readers that read a whole file: the bytes become a file in memory.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "config/param_reader.h"
#include "config/yaml_node.h"
#include "data/reader_dataset.h"
#include "data/reader_table.h"
#include "fuzz/parsers/parsers.h"

namespace lockstep::fuzz {

namespace {

using Bytes = std::span<const std::uint8_t>;

/// A file in memory with these bytes, for readers that open paths.
class MemoryFile {
 public:
  explicit MemoryFile(Bytes bytes) : file_(::memfd_create("input", MFD_CLOEXEC)) {
    if (file_ < 0 || ::write(file_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      std::abort();
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

/// Reads a data set with these options; the value %s stands for the path.
void open_file(std::string_view format, Bytes bytes,
               std::vector<std::pair<std::string, std::string>> options) {
  const MemoryFile file(bytes);
  Node node;
  node.kind = Node::Kind::map;
  node.where = "options";
  for (auto& [name, text] : options) {
    if (text == "%s") text = file.path();
    node.entries.emplace_back(name, parse_fallback(text));
    node.entry_where.push_back(node.where);
  }
  open_dataset(format, Params(node, find_reader(format).table, std::string(format)), "");
}

}  // namespace

void jsonl_file(Bytes bytes) {
  open_file("jsonl", bytes, {{"path", "%s"}, {"features", "x"}, {"labels", "y"}});
}

/// The number of bytes chooses how the file is read: as numbers, or as a table of texts.
void csv_file(Bytes bytes) {
  if (bytes.size() % 3 == 0) return open_file("csv", bytes, {{"path", "%s"}});
  const MemoryFile file(bytes);
  const Node options =
      parse_yaml((bytes.size() % 3 == 1 ? "{header: true, columns: [\"a*\", 1], missing: {1: 0, a: x}, "
                                          "categories: {a: auto}, labels: y, classes: auto,"
                                        : "{skip_lines: 1, comment: \"#\", columns: 1, ignore: 0, missing: "
                                          "-1, missing_values: [\"5\", z], label_column: null,") +
                     (" path: " + file.path() + "}"),
                 "options");
  open_dataset("csv", Params(options, find_reader("csv").table, "csv"), "");
}

void idx_file(Bytes bytes) { open_file("idx", bytes, {{"folder", "/"}, {"images", "%s"}}); }

}  // namespace lockstep::fuzz

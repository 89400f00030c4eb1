// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/projector_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "core/error.h"
#include "core/run_file.h"
#include "io/atomic_file.h"
#include "io/file_descriptor.h"

namespace lockstep {

namespace {

/// Text in quotes, as in protobuf's text format.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else
      result += c;
  }
  return result + "\"";
}

std::string file_name(const std::string& name) {
  std::string file = name;
  for (char& c : file)
    if (c == '/' || c == '\\' || c == '\0') c = '_';
  return file;
}

/// The first `count` lines.
std::string first_lines(const std::string& text, std::int64_t count) {
  std::size_t at = 0;
  for (; count > 0 && at < text.size(); --count) at = std::min(text.find('\n', at), text.size() - 1) + 1;
  return text.substr(0, at);
}

std::string vectors_text(const ProjectorTable& table, std::int64_t rows) {
  std::string text;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < table.columns; ++column)
      fmt::format_to(std::back_inserter(text), "{:.6g}{}",
                     table.values[static_cast<std::size_t>(row * table.columns + column)],
                     column + 1 < table.columns ? '\t' : '\n');
  return text;
}

}  // namespace

void write_projector(const std::string& folder, std::span<const ProjectorTable> tables,
                     std::int64_t most_rows) {
  make_run_folder(folder, "projector", ErrorKind::data);
  std::string config;
  for (const ProjectorTable& table : tables) {
    const std::int64_t rows = std::min(table.rows, most_rows);
    const std::string vectors = "projector/" + file_name(table.name) + ".tsv",
                      labels = "projector/" + file_name(table.name) + ".metadata.tsv";
    write_file_atomically(folder + "/" + vectors, vectors_text(table, rows), ErrorKind::data);
    config += fmt::format(
        "embeddings {{\n  tensor_name: {}\n  tensor_path: {}\n  tensor_shape: {}\n  tensor_shape: {}\n",
        quoted(table.name), quoted(vectors), rows, table.columns);
    if (!table.metadata.empty()) {
      const std::string first = table.metadata.substr(0, table.metadata.find('\n'));
      const bool has_titles = first.find('\t') != std::string::npos;
      write_file_atomically(folder + "/" + labels, first_lines(table.metadata, rows + (has_titles ? 1 : 0)),
                            ErrorKind::data);
      config += fmt::format("  metadata_path: {}\n", quoted(labels));
    }
    config += "}\n";
  }
  write_file_atomically(folder + "/projector_config.pbtxt", config, ErrorKind::data);
}

}  // namespace lockstep

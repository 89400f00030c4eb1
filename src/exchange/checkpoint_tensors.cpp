// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "exchange/checkpoint_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/version.h"
#include "io/output_file.h"

namespace lockstep {

namespace {

constexpr std::string_view kGroup = "variables/";

bool is_variable_name(const std::string& name) {
  return !name.empty() && name.front() != '/' && name.back() != '/' && name.find("//") == std::string::npos &&
         ('/' + name + '/').find("/./") == std::string::npos && name.find('\0') == std::string::npos;
}

}  // namespace

std::vector<ForeignTensor> checkpoint_tensors(const CheckpointFile& file, bool averages) {
  std::vector<ForeignTensor> tensors;
  for (const CheckpointEntry& entry : file.entries()) {
    if (!entry.path.starts_with(kGroup)) continue;
    ForeignTensor tensor;
    tensor.name = entry.path.substr(kGroup.size());
    const auto average =
        averages ? std::ranges::find(file.entries(), average_path(tensor.name), &CheckpointEntry::path)
                 : file.entries().end();
    const CheckpointEntry& from = average == file.entries().end() ? entry : *average;
    tensor.dtype = from.dtype;
    const auto extents = from.shape.extents();
    tensor.extents.assign(extents.begin(), extents.end());
    tensor.bytes.resize(Tensor(nullptr, from.dtype, from.shape).size_bytes());
    file.read_into(from.path, Tensor(tensor.bytes.data(), from.dtype, from.shape));
    tensors.push_back(std::move(tensor));
  }
  LOCKSTEP_REQUIRE(!tensors.empty(), ErrorKind::checkpoint, "{}: holds no variables", file.path());
  std::ranges::stable_sort(tensors, std::ranges::greater(),
                           [](const ForeignTensor& tensor) { return size_in_bytes(tensor.dtype); });
  return tensors;
}

std::vector<std::pair<std::string, std::string>> checkpoint_facts(const CheckpointHeader& header) {
  return {{"producer", "lockstep"},
          {"lockstep_version", header.lockstep_version},
          {"global_step", std::to_string(header.global_step)},
          {"digest", header.digest},
          {"config", header.config}};
}

namespace {

/// A name must be no group of another one: in the file both would be at one place.
void check_groups(const std::map<std::string, std::string>& from_of, const std::string& where) {
  for (const auto& [name, from] : from_of)
    for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1))
      if (const auto other = from_of.find(name.substr(0, slash)); other != from_of.end())
        throw Error(ErrorKind::data,
                    fmt::format("'{}' (from {}) and '{}' (from {}) cannot both be names of variables",
                                other->first, other->second, name, from),
                    where,
                    "Name the model with --like: then only its variables are taken, under their own names.");
}

}  // namespace

void write_weights_of(std::span<const ImportedTensor> tensors, const std::string& output,
                      std::span<const std::string> inputs) {
  const std::string where = inputs.empty() ? "" : inputs.front();
  std::map<std::string, std::string> from_of;  // by name
  std::vector<CheckpointTensor> all;
  for (const auto& [from, tensor] : tensors) {
    if (!is_variable_name(tensor.name))
      throw Error(ErrorKind::data,
                  fmt::format("'{}' (from {}) is not a name of a variable", tensor.name, from), where,
                  "Give it another one in the mapping.");
    if (!from_of.emplace(tensor.name, from).second)
      throw Error(ErrorKind::data,
                  fmt::format("two tensors get the name '{}', one of them {}", tensor.name, from), where,
                  "Correct the mapping.");
    // Written only, so the bytes stay as they are.
    all.push_back({std::string(kGroup) + tensor.name,
                   Tensor(const_cast<std::byte*>(tensor.bytes.data()), tensor.dtype, Shape(tensor.extents))});
  }
  check_groups(from_of, where);
  CheckpointHeader header;
  header.weights_only = true;
  header.shards = 0;  // they fit any
  header.lockstep_version = kVersion;
  OutputFile to(output, inputs);
  write_checkpoint_to(to.seekable(), output, header, all);
  to.publish();
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_tools.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <set>

#include "core/buffer.h"
#include "core/log.h"
#include "core/name_list.h"
#include "io/checkpoint_store.h"
#include "io/output_file.h"
#include "io/tensor_values.h"

namespace lockstep {

namespace {

constexpr std::string_view kGroup = "variables/";

/// A tensor loaded from a file, with its memory.
struct Loaded {
  Buffer memory;
  Tensor tensor;
};

Loaded load(const CheckpointFile& file, const CheckpointEntry& entry) {
  Loaded loaded;
  const std::size_t bytes = Tensor(nullptr, entry.dtype, entry.shape).size_bytes();
  loaded.memory = Buffer(cpu_device(), bytes);
  loaded.tensor = Tensor(loaded.memory.data(), entry.dtype, entry.shape);
  file.read_into(entry.path, loaded.tensor);
  return loaded;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.size_bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.size_bytes()) == 0;
}

bool same_form(const CheckpointEntry& a, const CheckpointEntry& b) {
  return a.dtype == b.dtype && a.shape == b.shape;
}

/// The index along each axis of element `i` in memory.
std::vector<std::int64_t> place_of(std::int64_t i, const Shape& shape) {
  std::vector<std::int64_t> place(static_cast<std::size_t>(shape.rank()));
  for (int axis = shape.rank(); axis-- > 0; i /= shape[axis])
    place[static_cast<std::size_t>(axis)] = i % shape[axis];
  return place;
}

void compare_values(const Tensor& a, const Tensor& b, TensorDifference& difference) {
  const std::size_t count = static_cast<std::size_t>(a.num_elements());
  const std::size_t size = count > 0 ? a.size_bytes() / count : 0;
  const auto* first = static_cast<const char*>(a.raw());
  const auto* second = static_cast<const char*>(b.raw());
  const std::vector<double> x = values_of(a), y = values_of(b);
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(first + i * size, second + i * size, size) == 0) continue;
    if (++difference.num_different == 1) {
      difference.first_place = place_of(static_cast<std::int64_t>(i), a.shape());
      difference.first_value = x[i];
      difference.second_value = y[i];
    }
    const double absolute = std::isnan(x[i]) && std::isnan(y[i]) ? 0
                            : x[i] == y[i]                       ? 0
                                                                 : std::abs(x[i] - y[i]);
    const double scale = std::max(std::abs(x[i]), std::abs(y[i]));
    const double relative = absolute == 0 ? 0 : std::isinf(absolute) ? absolute : absolute / scale;
    // A maximum that is NaN stays NaN.
    if (!(absolute <= difference.max_absolute) && !std::isnan(difference.max_absolute))
      difference.max_absolute = absolute;
    if (!(relative <= difference.max_relative) && !std::isnan(difference.max_relative))
      difference.max_relative = relative;
  }
}

std::vector<std::string> variable_names(const CheckpointFile& file) {
  std::vector<std::string> names;
  for (const CheckpointEntry& entry : file.entries())
    if (entry.path.starts_with(kGroup)) names.push_back(entry.path.substr(kGroup.size()));
  return names;
}

void refuse_unused(const char* option, const std::vector<std::string>& unused, const CheckpointFile& file,
                   const std::vector<std::string>& names) {
  if (unused.empty()) return;
  throw Error(ErrorKind::usage, fmt::format("{} '{}' matches no variable", option, unused.front()),
              file.path(),
              fmt::format("{}Its variables: {}.", advice_for_pattern(unused.front()), name_list(names)));
}

CheckpointHeader weights_header(const CheckpointFile& file) {
  CheckpointHeader header = file.header();
  header.weights_only = true;
  header.created.clear();  // the time of writing
  return header;
}

void write_weights(OutputFile& output, const CheckpointHeader& header, const std::vector<std::string>& paths,
                   const std::vector<Loaded>& loaded) {
  std::vector<CheckpointTensor> tensors;
  for (std::size_t i = 0; i < paths.size(); ++i) tensors.push_back({paths[i], loaded[i].tensor});
  try {
    write_checkpoint_to(output.seekable(), output.path(), header, tensors);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::checkpoint) throw;
    throw Error(ErrorKind::output, error.what_happened(), error.where(),
                "Free some space, or choose another --output.");
  }
  output.publish();
}

Error not_of_one_model(const std::string& path, std::string what, const std::string& other) {
  return Error(ErrorKind::checkpoint, std::move(what), path,
               fmt::format("Only checkpoints of one model can be averaged; it was compared with {}.", other));
}

/// The mean of one variable over all files.
Loaded mean_of(std::span<const CheckpointFile> files, const CheckpointEntry& entry) {
  Loaded result = load(files.front(), entry);
  const bool real = entry.dtype == DType::f32 || entry.dtype == DType::f64;
  std::vector<double> sum = real ? values_of(result.tensor) : std::vector<double>();
  for (const CheckpointFile& file : files.subspan(1)) {
    const Loaded other = load(file, entry);
    if (real) {
      const std::vector<double> values = values_of(other.tensor);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
    } else if (!same_bits(result.tensor, other.tensor)) {
      throw not_of_one_model(
          file.path(),
          fmt::format("{} is {}, which has no mean, and differs", entry.path, name_of(entry.dtype)),
          files.front().path());
    }
  }
  const auto count = static_cast<double>(files.size());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const double mean = sum[i] / count;
    if (entry.dtype == DType::f32)
      static_cast<float*>(result.tensor.raw())[i] = static_cast<float>(mean);
    else
      static_cast<double*>(result.tensor.raw())[i] = mean;
  }
  return result;
}

}  // namespace

CheckpointFile open_checkpoint_at(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::is_directory(path, code)) return CheckpointFile(path);
  std::vector<std::string> damaged;
  std::optional<CheckpointFile> newest = CheckpointStore(path, 0).open_newest_intact(&damaged);
  for (const std::string& reason : damaged) log_warning("skipped a damaged checkpoint: {}", reason);
  if (!newest)
    throw Error(ErrorKind::checkpoint, "holds no intact checkpoint", path,
                "Give a checkpoint file or a run directory.");
  return std::move(*newest);
}

std::vector<TensorDifference> compare_checkpoints(const CheckpointFile& first, const CheckpointFile& second) {
  using Kind = TensorDifference::Kind;
  std::vector<TensorDifference> all;
  const auto &a = first.entries(), &b = second.entries();
  for (std::size_t i = 0, j = 0; i < a.size() || j < b.size();) {
    TensorDifference difference;
    if (j == b.size() || (i < a.size() && a[i].path < b[j].path)) {
      difference.path = a[i++].path;
      difference.kind = Kind::only_first;
    } else if (i == a.size() || b[j].path < a[i].path) {
      difference.path = b[j++].path;
      difference.kind = Kind::only_second;
    } else {
      difference.path = a[i].path;
      if (!same_form(a[i], b[j])) {
        difference.kind = Kind::shape;
        difference.detail = fmt::format("{} of {}, {} of {}", name_of(a[i].dtype), a[i].shape.to_string(),
                                        name_of(b[j].dtype), b[j].shape.to_string());
      } else {
        const Loaded x = load(first, a[i]), y = load(second, b[j]);
        if (!same_bits(x.tensor, y.tensor)) {
          difference.kind = Kind::values;
          compare_values(x.tensor, y.tensor, difference);
        }
      }
      ++i;
      ++j;
    }
    all.push_back(std::move(difference));
  }
  return all;
}

std::string new_name(const NameRules& rename, const std::string& name, std::set<std::string>& taken,
                     std::string_view what) {
  std::string other = rename.renamed(name);
  LOCKSTEP_REQUIRE(
      !other.empty() && other.front() != '/' && other.back() != '/' &&
          other.find("//") == std::string::npos && ('/' + other + '/').find("/./") == std::string::npos,
      ErrorKind::usage, "{} produces '{}' from '{}', which is not a valid name", what, other, name);
  LOCKSTEP_REQUIRE(taken.insert(other).second, ErrorKind::usage, "{} gives two variables the name '{}'", what,
                   other);
  return other;
}

void export_weights(const CheckpointFile& file, const NamePatterns& variables, const NameRules& rename,
                    const std::string& output, bool averages) {
  OutputFile to(output, std::vector{file.path()});
  const std::vector<std::string> names = variable_names(file);
  refuse_unused("--variables", variables.unused(names), file, names);
  refuse_unused("--rename", rename.unused(names), file, names);
  std::vector<std::string> paths;
  std::vector<Loaded> loaded;
  std::set<std::string> taken;
  for (const CheckpointEntry& entry : file.entries()) {
    if (!entry.path.starts_with(kGroup)) continue;
    const std::string name = entry.path.substr(kGroup.size());
    if (!variables.matches(name)) continue;
    paths.push_back(std::string(kGroup) + new_name(rename, name, taken, "--rename"));
    const auto average = averages
                             ? std::ranges::find(file.entries(), average_path(name), &CheckpointEntry::path)
                             : file.entries().end();
    loaded.push_back(load(file, average == file.entries().end() ? entry : *average));
  }
  LOCKSTEP_REQUIRE(!paths.empty(), ErrorKind::checkpoint, "{}: holds no variables", file.path());
  write_weights(to, weights_header(file), paths, loaded);
}

void average_weights(std::span<const CheckpointFile> files, const std::string& output) {
  LOCKSTEP_CHECK(!files.empty(), "no files");
  std::vector<std::string> paths_of_files;
  for (const CheckpointFile& file : files) paths_of_files.push_back(file.path());
  OutputFile to(output, paths_of_files);
  const std::vector<std::string> names = variable_names(files.front());
  LOCKSTEP_REQUIRE(!names.empty(), ErrorKind::checkpoint, "{}: holds no variables", files.front().path());
  for (const CheckpointFile& file : files) {
    for (const std::string& name : variable_names(file))
      if (!files.front().has(std::string(kGroup) + name))
        throw not_of_one_model(files.front().path(), fmt::format("has no variable {}", name), file.path());
    for (const CheckpointEntry& entry : files.front().entries()) {
      if (!entry.path.starts_with(kGroup)) continue;
      const auto& entries = file.entries();
      const auto there = std::find_if(entries.begin(), entries.end(), [&](const CheckpointEntry& candidate) {
        return candidate.path == entry.path;
      });
      if (there == entries.end())
        throw not_of_one_model(file.path(),
                               fmt::format("has no variable {}", entry.path.substr(kGroup.size())),
                               files.front().path());
      if (!same_form(entry, *there))
        throw not_of_one_model(
            file.path(),
            fmt::format("{} is {} of {}", entry.path, name_of(there->dtype), there->shape.to_string()),
            files.front().path());
    }
  }
  std::vector<std::string> paths;
  std::vector<Loaded> means;
  for (const CheckpointEntry& entry : files.front().entries()) {
    if (!entry.path.starts_with(kGroup)) continue;
    paths.push_back(entry.path);
    means.push_back(mean_of(files, entry));
  }
  write_weights(to, weights_header(files.back()), paths, means);
}

}  // namespace lockstep

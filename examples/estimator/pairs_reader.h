// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// pairs, a reader that is not part of Lockstep: a text file with a number and its label on each line.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>

#include <lockstep/base.h>
#include <lockstep/files.h>
#include <lockstep/reader.h>

namespace example {

using namespace lockstep;

struct PairsOptions {
  std::string path;
};
inline constexpr std::array kPairsOptions = with_common_options(
    std::array{option<&PairsOptions::path>("path", kRequired, {}, "the file, plain or gzip")});

inline DatasetParts read_pairs(const std::string& path, const Params& options) {
  DatasetParts parts;
  parts.source = path;
  parts.record_word = "line";
  parts.first_record = 1;
  parts.feature_shape = Shape{1};
  parts.num_label_columns = 1;
  parts.transform = transform_options(options);
  std::vector<float> features;
  TextLineReader lines({path}, 0);
  while (const auto line = lines.next()) {
    float x = 0, y = 0;
    if (std::sscanf(line->value.c_str(), "%f %f", &x, &y) != 2)
      throw Error(ErrorKind::data, "is not two numbers", line->key, "Write a number and its label.");
    features.push_back(x);
    parts.label_rows.push_back(y);
  }
  parts.size = static_cast<std::int64_t>(features.size());
  parts.features = Buffer(cpu_device(), sizeof(float) * features.size());
  std::ranges::copy(features, parts.features.as<float>().begin());
  return parts;
}

inline const ReaderEntry kPairs = {"pairs", "a number and its label per line", kPairsOptions,
                                   [](const Params& options, const std::string& base) {
                                     return read_pairs(resolved_path(options.as<PairsOptions>().path, base),
                                                       options);
                                   },
                                   [](const Params& options, const InputRequest& request) {
                                     return read_pairs(only_file(request, "pairs"), options);
                                   }};

}  // namespace example

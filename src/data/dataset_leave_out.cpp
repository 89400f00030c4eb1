// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A data set without its bad records.
#include <algorithm>
#include <cstring>

#include "core/device.h"
#include "core/error.h"
#include "data/dataset.h"
#include "data/good_samples.h"
#include "data/sample_stream.h"
#include "data/table_info.h"

namespace lockstep {

void Dataset::leave_out(std::vector<BadRecord> bad, const std::vector<std::int64_t>& samples) {
  LOCKSTEP_CHECK(inputs_.empty() && stream_ == nullptr && num_left_out_ == 0);
  if (samples.empty()) return;
  if (parts_.feature_step != elements_per_sample_ || parts_.label_step != parts_.num_label_columns)
    throw Error(ErrorKind::config, "its samples overlap, and none can be left out for a bad record",
                origin_->source, "Write bad_records: stop, or remove the bad records from the other inputs.");
  if (std::ssize(samples) == parts_.size)
    throw Error(ErrorKind::data,
                bad.empty()
                    ? "all of its records are bad in other inputs"
                    : fmt::format("all of its {} records are bad: {}", parts_.size, bad.front().reason),
                origin_->source, "Check the reader's options.");
  const GoodSamples good(parts_.size, samples);
  left_out_ = std::move(bad);
  num_left_out_ = std::ssize(samples);
  origin_ = std::make_shared<const SampleOrigin>(good_origin(origin_, good));
  make_checks();
  if (has_store())
    parts_.store = good_samples_of(parts_.store, good, sample_bytes(), parts_.num_label_columns);
  if (values_.features != nullptr) keep_only(good);
  keep_keys(good);
  parts_.size = good.size();
  num_features_ = parts_.size * elements_per_sample_;
  if (values_.features != nullptr) set_values();
  if (!has_store()) check_values();
}

void Dataset::keep_keys(const GoodSamples& good) {
  if (parts_.table == nullptr || parts_.table->keys.empty()) return;
  auto table = std::make_shared<TableInfo>(*parts_.table);
  table->keys.clear();
  for (std::int64_t i = 0; i < good.size(); ++i)
    table->keys.push_back(parts_.table->keys[static_cast<std::size_t>(good.at(i))]);
  parts_.table = std::move(table);
}

void Dataset::keep_only(const GoodSamples& good) {
  const std::int64_t bytes = sample_bytes(), columns = parts_.num_label_columns;
  Buffer features(cpu_device(), static_cast<std::size_t>(good.size() * bytes));
  for (std::int64_t i = 0; i < good.size();) {
    const std::int64_t from = good.at(i), count = good.run_from(i);
    std::memcpy(static_cast<char*>(features.data()) + i * bytes,
                static_cast<const char*>(parts_.features.data()) + from * bytes,
                static_cast<std::size_t>(count * bytes));
    const auto move = [&](auto& labels) {
      if (!labels.empty())
        std::copy_n(labels.begin() + from * columns, count * columns, labels.begin() + i * columns);
    };
    move(parts_.label_indices);
    move(parts_.label_rows);
    i += count;
  }
  parts_.features = std::move(features);
  const auto labels = static_cast<std::size_t>(good.size() * columns);
  if (!parts_.label_indices.empty()) parts_.label_indices.resize(labels);
  if (!parts_.label_rows.empty()) parts_.label_rows.resize(labels);
}

}  // namespace lockstep

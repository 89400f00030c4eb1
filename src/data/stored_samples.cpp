// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/stored_samples.h"

#include <algorithm>

#include "core/error.h"
#include "data/dataset_fingerprint.h"
#include "data/values_in_memory.h"

namespace lockstep {

namespace {

/// Without regard to blocks, this much is read for one sample.
constexpr std::int64_t kPageBytes = 4096;

}  // namespace

StoredSamples::StoredSamples(OpenedSamples opened, const DatasetMemory& memory)
    : opened_(std::move(opened)), fingerprint_(opened_.fingerprint()) {
  if (opened_.has_store()) prepare(memory);
}

void StoredSamples::prepare(const DatasetMemory& memory) {
  block_samples_ = memory.block_samples;
  const int threads = whole_set_threads(memory.threads);
  const bool fits = size_bytes() <= memory.bytes, random_access = parts().store->has_random_access();
  const bool is_there = opened_.in_memory() && (opened_.are_values_shared() || fits);
  if (!is_there && random_access) opened_.forget_values();
  if (!is_there && memory.read_once && random_access) {
    read_once_ = true;
  } else if (is_there || fits) {
    if (!is_there) load_values(opened_, random_access ? threads : 1);
    opened_.checks()->check_finite(0, size(), opened_.values_at(0));
  } else {
    return open_stream(memory);
  }
  fingerprint_ = fingerprint_of(opened_, threads);
}

void StoredSamples::open_stream(const DatasetMemory& memory) {
  const DatasetParts& form = parts();
  if (!form.store->has_random_access())
    throw Error(
        ErrorKind::config,
        fmt::format("takes {:.3g} GB, but memory_gb gives this process {:.3g} GB, and a file that is "
                    "compressed as a whole cannot be read while it is used",
                    static_cast<double>(size_bytes()) * 1e-9, static_cast<double>(memory.bytes) * 1e-9),
        source(), "Uncompress the file, or set memory_gb higher.");
  const std::int64_t least = form.store->decodes_samples() ? 1
                                                           : std::max(form.store->samples_per_chunk(),
                                                                      kPageBytes / form.sample_bytes());
  const BlockGrid read_together =
      memory.random_order && memory.block_samples == 0 ? opened_.grid(least) : blocks();
  const SampleSizes sizes{.feature_bytes = form.sample_bytes(),
                          .label_indices = form.label_kind == LabelKind::indices ? form.num_label_columns : 0,
                          .label_rows = form.label_kind == LabelKind::rows ? form.num_label_columns : 0};
  fingerprint_ = fingerprint_of(opened_, whole_set_threads(memory.threads));
  stream_ = std::make_unique<SampleStream>(
      form.store, read_together, sizes,
      [checks = opened_.checks()](std::int64_t first, std::int64_t count, const SampleValues& values) {
        checks->check_finite(first, count, values);
        checks->check_labels(first, count, values);
      },
      [origin = opened_.origin()](std::int64_t sample) { return origin->where(sample); },
      SampleStreamOptions{.memory_bytes = memory.bytes,
                          .timeout_seconds = memory.timeout_seconds,
                          .threads = memory.threads});
}

void StoredSamples::read(std::int64_t first, std::int64_t count, const SampleRoom& to) const {
  LOCKSTEP_CHECK(first >= 0 && count >= 0 && first + count <= size());
  if (read_once_) {
    parts().store->read(first, count, to);
    opened_.checks()->check_finite(first, count, to);
    return;
  }
  const std::int64_t bytes = parts().sample_bytes(), columns = parts().num_label_columns;
  for (std::int64_t i = 0; i < count; ++i)
    with_sample(first + i, [&](const SampleValues& values) {
      std::copy_n(static_cast<const char*>(values.features), bytes,
                  static_cast<char*>(to.features) + i * bytes);
      if (values.label_indices != nullptr)
        std::copy_n(values.label_indices, columns, to.label_indices + i * columns);
      if (values.label_rows != nullptr) std::copy_n(values.label_rows, columns, to.label_rows + i * columns);
    });
}

std::int64_t StoredSamples::sequence_length(std::int64_t sample) const {
  LOCKSTEP_CHECK(parts().sequence.has_value());
  std::int64_t length = 0;
  with_sample(sample, [&](const SampleValues& values) {
    length = lockstep::sequence_length(*parts().sequence, parts().feature_shape, parts().feature_dtype,
                                       values.features);
  });
  return length;
}

void StoredSamples::check_labels(const LabelDemand& demand) const {
  const SampleChecks& checks = *opened_.checks();
  opened_.checks()->demand(demand);
  if (stream_ == nullptr) checks.check_labels(0, size(), opened_.values_at(0));
}

}  // namespace lockstep

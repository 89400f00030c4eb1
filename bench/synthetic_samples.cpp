// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "synthetic_samples.h"

#include <utility>

#include "core/device.h"

namespace lockstep {

ReaderDataset synthetic_samples(const BenchNet& net, std::int64_t samples) {
  DatasetParts parts;
  parts.source = "synthetic";
  parts.record_word = "sample";
  parts.size = samples;
  parts.feature_shape = net.features;
  const std::int64_t count = samples * net.features.num_elements();
  parts.features = Buffer(cpu_device(), static_cast<std::size_t>(count) * sizeof(float));
  const auto values = parts.features.as<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = net.ids > 0 ? static_cast<float>(i * 2654435761U % static_cast<std::size_t>(net.ids))
                            : static_cast<float>(i * 2654435761U % 2000) * 1e-3F - 1.0F;
  parts.num_label_columns = net.positions;
  for (std::int64_t i = 0; i < samples * net.positions; ++i)
    parts.label_indices.push_back(static_cast<std::int32_t>(i * 7 % net.classes));
  return ReaderDataset(std::move(parts));
}

}  // namespace lockstep

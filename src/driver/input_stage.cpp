// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/input_stage.h"

#include <cstring>

#include "core/trace.h"
#include "driver/executor.h"

namespace lockstep {

/// One microshard's samples: in pinned memory and on the device.
struct InputStage::Place {
  Microshard microshard{};
  Buffer pinned_features, pinned_labels, features, labels;
  Labels on_device;
};

/// One batch.
struct InputStage::Side {
  explicit Side(Device& device) : copied(device), read(device) {}
  std::vector<Place> places;
  std::int64_t ticket = -1;  ///< of the batch that is in it, or -1
  DeviceEvent copied;        ///< its samples are on the device
  DeviceEvent read;          ///< and are not needed there any more
};

InputStage::InputStage(Device& device, Range shards, std::int64_t most_samples, std::int64_t features,
                       std::int64_t label_columns)
    : device_(device), shards_(shards), features_(features), label_columns_(label_columns), copies_(device) {
  const auto bytes = [&](std::int64_t columns) {
    return static_cast<std::size_t>(most_samples * columns) * sizeof(float);
  };
  for (int i = 0; i < 2; ++i) {
    sides_.push_back(std::make_unique<Side>(device));
    sides_.back()->places.resize(static_cast<std::size_t>(shards.size()));
    for (Place& place : sides_.back()->places) {
      place.pinned_features = Buffer::pinned(device, bytes(features));
      place.pinned_labels = Buffer::pinned(device, bytes(label_columns));
      place.features = Buffer(device, bytes(features));
      place.labels = Buffer(device, bytes(label_columns));
    }
  }
}

InputStage::~InputStage() = default;

void InputStage::fill(Side& target, const BatchView& batch) {
  const Traced traced("input", "fetch");
  target.copied.wait();                    // pinned memory is free again
  target.read.stream_wait(copies_.get());  // and so is the device's
  target.ticket = -1;
  for (Place& place : target.places) {
    const int shard = static_cast<int>(shards_.first + (&place - target.places.data()));
    place.microshard = batch.extent(shard);
    place.on_device = {};
    const std::int64_t n = place.microshard.n;
    if (n == 0) continue;
    auto* features = static_cast<float*>(place.pinned_features.data());
    const Labels labels = batch.fetch(place.microshard, 0, 0, features);
    const auto bytes = [&](std::int64_t columns) {
      return static_cast<std::size_t>(n * columns) * sizeof(float);
    };
    device_.upload(copies_.get(), place.features.data(), features, bytes(features_));
    const bool dense = labels.rows != nullptr;
    if (!dense && labels.indices == nullptr) continue;
    const std::size_t size = bytes(dense ? label_columns_ : 1);
    std::memcpy(place.pinned_labels.data(),
                dense ? static_cast<const void*>(labels.rows) : static_cast<const void*>(labels.indices),
                size);
    device_.upload(copies_.get(), place.labels.data(), place.pinned_labels.data(), size);
    if (dense)
      place.on_device.rows = static_cast<const float*>(place.labels.data());
    else
      place.on_device.indices = static_cast<const std::int32_t*>(place.labels.data());
  }
  target.copied.record(copies_.get());
  target.ticket = batch.ticket;
}

void InputStage::use(const BatchView& batch, void* stream) {
  const bool is_there = batch.ticket >= 0 && side(1 - current_).ticket == batch.ticket;
  current_ = 1 - current_;
  if (!is_there) fill(side(current_), batch);
  side(current_).ticket = -1;
  side(current_).copied.stream_wait(stream);
}

void InputStage::used(void* stream) { side(current_).read.record(stream); }

void InputStage::prefetch(const BatchView& batch) { fill(side(1 - current_), batch); }

const InputStage::Place& InputStage::place(int shard) const {
  return sides_[static_cast<std::size_t>(current_)]->places[static_cast<std::size_t>(shard - shards_.first)];
}
const Microshard& InputStage::microshard(int shard) const { return place(shard).microshard; }
const float* InputStage::features(int shard) const {
  return static_cast<const float*>(place(shard).features.data());
}
Labels InputStage::labels(int shard) const { return place(shard).on_device; }

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/input_stage.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/range.h"
#include "core/trace.h"

namespace lockstep {

namespace {

/// Before the samples: the number of the step. It keeps the samples aligned.
constexpr std::size_t kHeaderBytes = 64;

float* after_header(const Buffer& buffer) {
  return reinterpret_cast<float*>(static_cast<std::byte*>(buffer.data()) + kHeaderBytes);
}

}  // namespace

/// One microshard's samples: in pinned memory and on the device.
struct InputStage::Place {
  Microshard microshard{};
  Buffer pinned_input, input;  ///< the header, then the features
  Buffer pinned_labels, labels;
  LabelBlock on_host, on_device;
  std::vector<LossCounts> counts;
};

/// One batch.
struct InputStage::Side {
  explicit Side(Device& device) : copied(device), read(device) {}
  std::vector<Place> places;
  const BatchSource* source = nullptr;  ///< of the batch that was prefetched into it; null: none was
  Batch batch{};
  std::int64_t step = 0;
  DeviceEvent copied;  ///< its samples are on the device
  DeviceEvent read;    ///< and are not needed there any more
};

InputStage::InputStage(Device& device, Range shards, std::int64_t most_samples, std::int64_t features,
                       const Heads& heads)
    : device_(device), shards_(shards), features_(features), heads_(heads), copies_(device) {
  const auto bytes = [&](std::int64_t columns) {
    return static_cast<std::size_t>(most_samples * columns) * sizeof(float);
  };
  for (int i = 0; i < 2; ++i) {
    sides_.push_back(std::make_unique<Side>(device));
    sides_.back()->places.resize(static_cast<std::size_t>(shards.size()));
    for (Place& place : sides_.back()->places) {
      place.pinned_input = Buffer::pinned(device, kHeaderBytes + bytes(features));
      place.pinned_labels = Buffer::pinned(device, bytes(heads.label_words()));
      place.input = Buffer(device, kHeaderBytes + bytes(features));
      place.labels = Buffer(device, bytes(heads.label_words()));
      place.counts.resize(static_cast<std::size_t>(heads.size()));
    }
  }
}

InputStage::~InputStage() = default;

void InputStage::fill(Side& target, BatchSource& source, const Batch& batch, std::int64_t step) {
  const Traced traced("input", "fetch");
  target.copied.wait();                    // pinned memory is free again
  target.read.stream_wait(copies_.get());  // and so is the device's
  target.source = nullptr;
  for (Place& place : target.places) {
    const int shard = static_cast<int>(shards_.first + (&place - target.places.data()));
    place.microshard = source.extent(batch, shard);
    place.on_host = place.on_device = {};
    std::ranges::fill(place.counts, LossCounts{});
    const std::int64_t n = place.microshard.n;
    if (n == 0) continue;
    const Labels labels =
        source.fetch(batch, place.microshard, {.worker = 0, .slot = 0}, after_header(place.pinned_input));
    *static_cast<std::uint32_t*>(place.pinned_input.data()) = static_cast<std::uint32_t>(step);
    device_.upload(copies_.get(), place.input.data(), place.pinned_input.data(),
                   kHeaderBytes + static_cast<std::size_t>(n * features_) * sizeof(float));
    const LabelBlock block = heads_.arrange(labels, n, place.pinned_labels.data());
    heads_.count(block, n, place.counts);
    if (block.data == nullptr) continue;
    const std::size_t size = heads_.bytes(block, n);
    if (block.data != place.pinned_labels.data()) std::memcpy(place.pinned_labels.data(), block.data, size);
    device_.upload(copies_.get(), place.labels.data(), place.pinned_labels.data(), size);
    place.on_host = {place.pinned_labels.data(), block.columns};
    place.on_device = {place.labels.data(), block.columns};
  }
  target.copied.record(copies_.get());
}

void InputStage::use(BatchSource& source, const Batch& batch, std::int64_t step, void* stream) {
  current_ = 1 - current_;
  Side& target = side(current_);
  if (target.source != &source || target.batch != batch || target.step != step)
    fill(target, source, batch, step);
  target.source = nullptr;
  target.copied.stream_wait(stream);
}

void InputStage::used(void* stream) { side(current_).read.record(stream); }

void InputStage::prefetch(BatchSource& source, const Batch& batch, std::int64_t step) {
  Side& target = side(1 - current_);
  fill(target, source, batch, step);
  target.source = &source;
  target.batch = batch;
  target.step = step;
}

const InputStage::Place& InputStage::place(int shard) const {
  return sides_[static_cast<std::size_t>(current_)]->places[static_cast<std::size_t>(shard - shards_.first)];
}
const float* InputStage::features(int shard) const { return after_header(place(shard).input); }
const std::uint32_t* InputStage::step_word(int shard) const {
  return static_cast<const std::uint32_t*>(place(shard).input.data());
}
LabelBlock InputStage::labels(int shard) const { return place(shard).on_device; }
LabelBlock InputStage::host_labels(int shard) const { return place(shard).on_host; }
std::span<const LossCounts> InputStage::counts(int shard) const { return place(shard).counts; }

}  // namespace lockstep

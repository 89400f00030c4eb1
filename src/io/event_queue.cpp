// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/event_queue.h"

#include <algorithm>

namespace lockstep {

namespace {

constexpr std::size_t kEventBytes = 256;  // of the structs of a value or a note, about
constexpr std::size_t kLargeBytes = 4096;

struct BytesOf {
  std::size_t operator()(float) const { return 0; }
  std::size_t operator()(const HistogramData& data) const {
    return (data.limits.size() + data.counts.size()) * sizeof(double);
  }
  std::size_t operator()(const ImageData& data) const { return data.png.size(); }
  std::size_t operator()(const AudioData& data) const { return data.encoded.size(); }
  std::size_t operator()(const TensorData& data) const {
    std::size_t bytes = data.bytes.size();
    for (const std::string& text : data.strings) bytes += text.size() + sizeof text;
    return bytes;
  }
};

std::size_t bytes_of(const SummaryValue& value) {
  return kEventBytes + value.tag.size() + std::visit(BytesOf(), value.value) + value.metadata.content.size() +
         value.metadata.description.size();
}

struct NoteBytes {
  std::size_t operator()(const std::vector<SummaryValue>&) const { return 0; }
  std::size_t operator()(const SessionNote& note) const {
    return note.checkpoint_path.size() + note.message.size();
  }
  std::size_t operator()(const GraphNote& note) const { return note.graph_def.size(); }
  std::size_t operator()(const RunMetadataNote& note) const {
    return note.tag.size() + note.run_metadata.size();
  }
};

}  // namespace

void EventQueue::Batch::clear() {
  numbers_.clear();
  events_.clear();
  bytes_ = 0;
}

void EventQueue::Batch::append(const Head& head, std::string_view tag) {
  const std::size_t start = numbers_.size();
  numbers_.resize(start + sizeof head + tag.size());
  std::memcpy(numbers_.data() + start, &head, sizeof head);
  if (!tag.empty()) std::memcpy(numbers_.data() + start + sizeof head, tag.data(), tag.size());
}

bool EventQueue::fits(std::size_t bytes, bool large) {
  const std::size_t most = large ? most_bytes_ - most_bytes_ / 4 : most_bytes_;
  if (bytes > most || bytes_ > most - bytes) {
    ++dropped_;
    return false;
  }
  bytes_ += bytes;
  waiting_.bytes_ += bytes;
  return true;
}

bool EventQueue::push(std::string_view tag, std::int64_t step, double wall_time, float value) {
  if (!fits(sizeof(Batch::Head) + tag.size(), false)) return false;
  waiting_.append({wall_time, step, value, static_cast<std::uint32_t>(tag.size())}, tag);
  return true;
}

bool EventQueue::push(QueuedEvent&& event) {
  const std::int64_t before = dropped_;
  if (auto* const values = std::get_if<std::vector<SummaryValue>>(&event.what)) {
    std::erase_if(*values, [this](const SummaryValue& value) {
      return !fits(bytes_of(value), !std::holds_alternative<float>(value.value));
    });
    if (values->empty()) return dropped_ == before;
  } else {
    const std::size_t bytes = kEventBytes + std::visit(NoteBytes(), event.what);
    if (!fits(bytes, bytes > kLargeBytes)) return false;
  }
  waiting_.append({event.wall_time, event.step, 0, Batch::kIsEvent}, {});
  waiting_.events_.push_back(std::move(event));
  return dropped_ == before;
}

void EventQueue::drop_all() {
  bytes_ -= waiting_.bytes_;
  waiting_ = Batch();
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/event_reader.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "core/run_file.h"
#include "event.pb.h"
#include "io/crc32c.h"
#include "io/event_messages.h"
#include "io/file_descriptor.h"

namespace lockstep {

namespace {

constexpr std::size_t kHeadBytes = 12;  // length and its CRC
constexpr std::size_t kBlockBytes = 1 << 20;

template <typename Integer>
Integer little_endian(const char* from) {
  Integer value = 0;
  for (std::size_t byte = 0; byte < sizeof value; ++byte)
    value |= static_cast<Integer>(static_cast<unsigned char>(from[byte])) << (8 * byte);
  return value;
}

EventRecord to_record(event_file::Event& event) {
  EventRecord record;
  record.wall_time = event.wall_time();
  record.step = event.step();
  switch (event.what_case()) {
    case event_file::Event::kFileVersion:
      record.file_version = event.file_version();
      break;
    case event_file::Event::kSessionLog:
      record.session = static_cast<SessionStatus>(event.session_log().status());
      record.restart = record.session == SessionStatus::start;
      record.checkpoint_path = event.session_log().checkpoint_path();
      record.message = event.session_log().msg();
      break;
    case event_file::Event::kLogMessage:
      record.message = event.log_message().message();
      break;
    case event_file::Event::kGraphDef:
      record.graph_def = std::move(*event.mutable_graph_def());
      break;
    case event_file::Event::kTaggedRunMetadata:
      record.run_metadata_tag = event.tagged_run_metadata().tag();
      record.run_metadata = std::move(*event.mutable_tagged_run_metadata()->mutable_run_metadata());
      break;
    case event_file::Event::kSummary:
      for (event_file::Summary::Value& value : *event.mutable_summary()->mutable_value())
        record.values.push_back({value.tag(), kind_of(value), static_cast<double>(value.simple_value()),
                                 data_of(value), metadata_of(value)});
      break;
    case event_file::Event::kMetaGraphDef:
    case event_file::Event::WHAT_NOT_SET:
      break;
  }
  return record;
}

}  // namespace

struct EventReader::Impl {
  std::string path, note;
  std::FILE* file = nullptr;
  std::uint64_t offset = 0;  // of the current record
  bool ended = false;

  ~Impl() {
    if (file != nullptr) std::fclose(file);  // opened for reading: no data can be lost
  }

  Error damaged(std::string_view what) const {
    return Error(ErrorKind::data, fmt::format("{}, in the record at byte {}", what, offset), path,
                 "The file is damaged from there on, or is not an event file.");
  }

  /// Appends up to `bytes` bytes to `to`; fewer only at the end of the file.
  void read(std::string& to, std::uint64_t bytes) {
    while (bytes > 0) {  // in blocks, so that a wrong length does not allocate too much
      const std::size_t block = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, kBlockBytes));
      const std::size_t start = to.size();
      to.resize(start + block);
      const std::size_t got = std::fread(to.data() + start, 1, block, file);
      to.resize(start + got);
      if (got < block) {
        if (std::ferror(file) != 0) throw file_error(ErrorKind::data, "read", path, errno);
        return;
      }
      bytes -= block;
    }
  }

  std::optional<std::string> end(std::size_t leftover) {
    ended = true;
    if (leftover > 0)
      note =
          fmt::format("{}: the last record, at byte {}, is truncated after {} bytes, as after a killed run",
                      path, offset, leftover);
    return std::nullopt;
  }

  std::optional<std::string> next_payload() {
    if (ended) return std::nullopt;
    std::string head;
    read(head, kHeadBytes);
    if (head.size() < kHeadBytes) return end(head.size());
    if (masked_crc32c(head.data(), 8) != little_endian<std::uint32_t>(head.data() + 8))
      throw damaged("the length's CRC is wrong");
    const auto length = little_endian<std::uint64_t>(head.data());
    std::string payload;
    read(payload, length);
    std::string crc;
    if (payload.size() == length) read(crc, 4);
    if (crc.size() < 4) return end(kHeadBytes + payload.size() + crc.size());
    if (masked_crc32c(payload.data(), payload.size()) != little_endian<std::uint32_t>(crc.data()))
      throw damaged("the contents' CRC is wrong");
    return payload;
  }
};

EventReader::EventReader(const std::string& path) : impl_(std::make_unique<Impl>()) {
  impl_->path = path;
  const int file = open_run_file(path, O_RDONLY, ErrorKind::data);
  impl_->file = file < 0 ? nullptr : ::fdopen(file, "rb");
  if (impl_->file == nullptr) throw file_error(ErrorKind::data, "open", path, errno);
}

EventReader::~EventReader() = default;

std::optional<EventRecord> EventReader::next() {
  const std::optional<std::string> payload = impl_->next_payload();
  if (!payload) return std::nullopt;
  event_file::Event event;
  if (!event.ParseFromString(*payload)) throw impl_->damaged("the contents are not an event");
  impl_->offset += kHeadBytes + payload->size() + 4;
  return to_record(event);
}

std::uint64_t EventReader::offset() const { return impl_->offset; }

const std::string& EventReader::note() const { return impl_->note; }

}  // namespace lockstep

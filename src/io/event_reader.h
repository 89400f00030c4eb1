// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads event files record by record and verifies every CRC.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/summary_value.h"

namespace lockstep {

/// One value of a summary. `kind` is "scalar", "histogram", "image", "audio", "tensor" or "unknown"; only
/// scalars have a `number`.
struct EventValue {
  std::string tag;
  std::string kind;
  double number = 0;
  SummaryData data = {};
  SummaryMetadata metadata = {};  ///< a file has it with the first value of a tag only
};

/// What a record says about the life of the run. The numbers are TensorFlow's: do not change.
enum class SessionStatus { none = 0, start = 1, stop = 2, checkpoint = 3 };

struct EventRecord {
  double wall_time = 0;  ///< seconds since 1970
  std::int64_t step = 0;
  std::string file_version;  ///< first record only: "brain.Event:2"
  bool restart = false;      ///< earlier records of `step` and later are invalid
  std::vector<EventValue> values;
  SessionStatus session = SessionStatus::none;
  std::string checkpoint_path, message;        ///< of a session's or a log record
  std::string graph_def;                       ///< a serialised graph
  std::string run_metadata_tag, run_metadata;  ///< times of a step, serialised
};

class EventReader {
 public:
  /// Throws Error(data) if the file cannot be opened.
  explicit EventReader(const std::string& path);
  ~EventReader();
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  /// Returns the next record, or nullopt at the end. A record that the end of the file truncates (after a
  /// killed run) counts as the end, and note() reports it. A damaged record throws Error(data) with its
  /// offset.
  std::optional<EventRecord> next();
  /// The number of bytes of the records that next() has returned.
  std::uint64_t offset() const;
  /// A remark about an irregular end; otherwise empty.
  const std::string& note() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/event_trim.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/error.h"
#include "core/log.h"
#include "core/message_lines.h"
#include "io/atomic_file.h"
#include "io/event_reader.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

struct Kept {
  std::string bytes;
  bool values = false;  ///< any record with values is among them
};

/// A resumed run writes it again at `step`.
bool is_written_anew(const EventRecord& record, std::int64_t step) {
  if (!record.graph_def.empty()) return true;
  for (const EventValue& value : record.values)
    if (value.metadata.plugin == "hparams" || value.tag.starts_with("_hparams_/") ||
        (value.tag == kConfigurationTag && record.step == step))
      return true;
  return false;
}

/// All its numbers have tags of the list.
bool is_not_due(const EventRecord& record, std::span<const std::string> not_due) {
  return !record.values.empty() && std::ranges::all_of(record.values, [&](const EventValue& value) {
    return std::ranges::find(not_due, value.tag) != not_due.end();
  });
}

/// The records of `text`, the contents of the file that `reader` reads, that count after `step`.
Kept kept_of(EventReader& reader, const std::string& text, std::int64_t step,
             std::span<const std::string> not_due) {
  Kept kept;
  for (std::uint64_t begin = 0; const std::optional<EventRecord> record = reader.next();) {
    const std::uint64_t end = reader.offset();
    // A restart at step + 1 discards nothing that is left.
    const bool stays =
        (record->step <= step || (record->session == SessionStatus::start && record->step <= step + 1)) &&
        !is_written_anew(*record, step) && !(record->step == step && is_not_due(*record, not_due));
    if (stays) kept.bytes.append(text, begin, end - begin);
    kept.values = kept.values || (stays && !record->values.empty());
    begin = end;
  }
  return kept;
}

bool drop_from(const std::string& path, std::int64_t step, std::span<const std::string> not_due) {
  const std::string text = read_whole_file(path, ErrorKind::data);
  EventReader reader(path);
  const Kept kept = kept_of(reader, text, step, not_due);
  if (kept.bytes.size() == text.size()) return false;
  if (kept.values)
    write_file_atomically(path, kept.bytes, ErrorKind::data);
  else
    fs::remove(path);
  return true;
}

}  // namespace

bool drop_events_after(const std::string& folder, std::int64_t step, std::span<const std::string> not_due) {
  std::vector<std::string> files;
  std::error_code code, ignored;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
    if (at->path().filename().string().starts_with("events.out.tfevents.") &&
        at->symlink_status(ignored).type() == fs::file_type::regular)
      files.push_back(at->path().string());
  bool dropped = false;
  for (const std::string& path : files) try {
      dropped = drop_from(path, step, not_due) || dropped;
    } catch (const std::exception& error) {
      log_warning("{}\n  Records of steps above {} may be in this event file twice.", message_of(error),
                  step);
    }
  return dropped;
}

}  // namespace lockstep

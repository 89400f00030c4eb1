// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/events.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "core/log.h"
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "io/event_reader.h"
#include "io/json.h"
#include "io/print_result.h"
#include "tools/events/event_tags.h"
#include "tools/events/events_export.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

void print_line(std::FILE* out, const Json& record) { print_as_is(out, record.dump() + "\n"); }

/// A record without values of which a line is printed.
bool is_mark(const EventRecord& event) {
  return !event.file_version.empty() || event.session != SessionStatus::none || !event.graph_def.empty() ||
         !event.run_metadata_tag.empty();
}

void print_record(const EventRecord& event, const std::string& name, const EventTags& tags, std::FILE* out) {
  const Json common = {{"file", name}, {"wall_time", event.wall_time}, {"step", event.step}};
  if (tags.all() && is_mark(event)) {
    Json record = common;
    if (!event.file_version.empty()) record["file_version"] = event.file_version;
    if (event.restart) record["restart"] = true;
    if (event.session == SessionStatus::stop) record["stop"] = true;
    if (event.session == SessionStatus::checkpoint) record["checkpoint"] = event.checkpoint_path;
    if (!event.graph_def.empty()) record["graph_bytes"] = event.graph_def.size();
    if (!event.run_metadata_tag.empty()) record["run_metadata"] = event.run_metadata_tag;
    print_line(out, record);
  }
  for (const EventValue& value : event.values) {
    if (!tags.chooses(value.tag)) continue;
    Json record = common;
    record["tag"] = value.tag;
    if (value.kind == "scalar")
      record["value"] = shortest_double(value.number);
    else
      record["kind"] = value.kind;
    print_line(out, record);
  }
}

void print_file(const std::string& path, const std::string& name, const EventTags& tags, std::FILE* out) {
  EventReader reader(path);
  while (const auto event = reader.next()) print_record(*event, name, tags, out);
  if (!reader.note().empty()) log_warning("{}", reader.note());
}

}  // namespace

int print_events(const std::string& path, const std::string& tag, std::FILE* out) {
  const EventTags tags(tag);
  std::error_code code;
  if (!fs::is_directory(path, code)) {
    print_file(path, path, tags, out);
  } else {
    for (const fs::path& file : find_event_files(path))
      print_file(file.string(), file.lexically_relative(path).string(), tags, out);
  }
  flush_results(out);
  return 0;
}

namespace {

void declare(CommandOptions& options, EventsArguments& arguments) {
  add_target(options, "DIR|FILE", arguments.target, "Event file, or a directory with event files");
  options.add("--tag", arguments.tag, "Only these tags: patterns, separated by commas")
      .type_name("T")
      .check(not_empty("a tag"));
  const CommandOption format =
      options
          .add("--export", arguments.format,
               "Write a table for other programs: csv (numbers) or jsonl (all kinds); what a resumed "
               "run has replaced is left out")
          .type_name("csv|jsonl")
          .check(must_be("csv or jsonl",
                         [](const std::string& text) { return text == "csv" || text == "jsonl"; }));
  options
      .add("--output", arguments.output, "The file that --export writes; - for standard output, the default")
      .type_name("FILE")
      .check(not_empty("a path"))
      .needs(format);
}

int run(const EventsArguments& arguments) {
  if (!arguments.format.empty())
    return export_events(arguments.target, arguments.format, arguments.tag, arguments.output);
  return print_events(arguments.target, arguments.tag, stdout);
}

}  // namespace

extern const Command kEventsCommand = {"events", "Print what an event file holds, one JSON object per line",
                                       "lockstep events runs/digits --tag loss",
                                       call_with<EventsArguments, declare, run>};

}  // namespace lockstep

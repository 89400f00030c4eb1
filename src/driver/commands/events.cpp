// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "core/error.h"
#include "core/log.h"
#include "driver/commands/commands.h"
#include "driver/commands/print_result.h"
#include "io/event_reader.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// The event files in a folder and below, sorted.
std::vector<fs::path> event_files(const std::string& folder) {
  std::vector<fs::path> found;
  std::error_code code, ignored;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, code), end;
  for (; !code && at != end; at.increment(code))
    if (at->path().filename().string().find("tfevents") != std::string::npos && at->is_regular_file(ignored))
      found.push_back(at->path());
  if (code) throw Error(ErrorKind::data, "cannot list the folder: " + code.message(), folder);
  if (found.empty())
    throw Error(ErrorKind::data, "holds no event files", folder,
                "Give a run directory or an event file (events.out.tfevents...).");
  std::sort(found.begin(), found.end());
  return found;
}

/// A float32 with the digits that it has, not those of the double equal to it. (NaN and infinities pass
/// through, and Json writes them as null.)
double number(double value) {
  return std::strtod(fmt::format("{}", static_cast<float>(value)).c_str(), nullptr);
}

void print_line(std::FILE* out, const Json& record) {
  print_result(out, record.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void print_record(const EventRecord& event, const std::string& name, const std::string& tag, std::FILE* out) {
  const Json common = {{"file", name}, {"wall_time", event.wall_time}, {"step", event.step}};
  if (tag.empty() && (!event.file_version.empty() || event.restart)) {
    Json record = common;
    if (!event.file_version.empty()) record["file_version"] = event.file_version;
    if (event.restart) record["restart"] = true;
    print_line(out, record);
  }
  for (const EventValue& value : event.values) {
    if (!tag.empty() && value.tag != tag) continue;
    Json record = common;
    record["tag"] = value.tag;
    if (value.kind == "scalar")
      record["value"] = number(value.number);
    else
      record["kind"] = value.kind;
    print_line(out, record);
  }
}

void print_file(const std::string& path, const std::string& name, const std::string& tag, std::FILE* out) {
  EventReader reader(path);
  while (const auto event = reader.next()) print_record(*event, name, tag, out);
  if (!reader.note().empty()) log_warning("{}", reader.note());
}

}  // namespace

int print_events(const std::string& path, const std::string& tag, std::FILE* out) {
  std::error_code code;
  if (!fs::is_directory(path, code)) {
    print_file(path, path, tag, out);
  } else {
    for (const fs::path& file : event_files(path))
      print_file(file.string(), file.lexically_relative(path).string(), tag, out);
  }
  flush_results(out);
  return 0;
}

int run_command(const EventsArguments& arguments) {
  return print_events(arguments.target, arguments.tag, stdout);
}

}  // namespace lockstep

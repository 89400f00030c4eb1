// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/profiler_hook.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "comm/agree.h"
#include "comm/shared_error.h"
#include "core/cpu.h"
#include "core/trace.h"
#include "io/atomic_file.h"
#include "session/hook_context.h"

namespace lockstep {

namespace {

/// This rank's events in the Trace Event Format (Google, "Trace Event Format", 2016), joined by commas:
/// complete events ("X") in microseconds, and metadata ("M") with the names. A process is a rank.
std::string events_of(const std::vector<ThreadTrace>& threads, int rank) {
  using Json = nlohmann::json;
  std::string text = Json{{"ph", "M"},
                          {"name", "process_name"},
                          {"pid", rank},
                          {"args", {{"name", fmt::format("rank {} ({})", rank, host_name())}}}}
                         .dump();
  int thread_id = 0;
  for (const ThreadTrace& thread : threads) {
    ++thread_id;
    const std::string name = thread.dropped == 0
                                 ? thread.thread
                                 : fmt::format("{} ({} spans did not fit)", thread.thread, thread.dropped);
    text += ",\n" + Json{{"ph", "M"},
                         {"name", "thread_name"},
                         {"pid", rank},
                         {"tid", thread_id},
                         {"args", {{"name", name}}}}
                        .dump();
    for (const TraceSpan& span : thread.spans)
      text += fmt::format(
          ",\n{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f}}}",
          Json(span.name.data()).dump(-1, ' ', false, Json::error_handler_t::replace), span.category, rank,
          thread_id, 1e-3 * static_cast<double>(span.begin_ns),
          1e-3 * static_cast<double>(span.end_ns - span.begin_ns));
  }
  return text;
}

/// The texts of all ranks in their order, on rank 0; nothing on the others. All ranks.
std::vector<std::string> gather_texts(Communicator& group, const std::string& mine) {
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(group.size()));
  const std::uint64_t size = mine.size();
  group.allgather(&size, sizeof size, sizes.data(), "sizes of the profiles");
  std::vector<std::string> texts;
  if (group.rank() != 0) {
    group.send(mine.data(), mine.size(), 0, "profile");
    return texts;
  }
  for (int rank = 0; rank < group.size(); ++rank) {
    if (rank == 0) {
      texts.push_back(mine);
      continue;
    }
    std::string& text = texts.emplace_back(sizes[static_cast<std::size_t>(rank)], '\0');
    group.receive(text.data(), text.size(), rank, "profile");
  }
  return texts;
}

}  // namespace

ProfilerHook::ProfilerHook(std::int64_t first, std::int64_t last, std::int64_t every)
    : Hook("profile"), first_(first), last_(last), every_(every) {}

void ProfilerHook::begin(HookContext&) { name_trace_thread("main"); }

void ProfilerHook::before_run(HookContext& context) {
  const std::int64_t next = context.global_step() + 1;
  const bool due = every_ > 0 ? next >= first_ && (next - first_) % every_ == 0 : next == first_;
  if (started_ >= 0 || !due) return;
  context.control().barrier("start of the profile");  // the clocks of all ranks start together
  context.trainer().device().mark_profile(true);
  start_trace();
  started_ = next;
}

void ProfilerHook::after_run(HookContext& context, const StepResult& result) {
  if (started_ >= 0 && result.step - started_ >= last_ - first_) write(context, result.step);
}

void ProfilerHook::end(HookContext& context) {
  if (started_ >= 0) write(context, context.global_step());
}

void ProfilerHook::write(HookContext& context, std::int64_t last) {
  Communicator& group = context.control();
  const std::string name = fmt::format("trace-{:08}-{:08}.json", started_, last);
  const std::string path = context.run_dir() + "/profile/" + name;
  started_ = -1;
  const std::vector<ThreadTrace> spans = stop_trace();
  context.trainer().device().mark_profile(false);
  const std::vector<std::string> texts = gather_texts(group, events_of(spans, group.rank()));
  shared([&] {
    agree(
        group,
        [&] {
          if (group.rank() != 0) return;
          std::filesystem::create_directories(context.run_dir() + "/profile");
          write_file_atomically(path, fmt::format("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}\n",
                                                  fmt::join(texts, ",\n")));
        },
        "writing the profile");
  });
  context.reports().note(fmt::format("profile {}", path));
}

}  // namespace lockstep

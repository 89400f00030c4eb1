// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/profiler_hook.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <type_traits>
#include <utility>

#include "comm/agree.h"
#include "comm/shared_error.h"
#include "config/named_options.h"
#include "config/option.h"
#include "core/cpu.h"
#include "core/device.h"
#include "core/run_file.h"
#include "core/trace.h"
#include "io/atomic_file.h"
#include "session/hook_context.h"
#include "session/hooks/hook_table.h"
#include "session/layer_times.h"
#include "session/run_record.h"
#include "session/trace_file.h"
#include "train/trainer.h"

namespace lockstep {

namespace {

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

/// The messages of all ranks, on rank 0. All ranks.
std::vector<PlacedMessage> gather_messages(Communicator& group, const std::vector<PlacedMessage>& mine) {
  static_assert(std::is_trivially_copyable_v<PlacedMessage>);
  std::string bytes(mine.size() * sizeof(PlacedMessage), '\0');
  if (!mine.empty()) std::memcpy(bytes.data(), mine.data(), bytes.size());
  std::vector<PlacedMessage> all;
  for (const std::string& one : gather_texts(group, bytes)) {
    const std::size_t before = all.size(), count = one.size() / sizeof(PlacedMessage);
    all.resize(before + count);
    if (count > 0) std::memcpy(all.data() + before, one.data(), one.size());
  }
  return all;
}

/// By rank, what its times are moved by, so that they are those of the clock of rank 0 since the first rank
/// began. `clocks`: on rank 0. All ranks.
std::vector<std::int64_t> shifts_to_one_clock(Communicator& group, const std::vector<ClockOffset>& clocks) {
  std::vector<std::int64_t> shifts(static_cast<std::size_t>(group.size()));
  const std::int64_t start = trace_start_ns();
  group.allgather(&start, sizeof start, shifts.data(), "starts of the profile");
  if (group.rank() == 0) {
    for (std::size_t rank = 0; rank < shifts.size(); ++rank) shifts[rank] -= clocks[rank].offset_ns;
    const std::int64_t first = *std::ranges::min_element(shifts);
    for (std::int64_t& shift : shifts) shift -= first;
  }
  group.broadcast(shifts.data(), shifts.size() * sizeof shifts[0], 0, "clocks of the profile");
  return shifts;
}

}  // namespace

ProfilerHook::ProfilerHook(std::int64_t first, std::int64_t last, std::int64_t every)
    : Hook("profile"), first_(first), last_(last), every_(every) {}

void ProfilerHook::begin(HookContext&) { name_trace_thread("main"); }

void ProfilerHook::before_run(HookContext& context) {
  const std::int64_t next = context.global_step() + 1;
  const bool due = every_ > 0 ? next >= first_ && (next - first_) % every_ == 0 : next == first_;
  if (started_ >= 0 || !due) return;
  clocks_ = measure_clocks(context.control());
  context.control().barrier("start of the profile");  // all ranks trace the same steps
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
  const std::int64_t first = std::exchange(started_, -1);
  const std::vector<ThreadTrace> threads = stop_trace();
  context.trainer().device().mark_profile(false);
  // Tags are unique in a file: a run that goes back may profile the same steps again.
  const int attempt = profiles_++;
  if (context.reports().has_events())
    context.reports().run_metadata(
        fmt::format("steps_{}-{}{}", first, last, attempt == 0 ? "" : fmt::format("_{}", attempt)), last,
        run_metadata(layer_times(threads, last - first + 1,
                                 context.trainer().device().is_host() ? "/device:CPU:0" : "/device:GPU:0")));
  const std::vector<std::int64_t> shifts = shifts_to_one_clock(group, clocks_);
  const std::int64_t shift = shifts[static_cast<std::size_t>(group.rank())];
  std::vector<std::string> texts =
      gather_texts(group, span_events(threads, group.rank(), host_name(), shift));
  const std::vector<PlacedMessage> messages =
      gather_messages(group, placed_messages(threads, group.rank(), group.size(), shift));
  shared([&] {
    agree(
        group,
        [&] {
          if (group.rank() != 0) return;
          make_run_folder(context.run_dir(), "profile", ErrorKind::data);
          std::int64_t error_ns = 0;
          for (const ClockOffset& clock : clocks_) error_ns = std::max(error_ns, clock.error_ns);
          texts.push_back(flow_events(messages, group.size(), 2 * error_ns));
          // Of the moment that has the time 0 in the file.
          const double begin_time =
              unix_time() - 1e-9 * static_cast<double>(trace_detail::now_ns() - (trace_start_ns() - shift));
          write_file_atomically(path, trace_file(begin_time, clocks_, texts));
        },
        "writing the profile");
  });
  context.reports().note(fmt::format("profile {}", path));
}

namespace {

struct ProfileOptions {
  std::int64_t first_step = 0, last_step = 0;
  std::optional<std::int64_t> every_steps;
};
constexpr ParamSpec kProfile[] = {
    option<&ProfileOptions::first_step>(
        "first_step", "10", between(1, 1e12),
        "The first step of the profile. The first steps of a run are not typical.", Change::free),
    option<&ProfileOptions::last_step>("last_step", "14", between(1, 1e12), "The last one.", Change::free),
    option<&ProfileOptions::every_steps>("every_steps", "null", between(1, 1e12).or_null(),
                                         "Repeat the profile after so many steps. null: once.", Change::free),
};

std::unique_ptr<Hook> make_profile(const Params& p, const HookSetting&) {
  const auto [first, last, repeat] = p.as<ProfileOptions>();
  const std::int64_t every = repeat.value_or(0);
  if (last < first)
    throw p.error(option_to_blame(p, {"first_step", "last_step"}),
                  fmt::format("last_step {} is before first_step {}", last, first));
  if (every > 0 && every <= last - first)
    throw p.error(
        option_to_blame(p, {"first_step", "last_step", "every_steps"}),
        fmt::format("a profile of {} steps every {} steps overlaps itself", last - first + 1, every));
  return std::make_unique<ProfilerHook>(first, last, every);
}

}  // namespace

extern const HookEntry kProfileHook = {"profile", "Writes a trace of all ranks and threads for Perfetto.",
                                       kProfile, make_profile, Change::free};

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/gpu_choices.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include "comm/agree.h"
#include "comm/flight_recorder.h"
#include "comm/share_text.h"
#include "comm/shared_error.h"
#include "core/error.h"
#include "core/log.h"
#include "core/message_lines.h"
#include "core/run_file.h"
#include "io/atomic_file.h"
#include "run/setup/gpu_description.h"
#include "train/prepared_calls.h"

namespace lockstep {

namespace {

constexpr const char* kWhat = "measuring the algorithms of the GPU's libraries";
constexpr const char* kTable = "measured algorithms";  // on disk: do not change

/// What a table is valid for. The driver does not change what the libraries offer.
std::vector<NamedText> measured_on(const RunContext& context) {
  std::vector<NamedText> fields = context.gpu_libraries();
  std::erase_if(fields, [](const NamedText& field) { return field.first == "CUDA driver"; });
  return fields;
}

std::string measured_table(RunContext& context, std::span<const std::int64_t> sample_counts) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::string table = context.device().backend->measure_algorithms(
      [&] { prepared_calls(context.executor_context(), true, sample_counts); });
  const std::chrono::duration<double> seconds = Clock::now() - start;
  log_info("measured the algorithms of the GPU's libraries in {:.1f} s", seconds.count());
  return table;
}

/// On the chief: the run's table, or a new one, which is kept.
std::string table_of_run(RunContext& context, std::span<const std::int64_t> sample_counts,
                         const std::string& run_dir) {
  if (run_dir.empty()) return measured_table(context, sample_counts);
  const std::filesystem::path path = std::filesystem::path(run_dir) / "configs" / "gpu_choices.txt";
  std::vector<NamedText> now = measured_on(context);
  std::error_code failed;
  if (std::filesystem::exists(path, failed)) {
    const std::vector<NamedText> kept = fields_of_text(read_whole_file(path.string()));
    const std::string changes = gpu_changes(kept, now);
    const auto table = std::ranges::find(kept, kTable, &NamedText::first);
    if (changes.empty() && table != kept.end()) return table->second;
    log_warning("the algorithms of this run were measured elsewhere, and are measured anew:{}",
                MessageLines{changes});
  }
  now.emplace_back(kTable, measured_table(context, sample_counts));
  make_run_folder(run_dir, "configs", ErrorKind::config);
  write_file_atomically(path.string(), text_of_fields(now));
  return now.back().second;
}

}  // namespace

void choose_gpu_algorithms(RunContext& context, std::span<const std::int64_t> sample_counts,
                           const std::string& run_dir) {
  if (!context.device().is_gpu()) return;
  std::string table;
  if (context.config().gpu.measures) {
    set_long_phase(kWhat);
    shared([&] {
      agree(
          context.world(),
          [&] {
            if (context.is_chief()) table = table_of_run(context, sample_counts, run_dir);
          },
          kWhat);
    });
    table = broadcast_text(context.world(), std::move(table), kWhat);
  }
  shared([&] { context.device().backend->use_measured_algorithms(table); });
}

}  // namespace lockstep

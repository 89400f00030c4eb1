// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/confusion_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "session/hook_context.h"
#include "session/summaries/picture_data.h"
#include "session/summaries/summary_part.h"

namespace lockstep {

namespace {

constexpr int kSide = 480, kLeastCell = 3;
constexpr std::uint8_t kLine[3] = {200, 200, 200};

/// From white over light blue to dark blue.
void set_shade(double share, std::uint8_t* pixel) {
  constexpr double kColors[3][3] = {{255, 255, 255}, {107, 174, 214}, {8, 48, 107}};
  const double place = std::clamp(share, 0.0, 1.0) * 2;
  const int from = place < 1 ? 0 : 1;
  for (int c = 0; c < 3; ++c)
    pixel[c] = static_cast<std::uint8_t>(
        std::lround(kColors[from][c] + (place - from) * (kColors[from + 1][c] - kColors[from][c])));
}

Picture picture_of_matrix(const MetricBoard::Table& table) {
  const auto classes = static_cast<int>(table.columns);
  const int cell = std::max(kLeastCell, kSide / classes);
  const int border = cell > 8 ? 1 : 0;  // between cells
  Picture picture(classes * cell, classes * cell, 3, 255);
  for (int row = 0; row < classes; ++row) {
    const auto first = table.values.begin() + static_cast<std::ptrdiff_t>(row) * classes;
    double sum = 0;
    for (int c = 0; c < classes; ++c) sum += first[c];
    for (int column = 0; column < classes; ++column)
      for (int y = 0; y < cell; ++y)
        for (int x = 0; x < cell; ++x) {
          std::uint8_t* const pixel = picture.at(column * cell + x, row * cell + y);
          if (x >= cell - border || y >= cell - border)
            std::copy(std::begin(kLine), std::end(kLine), pixel);
          else
            set_shade(sum > 0 ? std::sqrt(first[column] / sum) : 0, pixel);
        }
  }
  return picture;
}

}  // namespace

ConfusionSummary::ConfusionSummary(const Params& params)
    : SummaryHook("summary.confusion_matrix", HookScope::chief_only), where_(params.where()) {}

void ConfusionSummary::check(const RunNames& names) const {
  if (names.matrices.empty())
    throw Error(ErrorKind::config, "summary.confusion_matrix: evaluations have no confusion matrix", where_,
                "Add `confusion_matrix` to eval.metrics.");
}

RecordedText ConfusionSummary::recorded(const Run& run) const {
  check(run.names);
  return {.when = "each evaluation",
          .events = fmt::format("pictures of {}", fmt::join(run.names.matrices, ", "))};
}

void ConfusionSummary::after_run(HookContext& context, const StepResult&) { draw(context); }

void ConfusionSummary::end(HookContext& context) { draw(context); }

void ConfusionSummary::draw(HookContext& context) {
  const MetricBoard& board = context.eval_metrics();
  if (board.version() == drawn_) return;
  drawn_ = board.version();
  if (!context.reports().has_events()) return;
  std::vector<SummaryValue> pictures;
  std::int64_t step = 0;
  for (const auto& [name, table] : board.tables()) {
    if (!name.ends_with("/matrix") || table.columns < 2) continue;
    pictures.push_back({name, picture_data(picture_of_matrix(table))});
    step = table.step;
  }
  if (!pictures.empty()) context.reports().summary(RunReports::Split::eval, step, std::move(pictures));
}

extern const SummaryPart kConfusionSummary = {"confusion_matrix",
                                              "Pictures of the confusion matrices of evaluations.",
                                              {},
                                              make_summary<ConfusionSummary>,
                                              true};

}  // namespace lockstep

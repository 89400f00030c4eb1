// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/step_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "config/option.h"
#include "core/error.h"
#include "data/data_options.h"
#include "data/reader_table.h"

namespace lockstep {

namespace {

constexpr ParamSpec kKeys[] = {
    option<&StepWindow::inputs>(
        "inputs", "1", between(1, 1e6, "steps"),
        "steps of a sample; of more than one, they are its first axis, the oldest first"),
    option<&StepWindow::horizon>("horizon", "1", between(0, 1e6, "steps"),
                                 "from the last of them to the step of the label or target"),
    option<&StepWindow::use>(
        "use", "inputs", one_of("inputs|last|target"),
        "the features of this set: these steps, the last of them alone, or the step of the "
        "target, which is the default in data.targets"),
    option<&StepWindow::time>(
        "time", "null", {},
        "path of a dataset with the time of each step: samples do not cross a gap, where it "
        "advances by more than 1.5 times its median step; null: steps follow one another")};

/// Steps of a sample, counted from its first one.
struct Places {
  RowRange features;
  std::int64_t label;  ///< -1: none
  RowRange all() const {
    if (label < 0) return features;
    return {std::min(features.first, label), std::max(features.last, label + 1)};
  }
};

Places places_of(const StepWindow& window, bool labels) {
  const std::int64_t last = window.inputs - 1, target = last + window.horizon;
  const std::int64_t label = labels ? target : -1;
  switch (window.use) {
    case StepWindow::Use::inputs:
      return {{0, window.inputs}, label};
    case StepWindow::Use::last:
      return {{last, last + 1}, label};
    case StepWindow::Use::target:
      return {{target, target + 1}, label};
  }
  LOCKSTEP_CHECK(false, "a window is used in no way");
}

/// Reads each step that several samples of a block have once.
class WindowStore final : public SampleStore {
 public:
  WindowStore(std::shared_ptr<SampleStore> steps, const StoredForm& form, Places places,
              std::shared_ptr<const std::vector<std::int64_t>> starts)
      : steps_(std::move(steps)), form_(form), places_(places), starts_(std::move(starts)) {}

  void read(std::int64_t first, std::int64_t count, const SampleRoom& to) override {
    for (std::int64_t done = 0, together = 0; done < count; done += together) {
      const std::int64_t* const start = starts_->data() + first + done;
      together = 1;
      while (done + together < count && start[together] == start[0] + together) ++together;
      read_consecutive(*start, together, done, to);
    }
  }
  std::int64_t samples_per_chunk() const override { return steps_->samples_per_chunk(); }
  bool has_random_access() const override { return steps_->has_random_access(); }
  bool decodes_samples() const override { return steps_->decodes_samples(); }

 private:
  /// Samples that begin at the steps start, start + 1, ...; `to` is the room of the `before`-th one before.
  void read_consecutive(std::int64_t start, std::int64_t count, std::int64_t before, const SampleRoom& to) {
    const RowRange all = places_.all();
    const std::int64_t steps = all.last - all.first + count - 1, columns = form_.num_label_columns;
    const auto labels = static_cast<std::size_t>(steps * columns);
    std::vector<char> features(static_cast<std::size_t>(steps * form_.sample_bytes()));
    std::vector<std::int32_t> indices(form_.label_kind == LabelKind::indices ? labels : 0);
    std::vector<float> rows(form_.label_kind == LabelKind::rows ? labels : 0);
    steps_->read(start + all.first, steps,
                 {.features = features.data(), .label_indices = indices.data(), .label_rows = rows.data()});
    const std::int64_t bytes = form_.sample_bytes();
    const std::int64_t window_bytes = (places_.features.last - places_.features.first) * bytes;
    for (std::int64_t i = 0; i < count; ++i) {
      std::copy_n(features.data() + (places_.features.first - all.first + i) * bytes, window_bytes,
                  static_cast<char*>(to.features) + (before + i) * window_bytes);
      const std::int64_t label = (places_.label - all.first + i) * columns, at = (before + i) * columns;
      if (places_.label < 0) continue;
      if (!indices.empty()) std::copy_n(indices.data() + label, columns, to.label_indices + at);
      if (!rows.empty()) std::copy_n(rows.data() + label, columns, to.label_rows + at);
    }
  }

  const std::shared_ptr<SampleStore> steps_;
  const StoredForm form_;  ///< of a step
  const Places places_;
  const std::shared_ptr<const std::vector<std::int64_t>> starts_;
};

/// The steps after which there is a gap, ascending.
std::vector<std::int64_t> gaps_in(std::span<const double> times, const SampleOrigin& origin) {
  std::vector<double> advances;
  for (std::size_t i = 1; i < times.size(); ++i) {
    advances.push_back(times[i] - times[i - 1]);
    if (!(advances.back() > 0))
      throw Error(
          ErrorKind::data,
          fmt::format("its time, {}, is not after {}, that of the step before it", times[i], times[i - 1]),
          origin.where(static_cast<std::int64_t>(i)),
          "Steps of a window follow one another in time: sort the file, or correct window.time.");
  }
  if (advances.empty()) return {};
  std::vector<double> sorted = advances;
  std::ranges::nth_element(sorted, sorted.begin() + std::ssize(sorted) / 2);
  const double most = 1.5 * sorted[sorted.size() / 2];
  std::vector<std::int64_t> gaps;
  for (std::size_t i = 0; i < advances.size(); ++i)
    if (advances[i] > most) gaps.push_back(static_cast<std::int64_t>(i));
  return gaps;
}

}  // namespace

std::span<const ParamSpec> step_window_keys() { return kKeys; }

std::optional<StepWindow> step_window(const Params& params, const ParamSpec& option) {
  const Node& node = params.node(option.name);
  if (is_null(node)) return std::nullopt;
  return Params(node, kKeys, fmt::format("{}, {}", params.subject(), option.name)).as<StepWindow>();
}

bool has_step_window(const Params& params, std::span<const ParamSpec> table) {
  static constexpr std::string_view kName = "window";
  return std::ranges::any_of(
             table, [](const ParamSpec& one) { return one.name == kName && one.type == ParamType::node; }) &&
         params.has(kName);
}

Node with_window_use(Node options, std::string_view key_of_sets) {
  if (key_of_sets != "targets") return options;
  for (auto& [key, window] : options.entries)
    if (key == "window" && window.kind == Node::Kind::map && window.find("use") == nullptr) {
      Node use;
      use.kind = Node::Kind::scalar;
      use.text = "target";
      use.where = window.where;
      window.entries.emplace_back("use", std::move(use));
      window.entry_where.push_back(window.where);
    }
  return options;
}

void refuse_divided_windows(const DataOptions& options) {
  const bool divides = options.train_choice.part != ChoiceOptions::Part::all ||
                       options.eval_choice.part != ChoiceOptions::Part::all;
  for (const DataInput* const set : sets_of(options))
    if (divides && has_step_window(set->train, find_reader(set->format).table))
      throw set->train.error(
          "window",
          "samples overlap, and random_split, holdout and folds would give both sets the same steps",
          "Divide the rows instead: rows: [0, 800] under data.train, and rows: [800, 1000] under data.eval.");
}

void cut_windows(DatasetParts& parts, const StepWindow& window, bool with_horizon,
                 std::span<const double> times) {
  const bool needs_horizon = with_horizon || window.use == StepWindow::Use::target;
  const std::int64_t length = window.length(needs_horizon);
  const std::vector<std::int64_t> gaps = gaps_in(times, parts);
  auto starts = std::make_shared<std::vector<std::int64_t>>();
  auto gap = gaps.begin();
  for (std::int64_t start = 0; start + length <= parts.size; ++start) {
    while (gap != gaps.end() && *gap < start) ++gap;
    if (gap == gaps.end() || *gap >= start + length - 1) starts->push_back(start);
  }
  if (starts->empty())
    throw Error(ErrorKind::data,
                fmt::format("has {} steps{}, but a sample takes {} that follow one another", parts.size,
                            gaps.empty() ? "" : fmt::format(" with {} gaps", gaps.size()), length),
                parts.source, "Make window.inputs or window.horizon smaller, or choose more rows.");
  const Places places = places_of(window, parts.num_label_columns > 0);
  parts.store = std::make_shared<WindowStore>(std::move(parts.store), parts, places, starts);
  if (places.features.last - places.features.first > 1) {
    std::vector<std::int64_t> extents{window.inputs};
    for (int axis = 0; axis < parts.feature_shape.rank(); ++axis)
      extents.push_back(parts.feature_shape[axis]);
    if (std::ssize(extents) > Shape::kMaxRank)
      throw Error(ErrorKind::data, fmt::format("its samples have {} axes with window", extents.size()),
                  parts.source, "Store steps with fewer axes.");
    parts.feature_shape = Shape(std::span<const std::int64_t>(extents));
  }
  parts.name = [origin = SampleOrigin(parts), starts, step = places.features.last - 1](std::int64_t sample) {
    return origin.where((*starts)[static_cast<std::size_t>(sample)] + step);
  };
  parts.files.clear();
  parts.size = std::ssize(*starts);
}

}  // namespace lockstep

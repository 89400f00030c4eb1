// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/state_reader.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "core/message_lines.h"
#include "core/name_list.h"
#include "core/shown_text.h"
#include "model/variable_store.h"
#include "optim/moving_average.h"
#include "optim/optimizer.h"
#include "session/distributed_state.h"

namespace lockstep {

namespace {

constexpr const char* kOptimizerPiece = "optimizer";
constexpr const char* kAveragePiece = "average";
constexpr std::string_view kSlots = "slots/";

bool is_slot(const CheckpointTensor& tensor) { return tensor.path.starts_with(kSlots); }

/// "m" and "dense1/kernel" of "slots/m/dense1/kernel".
struct SlotPath {
  explicit SlotPath(const std::string& path)
      : slot(path.substr(kSlots.size(), path.find('/', kSlots.size()) - kSlots.size())),
        variable(path.substr(kSlots.size() + slot.size() + 1)) {}
  std::string slot, variable;
};

/// Residuals of another tree, or of a run that did not keep them.
bool has_no_residuals(const CheckpointFile& file, const CheckpointTensor& tensor) {
  if (!tensor.path.starts_with(kResiduals)) return false;
  const CheckpointEntry* const entry = find_entry(file, tensor.path);
  return entry == nullptr || !(entry->shape == tensor.tensor.shape());
}

/// One line per tensor that does not fit.
std::string misfits(const CheckpointFile& file, std::span<const CheckpointTensor> tensors) {
  std::string wrong;
  for (const CheckpointTensor& wanted : tensors) {
    const CheckpointEntry* entry = find_entry(file, wanted.path);
    if (entry == nullptr)
      wrong += shown_format("\n  {} is not in it", wanted.path);
    else if (!(entry->shape == wanted.tensor.shape()))
      wrong += shown_format("\n  {} is {} there, {} here", wanted.path, entry->shape.to_string(),
                            wanted.tensor.shape().to_string());
  }
  for (const CheckpointEntry& entry : file.entries())
    if (entry.path.starts_with("variables/") &&
        std::ranges::none_of(tensors, [&](const auto& t) { return t.path == entry.path; }))
      wrong += shown_format("\n  {} is not in this model", entry.path);
  return wrong;
}

/// The meaning of a variable's slots by the piece of an optimizer.
const std::string& meaning_in(const StatePiece& piece, std::string_view variable) {
  const auto own = std::ranges::find(piece.settings, variable, &StateSettings::value_type::first);
  return own != piece.settings.end() ? own->second : piece.settings.front().second;
}

}  // namespace

StatePiece piece_of(const Optimizer& optimizer, const VariableStore& variables) {
  StatePiece piece{.name = kOptimizerPiece, .settings = {{"rule", optimizer.kind()}}};
  if (optimizer.slot_names().empty()) return piece;
  for (const Variable& variable : variables.variables()) {
    if (!variable.trainable) continue;
    const std::string meaning = optimizer.meaning_of_slots(variable);
    if (meaning != optimizer.kind()) piece.settings.emplace_back(variable.name, meaning);
  }
  return piece;
}

StatePiece piece_of(const MovingAverage& average) {
  const AverageRule& rule = average.rule();
  const AverageProgress& progress = average.progress();
  return {.name = kAveragePiece,
          .settings = {{"kind", rule.kind == AverageRule::Kind::swa ? "swa" : "ema"},
                       {"begin", rule.begins},
                       {"statistics",
                        rule.statistics == AverageRule::Statistics::average ? "averaged" : "not averaged"}},
          .numbers = {{"first", progress.first}, {"updates", progress.updates}, {"last", progress.last}}};
}

const CheckpointEntry* find_entry(const CheckpointFile& file, const std::string& path) {
  const auto found = std::ranges::find(file.entries(), path, &CheckpointEntry::path);
  return found == file.entries().end() ? nullptr : &*found;
}

void require_fit(const CheckpointFile& file, std::span<const CheckpointTensor> tensors) {
  const std::string wrong = misfits(file, tensors);
  if (!wrong.empty())
    throw error_of_lines(
        ErrorKind::checkpoint, "this is a checkpoint of another model or optimizer:" + wrong, file.path(),
        "Use the configuration that the run began with (config.yaml in its run directory), or "
        "another --run-dir.");
}

StateReader::StateReader(const CheckpointFile& file, const VariableStore& variables,
                         const RestoredState& state)
    : file_(file),
      variables_(variables),
      state_(state),
      before_(StatePieces::parse(file.header().setting(kStateSettings), file.path())),
      report_(before_) {}

/// The variable's slots in the file mean something else than those of the present rule.
bool StateReader::is_for_another_rule(std::string_view variable) const {
  const StatePiece* const before = before_.find(kOptimizerPiece);
  return before != nullptr &&
         meaning_in(*before, variable) !=
             state_.optimizer->meaning_of_slots(variables_[variables_.find(std::string(variable))]);
}

bool StateReader::has_slots_of(std::string_view variable) const {
  return std::ranges::any_of(file_.entries(), [&](const CheckpointEntry& entry) {
    return entry.path.starts_with(kSlots) && SlotPath(entry.path).variable == variable;
  });
}

bool StateReader::has_slot(std::string_view slot) const {
  return std::ranges::any_of(file_.entries(), [&](const CheckpointEntry& entry) {
    return entry.path.starts_with(kSlots) && SlotPath(entry.path).slot == slot;
  });
}

bool StateReader::keeps(const CheckpointTensor& tensor) const {
  if (!is_slot(tensor)) return !has_no_residuals(file_, tensor);
  return find_entry(file_, tensor.path) != nullptr && !is_for_another_rule(SlotPath(tensor.path).variable);
}

void StateReader::read(std::span<const CheckpointTensor> tensors) {
  std::vector<CheckpointTensor> kept, fresh;
  bool residuals = false, keeps_residuals = true;
  for (const CheckpointTensor& tensor : tensors) {
    const bool keeps_it = keeps(tensor);
    if (tensor.path.starts_with(kResiduals)) residuals = true, keeps_residuals = keeps_residuals && keeps_it;
    if (keeps_it)
      kept.push_back(tensor);
    else if (is_slot(tensor))
      fresh.push_back(tensor);
  }
  if (!state_.accepts_changes)  // a variable that was frozen has no slots, and others have
    for (const CheckpointTensor& tensor : fresh)
      if (has_slots_of(SlotPath(tensor.path).variable) || !has_slot(SlotPath(tensor.path).slot))
        kept.push_back(tensor);
  require_fit(file_, kept);
  for (const CheckpointTensor& wanted : kept)
    if (!wanted.pieces) file_.read_into(wanted.path, wanted.tensor);
  if (state_.optimizer != nullptr && !state_.optimizer->slot_names().empty()) report_slots(fresh);
  if (residuals && keeps_residuals) report_.keeps({"error feedback"});
  if (!keeps_residuals) report_.begins_anew("error feedback", "the checkpoint has no residuals of this tree");
  if (state_.average != nullptr) read_average();
  read_hooks();
}

/// `fresh`: slots that keep their initial values.
void StateReader::report_slots(std::span<const CheckpointTensor> fresh) {
  if (fresh.empty()) return report_.kept(kOptimizerPiece);
  std::map<std::string, std::set<std::string>> lacking;  // by slot
  std::set<std::string> others;
  for (const CheckpointTensor& tensor : fresh) {
    const SlotPath path(tensor.path);
    if (find_entry(file_, tensor.path) == nullptr && has_slots_of(path.variable) &&
        !is_for_another_rule(path.variable))
      lacking[path.slot].insert(path.variable);
    else
      others.insert(path.variable);
  }
  const std::string rules = before_.find(kOptimizerPiece) == nullptr
                                ? ""
                                : differences(before_.find(kOptimizerPiece)->settings,
                                              piece_of(*state_.optimizer, variables_).settings);
  if (!others.empty())
    report_.begins_anew(fmt::format("optimizer of {}", name_list(std::vector(others.begin(), others.end()))),
                        rules.empty() ? "the checkpoint has no state of it" : rules);
  for (const auto& [slot, names] : lacking)
    report_.begins_anew(
        fmt::format("{} of the optimizer, of {}", slot, name_list(std::vector(names.begin(), names.end()))),
        "the checkpoint has none");
}

/// Averages of another rule, and those that the file does not have, become the variables.
void StateReader::read_average() {
  MovingAverage& average = *state_.average;
  std::size_t found = 0;
  for (const Variable& variable : variables_.variables())
    if (const auto* entry = find_entry(file_, average_path(variable.name));
        entry != nullptr && average.has(variable) && entry->shape == variable.shape)
      ++found;
  average.set_progress(progress_of(average, found));
  const bool has_begun = average.has_begun(file_.header().global_step);
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < variables_.variables().size(); ++i) {
    const auto id = static_cast<VariableId>(i);
    const Variable& variable = variables_[id];
    if (!average.has(variable)) continue;
    const Tensor to = average.tensor(variable);
    const CheckpointEntry* entry = find_entry(file_, average_path(variable.name));
    if (has_begun && entry != nullptr && entry->shape == variable.shape) {
      file_.read_into(entry->path, to);
    } else {
      std::memcpy(to.raw(), variables_.tensor(id).raw(), to.size_bytes());
      missing.push_back(variable.name);
    }
  }
  if (has_begun && !missing.empty())
    report_.begins_anew(fmt::format("average of {}", name_list(missing)), "the checkpoint has none");
}

/// `found`: averages in the file.
AverageProgress StateReader::progress_of(const MovingAverage& average, std::size_t found) {
  const std::int64_t step = file_.header().global_step;
  const AverageProgress anew = AverageProgress::beginning(average.rule(), step);
  const StatePiece now = piece_of(average);
  if (found == 0) {
    report_.begins_anew(now.name, "the checkpoint has none");
    return anew;
  }
  if (!report_.keeps(now)) return anew;
  const StatePiece* const before = before_.find(kAveragePiece);
  if (before == nullptr) return AverageProgress::at(average.rule(), step);
  const auto number = [&](const char* name) {
    const auto entry = before->numbers.find(name);
    return entry != before->numbers.end() ? entry->second : 0;
  };
  const AverageProgress progress{
      .first = number("first"), .updates = number("updates"), .last = number("last")};
  return progress.has_begun(step) ? progress : anew;
}

void StateReader::read_hooks() {
  for (const CheckpointTensor& wanted : state_.hooks) {
    const CheckpointEntry* const entry = find_entry(file_, wanted.path);
    const bool fits =
        entry != nullptr && entry->shape == wanted.tensor.shape() && entry->dtype == wanted.tensor.dtype();
    const auto piece = std::ranges::find(state_.hook_pieces, wanted.path, &StatePiece::name);
    if (piece == state_.hook_pieces.end()) {  // deferred calls
      if (fits) file_.read_into(wanted.path, wanted.tensor);
      continue;
    }
    StatePiece now = *piece;
    if (!fits && before_.find(now.name) == nullptr) {
      report_.begins_anew(now.name, "the checkpoint has none");
      continue;
    }
    const bool keeps_it = report_.keeps(now) && fits;
    if (!fits || (!keeps_it && now.lasting == 0)) continue;
    const auto values = static_cast<double*>(wanted.tensor.raw());
    const std::vector<double> initial(values, values + wanted.tensor.num_elements());
    file_.read_into(wanted.path, wanted.tensor);
    if (!keeps_it)
      std::copy(initial.begin() + static_cast<std::ptrdiff_t>(now.lasting), initial.end(),
                values + now.lasting);
  }
}

}  // namespace lockstep

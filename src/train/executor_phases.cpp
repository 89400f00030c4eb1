// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The executor's phases: from the graph's calls to lists of actions, cut where microshards meet, where a
// gradient bucket is complete, and on a device behind the loss.
#include <algorithm>
#include <utility>

#include "train/executor.h"

namespace lockstep {

void Executor::build_phases() {
  const int K = static_cast<int>(calls_.operations.size());
  phases_.emplace_back();
  phases_.back().actions.push_back({Act::fetch, -1});
  auto meet_at = [&](int operation, bool backward) {
    phases_.back().meeting = operation;
    phases_.back().backward_meeting = backward;
    phases_.emplace_back();
  };
  for (int i = 0; i < K; ++i) {
    if (training_ && calls_.operations[static_cast<std::size_t>(i)].collective != nullptr) {
      phases_.back().actions.push_back({Act::forward_local, i});
      meet_at(i, false);
    }
    phases_.back().actions.push_back({Act::forward, i});
  }
  phases_.front().first = true;
  phases_.back().actions.push_back({Act::loss, -1});
  phases_.back().ends_with_loss = !training_;
  if (!training_) return;
  for (int i = K - 1; i >= 0; --i) {
    const Graph::Operation& operation = calls_.operations[static_cast<std::size_t>(i)];
    if (!operation.backward) {
      if (!has_gradients(operation)) continue;
      phases_.back().actions.push_back({Act::no_gradient, i});
      add_gradients(phases_.back(), operation);
      continue;
    }
    if (operation.collective != nullptr) {
      phases_.back().actions.push_back({Act::backward_local, i});
      add_gradients(phases_.back(), operation);
      meet_at(i, true);
      phases_.back().actions.push_back({Act::backward, i});
    } else {
      phases_.back().actions.push_back({Act::backward, i});
      add_gradients(phases_.back(), operation);
    }
  }
  for (Phase& phase : phases_) phase.base = phase.gradients.first;
}

// Without meetings the whole step is one phase, and no bucket would leave before its end. So the last
// microshard of each thread gets phases of its own: its backward pass, cut where a bucket is complete.
void Executor::cut_at_buckets(std::span<const Range> buckets) {
  if (per_shard_slots_ || phases_.size() != 1) return;
  if (context_.device.is_host() && buckets.size() < 2) return;
  const Phase whole = phases_.front();
  phases_.front().who = Who::all_but_last;
  std::size_t bucket = 0;
  Phase part{.base = whole.base, .who = Who::last, .first = true};
  part.gradients = {whole.base, whole.base};
  for (const Action& action : whole.actions) {
    part.actions.push_back(action);
    if (action.act == Act::loss && !context_.device.is_host()) {
      part.ends_with_loss = true;
      phases_.push_back(std::move(part));
      part = Phase{.base = whole.base, .who = Who::last};
      part.gradients = {whole.base, whole.base};
    }
    if (action.act != Act::backward && action.act != Act::no_gradient) continue;
    add_gradients(part, calls_.operations[static_cast<std::size_t>(action.operation)]);
    if (bucket + 1 < buckets.size() && part.gradients.last >= buckets[bucket].last) {
      while (bucket + 1 < buckets.size() && part.gradients.last >= buckets[bucket].last) ++bucket;
      const std::int64_t end = part.gradients.last;
      phases_.push_back(std::move(part));
      part = Phase{.base = whole.base, .who = Who::last};
      part.gradients = {end, end};
    }
  }
  phases_.push_back(std::move(part));
}

// What the host waits for in a step is the loss: on a device a phase ends there, and the backward pass goes
// on while the host does what a step asks of it.
void Executor::cut_behind_loss() {
  for (std::size_t p = 0; p < phases_.size(); ++p) {
    std::vector<Action>& actions = phases_[p].actions;
    const auto loss = std::ranges::find(actions, Act::loss, &Action::act);
    if (loss == actions.end()) continue;
    Phase forward;
    forward.actions.assign(actions.begin(), loss + 1);
    forward.first = std::exchange(phases_[p].first, false);
    forward.ends_with_loss = true;
    actions.erase(actions.begin(), loss + 1);
    phases_.insert(phases_.begin() + static_cast<std::ptrdiff_t>(p), std::move(forward));
    return;
  }
}

bool Executor::has_gradients(const Graph::Operation& operation) const {
  return operation.node >= 0 &&
         context_.graph.nodes()[static_cast<std::size_t>(operation.node)].trainable_elements > 0;
}

void Executor::add_gradients(Phase& phase, const Graph::Operation& operation) const {
  if (operation.node < 0) return;
  const Graph::Node& node = context_.graph.nodes()[static_cast<std::size_t>(operation.node)];
  for (int id = node.last_variable - 1; id >= node.first_variable; --id) {
    const Variable& variable = context_.variables[static_cast<VariableId>(id)];
    if (!variable.trainable || variable.sparse_index >= 0) continue;
    const std::int64_t used = variable.offset + variable.shape.num_elements();
    const std::int64_t end = variable.offset + VariableStore::padded(variable.shape.num_elements());
    if (phase.gradients.size() == 0) phase.gradients = {variable.offset, variable.offset};
    LOCKSTEP_CHECK(phase.gradients.last == variable.offset,
                   "gradients are not finished in the variables' order at {}", variable.name);
    phase.gradients.last = end;
    if (end > used) phase.gaps.push_back({used, end});
  }
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hook_state.h"

#include <algorithm>

namespace lockstep {

std::string HookState::path(const Hook& hook, const std::string& key) {
  return fmt::format("state/hooks/{}/{}", hook.name(), key);
}

void HookState::declare(const Hook& hook, const std::string& key, std::span<double> values,
                        StateSettings settings, std::size_t lasting) {
  LOCKSTEP_CHECK(hook.scope() == HookScope::all_ranks, "hook {} lives on the chief only", hook.name());
  tensors_.push_back({path(hook, key),
                      Tensor(values.data(), DType::f64, Shape({static_cast<std::int64_t>(values.size())}))});
  pieces_.push_back({.name = path(hook, key), .settings = std::move(settings), .lasting = lasting});
}

void HookState::close() {
  tensors_.push_back({DeferredCalls::kPath, deferred_.tensor()});
  for (const CheckpointTensor& tensor : tensors_) {
    const double* values = tensor.tensor.data<double>();
    initial_.insert(initial_.end(), values, values + tensor.tensor.num_elements());
  }
}

void HookState::reset() {
  const double* initial = initial_.data();
  for (const CheckpointTensor& tensor : tensors_) {
    const std::int64_t count = tensor.tensor.num_elements();
    std::copy_n(initial, count, tensor.tensor.data<double>());
    initial += count;
  }
}

std::span<const CheckpointTensor> HookState::tensors(bool with_deferred) const {
  const std::size_t left_out = with_deferred || deferred_.any() ? 0 : 1;
  return std::span(tensors_).first(tensors_.size() - left_out);
}

}  // namespace lockstep

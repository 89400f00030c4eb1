// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/jobs/pass_hook.h"

#include <algorithm>

#include "comm/agree.h"
#include "comm/shared_error.h"
#include "core/nested_error.h"

namespace lockstep {

namespace {

constexpr const char* kWhat = "hooks of an evaluation or a prediction";

/// As the errors of the library, so that all ranks can throw it.
template <typename Body>
void as_error(Body body) {
  try {
    body();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw_with_cause(Error(ErrorKind::usage,
                           fmt::format("a hook of an evaluation or a prediction failed: {}", error.what())),
                     std::current_exception());
  }
}

}  // namespace

PassHooks::PassHooks(Communicator& world, const std::vector<PassHookFunction>& functions,
                     std::int64_t samples, std::int64_t batch_size)
    : world_(world), samples_(samples), batch_size_(batch_size) {
  if (functions.empty()) return;
  shared([&] {
    agree(
        world_,
        [&] {
          as_error([&] {
            for (const PassHookFunction& make : functions) hooks_.push_back(make());
          });
        },
        kWhat);
  });
}

PassBatch PassHooks::batch() const {
  const std::int64_t first = number_ * batch_size_;
  return {.number = number_,
          .first = first,
          .count = std::min(batch_size_, samples_ - first),
          .rank = world_.rank()};
}

template <typename Call>
void PassHooks::all(Call call) {
  as_error([&] {
    for (const auto& hook : hooks_) call(*hook);
  });
}

template <typename Call>
void PassHooks::together(Call call) {
  if (hooks_.empty()) return;
  shared([&] {
    agree(
        world_, [&] { all(call); }, kWhat);
  });
}

void PassHooks::begin() {
  together([&](PassHook& hook) { hook.begin(samples_); });
}
void PassHooks::before_batch() {
  together([&](PassHook& hook) { hook.before_batch(batch()); });
}
void PassHooks::after_batch(const PredictionStream* predictions) {
  together([&](PassHook& hook) { hook.after_batch(batch(), predictions); });
  ++number_;
}
void PassHooks::end(const EvaluationOutcome* outcome) {
  together([&](PassHook& hook) { hook.end(outcome); });
}

double PassHooks::between_batches() {
  if (hooks_.empty()) return 0;
  try {
    all([&](PassHook& hook) { hook.after_batch(batch(), nullptr); });
    ++number_;
    if (number_ * batch_size_ < samples_) all([&](PassHook& hook) { hook.before_batch(batch()); });
    return 0;
  } catch (const std::exception&) {
    failed_ = std::current_exception();
    return 1;
  }
}

void PassHooks::rethrow() {
  shared([&] {
    agree(
        world_,
        [&] {
          if (failed_) std::rethrow_exception(failed_);
        },
        kWhat);
  });
}

}  // namespace lockstep

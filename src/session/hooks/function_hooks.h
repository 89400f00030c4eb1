// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Hooks that call a function, for programs in C++.
#pragma once

#include <functional>

#include "session/hook.h"
#include "session/hook_context.h"

namespace lockstep {

/// Calls a function once at the end, after a clean stop, on all ranks or on the chief.
class FinalOpsHook : public Hook {
 public:
  using Function = std::function<void(HookContext&)>;
  FinalOpsHook(std::string name, Function function, HookScope scope = HookScope::all_ranks)
      : Hook(std::move(name), scope), function_(std::move(function)) {}
  void end(HookContext& context) override { function_(context); }

 private:
  Function function_;
};

/// Changes the samples of every step (Feed): augmentation, synthetic data.
class FeedHook : public Hook {
 public:
  FeedHook(std::string name, Feed feed) : Hook(std::move(name)), feed_(std::move(feed)) {}
  void before_run(HookContext& context) override { context.feed(*this, feed_); }

 private:
  Feed feed_;
};

}  // namespace lockstep

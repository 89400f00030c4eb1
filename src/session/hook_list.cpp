// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hook_list.h"

#include <algorithm>

#include "comm/communicator.h"
#include "core/message_lines.h"
#include "core/nested_error.h"
#include "core/shown_text.h"
#include "session/agree_shared.h"
#include "session/deferred_calls.h"
#include "session/transient_error.h"

namespace lockstep {

namespace {

std::string hook_text(const Hook& hook, const char* method, const std::string& what) {
  return fmt::format("hook {}, {}: {}", shown_text(hook.name()), method, what);
}

/// Calls one method of one hook; what it throws, and why it stops the session, gets the hook's name.
void call_named(StopControl& stop, Hook& hook, const char* method, HookList::Call call) {
  stop.set_caller(hook.name());
  struct Reset {
    StopControl& stop;
    ~Reset() { stop.set_caller({}); }
  } const reset{stop};
  try {
    call(hook);
  } catch (const SharedError& error) {
    throw_with_cause(SharedError(error_of_lines(error.kind(), hook_text(hook, method, error.what_happened()),
                                                error.where(), error.advice())),
                     cause_of(error));
  } catch (const TransientError& error) {
    throw_with_cause(TransientError(error.kind(), hook_text(hook, method, error.what_happened()),
                                    error.where(), error.advice()),
                     cause_of(error));
  } catch (const Error& error) {
    throw_with_cause(error_of_lines(error.kind(), hook_text(hook, method, error.what_happened()),
                                    error.where(), error.advice()),
                     cause_of(error));
  } catch (const std::exception& error) {
    throw_with_cause(Error(ErrorKind::bug, hook_text(hook, method, error.what())), std::current_exception());
  } catch (...) {
    throw_with_cause(
        Error(ErrorKind::bug, hook_text(hook, method, "it threw something that is no exception")),
        std::current_exception());
  }
}

}  // namespace

bool HookList::calls(const Hook& hook) const {
  return control_.rank() == 0 || hook.scope() == HookScope::all_ranks;
}

void HookList::add(std::unique_ptr<Hook> hook) {
  for (const auto& other : hooks_)
    LOCKSTEP_REQUIRE(other->name() != hook->name(), ErrorKind::config, "there are two hooks with the name {}",
                     hook->name());
  hooks_.push_back(std::move(hook));
}

const Hook* HookList::deciding() const {
  const auto found = std::ranges::find_if(hooks_, [](const auto& hook) { return hook->decides_update(); });
  return found == hooks_.end() ? nullptr : found->get();
}

void HookList::call_agreed(const char* method, Call call) {
  for (const std::unique_ptr<Hook>& hook : hooks_) {
    const auto body = [&] {
      if (calls(*hook)) call_named(stop_, *hook, method, call);
    };
    if (hook->communicates())
      body();
    else
      agree_shared(control_, hook->name().c_str(), body);
  }
}

void HookList::call_in_step(const char* method, Call call, std::size_t first) {
  for (std::size_t i = first; i < hooks_.size() && !deferred_.any(); ++i) {
    Hook& hook = *hooks_[i];
    if (!calls(hook)) continue;
    if (hook.communicates()) {
      call_named(stop_, hook, method, call);
      continue;
    }
    try {
      call_named(stop_, hook, method, call);
    } catch (const SharedError&) {
      throw;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::communication) throw;  // there is no exchange to tell others with
      stop_.keep_error(error, std::current_exception(), is_transient(error));
    }
  }
}

std::size_t HookList::first_deferred() const {
  const auto hook = std::ranges::find_if(hooks_, [&](const std::unique_ptr<Hook>& candidate) {
    return deferred_.begin_with(candidate->name());
  });
  return static_cast<std::size_t>(hook - hooks_.begin());
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/hook_table.h"

#include <algorithm>
#include <filesystem>

#include "config/named_options.h"

namespace lockstep {

// One per line, in the order of the reference. Each entry is defined in its hook's file in hooks/.
#define LOCKSTEP_HOOKS(HOOK)  \
  HOOK(kStopAfterStepsHook)   \
  HOOK(kStopAfterSecondsHook) \
  HOOK(kStopIfHigherHook)     \
  HOOK(kStopIfLowerHook)      \
  HOOK(kStopIfNoIncreaseHook) \
  HOOK(kStopIfNoDecreaseHook) \
  HOOK(kLossSpikeHook)        \
  HOOK(kLoggingHook)          \
  HOOK(kProfileHook)          \
  HOOK(kWaitForStepHook)

LOCKSTEP_TABLE(HookEntry, hook_table, "hook", LOCKSTEP_HOOKS)

std::string HookSetting::resolved(const std::string& path) const {
  return (std::filesystem::path(base_directory) / path).lexically_normal().string();
}

std::unique_ptr<Hook> HookSpec::make(const HookSetting& setting) const {
  std::unique_ptr<Hook> hook = entry.make(options, setting);
  if (!name.empty()) hook->set_name(name);
  return hook;
}

std::vector<HookSpec> hooks_from_config(const Node& list, const HookSetting& setting) {
  std::vector<HookSpec> specs;
  if (is_null(list)) return specs;
  if (list.kind != Node::Kind::list)
    throw Error(ErrorKind::config, "hooks is not a list", list.where,
                "Write each hook after a dash: '- logging: {...}'.");
  ErrorCollector mistakes;
  const auto add = [&](const Node& item) {
    const NamedOptions named = named_options(item, "hook");
    const HookEntry& entry = hook_table().at(named);
    specs.push_back({entry, Params(named.options, entry.table, "hook " + named.name, mistakes), named.where});
    HookSpec& spec = specs.back();
    const std::string own = spec.make(setting)->name();
    const auto is_taken = [&](const std::string& name) {
      return std::ranges::count(specs, name, &HookSpec::name) > 0;
    };
    std::string name = own;
    for (int number = 2; is_taken(name); ++number) name = fmt::format("{}_{}", own, number);
    spec.name = name;
  };
  for (const Node& item : list.items) mistakes.attempt([&] { add(item); });
  mistakes.throw_if_any();
  return specs;
}

}  // namespace lockstep

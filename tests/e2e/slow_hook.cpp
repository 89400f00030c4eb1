// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A plugin for jobs_test.py and slurm_test.py: steps that take as long as a test wants, without a
// computation.
#include <chrono>
#include <thread>

#include "session/hook_context.h"
#include "session/hooks/hook_table.h"
#include "session/plugin.h"

namespace {

using namespace lockstep;

class Slow : public Hook {
 public:
  explicit Slow(double seconds) : Hook("slow"), seconds_(seconds) {}
  void before_run(HookContext&) override {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds_));
  }

 private:
  double seconds_;
};

constexpr ParamSpec kOptions[] = {
    {"seconds", ParamType::real, kRequired, at_least(0, "seconds"), "Of each step."}};

}  // namespace

LOCKSTEP_PLUGIN {
  hook_table().add({"slow", "Sleeps before each step.", kOptions,
                    [](const Params& options, const HookSetting&) -> std::unique_ptr<Hook> {
                      return std::make_unique<Slow>(options.real("seconds"));
                    }});
}

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A plugin for hooks_test.py: fails in one method, on one rank.
#include "comm/communicator.h"
#include "session/hook_context.h"
#include "session/hooks/hook_table.h"
#include "session/plugin.h"

namespace {

using namespace lockstep;

class Failing : public Hook {
 public:
  Failing(std::string method, std::int64_t rank) : Hook("failing"), method_(std::move(method)), rank_(rank) {}
  void begin(HookContext& context) override { fail("begin", context); }
  void after_create_session(HookContext& context) override { fail("after_create_session", context); }
  void before_run(HookContext& context) override { fail("before_run", context); }
  void after_run(HookContext& context, const StepResult&) override { fail("after_run", context); }
  void end(HookContext& context) override { fail("end", context); }

 private:
  void fail(const char* method, HookContext& context) {
    if (method_ == method && context.control().rank() == rank_)
      throw std::runtime_error("as it was asked to");
  }
  std::string method_;
  std::int64_t rank_;
};

constexpr ParamSpec kOptions[] = {{"method", ParamType::string, kRequired, {}, "Where."},
                                  {"rank", ParamType::integer, kRequired, at_least(0), "On which rank."}};

}  // namespace

LOCKSTEP_PLUGIN {
  hook_table().add(
      {"failing", "Fails.", kOptions, [](const Params& options, const HookSetting&) -> std::unique_ptr<Hook> {
         return std::make_unique<Failing>(options.string("method"), options.integer("rank"));
       }});
}

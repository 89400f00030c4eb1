// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A plugin for hooks_test.py: fails in one method, on one rank.
#include "session/monitored_session.h"
#include "session/plugin.h"

namespace {

using namespace lockstep;

class Failing : public Hook {
 public:
  Failing(std::string method, std::int64_t rank) : Hook("failing"), method_(std::move(method)), rank_(rank) {}
  void begin(MonitoredSession& session) override { fail("begin", session); }
  void after_create_session(MonitoredSession& session) override { fail("after_create_session", session); }
  void before_run(MonitoredSession& session) override { fail("before_run", session); }
  void after_run(MonitoredSession& session, const StepResult&) override { fail("after_run", session); }
  void end(MonitoredSession& session) override { fail("end", session); }

 private:
  void fail(const char* method, MonitoredSession& session) {
    if (method_ == method && session.control().rank() == rank_)
      throw std::runtime_error("as it was asked to");
  }
  std::string method_;
  std::int64_t rank_;
};

constexpr ParamSpec kOptions[] = {{"method", ParamType::string, kRequired, "", "Where."},
                                  {"rank", ParamType::integer, kRequired, ">= 0", "On which rank."}};

}  // namespace

LOCKSTEP_PLUGIN {
  register_hook(
      {"failing", "Fails.", kOptions, [](const Params& options, const HookSetting&) -> std::unique_ptr<Hook> {
         return std::make_unique<Failing>(options.string("method"), options.integer("rank"));
       }});
}

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A hook as a plugin: the chief writes RUN_DIR/heartbeat every N seconds, for scripts that watch a run.
//
//   plugins: [build/libheartbeat.so]
//   hooks: [{heartbeat: {every_seconds: 5}}]
#include <lockstep/files.h>
#include <lockstep/hook.h>
#include <lockstep/plugin.h>
#include <lockstep/services.h>

namespace {

using namespace lockstep;

class Heartbeat : public Hook {
 public:
  explicit Heartbeat(double every_seconds)
      : Hook("heartbeat", HookScope::chief_only), every_seconds_(every_seconds) {}

  void after_create_session(HookContext& context) override { beat(context, "running"); }
  void after_run(HookContext& context, const StepResult&) override {
    if (since_.seconds() >= every_seconds_) beat(context, "running");
  }
  void end(HookContext& context) override { beat(context, "finished"); }

 private:
  void beat(HookContext& context, const char* state) {
    write_file_atomically(context.run_dir() + "/heartbeat",
                          fmt::format("{} {}\n", state, context.global_step()));
    since_.restart();
  }

  double every_seconds_;
  Timer since_;
};

constexpr ParamSpec kOptions[] = {
    {"every_seconds", ParamType::real, "5", above(0, "seconds"), "How often the file is written."}};

}  // namespace

LOCKSTEP_PLUGIN {
  hook_table().add({"heartbeat", "Writes RUN_DIR/heartbeat now and then.", kOptions,
                    [](const Params& options, const HookSetting&) -> std::unique_ptr<Hook> {
                      return std::make_unique<Heartbeat>(options.real("every_seconds"));
                    }});
}

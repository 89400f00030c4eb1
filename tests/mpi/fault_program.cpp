// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A program whose last rank fails in a chosen way. hang_test.py runs it under mpirun and checks its end.
//
//   fault_program sleep | save | stop | overlap | throw | exit
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <thread>

#include "comm/agree.h"
#include "comm/environment.h"
#include "comm/flight_recorder.h"
#include "comm/gradient_reducer.h"
#include "core/error.h"

namespace {

using namespace lockstep;

void sleep_long() { std::this_thread::sleep_for(std::chrono::minutes(5)); }

void run(CommEnvironment& environment, std::string_view fault) {
  Communicator& world = environment.world();
  const bool bad = world.rank() == world.size() - 1;
  world.barrier("the start");
  set_phase("step 17");
  if (fault == "overlap") {
    GradientReducer reducer(world, nullptr, world.size(), 1000, {{0, 1000}}, {.overlap = true});
    if (bad) sleep_long();
    reducer.start(0);
    reducer.wait_all();
    return;
  }
  if (bad && fault == "sleep") {
    set_phase("reading data");
    sleep_long();
  }
  if (bad && fault == "save") {
    set_long_phase("saving");
    sleep_long();
  }
  if (bad && fault == "stop") (void)raise(SIGSTOP);
  if (bad && fault == "throw") throw Error(ErrorKind::data, "record 7 is torn", "train.h5");
  if (bad && fault == "exit") _exit(9);
  world.barrier("batch_norm bn1");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view fault = argc > 1 ? argv[1] : "none";
  // A long phase extends the limit tenfold.
  CommEnvironment environment({.timeout_seconds = fault == "save" ? 1.0 : 2.0});
  try {
    run(environment, fault);
    environment.finalize();
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "rank %d: %s\n", environment.world().rank(), error.what());
    environment.abort(exit_code(error.kind()));
  }
}

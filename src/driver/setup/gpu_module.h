// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPU backend is a shared object beside the program, loaded when something asks for GPUs: NVIDIA's
// libraries take 200 MB and 0.15 s of every rank that loads them, and a run on CPUs shall not need them.
#pragma once

#include <string>

namespace lockstep {

/// Loads it, once, where it is; afterwards backends() has it. Returns why it could not be loaded, or an empty
/// text. A program that registered a backend itself needs no module. One thread.
std::string load_gpu_module();

/// The host has GPUs that this process may open, as far as the system's files tell.
bool host_has_gpus();

}  // namespace lockstep

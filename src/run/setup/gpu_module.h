// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The GPU backend is a shared object next to the program, loaded when a GPU is needed: NVIDIA's libraries
// cost every rank that loads them 200 MB and 0.15 s, and a run on CPUs must not need them.
#pragma once

#include <string>

namespace lockstep {

/// Loads the backend once; backends() contains it afterwards. Returns why it could not be loaded, or an empty
/// text. A program that registered a backend itself needs no module. One thread.
std::string load_gpu_module();

/// True if the host has GPUs that this process may open, according to the device files.
bool host_has_gpus();

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/thread_ban.h"

#include <atomic>

namespace lockstep {

namespace {

std::atomic<int> bans{0};

}  // namespace

ThreadBan::ThreadBan() { ++bans; }
ThreadBan::~ThreadBan() { --bans; }
bool ThreadBan::active() { return bans > 0; }

}  // namespace lockstep

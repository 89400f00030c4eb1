// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sessions of a program's own, with the hooks of `lockstep train`: begin with monitored_training_session()
// (docs/library.md).
#pragma once

#include "api/launch.h"
#include "api/session_setup.h"
#include "api/supervisor.h"
#include "api/training_session.h"
#include "comm/agree.h"
#include "session/hooks/checkpoint_saver_hook.h"
#include "session/hooks/function_hooks.h"
#include "session/hooks/signal_hook.h"
#include "session/hooks/stop_hooks.h"
#include "session/hooks/summary_hooks.h"
#include "session/monitored_session.h"
#include "session/run_reports.h"
#include "session/run_state.h"
#include "session/saver.h"
#include "session/session_manager.h"
#include "train/gradients.h"
#include "train/step_update.h"
#include "train/trainer.h"

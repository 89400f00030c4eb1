// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Files: inputs and outputs, records one after the other, checkpoints, event files (docs/library.md,
// docs/events.md).
#pragma once

#include "io/atomic_file.h"
#include "io/checkpoint.h"
#include "io/event_reader.h"
#include "io/example.h"
#include "io/graph_summary.h"
#include "io/input_file.h"
#include "io/record_reader.h"
#include "io/summary_media.h"
#include "io/summary_tags.h"
#include "io/summary_writer.h"
#include "io/tfrecord_writer.h"

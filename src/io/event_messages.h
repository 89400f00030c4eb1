// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal: between the structs of summary_value.h and the messages of event.proto.
#pragma once

#include "event.pb.h"
#include "io/summary_value.h"

namespace lockstep {

/// Moves `value` into `message`.
void to_message(SummaryValue&& value, bool with_metadata, event_file::Summary::Value& message);

/// "scalar", "histogram", "image", "audio", "tensor" or "unknown".
const char* kind_of(const event_file::Summary::Value& message);
/// A value of an unknown kind becomes NaN.
SummaryData data_of(event_file::Summary::Value& message);
SummaryMetadata metadata_of(event_file::Summary::Value& message);

}  // namespace lockstep

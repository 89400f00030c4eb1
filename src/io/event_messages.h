// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal: between the structs of summary_value.h and the messages of event.proto.
#pragma once

#include <string>
#include <string_view>

#include "io/event_queue.h"
#include "io/summary_value.h"

namespace lockstep {

namespace event_file {
class Event;
class Summary_Value;  // Summary::Value
}  // namespace event_file

/// Moves `value` into `message`.
void to_message(SummaryValue&& value, bool with_metadata, event_file::Summary_Value& message);

/// Moves a note of the run's life, not values, into `message`.
void to_message(QueuedEvent&& event, event_file::Event& message);
/// Copies `text` with its invalid bytes as "?": protobuf reads no other text than UTF-8.
void set_text(std::string& to, std::string_view text);

/// "scalar", "histogram", "image", "audio", "tensor" or "unknown".
const char* kind_of(const event_file::Summary_Value& message);
/// A value of an unknown kind becomes NaN.
SummaryData data_of(event_file::Summary_Value& message);
SummaryMetadata metadata_of(event_file::Summary_Value& message);

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/event_messages.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "event.pb.h"

namespace lockstep {

namespace {

static_assert(std::endian::native == std::endian::little, "the numbers of tensors are stored in this order");

struct IntoMessage {
  event_file::Summary::Value& message;

  void operator()(float number) const { message.set_simple_value(number); }
  void operator()(HistogramData& from) const {
    event_file::HistogramProto& to = *message.mutable_histo();
    to.set_min(from.min);
    to.set_max(from.max);
    to.set_num(from.num);
    to.set_sum(from.sum);
    to.set_sum_squares(from.sum_squares);
    to.mutable_bucket_limit()->Add(from.limits.begin(), from.limits.end());
    to.mutable_bucket()->Add(from.counts.begin(), from.counts.end());
  }
  void operator()(ImageData& from) const {
    event_file::Summary::Image& to = *message.mutable_image();
    to.set_height(from.height);
    to.set_width(from.width);
    to.set_colorspace(from.channels);
    to.set_encoded_image_string(std::move(from.png));
  }
  void operator()(AudioData& from) const {
    event_file::Summary::Audio& to = *message.mutable_audio();
    to.set_sample_rate(from.sample_rate);
    to.set_num_channels(from.channels);
    to.set_length_frames(from.frames);
    to.set_encoded_audio_string(std::move(from.encoded));
    to.set_content_type(std::move(from.content_type));
  }
  void operator()(TensorData& from) const {
    event_file::TensorProto& to = *message.mutable_tensor();
    to.set_dtype(static_cast<int>(from.dtype));
    event_file::TensorShapeProto& shape = *to.mutable_tensor_shape();
    for (const std::int64_t extent : from.shape) shape.add_dim()->set_size(extent);
    to.set_tensor_content(std::move(from.bytes));
    for (std::string& text : from.strings) to.add_string_val(std::move(text));
  }
};

/// The elements of a tensor that has them one by one, as bytes.
template <typename Element, typename Values>
void append_elements(const Values& values, std::string& bytes) {
  for (const auto value : values) {
    const auto element = static_cast<Element>(value);
    bytes.append(reinterpret_cast<const char*>(&element), sizeof element);
  }
}

TensorData tensor_of(event_file::TensorProto& from) {
  TensorData to;
  to.dtype = static_cast<SummaryDType>(from.dtype());
  for (const event_file::TensorShapeProto::Dim& dim : from.tensor_shape().dim())
    to.shape.push_back(dim.size());
  to.bytes = std::move(*from.mutable_tensor_content());
  append_elements<float>(from.float_val(), to.bytes);
  append_elements<double>(from.double_val(), to.bytes);
  if (to.dtype == SummaryDType::u8)
    append_elements<std::uint8_t>(from.int_val(), to.bytes);
  else
    append_elements<std::int32_t>(from.int_val(), to.bytes);
  append_elements<std::int64_t>(from.int64_val(), to.bytes);
  append_elements<bool>(from.bool_val(), to.bytes);
  for (std::string& text : *from.mutable_string_val()) to.strings.push_back(std::move(text));
  return to;
}

HistogramData histogram_of(const event_file::HistogramProto& from) {
  return {.min = from.min(),
          .max = from.max(),
          .num = from.num(),
          .sum = from.sum(),
          .sum_squares = from.sum_squares(),
          .limits = {from.bucket_limit().begin(), from.bucket_limit().end()},
          .counts = {from.bucket().begin(), from.bucket().end()}};
}

/// The bytes of the first character of `text`; 0 if it is not valid UTF-8 (RFC 3629).
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t at = 1; at < length; ++at)
    if ((byte(at) & 0xC0) != 0x80) return 0;
  const unsigned char second = byte(1);
  const bool is_bad = (first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
                      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90);
  return is_bad ? 0 : length;
}

}  // namespace

void to_message(SummaryValue&& value, bool with_metadata, event_file::Summary::Value& message) {
  set_text(*message.mutable_tag(), value.tag);
  std::visit(IntoMessage{message}, value.value);
  if (!with_metadata || value.metadata.empty()) return;
  event_file::SummaryMetadata& metadata = *message.mutable_metadata();
  metadata.mutable_plugin_data()->set_plugin_name(std::move(value.metadata.plugin));
  metadata.mutable_plugin_data()->set_content(std::move(value.metadata.content));
  set_text(*metadata.mutable_display_name(), value.metadata.display_name);
  set_text(*metadata.mutable_summary_description(), value.metadata.description);
}

void to_message(QueuedEvent&& event, event_file::Event& message) {
  if (auto* const graph = std::get_if<GraphNote>(&event.what)) {
    message.set_graph_def(std::move(graph->graph_def));
  } else if (auto* const times = std::get_if<RunMetadataNote>(&event.what)) {
    set_text(*message.mutable_tagged_run_metadata()->mutable_tag(), times->tag);
    message.mutable_tagged_run_metadata()->set_run_metadata(std::move(times->run_metadata));
  } else if (auto* const session = std::get_if<SessionNote>(&event.what)) {
    event_file::SessionLog& log = *message.mutable_session_log();
    log.set_status(static_cast<event_file::SessionLog::Status>(session->status));
    set_text(*log.mutable_checkpoint_path(), session->checkpoint_path);
    set_text(*log.mutable_msg(), session->message);
  }
}

void set_text(std::string& to, std::string_view text) {
  to = text;
  for (std::size_t at = 0; at < to.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) to[at] = '?';
    at += std::max<std::size_t>(length, 1);
  }
}

const char* kind_of(const event_file::Summary::Value& message) {
  switch (message.value_case()) {
    case event_file::Summary::Value::kSimpleValue:
      return "scalar";
    case event_file::Summary::Value::kImage:
      return "image";
    case event_file::Summary::Value::kHisto:
      return "histogram";
    case event_file::Summary::Value::kAudio:
      return "audio";
    case event_file::Summary::Value::kTensor:
      return "tensor";
    case event_file::Summary::Value::kObsoleteHistogram:
    case event_file::Summary::Value::VALUE_NOT_SET:
      break;
  }
  return "unknown";
}

SummaryData data_of(event_file::Summary::Value& message) {
  switch (message.value_case()) {
    case event_file::Summary::Value::kSimpleValue:
      return message.simple_value();
    case event_file::Summary::Value::kImage: {
      event_file::Summary::Image& image = *message.mutable_image();
      return ImageData{image.height(), image.width(), image.colorspace(),
                       std::move(*image.mutable_encoded_image_string())};
    }
    case event_file::Summary::Value::kHisto:
      return histogram_of(message.histo());
    case event_file::Summary::Value::kAudio: {
      event_file::Summary::Audio& audio = *message.mutable_audio();
      return AudioData{audio.sample_rate(), audio.num_channels(), audio.length_frames(),
                       std::move(*audio.mutable_encoded_audio_string()),
                       std::move(*audio.mutable_content_type())};
    }
    case event_file::Summary::Value::kTensor:
      return tensor_of(*message.mutable_tensor());
    case event_file::Summary::Value::kObsoleteHistogram:
    case event_file::Summary::Value::VALUE_NOT_SET:
      break;
  }
  return std::numeric_limits<float>::quiet_NaN();
}

SummaryMetadata metadata_of(event_file::Summary::Value& message) {
  if (!message.has_metadata()) return {};
  event_file::SummaryMetadata& from = *message.mutable_metadata();
  return {.plugin = std::move(*from.mutable_plugin_data()->mutable_plugin_name()),
          .content = std::move(*from.mutable_plugin_data()->mutable_content()),
          .display_name = std::move(*from.mutable_display_name()),
          .description = std::move(*from.mutable_summary_description())};
}

}  // namespace lockstep

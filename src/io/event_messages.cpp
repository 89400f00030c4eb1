// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/event_messages.h"

#include <bit>
#include <limits>
#include <utility>

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

}  // namespace

void to_message(SummaryValue&& value, bool with_metadata, event_file::Summary::Value& message) {
  message.set_tag(std::move(value.tag));
  std::visit(IntoMessage{message}, value.value);
  if (!with_metadata || value.metadata.empty()) return;
  event_file::SummaryMetadata& metadata = *message.mutable_metadata();
  metadata.mutable_plugin_data()->set_plugin_name(std::move(value.metadata.plugin));
  metadata.mutable_plugin_data()->set_content(std::move(value.metadata.content));
  metadata.set_display_name(std::move(value.metadata.display_name));
  metadata.set_summary_description(std::move(value.metadata.description));
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

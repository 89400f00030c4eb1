// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/graph_summary.h"

#include "graph.pb.h"

namespace lockstep {

namespace {

constexpr int kProducer = 22;  // the oldest version of graphs with which viewers accept all of this

}  // namespace

std::string graph_def(std::span<const GraphNode> nodes) {
  event_file::GraphDef graph;
  graph.mutable_versions()->set_producer(kProducer);
  for (const GraphNode& from : nodes) {
    event_file::NodeDef& to = *graph.add_node();
    to.set_name(from.name);
    to.set_op(from.op);
    to.set_device(from.device);
    for (const std::string& input : from.inputs) to.add_input(input);
    auto& attributes = *to.mutable_attr();
    if (!from.output_shapes.empty())
      for (const std::vector<std::int64_t>& shape : from.output_shapes) {
        event_file::TensorShapeProto& list = *attributes["_output_shapes"].mutable_list()->add_shape();
        for (const std::int64_t extent : shape) list.add_dim()->set_size(extent);
      }
    for (const auto& [name, text] : from.texts) attributes[name].set_s(text);
    for (const auto& [name, number] : from.numbers) attributes[name].set_i(number);
  }
  return graph.SerializeAsString();
}

std::string run_metadata(std::span<const DeviceTimes> devices) {
  event_file::RunMetadata metadata;
  for (const DeviceTimes& from : devices) {
    event_file::DeviceStepStats& device = *metadata.mutable_step_stats()->add_dev_stats();
    device.set_device(from.device);
    for (const NodeTime& time : from.nodes) {
      event_file::NodeExecStats& node = *device.add_node_stats();
      node.set_node_name(time.node);
      node.set_all_start_micros(time.begin_us);
      node.set_op_end_rel_micros(time.end_us - time.begin_us);
      node.set_all_end_rel_micros(time.end_us - time.begin_us);
      node.set_timeline_label(time.label);
      node.set_thread_id(time.thread);
      if (time.bytes == 0) continue;
      event_file::AllocatorMemoryUsed& memory = *node.add_memory();
      memory.set_allocator_name("activations");
      memory.set_total_bytes(time.bytes);
    }
  }
  return metadata.SerializeAsString();
}

}  // namespace lockstep

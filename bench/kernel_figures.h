// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The figures of kernel_bench: printed as they are measured, and written as JSON.
#pragma once

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "core/cpu.h"
#include "kernels/kernel_table.h"

namespace lockstep {

struct Figure {
  std::string name;
  double value;
  std::string unit;
};
inline std::vector<Figure> figures;

inline void report(const std::string& name, double value, const std::string& unit) {
  std::printf("  %-58s %10.1f %s\n", name.c_str(), value, unit.c_str());
  std::fflush(stdout);
  figures.push_back({name, value, unit});
}

inline bool write_json(const std::string& path) {
  std::ofstream file(path);
  file << "{\n  \"processor\": \"" << processor_name() << "\",\n  \"library\": \""
       << primitive_library_version() << "\",\n  \"figures\": [\n";
  for (std::size_t i = 0; i < figures.size(); ++i)
    file << "    {\"name\": \"" << figures[i].name << "\", \"value\": " << figures[i].value
         << ", \"unit\": \"" << figures[i].unit << "\"}" << (i + 1 < figures.size() ? "," : "") << "\n";
  file << "  ]\n}\n";
  file.close();
  return !file.fail();
}

}  // namespace lockstep

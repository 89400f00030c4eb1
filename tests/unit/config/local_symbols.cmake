# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# What an unnamed namespace holds is its file's own: no symbol that the linker merges may name one. GCC 12 emits such symbols for
# templates whose arguments are pointers to members alone (config/option.h), and two files with equal names would share one.
#
#   cmake -DNM=<nm> -DLIBRARIES=<archives> -P local_symbols.cmake
cmake_minimum_required(VERSION 3.22)
set(found "")
set(count 0)
foreach(library IN LISTS LIBRARIES)
  execute_process(COMMAND ${NM} -C ${library} OUTPUT_VARIABLE symbols RESULT_VARIABLE code ERROR_QUIET)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${NM} cannot read ${library}")
  endif()
  string(REGEX MATCHALL "[^\n]+" lines "${symbols}")
  list(LENGTH lines number)
  math(EXPR count "${count} + ${number}")
  list(FILTER lines INCLUDE REGEX "^[0-9a-f ]+ [WVu] .*\\(anonymous namespace\\)")
  foreach(line IN LISTS lines)
    string(APPEND found "  ${line}\n")
  endforeach()
endforeach()
if(count EQUAL 0)
  message(FATAL_ERROR "no symbols were found in '${LIBRARIES}'")
endif()
if(found)
  message(FATAL_ERROR "The linker merges symbols of unnamed namespaces:\n${found}")
endif()
message(STATUS "${count} symbols, none of an unnamed namespace is merged")

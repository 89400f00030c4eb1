# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# How many headers install, and how many a program gets with a public one: what a user's compiler reads. A number that has to grow
# is changed here, with a reason in the commit.
#
#   cmake -DSOURCE=<repository> -DGENERATED=<generated headers> -DSCRATCH=<folder> -P public_headers_check.cmake
cmake_minimum_required(VERSION 3.22)
set(script ${SOURCE}/cmake/public_headers.cmake)

# expect(most [arguments of the script])
function(expect most)
  execute_process(COMMAND ${CMAKE_COMMAND} -DSOURCE=${SOURCE} -DGENERATED=${GENERATED} ${ARGN} -P ${script}
                  RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
  if(NOT code EQUAL 0 OR NOT out MATCHES "([0-9]+) headers")
    message(FATAL_ERROR "${ARGN}: ${out}${err}")
  endif()
  if(CMAKE_MATCH_1 GREATER most)
    message(FATAL_ERROR "${ARGN}: ${CMAKE_MATCH_1} headers, more than ${most}")
  endif()
  message(STATUS "${ARGN}: ${CMAKE_MATCH_1} headers, at most ${most}")
endfunction()

expect(30 -DBEGIN=estimator.h)
expect(33 -DBEGIN=ready_made.h)
expect(55 -DBEGIN=layer.h)
expect(40 -DBEGIN=hook.h)
expect(70 -DBEGIN=plugin.h)
expect(45 -DBEGIN=reader.h)
expect(317 -DDESTINATION=${SCRATCH}/include)

# All of them are there, and lead to one another.
file(GLOB public RELATIVE ${SOURCE}/include ${SOURCE}/include/lockstep/*.h)
foreach(header IN LISTS public)
  if(NOT EXISTS ${SCRATCH}/include/${header})
    message(FATAL_ERROR "${header} would not install")
  endif()
endforeach()
file(GLOB_RECURSE installed ${SCRATCH}/include/*.h)
foreach(header IN LISTS installed)
  file(STRINGS ${header} lines REGEX "^[ \t]*#[ \t]*include[ \t]*(\"|<lockstep/)")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "[<\"]([^>\"]+)[>\"]" found "${line}")
    if(NOT EXISTS ${SCRATCH}/include/${CMAKE_MATCH_1})
      message(FATAL_ERROR "${header} includes ${found}, which would not install")
    endif()
  endforeach()
endforeach()
file(REMOVE_RECURSE ${SCRATCH})

# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY LOCKSTEP_ROOMS)
install(TARGETS ${rooms} lockstep_all lockstep_plugin lockstep_program lockstep_c EXPORT LockstepTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# The public headers and what they include.
set(headers ${PROJECT_BINARY_DIR}/pages/include)
install(CODE "execute_process(COMMAND \"${CMAKE_COMMAND}\" \"-DSOURCE=${PROJECT_SOURCE_DIR}\" \"-DGENERATED=${PROJECT_BINARY_DIR}/generated\"
  \"-DDESTINATION=${headers}\" -P \"${PROJECT_SOURCE_DIR}/cmake/public_headers.cmake\" COMMAND_ERROR_IS_FATAL ANY)")
install(DIRECTORY ${headers}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT LockstepTargets NAMESPACE Lockstep:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Lockstep)
# Not at the root of the build tree, where find_package() would find it before it is installed.
set(package ${PROJECT_BINARY_DIR}/pages/cmake)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/LockstepConfig.cmake.in ${package}/LockstepConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Lockstep)
write_basic_package_version_file(${package}/LockstepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${package}/LockstepConfig.cmake ${package}/LockstepConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Lockstep)

# pkg-config, for projects that are not built by CMake. The archives of the rooms in the order of the linker: each before those that it
# uses. MPI and HDF5 by path, since there may be several.
set(LOCKSTEP_PC_ROOMS "")
foreach(room IN LISTS rooms)
  string(PREPEND LOCKSTEP_PC_ROOMS "-l${room} ")
endforeach()
string(STRIP "${LOCKSTEP_PC_ROOMS}" LOCKSTEP_PC_ROOMS)
set(LOCKSTEP_PC_LIBRARIES "")
foreach(library IN LISTS MPI_CXX_LIBRARIES HDF5_C_LIBRARIES CMAKE_DL_LIBS)
  if(NOT IS_ABSOLUTE "${library}" AND NOT "${library}" MATCHES "^-")
    string(PREPEND library "-l")
  endif()
  string(APPEND LOCKSTEP_PC_LIBRARIES " ${library}")
endforeach()
set(LOCKSTEP_PC_INCLUDES "")
foreach(folder IN LISTS MPI_CXX_INCLUDE_DIRS HDF5_C_INCLUDE_DIRS)
  string(APPEND LOCKSTEP_PC_INCLUDES " -I${folder}")
endforeach()
file(RELATIVE_PATH LOCKSTEP_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/lockstep.pc.in ${PROJECT_BINARY_DIR}/pages/lockstep.pc @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/cmake/lockstep_c.pc.in ${PROJECT_BINARY_DIR}/pages/lockstep_c.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/pages/lockstep.pc ${PROJECT_BINARY_DIR}/pages/lockstep_c.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
# Side by side as in the repository, so that examples find their data and pages each other.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs ${PROJECT_SOURCE_DIR}/examples ${PROJECT_SOURCE_DIR}/data
        DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/slurm DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep USE_SOURCE_PERMISSIONS)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/CITATION.cff DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep)

# cmake --build FOLDER --target uninstall: removes what the last installation from this folder wrote.
configure_file(${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake.in ${PROJECT_BINARY_DIR}/pages/uninstall.cmake @ONLY)
if(PROJECT_IS_TOP_LEVEL)
  add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -P ${PROJECT_BINARY_DIR}/pages/uninstall.cmake)
endif()

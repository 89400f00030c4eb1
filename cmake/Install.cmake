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
# uses. By path what there may be several of (MPI, HDF5), and what lies outside of the linker's own folders.
set(LOCKSTEP_PC_ROOMS "")
foreach(room IN LISTS rooms)
  string(PREPEND LOCKSTEP_PC_ROOMS "-l${room} ")
endforeach()
string(STRIP "${LOCKSTEP_PC_ROOMS}" LOCKSTEP_PC_ROOMS)
get_target_property(lockstep_dnnl DNNL::dnnl LOCATION)
set(LOCKSTEP_PC_LIBRARIES "")
foreach(library IN LISTS lockstep_dnnl LIBDEFLATE_LIBRARY MPI_CXX_LIBRARIES HDF5_C_LIBRARIES CMAKE_DL_LIBS)
  if(library STREQUAL lockstep_dnnl OR library STREQUAL LIBDEFLATE_LIBRARY)
    get_filename_component(folder ${library} DIRECTORY)
    if(folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
      get_filename_component(library ${library} NAME_WE)
      string(REGEX REPLACE "^lib" "" library ${library})
    endif()
  endif()
  if(NOT IS_ABSOLUTE "${library}" AND NOT "${library}" MATCHES "^-")
    string(PREPEND library "-l")
  endif()
  string(APPEND LOCKSTEP_PC_LIBRARIES " ${library}")
endforeach()
set(LOCKSTEP_PC_INCLUDES "")
foreach(folder IN LISTS MPI_CXX_INCLUDE_DIRS HDF5_C_INCLUDE_DIRS)
  string(APPEND LOCKSTEP_PC_INCLUDES " -I${folder}")
endforeach()
# Each folder from that of the .pc file: the prefix may be moved, and `pkg-config --define-prefix` takes lib/<machine> for a prefix's lib.
foreach(name PREFIX LIBDIR INCLUDEDIR)
  set(folder ${CMAKE_INSTALL_FULL_${name}})
  if(name STREQUAL PREFIX)
    set(folder ${CMAKE_INSTALL_PREFIX})
  endif()
  file(RELATIVE_PATH LOCKSTEP_PC_TO_${name} ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${folder})
endforeach()
configure_file(${PROJECT_SOURCE_DIR}/cmake/lockstep.pc.in ${PROJECT_BINARY_DIR}/pages/lockstep.pc @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/cmake/lockstep_c.pc.in ${PROJECT_BINARY_DIR}/pages/lockstep_c.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/pages/lockstep.pc ${PROJECT_BINARY_DIR}/pages/lockstep_c.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Modulefiles, for Lmod and for Environment Modules, with the prefix of the installation.
set(LOCKSTEP_MODULE_DEPENDS "" CACHE STRING "Modules that the installed modulefiles load first: the compiler's and the MPI library's, as gcc/12;openmpi/4.1")
set(LOCKSTEP_LUA_DEPENDS "")
set(LOCKSTEP_TCL_DEPENDS "")
foreach(module IN LISTS LOCKSTEP_MODULE_DEPENDS)
  string(APPEND LOCKSTEP_LUA_DEPENDS "depends_on(\"${module}\")\n")
  string(APPEND LOCKSTEP_TCL_DEPENDS "module load ${module}\n")
endforeach()
list(GET MPI_CXX_LIBRARIES 0 LOCKSTEP_MPI_LIBRARY)
set(values "")
foreach(name PROJECT_VERSION PROJECT_DESCRIPTION CMAKE_INSTALL_BINDIR CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_MANDIR CMAKE_INSTALL_DATADIR
        LOCKSTEP_MPI_LIBRARY LOCKSTEP_LUA_DEPENDS LOCKSTEP_TCL_DEPENDS)
  string(APPEND values "set(${name} [==[${${name}}]==])\n")
endforeach()
install(CODE "${values}
set(LOCKSTEP_SHARED \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}/lockstep\")
configure_file(\"${PROJECT_SOURCE_DIR}/cmake/modulefile.lua.in\" \"${PROJECT_BINARY_DIR}/pages/modulefiles/${PROJECT_VERSION}.lua\" @ONLY)
configure_file(\"${PROJECT_SOURCE_DIR}/cmake/modulefile.tcl.in\" \"${PROJECT_BINARY_DIR}/pages/modulefiles/${PROJECT_VERSION}\" @ONLY)")
install(DIRECTORY ${PROJECT_BINARY_DIR}/pages/modulefiles/ DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep/modulefiles/lockstep)

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

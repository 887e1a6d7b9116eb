# SPDX-License-Identifier: MIT
# make install PREFIX=…: headers, both libraries, tenon.pc, a CMake package, manual pages, the command.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/tenon DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${TN_GEN_DIR}/include/tenon DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
install(FILES LICENSE docs/differences.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/user DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${TN_GEN_DIR}/reference DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(section 1 3 7)
  file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/man/*.${section})
  if(pages)
    install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  endif()
endforeach()
# Pages that describe several commands are found under each of their names.
foreach(command trace run)
  file(WRITE ${CMAKE_BINARY_DIR}/man/tenon-${command}.1 ".so man1/tenon-explain.1\n")
  install(FILES ${CMAKE_BINARY_DIR}/man/tenon-${command}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endforeach()
install(TARGETS tenon RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# A program that links libtenon.a links these as well; libtenon.so brings them itself.
set(TN_STATIC_LIBS "-lpthread -lm -ldl")
if(TN_HAVE_ONEDNN)
  string(APPEND TN_STATIC_LIBS " -ldnnl")
endif()
string(REPLACE " " ";" TN_STATIC_LIBS_LIST "${TN_STATIC_LIBS}")
install(TARGETS tenon_shared tenon_static LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})

# Both files find the prefix from where they lie, so the tree can be moved.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Tenon)
file(RELATIVE_PATH TN_PC_TO_PREFIX /x/${CMAKE_INSTALL_LIBDIR}/pkgconfig /x)
configure_file(cmake/tenon.pc.in tenon.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tenon.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
configure_package_config_file(cmake/TenonConfig.cmake.in TenonConfig.cmake
                              INSTALL_DESTINATION ${package_dir}
                              PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(TenonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/TenonConfig.cmake ${CMAKE_BINARY_DIR}/TenonConfigVersion.cmake
        DESTINATION ${package_dir})

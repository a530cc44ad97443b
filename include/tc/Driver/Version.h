//===- Version.h - the version of tc --------------------------------------------------------------------*- C++ -*-===//
//
// From the project's version in CMakeLists.txt; part of the manifest and of --version.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#ifndef TC_DRIVER_VERSION_H
#define TC_DRIVER_VERSION_H

#ifndef TC_VERSION_STRING
#define TC_VERSION_STRING "unknown" // lib/Driver/CMakeLists.txt defines it
#endif

#endif // TC_DRIVER_VERSION_H

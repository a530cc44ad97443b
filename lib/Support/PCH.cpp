// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The translation unit that the shared precompiled header belongs to. See tc_add_library in cmake/TcHelpers.cmake.

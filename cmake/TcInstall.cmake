# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What `ninja install` puts where.
include(GNUInstallDirs)

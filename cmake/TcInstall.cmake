# What `ninja install` puts where.
include(GNUInstallDirs)

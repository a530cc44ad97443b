# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All files of operators. A new one is imported here; the order decides what a seed means."""
import operators
import operators_products  # noqa: F401
import operators_quantized  # noqa: F401
import operators_network  # noqa: F401
import operators_control  # noqa: F401
import operators_sequence  # noqa: F401
import operators_ml  # noqa: F401

enabled = operators.enabled

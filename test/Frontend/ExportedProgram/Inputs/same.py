# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether two .npz files hold the same arrays.   same.py A B"""
import sys

import numpy as np

a, b = (dict(np.load(path)) for path in sys.argv[1:])
assert sorted(a) == sorted(b), (sorted(a), sorted(b))
for name in a:
    assert a[name].dtype == b[name].dtype and a[name].shape == b[name].shape, (name, a[name], b[name])
    np.testing.assert_allclose(a[name], b[name], rtol=1e-6, atol=0, err_msg=name)

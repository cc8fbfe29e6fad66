"""The engine: training in plain processes. They are the parallelism, so each computes on one thread."""

import numpy as np  # noqa: F401  # loads the library whose threads are limited
from threadpoolctl import threadpool_limits

threadpool_limits(1, user_api="blas")

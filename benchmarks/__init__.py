"""Named workloads, and the ledger of their measurements."""

from manyworlds.utils.openmp import limit_openmp_spinning

limit_openmp_spinning()  # as the command line does

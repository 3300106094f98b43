"""Named workloads and one ledger of what they measured."""

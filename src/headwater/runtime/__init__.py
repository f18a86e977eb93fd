"""Everything that runs: Spark sessions and jars, lowering of plans, the keyed-operator host, jobs. No SQL is parsed here."""

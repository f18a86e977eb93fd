"""Everything that runs: Spark sessions, jars, lowering of plans, the keyed-operator host, jobs. Parses no SQL."""

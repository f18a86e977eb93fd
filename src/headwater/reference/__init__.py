"""All options of all connectors and formats as tables, for `headwater options` and the documentation."""

"""The `json` format: objects, one per message."""

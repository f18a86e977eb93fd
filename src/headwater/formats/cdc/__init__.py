"""Formats of change data capture in JSON: an envelope that says which row changed, and how."""

"""A connector and a format for Headwater, in a package of their own."""

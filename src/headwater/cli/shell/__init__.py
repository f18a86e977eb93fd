"""The interactive shell of `headwater sql`: what is typed, completed and coloured, and what is done with it."""

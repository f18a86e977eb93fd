"""The rows of a SELECT, from the changes that its job emits to what Python, a terminal or a notebook shows of them."""

"""Where rows come from and go to: `kafka`, `datagen`, `print_`, `blackhole`, and the result of a SELECT.

`runtime` says what a source and a sink do while a job runs, `catalog.connector` what a connector declares, and
`plugins` knows all of them by name.
"""

"""Where rows come from and go to. `base` says what a connector is, `registry` knows all of them."""

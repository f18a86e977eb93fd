"""What `headwater demo` runs, without its screen: the two scripts, made-up visitors, and a recount that shares no code
with the engine.

A page view walks: `traffic` makes it up → `feed` sends it → the jobs of `scripts` count it → `results` follows what
they write, and recounts the input to say what must be there. `run` directs all of it.
"""

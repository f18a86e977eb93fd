"""Watching and steering running jobs, from inside their process and from any other of the same user.

    meter      how fast a job is, from its running totals
    history    the last hour of a job, and what has happened to it
    status     a job at one moment, as plain values that travel
    monitor    all jobs of this process
    registry   where a process says that it runs jobs: a file and a local socket, which only its owner may use
    server     answers on that socket
    client     finds processes and asks them

Nothing here knows how a status is shown: `cli` and `ui` do.
"""

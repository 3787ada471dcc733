"""Which plan to publish, and why: the decision, its guards, the session, the loop, and the ports it writes through.

`recommend`, `guards`, `recommendation`, `decision` and `session` are pure: `now` is an argument. I/O lives in
`adapters/`, behind the Protocols of `ports`. Nothing here knows the executor.
"""

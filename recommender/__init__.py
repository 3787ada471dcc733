"""The decision on which plan to publish, and the reasons for it.

`deciding` makes one decision from one context; `following` keeps what a group has taught; `configuring` reads settings;
`cluster` knows the objects of Kubernetes; `adapters` do the I/O behind the Protocols of `ports`; `run` is the loop over
all of them. Deciding and following are pure: `now` is an argument. Nothing here knows the executor.
"""

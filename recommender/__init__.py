"""The decision on which plan to publish, and the reasons for it.

`deciding` makes one decision from one context; `following` keeps the state of a group between decisions; `configuring`
reads settings; `cluster` has the rules for objects of Kubernetes; `adapters` do the I/O behind the Protocols of
`ports`; `run` is the loop over all of them. Deciding and following are pure: `now` is an argument. Nothing here imports
the executor.
"""

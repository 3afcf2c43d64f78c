"""Who may launch on a device, and when: one arbiter per device, a policy that suggests, a core that decides.

`scheduler` and `policies` are pure: events in, instructions out, time passed in. `simulation` runs the same objects in
virtual time; `gate` is the shared-memory page through which an executor learns what was decided.
"""

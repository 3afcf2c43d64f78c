"""Who may launch on a device, and when: one arbiter per device, a policy that suggests, a core that decides.

`scheduler` and `policies` are pure: events in, instructions out, time passed in. `simulation` runs the same objects in
virtual time. `service` is the process: it writes what was decided onto the pages of `gpu_backend.gate`.
"""

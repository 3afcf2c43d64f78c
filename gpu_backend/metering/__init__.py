"""Who used a device, and what this machine has.

What is seen from outside (`meters`, `nvml`, `machine`), and what is believed of an executor (`audit`).
"""

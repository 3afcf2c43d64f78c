"""Who used a device: what is seen from outside (`meters`, `nvml`), and what is believed of an executor (`audit`)."""

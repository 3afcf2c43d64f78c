"""ZeroMQ with our options: sockets, keys, admission at the door, and how a refused handshake is noticed."""

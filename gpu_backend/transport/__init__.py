"""ZeroMQ and nothing but: sockets, keys, admission at the door. The only package that imports zmq."""

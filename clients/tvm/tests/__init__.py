"""Tests of the client: `python3 -m unittest discover -s clients/tvm/tests -t clients/tvm`."""

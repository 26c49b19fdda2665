"""The few hot loops: pure functions on arrays.

``reference`` is plain array-API code and the oracle; ``cpu`` is the fast NumPy form of the same functions;
``sparse`` is the same again for scipy.sparse matrices. A test compares them all.
"""

"""How a policy's Python is read, checked and translated, so that compiled code means the same.

`purity` refuses what depends on more than its arguments. `translation` turns a score function and
what it calls into another function, statement by statement (`statements`, `expressions`, `calls`),
in which every name has one `kind` and every operation is a call. `arithmetic` says in plain Python
what these calls mean, `native_arithmetic` and `native_records` say it for Numba. `literal` writes
texts into generated source.
"""

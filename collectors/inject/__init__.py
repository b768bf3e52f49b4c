"""The folder on the profiled program's PYTHONPATH; it holds nothing else of traceviz.

This code runs inside users' programs, under a Python that may differ from ours. It uses only the standard library and
the syntax of Python 3.9, and imports no framework that the program did not import itself.
"""

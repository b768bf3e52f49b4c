"""What the profiled program gets on its PYTHONPATH: this folder, and nothing else of traceviz.

Everything below runs inside other people's programs, under a Python that need not be ours: standard library only,
syntax of Python 3.9, and no framework is imported that the program did not import itself.
"""

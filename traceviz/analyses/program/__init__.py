"""The program in its own terms: operators, modules, ranges, compilation."""

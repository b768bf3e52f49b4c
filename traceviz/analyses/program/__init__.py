"""Structure of the program: operators, modules, ranges, compilation."""

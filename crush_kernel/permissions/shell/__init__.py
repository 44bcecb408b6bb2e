"""What a command line does, read from its text: pure, and never looser than its strictest part.

A guard rail that saves questions and words the ones that are left; no sandbox. `parser` divides a
line into a `syntaxtree`, `scanner` and `words` know its words, `treesitter` divides it once more,
`programs` knows what commands do, and `reading` puts it all together.
"""

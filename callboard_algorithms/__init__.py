"""What other people's algorithms are built from: the names of `spec` and `engine` are kept between versions.

A package with an algorithm has two halves, which Callboard finds by their entry points: its spec imports
`callboard_algorithms.spec`, which a web host without PyTorch has too, and its method imports
`callboard_algorithms.engine`. `backend.specs.algorithms.packages` says what is checked of it.
"""

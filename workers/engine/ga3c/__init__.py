"""The parts of GA3C that need no torch: agents, the memory they share, the walk that adjusts their number."""

"""What the commands do. Imported only when a command runs, since NumPy and the rest of matrixdp are slow to import."""
